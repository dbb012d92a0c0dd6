package fiat

import (
	"context"
	"log/slog"
	"time"
)

// History is what the beginnings of currencies are read from.
type History interface {
	// CurrenciesSince returns when each currency was first told, by code.
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

// Run keeps in memory when each currency was first told, until the context ends. While that cannot be read, answers go
// without.
func (u *Unit) Run(ctx context.Context, log *slog.Logger) error {
	failing := false
	for {
		err := u.readSince(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && !failing:
			log.Warn("loading the first dates of currencies failed, continuing without them", "error", err)
		}
		failing = err != nil
		pause := sinceLook
		if since := u.since.Load(); failing || since == nil || len(*since) == 0 {
			pause = sinceRetry
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
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
