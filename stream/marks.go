package stream

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// Borrower decodes the values of one topic, one after the other. What it returns lives until the next
// is decoded, and in the value's memory: it is for readers that copy what they keep. It is used by one goroutine.
type Borrower struct {
	topic schemas.Topic
	// unknown is why nothing can be decoded: the topic is not in the table.
	unknown error
	// tick is what ticks are decoded into, of which there are more than of all else: new memory for each would take a
	// fifth of a sink's time.
	tick struct {
		record   eventsv1.ResolvedRecord
		mark     eventsv1.Mark
		body     eventsv1.ResolvedRecord_Tick
		resolved eventsv1.ResolvedTick
		raw      eventsv1.Tick
	}
}

// NewBorrower returns one for a topic.
func NewBorrower(topic string) *Borrower {
	b := &Borrower{}
	b.topic, b.unknown = schemas.TopicNamed(topic)
	return b
}

// Decode decodes a value of the topic. It refuses what schemas.DecodeRecord refuses.
func (b *Borrower) Decode(value []byte) (eventsv1.Marked, error) {
	rec, err := b.decode(value)
	if err != nil {
		return nil, err
	}
	if err := b.topic.Check(rec); err != nil {
		return nil, err
	}
	return rec, nil
}

func (b *Borrower) decode(value []byte) (eventsv1.Marked, error) {
	switch {
	case b.unknown != nil:
		return nil, b.unknown
	case b.topic.Name == schemas.TopicTicks:
		return b.decodeTick(value)
	}
	rec := b.topic.New()
	return rec, rec.UnmarshalVTUnsafe(value)
}

// decodeTick lets the value's fields find the messages that they belong to, emptied. What is more or less than a tick
// with its mark, as a control is, gets memory of its own: an emptied mark that no field finds would be one.
func (b *Borrower) decodeTick(value []byte) (eventsv1.Marked, error) {
	if !markedTick(value) {
		rec := &eventsv1.ResolvedRecord{}
		return rec, rec.UnmarshalVTUnsafe(value)
	}
	t := &b.tick
	t.mark, t.raw = eventsv1.Mark{}, eventsv1.Tick{}
	t.resolved = eventsv1.ResolvedTick{Tick: &t.raw}
	t.body.Tick = &t.resolved
	t.record = eventsv1.ResolvedRecord{Mark: &t.mark, Body: &t.body}
	return &t.record, t.record.UnmarshalVTUnsafe(value)
}

// Fields of a ResolvedRecord.
const (
	fieldMark protowire.Number = 1
	fieldTick protowire.Number = 2
)

// markedTick reports whether a value has a mark, a tick and nothing else.
func markedTick(value []byte) bool {
	var marks, ticks int
	for len(value) > 0 {
		number, kind, n := protowire.ConsumeTag(value)
		if n < 0 || kind != protowire.BytesType {
			return false
		}
		_, length := protowire.ConsumeBytes(value[n:])
		if length < 0 {
			return false
		}
		switch number {
		case fieldMark:
			marks++
		case fieldTick:
			ticks++
		default:
			return false
		}
		value = value[n+length:]
	}
	return marks == 1 && ticks == 1
}

// CompleteSince is the log time from which on a topic still has every record: that of the oldest record of the partition
// that begins latest. It is zero where retention has removed nothing yet.
func CompleteSince(ctx context.Context, cfg Config, topic string) (since time.Time, err error) {
	starts, ends, err := cfg.LogBounds(ctx, topic)
	if err != nil {
		return since, err
	}
	for partition, start := range starts[topic] {
		end := ends[topic][partition]
		if start == 0 || start >= end {
			continue
		}
		first := time.Time{}
		err := ReadRange(ctx, cfg, topic, partition, start, end, func(r *kgo.Record) error {
			first = r.Timestamp
			return errFound
		})
		if err != nil && !errors.Is(err, errFound) {
			return since, err
		}
		if first.After(since) {
			since = first
		}
	}
	return since, nil
}

// errFound ends a read that has what it looked for.
var errFound = errors.New("found")

// readStall bounds how long a read of records that must exist may see none of them.
const readStall = 30 * time.Second

// ReadBroker hands the records of [from, to) of one partition that the broker has to visit, in order. Offsets that
// retention or compaction removed are passed over.
func ReadBroker(ctx context.Context, cfg Config, topic string, partition int32, from, to int64, visit func(*kgo.Record) error) error {
	reader, err := cfg.newReader()
	if err != nil {
		return fmt.Errorf("opening a reader of %s: %w", topic, err)
	}
	defer reader.Close()
	return readSpans(ctx, reader, topic, map[int32]span{partition: {from, to}}, visit)
}

// span are the offsets [from, to).
type span struct{ from, to int64 }

// readSpans hands the records of a span of each of some partitions to visit, those of a partition in order, by a client that
// consumes nothing yet.
func readSpans(ctx context.Context, reader *kgo.Client, topic string, spans map[int32]span, visit func(*kgo.Record) error) error {
	next, begin := map[int32]int64{}, map[int32]kgo.Offset{}
	for p, s := range spans {
		if s.from < s.to {
			next[p], begin[p] = s.from, kgo.NewOffset().At(s.from)
		}
	}
	reader.AddConsumePartitions(map[string]map[int32]kgo.Offset{topic: begin})
	for len(next) > 0 {
		pollCtx, cancel := context.WithTimeout(ctx, readStall)
		fetches := reader.PollFetches(pollCtx)
		cancel()
		if err := ctx.Err(); err != nil {
			return err
		}
		if errs := fetches.Errors(); len(errs) > 0 {
			p, offset := leastNext(next)
			return fmt.Errorf("reading %s/%d from %d: %w", topic, p, offset, errs[0].Err)
		}
		var visitErr error
		fetches.EachRecord(func(r *kgo.Record) {
			s := spans[r.Partition]
			if visitErr == nil && r.Offset < s.to {
				visitErr = visit(r)
			}
			if r.Offset+1 >= s.to {
				delete(next, r.Partition)
			} else {
				next[r.Partition] = r.Offset + 1
			}
		})
		if visitErr != nil {
			return visitErr
		}
	}
	return nil
}

// leastNext is the first partition that is still read, and where.
func leastNext(next map[int32]int64) (partition int32, offset int64) {
	partition = slices.Min(slices.Collect(maps.Keys(next)))
	return partition, next[partition]
}
