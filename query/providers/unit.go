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
	// SourceHealth returns how requests to each polled source went, by source.
	SourceHealth(ctx context.Context) ([]views.SourceHealth, error)
}

const (
	// healthFor is how long the health of sources is reused: none is read more often than each minute.
	healthFor = 15 * time.Second
	// patience bounds one reading of history, which all who ask at that time wait for.
	patience = 10 * time.Second
)

// Unit answers the endpoint of providers.
type Unit struct {
	priceCache *views.PriceCache
	catalog    *views.Catalog
	yieldStore *views.YieldStore
	history    History
	venues     []views.Provider
	// health is by source, of a stretch of healthFor.
	health *otter.Cache[int64, map[string]views.SourceHealth]
}

// New makes the unit. Venues are the sources of prices, with the countries that they serve.
func New(priceCache *views.PriceCache, catalog *views.Catalog, yieldStore *views.YieldStore, history History, venues []views.Provider) *Unit {
	return &Unit{priceCache: priceCache, catalog: catalog, yieldStore: yieldStore, history: history, venues: venues,
		health: otter.Must(&otter.Options[int64, map[string]views.SourceHealth]{
			MaximumSize: 2, ExpiryCalculator: otter.ExpiryWriting[int64, map[string]views.SourceHealth](2 * healthFor),
		})}
}

// Endpoints declares what the unit answers.
func (u *Unit) Endpoints() []query.Endpoint { return []query.Endpoint{u.list()} }

// healthAt is how requests went, as of a moment that is at most healthFor before now.
func (u *Unit) healthAt(ctx context.Context, now time.Time) (map[string]views.SourceHealth, error) {
	// What is read for all who wait must not end with the first of them.
	return u.health.Get(context.WithoutCancel(ctx), now.UnixNano()/int64(healthFor), otter.LoaderFunc[int64, map[string]views.SourceHealth](
		func(ctx context.Context, _ int64) (map[string]views.SourceHealth, error) {
			ctx, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			all, err := u.history.SourceHealth(ctx)
			bySource := make(map[string]views.SourceHealth, len(all))
			for _, h := range all {
				bySource[h.Source] = h
			}
			return bySource, err
		}))
}
