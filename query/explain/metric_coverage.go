package explain

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
)

const coverageForm = "metric-coverage"

// coverageSteps are the lengths of steps of points and candles of metrics, by the names that answers have of them.
var coverageSteps = map[string]time.Duration{"5m": 5 * time.Minute, "1h": time.Hour, "4h": 4 * time.Hour, "hourly": time.Hour, "daily": oneDay}

var coverageStepNames = []string{"5m", "1h", "4h", "hourly", "daily"}

// coverage explains how much of what is measured a source reported afterwards of a step: of a point, by the time of its last value, or of a candle, by its start.
func (w *work) coverage(ctx context.Context, name string, parts []string, depth int) (*Node, error) {
	i := slices.Index(metricNames(), parts[1])
	if i < 0 {
		return nil, w.nearField(name, parts, 1, metricNames())
	}
	step, ok := coverageSteps[parts[2]]
	if !ok {
		return nil, w.nearField(name, parts, 2, coverageStepNames)
	}
	at, ok := instant(parts[3])
	if !ok {
		return nil, query.Invalid("number", "the time must be in Unix seconds or as 2026-01-31T12:00:00Z")
	}
	start := at.Truncate(step)
	if _, candle := steps[parts[2]]; !candle { // a point belongs to the step that it ends or is in
		start = at.Add(-time.Nanosecond).Truncate(step)
	} else if !start.Equal(at) {
		return nil, query.Invalid("number", "the start must be the beginning of an hour or a day (UTC)")
	}
	return w.coverageOf(ctx, seriesMetrics[i], parts[2], at, start, step, depth)
}

// coverageTries is how often it is asked which total is the newest, until it is the same before and after: a minute may end in between.
const coverageTries = 3

func (w *work) coverageOf(ctx context.Context, of seriesMetric, granularity string, at, start time.Time, step time.Duration, depth int) (*Node, error) {
	ofDefi := of.defi != ""
	values, measured, total, err := w.covering(ctx, of, start, start.Add(step))
	if err != nil {
		return nil, err
	}
	own, err := w.metricMinutes(ctx, of, start, start.Add(step))
	if err != nil {
		return nil, err
	}
	if w.past { // what was measured later does not count
		own = slices.DeleteFunc(own, func(v metricValue) bool { return v.at.After(measured) })
	}
	least := (*pastValue)(nil)
	for i, v := range values {
		if v.coverage != nil && (least == nil || *v.coverage < *least.coverage) {
			least = &values[i]
		}
	}
	switch {
	case len(own) > 0:
		return nil, query.NotFound("%s was measured in the step that begins at %s: only what a source reported afterwards has a coverage", of.name, start.Format(time.RFC3339))
	case least == nil || measured.IsZero():
		return nil, query.NotFound("no source reported %s afterwards for the step that begins at %s, or no total was measured with which to compare it", of.name, start.Format(time.RFC3339))
	}
	n := headline(coverageForm+"/"+of.name+"/"+granularity+"/"+strconv.FormatInt(at.Unix(), 10), least.coverage, percent, least.at.UnixNano())
	n.Method = &Method{Name: "coverage", Version: 1, Formula: "100 x newest total that " + least.source + " reports / newest total that was measured, at most 100"}
	if !ofDefi {
		n.Method.Formula = "100 x sum of the newest market caps of the coins of the hour that " + least.source + " still reports, added up from the least on / newest total market cap that was measured, at most 100; of several hours the least"
	}
	if !w.expands(depth) {
		return n, nil
	}
	return n, w.coverageInputs(ctx, n, of, *least, measured, total, max(depth-1, 1), depth)
}

// covering are the values that a source reported afterwards in (from, to], and the total that they are compared with: the newest one, or that of the minute that was served
// at the instant asked for.
func (w *work) covering(ctx context.Context, of seriesMetric, from, to time.Time) (values []pastValue, measured time.Time, total float64, err error) {
	ofDefi := of.defi != ""
	if w.past {
		if values, err = w.metricPast(ctx, of, from, to); err != nil {
			return nil, measured, 0, err
		}
		if measured, total, err = w.totalServed(ctx, ofDefi); err != nil {
			return nil, measured, 0, err
		}
		for i := range values {
			if values[i].coverage = nil; total > 0 {
				values[i].coverage = known(min(100, 100*values[i].told/total))
			}
		}
		return values, measured, total, nil
	}
	for range coverageTries {
		before, _, err := w.History.NewestTotal(ctx, ofDefi)
		if err != nil {
			return nil, measured, 0, err
		}
		if values, err = w.metricPast(ctx, of, from, to); err != nil {
			return nil, measured, 0, err
		}
		if measured, total, err = w.History.NewestTotal(ctx, ofDefi); err != nil {
			return nil, measured, 0, err
		}
		if before.Equal(measured) {
			break
		}
	}
	return values, measured, total, nil
}

// totalServed is the total of the minute that was served at the instant asked for.
func (w *work) totalServed(ctx context.Context, ofDefi bool) (measured time.Time, total float64, err error) {
	if ofDefi {
		summary, err := w.Defi.At(ctx, w.asOf)
		if err != nil || summary == nil {
			return measured, 0, query.FaultOfPast(err, w.asOf)
		}
		return time.Unix(0, summary.Time).UTC(), summary.GetTotalTvl(), nil
	}
	m, err := w.whole(ctx)
	if err != nil {
		return measured, 0, err
	}
	return time.Unix(0, m.at).UTC(), m.summary.TotalMarketCap, nil
}

// coverageInputs computes a coverage again of the records of the source and of the newest total.
func (w *work) coverageInputs(ctx context.Context, n *Node, of seriesMetric, is pastValue, measured time.Time, total float64, levels, depth int) error {
	ofDefi, whole := of.defi != "", seriesMetrics[slices.Index(metricNames(), "total_market_cap")]
	if ofDefi {
		whole = of
	}
	compared, err := w.metricPoint(ctx, whole, measured, levels)
	if err != nil {
		return err
	}
	n.Inputs = []*Node{compared}
	newest, err := w.History.NewestParts(ctx, ofDefi, is.source)
	if err != nil {
		return err
	}
	hour, err := w.History.ReportedParts(ctx, ofDefi, is.at.Add(-time.Nanosecond), is.at)
	if err != nil {
		return err
	}
	// Of coins that the hour lacks nothing counts.
	newest = slices.DeleteFunc(newest, func(p views.ReportedPart) bool {
		return !slices.ContainsFunc(hour, func(h views.ReportedPart) bool { return h.Source == is.source && h.SourceID == p.SourceID })
	})
	again, err := w.reportedAgain(ctx, newest)
	if err != nil {
		why := lacks(err)
		if why == "" {
			return err
		}
		n.notReproduced("not computed again: " + why)
		return nil
	}
	var told []float64
	for _, p := range again {
		n.Inputs = append(n.Inputs, p.node(false))
		if p.value != nil {
			told = append(told, *p.value)
		}
	}
	switch recomputed := compared.again(); {
	case len(told) < len(again):
		n.notReproduced("a record of the source is not in the log any more, or states something else")
	case recomputed == nil || *compared.Value != total:
		n.notReproduced("the newest total could not be computed again")
	default:
		n.compare(known(min(100, 100*sumFromLeast(told) / *recomputed)))
	}
	if depth <= 1 {
		compared.Inputs, compared.LeftOut = nil, nil
	}
	n.fewer(false)
	return nil
}
