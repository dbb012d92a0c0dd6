package producers

import (
	"context"
	"sync"
	"time"
)

// Clock is the time that a producer lives in: ingest times, time-outs of silence, back-off and
// budgets follow it. Time-outs of single network operations do not, since the network is real.
type Clock interface {
	Now() time.Time
	// After delivers once, when d has passed.
	After(d time.Duration) <-chan time.Time
}

// WallClock is the machine's time.
type WallClock struct{}

// Now returns the machine's time.
func (WallClock) Now() time.Time { return time.Now() }

// After is time.After.
func (WallClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// Sleep returns after d, or with the context's error before.
func Sleep(ctx context.Context, clock Clock, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	select {
	case <-clock.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// SleepUntil returns once the clock shows at, or with the context's error before. It asks for the time once
// more after the timer is set: a clock that was moved in between would else be waited for in vain.
func SleepUntil(ctx context.Context, clock Clock, at time.Time) error {
	for now := clock.Now(); now.Before(at); now = clock.Now() {
		timer := clock.After(at.Sub(now))
		if !clock.Now().Before(at) {
			break
		}
		select {
		case <-timer:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return ctx.Err()
}

// Budget lets a limited number of actions pass: a token bucket that starts full. Safe for
// concurrent use; waiters pass in the order in which they came.
type Budget struct {
	clock    Clock
	interval time.Duration
	burst    int
	mu       sync.Mutex
	// free is when the bucket will be full again.
	free time.Time
}

// NewBudget allows n actions within per, all at once if they were saved up.
func NewBudget(clock Clock, n int, per time.Duration) *Budget {
	return &Budget{clock: clock, interval: per / time.Duration(n), burst: n}
}

// Wait returns when the next action may be done.
func (b *Budget) Wait(ctx context.Context) error {
	b.mu.Lock()
	now := b.clock.Now()
	if b.free.Before(now) {
		b.free = now
	}
	b.free = b.free.Add(b.interval)
	wait := b.free.Sub(now) - time.Duration(b.burst)*b.interval
	b.mu.Unlock()
	return Sleep(ctx, b.clock, wait)
}
