package producers

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
)

// VirtualClock is a time that begins in the past and runs faster than the machine's, a whole second at a
// step. A step is taken only when everyone who joined has finished the second before, so that however
// fast it runs no reader falls behind. Once it reaches the machine's time it is the machine's clock.
// Safe for concurrent use.
type VirtualClock struct {
	speed int

	mu       sync.Mutex
	now      time.Time
	caughtUp bool
	timers   []timer // by time
	// finished is the last second that each of those who joined has finished.
	finished map[string]time.Time
	// moved means that somebody finished a second; one notice waiting is enough.
	moved chan struct{}
}

type timer struct {
	at   time.Time
	fire chan time.Time
}

// NewVirtualClock stays at the second of start until Run runs, then takes up to speed steps in a second.
func NewVirtualClock(start time.Time, speed int) *VirtualClock {
	return &VirtualClock{
		speed: speed, now: start.Truncate(time.Second), finished: map[string]time.Time{},
		moved: make(chan struct{}, 1),
	}
}

// Now returns the virtual time.
func (c *VirtualClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.caughtUp {
		return time.Now()
	}
	return c.now
}

// After delivers at the first step at or past d from now.
func (c *VirtualClock) After(d time.Duration) <-chan time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.caughtUp {
		return time.After(d)
	}
	t := timer{c.now.Add(d), make(chan time.Time, 1)}
	if d <= 0 {
		t.fire <- c.now
		return t.fire
	}
	i, _ := slices.BinarySearchFunc(c.timers, t, func(a, b timer) int { return cmp.Or(a.at.Compare(b.at), -1) })
	c.timers = slices.Insert(c.timers, i, t)
	return t.fire
}

// Join makes the clock wait for name at every second that begins from now on.
func (c *VirtualClock) Join(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, joined := c.finished[name]; !joined {
		c.finished[name] = c.now
	}
}

// Finished means that name has done everything up to t; the first call joins.
func (c *VirtualClock) Finished(name string, t time.Time) {
	c.mu.Lock()
	if t.After(c.finished[name]) {
		c.finished[name] = t
	}
	c.mu.Unlock()
	select {
	case c.moved <- struct{}{}:
	default:
	}
}

// Run moves the clock until ctx ends, and returns nil then. It may be called again afterwards, not at once.
func (c *VirtualClock) Run(ctx context.Context) error {
	began, first := time.Now(), c.Now()
	for !c.catchUp() {
		if err := c.allFinished(ctx); err != nil {
			return nil
		}
		next := c.Now().Add(time.Second)
		due := began.Add(next.Sub(first) / time.Duration(c.speed))
		if err := Sleep(ctx, WallClock{}, time.Until(due)); err != nil {
			return nil
		}
		c.step(next)
	}
	<-ctx.Done()
	return nil
}

// allFinished waits until everyone who joined has finished the present second, and somebody joined at all.
func (c *VirtualClock) allFinished(ctx context.Context) error {
	for {
		c.mu.Lock()
		done := len(c.finished) > 0
		for _, at := range c.finished {
			done = done && !at.Before(c.now)
		}
		c.mu.Unlock()
		if done {
			return ctx.Err()
		}
		select {
		case <-c.moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (c *VirtualClock) step(next time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = next
	fired := 0
	for fired < len(c.timers) && !c.timers[fired].at.After(next) {
		c.timers[fired].fire <- next
		fired++
	}
	c.timers = slices.Delete(c.timers, 0, fired)
}

// catchUp becomes the machine's clock if another step would lead beyond it.
func (c *VirtualClock) catchUp() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if c.caughtUp || !c.now.Add(time.Second).After(now) {
		return c.caughtUp
	}
	c.caughtUp = true
	for _, t := range c.timers {
		time.AfterFunc(t.at.Sub(now), func() { t.fire <- time.Now() })
	}
	c.timers = nil
	return true
}

// Pacer is a clock that waits for the clock records of whoever reads it.
type Pacer interface {
	Join(name string)
	Finished(name string, t time.Time)
}
