package processors

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// JoinTakeover is how a member continues a fold of seconds or minutes: what it makes from what the output holds, without a
// group and without a log.
type JoinTakeover struct {
	fold   spanFolder
	join   *timeJoin
	writer *markedWriter
}

// TakeOverMinutes begins where the last checkpoint of the output says, and writes what lies after its last mark.
func TakeOverMinutes(fold MinuteFold, inputs []string, output []*kgo.Record, writer Writer) *JoinTakeover {
	var last *eventsv1.Mark
	var checkpoint *eventsv1.Checkpoint
	topic := ""
	records := make([]eventsv1.Marked, len(output))
	for i, r := range output {
		rec, err := schemas.DecodeRecord(r.Topic, r.Value)
		if err != nil {
			panic(err)
		}
		topic, records[i] = r.Topic, rec
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
	topics, err := inputTopics(inputs...)
	if err != nil {
		panic(err)
	}
	return &JoinTakeover{
		fold: minuteFolder(fold, l.whole), join: newTimeJoin(byMinute, topics, checkpoint),
		writer: newMarkedWriter("test", writer, map[outputID]*eventsv1.Mark{{topic, 0}: last}),
	}
}

// TakeOverSeconds begins where a checkpoint of an output says, and writes what lies after its last mark.
func TakeOverSeconds(s *Seconds, partitions int32, output string, checkpoint *eventsv1.Checkpoint, last *eventsv1.Mark, writer Writer) *JoinTakeover {
	raw, err := schemas.TopicNamed(schemas.TopicTicksRaw)
	if err != nil {
		panic(err)
	}
	raw.Partitions = partitions
	return &JoinTakeover{
		fold: s.folder(s.New()), join: newTimeJoin(s.step(), []schemas.Topic{raw}, checkpoint),
		writer: newMarkedWriter("test", writer, map[outputID]*eventsv1.Mark{{output, 0}: last}),
	}
}

// From is the offset at which a partition of an input is read.
func (t *JoinTakeover) From(topic string, partition int32) int64 {
	return t.join.find(topic, partition).next
}

// Add takes one batch of records of any partitions and folds the spans that are whole.
func (t *JoinTakeover) Add(ctx context.Context, batch []*kgo.Record) error {
	for _, rec := range batch {
		t.join.add(rec)
	}
	return t.join.close(func(span int64, records []joined, checkpoint *eventsv1.Checkpoint) error {
		return closeSpan(ctx, t.fold, t.writer, span, records, checkpoint)
	})
}

// MarkedWriter writes outputs of a fold.
type MarkedWriter = markedWriter

// NewMarkedWriter makes one that found nothing in the log.
func NewMarkedWriter(producer Writer) *MarkedWriter {
	return newMarkedWriter("test", producer, map[outputID]*eventsv1.Mark{})
}

// Write hands over one output.
func (w *MarkedWriter) Write(ctx context.Context, o Output) error {
	return w.write(ctx, o, func() *eventsv1.Checkpoint { return nil })
}
