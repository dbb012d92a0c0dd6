package charts

import (
	"context"
	"net/http"
	"time"

	"github.com/marketlog/marketlog/query"
)

// CurrentBody answers GET /api/v1/charts/{coinId}/current.
type CurrentBody struct {
	Data Current     `json:"data"`
	Meta CurrentMeta `json:"meta"`
}

// Current is where a chart ends.
type Current struct {
	CoinID    string   `json:"coinId" example:"bitcoin"`
	Price     *float64 `json:"price,omitempty" doc:"USD; left out where there is none, and meta.reason says why"`
	Source    string   `json:"source,omitempty" doc:"The accepted provider nearest to the price"`
	Timestamp string   `json:"timestamp,omitempty" format:"date-time" doc:"The second that was evaluated"`
	IsStale   bool     `json:"isStale"`
}

// CurrentMeta tells about the answer.
type CurrentMeta struct {
	query.Meta
	IsStale bool   `json:"isStale" doc:"The price is older than 30 s, or was kept for a reason"`
	Reason  string `json:"reason,omitempty" doc:"Why there is no price, or why it was kept"`
}

func (u *Unit) current() query.Endpoint {
	return query.Endpoint{
		Method: http.MethodGet, Path: "/api/v1/charts/{coinId}/current", ID: "getChartCurrent", Tag: "charts",
		Summary: "Current price of a coin, where its chart ends",
		Params:  []query.Param{coinParam}, Body: CurrentBody{}, NotFound: true, MaxAge: 30 * time.Second, Class: query.Charts, Hot: true, Handle: u.getCurrent,
	}
}

func (u *Unit) getCurrent(_ context.Context, r *query.Request) (query.Answer, error) {
	coin, ok := u.find(r.Text("coinId"))
	if !ok {
		return query.Answer{}, unknown(r.Text("coinId"))
	}
	if u.board.Now() == 0 {
		return query.Answer{}, query.Starting("no price was read yet")
	}
	body := CurrentBody{Data: Current{CoinID: coin.ID}}
	e := u.board.Entry(coin)
	if e == nil {
		body.Meta.Reason = "no_price"
		return query.Encode(body)
	}
	fresh := u.board.Freshness(e, r.Now)
	encoded, err := u.bodies.Get(e, fresh, func() (*query.Body, error) {
		body.Data = Current{coin.ID, &e.Price.Price, e.Price.Source, query.FormatTime(e.Price.Time), fresh.Stale}
		body.Meta.Count, body.Meta.LastUpdated, body.Meta.Reason = 1, query.FormatTime(e.Latest.Time), e.Latest.Reason
		body.Meta.IsStale = fresh.Stale
		return query.NewBody(body)
	})
	return query.Answer{Body: encoded, Simulated: e.Price.Simulated}, err
}
