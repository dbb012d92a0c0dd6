// Package symbols answers which coin a symbol means: by what the catalog knows of coins, operators' overrides, and
// the prices that venues make now. Every answer reports its method, its confidence and what else was in question; no
// answer is a guess without a score.
package symbols

import (
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
)

// Catalog is what is known of coins.
type Catalog interface{ Snapshot() *views.Snapshot }

// History is what mappings need of the past.
type History interface {
	// Mappings reads the mappings that hold now, overrides first.
	Mappings(ctx context.Context, limit int) ([]schemas.SymbolMapping, error)
	// MappingsAsOf reads those that held at an instant, by what had been read then.
	MappingsAsOf(ctx context.Context, at time.Time, limit int) ([]schemas.SymbolMapping, error)
	// OldestTick returns when the oldest tick was read that is kept; the zero time where none is.
	OldestTick(ctx context.Context) (time.Time, error)
	views.PublishedPrices
}

// PastCoins are the coins as they were served at past instants.
type PastCoins interface {
	// At returns a snapshot with the coins of an instant. It fails as views.PastCoins does.
	At(ctx context.Context, at time.Time) (*views.Snapshot, error)
}

// Unit answers the endpoints of symbols.
type Unit struct {
	catalog    Catalog
	priceCache *views.PriceCache
	rates      *views.FXRates
	served     PastCoins
	history    History
	// overrides are those of the past and, once applied, those that the catalog has received since.
	overrides *schemas.SymbolOverrides

	mu      sync.Mutex
	applied int
	version uint64
	index   *schemas.SymbolIndex

	mapping sync.Mutex
	kept    []schemas.SymbolMapping
	keptAt  time.Time
}

// New makes the unit. Overrides holds operators' overrides of before the catalog began to listen.
func New(catalog Catalog, priceCache *views.PriceCache, rates *views.FXRates, served PastCoins, past History, overrides *schemas.SymbolOverrides) *Unit {
	return &Unit{catalog: catalog, priceCache: priceCache, rates: rates, served: served, history: past, overrides: overrides}
}

// Endpoints declares what the unit answers.
func (u *Unit) Endpoints() []query.Endpoint {
	return []query.Endpoint{u.resolve(), u.resolvePosted(), u.batch(), u.mappings()}
}

// resolver is over the newest snapshot, which it returns too, and the prices at a time of the query's clock.
func (u *Unit) resolver(at time.Time) (*schemas.Resolver, *views.Snapshot) {
	now := u.catalog.Snapshot()
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, rec := range now.Overrides[min(u.applied, len(now.Overrides)):] {
		u.overrides.Apply(rec)
	}
	u.applied = max(u.applied, len(now.Overrides))
	if u.index == nil || u.version != now.CoinsVersion {
		u.index, u.version = schemas.NewSymbolIndex(indexed(now.Coins)), now.CoinsVersion
	}
	table := u.priceCache.Coins()
	spot := func(c *views.CatalogCoin) (views.Spot, bool) { return u.priceCache.Spot(now, c, at) }
	return &schemas.Resolver{Table: table, Catalog: priced{u.index, now, spot}, Overrides: u.overrides}, now
}

// indexed returns coins as resolving needs them.
func indexed(coins []*views.CatalogCoin) iter.Seq[schemas.SymbolCoin] {
	return func(yield func(schemas.SymbolCoin) bool) {
		for _, c := range coins {
			coin := schemas.SymbolCoin{ID: c.ID, Symbol: c.Symbol, Name: c.Name, Rank: c.Rank,
				MarketCap: c.Market.GetMarketCap(), Price: c.Market.GetPrice(), Inactive: c.Listed.GetInactive()}
			for _, p := range c.Platforms {
				coin.Platforms = append(coin.Platforms, schemas.SymbolPlatform{Name: p.Name, Address: p.Address})
			}
			if !yield(coin) {
				return
			}
		}
	}
}

// priced is an index whose coins have the prices that all operations serve, which are newer than those of the last minute, and, where
// no market is known yet, the ranks of the table.
type priced struct {
	*schemas.SymbolIndex
	snapshot *views.Snapshot
	spot     func(*views.CatalogCoin) (views.Spot, bool)
}

func (p priced) now(coins []schemas.SymbolCoin) []schemas.SymbolCoin {
	coins = slices.Clone(coins)
	for i := range coins {
		coins[i] = p.one(coins[i])
	}
	return coins
}

func (p priced) one(coin schemas.SymbolCoin) schemas.SymbolCoin {
	c := p.snapshot.ByID(coin.ID)
	if c == nil {
		return coin
	}
	if coin.Rank == 0 && coin.MarketCap == 0 {
		coin.Rank = c.Own.Rank
	}
	if spot, ok := p.spot(c); ok {
		coin.Price = spot.Price
	}
	return coin
}

// BySymbol implements schemas.SymbolCatalog.
func (p priced) BySymbol(symbol string) []schemas.SymbolCoin {
	return p.now(p.SymbolIndex.BySymbol(symbol))
}

// ByID implements schemas.SymbolCatalog.
func (p priced) ByID(id string) (schemas.SymbolCoin, bool) {
	coin, ok := p.SymbolIndex.ByID(id)
	return p.one(coin), ok
}

// ByContract implements schemas.SymbolCatalog.
func (p priced) ByContract(address string) []schemas.SymbolCoin {
	return p.now(p.SymbolIndex.ByContract(address))
}

// ByName implements schemas.SymbolCatalog.
func (p priced) ByName(name string) ([]schemas.SymbolCoin, bool) {
	coins, whole := p.SymbolIndex.ByName(name)
	return p.now(coins), whole
}
