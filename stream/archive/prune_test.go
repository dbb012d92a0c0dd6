package archive_test

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/stream/archive"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// TestPruneDeletesTheOldestOfWhatMayGo fills an archive of two topics, segment for segment in turn, and lowers its bound.
func TestPruneDeletesTheOldestOfWhatMayGo(t *testing.T) {
	eachStore(t, func(t *testing.T, open opener) {
		store, _ := open(t)
		r := streamtest.Rand(t)
		kept := archive.Partition{Topic: "candles.v1", TopicID: part.TopicID}
		last := map[archive.Partition]archive.Segment{}
		var pruneable []archive.Segment // oldest first
		for hour := range 5 {
			for _, of := range []archive.Partition{part, kept} {
				records := randomRecords(r, last[of].Next, 200)
				for _, record := range records {
					record.Timestamp = record.Timestamp.Add(time.Duration(hour) * time.Hour)
				}
				s, err := archive.Commit(t.Context(), store, of, last[of], last[of].Next, schemaDigest, sequence(records))
				if err != nil {
					t.Fatal(err)
				}
				last[of] = s
				if of == part {
					pruneable = append(pruneable, s)
				}
			}
		}
		size := func() (sum int64) {
			objects, err := store.List(t.Context(), "v1/")
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range objects {
				sum += o.Size
			}
			return sum
		}
		prune := func(limit int64) []archive.Segment {
			deleted, err := archive.Prune(t.Context(), store, limit, part.Topic)
			if err != nil {
				t.Fatal(err)
			}
			return deleted
		}
		if deleted := prune(size()); len(deleted) > 0 {
			t.Errorf("within the bound %d segments are deleted", len(deleted))
		}
		if deleted := prune(size() - 1); len(deleted) != 1 || deleted[0] != pruneable[0] {
			t.Errorf("one byte above the bound %+v is deleted, want the oldest segment", deleted)
		}
		if c := load(t, store); c.First() != pruneable[1].First || len(c.Faults)+len(c.Gaps)+len(c.Orphans) > 0 {
			t.Errorf("what is left is %+v", c)
		}
		if next, err := load(t, store).Read(t.Context(), store, pruneable[1].First, 1000, func(*kgo.Record) error { return nil }); next != 1000 || err != nil {
			t.Errorf("what is left is read up to %d: %v", next, err)
		}
		if deleted := prune(0); len(deleted) != 3 {
			t.Errorf("with no room %d segments are deleted, want all but the last, which holds the position of the partition", len(deleted))
		}
		if c, err := archive.Load(t.Context(), store, kept); err != nil || len(c.Segments) != 5 {
			t.Errorf("of the topic that is kept %d segments are left, %v", len(c.Segments), err)
		}
	})
}
