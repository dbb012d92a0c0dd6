// Package market invents what the simulated venues and sources report: what coins and currencies cost, how they are traded
// in a pair, and what is known of them.
//
// Everything is a function of a seed and the time alone, so that any moment can be asked for without the moments before it,
// and two processes with one seed agree. Times are Unix nanoseconds unless they are of package time.
package market

import (
	"math"

	"github.com/marketlog/marketlog/schemas"
)

// World is what everything costs in USD at any time. Coins are the real ones of the coin table; every
// number about them is invented.
type World struct {
	Seed  Seed
	Table *schemas.CoinTable
	Coins map[string]*Asset // by id
	Fiats map[string]*Asset // by code
}

// Asset is a coin or a currency. Its price is that of its path, times that of its parent if it represents
// for another asset.
type Asset struct {
	ID     string
	Path   *Path
	Parent *Asset
	Rank   int // 0 of a currency
	Stable bool
	// Volume is what is traded in a day on all venues, in USD.
	Volume float64
}

// At is the price at a time in Unix nanoseconds, in USD.
func (a *Asset) At(t int64) float64 {
	price := a.Path.At(t)
	if a.Parent != nil {
		price *= a.Parent.At(t)
	}
	return price
}

// over bounds the price in [from, to). With a parent, high and low are bounds that need not be met.
func (a *Asset) over(from, to int64) span {
	s := a.Path.over(from, to)
	if a.Parent != nil {
		p := a.Parent.over(from, to)
		s = span{s.open * p.open, s.high * p.high, s.low * p.low, s.close * p.close}
	}
	return s
}

// Level is what the asset costs when its walk is at zero.
func (a *Asset) Level() float64 {
	if a.Parent != nil {
		return a.Path.level * a.Parent.Level()
	}
	return a.Path.level
}

// levels are invented prices of the best-known coins, near enough to what people expect. All others
// are drawn from their rank.
var levels = map[string]float64{
	"bitcoin": 90_000, "ethereum": 3_200, "ripple": 2.2, "binancecoin": 850, "solana": 150, "tron": 0.28,
	"dogecoin": 0.16, "cardano": 0.5, "hyperliquid": 32, "bitcoin-cash": 520, "leo-token": 9.2, "chainlink": 14,
	"monero": 380, "stellar": 0.26, "zcash": 400, "litecoin": 90, "sui": 1.7, "avalanche-2": 15,
	"hedera-hashgraph": 0.15, "shiba-inu": 0.0000092, "the-open-network": 1.7, "crypto-com-chain": 0.11,
	"polkadot": 2.4, "uniswap": 6.5, "mantle": 1.1, "tether-gold": 4_100, "pax-gold": 4_100, "bittensor": 300,
	"aave": 180, "okb": 110, "near": 1.9, "pepe": 0.0000048, "ethereum-classic": 14, "internet-computer": 4,
	"worldcoin-wld": 0.65, "aptos": 2.1, "cosmos": 2.5, "arbitrum": 0.22, "algorand": 0.14, "filecoin": 1.6,
	"vechain": 0.014, "bonk": 0.0000095, "dash": 60, "optimism": 0.32, "tezos": 0.5, "injective-protocol": 5.5,
	"celestia": 0.6, "the-graph": 0.045, "bittorrent": 0.00000043, "floki": 0.000045, "maker": 1_500,
	"canton-network": 0.1, "world-liberty-financial": 0.14, "whitebit": 50, "memecore": 1.5, "bitget-token": 3.6,
	"blackrock-usd-institutional-digital-liquidity-fund": 1, "midnight-3": 0.06, "sky": 0.06, "aster-2": 1.1,
	"pi-network": 0.2, "ondo-finance": 0.5, "kucoin-shares": 11, "polygon-ecosystem-token": 0.13, "htx-dao": 0.0000018,
	"ethena": 0.25, "gatechain-token": 10, "kaspa": 0.05, "rain": 0.008, "quant-network": 80, "render-token": 1.7,
	"flare-networks": 0.012, "xdce-crowd-sale": 0.05, "venice-token": 3, "stable-2": 0.02, "humanity": 0.12,
	"hash-2": 0.03, "morpho": 1.3, "pump-fun": 0.0027, "sei-network": 0.13, "jupiter-exchange-solana": 0.22,
	"pudgy-penguins": 0.011, "official-trump": 5.5, "virtual-protocol": 0.8, "nexo": 1, "fetch-ai": 0.22, "story-2": 1.8,
	"curve-dao-token": 0.4, "blockstack": 0.3, "aerodrome-finance": 0.5, "lido-dao": 0.6, "layerzero": 1.4,
	"immutable-x": 0.27, "ether-fi": 0.75, "decred": 20, "monad": 0.025, "lighter": 2, "spx6900": 0.5, "kaia": 0.07,
	"starknet": 0.09, "bitcoin-cash-sv": 20, "plasma": 0.15, "gnosis": 120, "conflux-token": 0.075, "iota": 0.09,
	"ethereum-name-service": 10, "pyth-network": 0.065, "telcoin": 0.004, "jasmycoin": 0.006,
}

// parents are the assets that wrapped and staked coins represent, and what one unit gains on them in a year.
var parents = map[string]struct {
	of   string
	gain float64
}{
	"staked-ether": {"ethereum", 0}, "wrapped-bitcoin": {"bitcoin", 0}, "weth": {"ethereum", 0},
	"wrapped-steth": {"ethereum", 0.03}, "coinbase-wrapped-btc": {"bitcoin", 0}, "wrapped-eeth": {"ethereum", 0.03},
	"bitcoin-avalanche-bridged-btc-b": {"bitcoin", 0}, "jito-staked-sol": {"solana", 0.06},
	"binance-staked-sol": {"solana", 0.06}, "wrapped-beacon-eth": {"ethereum", 0.03},
	"coinbase-wrapped-staked-eth": {"ethereum", 0.03}, "rocket-pool-eth": {"ethereum", 0.03},
	"ethena-staked-usde": {"ethena-usde", 0.05}, "susds": {"usds", 0.05},
	"rootstock": {"bitcoin", 0}, "tbtc": {"bitcoin", 0},
}

// fiatLevels are invented USD prices of one unit, in units for one USD where that reads better.
var fiatLevels = func() map[string]float64 {
	levels := map[string]float64{"USD": 1, "EUR": 1.15, "GBP": 1.32, "AUD": 0.66, "NZD": 0.58, "KWD": 3.26, "BHD": 2.65}
	for code, perDollar := range map[string]float64{
		"AED": 3.6725, "ARS": 1_440, "BDT": 122, "BGN": 1.7, "BRL": 5.4, "CAD": 1.4, "CHF": 0.81, "CLP": 940,
		"CNH": 7.1, "CNY": 7.1, "COP": 3_900, "CZK": 21, "DKK": 6.5, "EGP": 47.5, "GEL": 2.7, "GHS": 11, "HKD": 7.78,
		"HRK": 6.55, "HUF": 335, "IDR": 16_600, "ILS": 3.27, "INR": 88.5, "ISK": 126, "JPY": 154, "KES": 129, "KRW": 1_450,
		"KZT": 525, "LKR": 305, "MAD": 9.3, "MXN": 18.5, "MYR": 4.15, "NGN": 1_440, "NOK": 10.1, "PEN": 3.4, "PHP": 58.5,
		"PKR": 281, "PLN": 3.7, "QAR": 3.64, "RON": 4.4, "RUB": 81, "SAR": 3.75, "SEK": 9.5, "SGD": 1.3, "THB": 32.5,
		"TRY": 42.2, "TWD": 31, "UAH": 42, "UYU": 39.8, "UZS": 12_000, "VND": 26_300, "ZAR": 17.3,
	} {
		levels[code] = 1 / perDollar
	}
	return levels
}()

// Standard deviations of a day, in log price.
const (
	MarketWeight  = 0.02
	sectorWeight  = 0.01
	dollarWeight  = 0.002
	fiatWeight    = 0.002
	stableWeight  = 0.0004
	wobblyWeight  = 0.008
	wrapperWeight = 0.0003
	// sectors is how many groups of coins move together beyond the whole market.
	sectors = 12
	// stableOctaves brings what should not wander back within a day or so.
	stableOctaves = 2
)

// NewWorld draws the prices of all coins and currencies from a seed.
func NewWorld(seed Seed) *World {
	w := &World{Seed: seed, Table: schemas.Coins(), Coins: map[string]*Asset{}, Fiats: map[string]*Asset{}}
	dollar := Factor{seed.Of("dollar"), dollarWeight}
	for _, f := range w.Table.Fiats() {
		level, ok := fiatLevels[f.Code]
		if !ok {
			continue
		}
		own := Factor{seed.Of("fiat " + f.Code), fiatWeight}
		p := NewPath(own.Seed, level, HourOctaves, dollar, own)
		if f.Code == schemas.USD {
			p = NewPath(own.Seed, level, 0, Factor{own.Seed, 0})
		}
		w.Fiats[f.Code] = &Asset{ID: f.Code, Path: p, Stable: true, Volume: 2e9}
	}
	for _, c := range w.Table.All() {
		w.Coins[c.ID] = w.newCoin(c)
	}
	for id, p := range parents {
		if a := w.Coins[id]; a != nil {
			a.Parent = w.Coins[p.of]
			a.Path.drift = math.Log1p(p.gain) / (365.25 * 24)
		}
	}
	return w
}

func (w *World) newCoin(c schemas.Coin) *Asset {
	own := w.Seed.Of(c.ID)
	a := &Asset{ID: c.ID, Rank: c.Rank}
	cap := 2e12 / math.Pow(float64(c.Rank), 1.4)
	a.Volume = cap * (0.02 + 0.06*own.Unit(0))
	_, standsFor := parents[c.ID]
	switch {
	case c.Kind == schemas.KindStablecoin:
		weight := stableWeight
		if own.At(1)%12 == 0 { // one in twelve wobbles
			weight = wobblyWeight
		}
		a.Path, a.Stable = NewPath(own, 1, stableOctaves, Factor{own, weight}), true
		a.Parent = w.Fiats[c.Peg]
		a.Volume *= 3
	case standsFor:
		a.Path = NewPath(own, 1, stableOctaves, Factor{own, wrapperWeight})
		a.Volume /= 10
	default:
		level, ok := levels[c.ID]
		if !ok {
			supply := math.Pow(10, 6.5+4.5*own.Unit(2))
			level = cap / supply
		}
		a.Path = NewPath(own, level, HourOctaves,
			Factor{w.Seed.Of("market"), MarketWeight * (0.7 + 0.8*own.Unit(3))},
			Factor{w.Seed.Of("sector") + Seed(sectorOf(own)), sectorWeight},
			Factor{own, 0.008 + 0.006*math.Log(float64(c.Rank))},
		)
	}
	return a
}

// sectorOf is the group of coins that a coin moves with, by its own seed.
func sectorOf(own Seed) int { return int(own.At(4) % sectors) }

// QuoteAsset finds what markets of a venue are quoted in, by the venue's name for it.
func (w *World) QuoteAsset(venue, name string) *Asset {
	q, ok := w.Table.ResolveQuote(venue, name)
	switch {
	case !ok:
		return nil
	case q.Fiat:
		return w.Fiats[q.ID]
	}
	return w.Coins[q.ID]
}
