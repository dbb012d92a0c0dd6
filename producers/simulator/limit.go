package simulator

import (
	"sync"
	"time"
)

// tolerance is what the network may press together: requests that a client spaced as documented are not refused.
const tolerance = 100 * time.Millisecond

// bucket allows n actions within a time, all at once or spread out. nil allows everything. Safe for concurrent use.
type bucket struct {
	interval, burst time.Duration

	mu sync.Mutex
	// full is when it will be full again.
	full time.Time
}

func newBucket(n int, per time.Duration) *bucket {
	if n <= 0 {
		return nil
	}
	return &bucket{interval: per / time.Duration(n), burst: per + tolerance}
}

func (b *bucket) allow(now time.Time) bool { return b.take(now, 1) }

// take is n actions at once, all of them or none.
func (b *bucket) take(now time.Time, n int) bool {
	if b == nil {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	full := b.full
	if full.Before(now) {
		full = now
	}
	full = full.Add(time.Duration(n) * b.interval)
	if full.Sub(now) > b.burst {
		return false
	}
	b.full = full
	return true
}
