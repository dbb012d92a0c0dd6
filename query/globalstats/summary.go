package globalstats

import (
	"context"
	"net/http"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/schemas"
)

// SummaryBody answers GET /api/v1/global-stats/summary.
type SummaryBody struct {
	Data Summary `json:"data"`
}

// Summary is the whole market at a glance.
type Summary struct {
	TotalMarketCapUSD float64          `json:"totalMarketCapUsd" explain:"global/totalMarketCap" doc:"USD"`
	Volume24hUSD      float64          `json:"volume24hUsd" explain:"global/totalVolume24h" doc:"USD"`
	BTCDominance      float64          `json:"btcDominance" explain:"global/btcDominance" doc:"Percent of the total market cap"`
	ETHDominance      float64          `json:"ethDominance" explain:"global/ethDominance" doc:"Percent of the total market cap"`
	Trend24h          *float64         `json:"trend24h,omitempty" explain:"global/trend24h" doc:"Change of the market cap as a fraction: 0.02 is +2%"`
	Metrics           Metrics          `json:"metrics" doc:"Totals and dominance of the whole market"`
	Movers            SummaryMovers    `json:"movers" doc:"Largest gainers and losers within 24 hours, by rank segment"`
	Sentiment         SummarySentiment `json:"sentiment" doc:"Number of coins that rose and fell within 24 hours, by rank segment"`
	FearGreed         *FearGreed       `json:"fearGreed,omitempty" doc:"Fear and greed index; absent before its first value"`
	Timestamp         int64            `json:"timestamp" doc:"Unix seconds"`
	Age               query.AgeMeta    `json:"_meta"`
}

// SummaryToolBody is the tool's form: movers, sentiment and the index of fear and greed are tools of their own.
type SummaryToolBody struct {
	TotalMarketCapUSD float64       `json:"totalMarketCapUsd" explain:"global/totalMarketCap" doc:"USD"`
	Volume24hUSD      float64       `json:"volume24hUsd" explain:"global/totalVolume24h" doc:"USD"`
	BTCDominance      float64       `json:"btcDominance" explain:"global/btcDominance" doc:"Percent of the total market cap"`
	ETHDominance      float64       `json:"ethDominance" explain:"global/ethDominance" doc:"Percent of the total market cap"`
	Trend24h          *float64      `json:"trend24h,omitempty" explain:"global/trend24h" doc:"Change of the market cap as a fraction: 0.02 is +2%"`
	Timestamp         int64         `json:"timestamp" doc:"Unix seconds"`
	Age               query.AgeMeta `json:"_meta"`
}

// SummaryMovers holds the movers of each segment.
type SummaryMovers struct {
	Data     []Segment `json:"data" doc:"Segments by rank, each with at most 10 gainers and 10 losers"`
	Segments int       `json:"segments" doc:"Number of segments"`
}

// SummarySentiment holds the sentiment of each segment.
type SummarySentiment struct {
	Data     []Sentiment `json:"data" doc:"Segments by rank"`
	Segments int         `json:"segments" doc:"Number of segments"`
}

func (u *Unit) summary() query.Endpoint {
	return query.Endpoint{
		Method: http.MethodGet, Path: "/api/v1/global-stats/summary", ID: "getMarketSummary", Tool: "market_summary", Tag: tag,
		Summary:     "Overview of the whole market",
		Description: "Market cap, volume and dominance; in the reference view also movers, sentiment, and fear and greed.",
		Params:      []query.Param{asOfParam},
		Body:        SummaryBody{}, ToolBody: SummaryToolBody{}, NotFound: true, Hot: true, Handle: u.getSummary,
	}
}

func (u *Unit) getSummary(ctx context.Context, r *query.Request) (query.Answer, error) {
	of := partCoins | partFearGreed
	if r.View == query.Tool {
		of = 0
	}
	return u.answerAt(ctx, r, key{operation: "summary"}, of, func(now current) (any, error) {
		metrics := metricsOf(now.Summary, now.age)
		if r.View == query.Tool {
			return SummaryToolBody{metrics.TotalMarketCap, metrics.TotalVolume24h, metrics.BTCDominance, metrics.ETHDominance, metrics.Trend24h, metrics.Timestamp, metrics.Age}, nil
		}
		sentiment := sentimentOf(now)
		s := Summary{
			TotalMarketCapUSD: metrics.TotalMarketCap, Volume24hUSD: metrics.TotalVolume24h, BTCDominance: metrics.BTCDominance,
			ETHDominance: metrics.ETHDominance, Trend24h: metrics.Trend24h, Metrics: metrics,
			Movers:    SummaryMovers{Data: []Segment{}, Segments: len(schemas.RankRanges)},
			Sentiment: SummarySentiment{sentiment.Sentiment, sentiment.Segments},
			FearGreed: fearGreedOf(now), Timestamp: metrics.Timestamp, Age: metrics.Age,
		}
		for _, ranks := range schemas.RankRanges {
			s.Movers.Data = append(s.Movers.Data, now.moversIn(ranks, defaultMovers, 0, schemas.MoversMinVolume))
		}
		return SummaryBody{s}, nil
	})
}
