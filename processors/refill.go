package processors

import (
	"context"
	"errors"
	"log/slog"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/history"
)

// Refill inserts the rows of a topic again, of all records that the log still has and the topic's sink has come past.
// Where the rows are there it changes nothing; it writes no ledger, so the sink may run beside it.
type Refill struct {
	Topic   string
	Log     stream.Config
	History *history.Store
	Logger  *slog.Logger
}

// Run reads and inserts, and returns how many records had rows. It passes over offsets that the log has lost.
func (r *Refill) Run(ctx context.Context) (records int64, err error) {
	topic, err := schemas.TopicNamed(r.Topic)
	if err != nil {
		return 0, err
	}
	progress, err := r.History.Progress(ctx, topic.Name, 0)
	if err != nil {
		return 0, err
	}
	starts, ends, err := r.Log.LogBounds(ctx, topic.Name)
	if err != nil {
		return 0, err
	}
	// The sink's own way from a record to its rows, beginning with the log: so duplicates are passed over as they were.
	m := &sinkMember{
		sink: &Sink{Topic: r.Topic, Log: r.Log, History: r.History, Logger: r.Logger}, topic: topic,
		borrower: stream.NewBorrower(topic.Name), batch: newSinkBatch(),
	}
	flush := func() error {
		records += int64(m.batch.rows.Len())
		defer m.batch.reset()
		return retryUntilAvailable(ctx, r.Logger, r.Topic, func() error { return m.batch.rows.Insert(ctx, r.History, "") })
	}
	for p := range topic.Partitions {
		start, to := starts[topic.Name][p], min(progress[p].Next, ends[topic.Name][p])
		if start >= to {
			continue
		}
		pos := &position{progress: history.Progress{Partition: p, Marks: map[int32]*eventsv1.Mark{}}}
		for start < to {
			err := stream.ReadRange(ctx, r.Log, topic.Name, p, start, to, func(rec *kgo.Record) error {
				m.take(pos, rec)
				if m.batch.rows.Len() < sinkMaxRows && m.batch.bytes < sinkMaxBytes {
					return nil
				}
				return flush()
			})
			var gap *stream.OffsetGapError
			switch {
			case errors.As(err, &gap): // what is lost is no reason to leave out what follows it
				r.Logger.Warn("the log has a hole", "topic", topic.Name, "partition", p, "from", gap.From, "next", gap.Next)
				start = gap.Next
				continue
			case err != nil:
				return records, err
			}
			break
		}
	}
	return records, flush()
}
