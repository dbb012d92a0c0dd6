package processors

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// SecondsTakeover is how a member continues a fold of seconds: what it makes from what the output holds,
// without a group and without a log.
type SecondsTakeover struct {
	seconds *Seconds
	fold    SecondFold
	merge   *merge
	writer  *singleWriter
}

// TakeOverSeconds begins where a checkpoint says, and writes what lies behind the last mark.
func TakeOverSeconds(fold SecondFold, partitions int32, checkpoint *eventsv1.Checkpoint, last *eventsv1.Mark, writer Writer) *SecondsTakeover {
	return &SecondsTakeover{
		seconds: &Seconds{Name: "test"}, fold: fold, merge: newMerge(partitions, checkpoint),
		writer: &singleWriter{name: "test", last: last, producer: writer},
	}
}

// From is the offset at which a partition is read.
func (t *SecondsTakeover) From(partition int32) int64 { return t.merge.partitions[partition].next }

// Add takes one batch of records of any partitions and folds the seconds that are whole.
func (t *SecondsTakeover) Add(ctx context.Context, batch []*kgo.Record) error {
	for _, rec := range batch {
		t.merge.add(rec)
	}
	return t.merge.close(func(second int64, records []taken, checkpoint *eventsv1.Checkpoint) error {
		return t.seconds.close(ctx, t.fold, t.writer, second, records, checkpoint)
	})
}
