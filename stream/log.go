package stream

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Archive is the part of the log that the broker may have no longer. Its methods are safe for concurrent use.
type Archive interface {
	// Covers reports whether records of a topic are archived at all.
	Covers(topic string) bool
	// Start is the least offset from which on the archive has every record up to the offset before, which it returns itself
	// where the archive does not reach it.
	Start(ctx context.Context, topic string, partition int32, before int64) (int64, error)
	// Read hands the archived records of [from, to) to visit, in order, and returns the offset after the last one. It ends
	// before an offset that is not archived.
	Read(ctx context.Context, topic string, partition int32, from, to int64, visit func(*kgo.Record) error) (next int64, err error)
	// Segment returns the first archived records of [from, to) that lie in one segment, some megabytes; none if there are
	// none. They were compared with the segment's digest.
	Segment(ctx context.Context, topic string, partition int32, from, to int64) ([]*kgo.Record, error)
	// After is the first offset of [from, to) whose record has a timestamp at or after a time, to the millisecond; to if
	// there is none, or where the archive lacks an offset.
	After(ctx context.Context, topic string, partition int32, at time.Time, from, to int64) (int64, error)
}

// OffsetGapError means that neither the archive nor the broker has some offsets of an archived partition.
type OffsetGapError struct {
	Topic      string
	Partition  int32
	From, Next int64
}

func (e *OffsetGapError) Error() string {
	return fmt.Sprintf("offsets %d to %d of %s/%d are neither in the archive nor on the broker", e.From, e.Next, e.Topic, e.Partition)
}

// LogBounds are Bounds of the whole log: the first offset of a partition is that of the archive, where its records go on
// with those that the brokers have.
func (c Config) LogBounds(ctx context.Context, topics ...string) (starts, ends Offsets, err error) {
	starts, ends, err = c.Bounds(ctx, topics...)
	if err != nil {
		return nil, nil, err
	}
	for topic, partitions := range starts {
		if !c.archives(topic) {
			continue
		}
		for partition, start := range partitions {
			if start == 0 { // nothing was before that could be archived: the archive, which may be away, is not asked
				continue
			}
			if partitions[partition], err = c.Archive.Start(ctx, topic, partition, start); err != nil {
				return nil, nil, fmt.Errorf("finding the start of %s/%d: %w", topic, partition, err)
			}
		}
	}
	return starts, ends, nil
}

// LogOffsetsFrom are OffsetsFrom of the whole log.
func (c Config) LogOffsetsFrom(ctx context.Context, at time.Time, topics ...string) (Offsets, error) {
	return c.logOffsetsFrom(ctx, at, func(int32) bool { return true }, topics...)
}

// LogOffsetFrom is that of one partition, the archive of which alone is read.
func (c Config) LogOffsetFrom(ctx context.Context, at time.Time, topic string, partition int32) (int64, error) {
	offsets, err := c.logOffsetsFrom(ctx, at, func(p int32) bool { return p == partition }, topic)
	return offsets[topic][partition], err
}

// logOffsetsFrom looks into the archive of those partitions alone that are wanted; of others the offset is that of the brokers.
func (c Config) logOffsetsFrom(ctx context.Context, at time.Time, wanted func(partition int32) bool, topics ...string) (Offsets, error) {
	client, err := c.NewClient()
	if err != nil {
		return nil, fmt.Errorf("opening a client: %w", err)
	}
	defer client.Close()
	offsets, err := OffsetsFrom(ctx, client, at, topics...)
	if err != nil {
		return nil, err
	}
	held, _, err := Bounds(ctx, client, topics...)
	if err != nil {
		return nil, err
	}
	for topic, partitions := range offsets {
		if !c.archives(topic) {
			continue
		}
		for partition, offset := range partitions {
			start := held[topic][partition]
			if !wanted(partition) || start == 0 || offset > start { // the brokers have all of the log, or one before that time and all since
				continue
			}
			first, err := c.Archive.Start(ctx, topic, partition, start)
			if err == nil {
				partitions[partition], err = c.Archive.After(ctx, topic, partition, at, first, start)
			}
			if err != nil {
				return nil, fmt.Errorf("finding %s in %s/%d: %w", at.UTC().Format(time.RFC3339), topic, partition, err)
			}
			partitions[partition] = max(partitions[partition], first)
		}
	}
	return offsets, nil
}

// TopicIDs are the broker's ids of topics, 32 hexadecimal digits each. A topic that is deleted and made again has another.
func TopicIDs(ctx context.Context, cfg Config, topics ...string) (map[string]string, error) {
	client, err := cfg.NewClient()
	if err != nil {
		return nil, fmt.Errorf("opening a client: %w", err)
	}
	defer client.Close()
	details, err := kadm.NewClient(client).ListTopics(ctx, topics...)
	if err == nil {
		err = details.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("listing topics: %w", err)
	}
	ids := make(map[string]string, len(topics))
	for _, topic := range topics {
		id := details[topic].ID
		ids[topic] = hex.EncodeToString(id[:])
	}
	return ids, nil
}

// ReadRange hands the records of [from, to) of one partition to visit, in order. Of a topic that an archive covers, those that
// the brokers have no longer come from there, and an offset that neither has is an *OffsetGapError; of other topics, offsets that
// retention or compaction removed are passed over.
func ReadRange(ctx context.Context, cfg Config, topic string, partition int32, from, to int64, visit func(*kgo.Record) error) error {
	if from >= to {
		return nil
	}
	if !cfg.archives(topic) {
		return ReadBroker(ctx, cfg, topic, partition, from, to, visit)
	}
	skipped, behind := int64(-1), int64(-1) // where the broker passed over offsets that its own bounds promise, and up to where
	for next := from; ; {
		starts, _, err := cfg.Bounds(ctx, topic)
		if err != nil {
			return err
		}
		start := starts[topic][partition]
		if next == skipped { // it was not a retention: the broker has lost them
			start = max(start, behind)
		}
		if next < start {
			if next, err = cfg.Archive.Read(ctx, topic, partition, next, min(to, start), visit); err != nil {
				return fmt.Errorf("reading %s/%d from the archive: %w", topic, partition, err)
			}
		}
		if next >= to {
			return nil
		}
		if next < start {
			return &OffsetGapError{Topic: topic, Partition: partition, From: next, Next: min(to, start)}
		}
		err = ReadBroker(ctx, cfg, topic, partition, next, to, func(r *kgo.Record) error {
			if r.Offset != next {
				behind = r.Offset
				return errRetention
			}
			next++
			return visit(r)
		})
		if !errors.Is(err, errRetention) {
			return err
		}
		skipped = next // if it was retention, the bounds have changed, and the archive has the record
	}
}

// archives reports whether what leaves the broker of a topic is in an archive.
func (c Config) archives(topic string) bool { return c.Archive != nil && c.Archive.Covers(topic) }

// errRetention means that the broker passed over offsets.
var errRetention = errors.New("offsets were removed while they were read")
