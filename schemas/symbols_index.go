package schemas

import (
	"iter"
	"slices"
	"strings"
)

// fewestLetters is how long the beginning of a name must be to look for it.
const fewestLetters = 4

// SymbolIndex is a SymbolCatalog of a list of coins. It never changes after it was made, so its methods are safe for
// concurrent use.
type SymbolIndex struct {
	coins      []SymbolCoin
	byID       map[string]int32
	bySymbol   map[string][]SymbolCoin
	byContract map[string][]int32
	// names are sorted, to find those that begin alike.
	names  []indexedName
	ranked int
}

type indexedName struct {
	name string
	coin int32
}

// NewSymbolIndex makes an index. Of two coins with one id the first counts.
func NewSymbolIndex(coins iter.Seq[SymbolCoin]) *SymbolIndex {
	x := &SymbolIndex{byID: map[string]int32{}, bySymbol: map[string][]SymbolCoin{}, byContract: map[string][]int32{}}
	for c := range coins {
		if _, twice := x.byID[c.ID]; twice || c.ID == "" {
			continue
		}
		i := int32(len(x.coins))
		x.coins = append(x.coins, c)
		x.byID[c.ID] = i
		x.ranked = max(x.ranked, c.Rank)
		symbol := strings.ToUpper(c.Symbol)
		x.bySymbol[symbol] = append(x.bySymbol[symbol], c)
		for _, p := range c.Platforms {
			address := strings.ToLower(p.Address)
			if address != "" && !slices.Contains(x.byContract[address], i) {
				x.byContract[address] = append(x.byContract[address], i)
			}
		}
		if name := FoldName(c.Name); name != "" {
			x.names = append(x.names, indexedName{name, i})
		}
	}
	slices.SortFunc(x.names, func(a, b indexedName) int {
		if c := strings.Compare(a.name, b.name); c != 0 {
			return c
		}
		return int(a.coin) - int(b.coin)
	})
	return x
}

// TableCoins are the coins of a table, about which nothing is known but their rows.
func TableCoins(table *CoinTable) iter.Seq[SymbolCoin] {
	return func(yield func(SymbolCoin) bool) {
		for _, c := range table.All() {
			if !yield(SymbolCoin{ID: c.ID, Symbol: c.Symbol, Name: c.Name, Rank: c.Rank}) {
				return
			}
		}
	}
}

// BySymbol implements SymbolCatalog.
func (x *SymbolIndex) BySymbol(symbol string) []SymbolCoin { return x.bySymbol[symbol] }

// Ranked implements SymbolCatalog.
func (x *SymbolIndex) Ranked() int { return x.ranked }

// ByID implements SymbolCatalog.
func (x *SymbolIndex) ByID(id string) (SymbolCoin, bool) {
	i, ok := x.byID[id]
	if !ok {
		return SymbolCoin{}, false
	}
	return x.coins[i], true
}

// ByContract implements SymbolCatalog.
func (x *SymbolIndex) ByContract(address string) []SymbolCoin {
	var found []SymbolCoin
	for _, i := range x.byContract[address] {
		found = append(found, x.coins[i])
	}
	return found
}

// ByName implements SymbolCatalog.
func (x *SymbolIndex) ByName(name string) (coins []SymbolCoin, whole bool) {
	name = FoldName(name)
	start, whole := slices.BinarySearchFunc(x.names, name, func(n indexedName, name string) int { return strings.Compare(n.name, name) })
	if !whole && len(name) < fewestLetters {
		return nil, false
	}
	for _, n := range x.names[start:] {
		if n.name != name && (whole || !strings.HasPrefix(n.name, name)) || len(coins) > maxCandidates {
			break
		}
		coins = append(coins, x.coins[n.coin])
	}
	return coins, whole
}
