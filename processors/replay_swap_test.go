package processors_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"google.golang.org/protobuf/proto"

	"github.com/marketlog/marketlog/deploy/embedded/enginetest"
	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/history"
)

// beside opens the database of a store over a wire of its own.
func beside(t testing.TB, store *history.Store) (*history.Store, *wire) {
	t.Helper()
	_, to := enginetest.Database(t)
	way := &wire{RoundTripper: to}
	other, err := history.Open(t.Context(), history.Config{Database: store.Database(), Transport: way})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { other.Close() })
	return other, way
}

// wantEqualLog fails the test unless the live tables are what the log makes of it, and nothing is left
// of any replay.
func wantEqualLog(t testing.TB, log stream.Config, store *history.Store) processors.ReplayResult {
	t.Helper()
	r := newReplay(t, log, store, schemas.ViewAll, true)
	result := r.run(t)
	if result.Differing != 0 || result.Compared == 0 {
		t.Errorf("afterwards: got %+v %v, want no difference", result, r.differences)
	}
	if len(r.notes) > 0 {
		t.Errorf("afterwards: got %q", r.notes)
	}
	if n := leftovers(t, store); n != 0 {
		t.Errorf("afterwards: got %d tables left over", n)
	}
	return result
}

// The same log gives the same bytes, in whatever batches it is replayed and however its partitions
// wander among the live members. A failing seed is part of the failing test's name.
func TestReplaysOfTheSameLogAgree(t *testing.T) {
	for range 2 {
		seed := rand.Uint64()
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			log, producer := newLog(t)
			store, _ := newStore(t)
			script := newTickScript(t, producer, seed)
			script.write(60 + random.IntN(100))
			live(t, log, store)
			script.write(60 + random.IntN(100))
			leave := live(t, log, store) // partitions are rebalanced
			script.write(60 + random.IntN(100))
			wantEqualLog(t, log, store)
			leave()
			want := digests(t, store, "")
			for _, rows := range []int{1 + random.IntN(50), 1 + random.IntN(5000)} {
				r := newReplay(t, log, store, schemas.ViewAll, false)
				r.BatchRows = rows
				if result := r.run(t); result.Differing != 0 {
					t.Errorf("in batches of %d rows: got %+v %v", rows, result, r.differences)
				}
				if got := digests(t, store, ""); !slices.Equal(got, want) {
					t.Errorf("in batches of %d rows: got digests %x, want %x", rows, got, want)
				}
			}
		})
	}
}

// While live writes, the rebuilt tables take the place of the live ones again and again.
func TestSwapUnderWritesLosesNothing(t *testing.T) {
	log, producer := newLog(t)
	store, _ := newStore(t)
	script := newTickScript(t, producer, 3)
	script.write(200)
	live(t, log, store)
	var enough atomic.Bool
	writing := make(chan struct{})
	go func() {
		defer close(writing)
		for !enough.Load() {
			script.write(3)
			time.Sleep(100 * time.Millisecond) // paced, so that the replays see many states of the log
		}
	}()
	replay := func(view string, verify bool) *replayer {
		r := newReplay(t, log, store, view, verify)
		r.Rejoin = func(tick *eventsv1.ResolvedTick, _ int64) *eventsv1.ResolvedTick { return tick }
		return r
	}
	for _, view := range []string{schemas.ViewAll, schemas.ViewTicks, schemas.ViewPrices, schemas.ViewCandles, schemas.ViewTicks, schemas.ViewAll} {
		r := replay(view, false)
		if result := r.run(t); result.Differing != 0 {
			t.Errorf("%s: got %+v %v", view, result, r.differences)
		}
	}
	enough.Store(true)
	<-writing
	if result := wantEqualLog(t, log, store); result.Compared < 1000 {
		t.Errorf("got %+v, want at least the rows of before", result)
	}
	ticks := replay(schemas.ViewTicks, true)
	if result := ticks.run(t); result.Differing != 0 || result.Compared < 1000 {
		t.Errorf("ticks afterwards: got %+v %v, want at least those of before and no difference", result, ticks.differences)
	}
}

// errKilled is how a test ends a replay as a kill would: nothing after it reaches the store.
var errKilled = errors.New("killed")

// killAt lets a wire make n statements and none after them; late, the last takes effect but is not
// answered.
func killAt(way *wire, n int64, late bool) {
	var made atomic.Int64
	before := func(*http.Request) error {
		if m := made.Add(1); m > n || m == n && !late {
			return errKilled
		}
		return nil
	}
	after := func(*http.Request) error {
		if made.Load() >= n {
			return errKilled
		}
		return nil
	}
	way.before.Store(&before)
	way.after.Store(&after)
}

func revive(way *wire) {
	way.before.Store(nil)
	way.after.Store(nil)
}

func TestKilledReplayIsTakenUpOrGivenUp(t *testing.T) {
	log, producer := newLog(t)
	store, _ := newStore(t)
	script := newTickScript(t, producer, 4)
	script.write(250)
	live(t, log, store)
	wantEqualLog(t, log, store)
	dying, way := beside(t, store)

	var statements atomic.Int64
	counting := func(*http.Request) error { statements.Add(1); return nil }
	way.before.Store(&counting)
	whole := newReplay(t, log, dying, schemas.ViewAll, false)
	whole.BatchRows = 400
	whole.run(t)
	revive(way)
	all := statements.Load()
	t.Logf("a replay makes %d statements", all)

	random := rand.New(rand.NewPCG(4, 4))
	const kills = 15 // about so many, spread over all statements
	for n := int64(1); n <= all; n += 1 + random.Int64N(max(1, 2*all/kills)) {
		late, abort := random.IntN(2) == 0, random.IntN(3) == 0
		name := fmt.Sprintf("statement=%d late=%v abort=%v", n, late, abort)
		ctx, cancel := context.WithCancel(t.Context())
		killAt(way, n, late)
		r := newReplay(t, log, dying, schemas.ViewAll, false)
		r.BatchRows = 400
		killed := make(chan error, 1)
		go func() { _, err := r.Run(ctx); killed <- err }()
		waitForKill(t, way, killed, cancel)
		revive(way)
		script.write(2)
		if abort {
			if _, _, err := newReplay(t, log, store, "", false).Abort(t.Context()); err != nil {
				t.Fatalf("%s: aborting: %v", name, err)
			}
		} else {
			again := newReplay(t, log, store, schemas.ViewAll, false)
			if result := again.run(t); result.Differing != 0 {
				t.Fatalf("%s: got %+v %v", name, result, again.differences)
			}
		}
		if n := leftovers(t, store); n != 0 {
			t.Fatalf("%s: got %d tables left over", name, n)
		}
	}
	wantEqualLog(t, log, store)
}

// waitForKill ends the replay's context once its store is cut off: where an insert is tried again for
// ever, a killed process would not.
func waitForKill(t testing.TB, way *wire, killed <-chan error, cancel func()) {
	t.Helper()
	defer cancel()
	cut := make(chan struct{}, 1)
	before := *way.before.Load()
	watched := func(r *http.Request) error {
		err := before(r)
		if err != nil {
			select {
			case cut <- struct{}{}:
			default:
			}
		}
		return err
	}
	way.before.Store(&watched)
	select {
	case <-killed:
		return
	case <-cut:
		cancel()
	case <-time.After(time.Minute):
		t.Fatal("the replay neither met its end nor the cut")
	}
	<-killed
}

// What the log no longer holds is neither compared nor lost.
func TestRowsOlderThanTheLogAreCarriedOver(t *testing.T) {
	log, producer := newLog(t)
	store, _ := newStore(t)
	script := newTickScript(t, producer, 5)
	script.write(700)
	live(t, log, store)
	all := wantEqualLog(t, log, store)
	want := digests(t, store, "")

	from, to := script.second.Add(-200*time.Second), script.second.Add(-100*time.Second)
	for _, verify := range []bool{true, false} {
		r := newReplay(t, log, store, schemas.ViewAll, verify)
		r.From, r.To = from, to
		result := r.run(t)
		if result.Differing != 0 || result.Compared < all.Compared/10 || result.Compared+result.Outside != all.Compared {
			t.Errorf("from and to, verify %v: got %+v %v, want %d rows in all", verify, result, r.differences, all.Compared)
		}
		if got := digests(t, store, ""); !slices.Equal(got, want) {
			t.Errorf("from and to, verify %v: got digests %x, want %x", verify, got, want)
		}
	}

	admin := kadm.NewClient(producer)
	ends, err := admin.ListEndOffsets(t.Context(), schemas.TopicTicks)
	if err != nil {
		t.Fatal(err)
	}
	cut := ends.Offsets()
	for topic, partitions := range cut {
		for p, at := range partitions {
			at.At = at.At * 3 / 7
			cut[topic][p] = at
		}
	}
	if _, err := admin.DeleteRecords(t.Context(), cut); err != nil {
		t.Fatal(err)
	}
	for _, verify := range []bool{true, false, true} {
		r := newReplay(t, log, store, schemas.ViewAll, verify)
		result := r.run(t)
		if result.Differing != 0 || result.Compared < all.Compared/10 || result.Outside < all.Compared/3 || result.Compared+result.Outside != all.Compared {
			t.Errorf("cut, verify %v: got %+v %v, want %d rows in all", verify, result, r.differences, all.Compared)
		}
		if got := digests(t, store, ""); !slices.Equal(got, want) {
			t.Errorf("cut, verify %v: got digests %x, want %x", verify, got, want)
		}
	}
	if n := leftovers(t, store); n != 0 {
		t.Errorf("got %d tables left over", n)
	}
}

// One replay that is unfinished is in the way of another.
func TestUnfinishedReplayIsNamed(t *testing.T) {
	log, producer := newLog(t)
	store, _ := newStore(t)
	newTickScript(t, producer, 6).write(100)
	live(t, log, store)
	dying, way := beside(t, store)
	killAt(way, 12, false)
	ctx, cancel := context.WithCancel(t.Context())
	r := newReplay(t, log, dying, schemas.ViewPrices, false)
	killed := make(chan error, 1)
	go func() { _, err := r.Run(ctx); killed <- err }()
	waitForKill(t, way, killed, cancel)
	revive(way)
	_, err := newReplay(t, log, store, schemas.ViewAll, true).Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "view prices is unfinished") {
		t.Errorf("got %v, want that the other is unfinished", err)
	}
	view, finished, err := newReplay(t, log, store, "", false).Abort(t.Context())
	if err != nil || view != schemas.ViewPrices || finished {
		t.Errorf("aborting: got %q, %v, %v", view, finished, err)
	}
	wantEqualLog(t, log, store)
}

// Another coin table shows in the ticks, by kind, and is swapped in; the log stays as it is.
func TestTicksAreResolvedAnew(t *testing.T) {
	log, producer := newLog(t)
	store, _ := newStore(t)
	newTickScript(t, producer, 7).write(120)
	live(t, log, store)
	replay := func(verify bool, rejoin func(*eventsv1.ResolvedTick, int64) *eventsv1.ResolvedTick) (processors.ReplayResult, []processors.ReplayChange) {
		t.Helper()
		r := newReplay(t, log, store, schemas.ViewTicks, verify)
		r.Rejoin = rejoin
		var changes []processors.ReplayChange
		emit := r.Emit
		r.Emit = func(line any) error {
			if c, ok := line.(*processors.ReplayChange); ok {
				changes = append(changes, *c)
			}
			return emit(line)
		}
		return r.run(t), changes
	}
	same := func(tick *eventsv1.ResolvedTick, _ int64) *eventsv1.ResolvedTick { return tick }
	other := func(tick *eventsv1.ResolvedTick, _ int64) *eventsv1.ResolvedTick {
		if tick.CoinId != "monero" {
			return tick
		}
		tick = proto.Clone(tick).(*eventsv1.ResolvedTick)
		tick.CoinId = "wownero"
		return tick
	}
	if result, changes := replay(true, same); result.Differing != 0 || result.Compared == 0 || changes != nil {
		t.Fatalf("the same coin table: got %+v %v", result, changes)
	}
	ticks := count(t, store, "SELECT count() FROM ticks FINAL WHERE coin_id = 'monero'")
	for _, verify := range []bool{true, false} {
		result, changes := replay(verify, other)
		if result.Differing != int64(ticks) || len(changes) != 1 || changes[0] != (processors.ReplayChange{Change: "coin to another coin", Ticks: int64(ticks)}) {
			t.Errorf("another coin table, verify %v: got %+v %v, want %d ticks of another coin", verify, result, changes, ticks)
		}
	}
	if n := count(t, store, "SELECT count() FROM ticks FINAL WHERE coin_id = 'wownero'"); n != ticks {
		t.Errorf("after the swap: got %d ticks of the other coin, want %d", n, ticks)
	}
	if result, _ := replay(true, other); result.Differing != 0 {
		t.Errorf("after the swap: got %+v, want no difference", result)
	}
}

func BenchmarkReplay_500Coins15Venues(b *testing.B) {
	log, producer := newLog(b)
	store, _ := newStore(b)
	script := newTickScript(b, producer, 8)
	script.coins, script.venues, script.rate = nil, nil, 4000
	for i := range 500 {
		script.coins = append(script.coins, fmt.Sprintf("coin%d", i))
	}
	for i := range 15 {
		script.venues = append(script.venues, fmt.Sprintf("venue%d", i))
	}
	script.write(90)
	live(b, log, store)
	wantEqualLog(b, log, store)
	var records, took float64
	for b.Loop() {
		r := newReplay(b, log, store, schemas.ViewAll, true)
		var last processors.ReplayProgress
		r.Emit = func(line any) error {
			if p, ok := line.(*processors.ReplayProgress); ok && p.Step == "folding" {
				last = *p
			}
			return nil
		}
		r.run(b)
		records += float64(last.Done)
		took += float64(last.Done) / last.Rate
	}
	b.ReportMetric(records/took, "records/s")
}
