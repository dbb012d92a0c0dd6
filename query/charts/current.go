package charts

import (
	"context"
	"net/http"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/limits"
	"github.com/marketlog/marketlog/query/views"
)

// CurrentBody answers GET /api/v1/charts/{coinId}/current.
type CurrentBody struct {
	Data Current     `json:"data"`
	Meta CurrentMeta `json:"meta"`
}

// Current is where a chart ends.
type Current struct {
	CoinID string   `json:"coinId" example:"bitcoin"`
	Price  *float64 `json:"price,omitempty" explain:"price/{coinId}" doc:"USD; absent if there is none, with the cause in meta.reason"`
	Source string   `json:"source,omitempty" doc:"The accepted provider nearest to the price, or priceSource if that is not median"`
	// PriceSource is empty where there is no price.
	PriceSource string `json:"priceSource,omitempty" example:"median" doc:"median: computed from venues; else the reference source of the price, if no venue provides one"`
	Timestamp   string `json:"timestamp,omitempty" format:"date-time" doc:"The evaluated second, or the time of the price of priceSource"`
	IsStale     bool   `json:"isStale"`
}

// CurrentMeta describes the answer.
type CurrentMeta struct {
	query.Meta
	IsStale bool   `json:"isStale" doc:"The price is older than 30 s (reference sources: 15 minutes), or was retained for the given reason"`
	Reason  string `json:"reason,omitempty" doc:"Why there is no price, or why it was retained"`
}

func (u *Unit) current() query.Endpoint {
	return query.Endpoint{
		Method: http.MethodGet, Path: "/api/v1/charts/{coinId}/current", ID: "getChartCurrent", Tag: "charts",
		Summary:     "Current price of a coin, to continue its chart",
		Description: "The last published price of our venues or, if they have none or only an old one, that of a reference source, named in priceSource. It stays when it grows stale; meta.reason has the cause if it was retained or there is none.",
		Params:      []query.Param{coinParam}, Body: CurrentBody{}, NotFound: true, MaxAge: 30 * time.Second, Class: limits.Charts, Hot: true, Handle: u.getCurrent,
	}
}

func (u *Unit) getCurrent(_ context.Context, r *query.Request) (query.Answer, error) {
	snapshot := u.catalog.Snapshot()
	coin, ok := snapshot.Find(r.Text("coinId"))
	if !ok {
		return query.Answer{}, u.unknown(r.Text("coinId"))
	}
	if u.priceCache.Now() == 0 {
		return query.Answer{}, query.Starting("no price was read yet")
	}
	body := CurrentBody{Data: Current{CoinID: coin.ID}}
	spot, ok := u.priceCache.Spot(snapshot, coin.CatalogCoin, r.Now)
	if !ok {
		body.Meta.Reason = "no_price"
		return query.Encode(body)
	}
	body.Data = Current{coin.ID, &spot.Price, spot.Source, spot.Source, query.FormatTime(spot.Time), spot.Stale}
	body.Meta.Count, body.Meta.LastUpdated, body.Meta.IsStale = 1, query.FormatTime(spot.Time), spot.Stale
	if spot.Entry == nil {
		answer, err := query.Encode(body)
		answer.Simulated = spot.Simulated
		return answer, err
	}
	encoded, err := u.bodies.Get(spot.Entry, spot.Freshness, views.OthersKey{}, func() (*query.Body, error) {
		latest := spot.Entry.Latest
		body.Data.Source = spot.Entry.Price.Source
		body.Meta.LastUpdated, body.Meta.Reason = query.FormatTime(latest.Time), latest.Reason
		return query.NewBody(body)
	})
	return query.Answer{Body: encoded, Simulated: spot.Simulated}, err
}
