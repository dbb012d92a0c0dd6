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
	// CandlesServedSince returns from which instant on that is recorded, with back-filled candles of a time of the tables or later, and rates of currencies up to an offset or a later one; zero for none.
	CandlesServedSince(ctx context.Context, folded, fixings int64) (time.Time, error)
	// IntervalsAsOf returns what CandleHistory.Intervals did when no more counted than what is named, or fails with a *read.UnknownPastError.
	IntervalsAsOf(ctx context.Context, coinID string, interval time.Duration, from, to time.Time, of read.CandlesAsOf) ([]schemas.Candle, error)
	// CandleTailAsOf is CandleHistory.CandleTail up to an instant, of the prices that had been written and served by then.
	CandleTailAsOf(ctx context.Context, coinID string, step time.Duration, from, at time.Time, served ServedPrices) ([]schemas.Candle, error)
	// CandlesServedByMinute is CandlesServed of when the minute of an instant began, or of the first that a process recorded, where that was later in the minute.
	CandlesServedByMinute(ctx context.Context, at time.Time) (served read.ServedCandles, recorded bool, err error)
	// HourlyCloses returns the close of each hour of coins, nil for all, that starts in [from, to), whole hours both, by coin id: the first of a list is that
	// of from, and an hour without a price is 0. No more counts than what is named.
	HourlyCloses(ctx context.Context, coins []string, from, to time.Time, of read.CandlesAsOf) (map[string][]float64, error)
	// PastSince returns since when, by the clock of the tables, all back-filled candles of a coin that start in [from, to) are what they are; 0 where there are none.
	PastSince(ctx context.Context, coinID string, from, to time.Time) (int64, error)
	// KnownPast fails with a *read.UnknownPastError where it is not known what back-filled candles were.
	KnownPast(ctx context.Context, of read.CandlesAsOf) error
}

// servedCandles remembers what charts were made of.
type servedCandles struct {
	past  PastCandles
	clock func() time.Time
	steps *ServedSteps
	mu    sync.Mutex
	list  servedList[read.ServedCandles]
	first int64 // when the first was remembered, which the list may have no longer; Unix nanoseconds
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

// Look reads once what charts are made of. Who reads a chart later reads at least that. Rates of currencies count from when on candles have closed, or were folded,
// since: they come with others of their source, and there is a step for each minute at most.
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
	if len(s.list) == 0 {
		s.first = from
	}
	step := &eventsv1.ServedCandles{Folded: now.Folded, Fixings: now.Fixings}
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
// six seconds.
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
		since:      func(ctx context.Context) (time.Time, error) { return past.CandlesServedSince(ctx, 0, 0) },
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
	of := c.of(made, coin)
	return &of, nil
}

// of is what counts of a coin. No rate counts of one that follows the US dollar.
func (c *Candles) of(made read.ServedCandles, coin schemas.Coin) read.CandlesAsOf {
	of := made.Of(c.partition(coin))
	if coin.Peg == schemas.USD {
		of.Fixings = 0
	}
	return of
}

// ServedAt returns what Made did at a past instant, though rows may have been replaced since. It fails as AsOf does, and for a coin that follows another
// currency than the US dollar where it is not recorded which rates of it counted.
func (c *Candles) ServedAt(ctx context.Context, coin schemas.Coin, at time.Time) (read.CandlesAsOf, error) {
	made, err := onceKept(ctx, func() (read.ServedCandles, error) { return c.servedAt(ctx, at) })
	if err != nil {
		return read.CandlesAsOf{}, err
	}
	if made.Fixings == 0 && coin.Peg != "" && coin.Peg != schemas.USD {
		since, err := c.served.past.CandlesServedSince(ctx, 0, 1)
		if err != nil {
			return read.CandlesAsOf{}, err
		}
		return read.CandlesAsOf{}, &AgedOutError{Kept: "by which daily rates pegs were measured is recorded", Since: since, Instead: "v_peg and v_peg_episodes have the past by the rates of now: /api/v1/sql"}
	}
	return c.of(made, coin), nil
}

// MadeAt is ServedAt, and fails where a replay has changed candles since that begin at a time or later.
func (c *Candles) MadeAt(ctx context.Context, coin schemas.Coin, from, at time.Time) (*read.CandlesAsOf, error) {
	of, err := c.ServedAt(ctx, coin, at)
	if err != nil {
		return nil, err
	}
	restated, err := c.served.past.Restated(ctx, []string{tableCandles}, []string{coin.ID}, from, at, at)
	if err == nil && !restated.IsZero() {
		err = changedByReplay(restated, "")
	}
	return &of, err
}

// Unknown turns what keeps back-filled candles from being read as they were into an *AgedOutError.
func (c *Candles) Unknown(ctx context.Context, err error) error {
	var unknown *read.UnknownPastError
	if !errors.As(err, &unknown) {
		return err
	}
	since, err := c.served.past.CandlesServedSince(ctx, unknown.Until, 0)
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

// foldedFrom is since when charts of this process are made of back-filled candles of a time of the tables or later; zero where that is not remembered.
func (s *servedCandles) foldedFrom(folded int64) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.IndexFunc(s.list, func(made servedFrom[read.ServedCandles]) bool { return made.value.Folded >= folded }); i >= 0 {
		return time.Unix(0, s.list[i].from).UTC()
	}
	return time.Time{}
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

const (
	// ClosesHours is how many closes of hours there are of a coin, and the price of the hour under way makes it a week.
	ClosesHours = 7*24 - 1
	// closesHeld is how many readings of all coins are held: that of the minute, and the one before.
	closesHeld = 2
	// replaySettles is how long after a replay said that it takes the place of tables it certainly has.
	replaySettles = 2 * time.Minute
)

// ClosesOf is what closes of hours are made of at an instant.
type ClosesOf struct {
	// Until is the beginning of the hour that the minute before lies in: with it all earlier hours have ended a minute ago at least.
	Until time.Time
	of    read.CandlesAsOf
}

// closesOf is what closes are made of at an instant, when charts were made of so much at the beginning of its minute. Minutes count as far as those of all
// coins had closed, so that one condition holds for all.
func closesOf(made read.ServedCandles, at time.Time) ClosesOf {
	until := at.UTC().Truncate(time.Minute).Add(-time.Minute).Truncate(time.Hour)
	closed := made.Of(0).ClosedAll.UTC()
	if closed.After(until) {
		closed = until
	}
	of := read.CandlesAsOf{Closed: time.Unix(0, 0).UTC(), ClosedAll: closed, Folded: made.Folded}
	if len(made.Closed) > 0 { // else there never was a live minute
		of.Closed = closed
	}
	return ClosesOf{until, of}
}

func (o ClosesOf) from() time.Time { return o.Until.Add(-ClosesHours * time.Hour) }

// HourCloses are the closes of the last hours of coins. They never change.
type HourCloses struct {
	// Until is the end of the last hour.
	Until  time.Time
	of     ClosesOf
	replay time.Time
	byCoin map[string][]float64
}

// Of returns the closes of a coin, oldest first, 0 for an hour without a price; nil where it has none.
func (h *HourCloses) Of(coinID string) []float64 { return h.byCoin[coinID] }

// closesKey names a reading of all coins. Within a minute it is the same: whether a replay has changed it is looked up once in it.
type closesKey struct {
	of     ClosesOf
	minute int64
}

// Closes returns the closes of hours of all coins at a time of the query's clock: those of the candles that charts were made of when its minute began, or that
// the process first had, where that was later. They are read anew when these are others, or a replay was; most often once an hour. Before it is known what
// charts are made of there are none. With an error, also that of a context whose caller waits no longer, it returns those that were read last.
func (c *Candles) Closes(ctx context.Context, now time.Time) (*HourCloses, error) {
	made, known := c.served.byMinute(now)
	of := closesOf(made, now)
	if !known {
		return &HourCloses{Until: of.Until}, nil
	}
	minute := now.UTC().Truncate(time.Minute)
	closes, err := c.closes.get(ctx, closesKey{of, minute.UnixNano()}, func(ctx context.Context) (*HourCloses, error) { return c.readCloses(ctx, of, minute) })
	if err == nil {
		return closes, nil
	}
	if closes = c.lastCloses.Load(); closes == nil {
		closes = &HourCloses{Until: of.Until}
	}
	return closes, fmt.Errorf("reading the closes of hours: %w", err)
}

// PrepareCloses reads the closes of now, so that nobody waits for it.
func (c *Candles) PrepareCloses(ctx context.Context) error {
	if c.served.past == nil {
		return nil
	}
	_, err := c.Closes(ctx, c.served.clock())
	return err
}

// readCloses reads the closes of all coins, unless those that were read last are the same.
func (c *Candles) readCloses(ctx context.Context, of ClosesOf, minute time.Time) (*HourCloses, error) {
	past := c.served.past
	replay, err := past.Restated(ctx, []string{tableCandles}, nil, of.from(), of.Until, time.Unix(0, 0))
	if err != nil {
		return nil, err
	}
	if replay.Add(replaySettles).After(minute) { // what is read now may be what was there before it
		replay = minute
	}
	if last := c.lastCloses.Load(); last != nil && last.of == of && last.replay.Equal(replay) {
		return last, nil
	}
	byCoin, err := past.HourlyCloses(ctx, nil, of.from(), of.Until, of.of)
	if err != nil {
		return nil, err
	}
	closes := &HourCloses{of.Until, of, replay, byCoin}
	c.lastCloses.Store(closes)
	return closes, nil
}

// ClosesServed is what closes of hours were made of at a past instant. It fails with an *AgedOutError where that is not recorded, and with ErrHistoryBehind
// where it is not kept yet, after it has waited for it for six seconds.
func (c *Candles) ClosesServed(ctx context.Context, at time.Time) (ClosesOf, error) {
	past := c.served.past
	made, err := onceKept(ctx, func() (read.ServedCandles, error) {
		return whatServed(ctx, c.served.steps, past, at, serving[read.ServedCandles]{
			remembered: c.served.byMinute,
			recorded: func(ctx context.Context) (read.ServedCandles, bool, error) {
				return past.CandlesServedByMinute(ctx, at)
			},
			since: func(ctx context.Context) (time.Time, error) { return past.CandlesServedSince(ctx, 0, 0) },
			aged:  AgedOutError{Kept: "of which candles sparklines were made is recorded", Instead: closesInstead},
		})
	})
	if err != nil {
		return ClosesOf{}, fmt.Errorf("reading of what closes of hours were made at %s: %w", at.UTC().Format(time.RFC3339Nano), err)
	}
	return closesOf(made, at), nil
}

// closesInstead is what reaches further back than sparklines as they were.
const closesInstead = "/api/v1/charts/{coinId} with knowledge=latest reaches further back"

// ClosesAsOf returns the closes of hours of some coins that Closes did at a past instant, by what they were made of then. It fails with an *AgedOutError
// where that is not kept any more, or was replaced.
func (c *Candles) ClosesAsOf(ctx context.Context, of ClosesOf, coins []string, at time.Time) (*HourCloses, error) {
	past := c.served.past
	if err := past.KnownPast(ctx, of.of); err != nil {
		return nil, c.Unknown(ctx, err)
	}
	// Those that had been read up to replaySettles after a replay may be of before it.
	restated, err := past.Restated(ctx, []string{tableCandles}, coins, of.from(), of.Until, at.UTC().Truncate(time.Minute).Add(-replaySettles))
	if err != nil {
		return nil, err
	}
	if !restated.IsZero() {
		return nil, changedByReplay(restated.Add(time.Minute-1).Truncate(time.Minute).Add(replaySettles), "")
	}
	byCoin, err := past.HourlyCloses(ctx, coins, of.from(), of.Until, of.of)
	return &HourCloses{Until: of.Until, byCoin: byCoin}, err
}

// byMinute is what charts of this process were made of when the minute of an instant began, or when it began to answer, or first knew, where that was
// later; false where that is not remembered.
func (s *servedCandles) byMinute(at time.Time) (served read.ServedCandles, remembered bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	minute := at.Truncate(time.Minute)
	if began, _ := s.steps.began(); began > minute.UnixNano() && began <= at.UnixNano() {
		minute = time.Unix(0, began)
	}
	if served, remembered = s.list.at(minute); !remembered && len(s.list) > 0 && s.list[0].from == s.first && s.first <= at.UnixNano() {
		return s.list[0].value, true
	}
	return served, remembered
}
