package roles

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// queryLog writes what a process that answers keeps in the log: what was used, and from when on what was served. After an error it is open
// which records are in the log.
type queryLog struct{ producer *kgo.Client }

// WriteUsage writes records of usage.v1 in their order.
func (q queryLog) WriteUsage(ctx context.Context, records []*eventsv1.UsageRecord) error {
	written := make([]*kgo.Record, len(records))
	for i, r := range records {
		value, err := r.MarshalVT()
		if err != nil {
			return fmt.Errorf("encoding the usage of %s: %w", r.Budget, err)
		}
		written[i] = logged(schemas.TopicUsage, r.Budget, r.Time, value)
	}
	return q.write(ctx, schemas.TopicUsage, written...)
}

// WriteServed writes one record of served.v1.
func (q queryLog) WriteServed(ctx context.Context, record *eventsv1.ServedRecord) error {
	value, err := record.MarshalVT()
	if err != nil {
		return fmt.Errorf("encoding what was served: %w", err)
	}
	return q.write(ctx, schemas.TopicServed, logged(schemas.TopicServed, record.Replica, record.Time, value))
}

// logged is a record with its time in Unix nanoseconds: every writer sets it.
func logged(topic, key string, at int64, value []byte) *kgo.Record {
	return &kgo.Record{Timestamp: time.Unix(0, at), Topic: topic, Key: []byte(key), Value: value}
}

func (q queryLog) write(ctx context.Context, topic string, records ...*kgo.Record) error {
	if err := q.producer.ProduceSync(ctx, records...).FirstErr(); err != nil {
		return fmt.Errorf("writing %s: %w", topic, err)
	}
	return nil
}
