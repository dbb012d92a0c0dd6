package schemas

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// NoCoin is the coin of an override that says only what a symbol does not mean: no coin that we know.
const NoCoin = "-"

// maxSymbol bounds the symbol of an override, in bytes, and of everything else that names one.
const maxSymbol = 64

// SymbolOverrides are operators' words on symbols, each from its log time until the next on the same symbol of the same
// source. Nil holds none. Safe for concurrent use.
type SymbolOverrides struct {
	// some means that there are any: each tick asks, and hardly ever are there.
	some    atomic.Bool
	mu      sync.RWMutex
	changes map[overrideKey][]*eventsv1.SymbolOverride
}

// overrideKey has a source's slug and a symbol in upper case.
type overrideKey struct{ source, symbol string }

// NewSymbolOverrides holds what the records state, in any order.
func NewSymbolOverrides(records ...*eventsv1.SymbolOverride) *SymbolOverrides {
	o := &SymbolOverrides{changes: map[overrideKey][]*eventsv1.SymbolOverride{}}
	for _, rec := range records {
		o.Apply(rec)
	}
	return o
}

// Apply takes a record; one that is known already changes nothing.
func (o *SymbolOverrides) Apply(rec *eventsv1.SymbolOverride) {
	key := overrideKey{VenueSlug(rec.Source), strings.ToUpper(rec.Symbol)}
	if key.source == "" || key.symbol == "" || len(key.source)+len(key.symbol) > 2*maxSymbol {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	// Two of one time are ordered by what they say, so that the order in which they are read decides nothing.
	at, known := slices.BinarySearchFunc(o.changes[key], rec, func(a, b *eventsv1.SymbolOverride) int {
		return cmp.Or(cmp.Compare(a.Time, b.Time), strings.Compare(a.CoinId, b.CoinId))
	})
	if !known {
		o.changes[key] = slices.Insert(o.changes[key], at, rec)
		o.some.Store(true)
	}
}

// At is the coin that a symbol of a source means by an override, at a log time (Unix nanoseconds), NoCoin for none. What is
// set for all sources is looked up as the source general. It allocates only for symbols that are not in upper case.
func (o *SymbolOverrides) At(source, symbol string, at int64) (coinID string, ok bool) {
	if o == nil || !o.some.Load() {
		return "", false
	}
	o.mu.RLock()
	defer o.mu.RUnlock()
	rec := newest(o.changes[overrideKey{source, strings.ToUpper(symbol)}], at)
	return rec.GetCoinId(), rec.GetCoinId() != ""
}

// ForVenue is the coin that a venue's symbol means by an override of this venue, else by one of all sources, at a log time (Unix
// nanoseconds), NoCoin for none.
func (o *SymbolOverrides) ForVenue(venue, symbol string, at int64) (coinID string, ok bool) {
	if id, ok := o.At(venue, symbol, at); ok {
		return id, true
	}
	return o.At(GeneralSource, symbol, at)
}

// Mention reports whether any override, of whatever time, is about a venue's symbol.
func (o *SymbolOverrides) Mention(venue, symbol string) bool {
	if o == nil || !o.some.Load() {
		return false
	}
	symbol = strings.ToUpper(symbol)
	o.mu.RLock()
	defer o.mu.RUnlock()
	return len(o.changes[overrideKey{venue, symbol}])+len(o.changes[overrideKey{GeneralSource, symbol}]) > 0
}

// Quote is the asset that a venue's symbol means where something is quoted in it, at a log time (Unix nanoseconds): what an
// override says, else the table. Overrides are about coins: what the table takes for a currency is one.
func (o *SymbolOverrides) Quote(table *CoinTable, venue, symbol string, at int64) (Asset, bool) {
	asset, known := table.ResolveQuote(venue, symbol)
	if asset.Fiat {
		return asset, known
	}
	switch id, overridden := o.ForVenue(venue, symbol, at); {
	case !overridden:
		return asset, known
	case id == NoCoin:
		return Asset{}, false
	default:
		return Asset{ID: id}, true
	}
}

// newest is the last change at or before a time, nil for none.
func newest(changes []*eventsv1.SymbolOverride, at int64) *eventsv1.SymbolOverride {
	for _, rec := range slices.Backward(changes) {
		if rec.Time <= at {
			return rec
		}
	}
	return nil
}

// InForce lists the overrides that hold at a log time, by source and symbol.
func (o *SymbolOverrides) InForce(at int64) []*eventsv1.SymbolOverride {
	if o == nil {
		return nil
	}
	o.mu.RLock()
	defer o.mu.RUnlock()
	var list []*eventsv1.SymbolOverride
	for _, changes := range o.changes {
		if rec := newest(changes, at); rec.GetCoinId() != "" {
			list = append(list, rec)
		}
	}
	slices.SortFunc(list, func(a, b *eventsv1.SymbolOverride) int {
		return cmp.Or(strings.Compare(a.Source, b.Source), strings.Compare(a.Symbol, b.Symbol))
	})
	return list
}
