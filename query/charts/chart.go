package charts

import (
	"context"
	"net/http"
	"strings"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/limits"
)

func (u *Unit) one() query.Endpoint {
	return query.Endpoint{
		Method: http.MethodGet, Path: "/api/v1/charts/{coinId}", ID: "getChart", Tag: "charts",
		Summary:     "Price history of a coin",
		Description: "Candles of the published price, up to the one under way, whose complete is false. Where it was not published, they are made of the venues' own candles of that time, if these were back-filled: origin says so. An interval without either is left out. At most 1,000 points: beyond, ohlc joins neighbours and simple keeps the points that shape the line; the first and the last stay, and stats are over all.",
		Params:      []query.Param{coinParam, timeframeParam, formatParam},
		Body:        ChartBody{}, NotFound: true, Class: limits.Charts, Handle: u.getOne,
	}
}

func (u *Unit) getOne(ctx context.Context, r *query.Request) (query.Answer, error) {
	coin, ok := u.find(r.Text("coinId"))
	if !ok {
		return query.Answer{}, unknown(r.Text("coinId"))
	}
	m, err := u.chart(ctx, coin, named(r.Text("timeframe")), r.Text("format"), r.Now)
	if err != nil {
		return query.Answer{}, err
	}
	return query.Answer{Body: m.body, Simulated: u.simulated(coin)}, nil
}

func unknown(name string) error {
	return query.NotFound("no coin has the id or symbol %q", strings.ToValidUTF8(name, "�"))
}
