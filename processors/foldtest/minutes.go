package foldtest

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// LogMinute is what the inputs of a MinuteFold hold of one minute, in the order of the inputs and of their offsets.
type LogMinute struct {
	// End names the minute, Unix nanoseconds.
	End    int64
	Inputs [][]LogRecord
}

// LogRecord is a record of an input and its offset.
type LogRecord struct {
	Offset int64
	Record eventsv1.Marked
}

// MinuteOutput is what a fold put out in one minute, also as it is written.
type MinuteOutput struct {
	Minute  int64
	Records []eventsv1.Marked
	bytes   [][]byte
}

// Bytes are the records as they are written.
func (o MinuteOutput) Bytes() [][]byte { return o.bytes }

// Equal reports whether both would write the same bytes.
func (o MinuteOutput) Equal(other MinuteOutput) bool {
	return o.Minute == other.Minute && slices.EqualFunc(o.bytes, other.bytes, bytes.Equal)
}

// Difference describes the first record that is not the same.
func (o MinuteOutput) Difference(want MinuteOutput) string {
	for i := range max(len(o.Records), len(want.Records)) {
		switch {
		case i >= len(o.Records):
			return fmt.Sprintf("record %d is missing: want %.1500v", i, want.Records[i])
		case i >= len(want.Records):
			return fmt.Sprintf("record %d should not be: got %.1500v", i, o.Records[i])
		case !bytes.Equal(o.bytes[i], want.bytes[i]):
			return fmt.Sprintf("record %d:\n got %.1500v\nwant %.1500v", i, o.Records[i], want.Records[i])
		}
	}
	return "none"
}

// FoldMinutes folds minutes whole, one after the other. Last to first, it reads the inputs of each in the other order, which
// must make no difference.
func FoldMinutes(t testing.TB, fold processors.MinuteFold, minutes []LogMinute, lastToFirst bool) []MinuteOutput {
	t.Helper()
	written := make([]MinuteOutput, len(minutes))
	for i, m := range minutes {
		written[i] = foldMinute(t, fold, m, lastToFirst, false)
	}
	return written
}

func foldMinute(t testing.TB, fold processors.MinuteFold, m LogMinute, lastToFirst, loaded bool) MinuteOutput {
	t.Helper()
	inputs := m.Inputs
	if lastToFirst {
		inputs = slices.Clone(inputs)
		slices.Reverse(inputs)
	}
	for _, records := range inputs {
		for _, rec := range records {
			fold.Take(m.End, processors.Input{Offset: rec.Offset}, rec.Record)
		}
	}
	if loaded {
		fold.Close(m.End, nil)
		return MinuteOutput{Minute: m.End}
	}
	var out processors.Outputs
	out.Begin(processors.Input{Offset: m.End})
	fold.Close(m.End, &out)
	written := MinuteOutput{Minute: m.End}
	for _, o := range out.List {
		value, err := o.Record.(interface{ MarshalVT() ([]byte, error) }).MarshalVT()
		if err != nil {
			t.Fatal(err)
		}
		decoded, err := schemas.DecodeRecord(o.Topic, value)
		if err != nil {
			t.Fatal(err)
		}
		written.Records = append(written.Records, decoded)
		written.bytes = append(written.bytes, value)
	}
	return written
}

// Memory is how far back the inputs and the output of a MinuteFold are read at a start.
const Memory = processors.StateEvery + 2*time.Minute

// TakeOver makes a fold that goes on after minutes[at] from what was written up to there, as at a start.
func TakeOver(t testing.TB, fresh func() processors.MinuteFold, minutes []LogMinute, written []MinuteOutput, at int) processors.MinuteFold {
	t.Helper()
	from := 0
	for i, m := range minutes[:at+1] {
		if m.End <= minutes[at].End-int64(Memory) {
			from = i
		}
	}
	fold := fresh()
	for _, w := range written[from : at+1] {
		for _, rec := range w.Records {
			fold.Load(rec)
		}
	}
	for _, m := range minutes[from : at+1] {
		foldMinute(t, fold, m, false, true)
	}
	return fold
}

// RestartAnywhere fails the test if a fold that begins again and again, after every minute, or after every few, puts out other
// bytes than one that never stopped, whose output is returned.
func RestartAnywhere(t *testing.T, fresh func() processors.MinuteFold, minutes []LogMinute) []MinuteOutput {
	t.Helper()
	want := FoldMinutes(t, fresh(), minutes, false)
	for i, got := range FoldMinutes(t, fresh(), minutes, true) {
		if !got.Equal(want[i]) {
			t.Fatalf("with the inputs read in another order, minute %d has other bytes:\n%s", i, got.Difference(want[i]))
		}
	}
	for _, every := range []int{1, 5, 67} { // what is not written again within an hour is lost in the longest
		fold := fresh()
		for i, m := range minutes {
			if i > 0 && i%every == 0 {
				fold = TakeOver(t, fresh, minutes, want, i-1)
			}
			if got := foldMinute(t, fold, m, false, false); !got.Equal(want[i]) {
				t.Fatalf("begun again behind every %d minutes, minute %d has other bytes:\n%s", every, i, got.Difference(want[i]))
			}
		}
	}
	return want
}
