// Package rates answers for what coins earn and cost: lending, staking and borrowing by the year in percent, and beside
// them the prices that exchanges send. What is current is read from memory: a rate is in an answer from the end of the
// minute in which it was reported until its source has not reported it for three intervals. The past is read from history.
package rates

import (
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/limits"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
)

const (
	tag = "rates"
	// categoryPrice is used beside the categories of rates: what exchanges send.
	categoryPrice = "price"
)

// categories are those of answers, in their order.
var categories = append(slices.Clone(schemas.RateCategories), categoryPrice)

// Unit answers the endpoints of rates.
type Unit struct {
	yieldStore *views.YieldStore
	priceCache *views.PriceCache
	catalog    *views.Catalog
	history    History
	served     Served
	charts     *views.RateCharts
	states     Providers
	venues     map[string]views.Provider

	indexed atomic.Pointer[index]
	// held and pricedAnswers are answers without and with prices, which change each second.
	held, pricedAnswers query.ResponseCache[version, listKey]
	// summaries are of prices alone, encoded by coin.
	summaries *views.EntryCache[[]byte]
}

// New makes the unit. Venues are the sources of prices, with the countries that they serve.
func New(yieldStore *views.YieldStore, priceCache *views.PriceCache, catalog *views.Catalog, history History, served Served, charts *views.RateCharts, states Providers, venues []views.Provider) *Unit {
	u := &Unit{yieldStore: yieldStore, priceCache: priceCache, catalog: catalog, history: history, served: served, charts: charts, states: states, venues: map[string]views.Provider{}, summaries: views.NewEntryCache[[]byte](priceCache)}
	for _, v := range venues {
		u.venues[v.Slug] = v
	}
	return u
}

// Endpoints declares what the unit answers.
func (u *Unit) Endpoints() []query.Endpoint {
	return []query.Endpoint{u.bySymbol(), u.list(), u.summary(), u.providers(), u.provider(), u.past(), u.series()}
}

// version is what answers of several coins are made from.
type version struct {
	index *index
	age   query.Age
	// prices is the price cache's, 0 for an answer without prices; stale is how many of its prices are.
	prices uint64
	stale  int
}

// age is that of the current rates.
func (ix *index) age(now time.Time) query.Age {
	return query.AgeOf(ix.current.Time, now, views.StatisticsStaleAfter)
}

// version is that of an answer to a request.
func (u *Unit) version(ix *index, r *query.Request, prices bool) version {
	v := version{index: ix, age: ix.age(r.Now)}
	if prices {
		v.prices = u.priceCache.Version()
		v.stale = u.priceCache.CountStale(r.Now)
	}
	return v
}

var (
	symbolParam   = query.CoinParam("symbol", query.Path, "ETH")
	coinFilter    = query.CoinParam("symbol", query.Query, "ETH")
	categoryParam = query.Param{Name: "category", Kind: query.Text, Allowed: categories, Example: schemas.RateLending, Doc: "Only this category."}
	providerParam = query.Param{Name: "provider", Kind: query.Text, MaxLength: 64, Example: "aave-v3", Doc: "Only this provider, by slug."}
	explainParam  = query.Param{Name: "explain", Kind: query.Flag, Essential: true, Default: "false", Class: limits.Charts, Doc: "Adds the inputs of each rate and a recomputation."}
)

// filter is what a request narrows an answer to.
type filter struct {
	// coin is nil for all.
	coin *coinRates
	// named is how the coin was found.
	named views.Named
	// category and provider are empty for all; neither is a text of the request.
	category, provider string
}

// narrowed reads the parameters that an endpoint has of symbol, category and provider.
func (u *Unit) narrowed(ix *index, r *query.Request) (f filter, err error) {
	if r.Declares("symbol") && r.Has("symbol") {
		if f.coin, f.named, err = u.find(ix, r.Text("symbol")); err != nil {
			return f, err
		}
	}
	f.category = r.Text("category") // one of those declared
	if r.Declares("provider") && r.Has("provider") {
		name := r.Text("provider")
		slug, ok := ix.slugs[strings.ToLower(name)]
		if !ok {
			return f, query.NotFound("no provider has the slug %q", strings.ToValidUTF8(name, "�"))
		}
		f.provider = slug
	}
	return f, nil
}

func (f *filter) matches(e *rate) bool {
	return (f.coin == nil || e.coin == f.coin) && (f.category == "" || e.Category == f.category) && (f.provider == "" || e.Provider == f.provider)
}

// prices reports whether prices may be in the answer.
func (f *filter) prices() bool { return f.category == "" || f.category == categoryPrice }

// find turns a symbol or an id into a coin.
func (u *Unit) find(ix *index, name string) (*coinRates, views.Named, error) {
	snapshot := u.catalog.Snapshot()
	named, ok := snapshot.Find(name)
	if !ok {
		return nil, views.Named{}, query.NoCoin(snapshot, name)
	}
	if known := ix.coins[named.ID]; known != nil {
		return known, named, nil
	}
	return &coinRates{id: named.ID, symbol: named.Symbol}, named, nil
}
