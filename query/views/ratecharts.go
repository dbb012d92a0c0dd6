package views

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/maypok86/otter/v2"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

const (
	// cachedCharts bounds the readings of series kept in memory, chartFor how old one may be: rates change once a minute.
	cachedCharts = 256
	chartFor     = time.Minute
	// sampleStep is in which steps the hour under way is read.
	sampleStep = 5 * time.Minute
)

// RateSeriesHistory is where series of rates are kept.
type RateSeriesHistory interface {
	// RateSeries returns series by provider, coin and category, in steps below an hour, of an hour or a day; those of hours
	// and days as far as they have closed.
	RateSeries(ctx context.Context, q RateQuery) ([]RateSeries, error)
}

// RateCharts reports what the rates of providers did, up to this moment. Safe for concurrent use.
type RateCharts struct {
	yieldStore *YieldStore
	history    RateSeriesHistory
	held       *otter.Cache[chartKey, []RateSeries]
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

// chartKey names a reading in a stretch of chartFor.
type chartKey struct {
	RateChart
	slot int64
}

// NewRateCharts makes a reader of series.
func NewRateCharts(yieldStore *YieldStore, history RateSeriesHistory) *RateCharts {
	return &RateCharts{yieldStore: yieldStore, history: history, held: otter.Must(&otter.Options[chartKey, []RateSeries]{
		MaximumSize: cachedCharts, ExpiryCalculator: otter.ExpiryWriting[chartKey, []RateSeries](2 * chartFor),
	})}
}

// Read returns the series of each provider and coin, oldest first and up to the interval under way, by provider and coin. A
// rate that was not reported stays as it was for three intervals of its source; beyond, it is left out. The series must not be
// changed.
func (c *RateCharts) Read(ctx context.Context, chart RateChart, now time.Time) ([]RateSeries, error) {
	key := chartKey{chart, now.UnixNano() / int64(chartFor)}
	key.CoinID, key.Provider, key.Category = strings.Clone(key.CoinID), strings.Clone(key.Provider), strings.Clone(key.Category)
	// What is read for all who wait must not end with the first of them.
	return c.held.Get(context.WithoutCancel(ctx), key, otter.LoaderFunc[chartKey, []RateSeries](func(ctx context.Context, key chartKey) ([]RateSeries, error) {
		ctx, cancel := context.WithTimeout(ctx, loadPatience)
		defer cancel()
		return c.read(ctx, key.RateChart, now)
	}))
}

func (c *RateCharts) read(ctx context.Context, chart RateChart, now time.Time) ([]RateSeries, error) {
	open := now.UTC().Truncate(chart.Step)
	// Behind what has closed come its parts: a day's hours, and the samples of the hour under way.
	parts := []RateQuery{{From: open.Add(-time.Duration(chart.Intervals) * chart.Step), To: open, Step: chart.Step}}
	if chart.Step > time.Hour {
		parts = append(parts, RateQuery{From: open, To: now.UTC().Truncate(time.Hour), Step: time.Hour})
	}
	if chart.Step >= time.Hour {
		parts = append(parts, RateQuery{From: now.UTC().Truncate(time.Hour), To: now, Step: sampleStep})
	} else {
		parts[0].To = now
	}
	current := c.yieldStore.Current(now)
	joined := seriesJoin{byKey: map[seriesID]*RateSeries{}, step: chart.Step, holds: holding(current, chart)}
	for _, q := range parts {
		if !q.From.Before(q.To) {
			continue
		}
		q.Categories, q.Limit = []string{chart.Category}, chart.Intervals+int(day/sampleStep)
		if chart.CoinID != "" {
			q.CoinIDs = []string{chart.CoinID}
		}
		if chart.Provider != "" {
			q.Providers = []string{chart.Provider}
		}
		read, err := c.history.RateSeries(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, series := range read {
			for _, p := range series.Points {
				joined.add(series, p)
			}
		}
	}
	for _, series := range currentSeries(current, chart, open) {
		joined.add(series, series.Points[0])
	}
	return joined.list(), nil
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
		Mean: mean(func(r RatePoint) float64 { return r.Mean }), Rates: len(rates),
	}
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
