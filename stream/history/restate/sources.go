// Package restate records what sources state of the past otherwise than before.
package restate

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/history"
	"github.com/marketlog/marketlog/stream/history/native"
	"github.com/marketlog/marketlog/stream/history/rows"
	"github.com/marketlog/marketlog/stream/history/shadow"
)

// Causes of restatements by those who stated the past; a name follows.
const (
	causeSource = "source" // of a source or a venue
	causeImport = "import" // of the SHA-256 of the file
)

// abandonedAfter is how old a table in memory is whose process is taken for dead.
const abandonedAfter = 24 * time.Hour

// Sources records restatements by sources, while the tables still have what they stated first. It is used by one goroutine.
//
// The sink of a partition is the only writer of its rows, and inserts them in the order of the log. So it compares a batch with what is
// there, has the differences acknowledged, and then inserts. Killed before the insert it finds them again, and records the same, which
// replaces itself: run, time and key are those of the later record. Killed after it they are recorded already. An insert is never given
// up, so restatements by sources count as they are: attempt 0.
type Sources struct {
	Log     stream.Config
	History *history.Store
	Logger  *slog.Logger

	statements *shadow.Statements
	producer   *kgo.Client
}

// Record returns when the restatements of a batch are acknowledged, which is to be inserted then. Its error is stream.ErrUnavailable if
// the same may succeed later.
func (s *Sources) Record(ctx context.Context, batch *rows.Batch) error {
	return batch.Stated(func(topic schemas.Topic, table schemas.Table, stated native.Rows) error {
		if s.statements == nil {
			if err := shadow.Of(s.History).DropAbandoned(ctx, abandonedAfter); err != nil {
				return err
			}
			s.statements = shadow.Of(s.History).NewStatements()
		}
		restated, err := s.statements.Restated(ctx, stated, table.Stated)
		if err != nil || len(restated) == 0 {
			return err
		}
		if s.producer == nil {
			if s.producer, err = s.Log.NewProducer(); err != nil {
				return fmt.Errorf("opening a producer: %w", err)
			}
		}
		records := make([]*kgo.Record, len(restated))
		for i, row := range restated {
			if records[i], err = restatementOf(topic, row); err != nil {
				return err
			}
		}
		if err := s.producer.ProduceSync(ctx, records...).FirstErr(); err != nil {
			return fmt.Errorf("%w: writing restatements into the log: %w", stream.ErrUnavailable, err)
		}
		s.Logger.Info("the past was stated otherwise", "topic", topic.Name, "table", table.Name, "rows", len(restated))
		return nil
	})
}

// restatementOf is the record of a row that was stated otherwise by a later record of a topic.
func restatementOf(topic schemas.Topic, row shadow.RestatedRow) (*kgo.Record, error) {
	row.View, row.Cause = cmp.Or(topic.View, schemas.ViewBackfill), causeSource+" "+row.Source
	if row.File != "" {
		row.Cause = causeImport + " " + row.File
	}
	received := max(row.Received, 1) // a restatement has a time
	record := &eventsv1.RestatementRecord{
		Run: fmt.Sprintf("%s/%d/%d", topic.Name, row.Partition, row.Offset), Time: received,
		Body: &eventsv1.RestatementRecord_Restatement{Restatement: row.Restatement},
	}
	value, err := record.MarshalVT()
	if err != nil {
		return nil, fmt.Errorf("encoding a restatement: %w", err)
	}
	return &kgo.Record{Topic: schemas.TopicRestatements, Value: value, Timestamp: time.Unix(0, received)}, nil
}

// Close gives back what was opened.
func (s *Sources) Close(ctx context.Context) error {
	if s.producer != nil {
		s.producer.Close()
	}
	if s.statements == nil {
		return nil
	}
	return s.statements.Close(ctx)
}
