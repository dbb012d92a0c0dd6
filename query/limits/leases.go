package limits

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// LimitStore is where replicas share limits. Calls must end soon: a request may wait for one.
type LimitStore interface {
	Heartbeat(ctx context.Context, b Heartbeat) (Replicas, error)
	Acquire(ctx context.Context, q LeaseRequest) (LeaseAnswer, error)
}

// Times of replicas among each other.
const (
	// beatEvery is how often a replica says that it is there, and learns what is to be given back.
	beatEvery = 50 * time.Millisecond
	// reportEvery and monthEvery are how often it reports what it admitted.
	reportEvery = 100 * time.Millisecond
	monthEvery  = time.Second
	// idleFor is after which time without a request it gives back what it holds.
	idleFor = 250 * time.Millisecond
	// askPatience bounds one call of the store; a request waits for at most admitPatience, which is enough for others to
	// give back what they hold.
	askPatience   = 250 * time.Millisecond
	admitPatience = 150 * time.Millisecond
	// askAgain is the least time between two questions where the first brought nothing.
	askAgain = 20 * time.Millisecond
	// A pool is asked only by who knows the replicas as of freshFor ago. One that received nothing from the store for contactFor
	// counts on what it may use by itself; one from which the others received nothing for silentAfter is counted on to do so.
	freshFor    = int64(500 * time.Millisecond)
	contactFor  = int64(time.Second)
	silentAfter = time.Second
	// knownAfter is how long after its last contact a replica can be sure that the others count on its share.
	knownAfter = int64(4 * time.Second)
	// missedFor is how long a replica that the store forgot is still counted on: the store may have been emptied.
	missedFor = int64(64 * time.Second)
	// settleAfter is how long a pool stays one at least.
	settleAfter = int64(62 * time.Second)
	// poolsKept is for how long the store keeps a pool that nobody asks.
	poolsKept = 10 * time.Minute
	// monthKept keeps a month's count a while longer, so that a replica whose clock is behind finds it.
	monthKept = 48 * time.Hour
	// sweepEvery is how often pools are left or forgotten.
	sweepEvery = 5 * time.Second
	// leavesAtOnce bounds the pools that are notified of the end at a time.
	leavesAtOnce = 32
	// windowSlack is added to a window of the store: a request that waits counts when it is admitted, which is up to
	// admitPatience after it came.
	windowSlack = admitPatience
)

// leaseManager is what a limiter needs to admit within limits that it shares with other replicas.
//
// Of every limit a replica may use its share, 1/n for n replicas, without asking anybody. Where a budget needs more at one
// replica, that limit becomes a pool in the store: all replicas report to it what they admitted, give up their
// shares of this limit, and are granted what is free, a little at a time. What was granted counts as used until it was
// given back. When the store is away, a replica goes on with its share; of a limit that is a pool, with what it holds and its
// part of what it knows to have left the window since.
type leaseManager struct {
	store        LimitStore
	id, replaces string
	epoch        time.Time
	now          func() time.Time
	log          *slog.Logger

	replicas atomic.Pointer[replicas]
	pools    sync.Map // of *pool by name
	seq      atomic.Int64
	left     atomic.Bool
	// behind means that pools are to be notified of what was admitted while the store was away; only who beats knows.
	behind bool

	mu      sync.Mutex
	recalls []Revocation
	due     map[*bucket]struct{} // that have something to report
	ring    chan struct{}        // a beat is wanted at once
}

// replicas is what a replica knows of itself and the others. Times are the limiter's.
type replicas struct {
	// at is when the store was notified of this replica for the last time with an answer.
	at int64
	// late is at most the store's time minus the limiter's, early at least.
	late, early int64
	// share n means 1/n of a limit from a time on, until then prior; 0 for none.
	share, prior int
	from         int64
	others       []other
	// count is that of all that are there.
	count int
}

type other struct {
	Member
	silent bool
	// leftAt is when it was first known to have ended, by the limiter's time.
	leftAt int64
	// ends is when it is forgotten; 0 while the store names it.
	ends int64
}

func (r *replicas) away(now int64) bool { return now-r.at > contactFor }

// of is what the share is of a limit.
func (r *replicas) of(limit, now int64) int64 {
	n := r.shareAt(now)
	if n == 0 {
		return 0
	}
	return limit / int64(n)
}

func (r *replicas) shareAt(now int64) int {
	if now < r.from {
		return r.prior
	}
	return r.share
}

// alone means that there is no other replica, nor was one lately.
func (r *replicas) alone() bool { return len(r.others) == 0 }

// NewSharedLimiter makes a limiter whose limits hold over all replicas that share a store. It refuses everything until
// Load has succeeded, and needs Run. Replaces names a replica that this one takes the place of, which surely has ended;
// empty for none.
func NewSharedLimiter(now func() time.Time, store LimitStore, replaces string, log *slog.Logger) *Limiter {
	l := NewLimiter(now, nil)
	l.shared = &leaseManager{store: store, id: strings.ToLower(rand.Text()[:16]), replaces: replaces, epoch: l.epoch, now: now, log: log,
		due: map[*bucket]struct{}{}, ring: make(chan struct{}, 1)}
	l.shared.replicas.Store(&replicas{at: never})
	return l
}

// never is before all contacts.
const never = math.MinInt64 / 2

// Replica names this replica among those that share its limits; empty for a limiter that shares none.
func (l *Limiter) Replica() string {
	if l.shared == nil {
		return ""
	}
	return l.shared.id
}

func (s *leaseManager) clock() int64 { return int64(s.now().Sub(s.epoch)) + minute }

// join announces this replica to the store for the first time, instead of another that ended without a word.
func (s *leaseManager) join(ctx context.Context) error {
	if err := s.beat(ctx, Heartbeat{Replaces: s.replaces}); err != nil {
		return fmt.Errorf("joining the replicas: %w", err)
	}
	return nil
}

// beat sends a heartbeat to the store and applies its reply.
func (s *leaseManager) beat(ctx context.Context, b Heartbeat) error {
	before := s.replicas.Load()
	b.Replica, b.Seq = s.id, s.seq.Add(1)
	// A share is lowered first and reported then, so that the others never count on less.
	b.Have, b.Want = before.share, before.count
	sent := s.clock()
	// Others take it for one that answers as soon as the store has received this.
	b.Behind = s.behind || before.at != never && sent-before.at > contactFor/2
	s.behind = b.Behind
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	reply, err := s.store.Heartbeat(ctx, b)
	if err != nil || b.Leaves {
		return err
	}
	received := s.clock()
	r := &replicas{at: sent, late: reply.Now*1e6 + 1e6 - sent, early: reply.Now*1e6 - received, count: 1}
	for _, m := range reply.Members {
		if m.ID != s.id {
			o := other{Member: m, silent: m.Left || m.Behind || m.Age > silentAfter}
			if m.Left {
				o.leftAt = before.leftAt(m.ID, received)
			}
			r.others = append(r.others, o)
		}
	}
	if before.at != never {
		r.late = min(r.late, before.late+int64(time.Millisecond))
		r.missed(before, sent)
	}
	for _, o := range r.others {
		if !o.Left {
			r.count++
		}
	}
	r.share, r.prior, r.from = reply.Share, before.shareAt(received), before.from
	if r.share != before.share {
		r.from = received + (reply.From-reply.Now+1)*1e6
		if r.share > before.share && before.share > 0 {
			r.prior, r.from = before.prior, before.from // it was lowered
		}
	}
	if r.share > 0 && r.share < r.count {
		r.share = r.count
	}
	s.replicas.Store(r)
	for _, recall := range reply.Recalls {
		s.recalled(recall)
	}
	return nil
}

// leftAt is when a replica that has ended by now was first known to have.
func (r *replicas) leftAt(id string, now int64) int64 {
	for _, o := range r.others {
		if o.ID == id && o.Left {
			return o.leftAt
		}
	}
	return now
}

// missed keeps replicas that the store does not name any more for a while, in which it is received: it may have lost them. One that
// ended used nothing since.
func (r *replicas) missed(before *replicas, now int64) {
	silence := now - before.at
	if silence <= contactFor {
		silence = 0
	}
	for _, o := range before.others {
		if slices.ContainsFunc(r.others, func(n other) bool { return n.ID == o.ID }) {
			continue
		}
		switch {
		case o.Left:
			o.ends = o.leftAt + missedFor
		case o.ends == 0:
			o.ends = now + missedFor
		default:
			o.ends += silence
		}
		if now < o.ends {
			o.silent = true
			r.others = append(r.others, o)
		}
	}
}

// recall asks the others to give back what they hold of a pool.
func (s *leaseManager) recall(p *bucket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := (Revocation{Pool: p.name, Limit: p.limit}); !slices.Contains(s.recalls, r) {
		s.recalls = append(s.recalls, r)
	}
	select {
	case s.ring <- struct{}{}:
	default:
	}
}

func (s *leaseManager) takeRecalls() []Revocation {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.recalls
	s.recalls = nil
	return list
}

// recalled gives back what is held of a pool, or joins it.
func (s *leaseManager) recalled(r Revocation) {
	p := s.bucket(r.Pool, r.Limit)
	p.mu.Lock()
	defer p.mu.Unlock()
	now := s.clock()
	if joined := p.exclusive && !s.replicas.Load().alone(); p.asking || p.waiting > 0 || p.inside && !joined && (p.exclusive || p.held == 0) {
		return
	}
	s.begin(p, now, question{back: true})
}

// Run reports and receives until the context ends, then gives everything back.
func (s *leaseManager) run(ctx context.Context) error {
	g, running := errgroup.WithContext(ctx)
	g.Go(func() error {
		s.beats(running)
		return nil
	})
	g.Go(func() error {
		s.reports(running)
		return nil
	})
	_ = g.Wait() // they only end
	leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	s.left.Store(true)
	s.giveUp(leaving)
	return s.beat(leaving, Heartbeat{Leaves: true})
}

func (s *leaseManager) beats(ctx context.Context) {
	away := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(beatEvery): // no ticker: see reports
		case <-s.ring:
		}
		err := s.beat(ctx, Heartbeat{Recall: s.takeRecalls()})
		if err == nil && s.behind {
			s.behind = !s.catchUp()
		}
		if errors.Is(err, ErrOvertaken) || ctx.Err() != nil {
			continue
		}
		if failed := err != nil; failed != away && (!failed || s.replicas.Load().away(s.clock())) {
			away = failed
			if away {
				s.log.Error("limit store unavailable: this replica applies its share of each limit", "error", err)
			} else {
				s.log.Info("limit store available again: limits are shared")
			}
		}
	}
}

// catchUp reports to the buckets what was admitted without the store, and returns whether all have it.
func (s *leaseManager) catchUp() bool {
	all := true
	var sent sync.WaitGroup
	s.pools.Range(func(_, value any) bool {
		p := value.(*bucket)
		p.mu.Lock()
		defer p.mu.Unlock()
		switch {
		case p.asking:
			all = false
		case p.dirty && p.inside:
			now := s.clock()
			q := s.question(p, now, question{back: true})
			p.asking = true
			sent.Go(func() { s.ask(p, now, q) })
		}
		return true
	})
	sent.Wait()
	s.pools.Range(func(_, value any) bool {
		p := value.(*bucket)
		p.mu.Lock()
		defer p.mu.Unlock()
		all = all && !(p.dirty && p.inside && p.reported < s.replicas.Load().at)
		return all
	})
	return all
}

// reports sends the buckets what was admitted. Its timer begins when it is waited for: the tick of a ticker comes due while
// a slow store is asked, and the race detector of Go 1.26 crashes where two goroutines of one synctest bubble take such
// ticks at a time (both run them in the one race context of the bubble).
func (s *leaseManager) reports(ctx context.Context) {
	swept := s.clock()
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(reportEvery):
		}
		now := s.clock()
		s.mu.Lock()
		due := make([]*bucket, 0, len(s.due))
		for p := range s.due {
			due = append(due, p)
		}
		s.mu.Unlock()
		for _, p := range due {
			s.report(p, now)
		}
		if now-swept >= int64(sweepEvery) {
			swept = now
			s.sweep(now)
		}
	}
}

// report asks a pool if it is time to report to it.
func (s *leaseManager) report(p *bucket, now int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asking || s.replicas.Load().away(now) {
		return
	}
	every := int64(reportEvery)
	if p.width == Month {
		every = int64(monthEvery)
	}
	idle := p.width != Month && p.held > 0 && !p.exclusive && now-p.spent > int64(idleFor)
	switch {
	case !p.dirty && (p.held == 0 || p.exclusive || p.width == Month):
		s.mu.Lock()
		delete(s.due, p)
		s.mu.Unlock()
	case idle, p.dirty && now-p.sent >= every:
		s.begin(p, now, question{back: idle})
	}
}

// sweep leaves pools that are not needed any more, and forgets limits that were not used lately.
func (s *leaseManager) sweep(now int64) {
	r := s.replicas.Load()
	month := monthOf(s.now())
	s.pools.Range(func(_, value any) bool {
		p := value.(*bucket)
		p.mu.Lock()
		defer p.mu.Unlock()
		switch {
		case p.asking:
		case p.width == Month:
			if p.month < month {
				p.forgotten = true
				s.pools.Delete(p.name)
			}
		case !p.inside:
			if p.own.used(now) == 0 && now-p.last > int64(idleAfter) {
				p.forgotten = true
				s.pools.Delete(p.name)
			}
		case !r.away(now) && now-p.entered > settleAfter && p.waiting == 0 && int64(p.own.used(now)) <= r.of(p.limit, now)/2:
			s.begin(p, now, question{back: true, leave: true})
		}
		return true
	})
}

// giveUp reports everything and gives back what is held.
func (s *leaseManager) giveUp(ctx context.Context) {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(leavesAtOnce)
	s.pools.Range(func(_, value any) bool {
		p := value.(*bucket)
		g.Go(func() error {
			p.mu.Lock()
			if !p.inside || !p.dirty && p.held == 0 && !p.exclusive {
				p.mu.Unlock()
				return nil
			}
			q := s.question(p, s.clock(), question{back: true})
			p.mu.Unlock()
			askCtx, cancel := context.WithTimeout(ctx, askPatience)
			defer cancel()
			if _, err := s.store.Acquire(askCtx, q); err != nil && !errors.Is(err, ErrOvertaken) {
				s.log.Warn("releasing a limit lease failed", "pool", q.Pool, "error", err)
			}
			return nil
		})
		return true
	})
	_ = g.Wait() // none fails
}
