package limits

import (
	"context"
	"math"
	"slices"
	"strings"
	"sync"
	"time"
)

// pool is one limit of one budget, as this replica knows it.
type bucket struct {
	name  string
	scope string

	mu    sync.Mutex
	limit int64
	// width is that of the store's buckets; latest.Month for a limit of a month.
	width time.Duration
	// own is what this replica admitted within the last minute, log what it reported of that to the store; count what it
	// admitted of the month.
	own     window
	log     []logged
	month   month
	ends    time.Time
	count   int64
	last    int64 // of any request
	spent   int64 // of the last that was admitted
	entered int64
	// inside means that the store was reported: the share is given up. Exclusive is when there is no other replica.
	inside, exclusive bool
	// held is what was granted and is not spent. Out is what the store counts as held since reported, when it was notified of
	// all that was admitted before.
	held, out, reported int64
	countReported       int64
	// granted is the size of the last grant, since what was spent since the last question.
	granted, since int64
	// known is what all had admitted, as of the last answer, by when it ended; others what of it is not our own.
	known, others  []aged
	othersUsed     int64
	gone           int64
	elsewhere      int64
	dirty          bool
	asking         bool
	forgotten      bool
	waiting        int64
	sent, notUntil int64
	wake           chan struct{}
}

// aged is what was admitted until a time of the limiter.
type aged struct{ end, n int64 }

// logged is what was admitted within a bucket of the store's time, and when by the limiter's.
type logged struct{ bucket, first, last, n int64 }

// question reports what a pool is asked for beside the report: nothing but to take back what is held, or to be left.
type question struct{ back, leave bool }

// monthShare is the part of a share of a month's limit that may be used of a budget that was never received of while the
// store is away.
const monthShare = 100

func poolName(budget, scope string, m month) string {
	name := "{" + budget + "}:" + scope
	if scope == ScopeMonth {
		name += ":" + m.start().Format("2006-01")
	}
	return name
}

// pool finds a limit, or makes one.
func (s *leaseManager) bucket(name string, limit int64) *bucket {
	if found, ok := s.pools.Load(name); ok {
		return found.(*bucket)
	}
	p := &bucket{name: strings.Clone(name), limit: limit, wake: make(chan struct{}), last: s.clock()}
	_, rest, _ := strings.Cut(name[strings.LastIndexByte(name, '}'):], ":")
	p.scope, rest, _ = strings.Cut(rest, ":")
	if at, err := time.Parse("2006-01", rest); err == nil {
		p.month = monthOf(at)
		p.ends = p.month.end()
	} else {
		p.own, p.width = newWindow(int(limit)), 100*time.Millisecond
		if limit > exactUpTo {
			p.width = time.Second
		}
	}
	found, _ := s.pools.LoadOrStore(p.name, p)
	return found.(*bucket)
}

// take admits one request within a limit, or refuses it.
func (s *leaseManager) take(p *bucket, limit int64, until int64) (t taken, ok bool) {
	p.mu.Lock()
	for p.forgotten {
		name := p.name
		p.mu.Unlock()
		p = s.bucket(name, limit)
		p.mu.Lock()
	}
	defer p.mu.Unlock()
	p.limit = limit
	for {
		now := s.clock()
		t = taken{p, now}
		r := s.replicas.Load()
		p.last = now
		if ok, final := p.try(now, r); ok || final {
			if ok {
				s.spent(p, now)
			}
			return t, ok
		}
		wake := p.wake
		switch {
		case s.left.Load():
			return t, false
		case p.asking:
		case now >= p.notUntil:
			s.begin(p, now, question{})
		case p.elsewhere == 0:
			return t, false
		}
		rest := time.Duration(until - now)
		if !p.asking {
			rest = min(rest, time.Duration(p.notUntil-now))
		}
		if rest <= 0 || until <= now {
			return t, false
		}
		p.wait(wake, rest)
	}
}

// taken is an admission within a limit.
type taken struct {
	pool *bucket
	at   int64
}

// wait lets others have the pool until something has changed, or for a while.
func (p *bucket) wait(wake chan struct{}, rest time.Duration) {
	p.waiting++
	p.mu.Unlock()
	timer := time.NewTimer(rest)
	select {
	case <-wake:
	case <-timer.C:
	}
	timer.Stop()
	p.mu.Lock()
	p.waiting--
}

func (p *bucket) rouse() {
	close(p.wake)
	p.wake = make(chan struct{})
}

// try admits a request by what is known. Where it is refused, final means that the store need not be asked.
func (p *bucket) try(now int64, r *replicas) (ok, final bool) {
	away := r.away(now)
	share := r.of(p.limit, now)
	if p.width == Month {
		return p.tryMonth(r, away, share/monthShare)
	}
	switch {
	case !p.inside && (share > 0 || away):
		if int64(p.own.used(now)) >= share {
			return false, away || share == p.limit
		}
	case !p.inside:
		return false, false
	case p.exclusive && r.alone():
		if int64(p.own.used(now)) >= p.limit {
			return false, true
		}
	case away:
		if !p.allows(now, r, share) {
			return false, true
		}
		p.held = max(0, p.held-1)
	case p.held > 0 && !p.exclusive:
		p.held--
	default:
		return false, false
	}
	p.note(now, r)
	return true, true
}

func (p *bucket) tryMonth(r *replicas, away bool, share int64) (ok, final bool) {
	switch {
	case p.inside && p.exclusive && r.alone():
		if p.othersUsed+p.count >= p.limit {
			return false, true
		}
	case away:
		if p.count-p.countReported >= max(p.out, share) {
			return false, true
		}
		p.held = max(0, p.held-1)
	case p.inside && p.held > 0 && !p.exclusive:
		p.held--
	default:
		return false, false
	}
	p.count++
	return true, true
}

// allows reports whether one more may be admitted without the store: beside what was held when it was reported last, within the
// share, a part of what has left the window of all that was known. The others may have used all else until they noticed
// that this replica is away, so that what left the window by then is theirs; a minute later the whole share is free.
func (p *bucket) allows(now int64, r *replicas, share int64) bool {
	noticed := r.at + knownAfter
	if now >= noticed+minute {
		return int64(p.own.used(now)) < share
	}
	since := int64(0)
	for i := len(p.log) - 1; i >= 0 && p.log[i].last >= p.reported; i-- {
		since += p.log[i].n
	}
	if share == 0 {
		return since < p.out
	}
	gone := int64(0)
	for _, k := range p.known {
		if k.end > noticed-minute && k.end <= now-minute-int64(windowSlack) {
			gone += k.n
		}
	}
	return since < min(share, min(p.out, share)+gone/int64(r.shareAt(now)))
}

// note logs an admission, and forgets those that count nowhere any more.
func (p *bucket) note(now int64, r *replicas) {
	p.own.add(now)
	bucket := (now + r.late) / int64(p.width)
	if last := len(p.log) - 1; last >= 0 && p.log[last].bucket >= bucket {
		p.log[last].last, p.log[last].n = now, p.log[last].n+1
		return
	}
	p.prune(now)
	p.log = append(p.log, logged{bucket, now, now, 1})
}

func (p *bucket) prune(now int64) {
	kept := 0
	for kept < len(p.log) && p.log[kept].last < now-loggedFor {
		kept++
	}
	p.log = slices.Delete(p.log, 0, kept)
}

// loggedFor is longer than anything counts in the store.
const loggedFor = minute + int64(3*time.Second)

// spent takes note of an admission, and asks for more before all is spent.
func (s *leaseManager) spent(p *bucket, now int64) {
	p.spent = now
	p.since++
	if !p.inside {
		return
	}
	s.mark(p)
	if !p.exclusive && !p.asking && 2*p.held < p.granted && now >= p.notUntil {
		s.begin(p, now, question{})
	}
}

// mark has a pool notified of what changed.
func (s *leaseManager) mark(p *bucket) {
	if p.dirty {
		return
	}
	p.dirty = true
	s.mu.Lock()
	defer s.mu.Unlock()
	s.due[p] = struct{}{}
}

// begin asks a pool, beside the caller. The pool is locked.
func (s *leaseManager) begin(p *bucket, now int64, q question) {
	if r := s.replicas.Load(); now-r.at > freshFor {
		// The others may have changed since; the next heartbeat will show it.
		p.notUntil = now + int64(askAgain)
		return
	}
	request := s.question(p, now, q)
	p.asking = true
	go s.ask(p, now, request)
}

// question writes what a pool is notified of and asked.
func (s *leaseManager) question(p *bucket, now int64, q question) LeaseRequest {
	r := s.replicas.Load()
	request := LeaseRequest{Replica: s.id, Pool: p.name, Seq: s.seq.Add(1), Limit: p.limit, Width: p.width, Inside: p.inside,
		Leaves: q.leave, Gone: p.gone, Keep: poolsKept}
	if q.back {
		// What is given back may be another's as soon as the store learns of it.
		p.out -= p.held
		p.held = 0
	} else {
		request.Want = max(1, 2*p.since, p.waiting)
	}
	if p.exclusive {
		p.held, p.exclusive = 0, r.alone()
	}
	request.Hold = p.held
	part := int64(1)
	if p.width == Month {
		part = monthShare
		request.Want = max(request.Want, 1000, p.limit/monthShare)
		if q.back {
			request.Want = 0
		}
		request.Keep = time.Until(p.ends) + monthKept
		request.Admitted = []Count{{Bucket: 0, Admitted: p.count}}
	} else {
		request.Span = time.Minute + windowSlack
		p.prune(now)
		for _, l := range p.log {
			request.Admitted = append(request.Admitted, Count{Bucket: l.bucket, Admitted: l.n})
		}
	}
	request.Share = r.of(p.limit, now) / part
	for _, o := range r.others {
		share := int64(0)
		if o.Share > 0 {
			share = p.limit / int64(o.Share) / part
		}
		request.Others = append(request.Others, Other{ID: o.ID, Share: share, Silent: o.silent, Left: o.Left, Since: time.Duration(now - o.leftAt)})
	}
	if !p.inside {
		p.inside, p.entered, p.reported, p.out, p.known = true, now, now, 0, nil
	}
	p.dirty, p.since, p.sent = false, 0, now
	return request
}

// ask asks a pool and takes up its answer.
func (s *leaseManager) ask(p *bucket, sent int64, q LeaseRequest) {
	ctx, cancel := context.WithTimeout(context.Background(), askPatience)
	defer cancel()
	answer, err := s.store.Acquire(ctx, q)
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.rouse()
	now := s.clock()
	p.asking = false
	if err != nil {
		p.notUntil = now + int64(askAgain)
		s.mark(p)
		return
	}
	if answer.Left {
		p.inside, p.exclusive, p.held, p.out, p.granted = false, false, 0, 0, 0
		return
	}
	p.reported, p.out = sent, q.Hold+answer.Grant
	p.held = max(0, p.held+answer.Grant)
	p.exclusive, p.gone, p.othersUsed, p.elsewhere = answer.Exclusive, max(p.gone, answer.Gone), answer.Used, answer.Elsewhere
	p.countReported = 0
	if p.width == Month {
		p.countReported = q.Admitted[0].Admitted
	}
	if answer.Grant > 0 {
		p.granted = answer.Grant
	}
	p.learn(q, answer, now)
	if answer.Grant > 0 || q.Want == 0 || answer.Exclusive {
		return
	}
	p.granted = 0
	p.notUntil = now + int64(askAgain)
	if answer.Elsewhere > 0 {
		s.recall(p)
	}
}

// learn keeps what all have admitted, in the limiter's time and none of it too early.
func (p *bucket) learn(q LeaseRequest, a LeaseAnswer, now int64) {
	p.known, p.others = p.known[:0], p.others[:0]
	if p.width == Month {
		return
	}
	early := a.Now*1e6 - now
	for _, second := range a.Seconds {
		p.others = append(p.others, aged{second.Bucket*int64(time.Second) - early, second.Admitted})
	}
	p.known = append(p.known, p.others...)
	for _, c := range q.Admitted {
		p.known = append(p.known, aged{(c.Bucket+1)*int64(p.width) - early, c.Admitted})
	}
}

// stand reports how much of a limit all are known to have used, and when that becomes less.
func (p *bucket) stand(now int64) (used, frees int64) {
	if p.width == Month {
		return p.othersUsed + p.count, now
	}
	used, frees = int64(p.own.used(now)), math.MaxInt64
	if used > 0 {
		frees = p.own.frees(now)
	}
	for _, o := range p.others {
		if o.end > now-minute {
			used += o.n
			frees = min(frees, o.end+minute)
		}
	}
	if frees == math.MaxInt64 {
		frees = now
	}
	return used, frees
}

// undo takes back an admission.
func (s *leaseManager) undo(t taken) {
	p, at := t.pool, t.at
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.width == Month {
		p.count = max(0, p.count-1)
	} else {
		p.own.undo(at)
		i := slices.IndexFunc(p.log, func(l logged) bool { return l.first <= at && at <= l.last && l.n > 0 })
		if i < 0 {
			return
		}
		p.log[i].n--
	}
	if !p.inside {
		return
	}
	if !p.exclusive {
		p.held++
		if at < p.reported {
			p.out++
		}
	}
	s.mark(p)
}

// counts is one limit that a request counts in.
type counts struct {
	*bucket
	limit int64
}

func (s *leaseManager) limits(budget string, plan *Plan, class Class, wall time.Time) []counts {
	list := make([]counts, 0, 3)
	add := func(scope string, limit int64) {
		if limit > 0 {
			list = append(list, counts{s.bucket(poolName(budget, scope, monthOf(wall)), limit), limit})
		}
	}
	// A request counts when it is admitted to the last: the shortest window, whose limit is the tightest.
	add(ScopeMonth, plan.PerMonth)
	if class == Charts {
		add(ScopeCharts, int64(plan.ChartsPerMinute))
	}
	add(ScopeMinute, int64(plan.PerMinute))
	return list
}

// judge is Limiter.judge over all replicas.
func (s *leaseManager) judge(budget string, plan *Plan, class Class, wall time.Time, count bool) Decision {
	list := s.limits(budget, plan, class, wall)
	v := Decision{OK: true, Remaining: -1}
	if count {
		until := s.clock() + int64(admitPatience)
		for i, c := range list {
			t, ok := s.take(c.bucket, c.limit, until)
			if !ok {
				s.undoAll(v)
				v.OK, v.Scope, v.taken = false, c.scope, nil
				break
			}
			list[i].bucket = t.pool
			v.taken = append(v.taken, t)
		}
	}
	now := s.clock()
	for _, c := range list {
		c.mu.Lock()
		used, frees := c.stand(now)
		c.mu.Unlock()
		reset := wall.Add(time.Duration(frees - now))
		if c.width == Month {
			reset = c.ends
		}
		left := max(0, c.limit-used)
		if !v.OK && c.scope == v.Scope {
			v.Limit, v.Remaining, v.Reset, v.RetryAfter = c.limit, 0, reset, WholeSeconds(reset.Sub(wall))
			return v
		}
		if v.OK && (v.Remaining < 0 || left < v.Remaining) {
			v.Limit, v.Remaining, v.Reset = c.limit, left, reset
		}
	}
	v.Remaining = max(0, v.Remaining)
	return v
}

// undoAll takes back what a verdict admitted.
func (s *leaseManager) undoAll(v Decision) {
	for _, t := range v.taken {
		s.undo(t)
	}
}
