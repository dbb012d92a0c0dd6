// Package stablecoins answers how well stablecoins keep their pegs: now by the live price, lately by a score of which
// every part is reported, and over time by a series and the episodes in which a peg was lost.
package stablecoins

import (
	"context"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
)

const tag = "stablecoins"

// History is what the past of pegs is read from.
type History interface {
	// PegSeries returns how far a stablecoin of the coin table lay from its peg in (from, to], one sample a step, oldest first.
	PegSeries(ctx context.Context, coinID string, from, to time.Time, step time.Duration) ([]views.PegSample, error)
	views.PegHistory
	// PegSeriesAsOf is PegSeries when no more of the candles, and of the rates of the currency, counts than what is named.
	PegSeriesAsOf(ctx context.Context, coinID string, from, to time.Time, step time.Duration, of views.CandlesAsOf) ([]views.PegSample, error)
	// PegEpisodes returns when one had lost it in (from, to], oldest first, by rates of its currency that had been told before an offset of reference.raw.v1.
	PegEpisodes(ctx context.Context, coinID string, from, to time.Time, told int64) ([]schemas.PegEpisode, error)
}

const (
	// cachedPasts bounds the series in memory, of at most a few thousand points each.
	cachedPasts = 128
	// patience bounds one reading of history, which all who ask at that time wait for.
	patience = 10 * time.Second
)

// Unit answers the endpoints of stablecoins.
type Unit struct {
	priceCache *views.PriceCache
	catalog    *views.Catalog
	rates      *views.Rates
	history    History
	statistics *views.PegStatistics
	served     Served
	// pastRates are of the past, which must not take the place of what rates holds.
	pastRates *views.Rates
	// pasts are by coin, window and minute.
	pasts *otter.Cache[pastKey, *past]
}

// Served is where it is read what was served at past instants.
type Served struct {
	Sources *views.PastCurrencies
	Rows    *views.PastRows
	Prices  views.PublishedPrices
	// Candles are nil where series are made of all that the tables have.
	Candles *views.Candles
}

// pastKey names the past of a peg up to a minute, and the candles and rates of its currency that it is made of.
type pastKey struct {
	coinID                                     string
	span                                       time.Duration
	minute, closed, closedAll, folded, fixings int64
}

// past is what history holds of a peg.
type past struct {
	samples  []views.PegSample
	episodes []schemas.PegEpisode
}

// New makes the unit.
func New(priceCache *views.PriceCache, catalog *views.Catalog, history History, served Served) *Unit {
	return &Unit{priceCache: priceCache, catalog: catalog, rates: views.NewFiatRates(priceCache.Coins(), catalog), history: history,
		statistics: views.NewPegStatistics(history), served: served, pastRates: views.NewFiatRates(priceCache.Coins(), catalog),
		pasts: otter.Must(&otter.Options[pastKey, *past]{
			MaximumSize: cachedPasts, ExpiryCalculator: otter.ExpiryWriting[pastKey, *past](2 * time.Minute),
		}),
	}
}

// Endpoints declares what the unit answers.
func (u *Unit) Endpoints() []query.Endpoint { return []query.Endpoint{u.index(), u.stability()} }

// Statistics are those that stablecoins are scored by, for who keeps them read.
func (u *Unit) Statistics() *views.PegStatistics { return u.statistics }

// past reads what history holds of a peg in a span before a time: of all candles where made is nil.
func (u *Unit) past(ctx context.Context, coinID string, span window, now time.Time, made *views.CandlesAsOf) (*past, error) {
	to := now.Truncate(time.Minute)
	key := pastKey{coinID: coinID, span: span.span, minute: to.Unix()}
	if made != nil {
		key.closed, key.closedAll, key.folded, key.fixings = made.Closed.Unix(), made.ClosedAll.Unix(), made.Folded, made.Fixings
	}
	return u.pasts.Get(context.WithoutCancel(ctx), key, otter.LoaderFunc[pastKey, *past](func(ctx context.Context, _ pastKey) (*past, error) {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		p, from := &past{}, to.Add(-span.span)
		var err error
		if made == nil {
			p.samples, err = u.history.PegSeries(ctx, coinID, from, to, span.step)
		} else {
			p.samples, err = u.history.PegSeriesAsOf(ctx, coinID, from, to, span.step, *made)
		}
		if err != nil {
			return nil, err
		}
		closed, told := to, views.AllFixings
		if made != nil {
			told = made.Fixings
			if made.Closed.Before(closed) {
				closed = made.Closed
			}
		}
		if from.Before(closed) {
			p.episodes, err = u.history.PegEpisodes(ctx, coinID, from, closed, told)
		}
		return p, err
	}))
}
