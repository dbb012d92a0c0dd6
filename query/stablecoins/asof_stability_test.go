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
var asksOfStability = []string{"/api/v1/stablecoins/USDT/peg-stability?window=2h&", "/api/v1/stablecoins/usd-coin/peg-stability?window=7d&", "/api/v1/stablecoins/tether/peg-stability?window=90d&",
	"/api/v1/stablecoins/EURC/peg-stability?window=2h&", "/api/v1/stablecoins/euro-coin/peg-stability?window=7d&", "/api/v1/stablecoins/CNHT/peg-stability?window=2h&"}

// worth is what the coins of the test are about, in USD: the euro is fixed by a central bank, the offshore yuan by none.
var worth = map[string]float64{"tether": 1, "usd-coin": 1, "euro-coin": 1.2, "cnh-tether": 0.14}

// stabilityFixture is a pastFixture whose processes read candles, which are closed at a pace of their own and back-filled, and rates of currencies, which come to the
// tables at another.
type stabilityFixture struct {
	*pastFixture
	// waiting are records that the tables do not have yet.
	waiting []views.TailRecord
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

// state has a source state something, which the catalog knows at once.
func (w *stabilityFixture) state(rec *eventsv1.ReferenceRecord) {
	written := w.write(schemas.TopicReferenceRaw, w.Now, rec)
	w.Must(w.Catalog.ApplyReference(written))
	w.waiting = append(w.waiting, written)
}

// rate has a source state, or correct, what a currency cost on one of the last days.
func (w *stabilityFixture) rate(daysAgo int) {
	f := &eventsv1.Fixing{Source: "ecb", Base: "EUR", Quote: "USD", Rate: fmt.Sprintf("%.4f", worth["euro-coin"]*w.near())}
	if w.random.IntN(2) == 0 {
		f = &eventsv1.Fixing{Source: []string{"frankfurter", "er-api"}[w.random.IntN(2)], Base: "USD", Quote: "CNH", Rate: fmt.Sprintf("%.4f", w.near()/worth["cnh-tether"])}
	}
	f.Date, f.IngestTime = w.Now.AddDate(0, 0, -daysAgo).Format(time.DateOnly), w.Now.UnixNano()
	w.state(&eventsv1.ReferenceRecord{Producer: "sources", Epoch: 1, Body: &eventsv1.ReferenceRecord_Fixing{Fixing: f}})
}

// sink puts what waits into the tables; it is known that they have it unless the sink is killed before.
func (w *stabilityFixture) sink(killed bool) {
	if len(w.waiting) == 0 {
		return
	}
	var b rows.Batch
	for _, r := range w.waiting {
		b.Add(rows.Place{Topic: schemas.TopicReferenceRaw, Offset: r.Offset}, r.Marked)
	}
	w.Must(b.Insert(w.T.Context(), w.Store, ""))
	if !killed {
		next := w.waiting[len(w.waiting)-1].Offset + 1
		w.Must(w.Store.Record(w.T.Context(), []history.SinkProgress{{Sink: schemas.TopicReferenceRaw, Progress: history.Progress{Next: next}}}))
		w.waiting = nil
	}
}

// close closes the minutes that ended, of most coins; before is called when they are in the tables, and nobody knows that they are closed.
func (w *stabilityFixture) close(before func()) {
	var candles []*eventsv1.Candle
	for ; w.closed.Add(time.Minute + 5*time.Second).Before(w.Now); w.closed = w.closed.Add(time.Minute) {
		for _, coin := range []string{"tether", "usd-coin", "euro-coin", "cnh-tether"} {
			if w.random.IntN(6) > 0 {
				price := worth[coin] * w.near()
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
		coin := []string{"tether USDT", "usd-coin USDC", "euro-coin EURC", "cnh-tether CNHT"}[w.random.IntN(4)]
		id, base, _ := strings.Cut(coin, " ")
		price := fmt.Sprint(worth[id] * w.near())
		b.Add(rows.Place{Topic: schemas.TopicBackfillRaw, Offset: w.Offset()}, &eventsv1.BackfillRecord{Producer: "kraken", Body: &eventsv1.BackfillRecord_Candle{
			Candle: &eventsv1.BackfillCandle{Venue: "kraken", Symbol: base + "/USD", Base: base, Quote: "USD", Interval: uint32(length / time.Second),
				Start: w.Now.Truncate(length).Add(-time.Duration(1+w.random.IntN(25)) * length).UnixNano(), Open: price, High: price, Low: price, Close: price, Volume: "7"}}})
	}
	w.Must(b.Insert(w.T.Context(), w.Store, ""))
	_, err := w.fold.Pass(w.T.Context())
	w.Must(err)
}

// The stability of a peg as of an instant is what was answered then, byte for byte: its history and its episodes too, though minutes had closed that nobody had
// looked at, candles are back-filled since, and rates of currencies are stated and corrected.
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
	quiet := func() {}
	for kind := range 9 {
		w.state(w.stated(kind))
	}
	for range 9 {
		w.rate(0)
		w.rate(w.random.IntN(9))
	}
	w.state(&eventsv1.ReferenceRecord{Producer: "sources", Epoch: 1, Body: &eventsv1.ReferenceRecord_Clock{Clock: &eventsv1.Clock{Time: w.Now.UnixNano()}}})
	w.Catalog.Settle()
	for _, coin := range []string{"tether", "usd-coin", "euro-coin", "cnh-tether"} {
		w.price(coin, quiet)
	}
	w.minute(w.Now.Truncate(time.Minute), quiet)
	w.Catalog.Settle()
	w.Must(w.candles.Look(t.Context()))
	steps.Begin(func() time.Time { return w.Now })
	w.Must(w.unit.Statistics().Refresh(t.Context()))
	unrated := w.Now // no rate was in the tables then
	w.Now = w.Now.Add(time.Second)
	w.sink(false)
	w.close(quiet)
	w.Must(w.candles.Look(t.Context()))
	ask()
	for range 90 {
		minute := w.Now.Truncate(time.Minute)
		w.Now = w.Now.Add(time.Duration(1000+w.random.IntN(20_000)) * time.Millisecond)
		if next := w.Now.Truncate(time.Minute); next.After(minute) {
			w.minute(next, quiet)
		}
		switch w.random.IntN(11) {
		case 0, 1:
			w.price([]string{"tether", "usd-coin", "euro-coin", "cnh-tether"}[w.random.IntN(4)], quiet)
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
		case 7:
			w.rate(w.random.IntN(3))
			w.Catalog.Settle()
		case 8:
			w.sink(w.random.IntN(3) == 0)
		default:
			ask()
		}
	}
	w.close(quiet)
	w.backfill()
	for range 9 {
		w.rate(w.random.IntN(3))
	}
	w.sink(false)
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
	for i, path := range asksOfStability {
		different := map[string]bool{}
		for _, was := range answers {
			different[was.Bodies[i]] = true
		}
		of := answers[len(answers)-1].Bodies[i]
		if len(different) < len(answers)/3 || !strings.Contains(of, `"episodes":[{`) || !strings.Contains(path, "90d") && !strings.Contains(of, `"history":[{`) {
			t.Errorf("%s: %d of %d answers are different, the last is %s", path, len(different), len(answers), of)
		}
	}
	w.process()
	check("another process")
	at := answers[len(answers)-1].At.Format(time.RFC3339Nano)
	for path, want := range map[string]string{
		"/api/v1/stablecoins/USDT/peg-stability?asOf=" + began.Add(-time.Minute).Format(time.RFC3339): "410 AGED_OUT availableFrom",
		"/api/v1/stablecoins/EURC/peg-stability?asOf=" + unrated.Format(time.RFC3339Nano):             "410 AGED_OUT daily rates availableFrom",
		"/api/v1/stablecoins/USDT/peg-stability?asOf=" + unrated.Format(time.RFC3339Nano):             "200",
		"/api/v1/stablecoins/BTC/peg-stability?asOf=" + at:                                            "404 bitcoin",
	} {
		got := w.Get(path)
		for _, word := range strings.Fields(want) {
			if !strings.Contains(got, word) {
				t.Errorf("%s: got %s; want %s", path, got, want)
			}
		}
	}
	// What is refused names an instant as of which it is answered.
	_, from, _ := strings.Cut(w.Get("/api/v1/stablecoins/EURC/peg-stability?asOf="+unrated.Format(time.RFC3339Nano)), `"availableFrom":"`)
	from, _, _ = strings.Cut(from, `"`)
	if got := w.Get("/api/v1/stablecoins/EURC/peg-stability?asOf=" + from); !strings.HasPrefix(got, "200 ") {
		t.Errorf("as of %s, from which on it is available: %.300s", from, got)
	}
}
