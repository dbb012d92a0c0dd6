package sources

import (
	"cmp"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/marketlog/marketlog/producers/simulator/market"
	"github.com/marketlog/marketlog/producers/simulator/provider"
	"github.com/marketlog/marketlog/schemas"
)

// morpho serves Morpho's markets by GraphQL, as described on https://docs.morpho.org/developers/api/morpho-markets.
func morpho() Source {
	return Source{
		Slug: "morpho", Requests: 5000, Per: 5 * time.Minute,
		Routes: func(r *Reference) map[string]http.HandlerFunc {
			m := &morphoMarkets{Reference: r}
			for _, p := range r.defi().pools() {
				if p.project.name == "Morpho Blue" {
					m.pools = append(m.pools, p)
				}
			}
			return map[string]http.HandlerFunc{"POST /graphql": graphQL(map[string]func(string) any{"markets": m.markets})}
		},
	}
}

type morphoMarkets struct {
	*Reference
	pools []*pool
}

var morphoArguments = map[string]*regexp.Regexp{
	"first": regexp.MustCompile(`first:\s*([0-9]+)`), "skip": regexp.MustCompile(`skip:\s*([0-9]+)`),
	"chains": regexp.MustCompile(`chainId_in:\s*\[([0-9, ]*)\]`),
}

// markets serves the largest first, a hundred of Ethereum's by default.
func (m *morphoMarkets) markets(arguments string) any {
	argument := func(name, absent string) string {
		if found := morphoArguments[name].FindStringSubmatch(arguments); found != nil {
			return strings.ReplaceAll(found[1], " ", "")
		}
		return absent
	}
	now := m.Now().UnixNano()
	asked := strings.Split(argument("chains", "1"), ",")
	items, supplied := []any{}, map[*pool]float64{}
	var pools []*pool
	for _, p := range m.pools {
		if slices.Contains(asked, strconv.Itoa(market.Chains[p.on].Number)) {
			pools, supplied[p] = append(pools, p), p.at(now).supplied
		}
	}
	slices.SortStableFunc(pools, func(a, b *pool) int { return cmp.Compare(supplied[b], supplied[a]) })
	first, _ := strconv.Atoi(argument("first", "100"))
	skip, _ := strconv.Atoi(argument("skip", "0"))
	for i := skip; i < min(len(pools), skip+first); i++ {
		items = append(items, m.market(pools[i], now))
	}
	return map[string]any{"items": items, "pageInfo": map[string]any{"countTotal": len(pools), "count": len(items), "limit": first, "skip": skip}}
}

// bigInt is a number where a double holds it, and a text beyond.
func bigInt(x float64) any {
	if x < 1<<53 {
		return int64(x)
	}
	return strconv.FormatFloat(x, 'f', 0, 64)
}

// decimalsOf are those that coins have on chains.
func decimalsOf(k *market.Coin) int {
	switch {
	case k.Kind == schemas.KindStablecoin && k.Rank < 20:
		return 6
	case k.ID == "bitcoin" || k.Parent != nil && k.Parent.ID == "bitcoin":
		return 8
	}
	return 18
}

func (m *morphoMarkets) market(p *pool, now int64) map[string]any {
	s, pledge := p.at(now), p.coins[0]
	asset := func(k poolCoin) map[string]any {
		return map[string]any{
			"address": p.contract(k), "symbol": k.symbol, "name": k.coin.Name, "decimals": decimalsOf(k.coin),
			"price": map[string]any{"usd": provider.Nullable(k.coin.At(now))},
		}
	}
	amount := func(usd float64, k poolCoin) any {
		return bigInt(math.Trunc(usd / k.coin.At(now) * math.Pow10(decimalsOf(k.coin))))
	}
	supplying, borrowing, rewards := s.earns, s.costs, []any{}
	if p.seed.At(25)%5 == 0 {
		supplying, borrowing = s.earns+0.01*p.seed.Unit(26), s.costs-0.02*p.seed.Unit(27)
		rewards = append(rewards, map[string]any{"supplyApr": provider.Nullable(supplying - s.earns), "borrowApr": provider.Nullable(s.costs - borrowing), "asset": asset(pledge)})
	}
	return map[string]any{
		"marketId": "0x" + hex64(p.seed.Of("market")), "lltv": strconv.FormatFloat(p.ltv*1e18, 'f', 0, 64),
		"listed":    true,
		"chain":     map[string]any{"id": market.Chains[p.on].Number, "network": market.Chains[p.on].Name, "currency": "ETH"},
		"loanAsset": asset(*p.owed), "collateralAsset": asset(pledge), "creationTimestamp": p.project.born / market.Second,
		"state": map[string]any{
			"timestamp": now / market.Second, "supplyAssets": amount(s.supplied, *p.owed),
			"supplyAssetsUsd": provider.Nullable(s.supplied), "borrowAssets": amount(s.owed, *p.owed),
			"borrowAssetsUsd": provider.Nullable(s.owed), "collateralAssets": amount(s.value, pledge),
			"collateralAssetsUsd": provider.Nullable(s.value),
			"liquidityAssets":     amount(s.supplied-s.owed, *p.owed), "liquidityAssetsUsd": provider.Nullable(s.supplied - s.owed),
			"utilization": provider.Nullable(s.owed / s.supplied), "fee": 0,
			"supplyApy": provider.Nullable(s.earns), "netSupplyApy": provider.Nullable(supplying), "borrowApy": provider.Nullable(s.costs),
			"netBorrowApy": provider.Nullable(borrowing), "rewards": rewards,
		},
	}
}

// hex64 is a key of 32 bytes.
func hex64(s market.Seed) string {
	var b strings.Builder
	for i := range int64(4) {
		text := strconv.FormatUint(s.At(i), 16)
		b.WriteString(strings.Repeat("0", 16-len(text)) + text)
	}
	return b.String()
}
