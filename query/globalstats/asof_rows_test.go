package globalstats_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/deploy/embedded/enginetest"
	"github.com/marketlog/marketlog/query/explain"
	"github.com/marketlog/marketlog/query/globalstats"
	"github.com/marketlog/marketlog/query/querytest"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/history"
	"github.com/marketlog/marketlog/stream/history/rows"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// withRows are the operations in which there is more than the summary: rows of coins, and what sources published of fear and greed.
var withRows = []string{"/api/v1/global-stats/movers?", "/api/v1/global-stats/movers/1-250?min_volume=0&", "/api/v1/global-stats/movers/all?min_volume=0&limit=2&",
	"/api/v1/global-stats/fear-greed?", "/api/v1/global-stats/summary?", "/api/v1/global-stats/defi?"}

// Movers, fear and greed, and the overview are made of the summary of a minute, of its rows, and of days that a source publishes, and corrects, at
// any time; the share of coins with categories in the overview of DeFi is made of what sources state of coins. As of an instant each is the one of that instant, byte for byte, of the process that answered and of another that knows what was recorded.
func TestMoversAndFearGreedAsTheyWereServed(t *testing.T) {
	random := streamtest.Rand(t)
	w := newFixture(t)
	w.Open(enginetest.Migrated(t))
	var client *kgo.Client
	w.log, client = w.Log()
	steps := views.NewPriceCache(querytest.Coins("bitcoin,BTC,Bitcoin,1,coin,,")).Steps()
	clock := func() time.Time { return w.Now }
	w.Catalog.RememberBy(clock, steps)
	w.newest.RememberBy(clock, steps)
	w.serveAll()
	begin := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	w.Now = begin
	var b rows.Batch
	write := func(topic string, at time.Time, rec interface{ MarshalVT() ([]byte, error) }) views.TailRecord {
		value, err := rec.MarshalVT()
		w.Must(err)
		r := &kgo.Record{Topic: topic, Value: value, Timestamp: at}
		if topic == schemas.TopicReferenceRaw {
			r.Key = []byte("alternative-me")
		}
		w.Must(client.ProduceSync(t.Context(), r).FirstErr())
		read := views.TailRecord{Offset: r.Offset, Value: value}
		if marked, is := rec.(eventsv1.Marked); is {
			read.Marked = marked
			b.Add(rows.Place{Topic: topic, Offset: r.Offset}, marked)
		}
		return read
	}
	state := func(rec *eventsv1.ReferenceRecord) {
		rec.Producer, rec.Epoch = "alternative", 1
		w.Must(w.Catalog.ApplyReference(write(schemas.TopicReferenceRaw, w.Now, rec)))
	}
	state(&eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_Notice{Notice: &eventsv1.SourceNotice{Source: "alternative-me", Name: "alternative.me", Attribution: "by them"}}})
	publish := func() {
		day := begin.Truncate(24*time.Hour).AddDate(0, 0, -random.IntN(3))
		state(&eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_FearGreed{FearGreed: &eventsv1.FearGreed{Source: "alternative-me", Value: random.Uint32N(101),
			EventTime: day.UnixNano(), IngestTime: w.Now.UnixNano()}}})
		coin := &eventsv1.Coin{Source: "coingecko", SourceId: []string{"bitcoin", "ethereum"}[random.IntN(2)], Part: "list", Symbol: "C", Name: "A coin",
			ImageUrl: fmt.Sprintf("https://example.com/%d.png", random.IntN(3)), IngestTime: w.Now.UnixNano()}
		if random.IntN(2) == 0 {
			coin.Categories = []string{"Layer 1"}
		}
		state(&eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_Coin{Coin: coin}})
		state(&eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_Clock{Clock: &eventsv1.Clock{Time: w.Now.UnixNano()}}})
		w.Catalog.Snapshot() // someone reads it
	}
	publish()
	for index, rec := range []*eventsv1.DefiRecord{{Body: &eventsv1.DefiRecord_Summary{Summary: randomDefi(random, begin)}}, {Body: &eventsv1.DefiRecord_Pulse{Pulse: &eventsv1.Pulse{Now: begin.UnixNano(), Watermark: begin.UnixNano()}}}} {
		rec.Mark = &eventsv1.Mark{LogicVersion: 1, Offset: begin.UnixNano(), Index: uint32(index)}
		value, err := rec.MarshalVT()
		w.Must(err)
		w.Must(client.ProduceSync(t.Context(), &kgo.Record{Topic: schemas.TopicDefi, Value: value, Timestamp: begin}).FirstErr())
		w.Must(w.newest.Apply(views.TailRecord{Offset: w.Offset(), Marked: rec}))
	}

	var answers []querytest.Answered
	ask := func() {
		w.Now = w.Now.Add(time.Duration(1+random.IntN(9000)) * time.Millisecond)
		answers = append(answers, w.Ask(w.Now, false, withRows))
	}
	known := func() *float64 {
		n := 1e6 * (random.Float64() - 0.3)
		return &n
	}
	for i := range 15 {
		end := begin.Add(time.Duration(i) * time.Minute)
		if i == 1 {
			steps.Begin(clock)
		}
		w.Now = end.Add(time.Duration(1+random.IntN(5000)) * time.Millisecond)
		var read []views.TailRecord
		for index, rec := range []*eventsv1.MarketRecord{
			{Body: &eventsv1.MarketRecord_Market{Market: &eventsv1.Market{CoinId: "bitcoin", Symbol: "BTC", Name: "Bitcoin", Time: end.UnixNano(), Price: 1 + random.Float64(),
				PriceSource: schemas.PriceSourceMedian, Rank: 1, MarketCap: known(), Volume24H: known(), Change24H: known()}}},
			{Body: &eventsv1.MarketRecord_Market{Market: &eventsv1.Market{CoinId: "ethereum", Symbol: "ETH", Name: "Ethereum", Time: end.UnixNano(), Price: 1 + random.Float64(),
				PriceSource: "coingecko", Rank: 2, MarketCap: known(), Volume24H: known(), Change24H: known()}}},
			{Body: &eventsv1.MarketRecord_Summary{Summary: randomSummary(random, end)}},
			{Body: &eventsv1.MarketRecord_Pulse{Pulse: &eventsv1.Pulse{Now: end.UnixNano(), Watermark: end.UnixNano()}}},
		} {
			rec.Mark = &eventsv1.Mark{LogicVersion: 1, Offset: end.UnixNano(), Index: uint32(index)}
			if s := rec.GetSummary(); s != nil && random.IntN(2) == 0 {
				s.FearGreed = &eventsv1.FearGreedComputed{Value: random.Uint32N(101)}
			}
			read = append(read, write(schemas.TopicMarkets, end, rec))
		}
		w.Must(b.Insert(t.Context(), w.Store, ""))
		b = rows.Batch{}
		if i > 0 {
			ask() // it is written, and not served yet
		}
		w.Now = w.Now.Add(time.Millisecond)
		for _, rec := range read {
			w.Must(w.Catalog.ApplyMarkets(rec))
		}
		if i > 0 {
			ask()
			w.Now = w.Now.Add(time.Millisecond)
			if random.IntN(2) == 0 {
				publish()
				ask()
			}
		}
	}
	check := func(who string) {
		t.Helper()
		for _, was := range answers {
			for i, body := range w.Ask(was.At, true, withRows).Bodies {
				if body != was.Bodies[i] || !strings.HasPrefix(body, "200 ") {
					t.Fatalf("%s: %s as of %s:\n%s\nwhat was answered then:\n%s", who, withRows[i], was.At.Format(time.RFC3339Nano), body, was.Bodies[i])
				}
			}
		}
	}
	w.Now = begin.Add(2 * time.Hour)
	w.RecordServed(steps, "first")
	w.Must(w.Store.Record(t.Context(), []history.SinkProgress{{Sink: schemas.TopicServed, Progress: history.Progress{Next: w.Offset(), LogTime: w.Now.UnixNano()}}}))
	check("the process that answered")
	w.explainsFearAndGreed(answers)

	w.Catalog, w.newest = views.NewCatalog(querytest.Coins("bitcoin,BTC,Bitcoin,1,coin,,", "ethereum,ETH,Ethereum,2,coin,,")), views.NewDefiStore()
	w.serveAll()
	before, err := w.History().MinutesServed(t.Context(), views.MinutesServedSince(w.Now))
	w.Must(err)
	w.Catalog.Recall(before)
	check("another process")
}

// serveAll answers of the whole market and of DeFi.
func (w *fixture) serveAll() {
	w.Serve(append(globalstats.New(w.Catalog, w.served(w.History()), w.History()).Endpoints(),
		globalstats.NewDefi(w.Catalog, w.newest, views.NewPastDefi(w.newest, w.log, keptHistory{w.History()}), w.served(w.History()).Coins, w.History()).Endpoints()...))
}

// explainsFearAndGreed asks for explanations of the index of fear and greed, and of the days of its history, as of when they were answered.
func (w *fixture) explainsFearAndGreed(answers []querytest.Answered) {
	w.T.Helper()
	currencies := views.NewPastCurrencies(w.Catalog, w.log, w.History())
	prices := views.NewPriceCache(querytest.Coins("bitcoin,BTC,Bitcoin,1,coin,,"))
	w.Serve(explain.New(explain.Deps{Prices: prices, Catalog: w.Catalog, History: w.History(), Log: w.log, Currencies: currencies}).Endpoints())
	at := slices.Index(withRows, "/api/v1/global-stats/fear-greed?")
	for i, was := range answers {
		var answered globalstats.FearGreedBody
		w.Must(json.Unmarshal([]byte(strings.TrimPrefix(was.Bodies[at], "200 ")), &answered))
		want := map[string]float64{"fear-greed": float64(answered.Data.Value)}
		if i%5 == 0 {
			for _, day := range answered.Data.History {
				want["fear-greed/days/"+day.Timestamp] = day.Value
			}
		}
		for number, value := range want {
			text := w.Get("/api/v1/explain/" + number + "?depth=1&asOf=" + was.At.Format(time.RFC3339Nano))
			var explained struct{ Data explain.Node }
			w.Must(json.Unmarshal([]byte(text[len("200 "):]), &explained))
			if n := explained.Data; n.Value == nil || *n.Value != value || n.Reproduced != nil && !*n.Reproduced && answered.Data.Source != "computed" {
				w.T.Fatalf("%s as of %s is %.600s, want %v", number, was.At.Format(time.RFC3339Nano), text, value)
			}
		}
	}
}
