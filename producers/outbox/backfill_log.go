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
	"github.com/marketlog/marketlog/stream/faults"
)

// BackfillLog is the way of a back-fill into backfill.raw.v1 and back. The topic has no clocks: what is in it
// happened long before it was written. Safe for concurrent use.
type BackfillLog struct {
	cfg    stream.Config
	clock  producers.Clock
	client *kgo.Client
}

// NewBackfillLog opens the log. The caller closes it.
func NewBackfillLog(cfg stream.Config, clock producers.Clock) (*BackfillLog, error) {
	client, err := cfg.NewProducer()
	if err != nil {
		return nil, fmt.Errorf("opening the log: %w", err)
	}
	return &BackfillLog{cfg: cfg, clock: clock, client: client}, nil
}

// Close gives up the connections.
func (l *BackfillLog) Close() { l.client.Close() }

// Read hands every record that the log holds now to visit, those of a key in their order.
func (l *BackfillLog) Read(ctx context.Context, visit func(*eventsv1.BackfillRecord) error) error {
	const topic = schemas.TopicBackfillRaw
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
			rec, ok := record.(*eventsv1.BackfillRecord)
			if !ok {
				return nil
			}
			return visit(rec)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Append writes records of one venue and base, and returns once every in-sync replica has them. After an
// error, or a death, some, all or none of them are in the log: the first ones, in their order.
func (l *BackfillLog) Append(ctx context.Context, venue, base string, recs []*eventsv1.BackfillRecord) error {
	key := []byte(venue + "|" + base)
	now := l.clock.Now().Truncate(time.Millisecond)
	partition := stream.PartitionFor(string(key), partitions(schemas.TopicBackfillRaw))
	batch := make([]*kgo.Record, len(recs))
	for i, rec := range recs {
		value, err := rec.MarshalVT()
		if err != nil {
			return fmt.Errorf("encoding a record of %s: %w", schemas.TopicBackfillRaw, err)
		}
		batch[i] = &kgo.Record{Topic: schemas.TopicBackfillRaw, Partition: partition, Key: key, Value: value, Timestamp: now}
	}
	// The last one ends a range: a crash between the two leaves a range without an end.
	faults.Hit("backfill.write")
	if err := l.client.ProduceSync(ctx, batch[:len(batch)-1]...).FirstErr(); err != nil {
		return fmt.Errorf("writing %s: %w", schemas.TopicBackfillRaw, err)
	}
	faults.Hit("backfill.range")
	if err := l.client.ProduceSync(ctx, batch[len(batch)-1]).FirstErr(); err != nil {
		return fmt.Errorf("writing %s: %w", schemas.TopicBackfillRaw, err)
	}
	faults.Hit("backfill.written")
	return nil
}
