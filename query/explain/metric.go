package explain

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
)

// metricValue is a metric at the end of a minute, as a series has it.
type metricValue struct {
	at    time.Time
	value float64
}

// seriesMetric is a metric of which series are served: a number of the whole market, or of all of DeFi, at the end of each minute that has one.
type seriesMetric struct {
	name string
	// market or defi is the field that it is.
	market, defi string
}

var seriesMetrics = []seriesMetric{
	{"total_market_cap", "totalMarketCap", ""}, {"total_volume_24h", "totalVolume24h", ""}, {"btc_dominance", "btcDominance", ""}, {"eth_dominance", "ethDominance", ""},
	{"defi_tvl", "", "totalTvl"}, {"lending_tvl", "", "lendingTvl"}, {"staking_tvl", "", "stakingTvl"}, {"borrowing_tvl", "", "borrowingTvl"},
	{"lending_apy", "", "lendingApy"}, {"staking_apy", "", "stakingApy"}, {"borrow_apy", "", "borrowApy"},
}

func (of seriesMetric) marketField() globalField {
	return globalFields[slices.IndexFunc(globalFields, func(f globalField) bool { return f.name == of.market })]
}

func (of seriesMetric) defiField() defiField {
	return defiFields[slices.IndexFunc(defiFields, func(f defiField) bool { return f.name == of.defi })]
}

func (of seriesMetric) unit() string {
	if of.defi != "" {
		return of.defiField().unit
	}
	return of.marketField().unit
}

func metricNames() []string {
	return namesOf(seriesMetrics, func(m seriesMetric) string { return m.name })
}

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

// lastSecond is the last one of the years that Unix nanoseconds can hold: what is greater is in milliseconds, as charts have it.
const lastSecond = math.MaxInt64 / int64(time.Second)

// instant reads Unix seconds or milliseconds, or a time by RFC 3339, of the years that Unix nanoseconds can hold.
func instant(text string) (time.Time, bool) {
	at, err := time.Parse(time.RFC3339, text)
	if number, fault := strconv.ParseInt(text, 10, 64); fault == nil {
		if at, err = time.Unix(number, 0), nil; number > lastSecond {
			at = time.UnixMilli(number)
		}
	}
	return at.UTC(), err == nil && at.Unix() > 0 && at.Year() < 2262
}

// metricMinutes are the values of a metric of the minutes that end in (from, to], oldest first, of those that have one.
func (w *work) metricMinutes(ctx context.Context, of seriesMetric, from, to time.Time) (values []metricValue, err error) {
	if of.defi != "" {
		points, err := w.History.DefiSeries(ctx, of.name, from, to, time.Minute)
		for _, p := range points {
			values = append(values, metricValue{p.Time, p.Value})
		}
		return values, err
	}
	summaries, err := w.History.Summaries(ctx, from, to, time.Minute)
	for _, s := range summaries {
		w.simulated = w.simulated || s.Simulated
		values = append(values, metricValue{time.Unix(0, s.Time).UTC(), *of.marketField().value(s)})
	}
	return values, err
}

// metricStep is what a metric did in a step, as it is served; none where it has no value in it.
func (w *work) metricStep(ctx context.Context, of seriesMetric, start time.Time, step time.Duration) ([]views.SummaryOHLC, error) {
	if of.defi != "" {
		return w.History.DefiOHLC(ctx, of.name, start, start.Add(step), step)
	}
	return w.History.SummaryOHLC(ctx, of.name, start, start.Add(step), step)
}

// metricAgain makes the number of a minute again of the log; nil where the log has no such minute.
func (w *work) metricAgain(ctx context.Context, of seriesMetric, end int64, depth int) (n *Node, again *float64, err error) {
	if of.defi == "" {
		m, err := w.wholeAt(ctx, end)
		if err != nil || m.at != end {
			return nil, nil, err
		}
		n, err = w.globalOf(ctx, m, of.marketField(), depth)
		return n, of.marketField().value(m.again), err
	}
	topics := []string{schemas.TopicDefi}
	if of.defiField().rates != nil {
		topics = append(topics, schemas.TopicRates)
	}
	for _, topic := range topics {
		if err := w.agedOut(ctx, topic, end); err != nil {
			return nil, nil, err
		}
	}
	whole, err := w.defiAt(ctx, end)
	if err != nil || whole.summary.Time != end {
		return nil, nil, err
	}
	if n, err = w.defiOf(ctx, whole, of.defiField(), depth); err != nil || whole.again == nil {
		return n, nil, err
	}
	return n, of.defiField().value(whole.again), nil
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
		reported, err := w.metricPast(ctx, of, end.Add(-time.Second), end)
		if err != nil || len(reported) == 0 {
			return nil, cmp.Or(err, notMeasured(of, "the minute that ended at", end))
		}
		parts, err := w.History.ReportedParts(ctx, of.defi != "", end.Add(-time.Second), end)
		if err != nil {
			return nil, err
		}
		return w.pastPoint(ctx, of, reported[0], parts, depth)
	}
	n, again, err := w.metricAgain(ctx, of, end.UnixNano(), depth)
	if err != nil {
		return nil, err
	}
	if n == nil {
		return nil, notMeasured(of, "the log for the minute that ended at", end)
	}
	// What the log gives again is compared with what is served now, which a replay may have changed since.
	n.Number, n.Value, n.Recomputed = of.point(end), &served[0].value, nil
	if again != nil {
		n.compare(again)
	}
	return n, nil
}

// notMeasured is what is answered of a point or a candle that has no value of our own.
func notMeasured(of seriesMetric, where string, at time.Time) error {
	return query.NotFound("%s was not measured in %s %s, nor reported of it afterwards", of.name, where, at.Format(time.RFC3339))
}

// point names what the metric was at the end of a minute.
func (of seriesMetric) point(end time.Time) string {
	return "metric/" + of.name + "/" + strconv.FormatInt(end.Unix(), 10)
}
