package sources

import (
	"net/http"
	"strconv"
	"time"

	"github.com/marketlog/marketlog/producers/simulator/market"
	"github.com/marketlog/marketlog/producers/simulator/provider"
	"github.com/marketlog/marketlog/schemas"
)

// What answers accounts alone answers everybody here: a simulated account needs no key.

// kucoinEarn serves the products of KuCoin Earn, as described on https://www.kucoin.com/docs-new/rest/earn/get-savings-products.
func kucoinEarn() Source {
	return Source{
		Slug: "kucoin-earn", Requests: 400, Per: 30 * time.Second,
		Routes: func(r *Reference) map[string]http.HandlerFunc {
			serve := func(products func(now int64) []map[string]any) http.HandlerFunc {
				return func(w http.ResponseWriter, _ *http.Request) {
					provider.Respond(w, http.StatusOK, map[string]any{"code": "200000", "data": products(r.Now().UnixNano())})
				}
			}
			saving := func(category, kind string, days int) func(now int64) []map[string]any {
				return func(now int64) []map[string]any {
					list := []map[string]any{}
					for _, c := range r.catalogue.Lent(kucoinCoins, now) {
						rate := c.Borrowed(r.world, "kucoin").At(now) * c.LentShare(r.world, "kucoin")
						p := kucoinProduct(strconv.Itoa(2000+c.Place), c.Symbol, category, kind, rate, now)
						if c.Seed.At(73)%10 == 0 {
							p["status"], p["productRemainAmount"] = "FULL", "0"
						}
						if days > 0 { // for new users, and few coins
							if c.Kind != schemas.KindStablecoin {
								continue
							}
							p["id"], p["duration"], p["newUserOnly"], p["incomeReleaseType"] = strconv.Itoa(3000+c.Place), days, 1, "AFTER"
							p["returnRate"], p["lockEndTime"] = plain(rate*3, 4), market.FloorDiv(now, market.Day)*market.Day/1e6+int64(days)*market.Day/1e6
						}
						list = append(list, p)
					}
					return list
				}
			}
			staked := func(category string, notice int, coins map[string]float64) func(now int64) []map[string]any {
				return func(now int64) []map[string]any {
					list := []map[string]any{}
					for _, c := range r.catalogue.Coins {
						if level := coins[c.ID]; level > 0 {
							rate := r.world.Staked(c.ID, "kucoin", level).At(now)
							p := kucoinProduct(strconv.Itoa(2500+c.Place), c.Symbol, category, "DEMAND", rate, now)
							p["redeemPeriod"] = notice
							list = append(list, p)
						}
					}
					return list
				}
			}
			return map[string]http.HandlerFunc{
				"GET /api/v1/earn/saving/products":      serve(saving("DEMAND", "DEMAND", 0)),
				"GET /api/v1/earn/promotion/products":   serve(saving("ACTIVITY", "TIME", 7)),
				"GET /api/v1/earn/staking/products":     serve(staked("STAKING", 14, map[string]float64{"solana": solStaked, "polkadot": 0.1, "cosmos": 0.13})),
				"GET /api/v1/earn/kcs-staking/products": serve(staked("KCS_STAKING", 3, map[string]float64{"kucoin-shares": 0.035})),
				"GET /api/v1/earn/eth-staking/products": serve(staked("ETH2", 5, map[string]float64{"ethereum": etherStaked})),
			}
		},
	}
}

// kucoinCoins have a product.
const kucoinCoins = 50

func kucoinProduct(id, symbol, category, kind string, rate float64, now int64) map[string]any {
	began := market.FloorDiv(now, market.Day)*market.Day/1e6 - 90*market.Day/1e6
	return map[string]any{
		"id": id, "currency": symbol, "category": category, "type": kind, "precision": 8, "productUpperLimit": "480000", "userUpperLimit": "20000",
		"userLowerLimit": "0.01", "redeemPeriod": 0, "lockStartTime": began, "lockEndTime": nil, "applyStartTime": began, "applyEndTime": nil,
		"returnRate": plain(rate, 5), "incomeCurrency": symbol, "earlyRedeemSupported": 0, "productRemainAmount": "132000.36153083", "status": "ONGOING",
		"redeemType": "MANUAL", "incomeReleaseType": "DAILY", "interestDate": market.FloorDiv(now, market.Day) * market.Day / 1e6, "duration": 0, "newUserOnly": 0,
	}
}

// binanceEarn serves the products of Binance's Simple Earn, as described on
// https://developers.binance.com/docs/simple_earn/account/Get-Simple-Earn-Flexible-Product-List.
func binanceEarn() Source {
	return Source{
		Slug: "binance-earn", Requests: 40, Per: time.Minute,
		Routes: func(r *Reference) map[string]http.HandlerFunc {
			serve := func(row func(c *market.Coin, rate float64) any) http.HandlerFunc {
				return func(w http.ResponseWriter, req *http.Request) {
					now := r.Now().UnixNano()
					coins := r.catalogue.Lent(binanceCoins, now)
					size, page := countOf(req, "size", 10, 100), countOf(req, "current", 1, 1000)
					rows := []any{}
					for _, c := range coins[min((page-1)*size, len(coins)):min(page*size, len(coins))] {
						rows = append(rows, row(c, c.Borrowed(r.world, "binance").At(now)*c.LentShare(r.world, "binance")))
					}
					provider.Respond(w, http.StatusOK, map[string]any{"rows": rows, "total": len(coins)})
				}
			}
			return map[string]http.HandlerFunc{
				"GET /sapi/v1/simple-earn/flexible/list": serve(func(c *market.Coin, rate float64) any {
					p := map[string]any{
						"asset": c.Symbol, "latestAnnualPercentageRate": strconv.FormatFloat(rate, 'f', 8, 64), "canPurchase": true, "canRedeem": true,
						"isSoldOut": c.Seed.At(74)%12 == 0, "hot": c.Rank < 10, "minPurchaseAmount": plain(1/c.Level(), 1), "productId": c.Symbol + "001",
						"subscriptionStartTime": 1646182276000, "status": "PURCHASING",
					}
					if c.Kind == schemas.KindStablecoin {
						p["tierAnnualPercentageRate"] = map[string]string{"0-200" + c.Symbol: "0.04000000"} // on top of the rate
						p["airDropPercentageRate"] = "0.01000000"
					}
					return p
				}),
				"GET /sapi/v1/simple-earn/locked/list": serve(func(c *market.Coin, rate float64) any {
					status := "PURCHASING"
					if c.Seed.At(76)%20 == 0 { // it is not sold yet
						status = "CREATED"
					}
					return map[string]any{
						"projectId": c.Symbol + "*60",
						"detail": map[string]any{
							"asset": c.Symbol, "rewardAsset": c.Symbol, "duration": 60, "renewable": true, "isSoldOut": c.Seed.At(75)%3 == 0,
							"apr": plain(rate*1.5, 4), "status": status, "subscriptionStartTime": 1646182276000,
						},
						"quota": map[string]string{"totalPersonalQuota": plain(1e5/c.Level(), 2), "minimum": plain(1/c.Level(), 1)},
					}
				}),
			}
		},
	}
}

// binanceCoins have a product.
const binanceCoins = 130

// countOf is a parameter from 1 to most.
func countOf(req *http.Request, name string, absent, most int) int {
	n, err := strconv.Atoi(req.URL.Query().Get(name))
	if err != nil || n < 1 {
		return absent
	}
	return min(n, most)
}

// krakenEarn serves the strategies of Kraken Earn, as described on https://docs.kraken.com/api/docs/rest-api/list-earn-strategies.
func krakenEarn() Source {
	return Source{
		Slug: "kraken-earn", Requests: 15, Per: 30 * time.Second,
		Routes: func(r *Reference) map[string]http.HandlerFunc {
			return map[string]http.HandlerFunc{"POST /0/private/Earn/Strategies": func(w http.ResponseWriter, _ *http.Request) {
				now, items := r.Now().UnixNano(), []any{}
				for _, s := range krakenStrategies {
					if c := r.catalogue.ByID[s.coin]; c != nil {
						items = append(items, krakenStrategy(c.Symbol, s.bonded, 100*r.world.Staked(s.coin, "kraken", s.level).At(now), r.world.Seed))
					}
				}
				provider.Respond(w, http.StatusOK, map[string]any{"error": []string{}, "result": map[string]any{"next_cursor": nil, "items": items}})
			}}
		},
	}
}

// krakenStrategies are what can be staked, bonded for so many days or at once.
var krakenStrategies = []struct {
	coin   string
	bonded int
	level  float64
}{
	{"ethereum", 7, etherStaked}, {"ethereum", 0, etherStaked * 0.6}, {"solana", 3, solStaked}, {"solana", 0, solStaked * 0.7}, {"polkadot", 28, 0.15},
	{"polkadot", 0, 0.08}, {"cosmos", 21, 0.16}, {"tron", 14, 0.04}, {"usd-coin", 0, 0.04}, {"tether", 0, 0.038},
}

func krakenStrategy(symbol string, days int, low float64, s market.Seed) map[string]any {
	own := s.Of("strategy " + symbol + strconv.Itoa(days))
	id := []byte("ESXXXXX-XXXXX-XXXXXX")
	for i := 2; i < len(id); i++ {
		if id[i] == 'X' {
			id[i] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"[own.At(int64(i))%32]
		}
	}
	const day = 24 * 60 * 60
	lock := map[string]any{"type": "instant", "payout_frequency": 7 * day}
	if days > 0 {
		lock = map[string]any{
			"type": "bonded", "payout_frequency": 7 * day, "bonding_period": day, "bonding_period_variable": false, "bonding_rewards": false,
			"unbonding_period": days * day, "unbonding_period_variable": false, "unbonding_rewards": false, "exit_queue_period": 0,
		}
	}
	source := "staking"
	if symbol == "USDC" || symbol == "USDT" {
		source = "off_chain"
	}
	return map[string]any{
		"id": string(id), "asset": symbol, "lock_type": lock, "user_min_allocation": "0.01", "user_cap": "100000",
		"apr_estimate":   map[string]string{"low": strconv.FormatFloat(low, 'f', 4, 64), "high": strconv.FormatFloat(low*1.3, 'f', 4, 64)},
		"allocation_fee": "0.0000", "deallocation_fee": "0.0000", "auto_compound": map[string]string{"type": "enabled"},
		"yield_source": map[string]string{"type": source}, "can_allocate": true, "can_deallocate": true, "allocation_restriction_info": []string{},
	}
}
