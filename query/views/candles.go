package views

import (
	"context"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/marketlog/marketlog/schemas"
)

const (
	// cachedCandles bounds the closed candles kept in memory, of about 200 bytes each.
	cachedCandles = 250_000
	// cachedFor is how long they may be unlike those that a replay puts in their place, or lack what was
	// back-filled.
	cachedFor = time.Minute
	// loadPatience bounds one reading of them, which all who ask at that time wait for.
	loadPatience = 10 * time.Second
	// lateMinutes is how many minutes before the one under way may still be open, unless the fold of candles is behind.
	lateMinutes = 4
)

// CandleHistory is where candles are kept.
type CandleHistory interface {
	// Intervals returns the candles of a coin that start in [from, to), oldest first, in intervals of
	// a minute, an hour or a day, live or back-filled, as far as their minutes are closed.
	Intervals(ctx context.Context, coinID string, interval time.Duration, from, to time.Time) ([]schemas.Candle, error)
	// CandleTail returns those folded from published prices in [from, to), in intervals of a step.
	CandleTail(ctx context.Context, coinID string, step time.Duration, from, to time.Time) ([]schemas.Candle, error)
}

// Candles returns the candles of a coin up to this moment, or up to one of the past. What can no longer change is kept in memory;
// the interval under way is folded again for each reader. Safe for concurrent use.
type Candles struct {
	priceCache *PriceCache
	history    CandleHistory
	closed     *otter.Cache[closedKey, []schemas.Candle]
	served     servedCandles
	// closes are those of hours that were read last, by what they are made of and the minute.
	closes     *pastViews[closesKey, *HourCloses]
	lastCloses atomic.Pointer[HourCloses]
}

// closedKey names candles that have closed: those of the buckets before a time.
type closedKey struct {
	coinID  string
	step    time.Duration
	buckets int
	before  int64
}

// NewCandles makes a reader of candles.
func NewCandles(priceCache *PriceCache, history CandleHistory) *Candles {
	return &Candles{priceCache: priceCache, history: history, closes: newPastViews[closesKey, *HourCloses](closesHeld), closed: otter.Must(&otter.Options[closedKey, []schemas.Candle]{
		MaximumWeight:    cachedCandles,
		Weigher:          func(_ closedKey, held []schemas.Candle) uint32 { return uint32(len(held)) + 1 },
		ExpiryCalculator: otter.ExpiryWriting[closedKey, []schemas.Candle](cachedFor),
	})}
}

// Read returns the candles of the last so many intervals of a step before the one that now is in,
// and of that one, oldest first. The step is a day, an hour, or some minutes that divide one. An
// interval without a price is left out; while the price of a coin does not change, the interval under
// way carries it. The candles are the caller's.
func (c *Candles) Read(ctx context.Context, coin schemas.Coin, step time.Duration, intervals int, now time.Time) ([]schemas.Candle, error) {
	open := now.UTC().Truncate(step)
	// The latest minutes of the interval that has just ended may not be closed yet.
	settled := open.Add(-step)
	from := open.Add(-time.Duration(intervals) * step)
	// The latest prices are read beside the candles, of some more minutes than are usually open: which of them are is known only with the candles.
	tailed := make(chan tail, 1)
	late := now.UTC().Truncate(time.Minute).Add(-lateMinutes * time.Minute)
	go func() {
		candles, err := c.history.CandleTail(ctx, coin.ID, time.Minute, late, now.Add(time.Second))
		tailed <- tail{candles, err}
	}()
	candles, err := c.minutes(ctx, coin, step, from, settled, open.Add(step), intervals)
	latest := <-tailed
	if err != nil {
		return nil, err
	}
	tailFrom := from
	if n := len(candles); n > 0 {
		tailFrom = candles[n-1].Newest.Add(time.Minute)
	}
	if tailFrom.Before(late) {
		latest.candles, latest.err = c.history.CandleTail(ctx, coin.ID, step, tailFrom, now.Add(time.Second))
	} else {
		latest.candles = slices.DeleteFunc(latest.candles, func(c schemas.Candle) bool { return c.Start.Before(tailFrom) })
	}
	if latest.err != nil {
		return nil, latest.err
	}
	for _, t := range latest.candles {
		t.Start = t.Start.Truncate(step)
		candles = joinLast(candles, t)
	}
	e := c.priceCache.Entry(coin)
	return withPrice(candles, e, e != nil && !c.priceCache.Freshness(e, now).Stale, step, tailFrom, now), nil
}

// tail are candles of published prices that no closed minute holds.
type tail struct {
	candles []schemas.Candle
	err     error
}

// minutes reads candles of closed minutes: those of [from, settled), which are held for others, and those of [settled, to), which may still change. The
// candles are the caller's.
func (c *Candles) minutes(ctx context.Context, coin schemas.Coin, step time.Duration, from, settled, to time.Time, intervals int) ([]schemas.Candle, error) {
	var latest []schemas.Candle
	read := false
	// What is read for all who wait must not end with the first of them. Whoever reads it reads what may still change with it.
	held, err := c.closed.Get(context.WithoutCancel(ctx), closedKey{coin.ID, step, intervals, settled.UnixNano()},
		otter.LoaderFunc[closedKey, []schemas.Candle](func(ctx context.Context, _ closedKey) ([]schemas.Candle, error) {
			ctx, cancel := context.WithTimeout(ctx, loadPatience)
			defer cancel()
			all, err := c.fold(ctx, coin, step, from, to)
			n, _ := slices.BinarySearchFunc(all, settled, func(c schemas.Candle, at time.Time) int { return c.Start.Compare(at) })
			latest, read = all[n:], true
			return all[:n:n], err
		}))
	if err == nil && !read {
		latest, err = c.fold(ctx, coin, step, settled, to)
	}
	if err != nil {
		return nil, err
	}
	// Joining may change the last of those in memory.
	return slices.Concat(held, latest), nil
}

// fold reads candles of a step.
func (c *Candles) fold(ctx context.Context, coin schemas.Coin, step time.Duration, from, to time.Time) ([]schemas.Candle, error) {
	if step >= time.Hour {
		return c.history.Intervals(ctx, coin.ID, step, from, to)
	}
	minutes, err := c.history.Intervals(ctx, coin.ID, time.Minute, from, to)
	return schemas.JoinCandles(minutes, step), err
}

// withPrice joins the price that is served, nil for none, which is there before it is in history; a fresh one makes a candle of the interval under way.
func withPrice(candles []schemas.Candle, e *Entry, fresh bool, step time.Duration, from, now time.Time) []schemas.Candle {
	if e == nil {
		return candles
	}
	at := time.Unix(0, e.Price.Time).UTC()
	price := schemas.Candle{Open: e.Price.Price, High: e.Price.Price, Low: e.Price.Price, Close: e.Price.Price, Newest: at, Origin: schemas.OriginLive}
	newest := from
	if n := len(candles); n > 0 && candles[n-1].Newest.After(from) {
		newest = candles[n-1].Newest
	}
	open := now.UTC().Truncate(step)
	if !at.Before(newest) && at.Before(open.Add(step)) {
		price.Start = at.Truncate(step)
		candles = joinLast(candles, price)
	}
	if n := len(candles); n > 0 && candles[n-1].Start.Before(open) && fresh {
		price.Start = open
		candles = append(candles, price)
	}
	return candles
}

// joinLast joins a candle that is no older than the last one.
func joinLast(candles []schemas.Candle, c schemas.Candle) []schemas.Candle {
	if n := len(candles); n > 0 && candles[n-1].Start.Equal(c.Start) {
		candles[n-1].Join(c)
		return candles
	}
	return append(candles, c)
}

// CandleStats are over the candles of a chart.
type CandleStats struct {
	// Min is the lowest low, Max the highest high, Mean the mean of the closes.
	Min, Max, Mean float64
	// ChangePct is from the first open to the last close, in percent of the size of the first; nil where that is zero.
	ChangePct *float64
}

// StatsOf sums up candles, oldest first; false where there is none.
func StatsOf(candles []schemas.Candle) (s CandleStats, ok bool) {
	if len(candles) == 0 {
		return s, false
	}
	first, last := candles[0], candles[len(candles)-1]
	s.Min, s.Max = first.Low, first.High
	sum := 0.0
	for _, c := range candles {
		s.Min, s.Max = min(s.Min, c.Low), max(s.Max, c.High)
		sum += c.Close
	}
	s.Mean = Mean(sum, len(candles), s.Min, s.Max)
	if first.Open != 0 {
		change := (last.Close - first.Open) / math.Abs(first.Open) * 100
		s.ChangePct = &change
	}
	return s, true
}

// PricedUntil is the second up to which published prices are in the candles of Candles.Read that end with c, as of a time. A closed minute holds all of its
// prices; an interval that only carries the price before it is up to its start.
func PricedUntil(c schemas.Candle, now time.Time) time.Time {
	switch {
	case c.Newest.Before(c.Start):
		return c.Start
	case c.Newest.Truncate(time.Minute).Equal(c.Newest) && !now.Before(c.Newest.Add(time.Minute)):
		return c.Newest.Add(time.Minute - time.Second)
	}
	return c.Newest
}
