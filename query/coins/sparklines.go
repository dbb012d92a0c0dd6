package coins

import (
	"context"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
)

// closesPatience is for how long an answer waits for closes of hours that nobody has read yet, before it goes on with those of before.
const closesPatience = 4 * time.Second

// lined is the index that a request asks for, with the closes that sparklines are made of: of now, or what those of its asOf were made of.
func (u *Unit) lined(ctx context.Context, r *query.Request) (ix *index, closes *views.HourCloses, of views.ClosesOf, err error) {
	at, past := r.Time("asOf")
	if !past {
		ix = u.index(r.Now) // before what may take a while
		waiting, cancel := context.WithTimeout(ctx, closesPatience)
		defer cancel()
		closes, _ = u.candles.Closes(waiting, r.Now) // Run reports what could not be read
		return ix, closes, of, nil
	}
	of, unmade := u.candles.ClosesServed(ctx, at)
	snapshot, err := u.served.Coins.At(ctx, at)
	if err = views.FaultOfParts(unmade, err); err != nil {
		return nil, nil, of, query.FaultOfPast(err, at)
	}
	return indexAsOf(snapshot, at), nil, of, nil
}

// closesAsOf are the closes of some coins of an index as they were served.
func (u *Unit) closesAsOf(ctx context.Context, ix *index, rows []int32, of views.ClosesOf, at time.Time) (*views.HourCloses, error) {
	ids := make([]string, len(rows))
	for n, i := range rows {
		ids[n] = ix.coins[i].ID
	}
	closes, err := u.candles.ClosesAsOf(ctx, of, ids, at)
	if err != nil {
		return nil, query.FaultOfPast(err, at)
	}
	return closes, nil
}

// sparkline is the price at the end of each hour of a week, the last one that of the row: an hour without a price repeats the one before, and what is before
// the first price is left out.
func sparkline(closes []float64, coin *views.CatalogCoin) []float64 {
	line := make([]float64, 0, len(closes)+1)
	last := 0.0
	for _, hour := range closes {
		if hour > 0 {
			last = hour
		}
		if last > 0 {
			line = append(line, last)
		}
	}
	if coin.Market != nil {
		line = append(line, coin.Market.Price)
	}
	return line
}
