package simulator

import (
	"cmp"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/marketlog/marketlog/schemas"
)

// morpho serves Morpho's markets by GraphQL, as described on https://docs.morpho.org/developers/api/morpho-markets.
func morpho() Source {
	return Source{
		Slug: "morpho", Requests: 5000, Per: 5 * time.Minute,
		Routes: func(r *Reference) map[string]http.HandlerFunc {
			m := &morphoMarkets{Reference: r}
			for _, p := range r.catalogue.pools() {
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

// markets tell the largest first, a hundred of Ethereum's if nothing is said.
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
		if slices.Contains(asked, strconv.Itoa(chains[p.on].number)) {
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
func decimalsOf(k *coin) int {
	switch {
	case k.kind == schemas.KindStablecoin && k.rank < 20:
		return 6
	case k.id == "bitcoin" || k.parent != nil && k.parent.id == "bitcoin":
		return 8
	}
	return 18
}

func (m *morphoMarkets) market(p *pool, now int64) map[string]any {
	s, pledge := p.at(now), p.coins[0]
	asset := func(k poolCoin) map[string]any {
		return map[string]any{
			"address": p.contract(k), "symbol": k.symbol, "name": k.coin.name, "decimals": decimalsOf(k.coin),
			"price": map[string]any{"usd": nullable(k.coin.at(now))},
		}
	}
	amount := func(usd float64, k poolCoin) any {
		return bigInt(math.Trunc(usd / k.coin.at(now) * pow10(decimalsOf(k.coin))))
	}
	supplying, borrowing, rewards := s.earns, s.costs, []any{}
	if p.seed.at(25)%5 == 0 {
		supplying, borrowing = s.earns+0.01*p.seed.unit(26), s.costs-0.02*p.seed.unit(27)
		rewards = append(rewards, map[string]any{"supplyApr": nullable(supplying - s.earns), "borrowApr": nullable(s.costs - borrowing), "asset": asset(pledge)})
	}
	return map[string]any{
		"marketId": "0x" + hex64(p.seed.of("market")), "lltv": strconv.FormatFloat(p.ltv*1e18, 'f', 0, 64),
		"listed":    true,
		"chain":     map[string]any{"id": chains[p.on].number, "network": chains[p.on].name, "currency": "ETH"},
		"loanAsset": asset(*p.owed), "collateralAsset": asset(pledge), "creationTimestamp": p.project.born / second,
		"state": map[string]any{
			"timestamp": now / second, "supplyAssets": amount(s.supplied, *p.owed),
			"supplyAssetsUsd": nullable(s.supplied), "borrowAssets": amount(s.owed, *p.owed),
			"borrowAssetsUsd": nullable(s.owed), "collateralAssets": amount(s.value, pledge),
			"collateralAssetsUsd": nullable(s.value),
			"liquidityAssets":     amount(s.supplied-s.owed, *p.owed), "liquidityAssetsUsd": nullable(s.supplied - s.owed),
			"utilization": nullable(s.owed / s.supplied), "fee": 0,
			"supplyApy": nullable(s.earns), "netSupplyApy": nullable(supplying), "borrowApy": nullable(s.costs),
			"netBorrowApy": nullable(borrowing), "rewards": rewards,
		},
	}
}

// hex64 is a key of 32 bytes.
func hex64(s seed) string {
	var b strings.Builder
	for i := range int64(4) {
		text := strconv.FormatUint(s.at(i), 16)
		b.WriteString(strings.Repeat("0", 16-len(text)) + text)
	}
	return b.String()
}
