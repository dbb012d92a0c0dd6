package outbox

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
)

// ImportLog is the way of imported files into the log and back: candles and files into backfill.raw.v1, bad rows into the dead
// letters beside those of polled sources. Used by one goroutine.
type ImportLog struct {
	*BackfillLog
}

// NewImportLog opens the log. The caller closes it.
func NewImportLog(cfg stream.Config, clock producers.Clock) (*ImportLog, error) {
	log, err := NewBackfillLog(cfg, clock)
	if err != nil {
		return nil, err
	}
	return &ImportLog{log}, nil
}

// Write writes candles and files, those of a venue and base in their order, and returns once every in-sync replica has all of
// them: the offsets after them, by partition. After an error, or a death, the first ones of each venue and base are in the log.
func (l *ImportLog) Write(ctx context.Context, recs []*eventsv1.BackfillRecord) (map[int32]int64, error) {
	now := l.clock.Now().Truncate(time.Millisecond)
	batch := make([]*kgo.Record, len(recs))
	for i, rec := range recs {
		value, err := rec.MarshalVT()
		if err != nil {
			return nil, fmt.Errorf("encoding a record of %s: %w", schemas.TopicBackfillRaw, err)
		}
		key := rec.GetCandle().GetVenue() + "|" + rec.GetCandle().GetBase()
		if file := rec.GetImportFile(); file != nil {
			key = file.Venue + "|" + file.Base
		}
		partition := stream.PartitionFor(key, partitions(schemas.TopicBackfillRaw))
		batch[i] = &kgo.Record{Topic: schemas.TopicBackfillRaw, Partition: partition, Key: []byte(key), Value: value, Timestamp: now}
	}
	ends := map[int32]int64{}
	for _, result := range l.client.ProduceSync(ctx, batch...) {
		if result.Err != nil {
			return nil, fmt.Errorf("writing %s: %w", schemas.TopicBackfillRaw, result.Err)
		}
		ends[result.Record.Partition] = max(ends[result.Record.Partition], result.Record.Offset+1)
	}
	return ends, nil
}

// WriteDeadLetters writes dead letters and returns once the log has them.
func (l *ImportLog) WriteDeadLetters(ctx context.Context, letters []*eventsv1.DeadLetter) error {
	const topic = schemas.TopicReferenceRawDead
	now := l.clock.Now().Truncate(time.Millisecond)
	batch := make([]*kgo.Record, len(letters))
	for i, letter := range letters {
		TrimLetter(letter)
		letter.IngestTime = now.UnixNano()
		value, err := (&eventsv1.DeadRecord{Letter: letter}).MarshalVT()
		if err != nil {
			return fmt.Errorf("encoding a record of %s: %w", topic, err)
		}
		key := []byte(letter.Source)
		batch[i] = &kgo.Record{Topic: topic, Partition: stream.PartitionFor(letter.Source, partitions(topic)), Key: key, Value: value, Timestamp: now}
	}
	if err := l.client.ProduceSync(ctx, batch...).FirstErr(); err != nil {
		return fmt.Errorf("writing %s: %w", topic, err)
	}
	return nil
}

// DeadLetters hands every dead letter of a source that the log holds now to visit.
func (l *ImportLog) DeadLetters(ctx context.Context, source string, visit func(*eventsv1.DeadLetter)) error {
	const topic = schemas.TopicReferenceRawDead
	starts, ends, err := l.cfg.LogBounds(ctx, topic)
	if err != nil {
		return err
	}
	for _, p := range slices.Sorted(maps.Keys(starts[topic])) {
		err := stream.ReadRange(ctx, l.cfg, topic, p, starts[topic][p], ends[topic][p], func(r *kgo.Record) error {
			record, err := schemas.DecodeRecord(topic, r.Value)
			if err != nil {
				return nil // the sink of the topic reports it
			}
			if dead, ok := record.(*eventsv1.DeadRecord); ok && dead.Letter.GetSource() == source {
				visit(dead.Letter)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
