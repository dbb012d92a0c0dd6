// Package retry waits between tries at what is away for a while: a server, a disk that is full, a role that ended.
package retry

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// Backoff gives the pauses between tries. Each is drawn from half to one and a half times a length that begins with the first,
// grows by half with each try and ends with the longest, so that those who failed together do not come back together. It is
// used by one goroutine.
type Backoff struct{ lengths *backoff.ExponentialBackOff }

// New begins with first, which is above zero, and ends with longest.
func New(first, longest time.Duration) *Backoff {
	lengths := backoff.NewExponentialBackOff()
	lengths.InitialInterval, lengths.MaxInterval = first, longest
	return &Backoff{lengths}
}

// Next is how long to wait before the next try.
func (b *Backoff) Next() time.Duration { return b.lengths.NextBackOff() }

// Reset begins with the first again, for what has gone well in between.
func (b *Backoff) Reset() { b.lengths.Reset() }

// Wait returns nil when d has passed, or the context's error as soon as that ends.
func Wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
