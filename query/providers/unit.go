// Package providers answers who reports what this service knows: every venue and source with its terms, what has to be
// shown with its values, and how reading it goes.
package providers

import (
	"context"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
)

// History is what the health of sources is read from.
type History interface {
	// SourceHealth returns how requests to each polled source went that had ended by an instant, by source.
	SourceHealth(ctx context.Context, at time.Time) ([]views.SourceHealth, error)
}

// Served is where it is read what was served at past instants.
type Served struct {
	Sources *views.PastCurrencies
	Yields  *views.PastYields
	Prices  views.PublishedPrices
}

const (
	// healthFor is how long the health of sources is reused: none is read more often than each minute.
	healthFor = 15 * time.Second
	// healthHeld is how many stretches of it are held in memory.
	healthHeld = 8
	// patience bounds one reading of history, which all who ask at that time wait for.
	patience = 10 * time.Second
)

// Unit answers the endpoint of providers.
type Unit struct {
	priceCache *views.PriceCache
	catalog    *views.Catalog
	yieldStore *views.YieldStore
	history    History
	served     Served
	venues     []views.Provider
	// health is by source, by the instant that it is as of, Unix nanoseconds.
	health *otter.Cache[int64, map[string]views.SourceHealth]
}

// New makes the unit. Venues are the sources of prices, with the countries that they serve.
func New(priceCache *views.PriceCache, catalog *views.Catalog, yieldStore *views.YieldStore, history History, served Served, venues []views.Provider) *Unit {
	return &Unit{priceCache: priceCache, catalog: catalog, yieldStore: yieldStore, history: history, served: served, venues: venues,
		health: otter.Must(&otter.Options[int64, map[string]views.SourceHealth]{
			MaximumSize: healthHeld, ExpiryCalculator: otter.ExpiryWriting[int64, map[string]views.SourceHealth](2 * healthFor),
		})}
}

// Endpoints declares what the unit answers.
func (u *Unit) Endpoints() []query.Endpoint { return []query.Endpoint{u.list()} }

// healthAt is how requests went that had ended a minute before the last full stretch of healthFor: by then the tables have them, so that it is the same whenever
// it is read.
func (u *Unit) healthAt(ctx context.Context, now time.Time) (map[string]views.SourceHealth, error) {
	until := now.Truncate(healthFor).Add(-query.RecordedFor)
	// What is read for all who wait must not end with the first of them.
	return u.health.Get(context.WithoutCancel(ctx), until.UnixNano(), otter.LoaderFunc[int64, map[string]views.SourceHealth](
		func(ctx context.Context, _ int64) (map[string]views.SourceHealth, error) {
			ctx, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			all, err := u.history.SourceHealth(ctx, until)
			bySource := make(map[string]views.SourceHealth, len(all))
			for _, h := range all {
				bySource[h.Source] = h
			}
			return bySource, err
		}))
}
