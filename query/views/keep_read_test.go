package views

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// What cannot be read is read again when that is due, and logged once until it was read.
func TestFailuresInARowAreLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var log bytes.Buffer
		began, calls := time.Now(), 0
		fails := []bool{false, true, true, false, true}
		err := KeepRead(ctx, slog.New(slog.NewTextHandler(&log, nil)), "reading failed", func(context.Context) (time.Duration, error) {
			if calls == len(fails) {
				cancel()
				return 0, ctx.Err()
			}
			if at := time.Duration(calls) * time.Minute; time.Since(began) != at {
				t.Errorf("call %d is after %s, want %s", calls, time.Since(began), at)
			}
			calls++
			if fails[calls-1] {
				return time.Minute, errors.New("away")
			}
			return time.Minute, nil
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("ended with %v", err)
		}
		if n := strings.Count(log.String(), "reading failed"); n != 2 {
			t.Errorf("%d failures are logged, want the first of two rows:\n%s", n, log.String())
		}
	})
}
