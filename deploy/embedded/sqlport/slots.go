package sqlport

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// errBusy means that no place came free in time.
var errBusy = errors.New("too many statements at once")

// slots are the places of statements that run at once, shared out among clients: none has more than half of them, who
// has fewer comes first, and whoever does not take an answer while others wait loses his.
type slots struct {
	total, perClient int
	queue            int           // of waiting statements
	wait             time.Duration // for a place
	stall            time.Duration // without progress, after which a statement loses its place to one that waits
	now              func() time.Time

	mu      sync.Mutex
	running map[*slot]struct{}
	waiting []*waiter
	evicted int // of those that stalled
}

// slot is the place of one statement.
type slot struct {
	owner    *slots
	client   string
	cancel   func() // makes the statement give the place back soon
	mu       sync.Mutex
	progress time.Time // when the client last took something; zero while it has nothing to take
}

type waiter struct {
	slot  *slot
	ready chan struct{}
}

func newSlots(total int) *slots {
	return &slots{
		total: total, perClient: max(1, total/2), queue: 64, wait: 10 * time.Second, stall: 5 * time.Second, now: time.Now,
		running: map[*slot]struct{}{},
	}
}

// take waits for a place. cancel is called when the client stalls while others wait.
func (s *slots) take(ctx context.Context, client string, cancel func()) (*slot, error) {
	w := &waiter{&slot{owner: s, client: client, cancel: cancel}, make(chan struct{})}
	s.mu.Lock()
	if len(s.waiting) >= s.queue {
		s.mu.Unlock()
		return nil, errBusy
	}
	s.waiting = append(s.waiting, w)
	s.admit()
	s.mu.Unlock()
	select {
	case <-w.ready: // at once, which is the rule: no timers are needed
		return w.slot, nil
	default:
	}
	deadline := time.NewTimer(s.wait)
	defer deadline.Stop()
	look := time.NewTicker(s.stall / 10)
	defer look.Stop()
	for {
		select {
		case <-w.ready:
			return w.slot, nil
		case <-look.C:
			s.evict(client)
			continue
		case <-deadline.C:
		case <-ctx.Done():
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if at := slices.Index(s.waiting, w); at >= 0 {
			s.waiting = slices.Delete(s.waiting, at, at+1)
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			return nil, errBusy
		}
		return w.slot, nil // it was admitted at the same moment
	}
}

// admit gives free places to those who wait: of the clients with the fewest, the first.
func (s *slots) admit() {
	for len(s.running) < s.total {
		count := map[string]int{}
		for r := range s.running {
			count[r.client]++
		}
		best := -1
		for i, w := range s.waiting {
			n := count[w.slot.client]
			if n < s.perClient && (best < 0 || n < count[s.waiting[best].slot.client]) {
				best = i
			}
		}
		if best < 0 {
			return
		}
		w := s.waiting[best]
		s.waiting = slices.Delete(s.waiting, best, best+1)
		s.running[w.slot] = struct{}{}
		close(w.ready)
	}
}

// evict ends the statements that stall and whose places client could have.
func (s *slots) evict(client string) {
	for _, r := range s.stalling(client) {
		r.cancel()
	}
}

func (s *slots) stalling(client string) []*slot {
	s.mu.Lock()
	defer s.mu.Unlock()
	mine := 0
	for r := range s.running {
		if r.client == client {
			mine++
		}
	}
	var found []*slot
	for r := range s.running {
		if (mine < s.perClient || r.client == client) && r.stalled(s.now().Add(-s.stall)) {
			found = append(found, r)
		}
	}
	s.evicted += len(found)
	return found
}

// waits notes that the client has something to take since now; took that it has taken it.
func (r *slot) waits() { r.set(r.owner.now()) }
func (r *slot) took()  { r.set(time.Time{}) }

func (r *slot) set(at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.progress = at
}

func (r *slot) stalled(since time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.progress.IsZero() && r.progress.Before(since)
}

// give returns the place.
func (r *slot) give() {
	r.owner.mu.Lock()
	defer r.owner.mu.Unlock()
	delete(r.owner.running, r)
	r.owner.admit()
}
