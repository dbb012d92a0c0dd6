package reference

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/answer"
	"github.com/marketlog/marketlog/producers/poll"
	"github.com/marketlog/marketlog/schemas"
)

// coinbasefiat reads what a dollar costs at Coinbase now, as described on
// https://docs.cdp.coinbase.com/coinbase-app/track-apis/exchange-rates. Coins are in the same list as currencies and are
// left out: a code counts that our table of currencies has.
func coinbasefiat() poll.Source {
	return poll.Source{
		Slug: "coinbasefiat", Name: "Coinbase exchange rates", Version: 1, Aliases: []string{"coinbase-fiat"},
		URL:     "https://api.coinbase.com",
		License: "under Coinbase's terms of market data",
		Terms:   "https://www.coinbase.com/legal/market_data",
		Off:     "Coinbase's terms of market data ask for its consent before indexes or fixings are made of them",
		Kinds:   []string{poll.KindFiat},
		Feeds: []poll.Feed{{Name: "rates",
			Evidence: producers.Documented("https://docs.cdp.coinbase.com/coinbase-app/track-apis/exchange-rates").And(
				github("ccxt/ccxt", "master", "ts/src/coinbase.ts"),
				github("Ivy-Apps/ivy-wallet", "HEAD", "app/src/main/java/com/ivy/wallet/network/request/currency/CoinbaseRatesResponse.kt")),
			Interval: 15 * time.Minute, Requests: poll.Fixed("/v2/exchange-rates?currency=USD")}},
		Moves:    24 * time.Hour,       // paper money rests at weekends
		Requests: 10, Per: time.Minute, // 10,000 an hour are documented for requests with a key, none for those without
		MaxBody: 1 << 20,
		Decode:  decodeCoinbaseFiat,
	}
}

func decodeCoinbaseFiat(_ string, body []byte, out *poll.Readings) error {
	var response struct {
		Data struct {
			Currency string                   `json:"currency"`
			Rates    map[string]producers.Num `json:"rates"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &response); err != nil {
		return producers.Unreadable("parsing: %w", err)
	}
	if len(response.Data.Rates) == 0 {
		return producers.Unreadable("no rates in it; it says %.200s", answer.Keys(body)["errors"])
	}
	table := schemas.Coins()
	for _, code := range slices.Sorted(maps.Keys(response.Data.Rates)) {
		if fiat, ok := table.Fiat(code); ok && fiat.Code == code && code != response.Data.Currency {
			out.Fixing(poll.Fixing{Base: response.Data.Currency, Quote: code, Rate: string(response.Data.Rates[code]), Now: true})
		}
	}
	return nil
}
