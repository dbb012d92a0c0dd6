package stablecoins

import (
	"context"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
)

var asOfParam = query.AsOfParam("Point in time: the answer that was given then, with ages as they were. Default: now.")

// servedAt is the state, and the statistics, that were served at an instant. It fails as the pasts of views do.
func (u *Unit) servedAt(ctx context.Context, at time.Time) (s *state, kept views.PegsByCoin, err error) {
	if kept, err = u.statistics.At(ctx, at); err != nil {
		return nil, nil, err
	}
	snapshot, err := u.served.Sources.At(ctx, at)
	if err != nil {
		return nil, nil, err
	}
	rows, err := u.served.Rows.At(ctx, at)
	if err != nil {
		return nil, nil, err
	}
	var pegged []schemas.Coin
	for _, coin := range u.priceCache.Coins().All() {
		if coin.Peg != "" {
			pegged = append(pegged, coin)
		}
	}
	entries, err := u.priceCache.AsOf(ctx, u.served.Prices, pegged, at)
	if err != nil {
		return nil, nil, err
	}
	return &state{Unit: u, snapshot: snapshot, row: rows.Of, minute: rows.Time,
		entry: func(coin schemas.Coin) *views.Entry { return entries[coin.ID] }, rates: u.pastRates, at: at}, kept, nil
}
