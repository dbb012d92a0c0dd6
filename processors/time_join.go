package processors

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
)

// joinStep is into which spans of log time a join sorts records: log seconds or log minutes. A span is named by a time in
// Unix nanoseconds.
type joinStep struct {
	// passOver reports whether a value is of a record that the fold does not take, before it is decoded; nil: none is.
	passOver func(value []byte) bool
	// sort puts a decoded record of a partition into its span, and moves how far the partition is whole.
	sort func(p *joinPartition, rec *kgo.Record, record eventsv1.Marked)
	// length is that of a span.
	length time.Duration
	// clockless is the span of what comes before the first clock: it is never folded.
	clockless int64
	// memory is the log time before a span that the fold of it depends on. A checkpoint lies so far back; with clocks to
	// settle, by settle and at least so many spans further.
	memory, settle time.Duration
	settlePlaces   int
	// unit is what the times of checkpoints are counted in.
	unit time.Duration
	// maxPending is how many spans of one partition wait for those of another before it is held back: while a backlog is
	// read, all of it would lie in memory otherwise.
	maxPending int
}

// timeJoin sorts the records of all partitions of several topics into spans of log time. The clocks of each partition part
// it into spans; a span is handed over when it is whole in all partitions, partition by partition. So how they were read side
// by side makes no difference. It is used by one goroutine.
type timeJoin struct {
	step       joinStep
	partitions []*joinPartition
	// first is the place of the first partition of each topic.
	first map[string]int
	// begins remembers where each of the last spans began, for the checkpoints.
	begins []spanBegin
}

type joinPartition struct {
	topic     schemas.Topic
	partition int32
	next      int64
	clocks    schemas.Clocks // of a topic that producers write
	last      *eventsv1.Mark // of a derived one
	// reached is the last span that is whole here.
	reached int64
	pending map[int64]*segment
}

// segment is what one partition holds of one span.
type segment struct {
	begin   int64
	records []joined
}

// joined is a record in its span.
type joined struct {
	in  Input
	rec eventsv1.Marked
}

type spanBegin struct {
	span    int64
	offsets []int64
}

// newTimeJoin begins where a checkpoint says, nil for the beginning of the log.
func newTimeJoin(step joinStep, inputs []schemas.Topic, checkpoint *eventsv1.Checkpoint) *timeJoin {
	j := &timeJoin{step: step, first: map[string]int{}}
	for _, topic := range inputs {
		j.first[topic.Name] = len(j.partitions)
		for p := range topic.Partitions {
			j.partitions = append(j.partitions, &joinPartition{
				topic: topic, partition: p, reached: step.clockless - int64(step.length), pending: map[int64]*segment{},
			})
		}
	}
	begin := spanBegin{span: checkpoint.GetOffset() * int64(step.unit), offsets: make([]int64, len(j.partitions))}
	for _, mark := range checkpoint.GetMarks() {
		if int(mark.Partition) < len(j.partitions) { // the place in the list of all partitions
			j.partitions[mark.Partition].next = mark.Offset
			begin.offsets[mark.Partition] = mark.Offset
		}
	}
	j.begins = []spanBegin{begin}
	return j
}

// inputTopics are the rows of topics by their names.
func inputTopics(names ...string) ([]schemas.Topic, error) {
	topics := make([]schemas.Topic, len(names))
	for i, name := range names {
		topic, err := schemas.TopicNamed(name)
		if err != nil {
			return nil, err
		}
		topics[i] = topic
	}
	return topics, nil
}

func (j *timeJoin) find(topic string, partition int32) *joinPartition {
	return j.partitions[j.first[topic]+int(partition)]
}

// offsets are where the partitions are read from.
func (j *timeJoin) offsets() map[string]map[int32]kgo.Offset {
	offsets := map[string]map[int32]kgo.Offset{}
	for _, p := range j.partitions {
		if offsets[p.topic.Name] == nil {
			offsets[p.topic.Name] = map[int32]kgo.Offset{}
		}
		offsets[p.topic.Name][p.partition] = kgo.NewOffset().At(p.next)
	}
	return offsets
}

// add puts a record where it belongs. One that cannot be decoded is passed over: the sink of the topic reports it, or the
// fold that resolves ticks.
func (j *timeJoin) add(rec *kgo.Record) {
	p := j.find(rec.Topic, rec.Partition)
	if rec.Offset < p.next {
		return
	}
	p.next = rec.Offset + 1
	if j.step.passOver != nil && j.step.passOver(rec.Value) {
		return
	}
	record, err := schemas.DecodeRecord(rec.Topic, rec.Value)
	if err != nil {
		return
	}
	if mark := record.GetMark(); p.topic.Derived && mark != nil {
		if !mark.After(p.last) {
			return // a duplicate's
		}
		p.last = mark
	}
	j.step.sort(p, rec, record)
}

// span is the segment of a span here, which begins with the record if it is new.
func (p *joinPartition) span(span int64, rec *kgo.Record) *segment {
	s := p.pending[span]
	if s == nil {
		s = &segment{begin: rec.Offset}
		p.pending[span] = s
	}
	return s
}

func (s *segment) add(rec *kgo.Record, record eventsv1.Marked) {
	s.records = append(s.records, joined{Input{Topic: rec.Topic, Partition: rec.Partition, Offset: rec.Offset}, record})
}

// closer folds a span that is whole; the checkpoint is where the inputs are to be read again from, to have its state.
type closer func(span int64, records []joined, checkpoint *eventsv1.Checkpoint) error

// close hands over all spans that are whole, in order.
func (j *timeJoin) close(fold closer) error {
	whole := int64(math.MaxInt64)
	for _, p := range j.partitions {
		whole = min(whole, p.reached)
	}
	spans := map[int64]bool{}
	for _, p := range j.partitions {
		for span := range p.pending {
			if span <= whole {
				spans[span] = true
			}
		}
	}
	for _, span := range slices.Sorted(maps.Keys(spans)) {
		var records []joined
		begin := spanBegin{span: span, offsets: slices.Clone(j.begins[len(j.begins)-1].offsets)}
		for i, p := range j.partitions {
			if s := p.pending[span]; s != nil {
				records = append(records, s.records...)
				begin.offsets[i] = s.begin
				delete(p.pending, span)
			}
		}
		j.begins = append(j.begins, begin)
		j.forget(span - int64(j.step.memory))
		if span <= j.step.clockless {
			continue
		}
		if err := fold(span, records, j.checkpoint()); err != nil {
			return err
		}
	}
	return nil
}

// forget drops the begins that lie further back than a fold remembers and its clocks need to settle.
func (j *timeJoin) forget(memory int64) {
	places := j.step.settlePlaces
	for len(j.begins) > places && j.begins[1].span <= memory-int64(j.step.settle) && j.begins[places].span <= memory {
		j.begins = j.begins[1:]
	}
}

// holdBack reads no more of a partition that is far ahead of another.
func (j *timeJoin) holdBack(reader *kgo.Client) {
	ahead, rest := map[string][]int32{}, map[string][]int32{}
	for _, p := range j.partitions {
		if len(p.pending) > j.step.maxPending {
			ahead[p.topic.Name] = append(ahead[p.topic.Name], p.partition)
		} else {
			rest[p.topic.Name] = append(rest[p.topic.Name], p.partition)
		}
	}
	if len(rest) == 0 {
		return // none is ahead of another: what waits is handed over next
	}
	reader.ResumeFetchPartitions(rest)
	reader.PauseFetchPartitions(ahead)
}

// checkpoint is where the inputs are read again from, by the place of each partition in the list of all.
func (j *timeJoin) checkpoint() *eventsv1.Checkpoint {
	begin := j.begins[0]
	c := &eventsv1.Checkpoint{Offset: begin.span / int64(j.step.unit)}
	for i, offset := range begin.offsets {
		c.Marks = append(c.Marks, &eventsv1.Mark{Partition: int32(i), Offset: offset})
	}
	return c
}

// exhausted reports whether no span can become whole any more below the ends: one partition is read to its end, and all others
// have come as far or are read to theirs.
func (j *timeJoin) exhausted(ends stream.Offsets) bool {
	limit := int64(math.MaxInt64)
	for _, p := range j.partitions {
		if p.next >= ends[p.topic.Name][p.partition] {
			limit = min(limit, p.reached)
		}
	}
	for _, p := range j.partitions {
		if p.next < ends[p.topic.Name][p.partition] && p.reached < limit {
			return false
		}
	}
	return true
}

// read reads the inputs from the join's position and hands over the spans as they become whole: without an end until the
// context ends, else up to the ends. What it took of a partition is passed to took, whose error ends it.
func (j *timeJoin) read(
	ctx context.Context, log stream.Config, ends stream.Offsets, took func([]*kgo.Record) error, fold closer,
) error {
	client := log
	if ends == nil { // spans are whole some seconds after their end
		client = log.Gathering()
	}
	reader, err := client.NewClient(kgo.ConsumePartitions(j.offsets()))
	if err != nil {
		return fmt.Errorf("opening a reader: %w", err)
	}
	defer reader.Close()
	splicer := stream.NewSplicer(log)
	for _, p := range j.partitions {
		splicer.Begin(p.topic.Name, p.partition, p.next)
	}
	ahead := func(topic string, partition int32) bool {
		return len(j.find(topic, partition).pending) > j.step.maxPending
	}
	take := func(topic string, partition int32, records []*kgo.Record) error {
		if ends != nil {
			records = below(records, ends[topic][partition])
		}
		for _, rec := range records {
			j.add(rec)
		}
		return took(records)
	}
	for ends == nil || !j.exhausted(ends) {
		fetches := j.poll(ctx, reader, splicer.Behind())
		if err := ctx.Err(); err != nil {
			return err
		}
		if errs := fetches.Errors(); len(errs) > 0 && !errors.Is(errs[0].Err, context.DeadlineExceeded) {
			return fmt.Errorf("reading %s/%d: %w", errs[0].Topic, errs[0].Partition, errs[0].Err)
		}
		if err := splicer.Take(ctx, reader, fetches, ahead, take); err != nil {
			return err
		}
		if err := j.close(fold); err != nil {
			return err
		}
		j.holdBack(reader)
	}
	return nil
}

// glance is how long a poll waits while there is something else to do.
const glance = 5 * time.Millisecond

// poll waits for records, or only looks for some.
func (j *timeJoin) poll(ctx context.Context, reader *kgo.Client, look bool) kgo.Fetches {
	if look {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, glance)
		defer stop()
	}
	return reader.PollFetches(ctx)
}

// below are the records before an offset.
func below(records []*kgo.Record, end int64) []*kgo.Record {
	n := len(records)
	for n > 0 && records[n-1].Offset >= end {
		n--
	}
	return records[:n]
}

// joinedFold is a fold over a join that one process runs: that which holds the single partition of its output.
type joinedFold struct {
	name    string
	inputs  []string
	output  string
	step    joinStep
	log     stream.Config
	logger  *slog.Logger
	metrics *Metrics
}

// spanFolder folds a span and adds what it causes to out; false if the log holds that already.
type spanFolder func(ctx context.Context, span int64, records []joined, out *Outputs) (bool, error)

// run folds whenever this process holds the output partition, until the context ends. Start makes the fold from the
// checkpoint that it goes on from, nil at the beginning.
func (f *joinedFold) run(ctx context.Context, start func(context.Context, *eventsv1.Checkpoint) (spanFolder, error)) error {
	return runSingleton(ctx, f.log, f.name, f.output, func(ctx context.Context) error { return f.fold(ctx, start) })
}

// fold reads the inputs from where the output says, and writes what each span causes.
func (f *joinedFold) fold(ctx context.Context, start func(context.Context, *eventsv1.Checkpoint) (spanFolder, error)) error {
	ends, err := stream.LastApplied(ctx, f.log, f.output, []int32{0}, 1)
	if err != nil {
		return fmt.Errorf("reading the position of %s: %w", f.name, err)
	}
	applied := ends[0]
	inputs, err := inputTopics(f.inputs...)
	if err != nil {
		return err
	}
	join := newTimeJoin(f.step, inputs, applied[0].Checkpoint)
	folder, err := start(ctx, applied[0].Checkpoint)
	if err != nil {
		return err
	}
	producer, err := f.log.NewProducer()
	if err != nil {
		return fmt.Errorf("opening the producer of %s: %w", f.name, err)
	}
	defer producer.Close()
	f.logger.Info("folding", "unit", f.name)
	metrics := f.metrics.fold(f.name, f.inputs...)
	for _, p := range join.partitions {
		metrics.hold(p.topic.Name, p.partition, p.next)
		defer metrics.release(p.topic.Name, p.partition)
	}
	w := newMarkedWriter(f.name, producer, map[outputID]*eventsv1.Mark{{f.output, 0}: applied[0].Mark})
	w.produceStep = "seconds.produce"
	err = join.read(ctx, f.log, nil, func(records []*kgo.Record) error {
		metrics.read(records, 0)
		return w.failure()
	}, func(span int64, records []joined, checkpoint *eventsv1.Checkpoint) error {
		began, written := time.Now(), w.written
		if err := closeSpan(ctx, folder, w, span, records, checkpoint); err != nil {
			return err
		}
		metrics.closed(span, len(records), w.written-written, began)
		return nil
	})
	if ctx.Err() == nil {
		return err
	}
	flush, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	_ = producer.Flush(flush) // what is not written will be folded again
	return nil
}

// closeSpan folds one span and writes what the log does not hold yet.
func closeSpan(
	ctx context.Context, fold spanFolder, w *markedWriter, span int64, records []joined, checkpoint *eventsv1.Checkpoint,
) error {
	var out Outputs
	out.Begin(Input{Offset: span, Written: w.holds(span)})
	writes, err := fold(ctx, span, records, &out)
	if err != nil || !writes {
		return err
	}
	for _, o := range out.List {
		if err := w.write(ctx, o, func() *eventsv1.Checkpoint { return checkpoint }); err != nil {
			return err
		}
	}
	return nil
}
