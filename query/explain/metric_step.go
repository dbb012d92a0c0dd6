package explain

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
)

// metricCandleField is a number of what a metric did in an hour or a day. Of is the minutes that it is made of.
type metricCandleField struct {
	name, formula string
	value         func(views.SummaryOHLC) float64
	of            func([]metricValue) []metricValue
}

func lowest(a, b metricValue) int {
	switch {
	case a.value < b.value:
		return -1
	case a.value > b.value:
		return 1
	}
	return 0
}

var metricCandleFields = []metricCandleField{
	{"open", "value of the first minute", func(c views.SummaryOHLC) float64 { return c.Open }, func(m []metricValue) []metricValue { return m[:1] }},
	{"high", "highest value of a minute", func(c views.SummaryOHLC) float64 { return c.High },
		func(m []metricValue) []metricValue { return []metricValue{slices.MaxFunc(m, lowest)} }},
	{"low", "lowest value of a minute", func(c views.SummaryOHLC) float64 { return c.Low },
		func(m []metricValue) []metricValue { return []metricValue{slices.MinFunc(m, lowest)} }},
	{"close", "value of the last minute", func(c views.SummaryOHLC) float64 { return c.Close }, func(m []metricValue) []metricValue { return m[len(m)-1:] }},
	{"avg", "mean of the values of its minutes, added up from the lowest on", func(c views.SummaryOHLC) float64 { return views.Mean(c.Average, 1, c.Low, c.High) },
		func(m []metricValue) []metricValue { return m }},
	{"samples", "number of minutes with a value", func(c views.SummaryOHLC) float64 { return float64(c.Samples) }, func(m []metricValue) []metricValue { return m }},
}

func metricCandleNames() []string {
	return namesOf(metricCandleFields, func(f metricCandleField) string { return f.name })
}

// steps are the lengths of candles of metrics, by the names that answers have of them.
var steps = map[string]time.Duration{"hourly": time.Hour, "daily": oneDay}

// metricCandle explains what a metric did in a step. It is joined again from the values of its minutes that series show, each of which can be asked for.
func (w *work) metricCandle(ctx context.Context, of seriesMetric, granularity string, start time.Time, field metricCandleField, depth int) (*Node, error) {
	step := steps[granularity]
	if end := start.Add(step); w.past && w.asOf.Before(end) {
		return nil, query.NotFound("the step ends at %s, and had not ended by %s", end.Format(time.RFC3339), query.FormatTime(w.asOf.UnixNano()))
	}
	served, err := w.metricStep(ctx, of, start, step)
	if err != nil {
		return nil, err
	}
	minutes, err := w.metricMinutes(ctx, of, start, start.Add(step))
	if err != nil {
		return nil, err
	}
	number := "metric/" + of.name + "/" + granularity + "/" + strconv.FormatInt(start.Unix(), 10) + "/" + field.name
	if len(served) != 1 || len(minutes) == 0 {
		reported, err := w.metricPast(ctx, of, start, start.Add(step))
		if err != nil {
			return nil, err
		}
		if len(reported) > 0 && len(minutes) == 0 {
			return w.pastCandle(ctx, of, number, field, start, step, reported, depth)
		}
		return nil, notMeasured(of, "the step that begins at", start)
	}
	// A minute may have ended since the step was read.
	minutes = minutes[:min(len(minutes), served[0].Samples)]
	value, unit := field.value(served[0]), of.unit()
	if field.name == "samples" {
		unit = ""
	}
	n := headline(number, &value, unit, start.UnixNano())
	n.Method = &Method{Name: "joined-minutes", Version: 1, Formula: field.formula}
	n.compare(known(field.value(joined(minutes))))
	for _, m := range field.of(minutes) {
		in := headline(of.point(m.at), &m.value, of.unit(), m.at.UnixNano())
		if len(n.Inputs) < shown && w.expands(depth-1) {
			if in, err = w.metricPoint(ctx, of, m.at, depth-1); err != nil {
				return nil, err
			}
		}
		n.Inputs = append(n.Inputs, in)
	}
	n.fewer(false)
	return n, nil
}

// joined is what a metric did over at least one minute.
func joined(minutes []metricValue) views.SummaryOHLC {
	values := make([]float64, len(minutes))
	for i, m := range minutes {
		values[i] = m.value
	}
	c := views.SummaryOHLC{Open: values[0], Close: values[len(values)-1], Samples: len(values)}
	slices.Sort(values)
	sum := 0.0
	for _, value := range values {
		sum += value
	}
	c.Low, c.High, c.Average = values[0], values[len(values)-1], sum/float64(len(values))
	return c
}
