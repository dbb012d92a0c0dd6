package globalstats

import (
	"context"
	"net/http"

	"github.com/marketlog/marketlog/query"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// MetricsBody answers GET /api/v1/global-stats/metrics.
type MetricsBody struct {
	Data Metrics `json:"data"`
}

// Metrics are sums and shares over all coins with a known price and supply.
type Metrics struct {
	TotalMarketCap      float64            `json:"totalMarketCap" explain:"global/totalMarketCap" doc:"USD"`
	TotalVolume24h      float64            `json:"totalVolume24h" explain:"global/totalVolume24h" doc:"USD"`
	BTCDominance        float64            `json:"btcDominance" explain:"global/btcDominance" doc:"Percent of the total market cap"`
	ETHDominance        float64            `json:"ethDominance" explain:"global/ethDominance" doc:"Percent of the total market cap"`
	Dominance           map[string]float64 `json:"dominance" explain:"global/dominance/{key}" doc:"Percent of the total market cap of the largest coins, by symbol"`
	MarketCapChange24h  *float64           `json:"marketCapChange24h,omitempty" explain:"global/marketCapChange24h" doc:"Percent"`
	VolumeChange24h     *float64           `json:"volumeChange24h,omitempty" explain:"global/volumeChange24h" doc:"Percent"`
	Trend24h            *float64           `json:"trend24h,omitempty" explain:"global/trend24h" doc:"Change of the market cap as a fraction: 0.02 is +2%"`
	ActiveCoins         uint32             `json:"activeCoins" explain:"global/activeCoins" doc:"Number of coins included"`
	ActiveMarkets       uint32             `json:"activeMarkets" explain:"global/activeMarkets" doc:"Number of markets that their prices were computed from"`
	StablecoinMarketCap float64            `json:"stablecoinMarketCap" explain:"global/stablecoinMarketCap" doc:"USD"`
	StablecoinDominance float64            `json:"stablecoinDominance" explain:"global/stablecoinDominance" doc:"Percent of the total market cap"`
	Timestamp           int64              `json:"timestamp" doc:"Unix seconds"`
	Age                 query.AgeMeta      `json:"_meta"`
}

func (u *Unit) metrics() query.Endpoint {
	return query.Endpoint{
		Method: http.MethodGet, Path: "/api/v1/global-stats/metrics", ID: "getGlobalMetrics", Tag: tag,
		Summary:     "Totals and dominance of the whole market, current or as of a past time",
		Description: "Computed once per minute over all coins with a known price and supply; changes are against 24 hours before and absent if that is not known.",
		Params:      []query.Param{asOfParam},
		Body:        MetricsBody{}, NotFound: true, Hot: true, Handle: u.getMetrics,
	}
}

func (u *Unit) getMetrics(ctx context.Context, r *query.Request) (query.Answer, error) {
	return u.answerAt(ctx, r, key{operation: "metrics"}, 0, func(now current) (any, error) {
		return MetricsBody{metricsOf(now.Summary, now.age)}, nil
	})
}

func metricsOf(s *eventsv1.Summary, age query.Age) Metrics {
	m := Metrics{
		TotalMarketCap: s.TotalMarketCap, TotalVolume24h: s.TotalVolume24H, BTCDominance: s.BtcDominance, ETHDominance: s.EthDominance,
		Dominance: map[string]float64{}, MarketCapChange24h: s.MarketCapChange24H, VolumeChange24h: s.VolumeChange24H, Trend24h: trend(s),
		ActiveCoins: s.ActiveCoins, ActiveMarkets: s.ActiveMarkets, StablecoinMarketCap: s.StablecoinMarketCap, StablecoinDominance: s.StablecoinDominance,
		Timestamp: seconds(s.Time), Age: age.Meta(),
	}
	for _, share := range s.Dominance {
		if _, taken := m.Dominance[share.Symbol]; !taken { // a symbol means the largest coin that has it
			m.Dominance[share.Symbol] = share.Percent
		}
	}
	return m
}

// trend is the only percentage that is reported as a fraction.
func trend(s *eventsv1.Summary) *float64 {
	if s.MarketCapChange24H == nil {
		return nil
	}
	fraction := *s.MarketCapChange24H / 100
	return &fraction
}

// seconds turns Unix nanoseconds into seconds.
func seconds(ns int64) int64 { return ns / 1e9 }
