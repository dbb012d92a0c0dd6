package yields

import (
	"encoding/json"
	"fmt"
	"net/url"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/answer"
	"github.com/marketlog/marketlog/producers/poll"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// okxEarn reads what lenders earn in OKX's Simple Earn Flexible and what those pay who borrow from it: yearly rates as
// fractions, settled each hour. Both endpoints are described on https://www.okx.com/docs-v5/en/ under "Financial product,
// Simple earn flexible": the summary holds borrowing rates alone, the history has had the lending rate beside the borrowing
// rate since 2026-02-27, and without a currency in the request it returns all currencies of one hour. It holds what was since 2021-12-14,
// a hundred hours in an answer, those that lie before "after".
func okxEarn() poll.Source {
	return poll.Source{
		Slug: "okx-earn", Name: "OKX Simple Earn", Version: 1, Aliases: []string{"okx-simple-earn"},
		URL:         "https://www.okx.com",
		License:     "under OKX's API agreement",
		Terms:       "https://www.okx.com/help/okx-api-agreement",
		Attribution: "Source: OKX",
		Kinds:       []string{poll.KindRate},
		Feeds: []poll.Feed{
			{Name: "lent",
				Evidence: producers.Documented("https://www.okx.com/docs-v5/en/#financial-product-simple-earn-flexible-get-public-borrow-history-public").And(
					okxClients("History")...).But("lendingRate, which came on 2026-02-27: these two do not have it; " +
					"clients that were found by its name take it for what lenders receive, as a fraction a year"),
				Interval: 15 * time.Minute, Requests: poll.Fixed(okxHistory + "?limit=1")},
			{Name: "borrowed",
				Evidence: producers.Documented("https://www.okx.com/docs-v5/en/#financial-product-simple-earn-flexible-get-public-borrow-info-public").And(
					okxClients("Summary")...),
				Interval: 15 * time.Minute, Requests: poll.Fixed("/api/v5/finance/savings/lending-rate-summary")},
		},
		Past: &poll.Past{
			Evidence: producers.Documented(
				"https://www.okx.com/docs-v5/en/#financial-product-simple-earn-flexible-get-public-borrow-history-public").And(
				okxClients("History")...),
			Listing: []string{okxHistory + "?limit=1"}, Series: byRank, Interval: time.Hour,
			Path: func(s poll.Series, _, to time.Time) string {
				return fmt.Sprintf("%s?ccy=%s&limit=%d&after=%d", okxHistory, url.QueryEscape(s.ID), okxHours, to.UnixMilli())
			},
			Rows: okxHours, Since: time.Date(2021, 12, 14, 0, 0, 0, 0, time.UTC), Settle: 5 * time.Minute,
		},
		Moves:    time.Hour, // settled each hour
		Requests: 6, Per: time.Second,
		MaxBody: 8 << 20,
		Decode:  decodeOKXEarn,
	}
}

// okxClients have the rows in their types; of the second, model is the end of the name.
func okxClients(model string) []string {
	return []string{
		github("thrasher-corp/gocryptotrader", "master", "exchanges/okx/okx_types.go"),
		github("burakoner/OKX.Api", "HEAD",
			"OKX.Api/Financial/FlexibleSimpleEarn/Responses/OkxFinancialFlexibleSimpleEarnSavingsBorrow"+model+".cs"),
	}
}

const (
	okxHistory = "/api/v5/finance/savings/lending-rate-history"
	// okxHours are the most that an answer has.
	okxHours = 100
)

func decodeOKXEarn(path string, body []byte, out *poll.Readings) error {
	var response struct {
		Code    producers.Num     `json:"code"`
		Message string            `json:"msg"`
		Data    []json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(body, &response); err != nil {
		return producers.Unreadable("parsing: %w", err)
	}
	if response.Code != "0" {
		return producers.Unreadable("it says %.20s %.200s", string(response.Code), response.Message)
	}
	switch {
	case len(response.Data) == 0 && okxOne(path):
		return nil // nothing is older
	case answer.SomeRow(response.Data, "ccy", "ts"):
		return decodeOKXHistory(path, response.Data, out)
	case answer.SomeRow(response.Data, "ccy", "preRate"):
		answer.EachRow(response.Data, out, okxBorrowed)
		return nil
	}
	return producers.Unreadable("no rates in it")
}

// okxOne reports whether one currency was asked for, which is how the past is read.
func okxOne(path string) bool {
	u, err := url.Parse(path)
	return err == nil && u.Query().Get("ccy") != ""
}

// okxHour is what lenders earned and borrowers paid in an hour.
type okxHour struct {
	Currency string        `json:"ccy"`
	Borrowed producers.Num `json:"rate"`
	Lent     producers.Num `json:"lendingRate"`
	Time     producers.Num `json:"ts"`
}

// decodeOKXHistory emits the newest hour of each currency as the rate of lenders that holds, and all other hours, or all of
// them where one currency was asked for, as the past of lenders and borrowers.
func decodeOKXHistory(path string, rows []json.RawMessage, out *poll.Readings) error {
	newest, lent := map[string]int64{}, false
	for _, row := range rows {
		var h okxHour
		if json.Unmarshal(row, &h) == nil {
			newest[h.Currency] = max(newest[h.Currency], producers.Unix(h.Time, time.Millisecond))
			lent = lent || h.Lent != ""
		}
	}
	one := okxOne(path) || path == "" && len(newest) == 1 && len(rows) > 1
	if !lent && !one {
		return producers.Unreadable("no lendingRate in it")
	}
	answer.EachRow(rows, out, func(row json.RawMessage, out *poll.Readings) error {
		var f answer.Fields
		var h okxHour
		if !f.Parse(row, &h) {
			return f.Err
		}
		at := producers.Unix(h.Time, time.Millisecond)
		if at <= 0 {
			return producers.Unreadable("ts: %.40q is no time", string(h.Time))
		}
		past := one || at < newest[h.Currency]
		out.Rate(&eventsv1.Rate{
			Project: "okx", Pool: h.Currency, Symbol: h.Currency, Category: schemas.RateLending, Raw: string(h.Lent), RawUnit: "apr_fraction",
			// The interest of an hour comes in the next one; that it is lent again by itself is not documented.
			Compounding: "none", Term: "flexible", Payout: "hourly", Past: past, EventTime: at,
		})
		if past {
			rate := okxBorrowing(h.Currency, h.Borrowed)
			rate.Past, rate.EventTime = true, at
			out.Rate(rate)
		}
		return nil
	})
	return nil
}

// okxBorrowed emits the rate of the last hour, which is also what the history will have of it; the other two are the mean of a
// day and an estimate of the next hour.
func okxBorrowed(row json.RawMessage, out *poll.Readings) error {
	var summary struct {
		Currency string        `json:"ccy"`
		Last     producers.Num `json:"preRate"`
	}
	var f answer.Fields
	if f.Parse(row, &summary) {
		out.Rate(okxBorrowing(summary.Currency, summary.Last))
	}
	return f.Err
}

// okxBorrowing is what borrowers pay: the interest of each hour is added to what they owe.
func okxBorrowing(currency string, raw producers.Num) *eventsv1.Rate {
	return &eventsv1.Rate{
		Project: "okx", Pool: currency, Symbol: currency, Category: schemas.RateBorrowing, Raw: string(raw), RawUnit: "apr_fraction",
		Compounding: "hourly", Term: "flexible", Payout: "hourly",
	}
}
