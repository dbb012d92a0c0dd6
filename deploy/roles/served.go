package roles

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// servedLog writes to served.v1 from when on a process served what.
type servedLog struct{ producer *kgo.Client }

// WriteServed writes one record. After an error it is open whether it is in the log.
func (s servedLog) WriteServed(ctx context.Context, record *eventsv1.ServedRecord) error {
	value, err := record.MarshalVT()
	if err != nil {
		return fmt.Errorf("encoding what was served: %w", err)
	}
	written := &kgo.Record{Timestamp: time.Unix(0, record.Time), Topic: schemas.TopicServed, Key: []byte(record.Replica), Value: value}
	if err := s.producer.ProduceSync(ctx, written).FirstErr(); err != nil {
		return fmt.Errorf("writing %s: %w", schemas.TopicServed, err)
	}
	return nil
}
