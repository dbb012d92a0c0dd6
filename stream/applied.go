package stream

import (
	"context"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// tailStep is how many records a look at the end of a partition reads first; it grows fourfold until every origin was seen. Pulses
// come once a second from each origin, so the first step nearly always does.
const tailStep = 1_000

// Applied is what one output partition holds of one input partition: the mark of the newest
// record that it caused, the newest checkpoint among them, and the watermark of the pulse that holds it, Unix nanoseconds.
type Applied struct {
	Mark       *eventsv1.Mark
	Checkpoint *eventsv1.Checkpoint
	Watermark  int64
}

// LastApplied reads partitions of an output topic, each from its end until it has met a checkpoint of every origin below origins, or
// its start. The result is by partition and origin; an origin that never wrote to a partition is missing there.
func LastApplied(ctx context.Context, cfg Config, topic string, partitions []int32, origins int32) (map[int32]map[int32]Applied, error) {
	// One client reads the ends of all: a start waits for this, and a client a partition is some round trips each.
	reader, err := cfg.newReader()
	if err != nil {
		return nil, fmt.Errorf("opening a reader of %s: %w", topic, err)
	}
	defer reader.Close()
	starts, ends, err := Bounds(ctx, reader, topic)
	if err != nil {
		return nil, err
	}
	last := map[int32]*lastRecords{}
	spans := map[int32]span{}
	for _, p := range partitions {
		start, known := starts[topic][p]
		if !known {
			return nil, fmt.Errorf("topic %s has no partition %d", topic, p)
		}
		end := ends[topic][p]
		last[p] = &lastRecords{topic: topic}
		spans[p] = span{max(start, end-tailStep), end}
	}
	err = readSpans(ctx, reader, topic, spans, func(r *kgo.Record) error {
		last[r.Partition].add(r.Value)
		return nil
	})
	if err != nil {
		return nil, err
	}
	all := map[int32]map[int32]Applied{}
	for p, l := range last {
		all[p] = l.applied()
		if complete(all[p], origins) {
			continue
		}
		if err := appliedBefore(ctx, cfg, topic, p, spans[p].from, origins, all[p]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// appliedBefore completes what was found at the end of a partition, of which all from upper on was read.
func appliedBefore(ctx context.Context, cfg Config, topic string, partition int32, upper int64, origins int32, applied map[int32]Applied) error {
	starts, _, err := cfg.LogBounds(ctx, topic)
	if err != nil {
		return err
	}
	start := starts[topic][partition]
	for step := int64(4 * tailStep); upper > start && !complete(applied, origins); step *= 4 {
		lower := max(start, upper-step)
		chunk := map[int32]Applied{}
		err := ReadRange(ctx, cfg, topic, partition, lower, upper, func(r *kgo.Record) error {
			rec, err := schemas.DecodeRecord(topic, r.Value)
			if err != nil {
				return nil // no fold wrote it
			}
			mark := rec.GetMark()
			if mark == nil {
				return nil
			}
			a := chunk[mark.Partition]
			if mark.After(a.Mark) {
				a.Mark = mark
			}
			if c := rec.GetPulse().GetCheckpoint(); c != nil {
				a.Checkpoint, a.Watermark = c, rec.GetPulse().Watermark
			}
			chunk[mark.Partition] = a
			return nil
		})
		if err != nil {
			return err
		}
		for origin, older := range chunk {
			a := applied[origin]
			if older.Mark.After(a.Mark) {
				a.Mark = older.Mark
			}
			if a.Checkpoint == nil {
				a.Checkpoint, a.Watermark = older.Checkpoint, older.Watermark
			}
			applied[origin] = a
		}
		upper = lower
	}
	return nil
}

func complete(applied map[int32]Applied, origins int32) bool {
	if len(applied) < int(origins) {
		return false
	}
	for _, a := range applied {
		if a.Checkpoint == nil {
			return false
		}
	}
	return true
}

// lastRecords are the last of one output partition. Only those that count are decoded, a mark and a pulse of each origin: prices
// have all their inputs in them.
type lastRecords struct {
	topic   string
	origins map[int32]*lastOfOrigin
}

type lastOfOrigin struct {
	records []markedValue // all, in the order of the log
	pulses  [][]byte
}

type markedValue struct {
	mark  *eventsv1.Mark
	value []byte
}

// add takes the next record, whose value must not change afterwards.
func (l *lastRecords) add(value []byte) {
	mark, pulse, ok := markOf(l.topic, value)
	if !ok {
		return // no fold wrote it
	}
	if l.origins == nil {
		l.origins = map[int32]*lastOfOrigin{}
	}
	o := l.origins[mark.Partition]
	if o == nil {
		o = &lastOfOrigin{}
		l.origins[mark.Partition] = o
	}
	o.records = append(o.records, markedValue{mark, value})
	if pulse {
		o.pulses = append(o.pulses, value)
	}
}

// applied is what they hold of each origin. What cannot be decoded does not count: no fold wrote it.
func (l *lastRecords) applied() map[int32]Applied {
	applied := map[int32]Applied{}
	for origin, o := range l.origins {
		var a Applied
		slices.SortStableFunc(o.records, func(x, y markedValue) int {
			switch {
			case x.mark.After(y.mark):
				return 1
			case y.mark.After(x.mark):
				return -1
			}
			return 0
		})
		for _, r := range slices.Backward(o.records) {
			if rec, err := schemas.DecodeRecord(l.topic, r.value); err == nil {
				a.Mark = rec.GetMark()
				break
			}
		}
		if a.Mark == nil {
			continue
		}
		for _, value := range slices.Backward(o.pulses) {
			rec, err := schemas.DecodeRecord(l.topic, value)
			if err != nil {
				continue
			}
			if c := rec.GetPulse().GetCheckpoint(); c != nil {
				a.Checkpoint, a.Watermark = c, rec.GetPulse().Watermark
				break
			}
		}
		applied[origin] = a
	}
	return applied
}
