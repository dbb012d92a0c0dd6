package processors_test

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/schemas"
)

// While the ledger is being written the sinks that share it go on inserting, and what all of them have inserted by then is in
// one insert. When they have ended, the ledger holds everything.
func TestSinksShareOneWriteOfTheLedger(t *testing.T) {
	log, producer := newLog(t)
	store, way := newStore(t)
	metrics := processors.NewMetrics(prometheus.NewRegistry())
	prices, ticks := newScript(t, schemas.TopicPrices, producer), newScript(t, schemas.TopicTicks, producer)
	random := rand.New(rand.NewPCG(6, 6))
	more := func(from int64) {
		prices.somePrices(random, 300)
		for i := range int64(300) {
			ticks.write(int32(i%8), tick(int32(i%8), from+i, "bitcoin"), true)
		}
		ticks.flush()
	}
	begun, release := make(chan struct{}), make(chan struct{})
	free := sync.OnceFunc(func() { close(release) })
	defer free() // also if the test fails: the store is closed after it
	var writes atomic.Int32
	hold := func(r *http.Request) error {
		if !strings.HasPrefix(r.URL.Query().Get("query"), "INSERT INTO ledger") {
			return nil
		}
		if writes.Add(1) == 1 {
			close(begun)
		}
		<-release
		return nil
	}
	more(0)
	ledger := processors.NewLedger(store, quiet(t))
	run := func(s *script) func() error {
		return start(t, &processors.Sink{Topic: s.topic, Log: log, History: store, Ledger: ledger, Metrics: metrics, Logger: quiet(t)})
	}
	stops := []func() error{run(prices), run(ticks)}
	prices.settled(store)
	ticks.settled(store)
	way.before.Store(&hold)
	more(300)
	<-begun
	for n := range int64(3) {
		more(600 + 300*n)
		for _, s := range []*script{prices, ticks} {
			s.inserted(metrics)
			if progress, err := store.Progress(t.Context(), s.topic, 0); err != nil || progress[0].Next == s.offsets[0] {
				t.Fatalf("%s: got the ledger %+v, %v, while none is written", s.topic, progress[0], err)
			}
		}
	}
	if n := writes.Load(); n != 1 {
		t.Errorf("got %d writes of the ledger at a time, want 1", n)
	}
	free()
	prices.settled(store)
	ticks.settled(store)
	if n := writes.Load(); n != 2 {
		t.Errorf("of some eight batches of two sinks: got %d writes of the ledger, want the one that was held and one for all others", n)
	}
	way.before.Store(nil)
	more(1500)
	for _, s := range []*script{prices, ticks} {
		s.inserted(metrics)
	}
	for _, stop := range stops {
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range []*script{prices, ticks} {
		progress, err := store.Progress(t.Context(), s.topic, 0)
		if err != nil {
			t.Fatal(err)
		}
		for p, next := range s.offsets {
			if progress[p].Next != next {
				t.Errorf("%s, partition %d: got %d in the ledger after the end, want %d", s.topic, p, progress[p].Next, next)
			}
		}
	}
}

// A write that is refused for good ends a sink; the one that begins in its place goes on with the same ledger.
func TestALedgerThatWasRefusedIsTriedAgainByTheNextSink(t *testing.T) {
	log, producer := newLog(t)
	store, way := newStore(t)
	s := newScript(t, schemas.TopicPrices, producer)
	random := rand.New(rand.NewPCG(7, 7))
	sink := processors.Sink{
		Topic: s.topic, Log: log, History: store, Ledger: processors.NewLedger(store, quiet(t)), Logger: slog.New(slog.DiscardHandler),
	}
	s.somePrices(random, 300)
	stop := start(t, &sink)
	s.settled(store) // so that no partition begins without a row
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	s.somePrices(random, 300)
	d := &death{insert: "ledger"}
	before := d.before
	way.before.Store(&before)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := sink.Run(ctx); !errors.Is(err, errDead) {
		t.Fatalf("got %v, want %v", err, errDead)
	}
	way.before.Store(nil)
	start(t, &sink)
	s.settled(store)
	s.check(store)
}

// inserted waits until the sink of the topic has inserted what was written.
func (s *script) inserted(metrics *processors.Metrics) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	for {
		behind := false
		next := insertedOf(metrics, s.topic)
		for p, want := range s.offsets {
			behind = behind || next[p] < want
		}
		if !behind {
			return
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			s.t.Fatalf("%s: got inserted to %v, want %v", s.topic, next, s.offsets)
		}
	}
}
