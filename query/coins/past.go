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
	// sparklineHours is a week.
	sparklineHours = 7 * 24
)

// past is what history last reported. It never changes.
type past struct {
	firstPriced map[string]time.Time
	// hours are the closes of the last week's closed hours but one, 0 where there is none, up to the hour that until begins.
	hours map[string][]float64
	until time.Time
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

// Refresh reads history once, up to the price cache's now.
func (u *Unit) Refresh(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, pastPatience)
	defer cancel()
	next := &past{}
	var err error
	if next.firstPriced, err = u.history.FirstPriced(ctx); err != nil {
		return err
	}
	if now := u.priceCache.Now(); now > 0 {
		to := time.Unix(0, now).UTC().Truncate(time.Hour)
		next.until = to
		if next.hours, err = u.history.HourlyCloses(ctx, to.Add(-(sparklineHours-1)*time.Hour), to); err != nil {
			return err
		}
	}
	u.past.Store(next)
	return nil
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

// sparkline is the price at the end of each hour of a week, the last one now's: an hour without a price repeats the
// one before, and what is before the first price is left out.
func (p *past) sparkline(coin *views.CatalogCoin) []float64 {
	line := make([]float64, 0, sparklineHours)
	last := 0.0
	for _, hour := range p.hours[coin.ID] {
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

// sparklineUntil is the beginning of the hour of the last number; before history was read, of which there is no other then, that of the row.
func (p *past) sparklineUntil(coin *views.CatalogCoin) time.Time {
	if p.until.IsZero() {
		return time.Unix(0, coin.Market.Time).UTC().Truncate(time.Hour)
	}
	return p.until
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
