package views

import (
	"context"
	"log/slog"
	"time"

	"github.com/marketlog/marketlog/stream/retry"
)

// KeepRead calls read until the context ends, and waits after each call as long as it returns; it returns the context's error.
// Answers go on with what was read before: of failures in a row the first is logged, as failure.
func KeepRead(ctx context.Context, log *slog.Logger, failure string, read func(context.Context) (pause time.Duration, err error)) error {
	failing := false
	for {
		pause, err := read(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && !failing:
			log.Warn(failure, "error", err)
		}
		failing = err != nil
		if err := retry.Wait(ctx, pause); err != nil {
			return err
		}
	}
}
