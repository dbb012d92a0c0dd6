package operations_test

import (
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/deploy/operations"
	"github.com/marketlog/marketlog/schemas"
	"github.com/marketlog/marketlog/stream/archive"
)

// TestPruneReportsWhatItDeletes prunes an archive of three hours of ticks and of candles to nothing: the newest segment of ticks
// and all candles stay. A dry run reports the same, and deletes nothing.
func TestPruneReportsWhatItDeletes(t *testing.T) {
	store := archive.NewDir(t.TempDir())
	begin := time.Date(2026, 11, 25, 10, 0, 0, 0, time.UTC)
	for _, topic := range []string{schemas.TopicTicks, schemas.TopicCandles} {
		of := archive.Partition{Topic: topic, TopicID: strings.Repeat("0a", 16)}
		var last archive.Segment
		for hour := range 3 {
			record := &kgo.Record{Offset: int64(hour), Timestamp: begin.Add(time.Duration(hour) * time.Hour), Value: []byte(topic)}
			var err error
			last, err = archive.Commit(t.Context(), store, of, last, int64(hour), strings.Repeat("ab", 32), func(yield func(*kgo.Record, error) bool) { yield(record, nil) })
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	segments := func() (n int) {
		err := operations.InspectArchive(t.Context(), store, true, func(s operations.ArchiveStatus) error {
			n += s.Segments
			if len(s.Faults) > 0 {
				t.Errorf("%s: %v", s.Topic, s.Faults)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, step := range []struct {
		dry  bool
		left int
	}{{true, 6}, {false, 4}} {
		pruned, err := operations.PruneArchive(t.Context(), store, 0, step.dry)
		if err != nil || len(pruned) != 1 || pruned[0].Topic != schemas.TopicTicks || pruned[0].Segments != 2 || !pruned[0].UpTo.Equal(begin.Add(time.Hour)) {
			t.Errorf("dry run %v: got %+v, %v, want the first two segments of ticks", step.dry, pruned, err)
		}
		if left := segments(); left != step.left {
			t.Errorf("dry run %v: %d segments are left, want %d", step.dry, left, step.left)
		}
	}
}
