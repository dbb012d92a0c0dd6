package limits

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/redis/go-redis/v9"
)

// line is a replica's way to the store.
type line struct {
	LimitStore
	cut    atomic.Bool // every call fails at once
	frozen atomic.Bool // every call is answered when nobody waits any more
}

var errCut = errors.New("the line is cut")

func (l *line) Heartbeat(ctx context.Context, b Heartbeat) (Replicas, error) {
	return over(ctx, l, func(ctx context.Context) (Replicas, error) { return l.LimitStore.Heartbeat(ctx, b) })
}

func (l *line) Acquire(ctx context.Context, q LeaseRequest) (LeaseAnswer, error) {
	return over(ctx, l, func(ctx context.Context) (LeaseAnswer, error) { return l.LimitStore.Acquire(ctx, q) })
}

func over[A any](ctx context.Context, l *line, call func(context.Context) (A, error)) (answer A, err error) {
	switch {
	case l.cut.Load():
		return answer, errCut
	case l.frozen.Load():
		<-ctx.Done()
		go func() { // as a store that wakes up answers what it finds
			for l.frozen.Load() {
				time.Sleep(time.Second)
			}
			_, _ = call(context.Background())
		}()
		return answer, ctx.Err()
	}
	return call(ctx)
}

// fleet is some replicas, and the log of what they admitted and refused.
type fleet struct {
	t        testing.TB
	store    LimitStore
	replicas []*replica

	mu       sync.Mutex
	admitted []span
	refused  []time.Time
}

// span is when a request came and when it was admitted.
type span struct{ came, at time.Time }

type replica struct {
	*Limiter
	line *line
	stop func()
}

// newFleet begins replicas over a store.
func newFleet(t testing.TB, store LimitStore, n int) *fleet {
	f := &fleet{t: t, store: store}
	t.Cleanup(func() {
		for _, r := range f.replicas {
			r.line.frozen.Store(false)
			r.stop()
		}
		time.Sleep(2 * time.Second) // for calls whose answers nobody waits for
	})
	for range n {
		f.begin()
	}
	return f
}

// scripted is the real store in the bubble of a test.
func scripted(t testing.TB) *LeaseStore {
	server := miniredis.NewMiniRedis()
	server.ClockTTL(true)
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379", MaxRetries: -1, Protocol: 2, DisableIdentity: true, ContextTimeoutEnabled: true,
		Dialer: func(context.Context, string, string) (net.Conn, error) { return server.Dial() }})
	t.Cleanup(func() {
		client.Close()
		server.Close()
	})
	return NewLeaseStore(client)
}

// begin starts one more replica.
func (f *fleet) begin() *replica {
	f.t.Helper()
	r := &replica{line: &line{LimitStore: f.store}}
	r.Limiter = NewSharedLimiter(time.Now, r.line, "", slog.New(slog.DiscardHandler))
	for r.Load(context.Background()) != nil {
		time.Sleep(100 * time.Millisecond)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = r.Run(ctx, slog.New(slog.DiscardHandler)) // an unreachable store is not notified of the end
	}()
	r.stop = func() { cancel(); <-done }
	f.mu.Lock()
	defer f.mu.Unlock()
	f.replicas = append(f.replicas, r)
	return r
}

// running are the replicas that take requests.
func (f *fleet) running() []*replica {
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []*replica
	for _, r := range f.replicas {
		if !r.shared.left.Load() {
			list = append(list, r)
		}
	}
	return list
}

// ask sends one request and logs what became of it.
func (f *fleet) ask(r *replica, budget string, plan *Plan, class Class) bool {
	came := time.Now()
	v := r.Admit(budget, plan, class, came)
	f.mu.Lock()
	defer f.mu.Unlock()
	if v.OK {
		f.admitted = append(f.admitted, span{came, time.Now()})
	} else {
		f.refused = append(f.refused, time.Now())
	}
	return v.OK
}

// load has clients ask random replicas, so often that all together make a rate a minute, until a time has passed.
func (f *fleet) loadAll(random *rand.Rand, clients int, rate float64, plan *Plan, length time.Duration) {
	f.load(random, nil, clients, rate, plan, length)
}

func (f *fleet) load(random *rand.Rand, to []*replica, clients int, rate float64, plan *Plan, length time.Duration) {
	var all sync.WaitGroup
	end := time.Now().Add(length)
	for range clients {
		own := rand.New(rand.NewPCG(random.Uint64(), 1))
		all.Go(func() {
			for {
				time.Sleep(time.Duration(own.ExpFloat64() * float64(clients) / rate * float64(time.Minute)))
				if !time.Now().Before(end) {
					return
				}
				asked := to
				if asked == nil {
					asked = f.running()
				}
				f.ask(asked[own.IntN(len(asked))], "b", plan, Plain)
			}
		})
	}
	all.Wait()
}

// neverOver fails if more than a limit was admitted within any 60 seconds, by when requests came or were admitted.
func (f *fleet) neverOver(limit int) {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, of := range map[string]func(span) time.Time{"came": func(s span) time.Time { return s.came }, "admitted": func(s span) time.Time { return s.at }} {
		times := make([]time.Time, len(f.admitted))
		for i, s := range f.admitted {
			times[i] = of(s)
		}
		slices.SortFunc(times, time.Time.Compare)
		for i := limit; i < len(times); i++ {
			if within := times[i].Sub(times[i-limit]); within < time.Minute {
				f.t.Fatalf("more than %d within 60 s by when they %s: from %s on, in %s", limit, name, times[i-limit].Format("15:04:05.000000"), within)
			}
		}
	}
}

// early counts refusals from a time on before which less than 95 % of a limit was admitted within 60 seconds, by how much
// was admitted.
func (f *fleet) early(limit int, from, to time.Time) (early int, worst int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	times := make([]time.Time, len(f.admitted))
	for i, s := range f.admitted {
		times[i] = s.at
	}
	slices.SortFunc(times, time.Time.Compare)
	count := func(until time.Time) int {
		i, _ := slices.BinarySearchFunc(times, until.Add(-time.Minute), func(a, b time.Time) int { return cmp.Compare(a.UnixNano(), b.UnixNano()+1) })
		j, _ := slices.BinarySearchFunc(times, until, func(a, b time.Time) int { return cmp.Compare(a.UnixNano(), b.UnixNano()+1) })
		return j - i
	}
	worst = limit
	for _, at := range f.refused {
		if at.Before(from) || at.After(to) {
			continue
		}
		if n := count(at); n*100 < limit*95 {
			early++
			worst = min(worst, n)
		}
	}
	return early, worst
}

// seeds are what tests draw by: the same in each run of the gate, others with -count.
var seeds atomic.Uint64

func (f *fleet) seed() *rand.Rand {
	seed := seeds.Add(1)
	f.t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// calm is what load a fleet gets whose store answers.
type calm struct {
	name     string
	replicas int
	limit    int
	// rate is of all requests a minute, in limits; burst sends each minute's at once.
	rate  float64
	burst bool
	// single sends everything to one replica.
	single bool
}

func TestReplicasAdmitTheirLimitAndNoMore(t *testing.T) {
	for _, h := range []calm{
		{"one", 1, 300, 5, false, false},
		{"one, in bursts", 1, 300, 5, true, false},
		{"a small limit", 3, 30, 5, false, false},
		{"a middling limit", 3, 300, 5, false, false},
		{"hardly too much", 3, 300, 1.1, false, false},
		{"in bursts", 3, 300, 5, true, false},
		{"one that is asked", 3, 300, 2, false, true},
		{"one that is asked in bursts", 3, 300, 5, true, true},
		{"ten and a small limit", 10, 30, 5, false, false},
		{"seconds for buckets", 3, 12_000, 1.5, false, false},
	} {
		t.Run(h.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { h.run(t) })
		})
	}
}

func (h calm) run(t *testing.T) {
	f := newFleet(t, newMemoryStore(), h.replicas)
	random := f.seed()
	if h.single {
		random = rand.New(rand.NewPCG(0, 0))
	}
	plan := &Plan{PerMinute: h.limit, PerMonth: 1_000_000}
	to := f.replicas
	if h.single {
		to = to[:1]
	}
	start := time.Now()
	for time.Since(start) < 125*time.Second {
		if !h.burst {
			f.load(random, to, 64, h.rate*float64(h.limit), plan, 125*time.Second)
			continue
		}
		var all sync.WaitGroup
		for range int(h.rate * float64(h.limit)) {
			r := to[random.IntN(len(to))]
			all.Go(func() { f.ask(r, "b", plan, Plain) })
		}
		all.Wait()
		time.Sleep(25 * time.Second)
	}
	f.neverOver(h.limit)
	early, worst := f.early(h.limit, start, time.Now())
	t.Logf("admitted %d, refused %d, of them %d early, the worst after %d", len(f.admitted), len(f.refused), early, worst)
	if most := len(f.admitted) / 20; early > most || h.replicas == 1 && early > 0 {
		t.Errorf("%d requests were refused early, the worst after %d of %d; want at most %d", early, worst, h.limit, most)
	}
}

// faultSeeds is how many times ten minutes are tried.
const faultSeeds = 2

// TestNoFaultLetsMoreThanTheLimitThrough has stores and lines fail at random, and replicas come and go.
func TestNoFaultLetsMoreThanTheLimitThrough(t *testing.T) {
	for range faultSeeds {
		synctest.Test(t, func(t *testing.T) {
			store := newMemoryStore()
			f := newFleet(t, store, 3)
			random := f.seed()
			load := rand.New(rand.NewPCG(random.Uint64(), 0))
			const limit = 300
			end := time.Now().Add(10 * time.Minute)
			var all sync.WaitGroup
			all.Go(func() {
				for time.Now().Before(end) {
					time.Sleep(time.Duration(random.IntN(20_000)) * time.Millisecond)
					f.fault(random, store)
				}
			})
			f.loadAll(load, 64, 5*limit, &Plan{PerMinute: limit, PerMonth: 1_000_000}, 10*time.Minute)
			all.Wait()
			f.neverOver(limit)
			t.Logf("admitted %d, refused %d", len(f.admitted), len(f.refused))
			if len(f.admitted) < 2*limit {
				t.Errorf("admitted %d in 10 minutes", len(f.admitted))
			}
		})
	}
}

// fault lets one thing go wrong for a while.
func (f *fleet) fault(random *rand.Rand, store *memoryStore) {
	lines := make([]*line, 0, len(f.replicas))
	for _, r := range f.running() {
		lines = append(lines, r.line)
	}
	if random.IntN(2) == 0 {
		lines = lines[:1]
	}
	while := time.Duration(random.IntN(100_000)) * time.Millisecond
	if random.IntN(2) == 0 {
		while /= 100
	}
	set := func(of func(*line) *atomic.Bool) {
		for _, l := range lines {
			of(l).Store(true)
		}
		time.Sleep(while)
		for _, l := range lines {
			of(l).Store(false)
		}
	}
	switch random.IntN(6) {
	case 0:
		f.t.Logf("%s cut %d lines for %s", now(), len(lines), while)
		set(func(l *line) *atomic.Bool { return &l.cut })
	case 1:
		f.t.Logf("%s freeze %d lines for %s", now(), len(lines), while)
		set(func(l *line) *atomic.Bool { return &l.frozen })
	case 2:
		f.t.Logf("%s flush", now())
		store.flush()
	case 3:
		f.t.Logf("%s kill for %s", now(), while)
		lines = lines[:0]
		for _, r := range f.running() {
			lines = append(lines, r.line)
		}
		store.flush()
		set(func(l *line) *atomic.Bool { return &l.cut })
	case 4:
		f.t.Logf("%s lose a pool", now())
		store.forget("{b}:minute")
	case 5:
		f.t.Logf("%s replace a replica", now())
		gone := f.running()[0]
		gone.stop()
		f.begin()
	}
}

func now() string { return time.Now().Format("04:05.000") }

func TestWithoutTheStoreEachReplicaAdmitsItsShare(t *testing.T) {
	for _, away := range []struct {
		name string
		of   func(*line) *atomic.Bool
	}{
		{"cut", func(l *line) *atomic.Bool { return &l.cut }},
		{"frozen", func(l *line) *atomic.Bool { return &l.frozen }},
	} {
		t.Run(away.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t, newMemoryStore(), 3)
				plan := &Plan{PerMinute: 300, PerMonth: 1_000_000}
				f.load(f.seed(), nil, 64, 1500, plan, 2*time.Minute)
				for _, r := range f.replicas {
					away.of(r.line).Store(true)
				}
				time.Sleep(2 * time.Second)
				for i, r := range f.replicas {
					if !f.ask(r, "another", plan, Plain) {
						t.Errorf("replica %d refuses a budget that nobody used", i)
					}
				}
				f.admitted = slices.DeleteFunc(f.admitted, func(s span) bool { return time.Since(s.came) < time.Second })
				begin := time.Now()
				f.load(f.seed(), nil, 64, 1500, plan, 3*time.Minute)
				f.neverOver(300)
				if n := f.since(begin.Add(2 * time.Minute)); n < 240 {
					t.Errorf("in the third minute %d were admitted, want almost 300", n)
				}
				if n := f.since(begin) - f.since(begin.Add(70*time.Second)); n < 150 {
					t.Errorf("in the first 70 s %d were admitted, want what left the window", n)
				}
				for _, r := range f.replicas {
					away.of(r.line).Store(false)
				}
				back := time.Now()
				f.load(f.seed(), nil, 64, 1500, plan, 3*time.Minute)
				f.neverOver(300)
				if n := f.since(back); n < 650 {
					t.Errorf("after the store came back %d were admitted in three minutes, want almost 900", n)
				}
			})
		})
	}
}

// since counts what was admitted from a time on.
func (f *fleet) since(from time.Time) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.admitted {
		if !s.at.Before(from) {
			n++
		}
	}
	return n
}

func TestAFlushedStoreClosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemoryStore()
		f := newFleet(t, store, 3)
		plan := &Plan{PerMinute: 300, PerMonth: 1000}
		f.load(f.seed(), nil, 64, 1500, plan, 100*time.Second)
		store.flush()
		begin := time.Now()
		f.load(f.seed(), nil, 64, 1500, plan, time.Minute)
		f.neverOver(300)
		if n := f.since(begin); n < 240 {
			t.Errorf("in the minute after a flush %d were admitted, want almost 300", n)
		}
		f.load(f.seed(), nil, 64, 1500, plan, 5*time.Minute)
		if n := len(f.admitted); n > 1000 || n < 950 {
			t.Errorf("of a month of 1000 requests %d were admitted", n)
		}
	})
}

// A store that is emptied after a replica ended does not know what that one admitted: a pool is closed until it counts no more, and
// no longer, however late the pool is asked.
func TestAnEndedReplicaClosesAnEmptiedPoolForItsWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemoryStore()
		f := newFleet(t, store, 3)
		plan := &Plan{PerMinute: 300, PerMonth: 1_000_000}
		f.load(f.seed(), nil, 64, 1500, plan, 100*time.Second)
		f.replicas[2].stop()
		ended := time.Now()
		time.Sleep(time.Second)
		store.flush()
		time.Sleep(40 * time.Second)
		if f.ask(f.replicas[0], "b", plan, Plain) {
			t.Errorf("a request is admitted %v after a replica ended of which nobody knows what it did", time.Since(ended))
		}
		for !f.ask(f.replicas[0], "b", plan, Plain) && time.Since(ended) < 3*time.Minute {
			time.Sleep(100 * time.Millisecond)
		}
		if after := time.Since(ended); after > 66*time.Second {
			t.Errorf("the first request is admitted %v after the replica ended, want 64 s and what an answer takes", after)
		}
		f.load(f.seed(), nil, 64, 1500, plan, 2*time.Minute)
		f.neverOver(300)
	})
}

// While nothing is received from the store, a missed replica cannot come back; that time is added to what is left of the wait for it, which
// does not begin again.
func TestAGapProlongsTheWaitForAMissedReplicaByItself(t *testing.T) {
	const second = int64(time.Second)
	missed := func(before *replicas, now int64) other {
		r := &replicas{}
		r.missed(before, now)
		if len(r.others) != 1 {
			t.Fatalf("%d replicas are counted on, want the one that is missed", len(r.others))
		}
		return r.others[0]
	}
	first := missed(&replicas{at: 100 * second, others: []other{{Member: Member{ID: "a"}}}}, 100*second)
	received := missed(&replicas{at: 110 * second, others: []other{first}}, 110*second+second/2)
	notReceived := missed(&replicas{at: 120 * second, others: []other{received}}, 123*second)
	for name, o := range map[string]struct {
		got  other
		ends int64
	}{"at first": {first, 164 * second}, "while the store is heard": {received, 164 * second}, "after a gap of 3 s": {notReceived, 167 * second}} {
		if o.got.ends != o.ends || !o.got.silent {
			t.Errorf("%s: it is counted on until %v, want until %v", name, time.Duration(o.got.ends), time.Duration(o.ends))
		}
	}
	ended := &replicas{at: 150 * second, others: []other{{Member: Member{ID: "a", Left: true}, leftAt: 90 * second}}}
	if got := missed(ended, 150*second); got.ends != 154*second {
		t.Errorf("one that ended at 90 s is counted on until %v, want until 154 s", time.Duration(got.ends))
	}
}

func TestMonthsAreSharedAndOutliveReplicas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, newMemoryStore(), 2)
		plan := &Plan{PerMonth: 100}
		for i := range 60 {
			f.ask(f.replicas[i%2], "b", plan, Plain)
		}
		for _, r := range f.replicas {
			r.stop()
		}
		next := f.begin()
		admitted := 0
		for range 100 {
			if f.ask(next, "b", plan, Plain) {
				admitted++
			}
		}
		if admitted != 40 {
			t.Errorf("after 60 of 100 a new replica admits %d, want 40", admitted)
		}
		v := next.Peek("b", plan, Plain, time.Now())
		if v.Remaining != 0 || v.Limit != 100 || !v.Reset.Equal(time.Date(2000, 2, 1, 0, 0, 0, 0, time.UTC)) {
			t.Errorf("it says %+v, want nothing left until the month ends", v)
		}
	})
}

func TestSharedChartsAndFaultsOfOurs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, newMemoryStore(), 2)
		time.Sleep(5 * time.Second)
		plan := &Plan{PerMinute: 20, PerMonth: 1000, ChartsPerMinute: 5}
		charts, all := 0, 0
		for i := range 30 {
			if f.ask(f.replicas[i%2], "b", plan, Charts) {
				charts++
			}
		}
		for i := range 60 {
			r := f.replicas[i%2]
			if v := r.Admit("b", plan, Plain, time.Now()); v.OK && i < 10 {
				r.Undo("b", plan, Plain, v)
			} else if v.OK {
				all++
			}
		}
		if charts != 5 || all != 15 {
			t.Errorf("admitted %d charts and %d others, want 5 of 5 and 15 of the 20 in all", charts, all)
		}
		if v := f.replicas[0].Admit("b", plan, Plain, time.Now()); v.OK || v.Scope != ScopeMinute || v.RetryAfter < 1 || v.RetryAfter > 61 || v.Remaining != 0 {
			t.Errorf("one more: %+v, want a refusal by the minute", v)
		}
	})
}

// TestTheScriptsShareLimits runs replicas over the scripts themselves, through a flush.
func TestTheScriptsShareLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, scripted(t), 3)
		plan := &Plan{PerMinute: 100, PerMonth: 1_000_000}
		f.load(f.seed(), nil, 64, 3000, plan, 4*time.Second)
		if n := len(f.admitted); n != 100 {
			t.Errorf("of some 200 requests 100 may pass, %d did", n)
		}
	})
}

func TestTheMemoryStoreDoesWhatTheScriptsDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scripts, memory := scripted(t), newMemoryStore()
		random := rand.New(rand.NewPCG(seeds.Add(1), 0))
		ids := []string{"a", "b", "c"}
		haves := map[string]int{}
		ctx := context.Background()
		for seq := range int64(400) {
			time.Sleep(time.Duration(random.IntN(3000)) * time.Millisecond)
			id := ids[random.IntN(3)]
			if random.IntN(4) == 0 {
				b := Heartbeat{Replica: id, Seq: seq + 1, Have: haves[id], Want: random.IntN(4), Leaves: random.IntN(20) == 0, Behind: random.IntN(5) == 0,
					Recall: []Revocation{{Pool: "{b}:minute", Limit: 50}}}
				want, wantErr := memory.Heartbeat(ctx, b)
				got, err := scripts.Heartbeat(ctx, b)
				for _, r := range []*Replicas{&want, &got} {
					slices.SortFunc(r.Members, func(a, b Member) int { return strings.Compare(a.ID, b.ID) })
				}
				if diff := gocmp.Diff(want, got); diff != "" || (wantErr == nil) != (err == nil) {
					t.Fatalf("beat %+v: want(-), got(+), %v, %v:\n%s", b, wantErr, err, diff)
				}
				haves[id] = got.Share
				continue
			}
			now := time.Now().UnixMilli()
			q := LeaseRequest{Replica: id, Pool: "{b}:minute", Seq: seq + 1, Limit: 50, Width: 100 * time.Millisecond, Span: time.Minute,
				Hold: int64(random.IntN(5)), Want: int64(random.IntN(10)), Inside: random.IntN(3) > 0, Leaves: random.IntN(10) == 0, Share: int64(random.IntN(20)), Keep: 5 * time.Minute}
			if random.IntN(4) == 0 {
				q.Pool, q.Width, q.Gone = "{b}:month:2000-01", Month, int64(random.IntN(3))
				q.Admitted = []Count{{Bucket: 0, Admitted: int64(random.IntN(10))}}
			} else {
				for range random.IntN(3) {
					q.Admitted = append(q.Admitted, Count{Bucket: (now - int64(random.IntN(80_000))) / 100, Admitted: int64(random.IntN(4))})
				}
			}
			for _, other := range ids {
				if other != id && random.IntN(5) > 0 {
					q.Others = append(q.Others, Other{ID: other, Share: int64(random.IntN(20)), Silent: random.IntN(4) == 0, Left: random.IntN(8) == 0,
						Since: time.Duration(random.IntN(80_000)) * time.Millisecond})
				}
			}
			want, wantErr := memory.Acquire(ctx, q)
			got, err := scripts.Acquire(ctx, q)
			for _, a := range []*LeaseAnswer{&want, &got} {
				slices.SortFunc(a.Seconds, func(a, b Count) int { return cmp.Compare(a.Bucket, b.Bucket) })
			}
			if diff := gocmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" || (wantErr == nil) != (err == nil) {
				t.Fatalf("request %+v: want(-), got(+), %v, %v:\n%s", q, wantErr, err, diff)
			}
		}
	})
}
