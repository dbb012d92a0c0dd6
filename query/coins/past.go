package coins

import (
	"context"
	"log/slog"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
)

const (
	// pastEvery is how often history is read again: what a back-fill adds is seen by then. It looks through all minutes
	// of all coins, so that it waits at least pastShare times as long as the last reading took.
	pastEvery = 20 * time.Second
	pastShare = 100
	// pastPatience bounds one reading of it.
	pastPatience = 30 * time.Second
)

// past is what history last reported. It never changes.
type past struct {
	firstPriced map[string]time.Time
}

// Run reads history from time to time until the context ends. What cannot be read is read again; until then
// answers report what was known before.
func (u *Unit) Run(ctx context.Context, log *slog.Logger) error {
	const failure = "loading the recent history of coins failed, continuing without it"
	return views.KeepRead(ctx, log, failure, func(ctx context.Context) (time.Duration, error) {
		if u.priceCache.Now() == 0 {
			return time.Second, nil
		}
		began := time.Now()
		err := u.Refresh(ctx)
		u.warnOfReserved(log)
		return max(pastEvery, pastShare*time.Since(began)), err
	})
}

// Refresh reads history once.
func (u *Unit) Refresh(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, pastPatience)
	defer cancel()
	next := &past{}
	var err error
	if next.firstPriced, err = u.history.FirstPriced(ctx); err != nil {
		return err
	}
	u.past.Store(next)
	return u.candles.PrepareCloses(ctx)
}

// firstPricedAge is how old a first price is at least, beside its minute, that counts as of a past instant: by then it was published, and most answers
// had it. When each process read it is not recorded.
const firstPricedAge = time.Minute

// firstPricedBy is when coins were first priced, as far as that had been published at an instant.
func (u *Unit) firstPricedBy(at time.Time) (map[string]time.Time, error) {
	known := u.past.Load().firstPriced
	if known == nil {
		return nil, query.Starting("it was not read yet when coins were first priced")
	}
	by := map[string]time.Time{}
	for id, first := range known {
		if !first.Add(time.Minute + firstPricedAge).After(at) {
			by[id] = first
		}
	}
	return by, nil
}

// warnOfReserved names the coins whose own path means something else, each once; by-id still reaches them.
func (u *Unit) warnOfReserved(log *slog.Logger) {
	for _, segment := range u.reserved() {
		if u.catalog.Snapshot().ByID(segment) != nil && !u.warned[segment] {
			u.warned[segment] = true
			log.Warn("coin id equals a fixed path: the path returns a list", "coin", segment, "path", "/api/v1/coins/"+segment, "instead", "/api/v1/coins/by-id/"+segment)
		}
	}
}
