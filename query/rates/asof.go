package rates

import (
	"context"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
)

// Served is where it is read what was served at past instants.
type Served struct {
	Yields *views.PastYields
	Rows   *views.PastRows
	Prices views.PublishedPrices
}

const asOfDoc = "Point in time. The answer that was given then, with its age as it was. Names and symbols of coins and exchanges are those of now"

var asOfParam = query.AsOfParam(asOfDoc + ". Default: now.")

func (u *Unit) getBySymbolAsOf(ctx context.Context, r *query.Request, asOf time.Time) (query.Answer, error) {
	current, unstated := u.served.Yields.At(ctx, asOf)
	if unstated != nil {
		current = &views.CurrentRates{RateSnapshot: &views.RateSnapshot{}} // whether the price is kept is asked without them
	}
	ix := u.indexOf(current, u.catalog.Snapshot().Coins)
	f, err := u.narrowed(ix, r)
	if err != nil && unstated == nil {
		return query.Answer{}, err
	}
	var entries map[string]*views.Entry
	var unpriced error
	if err == nil && f.prices() {
		entries, unpriced = u.priceCache.AsOf(ctx, u.served.Prices, []schemas.Coin{f.coin.own}, asOf)
	}
	if err := views.FaultOfParts(unstated, unpriced); err != nil {
		return query.Answer{}, query.FaultOfPast(err, asOf)
	}
	v := coinVersion{index: ix, age: ix.age(asOf)}
	if f.prices() {
		v.price = u.freshOf(entries[f.coin.id], asOf)
	}
	body, simulated := u.ratesOf(&f, v, r)
	answer, err := query.Encode(body)
	answer.Simulated = simulated
	return answer, err
}

// moment is when a history is asked for, and what there was of yields then.
type moment struct {
	at    time.Time
	past  bool // at is in the past
	index *index
	// tables are what series were read from then.
	tables views.ServedSeries
}

// moment is that of a request.
func (u *Unit) moment(ctx context.Context, r *query.Request) (m moment, err error) {
	if m.at, m.past = r.Time("asOf"); !m.past {
		m.at = r.Now
		if m.index, err = u.index(r.Now); err == nil {
			m.tables, err = u.charts.Tables(ctx, r.Now)
		}
		return m, err
	}
	current, tables, err := u.charts.ServedAt(ctx, m.at)
	if err != nil {
		return m, query.FaultOfPast(err, m.at)
	}
	m.index, m.tables = u.indexOf(current, u.catalog.Snapshot().Coins), tables
	return m, nil
}

// listAsOf answers for several coins as of an instant, with what encode makes of the rates that counted then, and of the prices where the category may have them.
func (u *Unit) listAsOf(ctx context.Context, r *query.Request, asOf time.Time, encode func(*index, *filter, query.Age, *shownPrices) (query.Answer, error)) (query.Answer, error) {
	current, unstated := u.served.Yields.At(ctx, asOf)
	ranked, unranked := u.served.Rows.Order(ctx, u.catalog.Snapshot(), asOf)
	if unstated != nil {
		current = &views.CurrentRates{RateSnapshot: &views.RateSnapshot{}} // whether prices are kept is asked without them
	}
	ix := u.indexOf(current, ranked)
	f, err := u.narrowed(ix, r)
	if err != nil && unstated == nil && unranked == nil {
		return query.Answer{}, err
	}
	var prices *shownPrices
	var unpriced error
	if err == nil && f.prices() {
		prices, unpriced = u.pricesAsOf(ctx, f.coin, asOf)
	}
	if err := views.FaultOfParts(unstated, unranked, unpriced); err != nil {
		return query.Answer{}, query.FaultOfPast(err, asOf)
	}
	return encode(ix, &f, ix.age(asOf), prices)
}
