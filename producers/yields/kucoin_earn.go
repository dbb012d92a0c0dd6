package yields

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/answer"
	"github.com/marketlog/marketlog/producers/poll"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// kucoinEarn reads the products of KuCoin Earn: savings, which are lent, offers for a while, and what is staked; yearly rates
// as fractions, as described on https://www.kucoin.com/docs-new/3470271e0 and the pages beside it.
func kucoinEarn() poll.Source {
	const products = "https://www.kucoin.com/docs-new/3470271e0"
	feed := func(name, path string, evidence producers.Evidence) poll.Feed {
		return poll.Feed{
			Name: name, Evidence: evidence,
			Interval: time.Hour, Requests: poll.Fixed("/api/v1/earn/" + path + "/products"),
		}
	}
	return poll.Source{
		Slug: "kucoin-earn", Name: "KuCoin Earn", Version: 1,
		URL:         "https://api.kucoin.com",
		License:     "under KuCoin's terms of use",
		Terms:       "https://www.kucoin.com/legal/terms-of-use",
		Attribution: "Source: KuCoin",
		Off:         "it answers accounts only: the key file has to hold an API key of general permission, its secret and its passphrase",
		KeyHeader:   "KC-API-KEY",
		Sign:        signKuCoin,
		Kinds:       []string{poll.KindRate},
		Feeds: []poll.Feed{
			feed("savings", "saving", producers.Documented(products).And(kucoinClients...)),
			feed("promotions", "promotion", producers.Documented(products).And(kucoinClients...)),
			feed("staking", "staking", producers.Documented(products).And(kucoinClients...)),
			feed("kcs", "kcs-staking", producers.Documented("https://www.kucoin.com/docs/rest/earn/staking/get-earn-kcs-staking-products").
				And(kucoinClients...)),
			feed("eth", "eth-staking", producers.Documented(products).And(kucoinClients...)),
		},
		Moves:    0,                    // products with rates that KuCoin sets, may be unchanged for any time
		Requests: 60, Per: time.Minute, // each weighs 5 of the 2,000 and more that an account has within 30 seconds
		MaxBody: 8 << 20,
		Decode:  decodeKuCoinEarn,
	}
}

// kucoinClients are KuCoin's own client, whose tests hold a sample answer of each list, and one of another's.
var kucoinClients = []string{
	"https://github.com/Kucoin/kucoin-universal-sdk", "https://github.com/tiagosiebler/kucoin-api/blob/master/src/types/response/spot-earn.ts",
}

func decodeKuCoinEarn(_ string, body []byte, out *poll.Readings) error {
	var response struct {
		Code    producers.Num     `json:"code"`
		Message string            `json:"msg"`
		Data    []json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(body, &response); err != nil {
		return producers.Unreadable("parsing: %w", err)
	}
	// An empty list is an answer: there may be no offer at the time.
	if response.Code != "200000" || len(response.Data) > 0 && !answer.SomeRow(response.Data, "id", "currency", "returnRate") {
		return producers.Unreadable("no products in it; it says %.20s %.200s", string(response.Code), response.Message)
	}
	answer.EachRow(response.Data, out, kucoinProduct)
	return nil
}

func kucoinProduct(row json.RawMessage, out *poll.Readings) error {
	var p struct {
		ID       string        `json:"id"`
		Currency string        `json:"currency"`
		Category string        `json:"category"`
		Type     string        `json:"type"`
		Rate     producers.Num `json:"returnRate"`
		Least    producers.Num `json:"userLowerLimit"`
		Most     producers.Num `json:"userUpperLimit"`
		Notice   producers.Num `json:"redeemPeriod"`
		Days     producers.Num `json:"duration"`
		Status   string        `json:"status"`
		Released string        `json:"incomeReleaseType"`
		NewUsers producers.Num `json:"newUserOnly"`
	}
	var f answer.Fields
	if !f.Parse(row, &p) {
		return f.Err
	}
	if p.Status != "ONGOING" {
		return nil // full, not begun or over
	}
	rate := &eventsv1.Rate{
		Project: "kucoin", Pool: p.ID, Symbol: p.Currency, Category: schemas.RateStaking,
		Raw: string(p.Rate), RawUnit: "apr_fraction", Compounding: "none", Term: "flexible", MinAmount: string(p.Least), MaxAmount: string(p.Most),
		NoticeDays: daysOf(&f, "redeemPeriod", p.Notice, 1), Promo: p.Category == "ACTIVITY" || p.NewUsers == "1", Payout: "daily",
	}
	if p.Category == "DEMAND" || p.Category == "ACTIVITY" {
		rate.Category = schemas.RateLending
	}
	if p.Type == "TIME" {
		days := f.Count("duration", p.Days)
		rate.Term, rate.LockupDays = strconv.FormatUint(uint64(days), 10)+"d", new(float64(days))
	}
	if p.Released == "AFTER" {
		rate.Payout = "at_end"
	}
	if f.Err == nil {
		out.Rate(rate)
	}
	return f.Err
}
