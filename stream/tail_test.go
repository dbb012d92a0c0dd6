package stream_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// seen collects what a tail hands on.
type seen struct {
	mu      sync.Mutex
	records []stream.TailRecord
}

func (s *seen) take(rec stream.TailRecord) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records = append(s.records, rec)
	return nil
}

// wait returns the records once there are n of them.
func (s *seen) wait(t *testing.T, n int) []stream.TailRecord {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		s.mu.Lock()
		records := append([]stream.TailRecord(nil), s.records...)
		s.mu.Unlock()
		if len(records) >= n {
			return records
		}
		if time.Now().After(deadline) {
			t.Fatalf("after a minute the tail handed on %d records, want %d", len(records), n)
		}
	}
}

// writer makes prices.v1 on a broker and writes pulses with marks into it.
type writer struct {
	t      *testing.T
	client *kgo.Client
}

func newWriter(t *testing.T, addr string, partitions int32) *writer {
	t.Helper()
	client, err := stream.Config{Brokers: []string{addr}, ClientID: "test"}.NewProducer()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	if partitions > 0 {
		if _, err := kadm.NewClient(client).CreateTopic(context.Background(), partitions, 1, nil, schemas.TopicPrices); err != nil {
			t.Fatal(err)
		}
	}
	return &writer{t, client}
}

func (w *writer) write(partition int32, at time.Time, mark *eventsv1.Mark) {
	w.t.Helper()
	rec := &eventsv1.PriceRecord{Mark: mark, Body: &eventsv1.PriceRecord_Pulse{Pulse: &eventsv1.Pulse{Now: at.UnixNano()}}}
	value, err := rec.MarshalVT()
	if err != nil {
		w.t.Fatal(err)
	}
	w.writeBytes(partition, at, value)
}

func (w *writer) writeBytes(partition int32, at time.Time, value []byte) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	record := &kgo.Record{Topic: schemas.TopicPrices, Partition: partition, Value: value, Timestamp: at}
	if err := w.client.ProduceSync(ctx, record).FirstErr(); err != nil {
		w.t.Fatalf("writing: %v", err)
	}
}

// run starts a tail and stops it at the test's end.
func run(t *testing.T, cfg stream.TailConfig) (*stream.Tail, *seen) {
	t.Helper()
	tail, s := stream.NewTail(cfg), &seen{}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- tail.Run(ctx, s.take) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("the tail ended with %v, want the cancellation", err)
		}
	})
	return tail, s
}

func caughtUp(t *testing.T, tail *stream.Tail) {
	t.Helper()
	select {
	case <-tail.CaughtUp():
	case <-time.After(time.Minute):
		t.Fatalf("not caught up after a minute: %s", tail.Waiting())
	}
	if why := tail.Waiting(); why != "" {
		t.Errorf("caught up, but waiting: %s", why)
	}
}

var tailEpoch = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)

func TestTailHandsOnEachMarkOnce(t *testing.T) {
	streamtest.Backends(t, func(t *testing.T, addr string) {
		w := newWriter(t, addr, 3)
		mark := func(origin int32, offset int64, index uint32) *eventsv1.Mark {
			return &eventsv1.Mark{Partition: origin, Offset: offset, Index: index}
		}
		// A duplicate of a record, one below it, and the same mark of another origin.
		for _, m := range []*eventsv1.Mark{mark(0, 5, 0), mark(0, 5, 1), mark(0, 5, 1), mark(0, 4, 9), mark(1, 5, 1), mark(0, 6, 0)} {
			w.write(1, tailEpoch, m)
		}
		w.writeBytes(1, tailEpoch, []byte("no protobuf \xff\xff"))
		w.write(2, tailEpoch, mark(0, 5, 1))
		tail, s := run(t, stream.TailConfig{Brokers: []string{addr}, Topic: schemas.TopicPrices,
			Start: map[int32]stream.TailStart{2: {Offset: 0, Marks: []*eventsv1.Mark{mark(0, 5, 1)}}}})
		caughtUp(t, tail)
		w.write(2, tailEpoch, mark(0, 5, 2))
		got := map[string]bool{}
		for _, rec := range s.wait(t, 5) {
			m := rec.Marked.GetMark()
			got[fmt.Sprintf("%d: %d %d/%d", rec.Partition, m.Partition, m.Offset, m.Index)] = true
		}
		for _, want := range []string{"1: 0 5/0", "1: 0 5/1", "1: 1 5/1", "1: 0 6/0", "2: 0 5/2"} {
			if !got[want] {
				t.Errorf("handed on %v, lacks %s", got, want)
			}
		}
		if repeated, undecodable := tail.Dropped(); repeated != 3 || undecodable != 1 {
			t.Errorf("dropped %d repeated and %d undecodable records, want 3 and 1", repeated, undecodable)
		}
	})
}

func TestTailBeginsAtItsGivenOffset(t *testing.T) {
	streamtest.Backends(t, func(t *testing.T, addr string) {
		w := newWriter(t, addr, 3)
		for i := range int64(10) {
			for p := range int32(2) {
				w.write(p, tailEpoch.Add(time.Duration(i)*time.Minute), &eventsv1.Mark{Offset: i})
			}
		}
		_, s := run(t, stream.TailConfig{Brokers: []string{addr}, Topic: schemas.TopicPrices, Rewind: 5 * time.Minute,
			Start: map[int32]stream.TailStart{0: {Offset: 8}}})
		offsets := map[int32][]int64{}
		for _, rec := range s.wait(t, 8) {
			offsets[rec.Partition] = append(offsets[rec.Partition], rec.Offset)
		}
		if got, want := fmt.Sprint(offsets), "map[0:[8 9] 1:[4 5 6 7 8 9]]"; got != want {
			t.Errorf("got %s, want %s: partition 0 from offset 8, 1 from five minutes before its newest", got, want)
		}
	})
}

func TestTailRefusesAPositionOfAnotherLog(t *testing.T) {
	addr := streamtest.Kfake(t)
	newWriter(t, addr, 1).write(0, tailEpoch, &eventsv1.Mark{})
	tail := stream.NewTail(stream.TailConfig{Brokers: []string{addr}, Topic: schemas.TopicPrices, Start: map[int32]stream.TailStart{0: {Offset: 2}}})
	var past *stream.PastEndError
	if err := tail.Run(context.Background(), (&seen{}).take); !errors.As(err, &past) || past.End != 1 {
		t.Errorf("got %v, want that 2 lies behind the end 1", err)
	}
}

func TestTailKeepsItsPlaceThroughALossOfTheBroker(t *testing.T) {
	dir := t.TempDir()
	port, err := streamtest.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	start := func() *kfake.Cluster {
		cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.DataDir(dir), kfake.Ports(port))
		if err != nil {
			t.Fatalf("starting the broker: %v", err)
		}
		return cluster
	}
	cluster := start()
	addr := cluster.ListenAddrs()[0]
	w := newWriter(t, addr, 1)
	tail, s := run(t, stream.TailConfig{Brokers: []string{addr}, Topic: schemas.TopicPrices})
	caughtUp(t, tail)
	const rounds, each = 3, 20
	for round := range rounds {
		for i := range each {
			w.write(0, tailEpoch, &eventsv1.Mark{Offset: int64(round*each + i)})
		}
		if round == 1 {
			s.wait(t, 2*each) // once with all of it read, once with the rest still ahead
		}
		cluster.Close()
		cluster = start()
	}
	t.Cleanup(cluster.Close)
	for i, rec := range s.wait(t, rounds*each) {
		if rec.Offset != int64(i) {
			t.Fatalf("record %d has offset %d, want each once and in order", i, rec.Offset)
		}
	}
}

func TestTailStopsAtAnErrorOfItsHandler(t *testing.T) {
	addr := streamtest.Kfake(t)
	newWriter(t, addr, 1).write(0, tailEpoch, &eventsv1.Mark{})
	broken := errors.New("broken")
	tail := stream.NewTail(stream.TailConfig{Brokers: []string{addr}, Topic: schemas.TopicPrices})
	if err := tail.Run(context.Background(), func(stream.TailRecord) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("got %v, want the handler's error", err)
	}
}
