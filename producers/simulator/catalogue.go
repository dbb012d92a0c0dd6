package simulator

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/marketlog/marketlog/schemas"
)

// catalogue is what the sources know of coins: those of the coin table, which venues trade, and a long tail
// that only sources have heard of. It is made once; everything that changes is a function of the time.
type catalogue struct {
	world *world
	coins []*coin
	byID  map[string]*coin
	// quotes are what values are told in beside USD.
	quotes []quoteUnit
}

// coin is a coin as sources know it.
type coin struct {
	*asset
	seed         seed
	place        int // in the catalogue
	symbol, name string
	kind         schemas.Kind
	peg          string
	// born is when it was first traded.
	born int64
	// circulating grows by emission a year from supplyFrom on, up to total; max is 0 if there is no bound. A
	// coin whose supply nobody knows has none.
	circulating, total, max, emission float64
	categories                        []string
	platforms                         []platform
	// native coins have a chain of their own.
	native bool
	// gone coins are traded nowhere any more; unpriced ones never were.
	gone, unpriced bool
	// dead stablecoins have lost their peg for good.
	dead bool

	// Of the newest hour asked for.
	extremes atomic.Pointer[extremes]
	hours    atomic.Pointer[hours]
}

// platform is a chain that a coin is issued on.
type platform struct{ chain, address string }

// supplyFrom is when the supplies of the catalogue hold.
const supplyFrom = 1_767_225_600 * second // 2026

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
	firstBorn = 1_366_977_600 * second // 2013-04-26
	bornSpan  = 4_400 * day
)

// Shares of the long tail: what shares its symbol with a coin of the table, what is traded no more, whose
// supply nobody knows, and what nobody trades; one in so many.
const (
	namesakes = 9
	goneEvery = 50
	unknown   = 25
	untraded  = 60
)

// newCatalogue knows n coins, those of the table first.
func newCatalogue(w *world, n int) *catalogue {
	c := &catalogue{world: w, byID: map[string]*coin{}}
	table := w.table.All()
	n = max(n, len(table))
	for _, t := range table {
		c.add(&coin{asset: w.coins[t.ID], symbol: t.Symbol, name: t.Name, kind: t.Kind, peg: t.Peg})
	}
	for i := 0; len(c.coins) < n; i++ {
		c.add(c.tail(i))
	}
	c.quotes = c.quoteUnits()
	return c
}

// tail invents the i-th coin that only sources know.
func (c *catalogue) tail(i int) *coin {
	name, symbol := tailName(i)
	rank := len(c.world.table.All()) + 1 + i
	t := schemas.Coin{ID: slug(name), Symbol: symbol, Name: name, Rank: rank, Kind: schemas.KindToken}
	n := &coin{symbol: symbol, name: name, kind: t.Kind}
	switch own := c.world.seed.of(t.ID); {
	case i == 3: // a peg that broke
		t.ID, t.Kind = "amber-dollar", schemas.KindToken
		n.symbol, n.name, n.kind, n.peg, n.dead = "AMBD", "Amber Dollar", schemas.KindStablecoin, schemas.USD, true
	case i%namesakes == 0:
		known := c.world.table.All()[int(own.at(10)%400)]
		n.symbol, n.name = known.Symbol, name+" Bridged "+known.Name
		t.ID = slug(n.name)
	case i%goneEvery == 7:
		n.gone = true
	case i%unknown == 11:
		n.circulating = -1 // nobody knows
	case i%untraded == 17:
		n.unpriced = true
	case own.at(11)%4 == 0:
		n.kind = schemas.KindCoin
	}
	if _, taken := c.byID[t.ID]; taken {
		t.ID += "-" + strconv.Itoa(rank)
	}
	n.asset = c.world.newCoin(t)
	if n.dead {
		n.path = newPath(c.world.seed.of(t.ID), 0.02, stableOctaves, factor{c.world.seed.of(t.ID), 0.05})
	}
	return n
}

// add completes what follows from the coin's kind and seed.
func (c *catalogue) add(n *coin) {
	n.seed, n.place = c.world.seed.of("coin "+n.id), len(c.coins)
	age := 0.9*math.Pow(1-min(float64(n.rank)/1000, 0.95), 0.5)*n.seed.unit(0) + 0.1*n.seed.unit(1)
	if n.rank <= 2 {
		age = 1
	}
	n.born = firstBorn + int64((1-age)*float64(bornSpan))/day*day
	if n.place >= len(c.world.table.All()) && n.seed.at(2)%40 == 0 { // a listing of these years
		n.born = supplyFrom + int64(n.seed.unit(3)*2*365)*day
	}
	c.supply(n)
	n.native = n.kind == schemas.KindCoin
	n.categories = categoriesOf(n)
	if !n.native {
		n.platforms = platformsOf(n)
	}
	c.coins = append(c.coins, n)
	c.byID[n.id] = n
}

// supply is what makes the coin's rank, unless it is known.
func (c *catalogue) supply(n *coin) {
	const million = 1e6
	if s, ok := supplies[n.id]; ok {
		n.circulating, n.total, n.max, n.emission = s[0]*million, s[1]*million, s[2]*million, s[3]
		return
	}
	if n.circulating < 0 || n.unpriced {
		n.circulating, n.total = 0, math.Round(math.Pow(10, 7+3*n.seed.unit(4)))
		return
	}
	worth := 2e12 / math.Pow(float64(n.rank), 1.4)
	n.circulating = twoDigits(worth / n.level())
	n.total = n.circulating
	if n.stable {
		n.emission = 0.2 * (n.seed.unit(5) - 0.3)
		return
	}
	switch n.seed.at(6) % 3 {
	case 0: // all of it is out
		n.max = n.total
	case 1: // some is locked
		n.total = twoDigits(n.circulating * (1.1 + 2*n.seed.unit(7)))
		n.max, n.emission = n.total, 0.08*n.seed.unit(8)
	case 2: // it grows without a bound
		n.emission = 0.06 * n.seed.unit(8)
	}
}

// twoDigits keeps what people would give a supply.
func twoDigits(x float64) float64 {
	scale := math.Pow10(int(math.Floor(math.Log10(x))) - 2)
	return math.Round(x/scale) * scale
}

// circulatingAt is the supply in circulation, whole units, as of the full hour.
func (n *coin) circulatingAt(t int64) float64 {
	years := float64(floorDiv(t, hour)*hour-supplyFrom) / float64(365*day)
	supply := math.Round(n.circulating * (1 + n.emission*years))
	if n.max > 0 {
		supply = min(supply, n.max)
	}
	return supply
}

// totalAt is what exists of it.
func (n *coin) totalAt(t int64) float64 { return max(n.total, n.circulatingAt(t)) }

// listed tells whether sources list the coin at a time.
func (n *coin) listed(t int64) bool { return n.born <= t && !n.gone }

// volumeOf is what is traded of it in 24 hours at a price, in USD.
func (n *coin) volumeOf(t int64, price float64) float64 {
	return n.volume * math.Exp(0.05*n.seed.noise(floorDiv(t, hour), 3)) * price / n.level()
}

// paprikaID is how CoinPaprika spells it: the symbol and the name.
func (n *coin) paprikaID() string { return slug(n.symbol) + "-" + slug(n.name) }

// date spells a day.
func date(t int64) string { return spellTime(t, time.DateOnly) }

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

func categoriesOf(n *coin) []string {
	var list []string
	known, placed := knownCategories[n.id]
	switch {
	case n.kind == schemas.KindStablecoin:
		list = []string{"Stablecoins", n.peg + " Stablecoin", [...]string{"Fiat-backed Stablecoin", "Crypto-backed Stablecoin"}[n.seed.at(20)%2]}
	case n.kind == schemas.KindWrapped:
		list = []string{"Wrapped-Tokens", "Bridged-Tokens"}
	case n.kind == schemas.KindStaked:
		list = []string{"Liquid Staking Tokens", "Liquid Staking"}
	case placed:
		list = slices.Clone(known)
	case n.kind == schemas.KindCoin:
		list = []string{"Smart Contract Platform"}
	default:
		list = slices.Clone(sectorCategories[sectorOf(n.asset.path.seed)])
	}
	if n.kind == schemas.KindCoin {
		list = append(list, "Layer 1 (L1)", "Cryptocurrency")
	}
	return list
}

// chain is what coins are issued on: CoinGecko's id of it as a platform, DefiLlama's name, its coin and its number.
type chain struct {
	id, name, coin string
	number         int
}

// chains, the most used first.
var chains = []chain{
	{"ethereum", "Ethereum", "ethereum", 1}, {"binance-smart-chain", "BSC", "binancecoin", 56}, {"solana", "Solana", "solana", 0},
	{"tron", "Tron", "tron", 728126428}, {"base", "Base", "", 8453}, {"arbitrum-one", "Arbitrum", "arbitrum", 42161},
	{"polygon-pos", "Polygon", "polygon-ecosystem-token", 137}, {"avalanche", "Avalanche", "avalanche-2", 43114},
	{"optimistic-ethereum", "OP Mainnet", "optimism", 10}, {"sui", "Sui", "sui", 0}, {"aptos", "Aptos", "aptos", 0},
	{"near-protocol", "Near", "near", 0}, {"mantle", "Mantle", "mantle", 5000}, {"sei-v2", "Sei", "sei-network", 1329},
	{"cardano", "Cardano", "cardano", 2001}, {"xdai", "Gnosis", "gnosis", 100},
}

func platformsOf(n *coin) []platform {
	var list []platform
	first := 0
	if n.seed.at(30)%4 == 0 { // not everything begins on Ethereum
		first = 1 + int(n.seed.at(31)%7)
	}
	for i, c := range chains {
		if i == first || i < 9 && n.seed.unit(int64(40+i)) < 0.6/float64(3+i) {
			list = append(list, platform{c.id, contract(n.seed.of(c.id), c.id)})
		}
	}
	if i := slices.IndexFunc(list, func(p platform) bool { return p.chain == chains[first].id }); i > 0 {
		list[0], list[i] = list[i], list[0]
	}
	return list
}

const base58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"

// contract invents an address in the manner of a chain.
func contract(s seed, chain string) string {
	letters := func(prefix string, n int) string {
		b := []byte(prefix)
		for i := len(prefix); i < n; i++ {
			b = append(b, base58[s.at(int64(i))%uint64(len(base58))])
		}
		return string(b)
	}
	switch chain {
	case "solana":
		return letters("", 44)
	case "tron":
		return letters("T", 34)
	case "sui", "aptos":
		return fmt.Sprintf("0x%016x%016x%016x%016x::coin::COIN", s.at(0), s.at(1), s.at(2), s.at(3))
	}
	return fmt.Sprintf("0x%016x%016x%08x", s.at(0), s.at(1), uint32(s.at(2)))
}
