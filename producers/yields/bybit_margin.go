package yields

import (
	"encoding/json"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/answer"
	"github.com/marketlog/marketlog/producers/poll"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// bybitMargin reads what borrowing costs in Bybit's unified accounts: fractions an hour, as described on
// https://bybit-exchange.github.io/docs/v5/spot-margin-uta/vip-margin. They differ by the level of the customer; asked for and
// read are those without a level, which everybody is offered.
func bybitMargin() poll.Source {
	return poll.Source{
		Slug: "bybit-margin", Name: "Bybit margin borrowing", Version: 1,
		URL:         "https://api.bybit.com",
		License:     "under Bybit's terms of service",
		Terms:       "https://www.bybit.com/en/terms-service/information/",
		Attribution: "Source: Bybit",
		Kinds:       []string{poll.KindRate},
		Feeds: []poll.Feed{{
			Name: "borrowed",
			Evidence: producers.Documented("https://bybit-exchange.github.io/docs/v5/spot-margin-uta/vip-margin").And(
				github("JKorf/Bybit.Net", "main", "ByBit.Net/Objects/Models/V5/BybitBorrowAsset.cs"),
				github("thrasher-corp/gocryptotrader", "master", "exchanges/bybit/bybit_types.go")),
			Interval: 15 * time.Minute, Requests: poll.Fixed("/v5/spot-margin-trade/data?vipLevel=No%20VIP"),
		}},
		Moves:    time.Hour,            // rates are those of an hour
		Requests: 60, Per: time.Minute, // 600 within 5 seconds are allowed to an address, over all that it asks for
		MaxBody: 8 << 20,
		Decode:  decodeBybitMargin,
	}
}

func decodeBybitMargin(_ string, body []byte, out *poll.Readings) error {
	levels, err := bybitRows(body, "vipCoinList")
	if err != nil {
		return err
	}
	for _, level := range levels {
		var response struct {
			Level string            `json:"vipLevel"`
			List  []json.RawMessage `json:"list"`
		}
		if json.Unmarshal(level, &response) != nil || response.Level != "No VIP" || !answer.SomeRow(response.List, "currency", "hourlyBorrowRate") {
			continue
		}
		answer.EachRow(response.List, out, bybitBorrowed)
		return nil
	}
	return producers.Unreadable("no rates without a level in it")
}

func bybitBorrowed(row json.RawMessage, out *poll.Readings) error {
	var currency struct {
		Currency   string        `json:"currency"`
		Borrowable bool          `json:"borrowable"`
		Rate       producers.Num `json:"hourlyBorrowRate"`
		Most       producers.Num `json:"maxBorrowingAmount"`
	}
	var f answer.Fields
	if !f.Parse(row, &currency) {
		return f.Err
	}
	if currency.Borrowable {
		out.Rate(&eventsv1.Rate{
			Project: "bybit", Pool: currency.Currency, Symbol: currency.Currency, Category: schemas.RateBorrowing,
			// The interest of each hour is added to what is owed.
			Raw: string(currency.Rate), RawUnit: "apr_fraction_hourly", Compounding: "hourly", Term: "flexible", Payout: "hourly",
			MaxAmount: string(currency.Most),
		})
	}
	return nil
}
