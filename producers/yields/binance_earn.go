package yields

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/answer"
	"github.com/marketlog/marketlog/producers/poll"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// binanceEarn reads the products of Binance's Simple Earn, flexible and locked ones: yearly rates as fractions, as described
// on https://developers.binance.com/docs/simple_earn/account/Get-Simple-Earn-Flexible-Product-List and the page of locked
// ones beside it. Both weigh 150 of the 6,000 that an address has in a minute.
func binanceEarn() poll.Source {
	return poll.Source{
		Slug: "binance-earn", Name: "Binance Simple Earn", Version: 1,
		URL:         "https://api.binance.com",
		License:     "under Binance's terms of use",
		Terms:       "https://www.binance.com/en/terms",
		Attribution: "Source: Binance",
		Off:         "it answers accounts only: the key file has to hold an API key that may read, and its secret",
		KeyHeader:   "X-MBX-APIKEY",
		Sign:        signBinance,
		Kinds:       []string{poll.KindRate},
		Feeds: []poll.Feed{
			{Name: "flexible",
				Evidence: producers.Documented("https://developers.binance.com/docs/simple_earn/flexible-locked/account/Get-Simple-Earn-Flexible-Product-List").But(
					"whether tierAnnualPercentageRate holds the rate that all are paid, as it is read, or comes on top of it"),
				Interval: time.Hour, Paths: poll.Fixed(binancePages("/sapi/v1/simple-earn/flexible/list")...)},
			{Name: "locked",
				Evidence: producers.Documented("https://developers.binance.com/docs/simple_earn/flexible-locked/account/Get-Simple-Earn-Locked-Product-List").But(
					"whether a product of status CREATED takes money yet: all that are not sold out count as offers"),
				Interval: time.Hour, Paths: poll.Fixed(binancePages("/sapi/v1/simple-earn/locked/list")...)},
		},
		Moves:    24 * time.Hour, // rates are of the moment, but no interval is documented
		Requests: 10, Per: time.Minute,
		MaxBody: 8 << 20,
		Decode:  decodeBinanceEarn,
	}
}

// binancePages are those of a list: about 400 coins have a flexible product. A page behind the last one is empty.
func binancePages(path string) (pages []string) {
	for page := range 6 {
		pages = append(pages, path+"?size=100&current="+strconv.Itoa(page+1))
	}
	return pages
}

func decodeBinanceEarn(path string, body []byte, out *poll.Readings) error {
	var told struct {
		Rows    []json.RawMessage `json:"rows"`
		Total   producers.Num     `json:"total"`
		Code    producers.Num     `json:"code"`
		Message string            `json:"msg"`
	}
	if err := json.Unmarshal(body, &told); err != nil {
		return producers.Unreadable("parsing: %w", err)
	}
	switch {
	case answer.SomeRow(told.Rows, "productId", "asset"):
		answer.EachRow(told.Rows, out, binanceFlexible)
	case answer.SomeRow(told.Rows, "projectId", "detail"):
		answer.EachRow(told.Rows, out, binanceLocked)
	case len(told.Rows) > 0 || told.Total == "" || told.Total == "0" || strings.HasSuffix(path, "current=1"):
		return producers.Unreadable("no products in it; it says %.20s %.200s", string(told.Code), told.Message)
	}
	return nil
}

func binanceFlexible(row json.RawMessage, out *poll.Readings) error {
	var p struct {
		ID      string                   `json:"productId"`
		Asset   string                   `json:"asset"`
		Rate    producers.Num            `json:"latestAnnualPercentageRate"`
		Tiers   map[string]producers.Num `json:"tierAnnualPercentageRate"`
		Open    bool                     `json:"canPurchase"`
		SoldOut bool                     `json:"isSoldOut"`
		Least   producers.Num            `json:"minPurchaseAmount"`
	}
	var f answer.Fields
	if !f.Parse(row, &p) {
		return f.Err
	}
	if !p.Open || p.SoldOut {
		return nil
	}
	rate := &eventsv1.Rate{
		Project: "binance", Pool: p.ID, Symbol: p.Asset, Category: schemas.RateLending,
		// What is earned is added to the holding each day and earns from then on.
		Raw: string(p.Rate), RawUnit: "apr_fraction", Compounding: "daily", Term: "flexible", Payout: "daily", MinAmount: string(p.Least),
	}
	for _, span := range slices.Sorted(maps.Keys(p.Tiers)) { // "0-5BTC"
		from, to, _ := strings.Cut(strings.TrimSuffix(span, p.Asset), "-")
		rate.Tiers = append(rate.Tiers, &eventsv1.RateTier{From: from, To: to, Raw: string(p.Tiers[span])})
	}
	out.Rate(rate)
	return nil
}

func binanceLocked(row json.RawMessage, out *poll.Readings) error {
	var p struct {
		ID     string `json:"projectId"`
		Detail struct {
			Asset   string        `json:"asset"`
			Days    producers.Num `json:"duration"`
			SoldOut bool          `json:"isSoldOut"`
			Rate    producers.Num `json:"apr"`
			Boost   producers.Num `json:"boostApr"`
		} `json:"detail"`
		Quota struct {
			Most  producers.Num `json:"totalPersonalQuota"`
			Least producers.Num `json:"minimum"`
		} `json:"quota"`
	}
	var f answer.Fields
	if !f.Parse(row, &p) {
		return f.Err
	}
	days := f.Count("duration", p.Detail.Days)
	if f.Err == nil && !p.Detail.SoldOut {
		out.Rate(&eventsv1.Rate{
			Project: "binance", Pool: p.ID, Symbol: p.Detail.Asset, Category: schemas.RateLending,
			Raw: string(p.Detail.Rate), RawUnit: "apr_fraction", Compounding: "none", // paid out beside what is locked
			Term: strconv.FormatUint(uint64(days), 10) + "d", LockupDays: new(float64(days)), Payout: "daily",
			MinAmount: string(p.Quota.Least), MaxAmount: string(p.Quota.Most), Promo: p.Detail.Boost != "",
		})
	}
	return f.Err
}
