// Package processors runs folds: deterministic state machines, one per input partition, that turn
// one topic of the log into others. A fold that is killed at any moment begins again where its own
// outputs say, so its effect on the log is the same as if it had never stopped.
//
// Each sub-package is one state machine; none of them reads a clock, a store or the network.
package processors

import (
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
)

// logicVersions are those of the topic table, to be found for every record that is put out.
var logicVersions = func() map[string]uint32 {
	versions := map[string]uint32{}
	for _, t := range schemas.Topics {
		if t.Logic > 0 {
			versions[t.Name] = t.Logic
		}
	}
	return versions
}()

// LogicVersion is that of the fold which derives a topic: it changes whenever that fold could derive another record from
// the same input, and with it only the version of its own rows. It is the upper half of the version of every row. What each
// version of prices, candles and the folds of log minutes derives is frozen in testdata. It panics for a topic that no fold
// derives.
func LogicVersion(topic string) uint32 {
	v, ok := logicVersions[topic]
	if !ok {
		panic("processors: no fold derives the topic " + topic)
	}
	return v
}

// WindowMemory is the span before now of a fold's window state: a minute that is still open, the
// freshness of two minutes, and the ids of duplicates. A fold that rewinds this far (see rewind)
// has the same state as one that never stopped.
const WindowMemory = 180 * time.Second

// Input is one record of a fold's input partition.
type Input struct {
	Topic     string
	Partition int32
	Offset    int64
	// Value is the record as written; it must not be kept.
	Value []byte
	// Record is the decoded value of a derived topic, else nil. It must not be changed, and neither it nor its strings may be kept,
	// which lie in Value: the next record is decoded into it.
	Record eventsv1.Marked
	// Written means that the log holds all that this input causes: who begins again reads it for the state that it leaves, and may
	// pass over what only its outputs need. WrittenUntil is the watermark up to which the outputs in the log have come then, Unix
	// nanoseconds.
	Written      bool
	WrittenUntil int64
}

// Fold is a deterministic state machine over one input partition: the same inputs in the same
// order give the same outputs, however they are batched. It is used by one goroutine.
type Fold interface {
	// Apply folds one input and adds what it causes to out. An error is a defect: it stops the role.
	// What cannot be decoded is not an error.
	Apply(in Input, out *Outputs) error
	// Clocks are the log time reached and the watermark, Unix nanoseconds; 0 before the first.
	Clocks() (now, watermark int64)
}

// Follower is a fold that also takes what the fold before it in a chain put out.
type Follower interface {
	Fold
	// Follow takes one output of the fold before it, caused by the input that Apply gets next.
	Follow(o Output, out *Outputs) error
}

// Output is one derived record and where it goes.
type Output struct {
	Topic     string
	Partition int32
	Key       string
	// Time is the log time of the record, Unix nanoseconds.
	Time   int64
	Record eventsv1.Marked
}

// Outputs collects what one input causes, and marks each with its place.
type Outputs struct {
	List  []Output
	input Input
	index uint32
}

// Begin empties the list and makes in the cause of what comes next.
func (o *Outputs) Begin(in Input) {
	clear(o.List)
	o.List = o.List[:0]
	o.input, o.index = in, 0
}

// Emit adds one record.
func (o *Outputs) Emit(topic string, partition int32, key string, at int64, record eventsv1.Marked) {
	record.SetMark(&eventsv1.Mark{
		LogicVersion: LogicVersion(topic),
		Partition:    o.input.Partition,
		Offset:       o.input.Offset,
		Index:        o.index,
	})
	o.index++
	o.List = append(o.List, Output{Topic: topic, Partition: partition, Key: key, Time: at, Record: record})
}

// EmitByKey adds one record to the partition that its key belongs to among n.
func (o *Outputs) EmitByKey(topic string, n int32, key string, at int64, record eventsv1.Marked) {
	o.Emit(topic, stream.PartitionFor(key, n), key, at, record)
}

// Chain runs folds over the same input, one after the other: each but the first also follows
// what those before it put out. The whole is one fold, replayed as one.
func Chain(first Fold, followers ...Follower) Fold {
	return &chain{first: first, followers: followers}
}

type chain struct {
	first     Fold
	followers []Follower
}

func (c *chain) Clocks() (now, watermark int64) { return c.first.Clocks() }

func (c *chain) Apply(in Input, out *Outputs) error {
	if err := c.first.Apply(in, out); err != nil {
		return err
	}
	for _, f := range c.followers {
		caused := len(out.List)
		for i := range caused {
			if err := f.Follow(out.List[i], out); err != nil {
				return err
			}
		}
		if err := f.Apply(in, out); err != nil {
			return err
		}
	}
	return nil
}

// kafkaRecord is the output as it is written.
func (o Output) kafkaRecord() (*kgo.Record, error) {
	size := o.Record.SizeVT()
	value := make([]byte, size)
	if _, err := o.Record.MarshalToSizedBufferVT(value); err != nil {
		return nil, err
	}
	return &kgo.Record{
		Topic:     o.Topic,
		Partition: o.Partition,
		Key:       []byte(o.Key),
		Value:     value,
		Timestamp: time.Unix(0, o.Time),
	}, nil
}
