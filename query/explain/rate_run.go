package explain

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
)

const rateRunForm = "rate-points"

// rateRun is how a number of a point of a chart of rates that was merged of several intervals follows from those of each. The numbers are the points', oldest first.
type rateRun struct {
	formula string
	value   func([]views.MedianRate) float64
	joined  func([]float64) float64
}

var rateRuns = map[string]rateRun{
	"open":         {"open of the first", func(of []views.MedianRate) float64 { return joinedRates(of).Open }, firstOf},
	"high":         {"greatest high", func(of []views.MedianRate) float64 { return joinedRates(of).High }, slices.Max[[]float64]},
	"low":          {"smallest low", func(of []views.MedianRate) float64 { return joinedRates(of).Low }, slices.Min[[]float64]},
	"close":        {"close of the last", func(of []views.MedianRate) float64 { return joinedRates(of).Close }, func(of []float64) float64 { return of[len(of)-1] }},
	providersField: {"number of providers of the first", func(of []views.MedianRate) float64 { return float64(of[0].Providers) }, firstOf},
}

func firstOf(values []float64) float64 { return values[0] }

func joinedRates(of []views.MedianRate) schemas.Candle {
	candles := make([]schemas.Candle, len(of))
	for i, r := range of {
		candles[i] = r.Candle
	}
	return joinedRun(candles)
}

// rateRun explains a number of a point of a chart of rates that was merged of several intervals: of so many with a rate, from the start of the first on.
func (w *work) rateRun(ctx context.Context, name string, parts []string, depth int) (*Node, error) {
	field := parts[7]
	run, ok := rateRuns[field]
	if !ok {
		return nil, w.nearField(name, parts, 7, append(slices.Clone(rateSeriesFields), providersField))
	}
	l, err := w.rateLineNamed(name, parts, parts[1], parts[2])
	if err != nil {
		return nil, err
	}
	count, err := strconv.Atoi(parts[6])
	if err != nil || count < 1 || count > mostMerged {
		return nil, query.Invalid("number", "the number of intervals must be 1 to %d", mostMerged)
	}
	interval := func(start time.Time) []string {
		return []string{rateChartForm, parts[1], parts[2], parts[3], parts[4], start.Format(time.RFC3339), field}
	}
	if count == 1 {
		return w.rateChart(ctx, name, interval(l.start), depth)
	}
	provider := parts[3]
	if l.provider = provider; provider == views.AllProviders {
		l.provider = ""
	}
	points, err := w.medianRates(ctx, l, count)
	if err != nil {
		return nil, err
	}
	n := headline(strings.Join([]string{rateRunForm, l.coinID, l.category, provider, l.interval, l.start.Format(time.RFC3339), parts[6], field}, "/"), known(run.value(points)), percent, l.start.UnixNano())
	if field == providersField {
		n.Unit = ""
	}
	n.Method = &Method{Name: "joined-intervals", Version: 1, Formula: fmt.Sprintf("of %d intervals with a rate: %s", count, run.formula)}
	var again []float64
	for _, p := range points {
		if !w.expands(depth) {
			return n, nil
		}
		in, err := w.rateChart(ctx, name, interval(p.Start), depth-1)
		if err != nil {
			return nil, err
		}
		if recomputed := in.again(); recomputed != nil {
			again = append(again, *recomputed)
		}
		n.Inputs = append(n.Inputs, in)
	}
	if len(again) == len(points) {
		n.compare(known(run.joined(again)))
	} else {
		n.Note = fmt.Sprintf("not computed again: %d of the intervals could not be", len(points)-len(again))
	}
	n.fewer(false)
	return n, nil
}

// medianRates are the first intervals of a chart with a rate that have ended, so many from a start on.
func (w *work) medianRates(ctx context.Context, l rateLine, count int) ([]views.MedianRate, error) {
	back := int(w.now.UTC().Truncate(l.step).Sub(l.start) / l.step)
	read, err := w.RateCharts.Read(ctx, views.RateChart{CoinID: l.coinID, Category: l.category, Provider: l.provider, Step: l.step, Intervals: back + int(w.ratesHold(l)/l.step) + 2},
		w.Yields.Snapshot(), w.now)
	if err != nil {
		return nil, err
	}
	points := slices.DeleteFunc(views.MedianRates(read.Series), func(r views.MedianRate) bool {
		return r.Start.Before(l.start) || r.Start.Add(l.step).After(w.asked())
	})
	if len(points) < count || !points[0].Start.Equal(l.start) {
		return nil, query.NotFound("the chart of rates of %s in %s has no %d intervals of %s with a rate that have ended from %s on", strings.ToValidUTF8(l.coinID, "�"), l.category, count, l.interval,
			l.start.Format(time.RFC3339))
	}
	return points[:count], nil
}
