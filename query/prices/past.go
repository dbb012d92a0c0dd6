package prices

import (
	"context"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
)

var asOfParam = query.AsOfParam("Point in time. The answer that was given then, with ages as they were. A server that was not running then goes by when prices were written. " +
	"Names of coins and countries of providers are those of now. Default: now.")

var summaryAsOfParam = query.AsOfParam("Point in time. The prices that our venues had and that were served then, with ages as they were. Default: now.")

// served are the prices of an instant: the current prices, or those of the past that were asked for.
type served struct {
	*Unit
	snapshot *views.Snapshot
	at       time.Time
	past     bool
	// entries are those of the past, by coin id, and rates those of currencies, if one was asked for.
	entries map[string]*views.Entry
	rates   []schemas.FiatRate
}

// of are the prices of the instant that a request asks for; those of the past must be read.
func (u *Unit) of(r *query.Request, snapshot *views.Snapshot) served {
	s := served{Unit: u, snapshot: snapshot, at: r.Now}
	if asOf, past := r.Time("asOf"); past {
		s.at, s.past = asOf, true
	}
	return s
}

// read reads past prices of coins, and what they are converted to.
func (s *served) read(ctx context.Context, vs string, coins []schemas.Coin) error {
	var unrated, unpriced error
	switch quote, isCoin := s.convert.Coin(vs); {
	case isCoin:
		coins = append(coins, quote)
	case vs != usd:
		s.rates, unrated = s.convert.RatesAsOf(ctx, s.at)
	}
	s.entries, unpriced = s.priceCache.AsOf(ctx, s.history, coins, s.at)
	return query.FaultOfPast(views.FaultOfParts(unrated, unpriced), s.at)
}

// entryAsOf is the price of a coin that was served at an instant; nil for none.
func (u *Unit) entryAsOf(ctx context.Context, coin schemas.Coin, asOf time.Time) (*views.Entry, error) {
	entries, err := u.priceCache.AsOf(ctx, u.history, []schemas.Coin{coin}, asOf)
	if err != nil {
		return nil, query.FaultOfPast(err, asOf)
	}
	return entries[coin.ID], nil
}

// spot is the price of a coin; false where nobody reports one or, of the past, where it is not kept as it was served.
func (s *served) spot(coin *views.CatalogCoin) (views.Spot, bool) {
	if s.past {
		return s.priceCache.SpotOf(s.entries[coin.ID], s.at)
	}
	return s.priceCache.Spot(s.snapshot, coin, s.at)
}

// conversion is that from USD into another currency; false where no rate is known.
func (s *served) conversion(vs string) (views.Conversion, bool) {
	switch quote, isCoin := s.convert.Coin(vs); {
	case s.past && isCoin:
		return s.convert.ByPrice(vs, s.entries[quote.ID], s.at)
	case s.past && vs != usd:
		return s.convert.ByRate(vs, s.rates)
	}
	return s.convert.To(vs, s.at)
}
