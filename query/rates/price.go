package rates

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
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

// shownPrices are the prices of an answer for several coins.
type shownPrices struct {
	// fresh is the price of a coin, nil where none is fresh, and row the row of a summary.
	fresh func(*coinRates) *views.Entry
	row   func(*coinRates, *views.Entry) ([]byte, error)
	// newest is up to when they are complete, Unix nanoseconds.
	newest int64
}

// pricesNow are those of now; nil if none are wanted.
func (u *Unit) pricesNow(wanted bool, now time.Time) *shownPrices {
	if !wanted {
		return nil
	}
	return &shownPrices{newest: u.priceCache.Now(), fresh: func(coin *coinRates) *views.Entry { return u.freshPrice(coin, now) },
		row: func(coin *coinRates, e *views.Entry) ([]byte, error) {
			return u.summaries.Get(e, views.Freshness{}, views.OthersKey{}, func() ([]byte, error) { return u.encodePrice(coin, e) })
		}}
}

// pricesAsOf are those that were served at an instant, of a coin, or of all where it is nil. The newest is that of the newest of them.
func (u *Unit) pricesAsOf(ctx context.Context, coin *coinRates, asOf time.Time) (*shownPrices, error) {
	coins := u.priceCache.Coins().All()
	if coin != nil {
		coins = []schemas.Coin{coin.own}
	}
	entries, err := u.priceCache.AsOf(ctx, u.served.Prices, coins, asOf)
	if err != nil {
		return nil, err
	}
	shown := &shownPrices{row: u.encodePrice, fresh: func(coin *coinRates) *views.Entry { return u.freshOf(entries[coin.id], asOf) }}
	for _, e := range entries {
		shown.newest = max(shown.newest, e.Latest.Time)
	}
	return shown, nil
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
