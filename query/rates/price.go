package rates

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// freshPrice is the current price of a coin, nil where none is fresh.
func (u *Unit) freshPrice(coin *coinRates, now time.Time) *views.Entry {
	if coin.own.Rank == 0 {
		return nil
	}
	return u.freshOf(u.priceCache.Entry(coin.own), now)
}

// freshOf is a price where it is one, and fresh, else nil.
func (u *Unit) freshOf(e *views.Entry, now time.Time) *views.Entry {
	if e == nil || u.priceCache.Freshness(e, now).Stale {
		return nil
	}
	return e
}

// pricesOf are what exchanges send of a coin, as far as it counts in the price; of one exchange where it is named.
func (u *Unit) pricesOf(coin *coinRates, e *views.Entry, provider string) []Entry {
	var rows []Entry
	for _, in := range e.Latest.Inputs {
		if !in.Accepted || provider != "" && in.Provider != provider {
			continue
		}
		quote, quoteCoin := u.priceCache.Quote(in.QuoteId)
		rows = append(rows, Entry{
			ID: rateID(in.Provider, categoryPrice, in.Symbol), Provider: in.Provider, ProviderName: u.venues[in.Provider].Name, Symbol: coin.symbol, Category: categoryPrice, Rate: in.PriceUsd,
			CoinID: coin.id, ProviderSymbol: in.Symbol, UnitType: unitAbsolute, UnitSymbol: "USD", LastUpdated: query.FormatTime(received(in)),
			Metadata: &Metadata{Raw: strconv.FormatFloat(in.Value, 'g', -1, 64), RawUnit: quote, Quote: quote, QuoteCoinID: quoteCoin, Pair: coin.symbol + "/" + quote,
				Basis: in.Basis, RateUsed: in.Rate, ObservedAt: query.FormatTime(in.EventTime), Simulated: e.Latest.Simulated},
		})
	}
	slices.SortFunc(rows, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(b.Rate, a.Rate), strings.Compare(a.Provider, b.Provider), strings.Compare(a.ProviderSymbol, b.ProviderSymbol))
	})
	return rows
}

// received is when a market was last received.
func received(in *eventsv1.PriceInput) int64 { return max(in.LastHeard, in.QuoteHeard) }
