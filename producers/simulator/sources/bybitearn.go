package sources

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/marketlog/marketlog/producers/simulator/market"
	"github.com/marketlog/marketlog/producers/simulator/provider"
	"github.com/marketlog/marketlog/schemas"
)

// bybitEarn serves the products of Bybit Earn, as described on https://bybit-exchange.github.io/docs/v5/earn/product-info.
func bybitEarn() Source {
	return Source{
		Slug: "bybit-earn", Requests: 50, Per: time.Second,
		Routes: func(r *Reference) map[string]http.HandlerFunc {
			return map[string]http.HandlerFunc{"GET /v5/earn/product": func(w http.ResponseWriter, req *http.Request) { r.bybitProducts(w, req) }}
		},
	}
}

const (
	// bybitSavings coins have a product.
	bybitSavings = 60
	// bybitTier is up to which amount of stablecoins the platform adds to the rate.
	bybitTier = 200
)

// bybitStaked are staked on chain: into what, or for how many days.
var bybitStaked = []struct {
	coin, into string
	days       int
	level      float64
}{
	{"ethereum", "METH", 0, etherStaked}, {"ethereum", "", 0, etherStaked * 0.8}, {"solana", "BBSOL", 0, solStaked},
	{"solana", "", 30, solStaked * 1.1}, {"polkadot", "", 28, 0.12}, {"celestia", "", 21, 0.09}, {"cosmos", "", 21, 0.14},
	{"avalanche-2", "", 14, 0.05}, {"near", "", 0, 0.08}, {"sui", "", 0, 0.03},
}

func (r *Reference) bybitProducts(w http.ResponseWriter, req *http.Request) {
	now := market.FloorDiv(r.Now().UnixNano(), 10*market.Minute) * 10 * market.Minute
	list := []map[string]any{}
	switch category := req.URL.Query().Get("category"); category {
	case "FlexibleSaving":
		for i, c := range r.catalogue.Lent(bybitSavings, now) {
			apr := c.Borrowed(r.world, "bybit").At(now) * c.LentShare(r.world, "bybit")
			p := bybitProduct(category, c.Symbol, i+1, apr)
			switch {
			case c.Kind == schemas.KindStablecoin && c.Rank < 10:
				p["hasTieredApr"], p["tierAprDetails"] = true, []map[string]string{
					{"min": "0", "max": strconv.Itoa(bybitTier), "estimateApr": inPercent(apr + 0.05)},
					{"min": strconv.Itoa(bybitTier), "max": "-1", "estimateApr": inPercent(apr)},
				}
			case c.Seed.At(70)%9 == 0: // it is sold out
				p["status"], p["estimateApr"] = "NotAvailable", "0%"
			case c.Seed.At(70)%11 == 0:
				p["bonusEvents"] = []map[string]string{{"apr": "2%", "coin": "MNT", "announcement": "https://announcements.example.invalid/" + c.Symbol}}
			}
			list = append(list, p)
		}
	case "OnChain":
		for i, s := range bybitStaked {
			c := r.catalogue.ByID[s.coin]
			if c == nil {
				continue
			}
			p := bybitProduct(category, c.Symbol, i+1, r.world.Staked(s.coin, fmt.Sprint("bybit ", i), s.level).At(now))
			p["duration"], p["rewardDistributionType"], p["rewardIntervalMinute"] = "Flexible", "Simple", 24*60
			switch {
			case s.into != "":
				p["swapCoin"], p["swapCoinPrecision"], p["rewardDistributionType"], p["rewardIntervalMinute"] = s.into, "8", "LST", 0
				p["stakeExchangeRate"], p["redeemExchangeRate"] = "0.93", "1.07"
			case s.days > 0:
				p["duration"], p["term"], p["rewardDistributionType"], p["redeemProcessingMinute"] = "Fixed", s.days, "Compound", 2880
			}
			list = append(list, p)
		}
	default:
		provider.Respond(w, http.StatusOK, map[string]any{"retCode": 180001, "retMsg": "Invalid parameter", "result": map[string]any{}})
		return
	}
	bybitResult(w, r.Now(), map[string]any{"list": list})
}

func bybitProduct(category, symbol string, id int, apr float64) map[string]any {
	return map[string]any{
		"category": category, "estimateApr": inPercent(apr), "coin": symbol, "minStakeAmount": "0.001", "maxStakeAmount": "100000", "precision": "8",
		"productId": strconv.Itoa(id), "status": "Available", "bonusEvents": []map[string]string{}, "minRedeemAmount": "", "maxRedeemAmount": "",
		"duration": "", "term": 0, "swapCoin": "", "swapCoinPrecision": "", "stakeExchangeRate": "", "redeemExchangeRate": "", "rewardDistributionType": "",
		"rewardIntervalMinute": 0, "redeemProcessingMinute": 0, "stakeTime": "", "interestCalculationTime": "", "hasTieredApr": false,
		"tierAprDetails": []map[string]string{}, "remainingPoolAmount": "-1",
	}
}

func bybitResult(w http.ResponseWriter, now time.Time, result any) {
	provider.Respond(w, http.StatusOK, map[string]any{"retCode": 0, "retMsg": "", "result": result, "retExtInfo": map[string]any{}, "time": now.UnixMilli()})
}

// bybitMargin serves what borrowing costs by the level of the customer, as described on
// https://bybit-exchange.github.io/docs/v5/spot-margin-uta/vip-margin.
func bybitMargin() Source {
	return Source{
		Slug: "bybit-margin", Requests: 600, Per: 5 * time.Second,
		Routes: func(r *Reference) map[string]http.HandlerFunc {
			return map[string]http.HandlerFunc{"GET /v5/spot-margin-trade/data": func(w http.ResponseWriter, req *http.Request) { r.bybitBorrowed(w, req) }}
		},
	}
}

// bybitBorrowable coins can be borrowed, or could be.
const bybitBorrowable = 100

// bybitLevels are customers by what they pay of the whole rate.
var bybitLevels = []struct {
	name  string
	share float64
}{{"No VIP", 1}, {"VIP-1", 0.95}, {"VIP-5", 0.7}, {"PRO-6", 0.4}}

func (r *Reference) bybitBorrowed(w http.ResponseWriter, req *http.Request) {
	q, now := req.URL.Query(), r.Now().UnixNano()
	levels := []map[string]any{}
	for _, level := range bybitLevels {
		if asked := q.Get("vipLevel"); asked != "" && asked != level.name {
			continue
		}
		list := []map[string]any{}
		for i, c := range r.catalogue.Lent(bybitBorrowable, now) {
			if asked := q.Get("currency"); asked != "" && asked != c.Symbol {
				continue
			}
			row := map[string]any{
				"borrowable": true, "collateralRatio": "0.9", "currency": c.Symbol, "liquidationOrder": strconv.Itoa(i + 1), "marginCollateral": true,
				"hourlyBorrowRate":   strconv.FormatFloat(level.share*c.Borrowed(r.world, "bybit").At(now)/8760, 'f', 16, 64),
				"maxBorrowingAmount": plain(2e6/c.Level(), 2),
			}
			if c.Seed.At(71)%13 == 0 {
				row["borrowable"], row["hourlyBorrowRate"], row["maxBorrowingAmount"] = false, "0", "0"
			}
			list = append(list, row)
		}
		levels = append(levels, map[string]any{"vipLevel": level.name, "list": list})
	}
	bybitResult(w, r.Now(), map[string]any{"vipCoinList": levels})
}
