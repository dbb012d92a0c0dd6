package globalstats

import (
	"context"
	"time"

	"github.com/marketlog/marketlog/query/views"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// marketMetric is a metric of the whole market: what a summary reports of it, and an hour of the past.
type marketMetric struct {
	measured func(*eventsv1.Summary) float64
	value    func(views.GlobalPast) float64
}

var ofMarket = map[string]marketMetric{
	"total_market_cap": {(*eventsv1.Summary).GetTotalMarketCap, func(p views.GlobalPast) float64 { return p.TotalMarketCap }},
	"total_volume_24h": {(*eventsv1.Summary).GetTotalVolume24H, func(p views.GlobalPast) float64 { return p.TotalVolume24h }},
	"btc_dominance":    {(*eventsv1.Summary).GetBtcDominance, func(p views.GlobalPast) float64 { return p.BTCDominance }},
	"eth_dominance":    {(*eventsv1.Summary).GetEthDominance, func(p views.GlobalPast) float64 { return p.ETHDominance }},
}

func (u *Unit) newSeries() *series {
	return &series{
		metrics: []string{"total_market_cap", "total_volume_24h", "btc_dominance", "eth_dominance"}, history: u.history, held: newSeriesCache(),
		points: u.marketPoints, candles: u.marketCandles, past: u.backfilledValues,
		has: func(ctx context.Context, minute time.Time) (bool, error) {
			found, err := u.history.Summaries(ctx, minute.Add(-time.Second), minute, time.Second)
			return len(found) > 0, err
		},
	}
}

func (u *Unit) marketPoints(ctx context.Context, metric string, from, to time.Time, step time.Duration) ([]MetricPoint, error) {
	summaries, err := u.history.Summaries(ctx, from, to, step)
	if err != nil {
		return nil, err
	}
	var points []MetricPoint
	for _, s := range summaries {
		points = append(points, MetricPoint{Timestamp: seconds(s.Time), Value: ofMarket[metric].measured(s)})
	}
	return points, nil
}

func (u *Unit) marketCandles(ctx context.Context, metric string, from, to time.Time, step time.Duration) ([]MetricCandle, error) {
	summaries, err := u.history.SummaryOHLC(ctx, metric, from, to, step)
	return measured(summaries), err
}

// backfilledValues are the full hours that a source reported afterwards.
func (u *Unit) backfilledValues(ctx context.Context, metric string, from, to time.Time) ([]pastValue, error) {
	hours, err := u.history.GlobalPast(ctx, from, to)
	past := make([]pastValue, 0, len(hours))
	for _, hour := range hours {
		past = append(past, pastValue{hour.Time, ofMarket[metric].value(hour), hour.Told, hour.Coverage})
	}
	return past, err
}
