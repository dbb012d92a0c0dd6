package roles

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// usageLog writes what was used to usage.v1.
type usageLog struct{ producer *kgo.Client }

// WriteUsage writes records in their order. After an error it is open which of them are in the log.
func (u usageLog) WriteUsage(ctx context.Context, records []*eventsv1.UsageRecord) error {
	written := make([]*kgo.Record, len(records))
	for i, r := range records {
		value, err := r.MarshalVT()
		if err != nil {
			return fmt.Errorf("encoding the usage of %s: %w", r.Budget, err)
		}
		// Every writer sets a record's time.
		written[i] = &kgo.Record{Timestamp: time.Unix(0, r.Time), Topic: schemas.TopicUsage, Key: []byte(r.Budget), Value: value}
	}
	if err := u.producer.ProduceSync(ctx, written...).FirstErr(); err != nil {
		return fmt.Errorf("writing %s: %w", schemas.TopicUsage, err)
	}
	return nil
}
