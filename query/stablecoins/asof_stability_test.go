package stablecoins_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/query/querytest"
	"github.com/marketlog/marketlog/query/stablecoins"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/history"
	"github.com/marketlog/marketlog/stream/history/past"
	"github.com/marketlog/marketlog/stream/history/rows"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// asksOfStability are the requests for stability that answer the past.
var asksOfStability = []string{"/api/v1/stablecoins/USDT/peg-stability?window=2h&", "/api/v1/stablecoins/usd-coin/peg-stability?window=7d&", "/api/v1/stablecoins/tether/peg-stability?window=90d&"}

// stabilityFixture is a pastFixture whose processes read candles, which are closed at a pace of their own and back-filled.
type stabilityFixture struct {
	*pastFixture
	candles *views.Candles
	fold    *past.Fold
	closed  time.Time
}

func (w *stabilityFixture) process() *views.ServedSteps {
	steps, now := w.pastFixture.process(), func() time.Time { return w.Now }
	w.candles = views.NewCandles(w.Prices, w.History())
	w.candles.RememberBy(now, steps, w.History())
	w.unit = stablecoins.New(w.Prices, w.Catalog, w.History(), stablecoins.Served{Sources: views.NewPastCurrencies(w.Catalog, w.log, w.History()),
		Rows: views.NewPastRows(w.Catalog, w.log, w.History()), Prices: w.History(), Candles: w.candles})
	w.unit.Statistics().RememberBy(now, steps)
	w.Serve(w.unit.Endpoints())
	return steps
}

// close closes the minutes that ended, of most coins; before is called when they are in the tables, and nobody knows that they are closed.
func (w *stabilityFixture) close(before func()) {
	var candles []*eventsv1.Candle
	for ; w.closed.Add(time.Minute + 5*time.Second).Before(w.Now); w.closed = w.closed.Add(time.Minute) {
		for _, coin := range []string{"tether", "usd-coin"} {
			if w.random.IntN(6) > 0 {
				price := w.near()
				candles = append(candles, &eventsv1.Candle{CoinId: coin, Start: w.closed.UnixNano(), Open: price, High: price, Low: price, Close: price, Volume: "1"})
			}
		}
	}
	if len(candles) == 0 {
		return
	}
	w.AddCandles(candles...)
	before()
	w.CloseCandles(w.closed)
}

// backfill has a venue report candles of before, perhaps others than before, which are folded.
func (w *stabilityFixture) backfill() {
	length := []time.Duration{time.Minute, time.Hour, 24 * time.Hour}[w.random.IntN(3)]
	var b rows.Batch
	for range 1 + w.random.IntN(9) {
		base, price := []string{"USDT", "USDC"}[w.random.IntN(2)], fmt.Sprint(w.near())
		b.Add(rows.Place{Topic: schemas.TopicBackfillRaw, Offset: w.Offset()}, &eventsv1.BackfillRecord{Producer: "kraken", Body: &eventsv1.BackfillRecord_Candle{
			Candle: &eventsv1.BackfillCandle{Venue: "kraken", Symbol: base + "/USD", Base: base, Quote: "USD", Interval: uint32(length / time.Second),
				Start: w.Now.Truncate(length).Add(-time.Duration(1+w.random.IntN(25)) * length).UnixNano(), Open: price, High: price, Low: price, Close: price, Volume: "7"}}})
	}
	w.Must(b.Insert(w.T.Context(), w.Store, ""))
	_, err := w.fold.Pass(w.T.Context())
	w.Must(err)
}

// The stability of a peg as of an instant is what was answered then, byte for byte: its history and its episodes too, though minutes had closed that nobody had
// looked at, and candles are back-filled since.
func TestStabilityOfPegsAsItWasServed(t *testing.T) {
	w := &stabilityFixture{pastFixture: &pastFixture{Fixture: newFixture(t), random: streamtest.Rand(t)}}
	w.log, w.client = w.Log()
	w.Now = time.Date(2026, 11, 20, 9, 57, 1, 0, time.UTC)
	began := w.Now
	w.fold, w.closed = past.NewFold(w.Store), w.Now.Truncate(time.Minute).Add(-30*time.Minute)
	steps := w.process()
	var answers []querytest.Answered
	ask := func() {
		answers = append(answers, w.Ask(w.Now, false, asksOfStability))
		w.Now = w.Now.Add(time.Millisecond)
	}
	state := func(rec *eventsv1.ReferenceRecord) {
		w.Must(w.Catalog.ApplyReference(w.write(schemas.TopicReferenceRaw, w.Now, rec)))
	}
	quiet := func() {}
	for kind := range 9 {
		state(w.stated(kind))
	}
	state(&eventsv1.ReferenceRecord{Producer: "sources", Epoch: 1, Body: &eventsv1.ReferenceRecord_Clock{Clock: &eventsv1.Clock{Time: w.Now.UnixNano()}}})
	w.Catalog.Settle()
	w.close(quiet)
	for _, coin := range []string{"tether", "usd-coin", "euro-coin"} {
		w.price(coin, quiet)
	}
	w.minute(w.Now.Truncate(time.Minute), quiet)
	w.Catalog.Settle()
	w.Must(w.candles.Look(t.Context()))
	steps.Begin(func() time.Time { return w.Now })
	ask()
	for range 70 {
		minute := w.Now.Truncate(time.Minute)
		w.Now = w.Now.Add(time.Duration(1000+w.random.IntN(20_000)) * time.Millisecond)
		if next := w.Now.Truncate(time.Minute); next.After(minute) {
			w.minute(next, quiet)
		}
		switch w.random.IntN(8) {
		case 0, 1:
			w.price([]string{"tether", "usd-coin"}[w.random.IntN(2)], quiet)
		case 2:
			w.close(ask)
		case 3:
			w.close(quiet)
		case 4:
			w.Must(w.unit.Statistics().Refresh(t.Context()))
		case 5:
			w.backfill()
		case 6:
			w.Must(w.candles.Look(t.Context()))
		default:
			ask()
		}
	}
	w.close(quiet)
	w.backfill()
	w.Now = w.Now.Add(5 * time.Minute)
	w.RecordServed(steps, "first")
	w.Must(w.Store.Record(t.Context(), []history.SinkProgress{{Sink: schemas.TopicServed, Progress: history.Progress{Next: w.Offset(), LogTime: w.Now.UnixNano()}}}))
	check := func(process string) {
		t.Helper()
		for _, was := range answers {
			for i, body := range w.Ask(was.At, true, asksOfStability).Bodies {
				if body != was.Bodies[i] || !strings.HasPrefix(body, "200 ") {
					t.Fatalf("%s: %s as of %s:\n%s\nwhat was answered then:\n%s", process, asksOfStability[i], was.At, body, was.Bodies[i])
				}
			}
		}
	}
	check("the process that answered")
	different := map[string]bool{}
	for _, was := range answers {
		different[was.Bodies[0]] = true
	}
	if len(different) < len(answers)/3 || !strings.Contains(answers[0].Bodies[0], `"episodes":[{`) || !strings.Contains(answers[0].Bodies[0], `"history":[{`) {
		t.Errorf("%d of %d answers are different, the first is %s", len(different), len(answers), answers[0].Bodies[0])
	}
	w.process()
	check("another process")
	at := answers[len(answers)-1].At.Format(time.RFC3339Nano)
	for path, want := range map[string]string{
		"/api/v1/stablecoins/USDT/peg-stability?asOf=" + began.Add(-time.Minute).Format(time.RFC3339): "410 AGED_OUT availableFrom",
		"/api/v1/stablecoins/EURC/peg-stability?asOf=" + at:                                           "400 NOT_SUPPORTED symbol EUR /api/v1/stablecoins/index",
		"/api/v1/stablecoins/BTC/peg-stability?asOf=" + at:                                            "404 bitcoin",
	} {
		got := w.Get(path)
		for _, word := range strings.Fields(want) {
			if !strings.Contains(got, word) {
				t.Errorf("%s: got %s; want %s", path, got, want)
			}
		}
	}
}
