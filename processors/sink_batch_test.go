package processors

import (
	"testing"

	"github.com/marketlog/marketlog/stream/history"
)

// The memory of a batch is used again where the next one is as small, or as full: a large one at the end of a back-fill is not kept for ever.
func TestSinksLetGoOfLargeBatches(t *testing.T) {
	for _, c := range []struct {
		before, bytes int
		kept          bool
	}{{0, 0, true}, {0, sinkKept, true}, {0, sinkKept + 1, false}, {0, sinkMaxBytes - 1, false}, {0, sinkMaxBytes, true}, {sinkMaxBytes, sinkMaxBytes, true}, {sinkMaxBytes, 1, false}} {
		b := newSinkBatch()
		b.most, b.bytes = c.before, c.bytes
		b.progress = append(b.progress, history.Progress{})
		m := &sinkMember{flight: &flight{batch: b, done: make(chan struct{})}}
		close(m.flight.done)
		if err := m.land(t.Context()); err != nil {
			t.Fatal(err)
		}
		if kept := m.spare == b; kept != c.kept {
			t.Errorf("a batch of %d bytes, which had %d before, is kept: %v, want %v", c.bytes, c.before, kept, c.kept)
		}
		if m.flight != nil || c.kept && (b.bytes != 0 || len(b.progress) != 0) {
			t.Errorf("a batch of %d bytes that was written is still on its way, or not empty", c.bytes)
		}
	}
}
