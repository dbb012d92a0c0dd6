package explain

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
)

const (
	rateChartStatsForm, rateSeriesStatsForm = "rate-chart-stats", "rate-series-stats"
	// latestRate and lockedTVL are of the last point of a series alone, and of no chart.
	latestRate, lockedTVL = "latestRate", "tvlUsd"
)

// rateStat is a number of a whole chart or series of rates. Of are the points that are shown as its inputs, and the field of each.
type rateStat struct {
	name, unit, formula string
	value               func(views.CandleStats) *float64
	of                  func([]schemas.Candle) []chartInput
}

var rateStats = []rateStat{
	{"minRate", percent, "lowest low of the points", func(s views.CandleStats) *float64 { return &s.Min }, func(points []schemas.Candle) []chartInput {
		return []chartInput{{slices.MinFunc(points, func(a, b schemas.Candle) int { return cmp.Compare(a.Low, b.Low) }), "low"}}
	}},
	{"maxRate", percent, "highest high of the points", func(s views.CandleStats) *float64 { return &s.Max }, func(points []schemas.Candle) []chartInput {
		return []chartInput{{slices.MaxFunc(points, func(a, b schemas.Candle) int { return cmp.Compare(a.High, b.High) }), "high"}}
	}},
	{"avgRate", percent, "mean of the closes of the points, from the oldest on", func(s views.CandleStats) *float64 { return &s.Mean }, func(points []schemas.Candle) []chartInput {
		inputs := make([]chartInput, len(points))
		for i, p := range points {
			inputs[i] = chartInput{p, "close"}
		}
		return inputs
	}},
	{changePct, percent, "100 x (close of the last point - open of the first) / size of the open of the first", func(s views.CandleStats) *float64 { return s.ChangePct }, func(points []schemas.Candle) []chartInput {
		return []chartInput{{points[0], "open"}, {points[len(points)-1], "close"}}
	}},
	{latestRate, percent, "close of the last point", nil, func(points []schemas.Candle) []chartInput {
		return []chartInput{{points[len(points)-1], "close"}}
	}},
	{lockedTVL, usd, "sum of the TVL of the provider's rates, of those that report one, as last reported", nil, nil},
}

// chartStats are how many of these numbers a chart has.
const chartStats = 4

func rateStatNames() []string {
	return namesOf(rateStats, func(s rateStat) string { return s.name })
}

// valueOf is the number as series of rates have it, of a chart the medians over them; nil where it is not known, or without a point.
func (s rateStat) valueOf(series []views.RateSeries, chart bool) *float64 {
	points := pointsOf(series, chart)
	stats, ok := views.StatsOf(points)
	switch {
	case !ok:
		return nil
	case s.name == latestRate:
		return &points[len(points)-1].Close
	case s.name == lockedTVL:
		of := series[0].Points
		return of[len(of)-1].TVL
	}
	return s.value(stats)
}

// pointsOf are the points of a chart of series, or of the only series.
func pointsOf(series []views.RateSeries, chart bool) []schemas.Candle {
	if !chart {
		if len(series) == 0 {
			return nil
		}
		return views.RateCandles(series[0].Points)
	}
	var points []schemas.Candle
	for _, m := range views.MedianRates(series) {
		points = append(points, m.Candle)
	}
	return points
}

// rateStat explains what the points of a chart of rates, or of a provider's series, did from the start of one until a minute.
func (w *work) rateStat(ctx context.Context, name string, parts []string, depth int) (*Node, error) {
	chart := parts[0] == rateChartStatsForm
	names, coin, category, provider := rateStatNames(), parts[2], parts[3], parts[1]
	if chart {
		names, coin, category, provider = names[:chartStats], parts[1], parts[2], parts[3]
	}
	at := slices.Index(names, parts[7])
	if at < 0 {
		return nil, w.nearField(name, parts, 7, names)
	}
	l, err := w.rateLineNamed(name, parts, coin, category)
	if err != nil {
		return nil, err
	}
	l.provider = provider
	if chart && provider == views.AllProviders {
		l.provider = ""
	}
	until, ok := instant(parts[6])
	if !ok || !until.Truncate(time.Minute).Equal(until) || until.Before(l.start) {
		return nil, query.Invalid("number", "the end must be that of a minute, as in 2026-01-31T12:34:00Z, and not before the start")
	}
	if now := w.asked(); until.After(now) {
		return nil, query.NotFound("the points end after %s", query.FormatTime(now.UnixNano()))
	}
	stretch, err := w.rateStretch(ctx, l, until)
	if err != nil {
		return nil, err
	}
	stat, served := rateStats[at], stretch.served
	value := stat.valueOf(served, chart)
	if value == nil {
		return nil, query.NotFound("there is no %s of rates of %s of %s in %s from %s to %s", stat.name, strings.ToValidUTF8(provider, "�"), strings.ToValidUTF8(l.coinID, "�"), l.category,
			l.start.Format(time.RFC3339), until.Format(time.RFC3339))
	}
	subject := []string{parts[0], provider, l.coinID, l.category}
	if chart {
		subject = []string{parts[0], l.coinID, l.category, provider}
	}
	n := headline(strings.Join(append(subject, l.interval, l.start.Format(time.RFC3339), until.Format(time.RFC3339), stat.name), "/"), value, stat.unit, until.UnixNano())
	n.Method = &Method{Name: "rate-stats", Version: 1, Formula: stat.formula}
	if n.Note = stretch.note; n.Note == "" {
		n.compare(stat.valueOf(stretch.again, chart))
	}
	if stat.name == lockedTVL {
		n.Inputs = stretch.locked(l.provider)
		n.fewer(true)
		return n, nil
	}
	for _, of := range stat.of(pointsOf(served, chart)) {
		in, err := w.rateStatInput(ctx, l, until, of, chart, provider, len(n.Inputs), depth-1)
		if err != nil {
			return nil, err
		}
		n.Inputs = append(n.Inputs, in)
	}
	n.fewer(stat.name == "avgRate")
	return n, nil
}

// rateStatInput is a number of a point of a chart or a series, the nth that is shown.
func (w *work) rateStatInput(ctx context.Context, l rateLine, until time.Time, of chartInput, chart bool, provider string, nth, depth int) (*Node, error) {
	value := candleFields[slices.Index(candleFieldNames(), of.field)].value(of.candle)
	l.start = of.candle.Start
	number := l.number(provider, of.field)
	if chart {
		number = l.chartNumber(provider, of.field)
	}
	in := headline(number, &value, percent, l.start.UnixNano())
	switch {
	case l.start.Add(l.step).After(until):
		in.Note = "the interval had not ended: it is as it was then"
	case nth < shown && w.expands(depth):
		expanded, err := w.explain(ctx, number, strings.Split(number, "/"), depth)
		if err != nil && !missing(err) {
			return nil, err
		}
		if err == nil {
			in = expanded
		}
	}
	return in, nil
}
