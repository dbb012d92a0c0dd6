package views

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/archive"
)

// Log reads single records of the log: from the brokers, or from the archive where they have them no longer. It is safe for
// concurrent use.
type Log struct {
	brokers  stream.Config
	archived *archive.Log
}

// NewLog reads the log of some brokers and of an archive, nil where there is none.
func NewLog(brokers stream.Config, archived *archive.Log) *Log {
	return &Log{brokers: brokers, archived: archived}
}

// LogRecord is a record, and the segment of the archive that it was read from; nil where the brokers have it.
type LogRecord struct {
	*kgo.Record
	Segment *archive.Segment
}

// AbsentError means that the log does not have an offset of a partition, which begins at First and ends before Next.
type AbsentError struct {
	Topic               string
	Partition           int32
	Offset, First, Next int64
}

func (e *AbsentError) Error() string {
	switch {
	case e.Offset >= e.Next:
		return fmt.Sprintf("%s/%d has no record %d yet: it ends before %d", e.Topic, e.Partition, e.Offset, e.Next)
	case e.Offset < e.First:
		return fmt.Sprintf("%s/%d has no record %d any more: it begins at %d", e.Topic, e.Partition, e.Offset, e.First)
	}
	return fmt.Sprintf("%s/%d has no record %d: it was given up or compacted away", e.Topic, e.Partition, e.Offset)
}

// LogSpan is a stretch of a partition, by the timestamps of its records: those of [From, To], to the millisecond.
type LogSpan struct {
	Topic     string
	Partition int32
	From, To  time.Time
	// Most bounds how many records are read.
	Most int
}

// ErrSpanTooLong means that a span of the log has more records than may be read.
var ErrSpanTooLong = errors.New("the span of the log has more records than may be read for one answer")

// OffsetGapError means that neither the archive nor the brokers have some offsets.
type OffsetGapError = stream.OffsetGapError

// errSpanEnds ends the reading of a span.
var errSpanEnds = errors.New("the span ends")

// Scan hands the records of a span to visit, in the log's order, and returns the offset of the first one. It begins with the first
// record that is not older than the span and ends before the first one that is newer, or when visit returns false. The log has them
// from the brokers or the archive; offsets that neither has are a *stream.OffsetGapError.
func (l *Log) Scan(ctx context.Context, span LogSpan, visit func(*kgo.Record) bool) (first int64, err error) {
	first, err = l.brokers.LogOffsetFrom(ctx, span.From, span.Topic, span.Partition)
	if err != nil {
		return 0, err
	}
	_, ends, err := l.brokers.Bounds(ctx, span.Topic)
	if err != nil {
		return 0, err
	}
	read := 0
	err = stream.ReadRange(ctx, l.brokers, span.Topic, span.Partition, first, ends[span.Topic][span.Partition], func(r *kgo.Record) error {
		if read++; read > span.Most {
			return ErrSpanTooLong
		}
		if r.Timestamp.After(span.To) || !visit(r) {
			return errSpanEnds
		}
		return nil
	})
	if errors.Is(err, errSpanEnds) {
		err = nil
	}
	return first, err
}

// Range hands the records of a partition from one offset to another, both included, to visit, until it fails. The log has them from the
// brokers or the archive; offsets that neither has are a *stream.OffsetGapError.
func (l *Log) Range(ctx context.Context, topic string, partition int32, first, last int64, visit func(*kgo.Record) error) error {
	return stream.ReadRange(ctx, l.brokers, topic, partition, first, last+1, visit)
}

// Begins returns the first offset that the log has of each partition of a topic, from the brokers or the archive.
func (l *Log) Begins(ctx context.Context, topic string) (map[int32]int64, error) {
	starts, _, err := l.brokers.LogBounds(ctx, topic)
	return starts[topic], err
}

// Ends returns the offset that each partition of a topic goes on with.
func (l *Log) Ends(ctx context.Context, topic string) (map[int32]int64, error) {
	brokers := l.brokers
	brokers.Archive = nil // it has no later ones
	_, ends, err := brokers.Bounds(ctx, topic)
	return ends[topic], err
}

// PartitionOf is the partition of a topic that a coin's records are in.
func PartitionOf(coinID string, partitions int32) int32 {
	return stream.PartitionFor(coinID, partitions)
}

// Record reads a record of a partition that exists. The error is an *AbsentError where there is none.
func (l *Log) Record(ctx context.Context, topic string, partition int32, offset int64) (LogRecord, error) {
	brokers := l.brokers
	brokers.Archive = nil
	starts, ends, err := brokers.Bounds(ctx, topic)
	if err != nil {
		return LogRecord{}, err
	}
	absent := &AbsentError{Topic: topic, Partition: partition, Offset: offset, First: starts[topic][partition], Next: ends[topic][partition]}
	if offset >= absent.Next {
		return LogRecord{}, absent
	}
	var found LogRecord
	if offset >= absent.First {
		err := stream.ReadBroker(ctx, brokers, topic, partition, offset, offset+1, func(r *kgo.Record) error {
			found.Record = r
			return nil
		})
		if found.Record != nil || err != nil {
			return found, err
		}
	}
	if l.archived == nil || !l.archived.Covers(topic) { // or retention was faster
		return found, absent
	}
	record, segment, err := l.archived.Record(ctx, topic, partition, offset)
	if errors.Is(err, archive.ErrMissing) {
		if first, err := l.archived.Start(ctx, topic, partition, absent.First); err == nil {
			absent.First = first
		}
		return found, absent
	}
	return LogRecord{Record: record, Segment: &segment}, err
}
