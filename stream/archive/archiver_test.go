package archive_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/archive"
	"github.com/marketlog/marketlog/stream/streamtest"
)

const topic = "ticks.v1"

var rules = map[string]archive.Rule{topic: {Period: time.Minute, Bytes: 20_000}}

// produced writes records of random sizes, at most a second apart, and returns how many segments end by them.
func produced(t *testing.T, client *kgo.Client, r *rand.Rand, at *time.Time, cuts []archive.Cutter) (segments int) {
	t.Helper()
	var batch []*kgo.Record
	for range 300 {
		*at = at.Add(time.Duration(r.IntN(1000)) * time.Millisecond)
		batch = append(batch, &kgo.Record{Topic: topic, Partition: r.Int32N(2), Key: fmt.Append(nil, r.IntN(9)), Value: make([]byte, r.IntN(500)), Timestamp: *at})
	}
	if err := client.ProduceSync(t.Context(), batch...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	for _, record := range batch {
		if cuts[record.Partition].Ends(record) {
			segments++
		}
	}
	return segments
}

// TestArchiveAndBrokerAreOneLog writes, archives and deletes in turn: what is read through both is always all that was
// written, whichever archivers came and went.
func TestArchiveAndBrokerAreOneLog(t *testing.T) {
	eachStore(t, func(t *testing.T, open opener) {
		r := streamtest.Rand(t)
		cfg := stream.Config{Brokers: []string{streamtest.Kfake(t)}, ClientID: "test"}
		store, _ := open(t)
		log := cfg
		log.Archive = archive.NewLog(store, cfg, rules)
		client := newTopic(t, cfg)
		cuts := []archive.Cutter{{Rule: rules[topic]}, {Rule: rules[topic]}}
		at := time.UnixMilli(1_790_000_000_000)
		for range 4 {
			archiveUntil(t, cfg, store, produced(t, client, r, &at, cuts))
			held, _, err := cfg.Bounds(t.Context(), topic)
			if err != nil {
				t.Fatal(err)
			}
			for i, c := range checkCatalogs(t, cfg, store) {
				number := int32(i)
				var offsets kadm.Offsets
				offsets.AddOffset(topic, number, held[topic][number]+r.Int64N(c.Next()-held[topic][number]+1), -1)
				if _, err := kadm.NewClient(client).DeleteRecords(t.Context(), offsets); err != nil {
					t.Fatal(err)
				}
			}
			starts, ends, err := log.LogBounds(t.Context(), topic)
			if err != nil {
				t.Fatal(err)
			}
			for number, start := range starts[topic] {
				if start != 0 {
					t.Errorf("partition %d begins at %d", number, start)
				}
				next, end := start, ends[topic][number]
				err := stream.ReadRange(t.Context(), log, topic, number, start, end, func(r *kgo.Record) error {
					if r.Offset != next {
						t.Errorf("partition %d has %d behind %d", number, r.Offset, next-1)
					}
					next = r.Offset + 1
					return nil
				})
				if err != nil || next != end {
					t.Errorf("partition %d is read up to %d of %d: %v", number, next, end, err)
				}
			}
		}
	})
}

// archiveUntil runs an archiver until it has committed some segments, or nothing is left to archive.
func archiveUntil(t *testing.T, cfg stream.Config, store archive.Store, segments int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	enough := errors.New("enough")
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	seen := &observed{committed: func() {
		if segments--; segments == 0 {
			stop(enough)
		}
	}}
	a := archive.Archiver{Log: cfg, Store: store, Topics: rules, Schema: schemaDigest, Logger: slog.New(slog.DiscardHandler), Observer: seen}
	if err := a.Run(ctx); !errors.Is(err, enough) {
		t.Fatal(err)
	}
}

// observed is what an archiver reported.
type observed struct {
	committed func() // after each segment
	failures  int
	lost      []archive.Span
}

func (*observed) Opened(archive.Catalog)      {}
func (o *observed) Committed(archive.Segment) { o.committed() }
func (o *observed) Failed(error)              { o.failures++ }
func (o *observed) Lost(_ context.Context, last archive.Segment, next int64) error {
	o.lost = append(o.lost, archive.Span{From: last.Next, Next: next})
	return nil
}

// away is a store that fails the first times that an object is made.
type away struct {
	archive.Store
	left int
}

func (a *away) Create(ctx context.Context, name string, write func(io.Writer) error) error {
	if a.left--; a.left >= 0 {
		return syscall.ENOSPC
	}
	return a.Store.Create(ctx, name, write)
}

// TestAFullStoreIsTriedAgain lets the first attempts fail: the same run archives all once the store works, and reads nothing
// that it had read from the broker but the one segment.
func TestAFullStoreIsTriedAgain(t *testing.T) {
	r := streamtest.Rand(t)
	cfg := stream.Config{Brokers: []string{streamtest.Kfake(t)}, ClientID: "test"}
	store, _ := dir(t)
	client := newTopic(t, cfg)
	at := time.UnixMilli(1_790_000_000_000)
	cuts := []archive.Cutter{{Rule: rules[topic]}, {Rule: rules[topic]}}
	segments := produced(t, client, r, &at, cuts)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	enough := errors.New("enough")
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	seen := &observed{committed: func() {
		if segments--; segments == 0 {
			stop(enough)
		}
	}}
	a := archive.Archiver{Log: cfg, Store: &away{store, 2}, Topics: rules, Schema: schemaDigest, Logger: slog.New(slog.DiscardHandler), Observer: seen}
	if err := a.Run(ctx); !errors.Is(err, enough) {
		t.Fatal(err)
	}
	if seen.failures != 2 {
		t.Errorf("it reported %d failures, want 2", seen.failures)
	}
	checkCatalogs(t, cfg, store)
}

// TestWhatLeftTheLogUnarchivedIsReported deletes records from the broker that no segment has.
func TestWhatLeftTheLogUnarchivedIsReported(t *testing.T) {
	r := streamtest.Rand(t)
	cfg := stream.Config{Brokers: []string{streamtest.Kfake(t)}, ClientID: "test"}
	store, _ := dir(t)
	client := newTopic(t, cfg)
	at := time.UnixMilli(1_790_000_000_000)
	cuts := []archive.Cutter{{Rule: rules[topic]}, {Rule: rules[topic]}}
	archiveUntil(t, cfg, store, produced(t, client, r, &at, cuts))
	produced(t, client, r, &at, cuts) // more than a segment of each partition
	before := checkCatalogs(t, cfg, store)[0].Next()
	var offsets kadm.Offsets
	offsets.AddOffset(topic, 0, before+7, -1)
	if _, err := kadm.NewClient(client).DeleteRecords(t.Context(), offsets); err != nil {
		t.Fatal(err)
	}
	enough := errors.New("enough")
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	seen := &observed{}
	seen.committed = func() {
		if len(seen.lost) > 0 {
			stop(enough)
		}
	}
	a := archive.Archiver{Log: cfg, Store: store, Topics: rules, Schema: schemaDigest, Logger: slog.New(slog.DiscardHandler), Observer: seen}
	if err := a.Run(ctx); !errors.Is(err, enough) {
		t.Fatal(err)
	}
	if want := []archive.Span{{From: before, Next: before + 7}}; !slices.Equal(seen.lost, want) {
		t.Errorf("it reported that %v were lost, want %v", seen.lost, want)
	}
}

func newTopic(t *testing.T, cfg stream.Config) *kgo.Client {
	t.Helper()
	client, err := cfg.NewProducer()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	if _, err := kadm.NewClient(client).CreateTopic(t.Context(), 2, 1, nil, topic); err != nil {
		t.Fatal(err)
	}
	return client
}

// checkCatalogs are what the store has of both partitions, each whole.
func checkCatalogs(t *testing.T, cfg stream.Config, store archive.Store) (catalogs [2]archive.Catalog) {
	t.Helper()
	ids, err := stream.TopicIDs(t.Context(), cfg, topic)
	if err != nil {
		t.Fatal(err)
	}
	for number := range int32(2) {
		c, err := archive.Load(t.Context(), store, archive.Partition{Topic: topic, TopicID: ids[topic], Number: number})
		if err != nil || len(c.Faults)+len(c.Gaps)+len(c.Orphans) > 0 {
			t.Fatal(err, c)
		}
		catalogs[number] = c
	}
	return catalogs
}

// Offsets in the middle of the broker's log that it does not have, here those of the ends of transactions, are named exactly, so
// that a reader may go on after them.
func TestAHoleInsideTheBrokerIsNamed(t *testing.T) {
	cfg := stream.Config{Brokers: []string{streamtest.Kfake(t)}, ClientID: "test"}
	store, _ := dir(t)
	newTopic(t, cfg)
	write := func(client *kgo.Client) {
		record := &kgo.Record{Topic: topic, Partition: 0, Value: []byte("x"), Timestamp: time.UnixMilli(1_790_000_000_000)}
		if err := client.ProduceSync(t.Context(), record).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	var writers []*kgo.Client
	for n := range 2 {
		client, err := kgo.NewClient(kgo.SeedBrokers(cfg.Brokers...), kgo.TransactionalID(fmt.Sprint(n)), kgo.RecordPartitioner(kgo.ManualPartitioner()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(client.Close)
		if err := client.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		write(client)
		writers = append(writers, client)
	}
	for _, client := range writers {
		if err := client.EndTransaction(t.Context(), kgo.TryCommit); err != nil {
			t.Fatal(err)
		}
	}
	if err := writers[0].BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	write(writers[0])
	if err := writers[0].EndTransaction(t.Context(), kgo.TryCommit); err != nil {
		t.Fatal(err)
	}
	cfg.Archive = archive.NewLog(store, cfg, rules)
	var read []int64
	visit := func(rec *kgo.Record) error { read = append(read, rec.Offset); return nil }
	err := stream.ReadRange(t.Context(), cfg, topic, 0, 0, 5, visit)
	var gap *stream.OffsetGapError
	if !errors.As(err, &gap) || gap.From != 2 || gap.Next != 4 {
		t.Fatalf("read %v, %v, want a hole of 2 to 4", read, err)
	}
	if err := stream.ReadRange(t.Context(), cfg, topic, 0, gap.Next, 5, visit); err != nil || !slices.Equal(read, []int64{0, 1, 4}) {
		t.Errorf("read %v, %v, want 0, 1 and 4", read, err)
	}
}

// TestAHoleIsAnError deletes from both the archive and the broker.
func TestAGapIsAnError(t *testing.T) {
	r := streamtest.Rand(t)
	cfg := stream.Config{Brokers: []string{streamtest.Kfake(t)}, ClientID: "test"}
	store, _ := dir(t)
	client := newTopic(t, cfg)
	at := time.UnixMilli(1_790_000_000_000)
	cuts := []archive.Cutter{{Rule: rules[topic]}, {Rule: rules[topic]}}
	for range 3 { // 900 records of up to 500 bytes are more than three segments of each partition
		archiveUntil(t, cfg, store, produced(t, client, r, &at, cuts))
	}
	ids, err := stream.TopicIDs(t.Context(), cfg, topic)
	if err != nil {
		t.Fatal(err)
	}
	c, err := archive.Load(t.Context(), store, archive.Partition{Topic: topic, TopicID: ids[topic]})
	if err != nil || len(c.Segments) < 3 {
		t.Fatal(err, len(c.Segments))
	}
	gone := c.Segments[1]
	if err := errors.Join(store.Delete(t.Context(), gone.SidecarName()), store.Delete(t.Context(), gone.Data)); err != nil {
		t.Fatal(err)
	}
	var offsets kadm.Offsets
	offsets.AddOffset(topic, 0, c.Next(), -1)
	if _, err := kadm.NewClient(client).DeleteRecords(t.Context(), offsets); err != nil {
		t.Fatal(err)
	}
	cfg.Archive = archive.NewLog(store, cfg, rules)
	err = stream.ReadRange(t.Context(), cfg, topic, 0, 0, c.Next(), func(*kgo.Record) error { return nil })
	if gap := (*stream.OffsetGapError)(nil); !errors.As(err, &gap) || gap.From != gone.First {
		t.Errorf("got %v, want a hole from %d", err, gone.First)
	}
	if starts, _, err := cfg.LogBounds(t.Context(), topic); err != nil || starts[topic][0] != gone.Next {
		t.Errorf("the log begins at %d, %v, want %d: behind the hole", starts[topic][0], err, gone.Next)
	}
}
