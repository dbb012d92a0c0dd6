package explain

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
)

// metricValue is a metric at the end of a minute, as a series has it.
type metricValue struct {
	at    time.Time
	value float64
}

// seriesMetric is a metric of which series are served: a number of the whole market at the end of each minute.
type seriesMetric struct {
	name string
	// number is the field of the whole market.
	number string
}

var seriesMetrics = []seriesMetric{
	{"total_market_cap", "totalMarketCap"}, {"total_volume_24h", "totalVolume24h"}, {"btc_dominance", "btcDominance"}, {"eth_dominance", "ethDominance"},
}

func (of seriesMetric) field() globalField {
	return globalFields[slices.IndexFunc(globalFields, func(f globalField) bool { return f.name == of.number })]
}

func metricNames() []string {
	names := make([]string, len(seriesMetrics))
	for i, m := range seriesMetrics {
		names[i] = m.name
	}
	return names
}

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
	names := make([]string, len(metricCandleFields))
	for i, f := range metricCandleFields {
		names[i] = f.name
	}
	return names
}

// steps are the lengths of candles of metrics, by the names that answers have of them.
var steps = map[string]time.Duration{"hourly": time.Hour, "daily": oneDay}

// metric explains a point of a series, or a number of what a metric did in an hour or a day.
func (w *work) metric(ctx context.Context, name string, parts []string, depth int) (*Node, error) {
	i := slices.Index(metricNames(), parts[1])
	if i < 0 {
		return nil, w.nearField(name, parts, 1, metricNames())
	}
	of := seriesMetrics[i]
	if len(parts) == 3 {
		end, ok := instant(parts[2])
		if !ok || !end.Truncate(time.Minute).Equal(end) {
			return nil, query.Invalid("number", "the time of a point must be the end of a minute, as Unix seconds or as 2026-01-31T12:00:00Z")
		}
		return w.metricPoint(ctx, of, end, depth)
	}
	if len(parts) == 4 {
		return nil, unknown(name, name+"/close")
	}
	step, ok := steps[parts[2]]
	if !ok {
		return nil, w.nearField(name, parts, 2, []string{"hourly", "daily"})
	}
	at := slices.Index(metricCandleNames(), parts[4])
	if at < 0 {
		return nil, w.nearField(name, parts, 4, metricCandleNames())
	}
	start, ok := instant(parts[3])
	if !ok || !start.Truncate(step).Equal(start) {
		return nil, query.Invalid("number", "the start must be the beginning of an hour or a day (UTC), as Unix seconds or as 2026-01-31T12:00:00Z")
	}
	return w.metricCandle(ctx, of, parts[2], start, metricCandleFields[at], depth)
}

// instant reads Unix seconds, or a time by RFC 3339, of the years that Unix nanoseconds can hold.
func instant(text string) (time.Time, bool) {
	at, err := time.Parse(time.RFC3339, text)
	if seconds, fault := strconv.ParseInt(text, 10, 64); fault == nil {
		at, err = time.Unix(seconds, 0), nil
	}
	return at.UTC(), err == nil && at.Unix() > 0 && at.Year() < 2262
}

// metricMinutes are the values of a metric of the minutes that end in (from, to], oldest first, of those in which it was measured.
func (w *work) metricMinutes(ctx context.Context, of seriesMetric, from, to time.Time) (values []metricValue, err error) {
	summaries, err := w.History.Summaries(ctx, from, to, time.Minute)
	for _, s := range summaries {
		w.simulated = w.simulated || s.Simulated
		values = append(values, metricValue{time.Unix(0, s.Time).UTC(), *of.field().value(s)})
	}
	return values, err
}

// metricPoint explains what a metric was at the end of a minute.
func (w *work) metricPoint(ctx context.Context, of seriesMetric, end time.Time, depth int) (*Node, error) {
	if w.past && w.asOf.Before(end) {
		return nil, query.NotFound("the minute had not ended by %s", query.FormatTime(w.asOf.UnixNano()))
	}
	served, err := w.metricMinutes(ctx, of, end.Add(-time.Minute), end)
	if err != nil {
		return nil, err
	}
	if len(served) != 1 || !served[0].at.Equal(end) {
		return nil, notMeasured(of, "the minute that ended at", end)
	}
	m, err := w.wholeAt(ctx, end.UnixNano())
	if err != nil {
		return nil, err
	}
	if m.at != end.UnixNano() {
		return nil, notMeasured(of, "the log for the minute that ended at", end)
	}
	n, err := w.globalOf(ctx, m, of.field(), depth)
	if err != nil {
		return nil, err
	}
	// What the log gives again is compared with what is served now, which a replay may have changed since.
	n.Number, n.Value, n.Recomputed = of.point(end), &served[0].value, nil
	n.compare(of.field().value(m.again))
	return n, nil
}

// notMeasured is what is answered of a point or a candle that has no value of our own.
func notMeasured(of seriesMetric, where string, at time.Time) error {
	return query.NotFound("%s was not measured in %s %s: points with origin backfill are what a source reported afterwards, and not explained", of.name, where, at.Format(time.RFC3339))
}

// point names what the metric was at the end of a minute.
func (of seriesMetric) point(end time.Time) string {
	return "metric/" + of.name + "/" + strconv.FormatInt(end.Unix(), 10)
}

// metricCandle explains what a metric did in a step. It is joined again from the values of its minutes that series show, each of which can be asked for.
func (w *work) metricCandle(ctx context.Context, of seriesMetric, granularity string, start time.Time, field metricCandleField, depth int) (*Node, error) {
	step := steps[granularity]
	if end := start.Add(step); w.past && w.asOf.Before(end) {
		return nil, query.NotFound("the step ends at %s, and had not ended by %s", end.Format(time.RFC3339), query.FormatTime(w.asOf.UnixNano()))
	}
	served, err := w.History.SummaryOHLC(ctx, of.name, start, start.Add(step), step)
	if err != nil {
		return nil, err
	}
	minutes, err := w.metricMinutes(ctx, of, start, start.Add(step))
	if err != nil {
		return nil, err
	}
	if len(served) != 1 || len(minutes) == 0 {
		return nil, notMeasured(of, "the step that begins at", start)
	}
	// A minute may have ended since the step was read.
	minutes = minutes[:min(len(minutes), served[0].Samples)]
	value, unit := field.value(served[0]), of.field().unit
	if field.name == "samples" {
		unit = ""
	}
	n := headline("metric/"+of.name+"/"+granularity+"/"+strconv.FormatInt(start.Unix(), 10)+"/"+field.name, &value, unit, start.UnixNano())
	n.Method = &Method{Name: "joined-minutes", Version: 1, Formula: field.formula}
	n.compare(known(field.value(joined(minutes))))
	for _, m := range field.of(minutes) {
		in := headline(of.point(m.at), &m.value, of.field().unit, m.at.UnixNano())
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
