package charts_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/charts"
	"github.com/marketlog/marketlog/query/querytest"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/history"
	"github.com/marketlog/marketlog/stream/history/past"
	"github.com/marketlog/marketlog/stream/history/rows"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// saidChart are the candles that were answered at an instant.
type saidChart struct {
	coin      schemas.Coin
	step      time.Duration
	intervals int
	at        time.Time
	candles   []schemas.Candle
}

// pastFixture draws prices, minutes that close and back-fills, and remembers what was answered between them.
type pastFixture struct {
	*fixture
	*rand.Rand
	candles *views.Candles
	fold    *past.Fold
	closed  time.Time
	said    []saidChart
}

// However prices, minutes that close and back-fills follow each other: as of each instant the candles are those that were answered then, by the process
// that answered and by another that was not there.
func TestChartsAsOfAnInstantAreThoseThatWereAnswered(t *testing.T) {
	w := &pastFixture{fixture: newFixture(t), Rand: streamtest.Rand(t)}
	w.Now = time.Date(2026, 11, 20, 9, 57, 0, 0, time.UTC)
	clock := func() time.Time { return w.Now }
	w.Prices.RememberBy(clock)
	w.candles, w.fold, w.closed = views.NewCandles(w.Prices, w.History()), past.NewFold(w.Store), w.Now
	w.candles.RememberBy(clock, w.Prices.Steps(), w.History())
	w.Prices.Steps().Begin(clock)
	w.Must(w.candles.Look(t.Context()))
	for range 160 {
		w.Now = w.Now.Add(time.Duration(w.IntN(12_000)) * time.Millisecond)
		w.step()
	}
	w.recorded()
	other := views.NewPriceCache(w.Prices.Coins())
	w.Must(other.Apply(stream.TailRecord{Offset: w.Offset(), Marked: &eventsv1.PriceRecord{Body: &eventsv1.PriceRecord_Pulse{Pulse: &eventsv1.Pulse{Now: w.Now.UnixNano()}}}}))
	later := views.NewCandles(other, w.History())
	later.RememberBy(clock, other.Steps(), w.History())
	many := 0
	for _, s := range w.said {
		for who, candles := range map[string]*views.Candles{"the same process": w.candles, "another": later} {
			got, err := candles.AsOf(t.Context(), s.coin, s.step, s.intervals, s.at)
			w.Must(err)
			if diff := cmp.Diff(s.candles, got); diff != "" {
				t.Fatalf("%s of %s as of %s by %s: answered(-), as of then(+):\n%s", s.step, s.coin.ID, s.at.Format(time.RFC3339Nano), who, diff)
			}
		}
		many += len(s.candles)
	}
	if many < 100 { // of seeds that draw few back-fills there are some 300
		t.Errorf("got %d candles in %d answers only", many, len(w.said))
	}
}

func (w *pastFixture) step() {
	coins := w.Prices.Coins().All()
	switch n := w.IntN(10); {
	case n < 5:
		w.Price(coins[w.IntN(len(coins))].ID, w.Now.Truncate(time.Second), 100+float64(w.IntN(50)))
		w.Pulse()
	case n < 6:
		w.close(coins)
	case n < 7:
		w.backfill()
	default:
		w.ask(coins[w.IntN(len(coins))])
	}
}

// recorded keeps what was served until now.
func (w *pastFixture) recorded() {
	w.RecordServed(w.Prices.Steps(), "one")
	w.Must(w.Store.Record(w.T.Context(), []history.SinkProgress{{Sink: schemas.TopicServed, Progress: history.Progress{Next: w.Offset(), LogTime: w.Now.UnixNano()}}}))
}

// close closes the minutes that ended, of most coins.
func (w *pastFixture) close(coins []schemas.Coin) {
	var candles []*eventsv1.Candle
	for ; w.closed.Add(time.Minute + 5*time.Second).Before(w.Now); w.closed = w.closed.Add(time.Minute) {
		for _, coin := range coins {
			if w.IntN(6) > 0 {
				price := 100 + float64(w.IntN(50))
				candles = append(candles, &eventsv1.Candle{CoinId: coin.ID, Start: w.closed.UnixNano(), Open: price, High: price + 3, Low: price - 2, Close: price + 1,
					Volume: "0.5", VolumeUsd: price / 2, Trades: 2})
			}
		}
	}
	w.AddCandles(candles...)
	w.Must(w.Store.Record(w.T.Context(), allClosed(w.Fixture, w.closed)))
}

// backfill has a venue state some candles of before, perhaps others than before, which are folded.
func (w *pastFixture) backfill() {
	length := []time.Duration{time.Minute, time.Hour, 24 * time.Hour}[w.IntN(3)]
	base := []string{"BTC", "ETH", "SOL"}[w.IntN(3)]
	var b rows.Batch
	for range 1 + w.IntN(20) {
		price := 90 + w.IntN(50)
		b.Add(rows.Place{Topic: schemas.TopicBackfillRaw, Offset: w.Offset()}, &eventsv1.BackfillRecord{Producer: "kraken", Body: &eventsv1.BackfillRecord_Candle{
			Candle: &eventsv1.BackfillCandle{Venue: "kraken", Symbol: base + "/USD", Base: base, Quote: "USD", Interval: uint32(length / time.Second),
				Start: w.Now.Truncate(length).Add(-time.Duration(1+w.IntN(25)) * length).UnixNano(),
				Open:  fmt.Sprint(price), High: fmt.Sprint(price + 5), Low: fmt.Sprint(price - 5), Close: fmt.Sprint(price + 2), Volume: "7"}}})
	}
	w.Must(b.Insert(w.T.Context(), w.Store, ""))
	_, err := w.fold.Pass(w.T.Context())
	w.Must(err)
}

// ask remembers what is answered now, of what has just been looked at.
func (w *pastFixture) ask(coin schemas.Coin) {
	w.Must(w.candles.Look(w.T.Context()))
	for _, frame := range []struct {
		step      time.Duration
		intervals int
	}{{5 * time.Minute, 12}, {time.Hour, 24}, {24 * time.Hour, 30}} {
		// Nothing is held by candles of their own.
		candles, err := views.NewCandles(w.Prices, w.History()).Read(w.T.Context(), coin, frame.step, frame.intervals, w.Now)
		w.Must(err)
		w.said = append(w.said, saidChart{coin, frame.step, frame.intervals, w.Now, candles})
	}
}

// endsOf ask for the ends of charts.
var endsOf = []string{"/api/v1/charts/bitcoin/current?", "/api/v1/charts/ETH/current?", "/api/v1/charts/solana/current?"}

// However late prices come, and for how long none does: as of each instant the end of a chart is the one that was answered then, byte for byte, by the
// process that answered and by another. It is refused where a reference source may have reported it.
func TestEndsOfChartsAsTheyWereServed(t *testing.T) {
	w := &pastFixture{fixture: newFixture(t), Rand: streamtest.Rand(t)}
	w.Now = time.Date(2026, 11, 20, 9, 57, 0, 0, time.UTC)
	clock := func() time.Time { return w.Now }
	w.Prices.RememberBy(clock)
	w.Prices.Steps().Begin(clock)
	w.Price("bitcoin", w.Now, 100)
	var answers []querytest.Answered
	for range 80 {
		w.Now = w.Now.Add(time.Duration(20+w.IntN(8000)) * time.Millisecond) // what comes within less is recorded as one
		if w.IntN(25) == 0 {                                                 // nobody publishes for a while
			w.Now = w.Now.Add(time.Duration(w.IntN(15)) * time.Minute)
			answers = append(answers, w.Ask(w.Now, false, endsOf))
			w.Now = w.Now.Add(time.Millisecond)
		}
		w.late()
		w.Now = w.Now.Add(time.Duration(w.IntN(100)) * time.Millisecond)
		answers = append(answers, w.Ask(w.Now, false, endsOf))
	}
	w.Now = w.Now.Add(time.Hour)
	w.Pulse()
	w.recorded()
	w.sameEnds("the process that answered", answers)
	other := views.NewPriceCache(w.Prices.Coins())
	w.Must(other.Apply(stream.TailRecord{Offset: w.Offset(), Marked: &eventsv1.PriceRecord{Body: &eventsv1.PriceRecord_Pulse{Pulse: &eventsv1.Pulse{Now: w.Now.UnixNano()}}}}))
	w.Serve(charts.New(other, w.Catalog, views.NewCandles(other, w.History()), w.History(), w.Yields, nil).Endpoints())
	w.sameEnds("another process", answers)
	if got := w.Get("/api/v1/charts/bitcoin/current?asOf=2026-11-01T10:00:00Z"); !strings.HasPrefix(got, "410 ") || !strings.Contains(got, "availableFrom") {
		t.Errorf("before all that is kept: got %s; want 410 with availableFrom", got)
	}
}

// late publishes a price of a coin, or why there is none, some time after its second.
func (w *pastFixture) late() {
	coins := w.Prices.Coins().All()
	coin := coins[w.IntN(len(coins))]
	price := &eventsv1.Price{CoinId: coin.ID, Time: w.Now.Add(-time.Duration(w.IntN(1500)) * time.Millisecond).Truncate(time.Second).UnixNano(),
		Source: []string{"kraken", "okx"}[w.IntN(2)], Published: w.Now.UnixNano()}
	if e := w.Prices.Entry(coin); e != nil && e.Latest.Time >= price.Time {
		return // the fold has ended this second
	}
	if w.IntN(4) == 0 {
		price.Reason = schemas.ReasonNoFreshInputs
	} else {
		price.Price = 100 + float64(w.IntN(50))
	}
	w.Publish(price)
}

// sameEnds compares the ends of charts with those that were answered.
func (w *pastFixture) sameEnds(who string, answers []querytest.Answered) {
	w.T.Helper()
	same, refused := 0, 0
	for _, was := range answers {
		for i, got := range w.Ask(was.At, true, endsOf).Bodies {
			var body charts.CurrentBody
			w.Must(json.Unmarshal([]byte(strings.TrimPrefix(was.Bodies[i], "200 ")), &body))
			priced, err := time.Parse(time.RFC3339, body.Data.Timestamp)
			switch {
			case err != nil || was.At.Sub(priced) > schemas.OwnPriceFor:
				if refused++; !strings.HasPrefix(got, "400 ") || !strings.Contains(got, query.CodeNotSupported) {
					w.T.Fatalf("%s: %s as of %s: %s; want a refusal, what was answered then:\n%s", who, endsOf[i], was.At.Format(time.RFC3339Nano), got, was.Bodies[i])
				}
			case got != was.Bodies[i]:
				w.T.Fatalf("%s: %s as of %s:\n%s\nwhat was answered then:\n%s", who, endsOf[i], was.At.Format(time.RFC3339Nano), got, was.Bodies[i])
			default:
				same++
			}
		}
	}
	if same < len(answers) {
		w.T.Errorf("%s: only %d answers are the same, %d are refused", who, same, refused)
	}
}

// What is known now of the time up to an instant has what was back-filled since, and nothing of after it; an answer as of then has neither.
func TestLatestKnowledgeOfThePast(t *testing.T) {
	w := &pastFixture{fixture: newFixture(t), Rand: streamtest.Rand(t)}
	w.Now = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	clock := func() time.Time { return w.Now }
	w.Prices.RememberBy(clock)
	w.candles, w.fold = views.NewCandles(w.Prices, w.History()), past.NewFold(w.Store)
	w.candles.RememberBy(clock, w.Prices.Steps(), w.History())
	w.Prices.Steps().Begin(clock)
	bitcoin, _ := w.Prices.Coins().ByID("bitcoin")
	w.Candles("bitcoin", w.Now.Add(-30*time.Minute), 30, "1m", 100, 1)
	w.closed = w.Now.Add(-30 * time.Minute)
	w.Must(w.Store.Record(t.Context(), allClosed(w.Fixture, w.Now)))
	w.Must(w.candles.Look(t.Context()))
	w.recorded()
	at := w.Now.Add(-10 * time.Minute)
	said, err := w.candles.AsOf(t.Context(), bitcoin, 5*time.Minute, 6, w.Now)
	w.Must(err)

	w.Now = w.Now.Add(time.Minute)
	w.Run("past 60 kraken BTC USD 2026-11-20T09:05:00Z 20 50 51 49 50 1")
	_, err = w.fold.Pass(t.Context())
	w.Must(err)
	w.Must(w.candles.Look(t.Context()))
	w.recorded()
	latest, err := w.candles.Until(t.Context(), bitcoin, 5*time.Minute, 12, at)
	w.Must(err)
	if n := len(latest); n == 0 || !latest[n-1].Start.Equal(at.Add(-5*time.Minute)) || !latest[n-1].Newest.Equal(at.Add(-time.Minute)) || latest[0].Origin != schemas.OriginBackfill {
		t.Errorf("until %s: got %+v", at, latest)
	}
	again, err := w.candles.AsOf(t.Context(), bitcoin, 5*time.Minute, 6, w.Now.Add(-time.Minute))
	w.Must(err)
	if diff := cmp.Diff(said, again); diff != "" {
		t.Errorf("as of the first instant: answered(-), as of then(+):\n%s", diff)
	}
}

// allClosed is the progress of a sink that has closed all minutes by a time.
func allClosed(w *querytest.Fixture, until time.Time) (progress []history.SinkProgress) {
	topic, err := schemas.TopicNamed(schemas.TopicCandles)
	w.Must(err)
	for partition := range topic.Partitions {
		progress = append(progress, history.SinkProgress{Sink: topic.Name, Progress: history.Progress{Partition: partition, Next: w.Offset(), ClosedUntil: until.UnixNano()}})
	}
	return progress
}
