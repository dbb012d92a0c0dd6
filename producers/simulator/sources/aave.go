package sources

import (
	"math"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/marketlog/marketlog/producers/simulator/market"
	"github.com/marketlog/marketlog/schemas"
)

// aave serves the markets of Aave's third version by GraphQL, as described on
// https://aave.com/docs/aave-v3/markets/data and in packages/graphql/schema.graphql of https://github.com/aave/aave-sdk.
func aave() Source {
	return Source{
		Slug: "aave", Requests: 120, Per: time.Minute,
		Routes: func(r *Reference) map[string]http.HandlerFunc {
			a := &aaveMarkets{Reference: r}
			for _, p := range r.defi().pools() {
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
	c := market.Chains[on]
	return map[string]any{
		"name": c.Name, "icon": "https://images.example.invalid/chains/" + c.ID + ".svg", "chainId": c.Number,
		"explorerUrl": "https://explorer.example.invalid/" + c.ID, "isTestnet": false,
		"nativeWrappedToken": market.Contract(a.world.Seed.Of("wrapped"), c.ID),
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
		if !slices.Contains(asked, strconv.Itoa(market.Chains[on].Number)) {
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
			"name": "AaveV3" + strings.ReplaceAll(market.Chains[on].Name, " ", ""), "chain": a.chain(on),
			"address": market.Contract(a.world.Seed.Of("aave"), market.Chains[on].ID),
			"icon":    "https://images.example.invalid/markets/aave.svg", "totalMarketSize": plain(size, 15),
			"totalAvailableLiquidity": plain(idle, 15), "reserves": reserves,
		})
	}
	return list
}

// value spells a number with the raw one that is on the chain.
func aaveValue(x float64, decimals int) map[string]any {
	return map[string]any{"raw": strconv.FormatFloat(math.Trunc(x*math.Pow10(decimals)), 'f', 0, 64), "decimals": decimals,
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
	price := k.coin.At(now)
	supplied, owed := s.supplied/price, s.owed/price
	token := func(prefix string) map[string]any {
		at := p.contract(k)
		if prefix != "" {
			at = market.Contract(p.seed.Of(prefix), market.Chains[p.on].ID)
		}
		return map[string]any{
			"address": at, "chainId": market.Chains[p.on].Number, "name": strings.TrimSpace(prefix + " " + k.coin.Name),
			"imageUrl": "https://images.example.invalid/tokens/" + k.coin.ID + ".svg", "symbol": prefix + k.symbol,
			"decimals": 18,
		}
	}
	pledged := k.coin.Kind != schemas.KindStablecoin || p.seed.At(20)%3 > 0
	ltv := 0.0
	if pledged {
		ltv = p.ltv
	}
	cap := market.TwoDigits(supplied * 1.3)
	if p.seed.At(21)%8 == 0 { // it is full
		cap = market.TwoDigits(supplied * 0.98)
	}
	reserve := map[string]any{
		"underlyingToken": token(""), "aToken": token("a"), "vToken": token("variableDebt"),
		"size":            aaveAmount(supplied, price),
		"usdExchangeRate": plain(price, 12), "usdOracleAddress": market.Contract(p.seed.Of("oracle"), market.Chains[p.on].ID),
		"isFrozen": p.seed.At(22)%25 == 0, "isPaused": false, "flashLoanEnabled": true,
		"permitSupported": p.seed.At(23)%2 == 0,
		"supplyInfo": map[string]any{
			"apy": aavePercent(s.earns), "maxLTV": aavePercent(ltv), "liquidationThreshold": aavePercent(ltv * 1.05),
			"liquidationBonus": aavePercent(0.05),
			"canBeCollateral":  pledged, "supplyCap": aaveAmount(cap, price), "supplyCapReached": cap <= supplied,
			"total": aaveValue(supplied, 18),
		},
		"borrowInfo": nil,
	}
	if k.coin.Kind == schemas.KindStaked && p.seed.At(10)%2 == 0 { // only to be pledged
		return reserve
	}
	limit := market.TwoDigits(supplied * 0.9)
	if p.seed.At(24)%6 == 0 {
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
