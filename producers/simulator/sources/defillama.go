package sources

import (
	"cmp"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/marketlog/marketlog/producers/simulator/market"
	"github.com/marketlog/marketlog/producers/simulator/provider"
)

// defiLlama serves the value locked in protocols and on chains, and how much there is of each stablecoin and
// where, as described on https://api-docs.defillama.com and made by https://github.com/DefiLlama/defillama-server
// and https://github.com/DefiLlama/peggedassets-server. What the provider has on several hosts is on one here.
func defiLlama() Source {
	return Source{
		Slug: "defillama", Requests: 300, Per: time.Minute, Tagged: true, MaxAge: 10 * time.Minute,
		Routes: func(r *Reference) map[string]http.HandlerFunc {
			l := &llama{Reference: r, protocols: r.defi().protocols()}
			return map[string]http.HandlerFunc{"GET /protocols": l.list, "GET /v2/chains": l.chains, "GET /v2/historicalChainTvl": l.past, "GET /stablecoins": l.stablecoins}
		},
	}
}

type llama struct {
	*Reference
	protocols []*protocol
}

// protocol is something that value is locked in.
type protocol struct {
	seed           market.Seed
	place          int
	name, category string
	coin           *market.Coin // nil if it has none
	// locked is worth what its walk has, shared out to chains.
	locked *market.Path
	on     []int // places in chains
	shares []float64
	born   int64
}

// Protocols that everybody knows, with their coins, chains by place, and value locked in billions of USD.
var knownProtocols = []struct {
	name, category, coin string
	billions             float64
	on                   []int
}{
	{"Binance CEX", "CEX", "binancecoin", 160, []int{0, 1, 2, 3, 5, 7}}, {"OKX", "CEX", "okb", 25, []int{0, 3, 2, 5}},
	{"Bitfinex", "CEX", "leo-token", 24, []int{0, 3}}, {"Bybit", "CEX", "", 21, []int{0, 3, 12}}, {"Gate", "CEX", "gatechain-token", 8, []int{0, 1}},
	{"Lido", "Liquid Staking", "lido-dao", 28, []int{0}}, {"Rocket Pool", "Liquid Staking", "", 2.1, []int{0}},
	{"Jito Liquid Staking", "Liquid Staking", "", 2.4, []int{2}}, {"Binance staked ETH", "Liquid Staking", "", 11, []int{0, 1}},
	{"Coinbase Wrapped Staked ETH", "Liquid Staking", "", 0.5, []int{0}}, {"Marinade Liquid Staking", "Liquid Staking", "marinade", 0.9, []int{2}},
	{"Frax Ether", "Liquid Staking", "", 0.3, []int{0}}, {"Swell Liquid Staking", "Liquid Staking", "swell-network", 0.15, []int{0}},
	{"mETH Protocol", "Liquid Staking", "", 0.8, []int{0}}, {"StakeWise V3", "Liquid Staking", "", 0.7, []int{0}}, {"Stader", "Liquid Staking", "", 0.4, []int{0}},
	{"Liquid Collective", "Liquid Staking", "", 0.9, []int{0}}, {"Binance Staked SOL", "Liquid Staking", "", 1.6, []int{2}},
	{"Jupiter Staked SOL", "Liquid Staking", "", 0.7, []int{2}}, {"BlazeStake", "Liquid Staking", "", 0.2, []int{2}}, {"Bybit Staked SOL", "Liquid Staking", "", 0.25, []int{2}},
	{"Benqi Staked Avax", "Liquid Staking", "", 0.2, []int{7}}, {"Lista Liquid Staking", "Liquid Staking", "lista", 0.7, []int{1}},
	{"Aave V3", "Lending", "aave", 33, []int{0, 5, 7, 6, 4, 8, 1, 15}}, {"Morpho Blue", "Lending", "morpho", 6.5, []int{0, 4, 5}},
	{"SparkLend", "Lending", "", 3.6, []int{0, 15}}, {"Compound V3", "Lending", "compound-governance-token", 2.4, []int{0, 4, 5, 6, 8}},
	{"JustLend V1", "Lending", "just", 5.2, []int{3}}, {"Venus Core Pool", "Lending", "venus", 1.8, []int{1, 0}}, {"Kamino Lend", "Lending", "kamino", 2.6, []int{2}},
	{"Fluid Lending", "Lending", "", 1.4, []int{0, 5, 4}}, {"Euler V2", "Lending", "", 0.9, []int{0, 4, 7}}, {"Maple", "Lending", "", 2.2, []int{0}},
	{"Lista Lending", "Lending", "lista", 0.8, []int{1}}, {"Dolomite", "Lending", "", 0.3, []int{5, 12}}, {"Jupiter Lend", "Lending", "jupiter-exchange-solana", 1.1, []int{2}},
	{"Moonwell Lending", "Lending", "", 0.15, []int{4, 8}}, {"Benqi Lending", "Lending", "", 0.3, []int{7}}, {"Silo V2", "Lending", "", 0.12, []int{5, 7}},
	{"Radiant V2", "Lending", "", 0.05, []int{5, 1}}, {"Save", "Lending", "", 0.2, []int{2}}, {"Suilend", "Lending", "", 0.5, []int{9}},
	{"NAVI Lending", "Lending", "", 0.4, []int{9}}, {"Scallop Lend", "Lending", "", 0.1, []int{9}}, {"Aries Markets", "Lending", "", 0.3, []int{10}},
	{"Yei Finance", "Lending", "", 0.2, []int{13}}, {"Lendle Pooled Markets", "Lending", "", 0.06, []int{12}},
	{"EigenCloud", "Restaking", "eigenlayer", 13, []int{0}}, {"ether.fi Stake", "Liquid Restaking", "ether-fi", 9, []int{0}},
	{"Kelp", "Liquid Restaking", "", 1.4, []int{0}}, {"Renzo", "Liquid Restaking", "", 0.5, []int{0}},
	{"Uniswap V3", "Dexs", "uniswap", 2.6, []int{0, 5, 4, 6, 8, 1}}, {"Uniswap V2", "Dexs", "uniswap", 1.2, []int{0, 4}}, {"Curve DEX", "Dexs", "curve-dao-token", 2.2, []int{0, 5, 6}},
	{"PancakeSwap AMM", "Dexs", "pancakeswap-token", 2.3, []int{1, 0, 4}}, {"Raydium AMM", "Dexs", "raydium", 2, []int{2}}, {"Orca DEX", "Dexs", "", 0.4, []int{2}},
	{"Aerodrome Slipstream", "Dexs", "aerodrome-finance", 0.6, []int{4}}, {"Balancer V3", "Dexs", "", 0.3, []int{0, 5}},
	{"Sky Lending", "CDP", "sky", 6.5, []int{0}}, {"Liquity V2", "CDP", "", 0.3, []int{0}}, {"crvUSD", "CDP", "", 0.2, []int{0}}, {"Lista CDP", "CDP", "lista", 0.3, []int{1}},
	{"Ethena USDe", "Basis Trading", "ethena", 9, []int{0}}, {"Pendle V2", "Yield", "pendle", 5.5, []int{0, 5, 1}},
	{"Convex Finance", "Yield", "convex-finance", 1.1, []int{0}}, {"Spark Savings", "Yield", "", 1.2, []int{0, 5, 4}}, {"Babylon Protocol", "Restaking", "", 5, []int{0}},
	{"BlackRock BUIDL", "RWA", "", 2.5, []int{0, 10, 5}}, {"Ondo Yield Assets", "RWA", "ondo-finance", 1.4, []int{0, 2, 9}},
	{"Steakhouse Financial", "Risk Curators", "", 1.5, []int{0, 4}}, {"Concrete", "Onchain Capital Allocator", "", 0.8, []int{0, 5}},
	{"GMX V2 Perps", "Derivatives", "gmx", 0.5, []int{5, 7}}, {"Jupiter Perpetual Exchange", "Derivatives", "jupiter-exchange-solana", 1.8, []int{2}},
	{"WBTC", "Bridge", "", 11, []int{0}}, {"Polygon Bridge & Staking", "Chain", "polygon-ecosystem-token", 3.5, []int{0}},
	{"Yearn Finance", "Yield Aggregator", "yearn-finance", 0.4, []int{0, 5}}, {"Beefy", "Yield Aggregator", "", 0.2, []int{5, 4, 1}}, {"Instadapp", "Services", "", 2, []int{0}},
}

var protocolCategories = []string{
	"Dexs", "Lending", "Yield", "Yield Aggregator", "Liquid Staking", "CDP", "Derivatives", "Bridge", "RWA", "Launchpad", "Options",
	"Farm", "Staking Pool", "Restaking", "Prediction Market", "CEX",
}

// protocols are the known ones and, for every four coins, an invented one.
func (c defi) protocols() []*protocol {
	list := c.knownProtocols()
	for i := 0; len(list) < len(knownProtocols)+len(c.Coins)/4; i++ {
		name, _ := market.InventedName(i*3 + 1)
		own := c.World.Seed.Of("protocol " + name)
		var issued *market.Coin
		if n := c.Coins[int(own.At(1)%uint64(len(c.Coins)))]; own.At(2)%3 == 0 && n.Kind != "stablecoin" {
			issued = n
		}
		on := []int{int(own.At(3) % 5)}
		for k := range market.Chains {
			if k != on[0] && own.Unit(int64(10+k)) < 0.12 {
				on = append(on, k)
			}
		}
		list = append(list, c.protocol(len(list), name+" Vaults", protocolCategories[own.At(4)%uint64(len(protocolCategories))], issued, 4e9/math.Pow(float64(i+3), 1.2), on))
	}
	return list
}

func (c defi) knownProtocols() []*protocol {
	var list []*protocol
	for _, k := range knownProtocols {
		list = append(list, c.protocol(len(list), k.name, k.category, c.ByID[k.coin], k.billions*1e9, k.on))
	}
	return list
}

func (c defi) protocol(place int, name, category string, issued *market.Coin, locked float64, on []int) *protocol {
	own := c.World.Seed.Of("protocol " + name)
	p := &protocol{seed: own, place: place, name: name, category: category, coin: issued, on: on}
	p.locked = market.NewPath(own, locked, market.HourOctaves, market.Factor{Seed: c.World.Seed.Of("market"), Weight: market.MarketWeight * 0.6}, market.Factor{Seed: own, Weight: 0.008})
	rest := 1.0
	for i := range on {
		share := rest * (0.5 + 0.4*own.Unit(int64(30+i)))
		if i == len(on)-1 {
			share = rest
		}
		p.shares, rest = append(p.shares, share), rest-share
	}
	p.born = market.FirstBorn + int64((0.55+0.4*own.Unit(5))*float64(market.BornSpan))/market.Day*market.Day
	return p
}

// at is the value locked as of the full hour: it is counted once an hour.
func (p *protocol) at(t int64) float64 {
	return math.Exp(p.locked.Walk(market.FloorDiv(t, market.Hour)))
}

// Value that a protocol counts beside what is locked, as shares of it; zero for most.
func (p *protocol) beside(t int64) map[string]float64 {
	values := map[string]float64{}
	swing := 1 + 0.1*p.seed.Noise(market.FloorDiv(t, market.Day), 2)/4
	switch {
	case p.category == "Lending":
		values["borrowed"] = 0.6 * swing
	case p.seed.At(6)%6 == 0 && p.coin != nil:
		values["staking"] = 0.25 * swing
	case p.seed.At(6)%11 == 0:
		values["pool2"] = 0.04 * swing
	}
	return values
}

func (l *llama) list(w http.ResponseWriter, _ *http.Request) {
	now := l.Now().UnixNano()
	rows := make([]map[string]any, 0, len(l.protocols))
	for _, p := range l.protocols {
		if p.born > now {
			continue
		}
		rows = append(rows, l.row(p, now))
	}
	slices.SortStableFunc(rows, func(a, b map[string]any) int { return cmp.Compare(b["tvl"].(float64), a["tvl"].(float64)) })
	provider.Respond(w, http.StatusOK, rows)
}

func (l *llama) row(p *protocol, now int64) map[string]any {
	locked, at := p.at(now), p.slug()
	tvls, names := map[string]float64{}, []string{}
	for i, k := range p.on {
		names = append(names, market.Chains[k].Name)
		tvls[market.Chains[k].Name] = locked * p.shares[i]
	}
	for what, share := range p.beside(now) {
		tvls[what] = locked * share
		for i, k := range p.on {
			tvls[market.Chains[k].Name+"-"+what] = locked * share * p.shares[i]
		}
	}
	home := "Multi-Chain"
	if len(names) == 1 {
		home = names[0]
	}
	row := map[string]any{
		"id": strconv.Itoa(100 + p.place), "name": p.name, "address": nil, "symbol": "-", "url": "https://www.example.invalid/" + at,
		"description": p.name + ". Its numbers are simulated.", "chain": home, "logo": "https://images.example.invalid/protocols/" + at + ".png",
		"audits": strconv.Itoa(int(p.seed.At(7) % 3)), "audit_note": nil, "gecko_id": nil, "cmcId": nil, "category": p.category, "chains": names,
		"module": at + "/index.js", "twitter": strings.ReplaceAll(at, "-", ""), "forkedFrom": []string{}, "oracles": []string{},
		"listedAt": p.born / market.Second, "methodology": "Counts what is locked in its contracts.", "slug": at, "tvl": locked, "chainTvls": tvls,
		"change_1h": change(locked, p.at(now-market.Hour)), "change_1d": change(locked, p.at(now-market.Day)), "change_7d": change(locked, p.at(now-7*market.Day)),
		"tokenBreakdowns": map[string]any{}, "mcap": nil,
	}
	for what, share := range p.beside(now) {
		if what != "borrowed" {
			row[what] = locked * share
		}
	}
	if c := p.coin; c != nil && c.Listed(now) && !c.Unpriced {
		row["symbol"], row["gecko_id"], row["cmcId"] = c.Symbol, c.ID, strconv.Itoa(1000+c.Place)
		row["mcap"] = c.Opening(market.FloorDiv(now, market.Hour)) * c.CirculatingAt(now)
		if len(c.Platforms) > 0 {
			row["address"] = c.Platforms[0].Address
		}
	}
	return row
}

// slug keeps the points of a name.
func (p *protocol) slug() string {
	parts := strings.Split(p.name, ".")
	for i := range parts {
		parts[i] = market.Slug(parts[i])
	}
	return strings.Join(parts, ".")
}

func change(now, before float64) float64 { return 100 * (now/before - 1) }

// counts reports whether what is locked in a protocol is in the sums over all: exchanges hold it for others, and what liquid staking
// gives out for it is locked in other protocols again.
func (p *protocol) counts(t int64) bool {
	return p.born <= t && p.category != "CEX" && p.category != "Liquid Staking"
}

// firstLocked is the first day of the sum over all chains.
const firstLocked = 1_506_470_400 * market.Second // 2017-09-27

// past is what was locked on all chains as each day began.
func (l *llama) past(w http.ResponseWriter, _ *http.Request) {
	type locked struct {
		Date  int64   `json:"date"`
		Value float64 `json:"tvl"`
	}
	days := []locked{}
	for at := int64(firstLocked); at <= l.Now().UnixNano(); at += market.Day {
		sum := 0.0
		for _, p := range l.protocols {
			if p.counts(at) {
				sum += p.at(at)
			}
		}
		days = append(days, locked{at / market.Second, sum})
	}
	provider.Respond(w, http.StatusOK, days)
}

// chains sum what is locked in protocols.
func (l *llama) chains(w http.ResponseWriter, _ *http.Request) {
	now := l.Now().UnixNano()
	sums := make([]float64, len(market.Chains))
	for _, p := range l.protocols {
		if !p.counts(now) {
			continue
		}
		for i, k := range p.on {
			sums[k] += p.at(now) * p.shares[i]
		}
	}
	rows := []map[string]any{}
	for k, chain := range market.Chains {
		row := map[string]any{"gecko_id": nil, "tvl": sums[k], "tokenSymbol": nil, "cmcId": nil, "name": chain.Name, "chainId": nil}
		if c := l.catalogue.ByID[chain.Coin]; c != nil {
			row["gecko_id"], row["tokenSymbol"], row["cmcId"] = c.ID, c.Symbol, strconv.Itoa(1000+c.Place)
		}
		if chain.Number > 0 {
			row["chainId"] = chain.Number
		}
		rows = append(rows, row)
	}
	provider.Respond(w, http.StatusOK, rows)
}
