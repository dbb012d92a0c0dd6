package yields

import (
	"cmp"
	"encoding/json"
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
//
// What tiers and the states of locked products mean is in the comments of the samples on the Chinese pages alone:
// https://developers.binance.com/docs/zh-CN/simple_earn/account/Get-Simple-Earn-Flexible-Product-List calls
// tierAnnualPercentageRate what is paid in addition, as https://www.binance.com/en/earn/simple-earn does of the bonus by tiers,
// and the page of locked ones distinguishes CREATED, a product that exists, from PURCHASING, one that is sold.
func binanceEarn() poll.Source {
	const (
		pages          = "https://developers.binance.com/docs/simple_earn/flexible-locked/account/"
		binanceNet     = "Binance.Net/Objects/Models/Spot/SimpleEarn/"
		binanceManager = "src/main/java/com/tecknobit/binancemanager/managers/signedmanagers/simpleearn/records/"
	)
	return poll.Source{
		Slug: "binance-earn", Name: "Binance Simple Earn", Version: 2,
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
				Evidence: producers.Documented(pages+"Get-Simple-Earn-Flexible-Product-List").And(
					github("JKorf/Binance.Net", "master", binanceNet+"BinanceSimpleEarnFlexibleProduct.cs"),
					github("N7ghtm4r3/BinanceManager", "main", binanceManager+"flexible/SimpleEarnFlexibleProductList.java"),
				).But("that a tier comes on top is in the comments of the Chinese page and in Binance's description of the product; " +
					"there are clients that take it for the whole rate"),
				Interval: time.Hour, Requests: poll.Fixed(binancePages("/sapi/v1/simple-earn/flexible/list")...)},
			{Name: "locked",
				Evidence: producers.Documented(pages+"Get-Simple-Earn-Locked-Product-List").And(
					github("JKorf/Binance.Net", "master", binanceNet+"BinanceSimpleEarnLockedProduct.cs"),
					github("N7ghtm4r3/BinanceManager", "main", binanceManager+"locked/LockedProductList.java"),
				),
				Interval: time.Hour, Requests: poll.Fixed(binancePages("/sapi/v1/simple-earn/locked/list")...)},
		},
		Moves:    24 * time.Hour, // rates are of the moment, but no interval is documented
		Requests: 10, Per: time.Minute,
		MaxBody: 8 << 20,
		Decode:  decodeBinanceEarn,
	}
}

// binancePages are those of a list: about 400 coins have a flexible product. A page after the last one is empty.
func binancePages(path string) (pages []string) {
	for page := range 6 {
		pages = append(pages, path+"?size=100&current="+strconv.Itoa(page+1))
	}
	return pages
}

func decodeBinanceEarn(path string, body []byte, out *poll.Readings) error {
	var response struct {
		Rows    []json.RawMessage `json:"rows"`
		Total   producers.Num     `json:"total"`
		Code    producers.Num     `json:"code"`
		Message string            `json:"msg"`
	}
	if err := json.Unmarshal(body, &response); err != nil {
		return producers.Unreadable("parsing: %w", err)
	}
	switch {
	case answer.SomeRow(response.Rows, "productId", "asset"):
		answer.EachRow(response.Rows, out, binanceFlexible)
	case answer.SomeRow(response.Rows, "projectId", "detail"):
		answer.EachRow(response.Rows, out, binanceLocked)
	case len(response.Rows) > 0 || response.Total == "" || response.Total == "0" || strings.HasSuffix(path, "current=1"):
		return producers.Unreadable("no products in it; it says %.20s %.200s", string(response.Code), response.Message)
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
	out.Rate(&eventsv1.Rate{
		Project: "binance", Pool: p.ID, Symbol: p.Asset, Category: schemas.RateLending,
		// What is earned is added to the holding within the day and earns from then on; what tiers add is paid out beside it.
		Raw: string(p.Rate), RawUnit: "apr_fraction", Compounding: "daily", Term: "flexible", Payout: "daily", MinAmount: string(p.Least),
		Tiers: binanceTiers(p.Asset, p.Rate, p.Tiers),
	})
	return nil
}

// binanceTiers are the rates by amount, the least amount first: bonuses are what comes on top of the base by its span ("0-5BTC").
// What lies beyond the last span earns the base alone.
func binanceTiers(asset string, base producers.Num, bonuses map[string]producers.Num) (tiers []*eventsv1.RateTier) {
	for span, bonus := range bonuses {
		from, to, _ := strings.Cut(strings.TrimSuffix(span, asset), "-")
		// A bonus that is not a number stays, and refuses its row.
		tiers = append(tiers, &eventsv1.RateTier{From: from, To: to, Raw: cmp.Or(sum(base, bonus), string(bonus))})
	}
	slices.SortFunc(tiers, func(a, b *eventsv1.RateTier) int {
		x, _ := exact(producers.Num(a.From))
		y, _ := exact(producers.Num(b.From))
		return cmp.Or(x.Cmp(y), strings.Compare(a.From, b.From), strings.Compare(a.To, b.To))
	})
	if len(tiers) > 0 && tiers[len(tiers)-1].To != "" {
		tiers = append(tiers, &eventsv1.RateTier{From: tiers[len(tiers)-1].To, Raw: string(base)})
	}
	return tiers
}

// binanceNotYet are the states of a product that is made or shown, and not sold yet.
var binanceNotYet = map[string]bool{"CREATED": true, "PREHEATING": true}

func binanceLocked(row json.RawMessage, out *poll.Readings) error {
	var p struct {
		ID     string `json:"projectId"`
		Detail struct {
			Asset   string        `json:"asset"`
			Days    producers.Num `json:"duration"`
			Status  string        `json:"status"`
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
	if f.Err == nil && !p.Detail.SoldOut && !binanceNotYet[p.Detail.Status] {
		out.Rate(&eventsv1.Rate{
			Project: "binance", Pool: p.ID, Symbol: p.Detail.Asset, Category: schemas.RateLending,
			Raw: string(p.Detail.Rate), RawUnit: "apr_fraction", Compounding: "none", // paid out beside what is locked
			Term: strconv.FormatUint(uint64(days), 10) + "d", LockupDays: new(float64(days)), Payout: "daily",
			MinAmount: string(p.Quota.Least), MaxAmount: string(p.Quota.Most), Promo: p.Detail.Boost != "",
		})
	}
	return f.Err
}
