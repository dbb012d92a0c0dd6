package providers

import (
	"context"
	"fmt"
	"time"

	"github.com/marketlog/marketlog/query/views"
)

// known is what the states of providers are made of at an instant.
type known struct {
	at      time.Time
	sources *views.Snapshot
	yields  *views.RateSnapshot
	// prices hands over all prices; newest is up to when they are complete, Unix nanoseconds.
	prices func(visit func(*views.Entry))
	newest int64
	health map[string]views.SourceHealth
}

// time is up to when it is complete, Unix nanoseconds.
func (k *known) time() int64 { return max(k.sources.SourcesTime, k.newest, k.yields.Time) }

// now is what is known at a time of the query's clock.
func (u *Unit) now(ctx context.Context, now time.Time) (*known, error) {
	health, err := u.healthAt(ctx, now)
	if err != nil {
		return nil, err
	}
	return &known{at: now, sources: u.catalog.Snapshot(), yields: u.yieldStore.Snapshot(), prices: u.priceCache.Entries, newest: u.priceCache.Now(), health: health}, nil
}

// asOf is what was known at an instant; the newest time of prices is that of the newest of them. It fails with an *views.AgedOutError where any of it is not kept,
// and with views.ErrHistoryBehind where it is not kept yet.
func (u *Unit) asOf(ctx context.Context, at time.Time) (*known, error) {
	sources, unstated := u.served.Sources.At(ctx, at)
	yields, unrated := u.served.Yields.At(ctx, at)
	entries, unpriced := u.priceCache.AsOf(ctx, u.served.Prices, u.priceCache.Coins().All(), at)
	if err := views.FaultOfParts(unstated, unrated, unpriced); err != nil {
		return nil, fmt.Errorf("reading providers as of %s: %w", at.UTC().Format(time.RFC3339Nano), err)
	}
	health, err := u.healthAt(ctx, at)
	if err != nil {
		return nil, err
	}
	k := &known{at: at, sources: sources, yields: yields.RateSnapshot, health: health, prices: func(visit func(*views.Entry)) {
		for _, e := range entries {
			visit(e)
		}
	}}
	for _, e := range entries {
		k.newest = max(k.newest, e.Latest.Time)
	}
	return k, nil
}
