package topics

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"
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
	reached, splicer := make(map[int32]int64, len(partitions)), stream.NewSplicer(t.log)
	for p := range partitions {
		splicer.Begin(name, p, begin[p])
	}
	printed := int64(0)
	show := func(_ string, _ int32, records []*kgo.Record) error {
		for _, record := range records {
			reached[record.Partition] = record.Offset + 1
			if !o.follow && record.Offset >= end[record.Partition] {
				continue // written after the command began
			}
			if !o.all && isClock(record.Value, message) {
				continue
			}
			if err := t.printRecord(record, topic); err != nil {
				return err
			}
			if printed++; printed == limit {
				return errPrinted
			}
		}
		return nil
	}
	for o.follow || !allReached(partitions, reached, end) {
		wait, stop := ctx, func() {}
		if splicer.Behind() {
			wait, stop = context.WithTimeout(ctx, time.Millisecond)
		}
		fetches := client.PollFetches(wait)
		stop()
		if ctx.Err() != nil {
			return nil // the way to end --follow
		}
		if err := fetches.Err(); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("reading %s: %w", name, err)
		}
		err := splicer.Take(ctx, client, fetches, func(string, int32) bool { return false }, show)
		if errors.Is(err, errPrinted) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// errPrinted means that as many records are printed as were asked for.
var errPrinted = errors.New("printed")

// tailStep is how many records a look for the newest of a partition reads first. Pulses come once a second.
const tailStep = 1000

// rewind moves the beginnings back until count records that are not clock records come after each, or to the partition's start.
func (t topics) rewind(ctx context.Context, name string, count int64, begin, end map[int32]int64, message protoreflect.MessageType) error {
	starts, _, err := t.log.LogBounds(ctx, name)
	if err != nil {
		return err
	}
	for p := range begin {
		start := starts[name][p]
		var newest []int64 // offsets of records that are not clocks, ascending
		for step, upper := int64(tailStep), end[p]; upper > start && int64(len(newest)) < count; step *= 4 {
			lower := max(start, upper-step)
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
	starts, ends, err := t.log.LogBounds(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	var at stream.Offsets
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
		if at, err = t.log.LogOffsetsFrom(ctx, moment, name); err != nil {
			return nil, nil, err
		}
	}
	begin, end = make(map[int32]int64), make(map[int32]int64)
	for p, last := range ends[name] {
		if o.partition >= 0 && p != o.partition {
			continue
		}
		start := starts[name][p]
		end[p] = last
		switch {
		case o.from == "":
			begin[p] = max(start, last-o.count)
		case o.from == "start":
			begin[p] = start
		case o.from == "end":
			begin[p] = last
		case offset >= 0:
			begin[p] = min(max(start, offset), last)
		default:
			begin[p] = at[name][p]
		}
	}
	if len(begin) == 0 {
		return nil, nil, fmt.Errorf("%s has no partition %d", name, o.partition)
	}
	return begin, end, nil
}

func (t topics) printRecord(r *kgo.Record, topic schemas.Topic) error {
	row := tailRow{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Time: recordTime(r.Timestamp), Key: string(r.Key)}
	if !utf8.Valid(r.Key) {
		row.Key = fmt.Sprintf("%#x", r.Key)
	}
	value, err := topic.RecordJSON(r.Value)
	if err != nil {
		row.Error = err.Error()
		value, _ = json.Marshal(r.Value)
	}
	row.Value = value
	if t.out.Objects() {
		return t.out.Object(row)
	}
	_, err = fmt.Fprintf(t.Stdout, "%s/%d@%d  %s  %s  %s%s\n", row.Topic, row.Partition, row.Offset, row.Time, row.Key, row.Value, row.Error)
	return err
}
