package symbols

import (
	"context"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
)

var asOfParam = query.AsOfParam("Point in time. Which coin it meant then. Default: now.")

// asked is what the symbols of a request are resolved by: what is known now, or what was served at an instant.
type asked struct {
	*schemas.Resolver
	snapshot *views.Snapshot
	at       time.Time
	past     bool
	// err is why the price of a coin at the instant could not be read.
	err error
}

// asks returns what a request is resolved by. A price in another currency than USD is refused with asOf: rates of the past are kept with the prices that they were
// used for.
func (u *Unit) asks(ctx context.Context, r *query.Request) (*asked, error) {
	at, past := r.Time(asOfParam.Name)
	if !past {
		resolver, now := u.resolver(r.Now)
		return &asked{Resolver: resolver, snapshot: now, at: r.Now}, nil
	}
	if err := pricedInUSD("context", u.question(r, "")); err != nil {
		return nil, err
	}
	snapshot, err := u.served.At(ctx, at)
	if err != nil {
		return nil, query.FaultOfPast(err, at)
	}
	return u.askedAt(ctx, snapshot, at), nil
}

// pricedInUSD refuses, as of an instant, a price in anything else.
func pricedInUSD(param string, q schemas.SymbolQuestion) error {
	if q.Price > 0 && q.Quote != "" && q.Quote != schemas.USD {
		return query.NotSupported(param, "with asOf a price must be in USD: leave the quote currency out")
	}
	return nil
}

// askedAt is what symbols are resolved by of the coins that were served at a past instant.
func (u *Unit) askedAt(ctx context.Context, coins *views.Snapshot, at time.Time) *asked {
	a := &asked{snapshot: coins, at: at, past: true}
	a.Resolver = &schemas.Resolver{Table: u.priceCache.Coins(), Overrides: u.overrides,
		Catalog: priced{schemas.NewSymbolIndex(indexed(coins.Coins)), coins, func(c *views.CatalogCoin) (views.Spot, bool) { return a.spot(ctx, u, c) }}}
	return a
}

// AskedAt is Asked as of a past instant, of the coins that were served then. Fault says, once something was resolved, why a price of then could not be read. It is
// for explanations.
func (u *Unit) AskedAt(ctx context.Context, q schemas.SymbolQuestion, coins *views.Snapshot, at time.Time) (req schemas.SymbolRequest, by *schemas.Resolver, fault func() error, err error) {
	if err := pricedInUSD("number", q); err != nil {
		return req, nil, nil, err
	}
	a := u.askedAt(ctx, coins, at)
	req, _, _ = u.request(a.Table, q, at)
	return req, a.Resolver, a.fault, nil
}

// spot is the price of a coin that was served at the instant; of one that venues had none of, the one of its row counts.
func (a *asked) spot(ctx context.Context, u *Unit, coin *views.CatalogCoin) (views.Spot, bool) {
	if a.err != nil {
		return views.Spot{}, false
	}
	var entries map[string]*views.Entry
	if entries, a.err = u.priceCache.AsOf(ctx, u.history, []schemas.Coin{coin.Own}, a.at); a.err != nil {
		return views.Spot{}, false
	}
	return u.priceCache.SpotOf(entries[coin.ID], a.at)
}

// fault is why the answer cannot be of the instant; nil where it is.
func (a *asked) fault() error { return query.FaultOfPast(a.err, a.at) }

// timestamp is the last clock that is in an answer: as of an instant that of the minute, or of the sources.
func (u *Unit) timestampOf(a *asked) string {
	if a.past {
		return query.FormatTime(max(a.snapshot.Time, a.snapshot.SourcesTime))
	}
	return u.timestamp(a.snapshot)
}

// MappingsAsOf are the mappings that held at an instant; it fails with a *views.AgedOutError before the oldest tick that is kept.
func (u *Unit) MappingsAsOf(ctx context.Context, at time.Time) ([]schemas.SymbolMapping, error) {
	oldest, err := u.history.OldestTick(ctx)
	if err != nil {
		return nil, err
	}
	if oldest.IsZero() || at.Before(oldest) {
		return nil, &views.AgedOutError{Kept: "ticks, which mappings of venues are read from, are kept", Since: oldest, Instead: "v_symbology has what venues listed: /api/v1/sql"}
	}
	return u.history.MappingsAsOf(ctx, at, maxKept)
}
