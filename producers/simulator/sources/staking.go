package sources

import (
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/marketlog/marketlog/producers/simulator/market"
	"github.com/marketlog/marketlog/producers/simulator/provider"
)

// What staking earns in a year, near enough to what people expect.
const (
	etherStaked = 0.028
	solStaked   = 0.068
)

// staker declares the simulated side of one that publishes its own staking rate; answer is the body at a time.
func staker(slug, path string, answer func(r *Reference, now int64) any) Source {
	return Source{
		Slug: slug, Requests: 60, Per: time.Minute,
		Routes: func(r *Reference) map[string]http.HandlerFunc {
			return map[string]http.HandlerFunc{"GET " + path: func(w http.ResponseWriter, _ *http.Request) {
				provider.Respond(w, http.StatusOK, answer(r, r.Now().UnixNano()))
			}}
		},
	}
}

// lido serves the APR of each rebase of stETH, once a day, as described on https://docs.lido.fi/integrations/api/.
func lido() Source {
	return Source{
		Slug: "lido", Requests: 60, Per: time.Minute,
		Routes: func(r *Reference) map[string]http.HandlerFunc {
			meta := map[string]any{"symbol": "stETH", "address": "0xae7ab96520DE3A18E5e111B5EaAb095312D7fE84", "chainId": 1}
			respond := func(w http.ResponseWriter, data any) {
				provider.Respond(w, http.StatusOK, map[string]any{"data": data, "meta": meta})
			}
			return map[string]http.HandlerFunc{
				"GET /v1/protocol/steth/apr/last": func(w http.ResponseWriter, _ *http.Request) { respond(w, rebase(r.world, lastRebase(r.Now()))) },
				"GET /v1/protocol/steth/apr/sma": func(w http.ResponseWriter, _ *http.Request) {
					days, sum := []any{}, 0.0
					for n := int64(rebasesShown - 1); n >= 0; n-- {
						rebased := rebase(r.world, lastRebase(r.Now())-n)
						days, sum = append(days, rebased), sum+rebased["apr"].(float64)
					}
					respond(w, map[string]any{"aprs": days, "smaApr": digits(sum/rebasesShown, 7)})
				},
			}
		},
	}
}

const (
	// rebasesShown is how many days the moving average is of.
	rebasesShown = 8
	// rebaseAt is when stETH is rebased each day.
	rebaseAt = 12*market.Hour + 22*market.Minute
	// lossEvery is on about how many days validators lose more than they earn.
	lossEvery = 61
)

// lastRebase is the day of the last one, counted from 1970.
func lastRebase(now time.Time) int64 { return market.FloorDiv(now.UnixNano()-rebaseAt, market.Day) }

func rebase(w *market.World, days int64) map[string]any {
	own := w.Seed.Of("lido")
	at := days*market.Day + rebaseAt + int64(own.At(days)%90)*market.Second
	apr := 100 * w.Staked("ethereum", "lido", etherStaked*0.9).At(at)
	if own.At(days)%lossEvery == 0 {
		apr = -0.5 * own.Unit(days)
	}
	return map[string]any{"timeUnix": at / market.Second, "apr": math.Round(apr*1000) / 1000}
}

// rocketPool serves an APR in percent, as a text.
func rocketPool() Source {
	return staker("rocketpool", "/api/apr", func(r *Reference, now int64) any {
		return map[string]string{"yearlyAPR": plain(100*r.world.Staked("ethereum", "rocketpool", etherStaked*0.86).At(now), 6)}
	})
}

// frax serves an APR in percent, and prices beside it.
func frax() Source {
	return staker("frax", "/v2/frxeth/summary/latest", func(r *Reference, now int64) any {
		return map[string]any{
			"sfrxethApr":         digits(100*r.world.Staked("ethereum", "frax", etherStaked*1.08).At(now), 8),
			"sfrxethFrxethPrice": digits(1.15*math.Exp(etherStaked*float64(now-market.SupplyFrom)/float64(365*market.Day)), 8),
			// Frax ether is a little cheaper than ether.
			"frxethEthCurvePrice": digits(0.998, 7), "ethPriceUsd": digits(r.world.Coins["ethereum"].At(now), 6),
		}
	})
}

// jito serves the statistics of a week by days, the oldest first, as https://github.com/jito-foundation/kobe does; APYs are
// fractions.
func jito() Source {
	return staker("jito", "/api/v1/stake_pool_stats", func(r *Reference, now int64) any {
		type point struct {
			Data any    `json:"data"`
			Date string `json:"date"`
		}
		var mev, tvl, apy, validators, supply []point
		for n := int64(6); n >= 0; n-- {
			at := market.FloorDiv(now, market.Day)*market.Day - n*market.Day
			date := provider.SpellTime(at, time.RFC3339)
			staked := 11e6 + 1e5*float64(n)
			mev = append(mev, point{jitoMEV, date})
			tvl = append(tvl, point{int64(staked * 1.27e9), date})
			apy = append(apy, point{digits(r.world.Staked("solana", "jito", solStaked).At(at), 16), date})
			validators, supply = append(validators, point{430, date}), append(supply, point{staked, date})
		}
		return map[string]any{
			"aggregated_mev_rewards": jitoMEV * len(mev), "mev_rewards": mev, "tvl": tvl, "apy": apy, "num_validators": validators, "supply": supply,
		}
	})
}

// jitoMEV is what searchers pay to stakers in a day, in lamports.
const jitoMEV = 947_175_000_000

// marinade serves by how much mSOL grew within seven days, for a year, as a fraction.
func marinade() Source {
	return staker("marinade", "/msol/apy/7d", func(r *Reference, now int64) any {
		apy := r.world.Staked("solana", "marinade", solStaked*0.97).At(now)
		price := 1.33 * math.Exp(solStaked*float64(now-market.SupplyFrom)/float64(365*market.Day))
		return map[string]any{
			"value": digits(apy, 8), "end_time": provider.SpellTime(now, geckoTime), "end_price": digits(price, 10),
			"start_time": provider.SpellTime(now-7*market.Day, geckoTime), "start_price": digits(price/math.Pow(1+apy, 7.0/365), 10),
		}
	})
}

// coinbaseStaked serves cbETH, whose APY is a fraction.
func coinbaseStaked() Source {
	return staker("coinbase-cbeth", "/wrapped-assets/CBETH", func(r *Reference, now int64) any {
		c := r.catalogue.ByID["coinbase-wrapped-staked-eth"]
		return map[string]string{
			"id": "CBETH", "circulating_supply": strconv.FormatFloat(c.CirculatingAt(now), 'f', 2, 64),
			"total_supply": strconv.FormatFloat(c.TotalAt(now), 'f', 2, 64), "conversion_rate": plain(c.Path.At(now), 12),
			"apy": plain(r.world.Staked("ethereum", "coinbase", etherStaked*0.92).At(now), 8),
		}
	})
}

// binanceStaked serves WBETH, whose APR is a fraction.
func binanceStaked() Source {
	return staker("binance-wbeth", "/bapi/earn/v1/public/pos/cftoken/project/getPurchasableProject", func(r *Reference, now int64) any {
		apr := r.world.Staked("ethereum", "binance", etherStaked*0.94).At(now)
		return map[string]any{
			"code": "000000", "message": nil, "messageDetail": nil, "success": true,
			"data": map[string]any{"annualInterestRate": plain(apr, 8)},
		}
	})
}

// swell serves an APR in percent, and nothing else.
func swell() Source {
	return staker("swell", "/api/tokens/sweth/apr", func(r *Reference, now int64) any {
		return digits(100*r.world.Staked("ethereum", "swell", etherStaked*1.05).At(now), 6)
	})
}
