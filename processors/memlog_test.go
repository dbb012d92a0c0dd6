package processors_test

import (
	"context"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
)

// place names one partition of a log.
type place struct {
	topic     string
	partition int32
}

// memoryLog is a log in memory: what is appended is durable.
type memoryLog map[place][]*kgo.Record

func (l memoryLog) append(rec *kgo.Record) {
	at := place{rec.Topic, rec.Partition}
	written := *rec
	written.Offset = int64(len(l[at]))
	l[at] = append(l[at], &written)
}

// applied is what stream.LastApplied finds in one partition.
func (l memoryLog) applied(topic string, partition int32) map[int32]stream.Applied {
	found := map[int32]stream.Applied{}
	for _, rec := range l[place{topic, partition}] {
		marked := decode(rec)
		mark := marked.GetMark()
		a := found[mark.Partition]
		if mark.After(a.Mark) {
			a.Mark = mark
		}
		if c := marked.GetPulse().GetCheckpoint(); c != nil {
			a.Checkpoint, a.Watermark = c, marked.GetPulse().Watermark
		}
		found[mark.Partition] = a
	}
	return found
}

// life collects what one worker hands to its producer; how much of it becomes durable is settled later.
type life struct {
	order  []place
	handed map[place][]*kgo.Record
}

func newLife() *life { return &life{handed: map[place][]*kgo.Record{}} }

func (l *life) Produce(_ context.Context, rec *kgo.Record, written func(*kgo.Record, error)) {
	at := place{rec.Topic, rec.Partition}
	if _, ok := l.handed[at]; !ok {
		l.order = append(l.order, at)
	}
	l.handed[at] = append(l.handed[at], rec)
	written(rec, nil)
}

func (l *life) Flush(context.Context) error { return nil }

func (l *life) writeTo(log memoryLog) {
	for _, at := range l.order {
		for _, rec := range l.handed[at] {
			log.append(rec)
		}
	}
}

func decode(rec *kgo.Record) eventsv1.Marked {
	marked, err := schemas.DecodeRecord(rec.Topic, rec.Value)
	if err != nil {
		panic(err)
	}
	return marked
}

// fatal is what *testing.T and *rapid.T have in common.
type fatal interface {
	Helper()
	Fatalf(format string, args ...any)
	Fatal(args ...any)
}

// fold runs a unit on one input partition from its beginning to its end, without a stop.
func fold(t fatal, unit processors.Unit, input []*kgo.Record) memoryLog {
	t.Helper()
	log, l := memoryLog{}, newLife()
	w := processors.TakeOver(unit, partitionOf(input), l, log.applied)
	for _, rec := range input {
		if err := w.Apply(context.Background(), rec); err != nil {
			t.Fatal(err)
		}
	}
	l.writeTo(log)
	return log
}

func partitionOf(input []*kgo.Record) int32 {
	if len(input) == 0 {
		return 0
	}
	return input[0].Partition
}

// readers is what the readers of a partition see: of each input partition, only what lies after all
// that they have applied.
func readers(records []*kgo.Record) []*kgo.Record {
	last := map[int32]*eventsv1.Mark{}
	return slices.DeleteFunc(slices.Clone(records), func(rec *kgo.Record) bool {
		mark := decode(rec).GetMark()
		if !mark.After(last[mark.Partition]) {
			return true
		}
		last[mark.Partition] = mark
		return false
	})
}

// content is a record without its checkpoint, which says where its writer would have begun again, and,
// if unmarked, without its mark.
func content(rec *kgo.Record, unmarked bool) []byte {
	marked := decode(rec)
	if pulse := marked.GetPulse(); pulse != nil {
		pulse.Checkpoint = nil
	}
	if unmarked {
		marked.SetMark(nil)
	}
	value := make([]byte, marked.SizeVT())
	if _, err := marked.MarshalToSizedBufferVT(value); err != nil {
		panic(err)
	}
	return value
}

// wantSameLog compares two logs as their readers see them.
func wantSameLog(t fatal, what string, got, want memoryLog, unmarked bool) {
	t.Helper()
	places := map[place]bool{}
	for at := range got {
		places[at] = true
	}
	for at := range want {
		places[at] = true
	}
	for at := range places {
		wantSameRecords(t, what, at, readers(got[at]), readers(want[at]), unmarked)
	}
}

func wantSameRecords(t fatal, what string, at place, got, want []*kgo.Record, unmarked bool) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			t.Fatalf("%s: %s/%d ends after %d records, want %d more from %v", what, at.topic, at.partition, i, len(want)-i, decode(want[i]))
		case i >= len(want):
			t.Fatalf("%s: %s/%d goes on after %d records with %v", what, at.topic, at.partition, i, decode(got[i]))
		case string(got[i].Key) != string(want[i].Key) || got[i].Timestamp.UnixMilli() != want[i].Timestamp.UnixMilli() ||
			!slices.Equal(content(got[i], unmarked), content(want[i], unmarked)):
			t.Fatalf("%s: %s/%d, record %d:\ngot  %s %v\nwant %s %v", what, at.topic, at.partition, i,
				got[i].Timestamp, decode(got[i]), want[i].Timestamp, decode(want[i]))
		}
	}
}

// countOf is how many records of a topic a log holds.
func (l memoryLog) countOf(topic string) (n int) {
	for at, records := range l {
		if at.topic == topic {
			n += len(records)
		}
	}
	return n
}

func TestReadersDropDuplicates(t *testing.T) {
	var records []*kgo.Record
	for _, m := range []*eventsv1.Mark{
		{Partition: 1, Offset: 5}, {Partition: 2, Offset: 1}, {Partition: 1, Offset: 5, Index: 1}, {Partition: 1, Offset: 5},
		{Partition: 1, Offset: 4, Index: 9}, {Partition: 1, Offset: 6}, {Partition: 2, Offset: 1}, {Partition: 2, Offset: 2},
	} {
		value, err := (&eventsv1.PriceRecord{Mark: m, Body: &eventsv1.PriceRecord_Pulse{Pulse: &eventsv1.Pulse{}}}).MarshalVT()
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, &kgo.Record{Topic: schemas.TopicPrices, Offset: int64(len(records)), Value: value})
	}
	var got []int64
	for _, rec := range readers(records) {
		got = append(got, rec.Offset)
	}
	if want := []int64{0, 1, 2, 5, 7}; !slices.Equal(got, want) {
		t.Errorf("got the records %v, want %v", got, want)
	}
}
