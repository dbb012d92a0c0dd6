package simulator

import (
	"math"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/marketlog/marketlog/schemas"
)

// aave serves the markets of Aave's third version by GraphQL, as described on
// https://aave.com/docs/aave-v3/markets/data and in packages/graphql/schema.graphql of https://github.com/aave/aave-sdk.
func aave() Source {
	return Source{
		Slug: "aave", Requests: 120, Per: time.Minute,
		Routes: func(r *Reference) map[string]http.HandlerFunc {
			a := &aaveMarkets{Reference: r}
			for _, p := range r.catalogue.pools() {
				if p.project.name == "Aave V3" {
					a.pools = append(a.pools, p)
				}
			}
			return map[string]http.HandlerFunc{"POST /graphql": graphQL(map[string]func(string) any{"chains": a.chains, "markets": a.markets})}
		},
	}
}

type aaveMarkets struct {
	*Reference
	pools []*pool
}

// on are the chains with a market, in the order of the pools.
func (a *aaveMarkets) on() []int {
	var list []int
	for _, p := range a.pools {
		if !slices.Contains(list, p.on) {
			list = append(list, p.on)
		}
	}
	return list
}

func (a *aaveMarkets) chain(on int) map[string]any {
	c := chains[on]
	return map[string]any{
		"name": c.name, "icon": "https://images.example.invalid/chains/" + c.id + ".svg", "chainId": c.number,
		"explorerUrl": "https://explorer.example.invalid/" + c.id, "isTestnet": false,
		"nativeWrappedToken": contract(a.world.seed.of("wrapped"), c.id),
	}
}

func (a *aaveMarkets) chains(string) any {
	var list []any
	for _, on := range a.on() {
		list = append(list, a.chain(on))
	}
	return list
}

var aaveChainIDs = regexp.MustCompile(`chainIds:\s*\[([0-9, ]*)\]`)

func (a *aaveMarkets) markets(arguments string) any {
	var asked []string
	if m := aaveChainIDs.FindStringSubmatch(arguments); m != nil {
		asked = strings.Split(strings.ReplaceAll(m[1], " ", ""), ",")
	}
	now, list := a.Now().UnixNano(), []any{}
	for _, on := range a.on() {
		if !slices.Contains(asked, strconv.Itoa(chains[on].number)) {
			continue
		}
		reserves, size, idle := []any{}, 0.0, 0.0
		for _, p := range a.pools {
			if p.on == on {
				s := p.at(now)
				reserves, size, idle = append(reserves, a.reserve(p, s, now)), size+s.supplied, idle+s.supplied-s.owed
			}
		}
		list = append(list, map[string]any{
			"name": "AaveV3" + strings.ReplaceAll(chains[on].name, " ", ""), "chain": a.chain(on),
			"address": contract(a.world.seed.of("aave"), chains[on].id),
			"icon":    "https://images.example.invalid/markets/aave.svg", "totalMarketSize": plain(size, 15),
			"totalAvailableLiquidity": plain(idle, 15), "reserves": reserves,
		})
	}
	return list
}

// value spells a number with the raw one that stands on the chain.
func aaveValue(x float64, decimals int) map[string]any {
	return map[string]any{"raw": strconv.FormatFloat(math.Trunc(x*pow10(decimals)), 'f', 0, 64), "decimals": decimals,
		"value": plain(x, 15)}
}

func aavePercent(x float64) map[string]any {
	percent := aaveValue(x, 27)
	percent["formatted"] = strconv.FormatFloat(100*x, 'f', 2, 64)
	return percent
}

func aaveAmount(amount, price float64) map[string]any {
	return map[string]any{"usdPerToken": plain(price, 12), "amount": aaveValue(amount, 18),
		"usd": plain(amount*price, 15)}
}

func (a *aaveMarkets) reserve(p *pool, s poolState, now int64) map[string]any {
	k := p.coins[0]
	price := k.coin.at(now)
	supplied, owed := s.supplied/price, s.owed/price
	token := func(prefix string) map[string]any {
		at := p.contract(k)
		if prefix != "" {
			at = contract(p.seed.of(prefix), chains[p.on].id)
		}
		return map[string]any{
			"address": at, "chainId": chains[p.on].number, "name": strings.TrimSpace(prefix + " " + k.coin.name),
			"imageUrl": "https://images.example.invalid/tokens/" + k.coin.id + ".svg", "symbol": prefix + k.symbol,
			"decimals": 18,
		}
	}
	pledged := k.coin.kind != schemas.KindStablecoin || p.seed.at(20)%3 > 0
	ltv := 0.0
	if pledged {
		ltv = p.ltv
	}
	cap := twoDigits(supplied * 1.3)
	if p.seed.at(21)%8 == 0 { // it is full
		cap = twoDigits(supplied * 0.98)
	}
	reserve := map[string]any{
		"underlyingToken": token(""), "aToken": token("a"), "vToken": token("variableDebt"),
		"size":            aaveAmount(supplied, price),
		"usdExchangeRate": plain(price, 12), "usdOracleAddress": contract(p.seed.of("oracle"), chains[p.on].id),
		"isFrozen": p.seed.at(22)%25 == 0, "isPaused": false, "flashLoanEnabled": true,
		"permitSupported": p.seed.at(23)%2 == 0,
		"supplyInfo": map[string]any{
			"apy": aavePercent(s.earns), "maxLTV": aavePercent(ltv), "liquidationThreshold": aavePercent(ltv * 1.05),
			"liquidationBonus": aavePercent(0.05),
			"canBeCollateral":  pledged, "supplyCap": aaveAmount(cap, price), "supplyCapReached": cap <= supplied,
			"total": aaveValue(supplied, 18),
		},
		"borrowInfo": nil,
	}
	if k.coin.kind == schemas.KindStaked && p.seed.at(10)%2 == 0 { // only to be pledged
		return reserve
	}
	limit := twoDigits(supplied * 0.9)
	if p.seed.at(24)%6 == 0 {
		limit = 0 // none
	}
	reserve["borrowInfo"] = map[string]any{
		"apy": aavePercent(s.costs), "total": aaveAmount(owed, price), "reserveFactor": aavePercent(1 - lenderShare),
		"availableLiquidity": aaveAmount(supplied-owed, price),
		"utilizationRate":    aavePercent(owed / supplied), "baseVariableBorrowRate": aavePercent(0),
		"variableRateSlope1": aavePercent(0.05), "variableRateSlope2": aavePercent(0.6),
		"optimalUsageRate": aavePercent(0.9), "borrowingState": "ENABLED", "borrowCap": aaveAmount(limit, price),
		"borrowCapReached": limit > 0 && limit <= owed,
	}
	return reserve
}
