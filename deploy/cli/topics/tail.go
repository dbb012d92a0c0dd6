package topics

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
)

type tailOptions struct {
	from      string
	count     int64
	partition int32
	follow    bool
	all       bool
}

// tailRow is one record as `topics tail -o json` prints it: the value by protobuf's rules for JSON, so 64-bit numbers
// are strings and bytes base64.
type tailRow struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Offset    int64  `json:"offset"`
	Time      string `json:"time"`
	// Key is in hexadecimal, with 0x before it, where it is not UTF-8.
	Key   string          `json:"key"`
	Value json.RawMessage `json:"value"`
	// Error reports why the value could not be decoded; Value is its bytes in base64 then.
	Error string `json:"error,omitempty"`
}

func (t topics) tail(ctx context.Context, name string, o tailOptions) error {
	topic, err := schemas.TopicNamed(name)
	if err != nil {
		return fmt.Errorf("%w; `marketlog topics list` shows them", err)
	}
	message, err := protoregistry.GlobalTypes.FindMessageByName(eventsPackage.Append(protoreflect.Name(topic.Message())))
	if err != nil {
		return fmt.Errorf("finding the message of %s: %w", name, err)
	}
	begin, end, err := t.tailRange(ctx, name, o)
	if err == nil && o.from == "" && !o.all {
		err = t.rewind(ctx, name, o.count, begin, end, message)
	}
	if err != nil {
		return err
	}
	partitions := make(map[int32]kgo.Offset)
	left := int64(0)
	for p, at := range begin {
		if at < end[p] || o.follow {
			partitions[p] = kgo.NewOffset().At(at)
			left += end[p] - at
		}
	}
	limit := o.count
	if o.from == "" {
		limit = 0
	}
	if len(partitions) == 0 {
		return nil
	}
	client, err := t.log.NewClient(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{name: partitions}))
	if err != nil {
		return fmt.Errorf("connecting to the log: %w", err)
	}
	defer client.Close()
	reached := make(map[int32]int64, len(partitions))
	for printed := int64(0); ; {
		fetches := client.PollFetches(ctx)
		if ctx.Err() != nil {
			return nil // the way to end --follow
		}
		if err := fetches.Err(); err != nil {
			return fmt.Errorf("reading %s: %w", name, err)
		}
		for i := fetches.RecordIter(); !i.Done(); {
			record := i.Next()
			reached[record.Partition] = record.Offset + 1
			if !o.follow && record.Offset >= end[record.Partition] {
				continue // written after the command began
			}
			if !o.all && isClock(record.Value, message) {
				continue
			}
			if err := t.printRecord(record, message); err != nil {
				return err
			}
			if printed++; printed == limit {
				return nil
			}
		}
		if !o.follow && allReached(partitions, reached, end) {
			return nil
		}
	}
}

// tailStep is how many records a look for the newest of a partition reads first. Pulses come once a second.
const tailStep = 1000

// rewind moves the beginnings back until count records that are no clocks are behind each, or to the partition's start.
func (t topics) rewind(ctx context.Context, name string, count int64, begin, end map[int32]int64, message protoreflect.MessageType) error {
	starts, err := t.admin.ListStartOffsets(ctx, name)
	if err != nil {
		return fmt.Errorf("reading the first offset of %s: %w", name, err)
	}
	for p := range begin {
		start, _ := starts.Lookup(name, p)
		var newest []int64 // offsets of records that are no clocks, ascending
		for step, upper := int64(tailStep), end[p]; upper > start.Offset && int64(len(newest)) < count; step *= 4 {
			lower := max(start.Offset, upper-step)
			var found []int64
			err := stream.ReadRange(ctx, t.log, name, p, lower, upper, func(r *kgo.Record) error {
				if !isClock(r.Value, message) {
					found = append(found, r.Offset)
				}
				return nil
			})
			if err != nil {
				return fmt.Errorf("reading %s/%d: %w", name, p, err)
			}
			newest, upper = append(found, newest...), lower
		}
		begin[p] = end[p]
		if n := min(count, int64(len(newest))); n > 0 {
			begin[p] = newest[int64(len(newest))-n]
		}
	}
	return nil
}

// isClock reports whether a record is a pulse or another clock record. One that cannot be decoded is not: it is shown.
func isClock(value []byte, message protoreflect.MessageType) bool {
	body := message.Descriptor().Oneofs().ByName("body")
	if body == nil {
		return false
	}
	m := message.New()
	if proto.Unmarshal(value, m.Interface()) != nil {
		return false
	}
	field := m.WhichOneof(body)
	return field != nil && (field.Name() == "pulse" || field.Name() == "clock")
}

// allReached reports whether every partition was read to where it ended when the command began. The newest record of a
// partition is there even where a topic is compacted.
func allReached(partitions map[int32]kgo.Offset, reached, end map[int32]int64) bool {
	for p := range partitions {
		if reached[p] < end[p] {
			return false
		}
	}
	return true
}

// eventsPackage is where the topic table's messages are.
var eventsPackage = (&eventsv1.Tick{}).ProtoReflect().Descriptor().ParentFile().Package()

// tailRange gives where to begin and where the partitions end now.
func (t topics) tailRange(ctx context.Context, name string, o tailOptions) (begin, end map[int32]int64, err error) {
	starts, err := t.admin.ListStartOffsets(ctx, name)
	if err == nil {
		err = starts.Error()
	}
	if err != nil {
		return nil, nil, fmt.Errorf("reading the first offset of %s: %w", name, err)
	}
	ends, err := t.admin.ListEndOffsets(ctx, name)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return nil, nil, fmt.Errorf("reading the end offset of %s: %w", name, err)
	}
	var at kadm.ListedOffsets
	offset := int64(-1)
	switch o.from {
	case "", "start", "end":
	default:
		if offset, err = strconv.ParseInt(o.from, 10, 64); err == nil {
			break
		}
		moment, err := time.Parse(time.RFC3339Nano, o.from)
		if err != nil {
			return nil, nil, fmt.Errorf("--from %q is unknown; use start, end, an offset or a time such as 2026-01-31T12:00:00Z", o.from)
		}
		if at, err = t.admin.ListOffsetsAfterMilli(ctx, moment.UnixMilli(), name); err == nil {
			err = at.Error()
		}
		if err != nil {
			return nil, nil, fmt.Errorf("reading the offsets of %s at %s: %w", name, o.from, err)
		}
	}
	begin, end = make(map[int32]int64), make(map[int32]int64)
	ends.Each(func(e kadm.ListedOffset) {
		if o.partition >= 0 && e.Partition != o.partition {
			return
		}
		start, _ := starts.Lookup(name, e.Partition)
		p := e.Partition
		end[p] = e.Offset
		switch {
		case o.from == "":
			begin[p] = max(start.Offset, e.Offset-o.count)
		case o.from == "start":
			begin[p] = start.Offset
		case o.from == "end":
			begin[p] = e.Offset
		case offset >= 0:
			begin[p] = min(max(start.Offset, offset), e.Offset)
		default:
			moment, _ := at.Lookup(name, p)
			begin[p] = moment.Offset
		}
	})
	if len(begin) == 0 {
		return nil, nil, fmt.Errorf("%s has no partition %d", name, o.partition)
	}
	return begin, end, nil
}

func (t topics) printRecord(r *kgo.Record, message protoreflect.MessageType) error {
	row := tailRow{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Time: recordTime(r.Timestamp), Key: string(r.Key)}
	if !utf8.Valid(r.Key) {
		row.Key = fmt.Sprintf("%#x", r.Key)
	}
	value, err := decodeRecord(r.Value, message)
	if err != nil {
		row.Error = err.Error()
		value, _ = json.Marshal(r.Value)
	}
	row.Value = value
	if t.out.JSON {
		return t.out.Object(row)
	}
	_, err = fmt.Fprintf(t.Stdout, "%s/%d@%d  %s  %s  %s%s\n", row.Topic, row.Partition, row.Offset, row.Time, row.Key, row.Value, row.Error)
	return err
}

// decodeRecord turns a value into JSON; no value, which ends a key of a compacted topic, is null.
func decodeRecord(value []byte, message protoreflect.MessageType) (json.RawMessage, error) {
	if value == nil {
		return json.RawMessage("null"), nil
	}
	m := message.New().Interface()
	if err := proto.Unmarshal(value, m); err != nil {
		return nil, fmt.Errorf("decoding %s: %w", message.Descriptor().Name(), err)
	}
	encoded, err := protojson.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", message.Descriptor().Name(), err)
	}
	// protojson varies its spaces on purpose.
	var compact bytes.Buffer
	if err := json.Compact(&compact, encoded); err != nil {
		return nil, fmt.Errorf("encoding %s: %w", message.Descriptor().Name(), err)
	}
	return compact.Bytes(), nil
}
