package processors

import (
	"context"
	"sync"
	"time"
)

const (
	// paceSlack is how far folds of this process may be apart in log time. While all of them are at
	// the end of the log they are a second or two apart, and none ever waits.
	paceSlack = 5 * time.Second
	// paceSlackElsewhere is the same for a fold of another process, which reports its position every
	// ten seconds of log time.
	paceSlackElsewhere = 20 * time.Second
	// pacePatience is how long a fold that does not move is waited for, in the time of this machine: a
	// partition that cannot be read, or a process that is gone, delays the others once and by that much.
	pacePatience = 5 * time.Second
)

// LagLimiter keeps folds side by side in log time while they work off a backlog. Each of them reads as
// fast as it can, so without it the clocks of a quiet partition would arrive minutes of log time before
// the ticks of a busy one, which would then be too old to count.
//
// It only changes in which order folds write, never what they write: it may look at the machine's
// clock. Safe for concurrent use.
type LagLimiter struct {
	mu      sync.Mutex
	folds   map[string]*paced
	changed chan struct{} // closed when somebody moved
}

// paced is the position of one fold.
type paced struct {
	now   int64
	moved time.Time
	here  bool // in this process
	// lead is how far others may be ahead while it reads again what it has written, again whether it does.
	lead  time.Duration
	again bool
}

// NewPace makes a pace that nobody keeps yet.
func NewPace() *LagLimiter {
	return &LagLimiter{folds: map[string]*paced{}, changed: make(chan struct{})}
}

// Join announces that a fold of this process is about to start. It ends with Leave.
func (p *LagLimiter) Join(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fold(name).here = true
	p.folds[name].moved = time.Now()
}

// Lead lets others be so far ahead of a fold of this process, in log time, while it reads again what it has written, which it
// does from here on until it comes to write. What it wrote must count for that long.
func (p *LagLimiter) Lead(name string, lead time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.fold(name)
	f.lead, f.again = lead, true
}

// Leave announces that a fold goes on elsewhere, if anywhere.
func (p *LagLimiter) Leave(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fold(name).here = false
	p.wake()
}

// Heard records the position of a fold, by what it wrote, Unix nanoseconds of log time.
func (p *LagLimiter) Heard(name string, now int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reached(name, now)
}

// Wait records that a fold is at a log time, and returns when no other is too far behind it. The
// error is the context's.
func (p *LagLimiter) Wait(ctx context.Context, name string, now int64) error {
	for {
		p.mu.Lock()
		p.reached(name, now)
		patience := p.behind(name, now)
		changed := p.changed
		p.mu.Unlock()
		if patience <= 0 {
			return nil
		}
		timer := time.NewTimer(patience)
		select {
		case <-changed:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// step records that a fold is at a log time. It waits for the others unless what the fold writes there is in the log already:
// then there is nothing to keep in order.
func (p *LagLimiter) step(ctx context.Context, name string, now int64, written bool) error {
	p.mu.Lock()
	p.fold(name).again = written
	p.mu.Unlock()
	if written {
		p.Heard(name, now)
		return ctx.Err()
	}
	return p.Wait(ctx, name, now)
}

// behind is how long to wait for the others at most; 0 if none is too far behind.
func (p *LagLimiter) behind(name string, now int64) time.Duration {
	patience := time.Duration(0)
	for other, f := range p.folds {
		slack := paceSlackElsewhere
		if f.here {
			slack = paceSlack
		}
		if f.again {
			slack = max(slack, f.lead)
		}
		if other != name && now-f.now > int64(slack) {
			patience = max(patience, pacePatience-time.Since(f.moved))
		}
	}
	return patience
}

func (p *LagLimiter) reached(name string, now int64) {
	f := p.fold(name)
	if now <= f.now {
		return
	}
	f.now, f.moved = now, time.Now()
	p.wake()
}

func (p *LagLimiter) fold(name string) *paced {
	f := p.folds[name]
	if f == nil {
		f = &paced{}
		p.folds[name] = f
	}
	return f
}

func (p *LagLimiter) wake() {
	close(p.changed)
	p.changed = make(chan struct{})
}
