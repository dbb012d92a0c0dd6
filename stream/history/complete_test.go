package history_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/marketlog/marketlog/schemas"
	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/history"
	"github.com/marketlog/marketlog/stream/history/past"
	"github.com/marketlog/marketlog/stream/history/read"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// completeCoins are a coin that is back-filled in a currency, the stablecoin that converts the other, and that one.
var completeCoins = []struct{ id, base, quote string }{{"bitcoin", "BTC", "USD"}, {"tether", "USDT", "USD"}, {"solana", "SOL", "USDT"}}

// completeFixture is a store whose sinks of live and of back-filled candles go on independently of each other.
type completeFixture struct {
	*testing.T
	store  *history.Store
	fold   *past.Fold
	r      *rand.Rand
	offset int64
	// closed are the minutes after the first that the fold has closed, by partition; kept those that are in the ledger.
	closed, kept map[int32]int
	// backfills counts the back-filled candles that are about an interval of a coin.
	backfills map[string]int
	seen      map[string]completeSeen
}

// completeSeen is a candle that was answered complete, and how much had been back-filled of it.
type completeSeen struct {
	candle    schemas.Candle
	backfills int
}

// completeFrom is the first of the minutes that the fixtures have.
var completeFrom = time.Unix(0, noon).UTC()

const completeMinutes = 150

func (w *completeFixture) place(coin string, interval time.Duration, start time.Time) string {
	return fmt.Sprint(coin, " ", interval, " ", start.Truncate(interval).Format(time.RFC3339))
}

// live brings the live minutes of one partition on; the ledger says so at once or later.
func (w *completeFixture) live(partition int32) {
	next := min(w.closed[partition]+1+w.r.IntN(40), completeMinutes)
	for _, c := range completeCoins {
		if stream.PartitionFor(c.id, int32(len(w.closed))) != partition {
			continue
		}
		var records []logged
		for m := w.closed[partition]; m < next; m++ {
			if w.r.IntN(40) > 0 { // else it had no price
				w.offset++
				records = append(records, candleAt(w.offset, minuteCandle(c.id, m, w.r)))
			}
		}
		insert(w, w.store, records...)
	}
	w.closed[partition] = next
	if w.r.IntN(3) > 0 {
		w.keep(partition)
	}
}

func (w *completeFixture) keep(partition int32) {
	w.offset++
	w.kept[partition] = w.closed[partition]
	until := int64(0)
	if n := w.kept[partition]; n > 0 {
		until = noon + int64(n)*int64(time.Minute)
	}
	if err := w.store.Record(w.Context(), []history.SinkProgress{{Sink: schemas.TopicCandles, Progress: history.Progress{Partition: partition, Next: w.offset, ClosedUntil: until}}}); err != nil {
		w.Fatal(err)
	}
}

// backfill reads some minutes, or an hour, of one market.
func (w *completeFixture) backfill() {
	c := completeCoins[w.r.IntN(len(completeCoins))]
	interval, n := time.Minute, 1+w.r.IntN(70)
	if w.r.IntN(4) == 0 {
		interval, n = time.Hour, 1
	}
	first := w.r.IntN(completeMinutes*int(time.Minute)/int(interval) - n + 1)
	var records []logged
	for i := range n {
		w.offset++
		start := completeFrom.Add(time.Duration(first+i) * interval)
		price := fmt.Sprint(50 + w.r.IntN(200))
		records = append(records, venueCandle(w.offset, []string{"kraken", "gate"}[w.r.IntN(2)], c.base, c.quote, interval, start.UnixNano(), price, "300", "40", price, "7"))
		for _, of := range completeCoins {
			if of.id == c.id || of.quote == c.base {
				w.backfills[w.place(of.id, interval, start)]++
				w.backfills[w.place(of.id, max(interval, time.Hour), start)]++
			}
		}
	}
	insert(w, w.store, records...)
}

// check asks for all candles: one that was complete is the same, unless more of its interval was back-filled since, and a live
// one is the same always. It returns how many it knows.
func (w *completeFixture) check() (known int) {
	if _, err := w.fold.Pass(w.Context()); err != nil {
		w.Fatal(err)
	}
	for _, c := range completeCoins {
		for _, interval := range []time.Duration{time.Minute, time.Hour} {
			candles, err := read.From(w.store).Intervals(w.Context(), c.id, interval, completeFrom, completeFrom.Add(completeMinutes*time.Minute))
			if err != nil {
				w.Fatal(err)
			}
			now := map[string]schemas.Candle{}
			for _, candle := range candles {
				now[w.place(c.id, interval, candle.Start)] = candle
			}
			for at := completeFrom; at.Before(completeFrom.Add(completeMinutes * time.Minute)); at = at.Add(interval) {
				place := w.place(c.id, interval, at)
				candle, before := now[place], w.seen[place]
				if before.candle.Minutes > 0 && (before.backfills == w.backfills[place] || before.candle.Origin == schemas.OriginLive) {
					if diff := cmp.Diff(before.candle, candle); diff != "" {
						w.Errorf("%s was complete, and changed (-before, +after):\n%s", place, diff)
					}
				}
				if candle.Minutes == int(interval/time.Minute) {
					w.seen[place] = completeSeen{candle, w.backfills[place]}
				}
			}
		}
	}
	return len(w.seen)
}

// However live minutes, the venues' own candles and the progress of the sinks follow each other, no live minute changes
// a candle that was answered complete.
func TestACompleteCandleStays(t *testing.T) {
	topic, err := schemas.TopicNamed(schemas.TopicCandles)
	if err != nil {
		t.Fatal(err)
	}
	w := &completeFixture{T: t, store: newStore(t), r: streamtest.Rand(t),
		closed: map[int32]int{}, kept: map[int32]int{}, backfills: map[string]int{}, seen: map[string]completeSeen{}}
	w.fold = past.NewFold(w.store)
	for p := range topic.Partitions {
		w.closed[p] = 0
	}
	for p := range topic.Partitions {
		w.keep(p)
	}
	w.backfill()
	if n := w.check(); n > 0 {
		t.Errorf("got %d complete candles before any live minute was closed", n)
	}
	for !t.Failed() && slices.Min(slices.Collect(maps.Values(w.kept))) < completeMinutes {
		for range 12 {
			switch p := int32(w.r.IntN(int(topic.Partitions))); w.r.IntN(4) {
			case 0:
				w.backfill()
			default:
				w.live(p)
			}
		}
		w.check()
	}
	origins := map[schemas.Origin]int{}
	for _, seen := range w.seen {
		origins[seen.candle.Origin]++
	}
	if origins[schemas.OriginLive] == 0 || origins[schemas.OriginBackfill] == 0 {
		t.Errorf("got complete candles of origins %v, want live and back-filled ones", origins)
	}
	for _, c := range completeCoins {
		for _, interval := range []string{"1m", "1h"} {
			if diff := cmp.Diff(viewed(t, w.store, c.id, interval), intervalsOf(t, w.store, c.id, interval)); diff != "" {
				t.Errorf("%s %s: the view(-), the store(+):\n%s", c.id, interval, diff)
			}
		}
	}
}

// What the venues report of an interval counts when the last live minute of it is closed everywhere, and not before.
func TestABackFilledCandleWaitsForTheLiveMinutes(t *testing.T) {
	store := newStore(t)
	topic, err := schemas.TopicNamed(schemas.TopicCandles)
	if err != nil {
		t.Fatal(err)
	}
	insert(t, store, venueCandle(1, "kraken", "BTC", "USD", time.Hour, noon, "1", "2", "1", "2", "7"), venueCandle(2, "kraken", "BTC", "USD", time.Minute, noon, "1", "2", "1", "2", "7"))
	offset := int64(0)
	closed := func(partition int32, minutes int64) {
		offset++
		if err := store.Record(t.Context(), []history.SinkProgress{{Sink: schemas.TopicCandles, Progress: history.Progress{Partition: partition, Next: offset, ClosedUntil: noon + minutes*int64(time.Minute)}}}); err != nil {
			t.Fatal(err)
		}
	}
	check := func(when string, minutes, hours int) {
		t.Helper()
		for interval, want := range map[string]int{"1m": minutes, "1h": hours} {
			got, views := intervalsOf(t, store, "bitcoin", interval), viewed(t, store, "bitcoin", interval)
			if len(got) != want || !slices.Equal(got, views) {
				t.Errorf("%s: got %s %q, and in the view %q, want %d", when, interval, got, views, want)
			}
		}
	}
	check("without any live minute", 1, 1)
	closed(0, 60)
	check("while the others have not begun", 0, 0)
	for p := range topic.Partitions {
		closed(p, 60)
	}
	closed(3, 59)
	check("while one lacks a minute", 1, 1) // the hour is then folded from the one minute
	closed(3, 60)
	check("when all are closed", 1, 1)
	if got := intervalsOf(t, store, "bitcoin", "1h"); got[0] != "bitcoin 2026-03-01T12:00 o=1 h=2 l=1 c=2 v=7 usd=10.5 trades=0 minutes=60 backfill" {
		t.Errorf("got %s, want the venue's own hour", got[0])
	}
}
