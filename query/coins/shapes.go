package coins

import (
	"strings"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// Compact is a coin in a list.
type Compact struct {
	ID        string   `json:"id" example:"bitcoin" doc:"Id of the coin"`
	Symbol    string   `json:"symbol" example:"btc" doc:"Lower case"`
	Name      string   `json:"name" example:"Bitcoin" doc:"Name of the coin"`
	MarketCap *float64 `json:"marketCap,omitempty" explain:"market/{id}/marketCap" doc:"USD"`
	Rank      int      `json:"rank,omitempty" explain:"market/{id}/rank" doc:"By market cap, 1 is the largest"`
	Price     *float64 `json:"price,omitempty" explain:"market/{id}/price" doc:"USD"`
	// PriceSource is empty without a price.
	PriceSource string `json:"priceSource,omitempty" example:"median" doc:"median: computed from venues; else the reference source of the price"`
}

// ListMeta describes a list.
type ListMeta struct {
	query.Meta
	IsStale bool   `json:"isStale,omitempty" doc:"The newest minute of these rows ended more than three minutes ago"`
	Reason  string `json:"reason,omitempty" doc:"Why the list is empty"`
}

func (ix *index) meta(r *query.Request, count int) ListMeta {
	return ListMeta{Meta: query.Meta{Count: count, LastUpdated: ix.updated, Clamped: r.Clamped()}, IsStale: ix.stale}
}

func compact(coin *views.CatalogCoin) Compact {
	c := Compact{ID: coin.ID, Symbol: strings.ToLower(coin.Symbol), Name: coin.Name, Rank: coin.Rank}
	if row := coin.Market; row != nil {
		c.Price, c.PriceSource, c.MarketCap = &row.Price, row.PriceSource, row.MarketCap
	}
	return c
}

// noRow represents the row of a coin that has none: nothing is known.
var noRow = &eventsv1.Market{}

func row(coin *views.CatalogCoin) *eventsv1.Market {
	if coin.Market == nil {
		return noRow
	}
	return coin.Market
}
