package schemas

import (
	_ "embed"
	"iter"
	"sync"
)

//go:embed coins.csv
var coinsCSV string

//go:embed fiats.csv
var fiatsCSV string

// Kind says what a coin is, as far as pricing needs to know.
type Kind string

// Kinds of coins. A stablecoin aims at one unit of its peg; a token that grows by its yield
// (sUSDe, USDY) does not and is staked or a plain token.
const (
	KindCoin       Kind = "coin"       // the native unit of a chain
	KindToken      Kind = "token"      // issued on a chain
	KindStablecoin Kind = "stablecoin" // pegged to a fiat currency
	KindWrapped    Kind = "wrapped"    // redeemable one to one for another coin
	KindStaked     Kind = "staked"     // a staked coin's receipt, whose value drifts from the coin's
)

// Coin is one row of the coin table.
type Coin struct {
	ID     string // CoinGecko's slug, our canonical id
	Symbol string // upper case; several coins can share one
	Name   string
	Rank   int // 1 is the largest; unique; approximate market capitalisation
	Kind   Kind
	Peg    string // fiat code a stablecoin aims at, else empty
}

// Fiat is a government currency, by its ISO 4217 code (CNH, the offshore yuan, has none and is
// kept under the code that venues use).
type Fiat struct {
	Code string
	Name string
}

// Asset is what a market is quoted in: a coin (ID is its id) or a fiat currency (ID is its code).
type Asset struct {
	ID   string
	Fiat bool
}

// Ways in which CoinTable.Resolve found a coin.
const (
	ResolvedByVenueAlias = "venue_alias"   // the table names this symbol of this venue
	ResolvedByAlias      = "alias"         // an old or other symbol, the same on all venues
	ResolvedBySymbol     = "symbol"        // exactly one coin of the table has the symbol
	ResolvedByRank       = "symbol_ranked" // several have it; the highest ranked was taken
)

// CoinTable maps venues' symbols to coins and fiat currencies. It never changes after it was
// parsed, so all methods are safe for concurrent use; the slices they return are shared and must
// not be modified.
type CoinTable struct {
	coins      []Coin // coins[i].Rank == i+1
	fiats      []Fiat // by code
	byID       map[string]int32
	byFiatCode map[string]int32
	bySymbol   map[string][]Coin
	symbols    map[string]symbolEntry
	venue      map[string]venueEntry // "venue:SYMBOL"
}

type symbolEntry struct {
	coin   int32
	method string
}

type venueTarget uint8

const (
	venueCoin venueTarget = iota
	venueFiat
	venueRefused // the venue uses this symbol for something that is not in the table
)

type venueEntry struct {
	index  int32
	target venueTarget
}

var embeddedCoins = sync.OnceValue(func() *CoinTable {
	t, err := ParseCoins(coinsCSV, fiatsCSV)
	if err != nil {
		panic("the embedded coin table is broken, which a test forbids: " + err.Error())
	}
	return t
})

// Coins returns the embedded coin table, parsed at the first call.
func Coins() *CoinTable { return embeddedCoins() }

// All returns every coin by rank, the largest first.
func (t *CoinTable) All() []Coin { return t.coins }

// Fiats returns every fiat currency by code.
func (t *CoinTable) Fiats() []Fiat { return t.fiats }

// ByID returns the coin with a canonical id. Ids are lower case and matched as they are.
func (t *CoinTable) ByID(id string) (Coin, bool) {
	i, ok := t.byID[id]
	if !ok {
		return Coin{}, false
	}
	return t.coins[i], true
}

// BySymbol returns the coins with a symbol in any letter case, the highest ranked first; a coin
// that has it only as an old name (XBT, MATIC) comes alone, since the table gives no such name
// to a symbol in use.
func (t *CoinTable) BySymbol(symbol string) []Coin {
	var buf keyBuffer
	key, ok := buf.symbol(symbol)
	if !ok {
		return nil
	}
	return t.bySymbol[string(key)]
}

// Aliases hands out the old and other names, in upper case, that a coin may have at any venue (XBT, MATIC), in no order. None
// of them is a symbol in use.
func (t *CoinTable) Aliases() iter.Seq2[string, Coin] {
	return func(yield func(string, Coin) bool) {
		for symbol, entry := range t.symbols {
			if entry.method == ResolvedByAlias && !yield(symbol, t.coins[entry.coin]) {
				return
			}
		}
	}
}

// Fiat returns the fiat currency with a code in any letter case.
func (t *CoinTable) Fiat(code string) (Fiat, bool) {
	var buf keyBuffer
	key, ok := buf.symbol(code)
	if !ok {
		return Fiat{}, false
	}
	i, ok := t.byFiatCode[string(key)]
	if !ok {
		return Fiat{}, false
	}
	return t.fiats[i], true
}

// Resolve finds the coin that a venue calls venueBase, in any letter case: what the table holds of
// that venue's symbol, else the coin with this symbol, the highest ranked if several have it.
// The method says which it was. A fiat base (EUR-USDT) is not a coin. Symbols that mean many
// units of a coin (1000SATS, 1MBABYDOGE) are in no alias, because their price is not the coin's:
// they stay unmapped. It allocates nothing.
func (t *CoinTable) Resolve(venue, venueBase string) (coin Coin, method string, ok bool) {
	var buf keyBuffer
	key, symbol, ok := buf.venueSymbol(venue, venueBase)
	if !ok {
		return Coin{}, "", false
	}
	if e, found := t.venue[string(key)]; found {
		if e.target != venueCoin {
			return Coin{}, "", false
		}
		return t.coins[e.index], ResolvedByVenueAlias, true
	}
	e, ok := t.symbols[string(symbol)]
	if !ok {
		return Coin{}, "", false
	}
	return t.coins[e.coin], e.method, true
}

// Refuses reports whether a venue uses a symbol for something that the table does not have.
func (t *CoinTable) Refuses(venue, symbol string) bool {
	var buf keyBuffer
	key, _, ok := buf.venueSymbol(venue, symbol)
	if !ok {
		return false
	}
	e, found := t.venue[string(key)]
	return found && e.target == venueRefused
}

// ResolveQuote finds what a venue calls venueQuote: what the table holds of that venue's symbol,
// else the fiat currency with this code, else the coin as Resolve does. Fiat comes before coins
// because no venue quotes in a coin that is named like a currency; so it also serves bases that
// may be fiat. It allocates nothing.
func (t *CoinTable) ResolveQuote(venue, venueQuote string) (quote Asset, ok bool) {
	var buf keyBuffer
	key, symbol, ok := buf.venueSymbol(venue, venueQuote)
	if !ok {
		return Asset{}, false
	}
	if e, found := t.venue[string(key)]; found {
		switch e.target {
		case venueCoin:
			return Asset{ID: t.coins[e.index].ID}, true
		case venueFiat:
			return Asset{ID: t.fiats[e.index].Code, Fiat: true}, true
		default:
			return Asset{}, false
		}
	}
	if i, found := t.byFiatCode[string(symbol)]; found {
		return Asset{ID: t.fiats[i].Code, Fiat: true}, true
	}
	e, ok := t.symbols[string(symbol)]
	if !ok {
		return Asset{}, false
	}
	return Asset{ID: t.coins[e.coin].ID}, true
}

// keyBuffer builds a map key in the caller's frame. Its size bounds venue and symbol together;
// the longest symbol that a venue is known to list has 30 bytes.
type keyBuffer [96]byte

func (b *keyBuffer) symbol(symbol string) ([]byte, bool) {
	_, key, ok := b.venueSymbol("", symbol)
	return key, ok
}

// venueSymbol writes "venue:SYMBOL" and returns the whole and the symbol within it.
func (b *keyBuffer) venueSymbol(venue, symbol string) (key, upper []byte, ok bool) {
	n := len(venue) + 1 + len(symbol)
	if symbol == "" || n > len(b) {
		return nil, nil, false
	}
	for i := range len(venue) {
		b[i] = lowerASCII(venue[i])
	}
	b[len(venue)] = ':'
	for i := range len(symbol) {
		b[len(venue)+1+i] = upperASCII(symbol[i])
	}
	return b[:n], b[len(venue)+1 : n], true
}

func lowerASCII(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// upperASCII leaves other bytes alone, so that symbols in other scripts keep theirs.
func upperASCII(c byte) byte {
	if 'a' <= c && c <= 'z' {
		return c - ('a' - 'A')
	}
	return c
}
