package processors_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// Of eight partitions one holds all ticks, the others clocks only: they are read in a moment. When the
// backlog is worked off, the clocks of those still come with the ticks of that one, so that these count.
func TestBacklogIsFoldedSideBySide(t *testing.T) {
	const seconds, ticks = 600, 100 // a second
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cfg := stream.Config{Brokers: []string{streamtest.Kfake(t)}, ClientID: "test"}
	b := openBroker(ctx, t, cfg)
	last := map[int32]int64{}
	for p := range int32(rawPartitions) {
		var records []*kgo.Record
		for second := range seconds {
			at := scriptStart.Add(time.Duration(second) * time.Second).UnixNano()
			for i := range ticks * int(1-min(p, 1)) {
				records = append(records, rawTick(t, p, at, uint64(second*ticks+i)))
			}
			records = append(records, rawClock(t, p, at))
		}
		b.write(ctx, t, records)
		last[p] = int64(len(records)) - 1
	}
	runCtx, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		unit := resolveUnit()
		ended <- (&processors.Runner{Unit: unit, Log: cfg, Logger: slog.New(slog.DiscardHandler), Pace: processors.NewPace()}).Run(runCtx)
	}()
	b.poll(ctx, t, "the last pulse of every partition", func() bool {
		applied, err := stream.LastApplied(ctx, cfg, schemas.TopicTicks, []int32{0}, rawPartitions)
		if err != nil {
			t.Fatal(err)
		}
		for p := range int32(rawPartitions) {
			if applied[0][p].Mark.GetOffset() < last[p] {
				return false
			}
		}
		return true
	})
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	seen, furthest := 0, time.Duration(0)
	for p := range int32(rawPartitions) {
		now := int64(0)
		for _, rec := range b.read(ctx, t, place{schemas.TopicTicks, p}) {
			record := decode(rec).(*eventsv1.ResolvedRecord)
			now = max(now, record.GetPulse().GetNow())
			if tick := record.GetTick(); tick != nil {
				seen++
				furthest = max(furthest, time.Duration(now-tick.Tick.IngestTime))
			}
		}
	}
	if seen != seconds*ticks {
		t.Errorf("got %d ticks, want %d", seen, seconds*ticks)
	}
	if want := 8 * time.Second; furthest > want {
		t.Errorf("a clock came %v before a tick, want at most %v", furthest, want)
	}
}

func rawTick(t *testing.T, partition int32, at int64, n uint64) *kgo.Record {
	t.Helper()
	id := make([]byte, len(schemas.EventID{}))
	binary.BigEndian.PutUint64(id, n)
	return rawRecord(t, partition, &eventsv1.RawRecord{Producer: "kraken", Epoch: 1, Body: &eventsv1.RawRecord_Tick{Tick: &eventsv1.Tick{
		Kind: eventsv1.TickKind_TICK_KIND_TRADE, Venue: "kraken", Symbol: "XBT/USD", Base: "XBT", Quote: "USD", EventId: id,
		TradeId: fmt.Sprint(n), Price: "64000.5", Size: "0.1", EventTime: at, IngestTime: at,
	}}})
}

func rawClock(t *testing.T, partition int32, at int64) *kgo.Record {
	t.Helper()
	return rawRecord(t, partition, &eventsv1.RawRecord{Producer: "kraken", Epoch: 1, Body: &eventsv1.RawRecord_Clock{Clock: &eventsv1.Clock{Time: at}}})
}

func rawRecord(t *testing.T, partition int32, record *eventsv1.RawRecord) *kgo.Record {
	t.Helper()
	value, err := record.MarshalVT()
	if err != nil {
		t.Fatal(err)
	}
	return &kgo.Record{Topic: schemas.TopicTicksRaw, Partition: partition, Value: value}
}

// A fold that does not move is waited for once; those that move are waited for as long as it takes.
func TestPaceWaitsForTheSlowAndNotForTheDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pace := processors.NewPace()
		second := func(n int) int64 { return scriptStart.Add(time.Duration(n) * time.Second).UnixNano() }
		wait := func(name string, n int) time.Duration {
			t.Helper()
			began := time.Now()
			if err := pace.Wait(t.Context(), name, second(n)); err != nil {
				t.Fatal(err)
			}
			return time.Since(began)
		}
		pace.Join("fast")
		pace.Join("slow")
		for _, name := range []string{"fast", "slow", "elsewhere"} {
			pace.Heard(name, second(0))
		}
		if got := wait("fast", 5); got != 0 {
			t.Errorf("waited %v for one that is within the slack, want 0", got)
		}
		var workers sync.WaitGroup
		workers.Go(func() {
			for n := 1; n <= 20; n++ {
				time.Sleep(2 * time.Second)
				wait("slow", n)
				pace.Heard("elsewhere", second(n))
			}
		})
		if got := wait("fast", 25); got != 40*time.Second {
			t.Errorf("waited %v for those that moved all the time, want 40s", got)
		}
		workers.Wait()
		if got := wait("fast", 31); got != 5*time.Second {
			t.Errorf("waited %v for one that does not advance, want 5s", got)
		}
		if got := wait("fast", 90); got != 0 {
			t.Errorf("waited %v for one that has long not advanced, want 0", got)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		pace.Join("slow")
		if err := pace.Wait(ctx, "fast", second(200)); err == nil {
			t.Error("a wait whose context ended returned no error")
		}
	})
}

// Whoever reads again what it has written writes nothing new meanwhile. Where what it wrote counts on, others go on ahead of it.
func TestPaceLeadsWhatIsReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pace := processors.NewPace()
		second := func(n int) int64 { return scriptStart.Add(time.Duration(n) * time.Second).UnixNano() }
		waited := func(name string, n int, written bool) time.Duration {
			t.Helper()
			began := time.Now()
			if err := pace.Step(t.Context(), name, second(n), written); err != nil {
				t.Fatal(err)
			}
			return time.Since(began)
		}
		pace.Join("rates")
		pace.Lead("rates", 30*time.Second)
		if got := waited("ticks", 1, false); got != 5*time.Second {
			t.Errorf("waited %v for one that never wrote, want 5s", got)
		}
		pace.Heard("rates", second(0))
		if got := waited("rates", -500, true); got != 0 {
			t.Errorf("what is read again waited %v for others, want 0", got)
		}
		if got := waited("ticks", 30, false); got != 0 {
			t.Errorf("waited %v within the lead, want 0", got)
		}
		if got := waited("ticks", 31, false); got != 5*time.Second {
			t.Errorf("waited %v beyond the lead, want 5s", got)
		}
		if got := waited("rates", 1, false); got != 0 {
			t.Errorf("what writes again waited %v, want 0", got)
		}
		if got := waited("ticks", 7, false); got != 5*time.Second {
			t.Errorf("waited %v for one that writes again and does not advance, want 5s", got)
		}
	})
}
