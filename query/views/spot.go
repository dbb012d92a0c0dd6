package views

import (
	"cmp"
	"time"

	"github.com/marketlog/marketlog/schemas"
)

// Spot is the current price of a coin, in USD.
type Spot struct {
	Price float64
	// Time is when it was made, or reported by a source's clock; Unix nanoseconds.
	Time int64
	// Source is schemas.PriceSourceMedian for the median over venues, else the slug of the reference source that reports it.
	Source string
	// Entry is what the median was made of; nil for a price that a source reports.
	Entry *Entry
	// Volume24h is in USD; nil where nobody reports it.
	Volume24h *float64
	Freshness
	Simulated bool
}

// Spot returns the price of a coin of a snapshot at a time of the query's clock, which all operations serve alike: the median over
// venues until it is schemas.OwnPriceFor old, then the newest there is, of venues or of a reference source. The coin's row states
// the same as of the minute. It is false where nobody reports a price. A source's price is stale from StatisticsStaleAfter on.
func (b *PriceCache) Spot(snapshot *Snapshot, coin *CatalogCoin, now time.Time) (Spot, bool) {
	e, row := b.Entry(coin.Own), coin.Market
	if e != nil && (row == nil || row.PriceSource == schemas.PriceSourceMedian || row.PriceTime <= e.Price.Time || now.UnixNano()-e.Price.Time <= int64(schemas.OwnPriceFor)) {
		return b.own(e, now), true
	}
	if row == nil {
		return Spot{}, false
	}
	at := cmp.Or(row.PriceTime, row.Time)
	age := now.Sub(time.Unix(0, at))
	return Spot{Price: row.Price, Time: at, Source: row.PriceSource, Volume24h: row.Volume24H,
		Freshness: Freshness{Stale: age.Abs() > StatisticsStaleAfter, Critical: age > CriticalAfter},
		Simulated: row.Simulated || snapshot.Notices[row.PriceSource].GetSimulated()}, true
}

// SpotOf is Spot as of a past instant, of the entry that was served then, nil for none. It is false where a reference source may have
// served the price: rows of coins are not kept as they were served.
func (b *PriceCache) SpotOf(e *Entry, asOf time.Time) (Spot, bool) {
	if e == nil || asOf.UnixNano()-e.Price.Time > int64(schemas.OwnPriceFor) {
		return Spot{}, false
	}
	return b.own(e, asOf), true
}

// own is the price that venues make, at a time of the query's clock.
func (b *PriceCache) own(e *Entry, now time.Time) Spot {
	return Spot{Price: e.Price.Price, Time: e.Price.Time, Source: schemas.PriceSourceMedian, Entry: e, Volume24h: &e.Price.Volume24H,
		Freshness: b.Freshness(e, now), Simulated: e.Price.Simulated}
}
