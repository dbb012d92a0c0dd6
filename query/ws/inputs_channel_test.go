package ws

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/limits"
	"github.com/marketlog/marketlog/query/prices"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// inputsLog is a store of prices with their inputs.
type inputsLog struct{ records []*eventsv1.PriceRecord }

func (l *inputsLog) Identity(context.Context) (string, error) { return "prices", nil }

func (l *inputsLog) Materialized(context.Context) (map[int32]int64, error) {
	next := map[int32]int64{}
	for p := range int32(8) {
		next[p] = 1 << 40
	}
	return next, nil
}

func (l *inputsLog) Oldest(context.Context, time.Time) (int64, error) { return 0, nil }

func (l *inputsLog) PricesWithInputs(_ context.Context, after, until int64, coins []string, most int, visit func(*eventsv1.PriceRecord)) error {
	for _, rec := range l.records {
		if s := rec.GetPrice().Time / int64(time.Second); s > after && s <= until && slices.Contains(coins, rec.GetPrice().CoinId) && most > 0 {
			most--
			visit(rec)
		}
	}
	return nil
}

// inputsFixture has a price of each second of the coins of the scripts, and memory for some seconds of them.
func inputsFixture(t *testing.T) (*fixture, *inputsLog) {
	coins := scriptCoins(t)
	log := &inputsLog{}
	cache := views.NewPriceCache(coins)
	unit := prices.New(cache, views.NewCatalog(coins), nil, nil, nil)
	w := newFixture(t, func(s *setup) {
		s.coins, s.channels = coins, unit.Channels(log, log, "prices", slog.New(slog.DiscardHandler))
		s.stream.ChannelBytes = 4_000
	})
	return w, log
}

func (l *inputsLog) second(w *fixture, price float64) {
	for _, coin := range []string{"bitcoin", "ethereum"} {
		p := &eventsv1.Price{CoinId: coin, Method: 2, Time: w.now.Load() * int64(time.Second), Inputs: []*eventsv1.PriceInput{}}
		for i, venue := range []string{"bitstamp", "coinbase", "kraken"} {
			receivedAt := w.now.Load()*int64(time.Second) - int64(time.Second)/2
			at := price + float64(i)
			p.Inputs = append(p.Inputs, &eventsv1.PriceInput{Provider: venue, Symbol: "X/USD", QuoteId: schemas.USD, Bid: at, Ask: at, Last: at, QuoteHeard: receivedAt, LastHeard: receivedAt, EventTime: receivedAt,
				Rate: 1, RateTime: receivedAt, Partition: 2, Offset: 7, FreshFor: int64(schemas.FreshFor)})
		}
		result, inputs, _ := schemas.AggregateBy(2, p.Inputs, p.Time)
		p.Inputs = inputs
		p.Price, p.Median0, p.Min, p.Max, p.Confidence, p.Score = result.Price, result.Median0, result.Min, result.Max, result.Confidence, result.Score
		p.Volume24H, p.Source, p.Accepted, p.Rejected = result.Volume24h, result.Source, uint32(result.Accepted), uint32(result.Rejected)
		rec := &eventsv1.PriceRecord{Body: &eventsv1.PriceRecord_Price{Price: p}}
		l.records = append(l.records, rec)
		w.write(0, rec)
	}
	w.tick()
}

// What a price was made from is sent to plans that have it, of at most ten coins, and each price once, from memory and from the
// store.
func TestInputsAreSentOnceToPlansThatHaveThem(t *testing.T) {
	w, log := inputsFixture(t)
	schemas := newMessageSchemas(t, w.document())
	log.second(w, 100)
	free, growth := w.key(limits.PlanFree), w.key("growth")
	for _, test := range []struct {
		key, query string
		status     int
		contains   string
	}{
		{free, "?channels=inputs&symbols=BTC", http.StatusPaymentRequired, query.CodePlanRequired},
		{growth, "?channels=inputs", http.StatusBadRequest, "must name 1 to 10 coins with the channel inputs"},
	} {
		_, answer := w.lineStream(test.query, map[string]string{"Authorization": "Bearer " + test.key})
		if text := body(t, answer); answer.StatusCode != test.status || !strings.Contains(text, test.contains) {
			t.Errorf("%s: got %d %s, want %d %s", test.query, answer.StatusCode, text, test.status, test.contains)
		}
		if _, answer, err := w.dial(dialing{key: test.key, query: test.query}); err == nil || answer == nil || answer.StatusCode != test.status {
			t.Errorf("a socket with %s: got %v, want %d", test.query, err, test.status)
		}
	}
	// A socket that was opened without it is refused it, and keeps what it has.
	c := w.open(dialing{key: free, query: "?channels=prices&symbols=BTC&snapshot=0"})
	read := func() string {
		t.Helper()
		text, err := c.next()
		if err != nil {
			t.Fatal(err)
		}
		if err := schemas.fault(text); err != nil {
			t.Error(err)
		}
		return text
	}
	c.send(`{"type":"subscribe","id":"x","channels":["inputs"]}`)
	for {
		text := read()
		if strings.Contains(text, `"id":"x"`) {
			if !strings.Contains(text, `"code":"PLAN_REQUIRED","message":"the plan free does not include the channel inputs"`) {
				t.Errorf("got %s, want an error of the plan", text)
			}
			break
		}
	}
	c.CloseNow()
	type message struct {
		Type, Cursor, Source string
		Error                struct{ Message string }
		Data                 []struct {
			CoinID, Timestamp string
			Reproduced        bool
			Inputs            []json.RawMessage
		}
	}
	next := func() (m message) {
		t.Helper()
		text := read()
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			t.Fatal(err)
		}
		return m
	}
	c = w.open(dialing{key: growth, query: "?channels=inputs&symbols=BTC"})
	cursor := ""
	for cursor == "" {
		cursor = next().Cursor
	}
	var got []string
	take := func(until func(message) bool) (sources []string) {
		t.Helper()
		for {
			m := next()
			if m.Source != "" {
				sources = append(sources, m.Source)
			}
			for _, e := range m.Data {
				if !e.Reproduced || len(e.Inputs) != 3 {
					t.Errorf("%s %s: reproduced %t with %d inputs, want true with 3", e.CoinID, e.Timestamp, e.Reproduced, len(e.Inputs))
				}
				got = append(got, e.CoinID+" "+e.Timestamp)
			}
			if m.Cursor != "" {
				cursor = m.Cursor
			}
			if until(m) {
				return sources
			}
		}
	}
	for i := range 3 {
		log.second(w, 101+float64(i))
		take(func(m message) bool { return len(m.Data) > 0 })
	}
	c.CloseNow()
	eleven := newSelection(64)
	for rank := range 11 {
		eleven.add(rank + 1)
	}
	if code, why := w.hub.channels[0].refuses(&limits.Plan{Details: true}, eleven); code != query.CodeValidation || !strings.Contains(why, "at most 10 coins, and 11 are chosen") {
		t.Errorf("11 coins: got %s %q", code, why)
	}
	for i := range 40 {
		log.second(w, 110+float64(i))
	}
	c = w.open(dialing{key: growth, query: "?channels=inputs&symbols=BTC&cursor=" + cursor})
	if sources := take(func(m message) bool { return m.Type == "live" }); !slices.Equal(sources, []string{"store"}) {
		t.Errorf("resumed from %v, want from the store", sources)
	}
	var want []string
	for _, rec := range log.records[2:] {
		if p := rec.GetPrice(); p.CoinId == "bitcoin" {
			want = append(want, fmt.Sprint(p.CoinId, " ", query.FormatTime(p.Time)))
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %d prices, want %d: %v, want %v", len(got), len(want), got, want)
	}
}
