package archive_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/archive"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// reader is a member of a group that begins at the beginning, and ends once it has read both partitions to their ends.
type reader struct {
	ends  map[int32]int64
	next  map[int32]int64
	jumps []string
	// full holds a partition back every other time that it is asked.
	full bool
}

var errRead = errors.New("all is read")

func (r *reader) Assigned(_ context.Context, partitions []int32) (map[int32]int64, error) {
	starts := map[int32]int64{}
	for _, p := range partitions {
		starts[p] = 0
	}
	return starts, nil
}

func (r *reader) Records(_ context.Context, partition int32, records []*kgo.Record) error {
	for _, rec := range records {
		if rec.Offset != r.next[partition] {
			r.jumps = append(r.jumps, fmt.Sprintf("%d: %d to %d", partition, r.next[partition], rec.Offset))
		}
		r.next[partition] = rec.Offset + 1
	}
	return nil
}

func (r *reader) Full() []int32 {
	if r.full = !r.full; r.full {
		return []int32{0}
	}
	return nil
}

func (r *reader) Due(context.Context) error {
	if r.next[0] >= r.ends[0] && r.next[1] >= r.ends[1] {
		return errRead
	}
	return nil
}
func (*reader) Lost(context.Context, []int32) {}
func (*reader) Done() map[int32]int64         { return nil }

// TestGroupsReadBehindTheBroker lets a group begin at offsets that the broker has deleted: it gets all in order, and passes over
// only what the archive lacks too.
func TestGroupsReadBehindTheBroker(t *testing.T) {
	r := streamtest.Rand(t)
	cfg := stream.Config{Brokers: []string{streamtest.Kfake(t)}, ClientID: "test"}
	store, _ := dir(t)
	client := newTopic(t, cfg)
	at := time.UnixMilli(1_790_000_000_000)
	begin := at
	cuts := []archive.Cutter{{Rule: rules[topic]}, {Rule: rules[topic]}}
	for range 3 {
		archiveUntil(t, cfg, store, produced(t, client, r, &at, cuts))
	}
	catalogs := checkCatalogs(t, cfg, store)
	var offsets kadm.Offsets
	for p, c := range catalogs {
		offsets.AddOffset(topic, int32(p), c.Next(), -1)
	}
	if _, err := kadm.NewClient(client).DeleteRecords(t.Context(), offsets); err != nil {
		t.Fatal(err)
	}
	_, ends, err := cfg.Bounds(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Archive = archive.NewLog(store, cfg, rules)
	read := func(group string) []string {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		h := &reader{ends: ends[topic], next: map[int32]int64{}}
		if err := stream.RunGroup(ctx, cfg, group, topic, h); !errors.Is(err, errRead) {
			t.Fatalf("reading as a group: %v; it came to %v of %v", err, h.next, ends[topic])
		}
		return h.jumps
	}
	if jumps := read("whole"); len(jumps) > 0 {
		t.Errorf("a group jumped over records that the archive has: %v", jumps)
	}
	from, err := cfg.LogOffsetsFrom(t.Context(), begin, topic)
	if err != nil || from[topic][0] != 0 || from[topic][1] != 0 {
		t.Errorf("the log begins at %v, %v", from, err)
	}
	some := catalogs[1].Segments[1]
	if from, err = cfg.LogOffsetsFrom(t.Context(), time.UnixMilli(some.MinTime), topic); err != nil || from[topic][1] > some.First || from[topic][1] < some.First-1 {
		t.Errorf("from the first time of the segment [%d, %d) partition 1 is read from %d, %v", some.First, some.Next, from[topic][1], err)
	}
	if one, err := cfg.LogOffsetFrom(t.Context(), time.UnixMilli(some.MinTime), topic, 1); err != nil || one != from[topic][1] {
		t.Errorf("partition 1 alone is read from %d, %v; want %d", one, err, from[topic][1])
	}

	gone := catalogs[1].Segments[1]
	if err := errors.Join(store.Delete(t.Context(), gone.SidecarName()), store.Delete(t.Context(), gone.Data)); err != nil {
		t.Fatal(err)
	}
	if jumps, want := read("holes"), []string{fmt.Sprintf("1: %d to %d", gone.First, gone.Next)}; !slices.Equal(jumps, want) {
		t.Errorf("a group jumped over %v, want %v", jumps, want)
	}
}

// TestALogThatIsWholeOnTheBrokerNeedsNoArchive finds the start of a log from which nothing was deleted, with a bucket that is away: a process
// that starts meanwhile reads its corrections, and makes prices. Where records were deleted, the archive is asked.
func TestALogThatIsWholeOnTheBrokerNeedsNoArchive(t *testing.T) {
	r := streamtest.Rand(t)
	cfg := stream.Config{Brokers: []string{streamtest.Kfake(t)}, ClientID: "test"}
	client := newTopic(t, cfg)
	at := time.UnixMilli(1_790_000_000_000)
	begin := at
	produced(t, client, r, &at, []archive.Cutter{{Rule: rules[topic]}, {Rule: rules[topic]}})
	away, err := archive.NewBucket(archive.BucketConfig{Endpoint: "http://127.0.0.1:1", Bucket: "example-log", AccessKey: "a", SecretKey: "b"})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Archive = archive.NewLog(away, cfg, rules)
	starts, ends, err := cfg.LogBounds(t.Context(), topic)
	if err != nil || starts[topic][0] != 0 || starts[topic][1] != 0 {
		t.Errorf("the log begins at %v, %v; want the broker's starts", starts, err)
	}
	if from, err := cfg.LogOffsetsFrom(t.Context(), begin, topic); err != nil || from[topic][0] != 0 || from[topic][1] != 0 {
		t.Errorf("its first time is at %v, %v", from, err)
	}
	var offsets kadm.Offsets
	offsets.AddOffset(topic, 0, ends[topic][0], -1)
	if _, err := kadm.NewClient(client).DeleteRecords(t.Context(), offsets); err != nil {
		t.Fatal(err)
	}
	if _, _, err := cfg.LogBounds(t.Context(), topic); !errors.Is(err, archive.ErrUnavailable) {
		t.Errorf("records were deleted: got %v, want an archive that is not available", err)
	}
	if _, err := cfg.LogOffsetsFrom(t.Context(), begin, topic); !errors.Is(err, archive.ErrUnavailable) {
		t.Errorf("records were deleted: got %v, want an archive that is not available", err)
	}
}
