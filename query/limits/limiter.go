package limits

import (
	"context"
	"hash/maphash"
	"sync"
	"time"
)

// Scopes of limits, as a refusal names them.
const (
	ScopeMinute = "minute"
	ScopeMonth  = "month"
	ScopeCharts = "charts"
)

const (
	limiterShards = 64
	// idleAfter is how long a budget without a count for its month is kept once its windows are empty.
	idleAfter = 2 * time.Minute
)

// Limiter admits requests within the limits of plans: in no 60 seconds, and in no UTC calendar month, are more admitted to
// one budget than its plan allows. Alone it counts in this process's memory, exactly; one that shares its limits with
// other replicas refuses at most a twentieth of a limit early. Safe for concurrent use.
type Limiter struct {
	// shared is nil where this process is alone, meter where nobody reads what was used.
	shared *leaseManager
	meter  *Meter
	now    func() time.Time
	epoch  time.Time
	store  UsageStore
	seed   maphash.Seed
	shards [limiterShards]shard
}

type shard struct {
	sync.Mutex
	budgets map[string]*budget
}

// budget is what one key, or several that were rotated, share.
type budget struct {
	minute, charts window
	month          month
	monthEnds      time.Time
	used           int64 // of that month
	last           int64
	exact          bool // whether minute keeps exact times
	changed        bool // since it was last saved
}

// Decision is what became of a request, and what its headers say about the tightest window.
type Decision struct {
	OK        bool
	Limit     int64
	Remaining int64
	// Reset is when Remaining grows again.
	Reset time.Time
	// RetryAfter is in whole seconds, Scope the limit that refused; both only on a refusal.
	RetryAfter int
	Scope      string
	// at names this admission for Undo, taken where limits are shared.
	at    int64
	taken []taken
	tally *tally
}

// UsageStore keeps the counts of a month through a restart.
type UsageStore interface {
	Load(ctx context.Context) ([]Usage, error)
	// Save is given the budgets that changed.
	Save(ctx context.Context, usage []Usage) error
}

// Usage is what a budget has used of a UTC calendar month, 2026-11 for November 2026.
type Usage struct {
	Budget string `json:"budget"`
	Month  string `json:"month"`
	Used   int64  `json:"used"`
}

// NewLimiter makes a limiter on a clock that never goes back (time.Now does not). Without a store,
// nil, counts of months end with the process.
func NewLimiter(now func() time.Time, store UsageStore) *Limiter {
	l := &Limiter{now: now, epoch: now(), store: store, seed: maphash.MakeSeed()}
	for i := range l.shards {
		l.shards[i].budgets = map[string]*budget{}
	}
	return l
}

// Admit counts a request that came at a time of the limiter's clock against a budget, or refuses it
// and counts nothing.
func (l *Limiter) Admit(name string, plan *Plan, class Class, at time.Time) Decision {
	v := l.judge(name, plan, class, at, true)
	if v.OK && l.meter != nil {
		v.tally = l.meter.count(name, plan, class, at)
	}
	return v
}

// Peek reports how much of a budget is used and counts nothing.
func (l *Limiter) Peek(name string, plan *Plan, class Class, at time.Time) Decision {
	return l.judge(name, plan, class, at, false)
}

func (l *Limiter) judge(name string, plan *Plan, class Class, wall time.Time, count bool) Decision {
	if l.shared != nil {
		return l.shared.judge(name, plan, class, wall, count)
	}
	now := int64(wall.Sub(l.epoch)) + minute
	s := l.shard(name)
	s.Lock()
	defer s.Unlock()
	b := s.budgets[name]
	if b == nil {
		b = &budget{}
		s.budgets[name] = b
	}
	b.prepare(plan, class, wall)
	b.last = now

	v := Decision{OK: true, at: now, Remaining: -1}
	look := func(scope string, limit, used int64, frees time.Time) {
		if limit == 0 {
			return
		}
		left := limit - used
		if left <= 0 && count {
			// A request passes when all windows that refuse it have freed.
			if wait := WholeSeconds(frees.Sub(wall)); v.OK || wait > v.RetryAfter {
				v.RetryAfter, v.Scope = wait, scope
				v.Limit, v.Remaining, v.Reset = limit, 0, frees
			}
			v.OK = false
			return
		}
		if left = max(0, left); v.OK && (v.Remaining < 0 || left < v.Remaining) {
			v.Limit, v.Remaining, v.Reset = limit, left, frees
		}
	}
	wallAt := func(at int64) time.Time { return wall.Add(time.Duration(at - now)) }
	if plan.PerMinute > 0 {
		used := b.minute.used(now)
		look(ScopeMinute, int64(plan.PerMinute), int64(used), wallAt(b.minute.frees(now)))
	}
	charts := class == Charts && plan.ChartsPerMinute > 0
	if charts {
		used := b.charts.used(now)
		look(ScopeCharts, int64(plan.ChartsPerMinute), int64(used), wallAt(b.charts.frees(now)))
	}
	look(ScopeMonth, plan.PerMonth, b.used, b.monthEnds)
	if !v.OK || !count {
		v.Remaining = max(0, v.Remaining)
		return v
	}
	if plan.PerMinute > 0 {
		b.minute.add(now)
	}
	if charts {
		b.charts.add(now)
	}
	b.used++
	b.changed = true
	v.Remaining = max(0, v.Remaining-1)
	if v.Reset.Equal(wall) {
		// The window was empty: this request is the first that will leave it.
		v.Reset = wall.Add(time.Minute)
	}
	return v
}

// Undo takes back an admission, because the fault was ours.
func (l *Limiter) Undo(name string, plan *Plan, class Class, v Decision) {
	if v.tally != nil {
		v.tally.undo(class)
	}
	if l.shared != nil {
		l.shared.undoAll(v)
		return
	}
	s := l.shard(name)
	s.Lock()
	defer s.Unlock()
	b := s.budgets[name]
	if b == nil {
		return
	}
	if plan.PerMinute > 0 && b.minute != nil {
		b.minute.undo(v.at)
	}
	if class == Charts && plan.ChartsPerMinute > 0 && b.charts != nil {
		b.charts.undo(v.at)
	}
	b.used = max(0, b.used-1)
	b.changed = true
}

// prepare makes the windows that a plan needs and begins a new month.
func (b *budget) prepare(plan *Plan, class Class, wall time.Time) {
	if exact := plan.PerMinute <= exactUpTo; b.minute == nil || b.exact != exact {
		// A key that changed its plan to another kind of window begins with an empty one.
		b.minute, b.exact = newWindow(plan.PerMinute), exact
	}
	if class == Charts && b.charts == nil {
		b.charts = newWindow(plan.ChartsPerMinute)
	}
	if !wall.Before(b.monthEnds) {
		// Restored counts come without an end, which keeps theirs if their month is this one.
		if now := monthOf(wall); b.month < now {
			b.month, b.used = now, 0
		}
		b.monthEnds = b.month.end()
	}
}

func (l *Limiter) shard(name string) *shard {
	return &l.shards[maphash.String(l.seed, name)%limiterShards]
}

// month counts months since the year 0.
type month int

func monthOf(t time.Time) month {
	t = t.UTC()
	return month(t.Year()*12 + int(t.Month()) - 1)
}

func (m month) start() time.Time {
	return time.Date(int(m)/12, time.Month(int(m)%12+1), 1, 0, 0, 0, 0, time.UTC)
}

func (m month) end() time.Time { return (m + 1).start() }

// WholeSeconds rounds up, and to at least one.
func WholeSeconds(d time.Duration) int {
	return max(1, int((d+time.Second-1)/time.Second))
}
