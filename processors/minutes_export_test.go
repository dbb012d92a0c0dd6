package processors

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// MinutesTakeover is how a member continues a fold of minutes: what it makes from what the output holds,
// without a group and without a log.
type MinutesTakeover struct {
	fold   MinuteFold
	joined *minuteJoin
	writer *singleWriter
	loaded int64
}

// TakeOverMinutes begins where the last checkpoint of the output says, and writes what lies behind its last mark.
func TakeOverMinutes(fold MinuteFold, inputs []string, output []*kgo.Record, writer Writer) *MinutesTakeover {
	var last *eventsv1.Mark
	var checkpoint *eventsv1.Checkpoint
	records := make([]eventsv1.Marked, len(output))
	for i, r := range output {
		rec, err := schemas.DecodeRecord(r.Topic, r.Value)
		if err != nil {
			panic(err)
		}
		records[i] = rec
		if rec.GetMark().After(last) {
			last = rec.GetMark()
		}
		if c := rec.GetPulse().GetCheckpoint(); c != nil {
			checkpoint = c
		}
	}
	l := stateLoader{fold: fold}
	for i, r := range output {
		if checkpoint != nil && r.Timestamp.UnixMilli() >= checkpoint.Offset/1e6 {
			l.add(records[i])
		}
	}
	joined, err := newMinuteJoin(inputs, checkpoint)
	if err != nil {
		panic(err)
	}
	return &MinutesTakeover{fold: fold, joined: joined, loaded: l.whole, writer: &singleWriter{name: "test", last: last, producer: writer}}
}

// From is the offset at which a partition of an input is read.
func (t *MinutesTakeover) From(topic string, partition int32) int64 {
	return t.joined.find(topic, partition).next
}

// Add takes one batch of records of any partitions and folds the minutes that are whole.
func (t *MinutesTakeover) Add(ctx context.Context, batch []*kgo.Record) error {
	for _, rec := range batch {
		t.joined.add(rec)
	}
	return t.joined.close(func(minute int64, records []minuteRecord, checkpoint *eventsv1.Checkpoint) error {
		return closeMinute(ctx, t.fold, t.writer, t.loaded, minute, records, checkpoint)
	})
}
