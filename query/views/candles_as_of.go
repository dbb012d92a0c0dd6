package views

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/history/read"
)

// candlesEvery is how often it is read what charts are made of: charts as of an instant lack what was closed or folded since the last time.
const candlesEvery = 2 * time.Second

// PastCandles is where candles are read as of an instant.
type PastCandles interface {
	PublishedPrices
	// CandlesNow returns what charts that are made now are made of.
	CandlesNow(ctx context.Context) (read.ServedCandles, error)
	// CandlesServed returns what they were made of at an instant; false where nothing is recorded of it or before.
	CandlesServed(ctx context.Context, at time.Time) (served read.ServedCandles, recorded bool, err error)
	// CandlesServedSince returns from which instant on that is recorded, with back-filled candles of a time of the tables or later; zero for none.
	CandlesServedSince(ctx context.Context, folded int64) (time.Time, error)
	// IntervalsAsOf returns what CandleHistory.Intervals did when no more counted than what is named, or fails with a *read.UnknownPastError.
	IntervalsAsOf(ctx context.Context, coinID string, interval time.Duration, from, to time.Time, of read.CandlesAsOf) ([]schemas.Candle, error)
	// CandleTailAsOf is CandleHistory.CandleTail up to an instant, of the prices that had been written and served by then.
	CandleTailAsOf(ctx context.Context, coinID string, step time.Duration, from, at time.Time, served ServedPrices) ([]schemas.Candle, error)
}

// servedCandles remembers what charts were made of.
type servedCandles struct {
	past  PastCandles
	clock func() time.Time
	steps *ServedSteps
	mu    sync.Mutex
	list  servedList[read.ServedCandles]
}

// RememberBy makes the candles remember, and record, what they are made of, by a clock, and lets them be read as of an instant. It must be called before
// they are used.
func (c *Candles) RememberBy(clock func() time.Time, steps *ServedSteps, past PastCandles) {
	c.served.past, c.served.clock, c.served.steps = past, clock, steps
}

// Run looks from time to time what charts are made of, until the context ends; RememberBy comes before.
func (c *Candles) Run(ctx context.Context, log *slog.Logger) error {
	const failure = "reading how far candles are closed failed: charts as of now will lack what has closed meanwhile"
	return KeepRead(ctx, log, failure, func(ctx context.Context) (time.Duration, error) {
		return candlesEvery, c.Look(ctx)
	})
}

// Look reads once what charts are made of. Who reads a chart later reads at least that.
func (c *Candles) Look(ctx context.Context) error {
	s := &c.served
	now, err := s.past.CandlesNow(ctx)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.list); n > 0 && s.list[n-1].value.Folded == now.Folded && slices.EqualFunc(s.list[n-1].value.Closed, now.Closed, time.Time.Equal) {
		return nil
	}
	from := s.clock().UnixNano()
	step := &eventsv1.ServedCandles{Folded: now.Folded}
	for _, closed := range now.Closed {
		step.Closed = append(step.Closed, closed.UnixNano())
	}
	s.steps.readCandles(from, step)
	s.list.add(from, now, servedFor)
	return nil
}

// at is what charts of this process were made of at an instant; false where that is not remembered.
func (s *servedCandles) at(at time.Time) (served read.ServedCandles, remembered bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.list.at(at)
}

// AsOf returns what Read did at a past instant, of what had closed and been folded some two seconds before it at the latest, as it was then. It fails
// with an *AgedOutError where that is not kept any more, or was replaced, and with ErrHistoryBehind where it is not kept yet, after it has waited for it for
// four seconds.
func (c *Candles) AsOf(ctx context.Context, coin schemas.Coin, step time.Duration, intervals int, at time.Time) ([]schemas.Candle, error) {
	candles, err := onceKept(ctx, func() ([]schemas.Candle, error) { return c.asOf(ctx, coin, step, intervals, at) })
	if err != nil {
		return nil, fmt.Errorf("reading candles of %s as of %s: %w", coin.ID, at.UTC().Format(time.RFC3339Nano), err)
	}
	return candles, nil
}

// instead is what reaches further back than charts as they were.
const instead = "knowledge=latest reaches further back"

func (c *Candles) asOf(ctx context.Context, coin schemas.Coin, step time.Duration, intervals int, at time.Time) ([]schemas.Candle, error) {
	past := c.served.past
	var entry *Entry
	var prices ServedPrices
	var candles []schemas.Candle
	var tailFrom time.Time
	// A statement of a few rows takes a millisecond or two, and there are some fifteen.
	g, beside := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		entry, err = c.entryAsOf(beside, coin, at)
		return err
	})
	g.Go(func() (err error) {
		prices, err = c.pricesServed(beside, at)
		return err
	})
	g.Go(func() (err error) {
		candles, tailFrom, err = c.closedAsOf(beside, coin, step, intervals, at)
		return err
	})
	g.Go(func() error {
		restated, err := past.Restated(beside, []string{tablePrices, tableCandles}, []string{coin.ID}, firstStart(step, intervals, at), at, at)
		if err == nil && !restated.IsZero() {
			err = changedByReplay(restated, ", and knowledge=latest has what counts now")
		}
		return err
	})
	if err := g.Wait(); err != nil {
		return nil, err
	}
	tail, err := past.CandleTailAsOf(ctx, coin.ID, step, tailFrom, at, prices)
	if err != nil {
		return nil, err
	}
	for _, t := range tail {
		candles = joinLast(candles, t)
	}
	return withPrice(candles, entry, entry != nil && !c.priceCache.Freshness(entry, at).Stale, step, tailFrom, at), nil
}

// pricesServed is how far prices had been served at an instant.
func (c *Candles) pricesServed(ctx context.Context, at time.Time) (ServedPrices, error) {
	written, err := c.served.past.ServedWritten(ctx)
	if err != nil {
		return nil, err
	}
	// What this process remembers is not in the table of steps yet.
	if _, answers := c.served.steps.began(); answers && written.Before(logged(at.UnixNano())) {
		return nil, ErrHistoryBehind
	}
	return c.served.past.PricesServed(ctx, at)
}

// closedAsOf reads the candles of minutes that had closed, and of what had been folded, at an instant, and from when on prices follow.
func (c *Candles) closedAsOf(ctx context.Context, coin schemas.Coin, step time.Duration, intervals int, at time.Time) ([]schemas.Candle, time.Time, error) {
	made, err := c.servedAt(ctx, at)
	if err != nil {
		return nil, time.Time{}, err
	}
	candles, tailFrom, err := c.intervalsAsOf(ctx, coin, step, intervals, at, made.Of(c.partition(coin)))
	if err != nil {
		err = c.Unknown(ctx, err)
	}
	return candles, tailFrom, err
}

// servedAt is what charts were made of at an instant.
func (c *Candles) servedAt(ctx context.Context, at time.Time) (read.ServedCandles, error) {
	past := c.served.past
	return whatServed(ctx, c.served.steps, past, at, serving[read.ServedCandles]{
		remembered: c.served.at,
		recorded:   func(ctx context.Context) (read.ServedCandles, bool, error) { return past.CandlesServed(ctx, at) },
		since:      func(ctx context.Context) (time.Time, error) { return past.CandlesServedSince(ctx, 0) },
		aged:       AgedOutError{Kept: "of which candles charts were made is recorded", Instead: instead},
	})
}

// Made returns what of the tables counts of a coin at a time of the query's clock, as it was looked at last; nil where nobody looks.
func (c *Candles) Made(ctx context.Context, coin schemas.Coin, now time.Time) (*read.CandlesAsOf, error) {
	if c == nil || c.served.past == nil {
		return nil, nil
	}
	made, remembered := c.served.at(now)
	if !remembered {
		if made, remembered = c.served.newest(); !remembered {
			if err := c.Look(context.WithoutCancel(ctx)); err != nil {
				return nil, err
			}
			made, _ = c.served.newest()
		}
	}
	of := made.Of(c.partition(coin))
	return &of, nil
}

// MadeAt returns what Made did at a past instant. It fails as AsOf does, for candles that begin at a time or later.
func (c *Candles) MadeAt(ctx context.Context, coin schemas.Coin, from, at time.Time) (*read.CandlesAsOf, error) {
	made, err := onceKept(ctx, func() (read.ServedCandles, error) { return c.servedAt(ctx, at) })
	if err != nil {
		return nil, err
	}
	restated, err := c.served.past.Restated(ctx, []string{tableCandles}, []string{coin.ID}, from, at, at)
	if err == nil && !restated.IsZero() {
		err = changedByReplay(restated, "")
	}
	of := made.Of(c.partition(coin))
	return &of, err
}

// Unknown turns what keeps back-filled candles from being read as they were into an *AgedOutError.
func (c *Candles) Unknown(ctx context.Context, err error) error {
	var unknown *read.UnknownPastError
	if !errors.As(err, &unknown) {
		return err
	}
	since, err := c.served.past.CandlesServedSince(ctx, unknown.Until)
	if err != nil {
		return err
	}
	return &AgedOutError{Kept: "what back-filled candles were is known", Since: since, Instead: instead}
}

// newest is what charts are made of now; false before that is known.
func (s *servedCandles) newest() (made read.ServedCandles, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.list); n > 0 {
		return s.list[n-1].value, true
	}
	return made, false
}

// Until returns the candles up to a past instant as they are known now: with what was back-filled, imported or replayed since. Behind the instant it reads nothing.
// The interval that the instant lies in has what was published in it by then. It fails as AsOf does; an instant at a whole minute needs no prices of single
// seconds, and so has no age.
func (c *Candles) Until(ctx context.Context, coin schemas.Coin, step time.Duration, intervals int, at time.Time) ([]schemas.Candle, error) {
	candles, err := onceKept(ctx, func() ([]schemas.Candle, error) { return c.until(ctx, coin, step, intervals, at) })
	if err != nil {
		return nil, fmt.Errorf("reading candles of %s until %s: %w", coin.ID, at.UTC().Format(time.RFC3339Nano), err)
	}
	return candles, nil
}

func (c *Candles) until(ctx context.Context, coin schemas.Coin, step time.Duration, intervals int, at time.Time) ([]schemas.Candle, error) {
	past := c.served.past
	made, err := past.CandlesNow(ctx)
	if err != nil {
		return nil, err
	}
	of, minute := made.Of(c.partition(coin)), at.UTC().Truncate(time.Minute)
	of.Folded = read.FoldedNow
	if of.Closed.After(minute) {
		of.Closed = minute
	}
	if of.ClosedAll.After(minute) {
		of.ClosedAll = minute
	}
	candles, tailFrom, err := c.intervalsAsOf(ctx, coin, step, intervals, at, of)
	if err != nil || coin.Rank == 0 || !of.Closed.Before(at) {
		return candles, err
	}
	var aged *AgedOutError
	if err := c.priceCache.kept(ctx, past, []string{coin.ID}, at); errors.As(err, &aged) {
		return nil, &AgedOutError{Kept: aged.Kept, Since: aged.Since, Instead: "an instant at a whole minute reaches further back"}
	} else if err != nil {
		return nil, err
	}
	tail, err := c.history.CandleTail(ctx, coin.ID, step, tailFrom, at.Truncate(time.Second).Add(time.Second))
	for _, t := range tail {
		candles = joinLast(candles, t)
	}
	return candles, err
}

// entryAsOf is the price of a coin that was served at an instant, nil for none. All prices of seconds by then are kept if it does not fail.
func (c *Candles) entryAsOf(ctx context.Context, coin schemas.Coin, at time.Time) (*Entry, error) {
	if coin.Rank == 0 {
		return nil, nil // venues make no price of it
	}
	entries, err := c.priceCache.asOf(ctx, c.served.past, []schemas.Coin{coin}, at)
	if err == nil {
		err = c.priceCache.kept(ctx, c.served.past, []string{coin.ID}, at)
	}
	var aged *AgedOutError
	if errors.As(err, &aged) {
		return nil, &AgedOutError{Kept: aged.Kept, Since: aged.Since, Instead: instead}
	}
	return entries[coin.ID], err
}

func (c *Candles) partition(coin schemas.Coin) int32 {
	return PartitionOf(coin.ID, int32(len(c.priceCache.nows)))
}

// firstStart is the start of the first of so many closed intervals of a chart as of an instant.
func firstStart(step time.Duration, intervals int, at time.Time) time.Time {
	return at.UTC().Truncate(step).Add(-time.Duration(intervals) * step)
}

// intervalsAsOf reads candles of closed minutes, and from when on prices follow that no closed minute holds.
func (c *Candles) intervalsAsOf(
	ctx context.Context, coin schemas.Coin, step time.Duration, intervals int, at time.Time, of read.CandlesAsOf,
) (candles []schemas.Candle, tailFrom time.Time, err error) {
	from, to := firstStart(step, intervals, at), at.UTC().Truncate(step).Add(step)
	if step >= time.Hour {
		candles, err = c.served.past.IntervalsAsOf(ctx, coin.ID, step, from, to, of)
	} else {
		candles, err = c.served.past.IntervalsAsOf(ctx, coin.ID, time.Minute, from, to, of)
		candles = schemas.JoinCandles(candles, step)
	}
	tailFrom = from
	if n := len(candles); n > 0 {
		tailFrom = candles[n-1].Newest.Add(time.Minute)
	}
	return candles, tailFrom, err
}
