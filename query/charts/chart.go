package charts

import (
	"context"
	"net/http"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/limits"
)

func (u *Unit) one() query.Endpoint {
	return query.Endpoint{
		Method: http.MethodGet, Path: "/api/v1/charts/{coinId}", ID: "getChart", Tag: "charts",
		Summary:     "Price history of a coin",
		Description: "Candles of the published price, up to the current one (complete is false). Intervals without a published price are filled from the venues' candles, if these were backfilled (see origin); intervals without either are left out. At most 1,000 points: beyond that, ohlc merges neighbouring candles and simple keeps the points that preserve the shape of the line; the first and last points are kept, and stats cover all points.",
		Params:      []query.Param{coinParam, timeframeParam, formatParam, asOfParam, query.KnowledgeParam},
		Body:        ChartBody{}, NotFound: true, Class: limits.Charts, Handle: u.getOne,
	}
}

func (u *Unit) getOne(ctx context.Context, r *query.Request) (query.Answer, error) {
	coin, ok := u.find(r.Text("coinId"))
	if !ok {
		return query.Answer{}, u.unknown(r.Text("coinId"))
	}
	m, err := u.asked(ctx, r, coin, named(r.Text("timeframe")), r.Text("format"))
	if err != nil {
		return query.Answer{}, err
	}
	return query.Answer{Body: m.body, Simulated: u.simulated(coin), MadeAt: m.at}, nil
}
