package views

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// seriesEvery is how often it is read how far the tables of yields are: series lack what came into them since the last time.
const seriesEvery = 2 * time.Second

// PastSeries is where it is kept how far the tables of yields were, and what has changed in them since.
type PastSeries interface {
	// YieldsWritten returns before which offsets of rates.v1 and of rates.raw.v1 the tables have all records; 0 for none.
	YieldsWritten(ctx context.Context) (folded, raw int64, err error)
	// YieldsTold returns the offset of the last record of rates.raw.v1 before one of which they have what a source told of the past; -1 for none.
	YieldsTold(ctx context.Context, before int64) (int64, error)
	// SeriesServed returns what series of yields were read from at an instant; false where nothing is recorded of it or before.
	SeriesServed(ctx context.Context, at time.Time) (served ServedSeries, recorded bool, err error)
	// SeriesServedSince returns from which instant on, at or after one, they were read from at least so much; zero where nothing is recorded of it.
	SeriesServedSince(ctx context.Context, from time.Time, least ServedSeries) (time.Time, error)
	// ToldSince returns the offset of the last record that told more of the past in the scope of a query than had been written, -1 for none, and from when on what
	// was told is attached as it is now, zero where it was then.
	ToldSince(ctx context.Context, q RateQuery, of ServedSeries, now time.Time) (told int64, attached time.Time, err error)
	// OldestYield returns from when on steps of a length are kept at a time of the log, of single answers with 0; zero where all are.
	OldestYield(ctx context.Context, step time.Duration, at time.Time) (time.Time, error)
	// Restated is that of PublishedPrices.
	Restated(ctx context.Context, tables, coins []string, from, to, after time.Time) (time.Time, error)
	// ServedWritten is up to when all is kept that was recorded of what was served.
	ServedWritten(ctx context.Context) (time.Time, error)
}

// nothingWritten is a minute before all others: of tables that have none yet nothing is read.
var nothingWritten = time.Date(2009, 1, 3, 0, 0, 0, 0, time.UTC).UnixNano()

// servedSeries remembers what series of yields were read from.
type servedSeries struct {
	past PastSeries // nil: they are read from all that the tables have
	// yields are those that were served at past instants.
	yields *PastYields
	clock  func() time.Time
	steps  *ServedSteps
	// looking is held by who reads how far the tables are.
	looking sync.Mutex
	mu      sync.Mutex
	list    servedList[ServedSeries]
}

// RememberBy makes the charts remember, and record, what they are read from, by a clock, and lets them be read as of an instant, of the yields that were
// served then. It must be called before they are used.
func (c *RateCharts) RememberBy(clock func() time.Time, steps *ServedSteps, past PastSeries, yields *PastYields) {
	c.served.past, c.served.clock, c.served.steps, c.served.yields = past, clock, steps, yields
}

// Run looks from time to time how far the tables of yields are, until the context ends; RememberBy comes before.
func (c *RateCharts) Run(ctx context.Context, log *slog.Logger) error {
	const failure = "reading how far the tables of yields are failed: series will lack what came into them meanwhile"
	return KeepRead(ctx, log, failure, func(ctx context.Context) (time.Duration, error) {
		return seriesEvery, c.Look(ctx)
	})
}

// Look reads once how far the tables of yields are: up to the last minute that they have whole, as far as this process has read it.
func (c *RateCharts) Look(ctx context.Context) error {
	s := &c.served
	s.looking.Lock()
	defer s.looking.Unlock()
	folded, raw, err := s.past.YieldsWritten(ctx)
	if err != nil {
		return err
	}
	now := ServedSeries{Written: c.yieldStore.ended.before(folded)}
	if folded == 0 {
		now.Written = nothingWritten
	}
	if last, known := s.newest(); known && last.Written == now.Written {
		return nil
	}
	if now.Past, err = s.past.YieldsTold(ctx, raw); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	from := s.clock().UnixNano()
	s.steps.readSeries(from, &eventsv1.ServedSeries{Written: now.Written, Past: now.Past})
	s.list.add(from, now, servedFor)
	return nil
}

// newest is what series are read from now; false before that is known.
func (s *servedSeries) newest() (tables ServedSeries, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.list); n > 0 {
		return s.list[n-1].value, true
	}
	return tables, false
}

// at is what series of this process were read from at an instant; false where that is not remembered.
func (s *servedSeries) at(at time.Time) (tables ServedSeries, remembered bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.list.at(at)
}

// Tables returns what series are read from at a time of the query's clock. Who asks first looks.
func (c *RateCharts) Tables(ctx context.Context, now time.Time) (ServedSeries, error) {
	if c.served.past == nil {
		return ServedSeries{Past: -1}, nil
	}
	if tables, remembered := c.served.at(now); remembered {
		return tables, nil
	}
	if _, known := c.served.newest(); !known {
		if err := c.Look(context.WithoutCancel(ctx)); err != nil {
			return ServedSeries{}, err
		}
	}
	tables, _ := c.served.newest()
	return tables, nil
}

// seriesInstead is what reaches further back than series as they were.
const seriesInstead = "without asOf series have what is known now of the time before"

// ServedAt returns the rates that counted at a past instant, and what series were read from then. It fails with an *AgedOutError where that is not recorded or not
// in the log any more, and with ErrHistoryBehind where it is not kept yet, after it has waited for it for six seconds.
func (c *RateCharts) ServedAt(ctx context.Context, at time.Time) (*CurrentRates, ServedSeries, error) {
	current, unstated := c.served.yields.At(ctx, at)
	tables, unread := c.tablesAt(ctx, at)
	return current, tables, FaultOfParts(unstated, unread)
}

// tablesAt is what series were read from at a past instant.
func (c *RateCharts) tablesAt(ctx context.Context, at time.Time) (ServedSeries, error) {
	past := c.served.past
	const kept = "what series of yields are read from is recorded"
	tables, err := onceKept(ctx, func() (ServedSeries, error) {
		return whatServed(ctx, c.served.steps, past, at, serving[ServedSeries]{
			remembered: c.served.at,
			recorded:   func(ctx context.Context) (ServedSeries, bool, error) { return past.SeriesServed(ctx, at) },
			since: func(ctx context.Context) (time.Time, error) {
				return past.SeriesServedSince(ctx, time.Unix(0, 0), anyTables)
			},
			aged: AgedOutError{Kept: kept, Instead: seriesInstead},
		})
	})
	if err == nil && tables.Written == 0 {
		err = c.agedUntil(ctx, at, anyTables, kept)
	}
	if err != nil {
		return tables, fmt.Errorf("reading what series of yields were read from at %s: %w", at.UTC().Format(time.RFC3339Nano), err)
	}
	return tables, nil
}

// anyTables are the least from which it is known what was read.
var anyTables = ServedSeries{Written: int64(time.Second), Past: -1}

// agedUntil is why series as of an instant are not known: they are since they were read from at least so much.
func (c *RateCharts) agedUntil(ctx context.Context, at time.Time, least ServedSeries, kept string) error {
	since, err := c.served.past.SeriesServedSince(ctx, at, least)
	if err != nil {
		return err
	}
	return &AgedOutError{Kept: kept, Since: since, Instead: seriesInstead}
}

// AsOf returns what Read did at a past instant, of what ServedAt returns. It fails with an *AgedOutError where what was read is not there any more, or was
// replaced.
func (c *RateCharts) AsOf(ctx context.Context, chart RateChart, served *RateSnapshot, tables ServedSeries, at time.Time) (RateReading, error) {
	reading, err := c.reading(ctx, chart, served, tables, at)
	if err != nil {
		return RateReading{}, err
	}
	// What has changed until it was read is found after it was.
	from := reading.Until
	for _, q := range chart.written(reading.Until, tables) {
		if q.Step < time.Hour {
			q.Step, q.From = 0, q.From.Add(-time.Hour)
		}
		if q.From.Before(from) {
			from = q.From
		}
		since := func(oldest time.Time) time.Time { return at.Add(oldest.Sub(q.From) + max(chart.Step, time.Hour)) }
		if err := c.Kept(ctx, q.From, q.Step, since); err != nil {
			return RateReading{}, err
		}
	}
	return reading, c.Unchanged(ctx, chart.Part(from, at.UTC().Add(time.Second), chart.Step), tables, at)
}

// Kept fails with an *AgedOutError where of steps of a length, of single answers with 0, some of a time or later are not kept any more. Since is as of when
// what is asked for would be, by from when on they are kept.
func (c *RateCharts) Kept(ctx context.Context, from time.Time, step time.Duration, since func(oldest time.Time) time.Time) error {
	oldest, err := c.served.past.OldestYield(ctx, step, c.served.clock())
	if err != nil || !from.Before(oldest) {
		return err
	}
	return &AgedOutError{Kept: "what this reaches back to is kept", Since: since(oldest).UTC(), Instead: seriesInstead + ", and shorter ones reach further back"}
}

// HistorySince is since when there was anything at a past instant, of what is found now from an instant on; zero where that is not known any more, since single
// answers were dropped meanwhile.
func (c *RateCharts) HistorySince(ctx context.Context, found time.Time, step time.Duration, of ServedSeries) (time.Time, error) {
	if step != 0 || found.IsZero() {
		return found, nil
	}
	now := c.served.clock()
	oldest, err := c.served.past.OldestYield(ctx, step, now)
	if err != nil || oldest.IsZero() {
		return found, err
	}
	dropped := now.UTC().Truncate(day).Sub(time.Unix(0, of.Written).UTC().Truncate(day))
	if then := oldest.Add(-dropped); dropped > 0 && !found.Before(then) {
		return time.Time{}, nil
	}
	return found, nil
}

// Tables of yields whose rows a replay may change.
var tablesOfYields = []string{"rates", "rates_1h", "rates_1d"}

// Unchanged fails with an *AgedOutError where what was read from tables as of an instant has changed in them since: where a replay has changed it, where sources told
// more of the past since, or where what they told is attached to others now.
func (c *RateCharts) Unchanged(ctx context.Context, q RateQuery, of ServedSeries, at time.Time) error {
	// A row of the hour before may say what holds at the beginning, and one that is written after the end what was in it.
	restated, err := c.served.past.Restated(ctx, tablesOfYields, q.CoinIDs, q.From.Add(-2*time.Hour), at.Add(time.Minute), at)
	if err == nil && !restated.IsZero() {
		err = changedByReplay(restated, "")
	}
	if err != nil {
		return err
	}
	told, attached, err := c.served.past.ToldSince(ctx, q, of, c.served.clock())
	switch {
	case err != nil:
		return err
	case told >= 0:
		return c.agedUntil(ctx, at, ServedSeries{Written: of.Written, Past: told}, "all that sources have told of the past until now is known")
	case !attached.IsZero():
		since, err := c.served.past.SeriesServedSince(ctx, at, ServedSeries{Written: attached.UnixNano(), Past: of.Past})
		if err != nil {
			return err
		}
		if since.IsZero() { // the tables will be there soon
			if since = attached; since.Before(c.served.clock()) {
				since = c.served.clock().UTC().Add(time.Minute)
			}
		}
		return &AgedOutError{Kept: "what sources told of the past is known by the coins that it is of now", Since: since, Instead: seriesInstead}
	}
	return nil
}
