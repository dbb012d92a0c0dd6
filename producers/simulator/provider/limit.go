package provider

import (
	"sync"
	"time"
)

// Tolerance is what the network may press together: requests that a client spaced as documented are not refused.
const Tolerance = 100 * time.Millisecond

// Bucket allows n actions within a time, all at once or spread out. nil allows everything. Safe for concurrent use.
type Bucket struct {
	interval, burst time.Duration

	mu sync.Mutex
	// full is when it will be full again.
	full time.Time
}

// NewBucket allows n actions within per; without any there is no limit.
func NewBucket(n int, per time.Duration) *Bucket {
	if n <= 0 {
		return nil
	}
	return &Bucket{interval: per / time.Duration(n), burst: per + Tolerance}
}

// Allow is one action: whether it is within the limit.
func (b *Bucket) Allow(now time.Time) bool { return b.Take(now, 1) }

// Take is n actions at once, all of them or none: whether they are within the limit.
func (b *Bucket) Take(now time.Time, n int) bool {
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
