package views

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

const (
	// cachedCharts bounds the readings of series kept in memory, chartFor how old one may be: rates change once a minute.
	cachedCharts = 256
	chartFor     = time.Minute
	// RateSample is in which steps the hour under way is read.
	RateSample = 5 * time.Minute
)

// RateSeriesHistory is where series of rates are kept.
type RateSeriesHistory interface {
	// RateSeries returns series by provider, coin and category, in steps below an hour, of an hour or a day; those of hours
	// and days as far as they have closed.
	RateSeries(ctx context.Context, q RateQuery) ([]RateSeries, error)
}

// RateCharts reports what the rates of providers did, up to this moment, or up to one of the past. Safe for concurrent use.
type RateCharts struct {
	yieldStore *YieldStore
	history    RateSeriesHistory
	held       *otter.Cache[chartKey, RateReading]
	served     servedSeries
}

// RateChart reports which rates a chart is of.
type RateChart struct {
	// CoinID and Provider may be empty for all; one of both is given.
	CoinID, Provider, Category string
	// Step is a day, an hour, or some minutes that divide one. Intervals are the closed ones; the one under way is added.
	Step      time.Duration
	Intervals int
}

// AllProviders is what a chart of no single provider has in the place of one.
const AllProviders = "all"

// chartKey names a reading by all that it is made of: the minute of the clock and the one that was served, Unix nanoseconds, and what the tables had.
type chartKey struct {
	RateChart
	minute, served int64
	tables         ServedSeries
}

// NewRateCharts makes a reader of series.
func NewRateCharts(yieldStore *YieldStore, history RateSeriesHistory) *RateCharts {
	return &RateCharts{yieldStore: yieldStore, history: history, held: otter.Must(&otter.Options[chartKey, RateReading]{
		MaximumSize: cachedCharts, ExpiryCalculator: otter.ExpiryWriting[chartKey, RateReading](2 * chartFor),
	})}
}

// RateReading is what was read of a chart.
type RateReading struct {
	// Series are those of each provider and coin, oldest first and up to the interval under way, by provider and coin. They must not be changed.
	Series []RateSeries
	// Until is the minute up to which rates are in it; the start of the interval under way if there are none of that.
	Until time.Time
}

// Read returns the series of a chart at a time of the query's clock, of the rates that are served then. A rate that was not reported stays as it was for three
// intervals of its source; beyond, it is left out. It is the same for a minute of the clock, as long as the same minute is served of tables that have the same.
func (c *RateCharts) Read(ctx context.Context, chart RateChart, served *RateSnapshot, now time.Time) (RateReading, error) {
	tables, err := c.Tables(ctx, now)
	if err != nil {
		return RateReading{}, err
	}
	return c.reading(ctx, chart, served, tables, now)
}

func (c *RateCharts) reading(ctx context.Context, chart RateChart, served *RateSnapshot, tables ServedSeries, now time.Time) (RateReading, error) {
	key := chartKey{chart, now.Truncate(chartFor).UnixNano(), served.Time, tables}
	key.CoinID, key.Provider, key.Category = strings.Clone(key.CoinID), strings.Clone(key.Provider), strings.Clone(key.Category)
	// What is read for all who wait must not end with the first of them.
	return c.held.Get(context.WithoutCancel(ctx), key, otter.LoaderFunc[chartKey, RateReading](func(ctx context.Context, key chartKey) (RateReading, error) {
		ctx, cancel := context.WithTimeout(ctx, loadPatience)
		defer cancel()
		return c.read(ctx, key, served)
	}))
}

func (c *RateCharts) read(ctx context.Context, key chartKey, served *RateSnapshot) (RateReading, error) {
	chart, current := key.RateChart, served.counting(key.minute)
	until := chart.until(served.Time, time.Unix(0, key.minute))
	var parts []RateSeries
	for _, q := range chart.written(until, key.tables) {
		series, err := c.history.RateSeries(ctx, q)
		if err != nil {
			return RateReading{}, err
		}
		parts = append(parts, series...)
	}
	return RateReading{chart.Join(current, append(parts, currentSeries(current, chart, until)...)), until}, nil
}

// until is the minute that a chart ends at: the one that is served, in the interval that a minute of the clock is in.
func (c RateChart) until(served int64, now time.Time) time.Time {
	until := now.UTC()
	if at := time.Unix(0, served).UTC().Truncate(time.Minute); at.Before(until) {
		until = at
	}
	if open := now.UTC().Truncate(c.Step); until.Before(open) {
		until = open
	}
	return until
}

// written are the parts of a chart that ends at a minute, of tables that do not have the last minutes yet: of an hour or a day that has just ended they
// have no row then, and what it was is read by its parts.
func (c RateChart) written(until time.Time, tables ServedSeries) []RateQuery {
	whole := time.Unix(0, tables.Written).UTC()
	if tables.Written == 0 || !whole.Before(until) {
		return c.Parts(until)
	}
	// Samples end where they do when the tables have all: the rates at the end come from memory.
	whole = whole.Truncate(min(c.Step, RateSample))
	first := until.Truncate(c.Step).Add(-time.Duration(c.Intervals) * c.Step)
	if !first.Before(whole) {
		return nil
	}
	c.Intervals = int(whole.Truncate(c.Step).Sub(first) / c.Step)
	return c.Parts(whole)
}

// Parts are what a chart that ends at a minute is read by, in the order of time: its closed intervals, and after them the hours of a day under way and samples of the
// hour under way.
func (c RateChart) Parts(until time.Time) (parts []RateQuery) {
	open, hour := until.Truncate(c.Step), until.Truncate(time.Hour)
	closed := c.Part(open.Add(-time.Duration(c.Intervals)*c.Step), open, c.Step)
	switch {
	case c.Step < time.Hour:
		closed.To = until
		parts = []RateQuery{closed}
	case c.Step == time.Hour:
		parts = []RateQuery{closed, c.Part(hour, until, RateSample)}
	default:
		parts = []RateQuery{closed, c.Part(open, hour, time.Hour), c.Part(hour, until, RateSample)}
	}
	return slices.DeleteFunc(parts, func(q RateQuery) bool { return !q.From.Before(q.To) })
}

// Part reads the rates of a chart within a span.
func (c RateChart) Part(from, to time.Time, step time.Duration) RateQuery {
	q := RateQuery{From: from, To: to, Step: step, Categories: []string{c.Category}, Limit: c.Intervals + int(day/RateSample)}
	if c.CoinID != "" {
		q.CoinIDs = []string{c.CoinID}
	}
	if c.Provider != "" {
		q.Providers = []string{c.Provider}
	}
	return q
}

// Join makes the series of a chart of its parts, in the order of time. For how long a rate holds that is not reported again is what is known of its source now.
func (c RateChart) Join(current *CurrentRates, parts []RateSeries) []RateSeries {
	joined := seriesJoin{byKey: map[seriesID]*RateSeries{}, step: c.Step, holds: holding(current, c)}
	for _, series := range parts {
		for _, p := range series.Points {
			joined.add(series, p)
		}
	}
	return joined.list()
}

// takes reports whether a rate is in a chart.
func (c *RateChart) takes(e *eventsv1.RateEntry) bool {
	return e.Category == c.Category && (c.CoinID == "" || e.CoinId == c.CoinID) && (c.Provider == "" || e.Provider == c.Provider)
}

// holding is for how long a provider's rates hold that are not reported again, by what is known of its sources now.
func holding(current *CurrentRates, chart RateChart) map[seriesID]time.Duration {
	holds := map[seriesID]time.Duration{}
	for _, e := range current.Counted {
		if chart.takes(e) {
			id := seriesID{e.Provider, e.CoinId}
			holds[id] = max(holds[id], RateHolds(e))
		}
	}
	return holds
}

// currentSeries are the rates that count, each of one point: the mean of a provider's by their TVL, of all alike where none
// reports one.
func currentSeries(current *CurrentRates, chart RateChart, at time.Time) []RateSeries {
	var all []RateSeries
	places := map[seriesID]int{}
	rates := map[seriesID][]*eventsv1.RateEntry{}
	for _, e := range current.Counted {
		if !chart.takes(e) {
			continue
		}
		id := seriesID{e.Provider, e.CoinId}
		if _, ok := places[id]; !ok {
			places[id] = len(all)
			all = append(all, RateSeries{Provider: e.Provider, CoinID: e.CoinId, Symbol: e.Symbol, Category: e.Category})
		}
		rates[id] = append(rates[id], e)
		all[places[id]].Simulated = all[places[id]].Simulated || e.Simulated
	}
	for id, place := range places {
		mean, tvl := MeanRate(rates[id])
		all[place].Points = []RateSeriesPoint{{Start: at, Open: mean, High: mean, Low: mean, Close: mean, Mean: mean, TVL: tvl, Rates: len(rates[id])}}
	}
	return all
}

// MeanRate is the mean of at least one rate by their TVL, of all alike where none reports one, and the sum of the TVL, nil
// where none reports one.
func MeanRate(rates []*eventsv1.RateEntry) (mean float64, tvl *float64) {
	sum, weighted, locked := 0.0, 0.0, 0.0
	for _, e := range rates {
		sum += e.Apy
		if e.TvlUsd != nil {
			locked += *e.TvlUsd
			weighted += float64(e.Apy * *e.TvlUsd)
			tvl = &locked
		}
	}
	if locked > 0 {
		return weighted / locked, tvl
	}
	return sum / float64(len(rates)), tvl
}

// RateHolds is for how long a rate holds that is not reported again.
func RateHolds(e *eventsv1.RateEntry) time.Duration {
	return rateIntervals * time.Duration(e.Said.GetInterval())
}

// MeanOfRolled is what at least one rate of a provider did in an hour or a day, as RateSeries has it: the mean of each number by their TVL, of all alike where none
// reports one, added up from the least on.
func MeanOfRolled(rates []RatePoint) *RateSeriesPoint {
	mean := func(of func(RatePoint) float64) float64 {
		var all, weighted, weights []float64
		for _, r := range rates {
			weight := 0.0
			if r.TVL != nil {
				weight = *r.TVL
			}
			all, weighted, weights = append(all, of(r)), append(weighted, float64(of(r)*weight)), append(weights, weight)
		}
		if total := sumOf(weights); total > 0 {
			return sumOf(weighted) / total
		}
		return sumOf(all) / float64(len(all))
	}
	return &RateSeriesPoint{
		Start: rates[0].Start, Open: mean(func(r RatePoint) float64 { return r.Open }), High: mean(func(r RatePoint) float64 { return r.High }),
		Low: mean(func(r RatePoint) float64 { return r.Low }), Close: mean(func(r RatePoint) float64 { return r.Close }),
		Mean: mean(func(r RatePoint) float64 { return r.Mean }), TVL: lockedIn(rates), Rates: len(rates),
	}
}

// lockedIn is the sum of the TVL of rates, nil where none reports one.
func lockedIn(rates []RatePoint) *float64 {
	var locked []float64
	for _, r := range rates {
		if r.TVL != nil {
			locked = append(locked, *r.TVL)
		}
	}
	if len(locked) == 0 {
		return nil
	}
	sum := sumOf(locked)
	return &sum
}

// sumOf adds numbers up from the least on; it sorts them.
func sumOf(numbers []float64) (sum float64) {
	slices.Sort(numbers)
	for _, n := range numbers {
		sum += n
	}
	return sum
}

const day = 24 * time.Hour

type seriesID struct{ provider, coin string }

// seriesJoin puts series together whose points come in the order of time, some of them in parts.
type seriesJoin struct {
	byKey map[seriesID]*RateSeries
	step  time.Duration
	// holds is for how long what was not reported again holds.
	holds map[seriesID]time.Duration
}

func (j *seriesJoin) add(of RateSeries, p RateSeriesPoint) {
	key := seriesID{of.Provider, of.CoinID}
	series := j.byKey[key]
	if series == nil {
		of.Points = nil
		series = &of
		j.byKey[key] = series
	}
	series.Simulated = series.Simulated || of.Simulated
	p.Start = p.Start.Truncate(j.step)
	n := len(series.Points)
	if n == 0 || series.Points[n-1].Start.Before(p.Start) {
		j.carry(series, p.Start)
		series.Points = append(series.Points, p)
		return
	}
	last := &series.Points[n-1]
	last.High, last.Low, last.Close, last.Rates = max(last.High, p.High), min(last.Low, p.Low), p.Close, p.Rates
	last.TVL = cmp.Or(p.TVL, last.TVL)
}

// carry fills the intervals before one in which nothing was reported, as long as what was reported before held.
func (j *seriesJoin) carry(series *RateSeries, until time.Time) {
	n := len(series.Points)
	if n == 0 {
		return
	}
	last := series.Points[n-1]
	if until.Sub(last.Start) > j.step+j.holds[seriesID{series.Provider, series.CoinID}] {
		return
	}
	for at := last.Start.Add(j.step); at.Before(until); at = at.Add(j.step) {
		series.Points = append(series.Points, RateSeriesPoint{Start: at, Open: last.Close, High: last.Close, Low: last.Close, Close: last.Close, Mean: last.Close,
			TVL: last.TVL, Rates: last.Rates})
	}
}

// list is all of them, in their order.
func (j *seriesJoin) list() []RateSeries {
	all := make([]RateSeries, 0, len(j.byKey))
	for _, series := range j.byKey {
		all = append(all, *series)
	}
	slices.SortFunc(all, func(a, b RateSeries) int {
		return cmp.Or(strings.Compare(a.Provider, b.Provider), strings.Compare(a.CoinID, b.CoinID))
	})
	return all
}

// MedianRate is the median of the rates of providers in an interval, as a candle.
type MedianRate struct {
	schemas.Candle
	// Providers is of how many.
	Providers int
}

// MedianRates makes one line of the series of providers: of each interval the medians of their opens, highs, lows and closes.
func MedianRates(series []RateSeries) []MedianRate {
	byStart := map[time.Time][]RateSeriesPoint{}
	for _, s := range series {
		for _, p := range s.Points {
			byStart[p.Start] = append(byStart[p.Start], p)
		}
	}
	line := make([]MedianRate, 0, len(byStart))
	for start, points := range byStart {
		of := func(value func(RateSeriesPoint) float64) float64 {
			values := make([]float64, len(points))
			for i, p := range points {
				values[i] = value(p)
			}
			return SumRates(values).Median
		}
		line = append(line, MedianRate{schemas.Candle{
			Start: start, Open: of(func(p RateSeriesPoint) float64 { return p.Open }), High: of(func(p RateSeriesPoint) float64 { return p.High }),
			Low: of(func(p RateSeriesPoint) float64 { return p.Low }), Close: of(func(p RateSeriesPoint) float64 { return p.Close }),
		}, len(points)})
	}
	slices.SortFunc(line, func(a, b MedianRate) int { return a.Start.Compare(b.Start) })
	return line
}

// RateCandles are the points of a series of rates as candles.
func RateCandles(points []RateSeriesPoint) []schemas.Candle {
	candles := make([]schemas.Candle, len(points))
	for i, p := range points {
		candles[i] = schemas.Candle{Start: p.Start, Open: p.Open, High: p.High, Low: p.Low, Close: p.Close}
	}
	return candles
}
