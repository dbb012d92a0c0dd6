package query

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
)

// Catalog holds in memory what sources say of coins, stablecoins, currencies and sentiment, and the
// newest rows of the markets fold. Readers take a Snapshot, which never changes; a new one appears with each
// minute that the fold ends and each clock of the sources. Safe for concurrent use.
type Catalog struct {
	table *schemas.CoinTable

	mu       sync.Mutex // guards what follows; snapshots share the values, which are replaced, never changed
	said     map[string]map[part]*eventsv1.Coin
	rows     map[string]*eventsv1.Market
	coins    map[string]*CatalogCoin
	changed  map[string]bool
	minute   int64
	summary  *eventsv1.Summary
	clock    int64
	facts    facts
	snapshot atomic.Pointer[Snapshot]
}

// part names what one feed of a source says about a coin.
type part struct{ source, part string }

// facts are what sources say beside coins, by thing.
type facts struct {
	stablecoins map[string]*eventsv1.Stablecoin
	fixings     map[FiatID]*eventsv1.Fixing
	fearGreed   map[int64]*eventsv1.FearGreed
	notices     map[string]*eventsv1.SourceNotice
	fetches     map[string]*eventsv1.Fetch
	overrides   []*eventsv1.SymbolOverride
}

// FiatID names the rate of a currency by a source.
type FiatID struct{ Source, Base, Quote string }

// Snapshot is the catalog at one moment. Nothing in it may be changed.
type Snapshot struct {
	// Time is the end of the last minute that the markets fold has ended, SourcesTime the last clock of the sources;
	// both Unix nanoseconds, 0 before the first.
	Time, SourcesTime int64
	// Coins by rank; those without one follow by id.
	Coins []*CatalogCoin
	// Summary of that minute, nil before the first.
	Summary *eventsv1.Summary
	// Stablecoins by source and the source's id.
	Stablecoins []*eventsv1.Stablecoin
	// Fixings are the newest rates of each source.
	Fixings map[FiatID]*eventsv1.Fixing
	// FearGreed are days, oldest first, as far back as they were told lately.
	FearGreed []*eventsv1.FearGreed
	// Notices and the last Fetches, by source.
	Notices map[string]*eventsv1.SourceNotice
	Fetches map[string]*eventsv1.Fetch
	// Overrides in the order of their times; a later one of the same source and symbol replaces an earlier one.
	Overrides []*eventsv1.SymbolOverride

	byID     map[string]*CatalogCoin
	bySymbol map[string][]*CatalogCoin
}

// CatalogCoin is a coin as all sources together describe it.
type CatalogCoin struct {
	// ID is canonical, Symbol in upper case.
	ID, Symbol, Name string
	// Rank is by market cap, 1 is the largest; 0 for none.
	Rank int
	// Market is the coin's newest row, nil without one.
	Market *eventsv1.Market
	// Listed is in no source's own words: nil where nothing but our table names the coin.
	Listed *eventsv1.Coin
	// Detailed is nil until a source's details were read.
	Detailed *eventsv1.Coin
	ImageURL string
}

// NewCatalog begins with the coins of the table alone.
func NewCatalog(table *schemas.CoinTable) *Catalog {
	c := &Catalog{table: table, said: map[string]map[part]*eventsv1.Coin{}, rows: map[string]*eventsv1.Market{}, coins: map[string]*CatalogCoin{}, changed: map[string]bool{},
		facts: facts{stablecoins: map[string]*eventsv1.Stablecoin{}, fixings: map[FiatID]*eventsv1.Fixing{}, fearGreed: map[int64]*eventsv1.FearGreed{},
			notices: map[string]*eventsv1.SourceNotice{}, fetches: map[string]*eventsv1.Fetch{}}}
	for _, coin := range table.All() {
		c.changed[coin.ID] = true
	}
	c.publish()
	return c
}

// Snapshot is the newest one; it is never nil.
func (c *Catalog) Snapshot() *Snapshot { return c.snapshot.Load() }

// ApplyReference takes a record of reference.raw.v1.
func (c *Catalog) ApplyReference(rec stream.TailRecord) error {
	var said eventsv1.ReferenceRecord
	if said.UnmarshalVT(rec.Value) != nil {
		return nil // not ours: sinks report it
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch b := said.Body.(type) {
	case *eventsv1.ReferenceRecord_Clock:
		c.clock = max(c.clock, b.Clock.Time)
		c.publish()
	case *eventsv1.ReferenceRecord_Coin:
		c.hear(b.Coin)
	case *eventsv1.ReferenceRecord_Stablecoin:
		c.facts.stablecoins[b.Stablecoin.Source+" "+b.Stablecoin.SourceId] = b.Stablecoin
	case *eventsv1.ReferenceRecord_Fixing:
		id := FiatID{b.Fixing.Source, b.Fixing.Base, b.Fixing.Quote}
		if before := c.facts.fixings[id]; before == nil || before.Date <= b.Fixing.Date {
			c.facts.fixings[id] = b.Fixing
		}
	case *eventsv1.ReferenceRecord_FearGreed:
		c.facts.fearGreed[b.FearGreed.EventTime] = b.FearGreed
	case *eventsv1.ReferenceRecord_Notice:
		c.facts.notices[b.Notice.Source] = b.Notice
	case *eventsv1.ReferenceRecord_Fetch:
		c.facts.fetches[b.Fetch.Source] = b.Fetch
	case *eventsv1.ReferenceRecord_Override:
		c.facts.overrides = append(c.facts.overrides, b.Override)
	}
	return nil
}

// hear notes what a source says about a coin that it names in a way we know.
func (c *Catalog) hear(coin *eventsv1.Coin) {
	id, ok := schemas.CanonicalCoin(coin.Source, coin.SourceId, coin.Symbol, coin.Name)
	if !ok {
		return
	}
	if c.said[id] == nil {
		c.said[id] = map[part]*eventsv1.Coin{}
	}
	c.said[id][part{coin.Source, coin.Part}] = coin
	c.changed[id] = true
}

// ApplyMarkets takes a record of markets.v1. Rows appear together, with the pulse that ends their minute.
func (c *Catalog) ApplyMarkets(rec stream.TailRecord) error {
	m, ok := rec.Marked.(*eventsv1.MarketRecord)
	if !ok {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch b := m.Body.(type) {
	case *eventsv1.MarketRecord_Market:
		c.rows[b.Market.CoinId] = b.Market
		c.changed[b.Market.CoinId] = true
	case *eventsv1.MarketRecord_Summary:
		c.summary = b.Summary
	case *eventsv1.MarketRecord_Pulse:
		c.minute = max(c.minute, b.Pulse.Now)
		c.publish()
	}
	return nil
}

// publish makes what has changed visible. Callers hold the mutex.
func (c *Catalog) publish() {
	before := c.snapshot.Load()
	next := &Snapshot{Time: c.minute, SourcesTime: c.clock, Summary: c.summary, Overrides: slices.Clone(c.facts.overrides)}
	if before != nil && len(c.changed) == 0 {
		next.Coins, next.byID, next.bySymbol = before.Coins, before.byID, before.bySymbol
	} else {
		c.rebuild(next)
	}
	next.Stablecoins = sorted(c.facts.stablecoins)
	next.FearGreed = sorted(c.facts.fearGreed)
	next.Fixings, next.Notices, next.Fetches = maps.Clone(c.facts.fixings), maps.Clone(c.facts.notices), maps.Clone(c.facts.fetches)
	c.snapshot.Store(next)
}

// rebuild makes the changed coins anew and sorts all.
func (c *Catalog) rebuild(next *Snapshot) {
	for id := range c.changed {
		c.coins[id] = c.describe(id)
	}
	clear(c.changed)
	next.byID, next.bySymbol = make(map[string]*CatalogCoin, len(c.coins)), make(map[string][]*CatalogCoin, len(c.coins))
	next.Coins = make([]*CatalogCoin, 0, len(c.coins))
	for id, coin := range c.coins {
		next.byID[id] = coin
		next.Coins = append(next.Coins, coin)
	}
	slices.SortFunc(next.Coins, func(a, b *CatalogCoin) int {
		return cmp.Or(cmp.Compare(uint(a.Rank)-1, uint(b.Rank)-1), strings.Compare(a.ID, b.ID)) // no rank, 0, comes last
	})
	for _, coin := range next.Coins {
		next.bySymbol[coin.Symbol] = append(next.bySymbol[coin.Symbol], coin)
	}
}

// coinSources are whose words about a coin count first.
var coinSources = []string{"coingecko", "coinpaprika"}

// describe puts together what is known of a coin.
func (c *Catalog) describe(id string) *CatalogCoin {
	coin := &CatalogCoin{ID: id, Market: c.rows[id]}
	for _, source := range coinSources {
		coin.Listed = cmp.Or(coin.Listed, c.said[id][part{source, "list"}])
		coin.Detailed = cmp.Or(coin.Detailed, c.said[id][part{source, "detail"}])
	}
	if own, ok := c.table.ByID(id); ok {
		coin.Symbol, coin.Name = own.Symbol, own.Name
	}
	for _, said := range []*eventsv1.Coin{coin.Listed, coin.Detailed} {
		coin.Symbol = cmp.Or(coin.Symbol, strings.ToUpper(said.GetSymbol()))
		coin.Name = cmp.Or(coin.Name, said.GetName())
		coin.ImageURL = cmp.Or(said.GetImageUrl(), coin.ImageURL)
	}
	if coin.Market != nil {
		coin.Symbol, coin.Name = cmp.Or(coin.Symbol, coin.Market.Symbol), cmp.Or(coin.Name, coin.Market.Name)
		coin.Rank = int(coin.Market.Rank)
	}
	return coin
}

// ByID returns a coin by its canonical id, nil for none.
func (s *Snapshot) ByID(id string) *CatalogCoin { return s.byID[id] }

// BySymbol returns the coins with a symbol in upper case, by rank.
func (s *Snapshot) BySymbol(symbol string) []*CatalogCoin { return s.bySymbol[symbol] }

// Find returns what a path names: the coin with this id, else the highest ranked one with this symbol, in any
// letter case; nil for none.
func (s *Snapshot) Find(name string) *CatalogCoin {
	if coin := s.byID[strings.ToLower(name)]; coin != nil {
		return coin
	}
	if found := s.bySymbol[strings.ToUpper(name)]; len(found) > 0 {
		return found[0]
	}
	return nil
}

func sorted[K cmp.Ordered, V any](m map[K]V) []V {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	values := make([]V, len(keys))
	for i, k := range keys {
		values[i] = m[k]
	}
	return values
}
