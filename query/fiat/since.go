package fiat

import (
	"context"
	"log/slog"
	"time"

	"github.com/marketlog/marketlog/query/views"
)

// History is what the beginnings of currencies are read from.
type History interface {
	// CurrenciesSince returns when each currency was first published, by code.
	CurrenciesSince(ctx context.Context) (map[string]time.Time, error)
}

const (
	// sinceLook is how often the beginnings are read again: a currency that appears is rare.
	sinceLook = time.Hour
	// sinceRetry is how soon they are, where they could not be read or there were none yet.
	sinceRetry = 10 * time.Second
	// sincePatience bounds one reading.
	sincePatience = 10 * time.Second
)

// Run keeps in memory when each currency was first published, until the context ends. While that cannot be read, answers go
// without.
func (u *Unit) Run(ctx context.Context, log *slog.Logger) error {
	const failure = "loading the first dates of currencies failed, continuing without them"
	return views.KeepRead(ctx, log, failure, func(ctx context.Context) (time.Duration, error) {
		err := u.readSince(ctx)
		if since := u.since.Load(); err != nil || since == nil || len(*since) == 0 {
			return sinceRetry, err
		}
		return sinceLook, nil
	})
}

func (u *Unit) readSince(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, sincePatience)
	defer cancel()
	since, err := u.history.CurrenciesSince(ctx)
	if err != nil {
		return err
	}
	u.since.Store(&since)
	return nil
}
