package history_test

import (
	"testing"
	"time"

	"github.com/marketlog/marketlog/schemas"
	"github.com/marketlog/marketlog/stream/history/native"
	"github.com/marketlog/marketlog/stream/history/rows"
	"github.com/marketlog/marketlog/stream/history/shadow"
)

// What a process that was killed has staged is dropped once it is old, and a living one that it is taken from makes its own again. Between
// batches nothing is kept of them.
func TestWhatDeadProcessesHaveStagedIsDropped(t *testing.T) {
	store := newStore(t)
	restated := func(s *shadow.Statements, batch *rows.Batch) (found int) {
		t.Helper()
		err := batch.Stated(func(_ schemas.Topic, table schemas.Table, r native.Rows) error {
			list, err := s.Restated(t.Context(), r, table.Stated)
			found = len(list)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	tables := func() []string {
		t.Helper()
		return queryStrings(t, store, "SELECT toString(total_rows) FROM system.tables WHERE database = currentDatabase() AND engine = 'Memory'")
	}
	first := statedCandles(0, "1.75")
	if err := first.Insert(t.Context(), store, ""); err != nil {
		t.Fatal(err)
	}
	statements := shadow.Of(store).NewStatements()
	if n := restated(statements, statedCandles(1<<20, "1.25")); n != first.Len() {
		t.Errorf("%d rows are restated, want %d", n, first.Len())
	}
	if got := tables(); len(got) != 1 || got[0] != "0" {
		t.Errorf("tables in memory hold %v rows, want one that is empty", got)
	}
	for _, step := range []struct {
		age  time.Duration
		left int
	}{{time.Hour, 1}, {0, 0}} {
		if err := shadow.Of(store).DropAbandoned(t.Context(), step.age); err != nil {
			t.Fatal(err)
		}
		if got := tables(); len(got) != step.left {
			t.Errorf("of those of an age of %s %d tables are left, want %d", step.age, len(got), step.left)
		}
	}
	if n := restated(statements, statedCandles(2<<20, "1.75")); n != 0 {
		t.Errorf("%d rows are restated, want none: they say what the table has", n)
	}
	if err := statements.Close(t.Context()); err != nil || len(tables()) != 0 {
		t.Errorf("closed: %v, %d tables are left", err, len(tables()))
	}
}
