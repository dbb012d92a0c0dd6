package rates

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// index holds the rates that count in the order of answers. It never changes.
type index struct {
	current      *views.CurrentRates
	coinsVersion uint64
	// all by category, rank of the coin, rate, the highest first, provider and its symbol.
	all []*rate
	// categories and providers have their part of all, in its order.
	categories, providers map[string][]*rate
	// coins holds every coin that has rates or that the price cache knows, by id; ranked are they by rank.
	coins  map[string]*coinRates
	ranked []*coinRates
	// slugs are the providers that are known, also those without a rate now, by what they are asked for.
	slugs map[string]string
	// sums are the rows of the summary without prices, sumsEncoded the same encoded, one after the other.
	sums        func() []SummaryEntry
	sumsEncoded func() ([]byte, error)
}

// rate is a rate that counts.
type rate struct {
	*eventsv1.RateEntry
	coin *coinRates
	// category is its place among the categories.
	category int
}

// coinRates are the rates of a coin.
type coinRates struct {
	id, symbol string
	// own is the coin in the price cache's table; its rank is 0 where it is not there.
	own schemas.Coin
	// place orders coins: by rank, those without one last.
	place int
	rates []*rate
	// held are answers of this coin alone.
	held query.ResponseCache[coinVersion, coinKey]
}

// index is that of the current rates. Two that ask at once may both make it, which costs time only.
func (u *Unit) index(now time.Time) (*index, error) {
	current := u.yieldStore.Current(now)
	if current.Time == 0 {
		starting := query.Starting("no minute of rates was folded yet")
		starting.RetryAfter = int(time.Minute/time.Second) - now.Second() // its first minute ends with that of the clock
		return nil, starting
	}
	snapshot := u.catalog.Snapshot()
	if held := u.indexed.Load(); held != nil && held.current == current && held.coinsVersion == snapshot.CoinsVersion {
		return held, nil
	}
	ix := u.indexOf(current, snapshot.Coins)
	ix.coinsVersion = snapshot.CoinsVersion
	u.indexed.Store(ix)
	return ix, nil
}

// indexOf makes the index of rates that count, and of coins in their order.
func (u *Unit) indexOf(current *views.CurrentRates, ranked []*views.CatalogCoin) *index {
	ix := &index{
		current: current, categories: map[string][]*rate{}, providers: map[string][]*rate{},
		coins: map[string]*coinRates{}, slugs: map[string]string{},
	}
	for _, own := range u.priceCache.Coins().All() {
		ix.coins[own.ID] = &coinRates{id: own.ID, symbol: own.Symbol, own: own}
	}
	for _, e := range current.Counted {
		coin := ix.coins[e.CoinId]
		if coin == nil {
			coin = &coinRates{id: e.CoinId, symbol: strings.ToUpper(e.Symbol)}
			ix.coins[e.CoinId] = coin
		}
		ix.all = append(ix.all, &rate{e, coin, slices.Index(categories, e.Category)})
	}
	ix.rank(ranked)
	slices.SortFunc(ix.all, byOrder)
	for _, e := range ix.all {
		e.coin.rates = append(e.coin.rates, e)
		ix.categories[e.Category] = append(ix.categories[e.Category], e)
		ix.providers[e.Provider] = append(ix.providers[e.Provider], e)
	}
	for _, e := range current.Entries {
		ix.slugs[e.Provider] = e.Provider
	}
	for slug := range current.Projects {
		ix.slugs[slug] = slug
	}
	for slug := range u.venues {
		ix.slugs[slug] = slug
	}
	ix.sums = sync.OnceValue(ix.summarize)
	ix.sumsEncoded = sync.OnceValues(func() ([]byte, error) { return encodeRows(ix.sums()) })
	return ix
}

// rank gives coins their places.
func (ix *index) rank(ranked []*views.CatalogCoin) {
	for i, described := range ranked {
		if coin := ix.coins[described.ID]; coin != nil {
			coin.place = i + 1
			coin.symbol = cmp.Or(described.Symbol, coin.symbol)
		}
	}
	for _, coin := range ix.coins {
		if coin.place == 0 { // nobody describes it
			coin.place = len(ranked) + 1
		}
		ix.ranked = append(ix.ranked, coin)
	}
	slices.SortFunc(ix.ranked, byPlace)
}

func byPlace(a, b *coinRates) int {
	return cmp.Or(cmp.Compare(a.place, b.place), strings.Compare(a.id, b.id))
}

func byOrder(a, b *rate) int {
	return cmp.Or(
		cmp.Compare(a.category, b.category), byPlace(a.coin, b.coin), cmp.Compare(b.Apy, a.Apy),
		strings.Compare(a.Provider, b.Provider), strings.Compare(a.ProviderSymbol, b.ProviderSymbol),
		strings.Compare(a.Source, b.Source), strings.Compare(a.Pool, b.Pool))
}

// narrowest is the shortest list that holds all that a filter takes; whole means that it takes all of it.
func (ix *index) narrowest(f *filter) (list []*rate, whole bool) {
	switch {
	case f.coin != nil:
		return f.coin.rates, f.category == "" && f.provider == ""
	case f.provider != "":
		return ix.providers[f.provider], f.category == ""
	case f.category != "":
		return ix.categories[f.category], true
	}
	return ix.all, true
}
