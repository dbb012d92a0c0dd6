package sources

import (
	"math"
	"slices"

	"github.com/marketlog/marketlog/producers/simulator/market"
	"github.com/marketlog/marketlog/producers/simulator/provider"
	"github.com/marketlog/marketlog/schemas"
)

// pool is a place where coins earn something: all that publish rates know it, DefiLlama those of everybody, a project its own.
// Rates are fractions a year.
type pool struct {
	id      string
	seed    market.Seed
	world   *market.World
	project *protocol
	on      int // place in chains
	kind    poolKind
	coins   []poolCoin
	owed    *poolCoin // of what is pledged: what is owed against it
	meta    string    // what distinguishes it from others of its project
	// share is of what is locked in the project.
	share float64
	// pays is what borrowers pay; where nobody borrows, what the pool earns.
	pays market.Earning
	// used is how much of what is supplied is borrowed, about; reward is what other tokens add, as a part of the rate.
	used, reward float64
	ltv          float64
}

// poolKind is what is done with what is put into a pool.
type poolKind int

const (
	lent    poolKind = iota // to those who pledge something
	pledged                 // against what is lent by others, or minted
	staked
	paired // with another coin, for traders
	run    // by a strategy
)

// poolCoin is a coin by a project's name for it.
type poolCoin struct {
	symbol string
	coin   *market.Coin
}

// poolCoins are what is held on a chain, by its place: symbols, and ids of the coins that they represent. The most used are
// first, dollars before all.
var poolCoins = map[int][][2]string{
	0: {
		{"USDC", "usd-coin"}, {"USDT", "tether"}, {"WETH", "weth"}, {"WBTC", "wrapped-bitcoin"},
		{"WSTETH", "wrapped-steth"}, {"DAI", "dai"}, {"CBBTC", "coinbase-wrapped-btc"},
		{"WEETH", "wrapped-eeth"}, {"USDE", "ethena-usde"}, {"USDS", "usds"}, {"PYUSD", "paypal-usd"},
		{"LINK", "chainlink"}, {"SUSDE", "ethena-staked-usde"}, {"AAVE", "aave"},
		{"RETH", "rocket-pool-eth"}, {"RLUSD", "ripple-usd"}, {"UNI", "uniswap"}, {"GHO", "gho"},
	},
	1: {{"USDT", "tether"}, {"USDC", "usd-coin"}, {"WBNB", "binancecoin"}, {"BTCB", "bitcoin"}, {"ETH", "ethereum"},
		{"FDUSD", "first-digital-usd"}, {"USD1", "usd1-wlfi"}, {"CAKE", "pancakeswap-token"}, {"XRP", "ripple"},
		{"SOL", "solana"}},
	2: {{"USDC", "usd-coin"}, {"SOL", "solana"}, {"USDT", "tether"}, {"JITOSOL", "jito-staked-sol"},
		{"PYUSD", "paypal-usd"}, {"BNSOL", "binance-staked-sol"}, {"CBBTC", "coinbase-wrapped-btc"}, {"USDS", "usds"},
		{"JUP", "jupiter-exchange-solana"}},
	3: {{"USDT", "tether"}, {"TRX", "tron"}, {"USDD", "usdd"}, {"BTC", "bitcoin"}, {"ETH", "ethereum"},
		{"JST", "just"}},
	4: {{"USDC", "usd-coin"}, {"WETH", "weth"}, {"CBBTC", "coinbase-wrapped-btc"},
		{"CBETH", "coinbase-wrapped-staked-eth"}, {"WSTETH", "wrapped-steth"}, {"EURC", "euro-coin"},
		{"AERO", "aerodrome-finance"}},
	5: {{"USDC", "usd-coin"}, {"USD₮0", "tether"}, {"WETH", "weth"}, {"WBTC", "wrapped-bitcoin"},
		{"WSTETH", "wrapped-steth"}, {"USDC.E", "usd-coin"}, {"ARB", "arbitrum"}, {"DAI", "dai"}, {"LINK", "chainlink"}},
	6: {{"USDC", "usd-coin"}, {"USDT", "tether"}, {"WETH", "weth"}, {"WPOL", "polygon-ecosystem-token"},
		{"WBTC", "wrapped-bitcoin"}, {"DAI", "dai"}},
	7: {{"USDC", "usd-coin"}, {"USDT", "tether"}, {"WAVAX", "avalanche-2"},
		{"BTC.B", "bitcoin-avalanche-bridged-btc-b"}, {"WETH.E", "weth"}},
	8: {{"USDC", "usd-coin"}, {"USDT", "tether"}, {"WETH", "weth"}, {"WSTETH", "wrapped-steth"}, {"OP", "optimism"},
		{"WBTC", "wrapped-bitcoin"}},
	9:  {{"USDC", "usd-coin"}, {"SUI", "sui"}, {"USDT", "tether"}, {"WBTC", "wrapped-bitcoin"}, {"ETH", "ethereum"}},
	10: {{"USDC", "usd-coin"}, {"APT", "aptos"}, {"USDT", "tether"}, {"WBTC", "wrapped-bitcoin"}},
	12: {{"USDC", "usd-coin"}, {"USDT", "tether"}, {"WMNT", "mantle"}, {"WETH", "weth"},
		{"SUSDE", "ethena-staked-usde"}},
	13: {{"USDC", "usd-coin"}, {"WSEI", "sei-network"}, {"USDT", "tether"}, {"WETH", "weth"}},
	15: {{"USDC", "usd-coin"}, {"WETH", "weth"}, {"WSTETH", "wrapped-steth"}, {"GNO", "gnosis"}},
}

// minted are the dollars of projects that mint their own.
var minted = map[string][2]string{
	"Sky Lending": {"USDS", "usds"}, "Liquity V2": {"BOLD", "dai"}, "crvUSD": {"CRVUSD", "crvusd"},
	"Lista CDP": {"LISUSD", "usd1-wlfi"},
}

// stakings are what projects give for what they stake: the symbol, the coin, where else the same rate is published and what of the
// usual it is.
var stakings = map[string]struct {
	symbol, coin, place string
	of                  float64
}{
	"Lido": {"STETH", "ethereum", "lido", 0.9}, "Rocket Pool": {"RETH", "ethereum", "rocketpool", 0.86},
	"Binance staked ETH":          {"WBETH", "ethereum", "binance", 0.94},
	"Coinbase Wrapped Staked ETH": {"CBETH", "ethereum", "coinbase", 0.92},
	"Frax Ether":                  {"SFRXETH", "ethereum", "frax", 1.08},
	"Swell Liquid Staking":        {"SWETH", "ethereum", "swell", 1.05}, "mETH Protocol": {"METH", "ethereum", "meth", 0.93},
	"StakeWise V3": {"OSETH", "ethereum", "stakewise", 0.95},
	"Stader":       {"ETHX", "ethereum", "stader", 0.97}, "Liquid Collective": {"LSETH", "ethereum", "collective", 0.95},
	"ether.fi Stake": {"WEETH", "ethereum", "etherfi", 1},
	"Kelp":           {"RSETH", "ethereum", "kelp", 1}, "Renzo": {"EZETH", "ethereum", "renzo", 0.98},
	"EigenCloud":              {"ETH", "ethereum", "eigen", 0.4},
	"Jito Liquid Staking":     {"JITOSOL", "solana", "jito", 1},
	"Marinade Liquid Staking": {"MSOL", "solana", "marinade", 0.97},
	"Binance Staked SOL":      {"BNSOL", "solana", "binance", 0.95},
	"Jupiter Staked SOL":      {"JUPSOL", "solana", "jupiter", 1.02}, "BlazeStake": {"BSOL", "solana", "blaze", 0.95},
	"Bybit Staked SOL":     {"BBSOL", "solana", "bybit", 0.93},
	"Benqi Staked Avax":    {"SAVAX", "avalanche-2", "benqi", 1},
	"Lista Liquid Staking": {"SLISBNB", "binancecoin", "lista", 1},
	"Babylon Protocol":     {"BTC", "bitcoin", "babylon", 1},
}

// stakedLevels are what staking a coin earns, about.
var stakedLevels = map[string]float64{"ethereum": etherStaked, "solana": solStaked, "avalanche-2": 0.05, "binancecoin": 0.01, "bitcoin": 0.004}

// poolKinds are what projects of a category do.
var poolKinds = map[string]poolKind{
	"Lending": lent, "CDP": pledged, "Liquid Staking": staked, "Liquid Restaking": staked, "Restaking": staked,
	"Dexs": paired, "Derivatives": paired,
	"Yield": run, "Yield Aggregator": run, "Basis Trading": run, "Risk Curators": run,
	"Onchain Capital Allocator": run, "RWA": run,
}

// poolSwing is how high the waves of rates on chains are: contracts follow demand more slowly than markets do.
const poolSwing = 0.008

// defi is what the coins of the catalogue do in protocols.
type defi struct{ *market.Catalogue }

func (r *Reference) defi() defi { return defi{r.catalogue} }

// pools are those of the known projects.
func (c defi) pools() []*pool {
	var list []*pool
	for _, project := range c.knownProtocols() {
		kind, pays := poolKinds[project.category]
		if !pays {
			continue
		}
		for i, on := range project.on {
			var added []*pool
			switch {
			case kind == staked && i == 0:
				added = c.staked(project, on)
			case kind == staked:
			case kind == pledged || project.name == "Morpho Blue":
				added = c.pledged(project, on)
			case kind == paired:
				added = c.paired(project, on)
			default:
				added = c.single(project, on, kind)
			}
			total := 0.0
			for _, p := range added {
				total += p.share
			}
			for _, p := range added { // some of it lies elsewhere
				p.share *= 0.97 * project.shares[i] / total
			}
			list = append(list, added...)
		}
	}
	for i, p := range list {
		p.id = string(provider.AppendUUID(nil, c.World.Seed.Of("pools"), int64(i)))
		p.pays.Swing = min(p.pays.Swing, poolSwing)
	}
	return list
}

// held are the coins of a chain by their names there, those that are listed at all.
func (c defi) held(on int) []poolCoin {
	var list []poolCoin
	for _, k := range poolCoins[on] {
		if known := c.ByID[k[1]]; known != nil {
			list = append(list, poolCoin{k[0], known})
		}
	}
	return list
}

// pool makes one without its share and its rate.
func (c defi) pool(project *protocol, on int, kind poolKind, meta string, coins ...poolCoin) *pool {
	name := project.name + " " + market.Chains[on].ID + " " + meta
	for _, k := range coins {
		name += " " + k.symbol
	}
	return &pool{seed: c.World.Seed.Of("pool " + name), world: c.World, project: project, on: on, kind: kind,
		coins: coins, meta: meta}
}

func (c defi) staked(project *protocol, on int) []*pool {
	s := stakings[project.name]
	p := c.pool(project, on, staked, "", poolCoin{s.symbol, c.ByID[s.coin]})
	p.share, p.pays = 1, c.World.Staked(s.coin, s.place, stakedLevels[s.coin]*s.of)
	return []*pool{p}
}

// Coins by how they are used: how much of what is supplied is borrowed, how much of a project's value they are, and how much
// may be owed against them.
func usage(k *market.Coin) (used, weight, ltv float64) {
	switch {
	case k.Kind == schemas.KindStablecoin:
		return 0.62, 0.07 - 0.02*math.Min(float64(k.Rank)/30, 2), 0.78
	case k.ID == "bitcoin" || k.Parent != nil && k.Parent.ID == "bitcoin":
		return 0.1, 0.2, 0.73
	case k.Kind == schemas.KindStaked:
		return 0.02, 0.18, 0.75
	case k.Rank <= 30: // the coins of chains, and those wrapped
		return 0.5, 0.12, 0.8
	}
	return 0.3, 0.03, 0.6
}

// borrowedAs is the coin whose cost of borrowing it shares: what is wrapped is lent like what it represents.
func (c defi) borrowedAs(k *market.Coin) *market.Coin {
	if k.Parent != nil && k.Kind == schemas.KindWrapped {
		return c.ByID[k.Parent.ID]
	}
	return k
}

// single are pools of one coin each: a lender takes most of a chain's coins, a strategy the best known.
func (c defi) single(project *protocol, on int, kind poolKind) []*pool {
	held := c.held(on)
	many := 3 + int(project.seed.At(40+int64(on))%5)
	switch {
	case kind == run:
		many = 2
	case project.name == "Aave V3", project.name == "Kamino Lend":
		many = len(held)
	}
	var list []*pool
	for i, k := range held[:min(many, len(held))] {
		p := c.pool(project, on, kind, "", k)
		place := project.name + " " + market.Chains[on].ID
		p.used, p.share, p.ltv = usage(k.coin)
		p.share *= 0.7 + 0.6*p.seed.Unit(0)
		if kind == lent {
			p.pays = c.borrowedAs(k.coin).Borrowed(c.World, place)
		} else {
			p.pays = c.World.Credit(k.coin.ID, place, 0.02+0.06*p.seed.Unit(1))
			p.meta = [...]string{"Prime", "High Yield", "Core"}[i%3] + " Vault"
		}
		if p.seed.At(2)%5 == 0 {
			p.reward = 0.1 + 0.5*p.seed.Unit(3)
		}
		if project.name == "Kamino Lend" {
			p.meta = kaminoMarkets[i%len(kaminoMarkets)].name
		}
		list = append(list, p)
	}
	return list
}

// pledged are pools of collateral, against which dollars or the coin of the chain are owed.
func (c defi) pledged(project *protocol, on int) []*pool {
	held := c.held(on)
	var list []*pool
	add := func(what, owed poolCoin) {
		p := c.pool(project, on, pledged, "", what)
		p.seed, p.owed = p.seed.Of(owed.symbol), &owed
		_, p.share, p.ltv = usage(what.coin)
		p.used = 0.8 + 0.15*p.seed.Unit(0)
		p.pays = c.borrowedAs(owed.coin).Borrowed(c.World, project.name+" "+what.symbol+" "+market.Chains[on].ID)
		list = append(list, p)
	}
	for _, what := range held {
		if what.coin.Kind == schemas.KindStablecoin {
			continue // dollars are not pledged for dollars
		}
		if own, mints := minted[project.name]; mints {
			add(what, poolCoin{own[0], c.ByID[own[1]]})
			continue
		}
		add(what, held[0])
		if what.coin.Kind == schemas.KindStaked {
			if i := slices.IndexFunc(held, func(k poolCoin) bool { return k.coin == c.ByID["weth"] }); i >= 0 {
				add(what, held[i])
			}
		}
	}
	return list
}

// paired are markets of two coins: the best known with dollars, dollars with dollars, the others with the coin of the chain.
func (c defi) paired(project *protocol, on int) []*pool {
	held := c.held(on)
	var list []*pool
	for i, pair := range [][2]int{{2, 0}, {0, 1}, {3, 2}, {2, 1}} {
		if max(pair[0], pair[1]) >= len(held) || on == 3 {
			continue
		}
		first, second := held[pair[0]], held[pair[1]]
		meta := [...]string{"0.05%", "0.01%", "0.3%", "1%"}[i]
		p := c.pool(project, on, paired, meta, first, second)
		level := 0.05 + 0.3*p.seed.Unit(1)
		if first.coin.Stable && second.coin.Stable {
			level = 0.005 + 0.04*p.seed.Unit(1)
		}
		p.share, p.pays = 1/float64(i+2), c.World.Credit(first.coin.ID+" "+second.coin.ID, project.name+meta, level)
		if p.seed.At(2)%3 == 0 {
			p.reward = 0.2 + 0.6*p.seed.Unit(3)
		}
		list = append(list, p)
	}
	return list
}

// poolState is a pool at a time: values in USD, rates as fractions.
type poolState struct {
	// value is what it holds, supplied and owed what was lent to it and what of that is borrowed.
	value, supplied, owed float64
	// earns is without the reward, costs what borrowers pay.
	earns, reward, costs float64
}

// lenderShare is what lenders get of what borrowers pay.
const lenderShare = 0.88

// at is the pool at any time; its value is counted once an hour, as its project's.
func (p *pool) at(t int64) poolState {
	s := poolState{value: p.project.at(t) * p.share}
	pays := p.pays.At(t)
	used := p.used * math.Exp(0.04*p.seed.Noise(market.FloorDiv(t, market.Hour), 3)/4)
	switch p.kind {
	case lent:
		used = min(used, 0.97)
		s.supplied = s.value / (1 - used)
		s.owed = s.supplied * used
		s.costs, s.earns = pays, pays*used*lenderShare
	case pledged:
		used = min(used, 0.99)
		s.owed = s.value * 0.55
		s.supplied = s.owed / used
		s.costs, s.earns = pays, pays*used*lenderShare
	case run:
		s.earns = pays
		if p.swings() { // it wins and it loses
			s.earns = pays * p.seed.Noise(market.FloorDiv(t, market.Hour), market.EarningOctaves) / 4
		}
	default:
		s.earns = pays
	}
	s.reward = max(s.earns, 0) * p.reward
	return s
}

// swings reports whether the strategy can lose.
func (p *pool) swings() bool {
	swinging := []string{"Yield Aggregator", "Onchain Capital Allocator", "Risk Curators"}
	return slices.Contains(swinging, p.project.category) && p.seed.At(4)%9 == 0
}

// symbol joins those of its coins.
func (p *pool) symbol() string {
	joined := p.coins[0].symbol
	for _, k := range p.coins[1:] {
		joined += "-" + k.symbol
	}
	return joined
}

// contract is the address of a coin on the pool's chain.
func (p *pool) contract(k poolCoin) string {
	for _, on := range k.coin.Platforms {
		if on.Chain == market.Chains[p.on].ID {
			return on.Address
		}
	}
	return market.Contract(k.coin.Seed.Of(k.symbol+" on "+market.Chains[p.on].ID), market.Chains[p.on].ID)
}
