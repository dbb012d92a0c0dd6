package stablecoins

import (
	"context"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
)

var asOfParam = query.AsOfParam("Point in time. The answer that was given then, with ages as they were. Default: now.")

// servedAt is the state, and the statistics, that were served at an instant. It fails as the pasts of views do.
func (u *Unit) servedAt(ctx context.Context, at time.Time) (*state, views.PegsByCoin, error) {
	kept, unscored := u.statistics.At(ctx, at)
	snapshot, unstated := u.served.Sources.At(ctx, at)
	rows, unlisted := u.served.Rows.At(ctx, at)
	var pegged []schemas.Coin
	for _, coin := range u.priceCache.Coins().All() {
		if coin.Peg != "" {
			pegged = append(pegged, coin)
		}
	}
	entries, unpriced := u.priceCache.AsOf(ctx, u.served.Prices, pegged, at)
	if err := views.FaultOfParts(unscored, unstated, unlisted, unpriced); err != nil {
		return nil, nil, err
	}
	return &state{Unit: u, snapshot: snapshot, row: rows.Of, minute: rows.Time,
		entry: func(coin schemas.Coin) *views.Entry { return entries[coin.ID] }, rates: u.pastRates, at: at, names: u.catalog.Snapshot()}, kept, nil
}

// madeAt is what the past of a stablecoin was made of at an instant.
func (u *Unit) madeAt(ctx context.Context, k *known, back window, at time.Time) (*views.CandlesAsOf, error) {
	coin, _ := u.priceCache.Coins().ByID(k.id)
	made, err := u.served.Candles.MadeAt(ctx, coin, at.Add(-back.span-back.step), at)
	return made, query.FaultOfPast(err, at)
}
