package foldtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// Frozen fails the test if a fold of log minutes does not derive, byte for byte, what the file of its logic version holds:
// frozen_v1.jsonl in the folder, a line a minute with its inputs and outputs. The file of a version is written once, with the
// flag -update, from the minutes that example gives, and never again: a fold that is to derive other records gets another
// version in processors.LogicVersion, and with it another file.
func Frozen(t *testing.T, folder Folder, declared *processors.Minutes, example func() []LogMinute) {
	t.Helper()
	name := fmt.Sprintf("frozen_v%d.jsonl", processors.LogicVersion(declared.Output))
	content, err := folder.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) && *update {
		minutes := example()
		content = freeze(t, minutes, FoldMinutes(t, declared.New(), minutes, false))
		err = folder.WriteFile(name, content, 0o644)
	}
	if err != nil {
		t.Fatalf("reading what a version of the fold derives: %v", err)
	}
	minutes, want := thaw(t, declared, content)
	records := 0
	for i, got := range FoldMinutes(t, declared.New(), minutes, false) {
		if !got.Equal(want[i]) {
			t.Fatalf("minute %d of %s: a version of a fold never changes, make another one:\n%s", i, name,
				got.Difference(want[i]))
		}
		records += len(got.Records)
	}
	if records < 100 {
		t.Errorf("%s holds %d records, want at least 100", name, records)
	}
}

// frozenMinute is a minute as the file holds it; bytes are in base64.
type frozenMinute struct {
	End     int64
	Inputs  [][]frozenRecord
	Outputs [][]byte
}

type frozenRecord struct {
	Offset int64
	Value  []byte
}

func freeze(t *testing.T, minutes []LogMinute, outputs []MinuteOutput) []byte {
	t.Helper()
	var content bytes.Buffer
	for i, m := range minutes {
		line := frozenMinute{End: m.End, Outputs: outputs[i].bytes}
		for _, records := range m.Inputs {
			var input []frozenRecord
			for _, rec := range records {
				value, err := rec.Record.(interface{ MarshalVT() ([]byte, error) }).MarshalVT()
				if err != nil {
					t.Fatal(err)
				}
				input = append(input, frozenRecord{rec.Offset, value})
			}
			line.Inputs = append(line.Inputs, input)
		}
		text, err := json.Marshal(line)
		if err != nil {
			t.Fatal(err)
		}
		content.Write(append(text, '\n'))
	}
	return content.Bytes()
}

func thaw(t *testing.T, declared *processors.Minutes, content []byte) (minutes []LogMinute, outputs []MinuteOutput) {
	t.Helper()
	for line := range bytes.Lines(content) {
		var frozen frozenMinute
		if err := json.Unmarshal(line, &frozen); err != nil {
			t.Fatal(err)
		}
		if len(frozen.Inputs) != len(declared.Inputs) {
			t.Fatalf("minute %d has %d inputs, want those of the fold: %v", len(minutes), len(frozen.Inputs), declared.Inputs)
		}
		m := LogMinute{End: frozen.End}
		for i, records := range frozen.Inputs {
			var input []LogRecord
			for _, r := range records {
				input = append(input, LogRecord{r.Offset, parsed(t, declared.Inputs[i], r.Value)})
			}
			m.Inputs = append(m.Inputs, input)
		}
		minutes = append(minutes, m)
		want := MinuteOutput{Minute: frozen.End, bytes: frozen.Outputs}
		for _, value := range frozen.Outputs {
			want.Records = append(want.Records, parsed(t, declared.Output, value))
		}
		outputs = append(outputs, want)
	}
	return minutes, outputs
}

// parsed is a value as it lies in the file; inputs need no marks there.
func parsed(t *testing.T, topic string, value []byte) eventsv1.Marked {
	t.Helper()
	row, err := schemas.TopicNamed(topic)
	if err != nil {
		t.Fatal(err)
	}
	rec := row.New()
	if err := rec.UnmarshalVT(value); err != nil {
		t.Fatal(err)
	}
	return rec
}
