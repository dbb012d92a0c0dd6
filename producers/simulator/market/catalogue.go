package market

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/marketlog/marketlog/schemas"
)

// Catalogue is what the sources know of coins: those of the coin table, which venues trade, and a long tail
// that only sources list. It is made once; everything that changes is a function of the time.
type Catalogue struct {
	World *World
	Coins []*Coin
	ByID  map[string]*Coin
	// Quotes are what values are expressed in beside USD.
	Quotes []QuoteUnit
}

// Coin is a coin as sources know it.
type Coin struct {
	*Asset
	Seed         Seed
	Place        int // in the catalogue
	Symbol, Name string
	Kind         schemas.Kind
	Peg          string
	// Born is when it was first traded.
	Born int64
	// circulating grows by emission a year from supplyFrom on, up to total; max is 0 if there is no bound. A
	// coin whose supply nobody knows has none.
	circulating, total, max, emission float64
	Categories                        []string
	Platforms                         []Platform
	// Native coins have a chain of their own.
	Native bool
	// Gone coins are traded nowhere any more; unpriced ones never were.
	Gone, Unpriced bool
	// Dead stablecoins have lost their peg for good.
	Dead bool

	// Of the newest hour asked for.
	extremes atomic.Pointer[extremes]
	hours    atomic.Pointer[hours]
}

// Platform is a chain that a coin is issued on.
type Platform struct{ Chain, Address string }

// SupplyFrom is when the supplies of the catalogue hold.
const SupplyFrom = 1_767_225_600 * Second // 2026

// supplies of the best-known coins, near enough to what people expect: circulating, total and greatest, in
// millions, and how much is added in a year.
var supplies = map[string][4]float64{
	"bitcoin": {19.97, 21, 21, 0.0082}, "ethereum": {120.7, 120.7, 0, 0.004}, "ripple": {60_300, 99_985, 100_000, 0.05},
	"binancecoin": {137.7, 137.7, 200, 0}, "solana": {562, 617, 0, 0.045}, "tron": {94_700, 94_700, 0, 0},
	"dogecoin": {168_000, 168_000, 0, 0.03}, "cardano": {36_100, 44_990, 45_000, 0.02}, "bitcoin-cash": {19.97, 21, 21, 0.0082},
	"litecoin": {76.7, 84, 84, 0.015}, "monero": {18.45, 18.45, 0, 0.0085}, "stellar": {32_400, 50_000, 50_000, 0.03},
	"chainlink": {708, 1_000, 1_000, 0.04}, "shiba-inu": {589_245_000, 589_500_000, 0, 0}, "avalanche-2": {430, 463, 720, 0.03},
	"uniswap": {630, 900, 1_000, 0}, "aave": {15.2, 16, 16, 0}, "near": {1_280, 1_280, 0, 0.05}, "pepe": {420_690_000, 420_690_000, 420_690_000, 0},
	"zcash": {16.4, 21, 21, 0.04}, "hyperliquid": {270, 962, 962, 0.05}, "the-open-network": {2_450, 5_150, 0, 0.006},
	"tether": {183_000, 183_000, 0, 0.2}, "usd-coin": {74_000, 74_000, 0, 0.15}, "dai": {4_780, 4_780, 0, -0.05},
	"usds": {6_630, 6_630, 0, 0.3}, "ethena-usde": {4_230, 4_230, 0, -0.3}, "paypal-usd": {3_900, 3_900, 0, 0.4},
	"staked-ether": {8.9, 8.9, 0, 0}, "wrapped-steth": {3.6, 3.6, 0, 0}, "wrapped-bitcoin": {0.127, 0.127, 0, 0}, "weth": {3.3, 3.3, 0, 0},
	"coinbase-wrapped-btc": {0.073, 0.073, 0, 0.2}, "leo-token": {922, 985, 0, -0.01}, "polkadot": {1_650, 1_650, 2_100, 0.07}, "hedera-hashgraph": {42_700, 50_000, 50_000, 0.02}, "sui": {3_700, 10_000, 10_000, 0.2},
}

// The extremes of when coins were first traded: the best known were first.
const (
	FirstBorn = 1_366_977_600 * Second // 2013-04-26
	BornSpan  = 4_400 * Day
)

// Shares of the long tail: what shares its symbol with a coin of the table, what is traded no more, whose
// supply nobody knows, and what nobody trades; one in so many.
const (
	namesakes = 9
	goneEvery = 50
	unknown   = 25
	untraded  = 60
)

// NewCatalogue knows n coins, those of the table first.
func NewCatalogue(w *World, n int) *Catalogue {
	c := &Catalogue{World: w, ByID: map[string]*Coin{}}
	table := w.Table.All()
	n = max(n, len(table))
	for _, t := range table {
		c.add(&Coin{Asset: w.Coins[t.ID], Symbol: t.Symbol, Name: t.Name, Kind: t.Kind, Peg: t.Peg})
	}
	for i := 0; len(c.Coins) < n; i++ {
		c.add(c.tail(i))
	}
	c.Quotes = c.quoteUnits()
	return c
}

// tail invents the i-th coin that only sources know.
func (c *Catalogue) tail(i int) *Coin {
	name, symbol := InventedName(i)
	rank := len(c.World.Table.All()) + 1 + i
	t := schemas.Coin{ID: Slug(name), Symbol: symbol, Name: name, Rank: rank, Kind: schemas.KindToken}
	n := &Coin{Symbol: symbol, Name: name, Kind: t.Kind}
	switch own := c.World.Seed.Of(t.ID); {
	case i == 3: // a peg that broke
		t.ID, t.Kind = "amber-dollar", schemas.KindToken
		n.Symbol, n.Name, n.Kind, n.Peg, n.Dead = "AMBD", "Amber Dollar", schemas.KindStablecoin, schemas.USD, true
	case i%namesakes == 0:
		known := c.World.Table.All()[int(own.At(10)%400)]
		n.Symbol, n.Name = known.Symbol, name+" Bridged "+known.Name
		t.ID = Slug(n.Name)
	case i%goneEvery == 7:
		n.Gone = true
	case i%unknown == 11:
		n.circulating = -1 // nobody knows
	case i%untraded == 17:
		n.Unpriced = true
	case own.At(11)%4 == 0:
		n.Kind = schemas.KindCoin
	}
	if _, taken := c.ByID[t.ID]; taken {
		t.ID += "-" + strconv.Itoa(rank)
	}
	n.Asset = c.World.newCoin(t)
	if n.Dead {
		n.Path = NewPath(c.World.Seed.Of(t.ID), 0.02, stableOctaves, Factor{c.World.Seed.Of(t.ID), 0.05})
	}
	return n
}

// add completes what follows from the coin's kind and seed.
func (c *Catalogue) add(n *Coin) {
	n.Seed, n.Place = c.World.Seed.Of("coin "+n.ID), len(c.Coins)
	age := 0.9*math.Pow(1-min(float64(n.Rank)/1000, 0.95), 0.5)*n.Seed.Unit(0) + 0.1*n.Seed.Unit(1)
	if n.Rank <= 2 {
		age = 1
	}
	n.Born = FirstBorn + int64((1-age)*float64(BornSpan))/Day*Day
	if n.Place >= len(c.World.Table.All()) && n.Seed.At(2)%40 == 0 { // a listing of these years
		n.Born = SupplyFrom + int64(n.Seed.Unit(3)*2*365)*Day
	}
	c.supply(n)
	n.Native = n.Kind == schemas.KindCoin
	n.Categories = categoriesOf(n)
	if !n.Native {
		n.Platforms = platformsOf(n)
	}
	c.Coins = append(c.Coins, n)
	c.ByID[n.ID] = n
}

// supply is what makes the coin's rank, unless it is known.
func (c *Catalogue) supply(n *Coin) {
	const million = 1e6
	if s, ok := supplies[n.ID]; ok {
		n.circulating, n.total, n.max, n.emission = s[0]*million, s[1]*million, s[2]*million, s[3]
		return
	}
	if n.circulating < 0 || n.Unpriced {
		n.circulating, n.total = 0, math.Round(math.Pow(10, 7+3*n.Seed.Unit(4)))
		return
	}
	worth := 2e12 / math.Pow(float64(n.Rank), 1.4)
	n.circulating = TwoDigits(worth / n.Level())
	n.total = n.circulating
	if n.Stable {
		n.emission = 0.2 * (n.Seed.Unit(5) - 0.3)
		return
	}
	switch n.Seed.At(6) % 3 {
	case 0: // all of it is out
		n.max = n.total
	case 1: // some is locked
		n.total = TwoDigits(n.circulating * (1.1 + 2*n.Seed.Unit(7)))
		n.max, n.emission = n.total, 0.08*n.Seed.Unit(8)
	case 2: // it grows without a bound
		n.emission = 0.06 * n.Seed.Unit(8)
	}
}

// TwoDigits keeps what people would give a supply.
func TwoDigits(x float64) float64 {
	scale := math.Pow10(int(math.Floor(math.Log10(x))) - 2)
	return math.Round(x/scale) * scale
}

// CirculatingAt is the supply in circulation, whole units, as of the full hour.
func (n *Coin) CirculatingAt(t int64) float64 {
	years := float64(FloorDiv(t, Hour)*Hour-SupplyFrom) / float64(365*Day)
	supply := math.Round(n.circulating * (1 + n.emission*years))
	if n.max > 0 {
		supply = min(supply, n.max)
	}
	return supply
}

// TotalAt is what exists of it.
func (n *Coin) TotalAt(t int64) float64 { return max(n.total, n.CirculatingAt(t)) }

// Listed reports whether sources list the coin at a time.
func (n *Coin) Listed(t int64) bool { return n.Born <= t && !n.Gone }

// VolumeOf is what is traded of it in 24 hours at a price, in USD.
func (n *Coin) VolumeOf(t int64, price float64) float64 {
	return n.Volume * math.Exp(0.05*n.Seed.Noise(FloorDiv(t, Hour), 3)) * price / n.Level()
}

// sectorCategories are by the sector that a coin moves with.
var sectorCategories = [sectors][]string{
	{"Decentralized Finance (DeFi)", "Lending/Borrowing"}, {"Meme", "Dog-Themed"}, {"Artificial Intelligence (AI)", "AI Agents"},
	{"Gaming (GameFi)", "Metaverse"}, {"Decentralized Finance (DeFi)", "Decentralized Exchange (DEX)"}, {"Infrastructure", "Oracle"},
	{"Layer 2 (L2)", "Rollup"}, {"Real World Assets (RWA)", "Tokenized Assets"}, {"Privacy", "Zero Knowledge (ZK)"},
	{"Storage", "DePIN"}, {"NFT", "SocialFi"}, {"Decentralized Finance (DeFi)", "Yield Farming"},
}

// knownCategories are those of coins that everybody places.
var knownCategories = map[string][]string{
	"bitcoin": {"Proof of Work (PoW)"}, "litecoin": {"Proof of Work (PoW)"}, "dogecoin": {"Meme", "Proof of Work (PoW)"},
	"shiba-inu": {"Meme", "Dog-Themed"}, "pepe": {"Meme"}, "bonk": {"Meme", "Dog-Themed"}, "floki": {"Meme", "Dog-Themed"},
	"monero": {"Privacy", "Proof of Work (PoW)"}, "zcash": {"Privacy", "Proof of Work (PoW)"}, "dash": {"Privacy"},
	"binancecoin": {"Exchange-based Tokens"}, "leo-token": {"Exchange-based Tokens"}, "okb": {"Exchange-based Tokens"},
	"crypto-com-chain": {"Exchange-based Tokens"}, "kucoin-shares": {"Exchange-based Tokens"}, "bitget-token": {"Exchange-based Tokens"},
	"whitebit": {"Exchange-based Tokens"}, "gatechain-token": {"Exchange-based Tokens"}, "htx-dao": {"Exchange-based Tokens"},
	"uniswap": {"Decentralized Finance (DeFi)", "Decentralized Exchange (DEX)"}, "aave": {"Decentralized Finance (DeFi)", "Lending/Borrowing"},
	"maker": {"Decentralized Finance (DeFi)"}, "sky": {"Decentralized Finance (DeFi)"}, "lido-dao": {"Decentralized Finance (DeFi)", "Liquid Staking"},
	"curve-dao-token": {"Decentralized Finance (DeFi)", "Decentralized Exchange (DEX)"}, "chainlink": {"Decentralized Finance (DeFi)", "Oracle"},
	"arbitrum": {"Layer 2 (L2)", "Rollup"}, "optimism": {"Layer 2 (L2)", "Rollup"}, "starknet": {"Layer 2 (L2)", "Zero Knowledge (ZK)"},
	"tether-gold": {"Real World Assets (RWA)", "Tokenized Gold"}, "pax-gold": {"Real World Assets (RWA)", "Tokenized Gold"},
}

func categoriesOf(n *Coin) []string {
	var list []string
	known, placed := knownCategories[n.ID]
	switch {
	case n.Kind == schemas.KindStablecoin:
		list = []string{"Stablecoins", n.Peg + " Stablecoin", [...]string{"Fiat-backed Stablecoin", "Crypto-backed Stablecoin"}[n.Seed.At(20)%2]}
	case n.Kind == schemas.KindWrapped:
		list = []string{"Wrapped-Tokens", "Bridged-Tokens"}
	case n.Kind == schemas.KindStaked:
		list = []string{"Liquid Staking Tokens", "Liquid Staking"}
	case placed:
		list = slices.Clone(known)
	case n.Kind == schemas.KindCoin:
		list = []string{"Smart Contract Platform"}
	default:
		list = slices.Clone(sectorCategories[sectorOf(n.Asset.Path.seed)])
	}
	if n.Kind == schemas.KindCoin {
		list = append(list, "Layer 1 (L1)", "Cryptocurrency")
	}
	return list
}

// Chain is what coins are issued on: CoinGecko's id of it as a platform, DefiLlama's name, its coin and its number.
type Chain struct {
	ID, Name, Coin string
	Number         int
}

// Chains are what coins are issued on, the most used first. Not to be changed.
var Chains = []Chain{
	{"ethereum", "Ethereum", "ethereum", 1}, {"binance-smart-chain", "BSC", "binancecoin", 56}, {"solana", "Solana", "solana", 0},
	{"tron", "Tron", "tron", 728126428}, {"base", "Base", "", 8453}, {"arbitrum-one", "Arbitrum", "arbitrum", 42161},
	{"polygon-pos", "Polygon", "polygon-ecosystem-token", 137}, {"avalanche", "Avalanche", "avalanche-2", 43114},
	{"optimistic-ethereum", "OP Mainnet", "optimism", 10}, {"sui", "Sui", "sui", 0}, {"aptos", "Aptos", "aptos", 0},
	{"near-protocol", "Near", "near", 0}, {"mantle", "Mantle", "mantle", 5000}, {"sei-v2", "Sei", "sei-network", 1329},
	{"cardano", "Cardano", "cardano", 2001}, {"xdai", "Gnosis", "gnosis", 100},
}

func platformsOf(n *Coin) []Platform {
	var list []Platform
	first := 0
	if n.Seed.At(30)%4 == 0 { // not everything begins on Ethereum
		first = 1 + int(n.Seed.At(31)%7)
	}
	for i, c := range Chains {
		if i == first || i < 9 && n.Seed.Unit(int64(40+i)) < 0.6/float64(3+i) {
			list = append(list, Platform{c.ID, Contract(n.Seed.Of(c.ID), c.ID)})
		}
	}
	if i := slices.IndexFunc(list, func(p Platform) bool { return p.Chain == Chains[first].ID }); i > 0 {
		list[0], list[i] = list[i], list[0]
	}
	return list
}

const base58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"

// Contract invents an address in the manner of a chain.
func Contract(s Seed, chain string) string {
	letters := func(prefix string, n int) string {
		b := []byte(prefix)
		for i := len(prefix); i < n; i++ {
			b = append(b, base58[s.At(int64(i))%uint64(len(base58))])
		}
		return string(b)
	}
	switch chain {
	case "solana":
		return letters("", 44)
	case "tron":
		return letters("T", 34)
	case "sui", "aptos":
		return fmt.Sprintf("0x%016x%016x%016x%016x::coin::COIN", s.At(0), s.At(1), s.At(2), s.At(3))
	}
	return fmt.Sprintf("0x%016x%016x%08x", s.At(0), s.At(1), uint32(s.At(2)))
}
