package instance

import (
	"strings"
	"time"

	"github.com/marketlog/marketlog/producers/adapter"
	"github.com/marketlog/marketlog/producers/fetch"
	"github.com/marketlog/marketlog/schemas"
)

// subscribedRank is the last rank of the coin table whose markets are subscribed to by default. Stablecoins are subscribed to
// whatever their rank: without a price of their own they have no history of their peg, and those of currencies other than
// USD and EUR all rank below.
const subscribedRank = 300

// RequestBudget allows a venue's HTTP interface what the venue documents.
func RequestBudget(l adapter.Limits) fetch.Config {
	if l.Requests < 1 {
		return fetch.DefaultConfig(1, time.Duration(float64(time.Second)/l.Requests))
	}
	return fetch.DefaultConfig(int(l.Requests), time.Second)
}

// SelectMarkets picks the configured symbols, else the markets of well-known coins whose quote can
// be converted to USD, and those of quote assets themselves.
func SelectMarkets(venue string, symbols []string) func(adapter.Instrument) bool {
	wanted := map[string]bool{}
	for _, s := range symbols {
		wanted[strings.ToUpper(s)] = true
	}
	coins := schemas.Coins()
	return func(in adapter.Instrument) bool {
		if len(wanted) > 0 {
			return wanted[strings.ToUpper(in.Symbol)]
		}
		quote, ok := coins.ResolveQuote(venue, in.Quote)
		if !ok || !schemas.Convertible(coins, quote) {
			return false
		}
		if base, ok := coins.ResolveQuote(venue, in.Base); ok && base.Fiat {
			return quote.ID == schemas.USD
		}
		coin, _, ok := coins.Resolve(venue, in.Base)
		return ok && (coin.Rank <= subscribedRank || coin.Peg != "")
	}
}
