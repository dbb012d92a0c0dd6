package globalstats

import (
	"context"
	"slices"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// marketMetric is a metric of the whole market: what a summary says of it, and an hour of the past.
type marketMetric struct {
	measured func(*eventsv1.Summary) float64
	told     func(query.GlobalPast) float64
}

var ofMarket = map[string]marketMetric{
	"total_market_cap": {(*eventsv1.Summary).GetTotalMarketCap, func(p query.GlobalPast) float64 { return p.TotalMarketCap }},
	"total_volume_24h": {(*eventsv1.Summary).GetTotalVolume24H, func(p query.GlobalPast) float64 { return p.TotalVolume24h }},
	"btc_dominance":    {(*eventsv1.Summary).GetBtcDominance, func(p query.GlobalPast) float64 { return p.BTCDominance }},
	"eth_dominance":    {(*eventsv1.Summary).GetEthDominance, func(p query.GlobalPast) float64 { return p.ETHDominance }},
}

func (u *Unit) newSeries() *series {
	return &series{
		metrics: []string{"total_market_cap", "total_volume_24h", "btc_dominance", "eth_dominance"}, held: newSeriesCache(),
		points: u.marketPoints, candles: u.marketCandles,
	}
}

func (u *Unit) marketPoints(ctx context.Context, metric string, from, to time.Time, step time.Duration) ([]MetricPoint, error) {
	summaries, err := u.history.Summaries(ctx, from, to, step)
	if err != nil {
		return nil, err
	}
	var points []MetricPoint
	taken := map[int64]bool{}
	for _, s := range summaries {
		taken[stepOf(s.Time, step)] = true
		points = append(points, MetricPoint{Timestamp: seconds(s.Time), Value: ofMarket[metric].measured(s)})
	}
	past, err := u.untaken(ctx, from, to, step, taken)
	for _, hours := range past {
		last := hours[len(hours)-1]
		points = append(points, MetricPoint{Timestamp: last.Time.Unix(), Value: ofMarket[metric].told(last), Told: told(hours)})
	}
	slices.SortFunc(points, func(a, b MetricPoint) int { return int(a.Timestamp - b.Timestamp) })
	return points, err
}

func (u *Unit) marketCandles(ctx context.Context, metric string, from, end, last time.Time, step time.Duration) ([]MetricCandle, error) {
	summaries, err := u.history.SummaryOHLC(ctx, metric, from, end, step)
	if err != nil {
		return nil, err
	}
	candles, taken := measured(summaries), map[int64]bool{}
	for _, c := range candles {
		taken[c.Timestamp*int64(time.Second)/int64(step)] = true
	}
	past, err := u.untaken(ctx, from, last, step, taken)
	for _, hours := range past {
		value := ofMarket[metric].told
		c := MetricCandle{
			Timestamp: stepOf(hours[0].Time.UnixNano(), step) * int64(step/time.Second), Open: value(hours[0]), High: value(hours[0]), Low: value(hours[0]),
			Close: value(hours[len(hours)-1]), Samples: len(hours), Told: told(hours),
		}
		sum := 0.0
		for _, hour := range hours {
			c.High, c.Low = max(c.High, value(hour)), min(c.Low, value(hour))
			sum += value(hour)
		}
		c.Avg = min(max(sum/float64(len(hours)), c.Low), c.High) // a sum of equal numbers may not divide into them
		candles = append(candles, c)
	}
	slices.SortFunc(candles, func(a, b MetricCandle) int { return int(a.Timestamp - b.Timestamp) })
	return candles, err
}

// untaken are the hours of the past by steps, of those in which nothing was measured: a step never mixes both, since they
// sum over other coins.
func (u *Unit) untaken(ctx context.Context, from, to time.Time, step time.Duration, taken map[int64]bool) ([][]query.GlobalPast, error) {
	past, err := u.history.GlobalPast(ctx, from, to)
	var steps [][]query.GlobalPast
	at := int64(-1)
	for _, hour := range past {
		switch s := stepOf(hour.Time.UnixNano(), step); {
		case taken[s]:
		case s == at:
			steps[len(steps)-1] = append(steps[len(steps)-1], hour)
		default:
			at, steps = s, append(steps, []query.GlobalPast{hour})
		}
	}
	return steps, err
}

// stepOf numbers the step that an instant ends or lies in: the end of a step's last minute is the beginning of the next.
func stepOf(at int64, step time.Duration) int64 { return (at - 1) / int64(step) }

// told marks a row that was told afterwards, by the least that its hours cover.
func told(hours []query.GlobalPast) Told {
	t := Told{Origin: string(schemas.OriginBackfill)}
	for _, hour := range hours {
		if hour.Coverage != nil && (t.Coverage == nil || *hour.Coverage < *t.Coverage) {
			t.Coverage = hour.Coverage
		}
	}
	return t
}
