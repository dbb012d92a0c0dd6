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
	// PegStatistics returns how each of them has kept it since.
	PegStatistics(ctx context.Context, since time.Time) ([]views.PegStatistic, error)
	// PegEpisodes returns when one had lost it in (from, to], oldest first.
	PegEpisodes(ctx context.Context, coinID string, from, to time.Time) ([]schemas.PegEpisode, error)
}

const (
	// statisticsFor is how long statistics of 30 days are reused.
	statisticsFor = time.Minute
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
	// statistics are by coin id, of a minute; pasts by coin, window and minute.
	statistics *otter.Cache[int64, map[string]views.PegStatistic]
	pasts      *otter.Cache[pastKey, *past]
}

// pastKey names the past of a peg up to a minute.
type pastKey struct {
	coinID string
	span   time.Duration
	minute int64
}

// past is what history holds of a peg.
type past struct {
	samples  []views.PegSample
	episodes []schemas.PegEpisode
}

// New makes the unit.
func New(priceCache *views.PriceCache, catalog *views.Catalog, history History) *Unit {
	return &Unit{priceCache: priceCache, catalog: catalog, rates: views.NewFiatRates(priceCache.Coins(), catalog), history: history,
		statistics: otter.Must(&otter.Options[int64, map[string]views.PegStatistic]{
			MaximumSize: 2, ExpiryCalculator: otter.ExpiryWriting[int64, map[string]views.PegStatistic](2 * statisticsFor),
		}),
		pasts: otter.Must(&otter.Options[pastKey, *past]{
			MaximumSize: cachedPasts, ExpiryCalculator: otter.ExpiryWriting[pastKey, *past](2 * time.Minute),
		}),
	}
}

// Endpoints declares what the unit answers.
func (u *Unit) Endpoints() []query.Endpoint { return []query.Endpoint{u.index(), u.stability()} }

// kept are the statistics of the 30 days before a time, at most a minute old.
func (u *Unit) kept(ctx context.Context, now time.Time) (map[string]views.PegStatistic, error) {
	slot := now.UnixNano() / int64(statisticsFor)
	// What is read for all who wait must not end with the first of them.
	return u.statistics.Get(context.WithoutCancel(ctx), slot, otter.LoaderFunc[int64, map[string]views.PegStatistic](
		func(ctx context.Context, _ int64) (map[string]views.PegStatistic, error) {
			ctx, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			all, err := u.history.PegStatistics(ctx, now.Add(-schemas.PegScoreSpan))
			byCoin := make(map[string]views.PegStatistic, len(all))
			for _, s := range all {
				byCoin[s.CoinID] = s
			}
			return byCoin, err
		}))
}

// past reads what history holds of a peg in a span before a time.
func (u *Unit) past(ctx context.Context, coinID string, span window, now time.Time) (*past, error) {
	to := now.Truncate(time.Minute)
	key := pastKey{coinID, span.span, to.Unix()}
	return u.pasts.Get(context.WithoutCancel(ctx), key, otter.LoaderFunc[pastKey, *past](func(ctx context.Context, _ pastKey) (*past, error) {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		p := &past{}
		var err error
		if p.samples, err = u.history.PegSeries(ctx, coinID, to.Add(-span.span), to, span.step); err != nil {
			return nil, err
		}
		p.episodes, err = u.history.PegEpisodes(ctx, coinID, to.Add(-span.span), to)
		return p, err
	}))
}
