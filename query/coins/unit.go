// Package coins answers for coins: what they are, how they rank, what they are worth, the markets that a coin's
// price is made from, and the history of its price. Lists read a catalog in memory, so that an answer costs the
// same whether it knows a thousand coins or twenty thousand.
package coins

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
)

const (
	// cacheBytes bounds the encoded answers in memory, cachedFor how long one stays that nobody can ask for any more.
	cacheBytes = 64 << 20
	cachedFor  = 5 * time.Minute
	// listAge, coinAge and setAge are how long clients may reuse answers.
	listAge = 5 * time.Minute
	coinAge = 15 * time.Minute
	setAge  = time.Hour
)

// History is what coins need of the past.
type History interface {
	views.PublishedPrices
	// FirstPriced returns the beginning of the first minute with a published price of each coin, by coin id.
	FirstPriced(ctx context.Context) (map[string]time.Time, error)
}

// Served is where it is read what was served at past instants.
type Served struct {
	Coins  *views.PastCoins
	Yields *views.PastYields
}

// Unit answers the endpoints of coins.
type Unit struct {
	priceCache *views.PriceCache
	catalog    *views.Catalog
	yieldStore *views.YieldStore
	candles    *views.Candles
	served     Served
	history    History

	ratings atomic.Pointer[rated]
	past    atomic.Pointer[past]
	indexed views.Lazy[index]
	bodies  *otter.Cache[bodyKey, query.Answer]
	// warned are the reserved words that Run has named.
	warned map[string]bool
}

// New makes the unit. What it reports of the past is unknown until Run has read it.
func New(priceCache *views.PriceCache, catalog *views.Catalog, yieldStore *views.YieldStore, candles *views.Candles, served Served, history History) *Unit {
	u := &Unit{priceCache: priceCache, catalog: catalog, yieldStore: yieldStore, candles: candles, served: served, history: history, warned: map[string]bool{}, bodies: otter.Must(&otter.Options[bodyKey, query.Answer]{
		MaximumWeight: cacheBytes,
		// The compressed form may be beside it.
		Weigher:          func(_ bodyKey, a query.Answer) uint32 { return uint32(len(a.Body.JSON())*5/4 + 256) },
		ExpiryCalculator: otter.ExpiryWriting[bodyKey, query.Answer](cachedFor),
	})}
	u.past.Store(&past{})
	return u
}

// Endpoints declares what the unit answers.
func (u *Unit) Endpoints() []query.Endpoint {
	return []query.Endpoint{
		u.search(), u.top(), u.table(), u.featured(), u.trending(), u.recent(), u.withRates(),
		u.allCategories(), u.slugs(), u.stats(), u.byID(), u.coin(), u.marketStatistics(), u.similar(), u.networks(),
		u.markets(), u.priceHistory(),
	}
}

// bodyKey names an answer made from one index.
type bodyKey struct {
	index uint64
	// rates is the version of the rates of coins, 0 for an answer without any; closes are what its sparklines are made of, nil for none.
	rates       uint64
	closes      *views.HourCloses
	endpoint    string
	others      views.OthersKey
	view        query.View
	first, last int64
	flag        bool
	a, b, c, d  string
}

// answer returns what make makes of the index, from memory where it was made before. Texts of the key must not be
// a request's own.
func (u *Unit) answer(ctx context.Context, ix *index, key bodyKey, make func() any) (query.Answer, error) {
	key.index = ix.number
	if ix.asOf {
		answer, err := query.Encode(make())
		answer.Simulated = ix.simulated
		return answer, err
	}
	return u.bodies.Get(ctx, key, otter.LoaderFunc[bodyKey, query.Answer](func(context.Context, bodyKey) (query.Answer, error) {
		answer, err := query.Encode(make())
		answer.Simulated = ix.simulated
		return answer, err
	}))
}

var coinParam = query.CoinParam("coinId", query.Path, "bitcoin")

// limitParam is how many rows a list has.
func limitParam(standard string, most int64) query.Param {
	return query.Param{Name: "limit", Kind: query.Integer, Default: standard, Min: 1, Max: most, Doc: "Maximum number of rows."}
}

// find turns what a path names into a coin.
func (u *Unit) find(name string) (views.Named, error) {
	snapshot := u.catalog.Snapshot()
	coin, ok := snapshot.Find(name)
	if !ok {
		return views.Named{}, query.NoCoin(snapshot, name)
	}
	return coin, nil
}

// findIn is the index that a request asks for, and in it the coin that a name means now.
func (u *Unit) findIn(ctx context.Context, r *query.Request, name string) (*index, views.Named, error) {
	ix, err := u.indexOf(ctx, r)
	if err != nil {
		return nil, views.Named{}, err
	}
	if ix.asOf {
		coin, err := u.findThen(ix.snapshot, name)
		return ix, coin, err
	}
	coin, ok := ix.snapshot.Find(name)
	if !ok {
		return nil, views.Named{}, query.NoCoin(ix.snapshot, name)
	}
	return ix, coin, nil
}

// findThen is the coin that a name means now, as it was at a past instant; where it means none any more, the one that it meant then.
func (u *Unit) findThen(then *views.Snapshot, name string) (views.Named, error) {
	coin, known := then.Find(name)
	if now, ok := u.catalog.Snapshot().Find(name); ok {
		coin, known = then.Naming(name, now.ID)
	}
	if !known {
		return views.Named{}, query.NoCoin(then, name)
	}
	return coin, nil
}

// reserved are the words that paths have where a coin id may be.
func (u *Unit) reserved() []string {
	var words []string
	for _, e := range u.Endpoints() {
		word, rest, _ := strings.Cut(strings.TrimPrefix(e.Path, "/api/v1/coins/"), "/")
		if rest == "" && !strings.ContainsAny(word, "{/") && !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	return words
}
