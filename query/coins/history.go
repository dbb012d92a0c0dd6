package coins

import (
	"context"
	"net/http"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
)

const (
	defaultDays = "30"
	maxDays     = 1825
	// hourlyDays is the longest history that has a point for every hour; beyond, every day has one.
	hourlyDays = 7
	day        = 24 * time.Hour
)

// HistoryBody answers GET /api/v1/coins/history/{symbol}.
type HistoryBody struct {
	Symbol       string              `json:"symbol" example:"BTC" doc:"Symbol of the coin, upper case"`
	CoinID       string              `json:"coinId" example:"bitcoin"`
	Ambiguous    bool                `json:"ambiguous,omitempty" doc:"The name is ambiguous: other coins match it too"`
	Alternatives []views.Alternative `json:"alternatives,omitempty"`
	Points       []Point             `json:"points" doc:"Oldest first; intervals without a price are left out"`
	Meta         HistoryMeta         `json:"meta"`
}

// HistoryMeta describes the answer.
type HistoryMeta struct {
	query.Meta
	Granularity string `json:"granularity" enum:"hourly,daily"`
	Reason      string `json:"reason,omitempty" doc:"Why there are no points; not_traded: none of our venues trades the coin"`
}

// Point is the last price of an interval; that of the interval under way is the newest.
type Point struct {
	Timestamp string  `json:"timestamp" format:"date-time" doc:"Start of the interval"`
	Value     float64 `json:"value" explain:"chart-point/{coinId}/{meta.granularity}/{timestamp}" doc:"USD"`
	Origin    string  `json:"origin" enum:"live,backfill,import,mixed" doc:"live: published at that time; backfill: from the venues' candles; import: from such candles of imported files"`
}

func (u *Unit) priceHistory() query.Endpoint {
	return query.Endpoint{
		Method: http.MethodGet, Path: "/api/v1/coins/history/{symbol}", ID: "getCoinHistory", Tool: "coin_history", Tag: "coins",
		Summary:     "Price history of a coin",
		Description: "Hourly closing prices for up to 7 days, daily ones beyond.",
		Params: []query.Param{
			query.CoinParam("symbol", query.Path, "BTC"),
			{Name: "days", Kind: query.Integer, Default: defaultDays, Min: 1, Max: maxDays, Doc: "Number of days back."},
			query.AsOfParam("Point in time. The history that was given then, up to the interval that was under way. Default: now."), query.KnowledgeParam},
		Body: HistoryBody{}, NotFound: true, Handle: u.getHistory,
	}
}

func (u *Unit) getHistory(ctx context.Context, r *query.Request) (query.Answer, error) {
	coin, err := u.find(r.Text("symbol"))
	if err != nil {
		return query.Answer{}, err
	}
	body := HistoryBody{Symbol: coin.Symbol, CoinID: coin.ID, Ambiguous: len(coin.Others) > 0, Alternatives: coin.Alternatives(), Points: []Point{}}
	days := int(r.Integer("days"))
	step, intervals := day, days
	body.Meta.Granularity = "daily"
	if days <= hourlyDays {
		step, intervals = time.Hour, 24*days
		body.Meta.Granularity = "hourly"
	}
	body.Meta.Clamped = r.Clamped()
	if coin.Own.Rank == 0 {
		body.Meta.Reason = "not_traded"
		return query.Encode(body)
	}
	var candles []schemas.Candle
	if asOf, past := r.Time("asOf"); past {
		candles, err = r.CandlesAsOf(ctx, u.candles, coin.Own, step, intervals, asOf)
	} else if err = r.OnlyWithAsOf(query.KnowledgeParam.Name); err == nil {
		candles, err = u.candles.Read(ctx, coin.Own, step, intervals, r.Now)
	}
	if err != nil {
		return query.Answer{}, err
	}
	for _, c := range candles {
		body.Points = append(body.Points, Point{query.FormatTime(c.Start.UnixNano()), c.Close, string(c.Origin)})
		body.Meta.LastUpdated = query.FormatTime(c.Newest.UnixNano())
	}
	body.Meta.Count = len(body.Points)
	answer, err := query.Encode(body)
	e := u.priceCache.Entry(coin.Own)
	answer.Simulated = e != nil && e.Price.Simulated
	return answer, err
}
