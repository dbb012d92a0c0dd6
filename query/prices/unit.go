// Package prices answers for current prices of all coins of the catalog. What venues make is the price cache's, and is explained by
// folding its recorded inputs again with the very function that published it; what no venue makes is reported by a reference
// source. A price as of a past instant is the one that was served then: it is remembered, or read from history, and answered and
// explained in the same way.
package prices

import (
	"sync/atomic"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
)

// History is where published prices are kept.
type History = views.PublishedPrices

// Unit answers the endpoints of prices.
type Unit struct {
	priceCache *views.PriceCache
	catalog    *views.Catalog
	convert    *views.Converter
	history    History
	providers  map[string]views.Provider

	bodies    *views.EntryCache[*query.Body]
	fragments *views.EntryCache[[]byte]
	summary   atomic.Pointer[summary]
	foreign   atomic.Pointer[foreign]
}

// New makes the unit. Providers that are not listed count as worldwide.
func New(priceCache *views.PriceCache, catalog *views.Catalog, convert *views.Converter, history History, providers []views.Provider) *Unit {
	u := &Unit{priceCache: priceCache, catalog: catalog, convert: convert, history: history, providers: map[string]views.Provider{},
		bodies: views.NewEntryCache[*query.Body](priceCache), fragments: views.NewEntryCache[[]byte](priceCache)}
	for _, p := range providers {
		u.providers[p.Slug] = p
	}
	return u
}

// Endpoints declares what the unit answers.
func (u *Unit) Endpoints() []query.Endpoint {
	return []query.Endpoint{u.price(), u.list(), u.all(), u.explained()}
}

var symbolParam = query.CoinParam("symbol", query.Path, "BTC")

var explainParam = query.Param{Name: "explain", Kind: query.Flag, Essential: true, Default: "false",
	Doc: "Adds the inputs of the price and a recomputation."}
