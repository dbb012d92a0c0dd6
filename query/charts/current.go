package charts

import (
	"context"
	"net/http"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/limits"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
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
		Params: []query.Param{coinParam, query.AsOfParam("Point in time. The answer that was given then, with its age as it was. A server that was not running then goes by when prices were written. " +
			"Names of coins are those of now. Default: now.")},
		Body: CurrentBody{}, NotFound: true, MaxAge: 30 * time.Second, Class: limits.Charts, Hot: true, Handle: u.getCurrent,
	}
}

func (u *Unit) getCurrent(ctx context.Context, r *query.Request) (query.Answer, error) {
	snapshot := u.catalog.Snapshot()
	coin, ok := snapshot.Find(r.Text("coinId"))
	if !ok {
		return query.Answer{}, u.unknown(r.Text("coinId"))
	}
	if u.priceCache.Now() == 0 {
		return query.Answer{}, query.Starting("no price was read yet")
	}
	if at, past := r.Time("asOf"); past {
		return u.currentAsOf(ctx, coin, at)
	}
	spot, ok := u.priceCache.Spot(snapshot, coin.CatalogCoin, r.Now)
	if !ok {
		body := CurrentBody{Data: Current{CoinID: coin.ID}}
		body.Meta.Reason = "no_price"
		return query.Encode(body)
	}
	if spot.Entry == nil {
		answer, err := query.Encode(currentOf(coin.ID, spot))
		answer.Simulated = spot.Simulated
		return answer, err
	}
	encoded, err := u.bodies.Get(spot.Entry, spot.Freshness, views.OthersKey{}, func() (*query.Body, error) { return query.NewBody(currentOf(coin.ID, spot)) })
	return query.Answer{Body: encoded, Simulated: spot.Simulated}, err
}

// currentAsOf is the answer of an instant.
func (u *Unit) currentAsOf(ctx context.Context, coin views.Named, at time.Time) (query.Answer, error) {
	entries, err := u.priceCache.AsOf(ctx, u.prices, []schemas.Coin{coin.Own}, at)
	if err != nil {
		return query.Answer{}, query.FaultOfPast(err, at)
	}
	spot, kept := u.priceCache.SpotOf(entries[coin.ID], at)
	if !kept {
		return query.Answer{}, query.PriceNotKept(coin.ID, at)
	}
	answer, err := query.Encode(currentOf(coin.ID, spot))
	answer.Simulated = spot.Simulated
	return answer, err
}

// currentOf reports a price of a coin.
func currentOf(coinID string, spot views.Spot) CurrentBody {
	body := CurrentBody{Data: Current{coinID, &spot.Price, spot.Source, spot.Source, query.FormatTime(spot.Time), spot.Stale}}
	body.Meta.Count, body.Meta.LastUpdated, body.Meta.IsStale = 1, query.FormatTime(spot.Time), spot.Stale
	if e := spot.Entry; e != nil {
		body.Data.Source = e.Price.Source
		body.Meta.LastUpdated, body.Meta.Reason = query.FormatTime(e.Latest.Time), e.Latest.Reason
	}
	return body
}
