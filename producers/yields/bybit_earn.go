package yields

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/answer"
	"github.com/marketlog/marketlog/producers/poll"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// bybitEarn reads the products of Bybit Earn: savings, which are lent, and what is staked on chain. Estimated APRs come in
// percent with the sign ("3%"), recalculated every ten minutes and without the rewards of the platform. The endpoint is
// described on https://bybit-exchange.github.io/docs/v5/earn/product-info; tierAprDetails and remainingPoolAmount, which
// public clients read, are not on that page yet. Answers that clients quote have the rate of the last tier in estimateApr: those
// of tiers are whole rates, not what comes on top.
func bybitEarn() poll.Source {
	return poll.Source{
		Slug: "bybit-earn", Name: "Bybit Earn", Version: 2,
		URL:         "https://api.bybit.com",
		License:     "under Bybit's terms of service",
		Terms:       "https://www.bybit.com/en/terms-service/information/",
		Attribution: "Source: Bybit",
		Kinds:       []string{poll.KindRate},
		Feeds: []poll.Feed{
			{Name: "savings",
				Evidence: producers.Documented("https://bybit-exchange.github.io/docs/v5/earn/product-info").And(bybitEarnClients...).But(
					"tierAprDetails is on no page that was read, and not in these two clients; others read it"),
				Interval: 15 * time.Minute, Requests: poll.Fixed("/v5/earn/product?category=FlexibleSaving")},
			{Name: "onchain",
				Evidence: producers.Documented("https://bybit-exchange.github.io/docs/v5/earn/product-info").And(bybitEarnClients...),
				Interval: 15 * time.Minute, Requests: poll.Fixed("/v5/earn/product?category=OnChain")},
		},
		Moves:    15 * time.Minute, // recalculated every ten minutes
		Requests: 50, Per: time.Second,
		MaxBody: 8 << 20,
		Decode:  decodeBybitEarn,
	}
}

func decodeBybitEarn(_ string, body []byte, out *poll.Readings) error {
	rows, err := bybitRows(body, "list")
	if err != nil {
		return err
	}
	if !answer.SomeRow(rows, "productId", "coin") {
		return producers.Unreadable("no products in it")
	}
	answer.EachRow(rows, out, bybitProduct)
	return nil
}

// bybitRows is a list in the result of an answer.
func bybitRows(body []byte, name string) ([]json.RawMessage, error) {
	var response struct {
		Code    producers.Num              `json:"retCode"`
		Message string                     `json:"retMsg"`
		Result  map[string]json.RawMessage `json:"result"`
	}
	if err := json.Unmarshal(body, &response); err != nil {
		return nil, producers.Unreadable("parsing: %w", err)
	}
	if response.Code != "0" {
		return nil, producers.Unreadable("it says %.20s %.200s", string(response.Code), response.Message)
	}
	return answer.Rows(response.Result[name])
}

func bybitProduct(row json.RawMessage, out *poll.Readings) error {
	var p struct {
		ID       string        `json:"productId"`
		Category string        `json:"category"`
		Coin     string        `json:"coin"`
		Status   string        `json:"status"`
		APR      string        `json:"estimateApr"`
		Least    producers.Num `json:"minStakeAmount"`
		Most     producers.Num `json:"maxStakeAmount"`
		Tiers    []struct {
			From producers.Num `json:"min"`
			To   producers.Num `json:"max"`
			APR  string        `json:"estimateApr"`
		} `json:"tierAprDetails"`
		Bonuses      []json.RawMessage `json:"bonusEvents"`
		Duration     string            `json:"duration"`
		Days         producers.Num     `json:"term"`
		Distribution string            `json:"rewardDistributionType"`
		Every        producers.Num     `json:"rewardIntervalMinute"`
		Redeeming    producers.Num     `json:"redeemProcessingMinute"`
		Into         string            `json:"swapCoin"`
	}
	var f answer.Fields
	if !f.Parse(row, &p) {
		return f.Err
	}
	if p.Status != "Available" {
		return nil // it takes nothing more, and its number is of no use to anybody
	}
	every := bybitSpans[f.Count("rewardIntervalMinute", p.Every)]
	rate := &eventsv1.Rate{
		Project: "bybit", Pool: p.ID, Symbol: p.Coin, Name: p.Into, Category: schemas.RateLending,
		Raw: bybitPercent(p.APR), RawUnit: "apr_percent", Compounding: "none", Term: "flexible",
		MinAmount: string(p.Least), MaxAmount: unlessUnbounded(p.Most), Promo: len(p.Bonuses) > 0, Payout: every,
		NoticeDays: daysOf(&f, "redeemProcessingMinute", p.Redeeming, 24*60),
	}
	if p.Category == "OnChain" {
		rate.Category = schemas.RateStaking
	}
	if p.Duration == "Fixed" {
		days := f.Count("term", p.Days)
		rate.Term, rate.LockupDays = strconv.FormatUint(uint64(days), 10)+"d", new(float64(days))
	}
	switch p.Distribution {
	case "Compound":
		rate.Compounding = cmp.Or(every, "daily")
	case "LST", "Other": // a token whose price in the coin grows, as a rule once a day; Other is its name on the Chinese page
		rate.Compounding = "daily"
	}
	for _, t := range p.Tiers {
		rate.Tiers = append(rate.Tiers, &eventsv1.RateTier{From: string(t.From), To: unlessUnbounded(t.To), Raw: bybitPercent(t.APR)})
	}
	if f.Err == nil {
		out.Rate(rate)
	}
	return f.Err
}

// bybitEarnClients have the products in their types.
var bybitEarnClients = []string{
	github("JKorf/Bybit.Net", "main", "ByBit.Net/Objects/Models/V5/BybitEarnProduct.cs"),
	github("tiagosiebler/bybit-api", "master", "src/types/response/v5-earn.ts"),
}

// bybitSpans are the usual minutes between two payments, in our words.
var bybitSpans = map[uint32]string{60: "hourly", 24 * 60: "daily", 7 * 24 * 60: "weekly"}

// daysOf reads a span in units of which a day has so many; nil if it is missing.
func daysOf(f *answer.Fields, name string, n producers.Num, ofDay float64) *float64 {
	if n == "" {
		return nil
	}
	return new(float64(f.Count(name, n)) / ofDay)
}

// bybitPercent takes the sign off.
func bybitPercent(apr string) string { return strings.TrimSuffix(strings.TrimSpace(apr), "%") }

// unlessUnbounded leaves out -1, which means no bound.
func unlessUnbounded(n producers.Num) string {
	if n == "-1" {
		return ""
	}
	return string(n)
}
