package processors

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
)

// SecondFold is a fold over all partitions of a raw topic at once. The records of one log second
// are taken partition by partition, so how the partitions were read side by side makes no
// difference; the second stands for the offset in the marks of what it puts out.
type SecondFold interface {
	// Take folds one tick of the log second (Unix nanoseconds) that is closed next.
	Take(second int64, in Input, tick *eventsv1.Tick)
	// Close ends a log second (Unix nanoseconds) and adds what it causes to out.
	Close(second int64, out *Outputs)
}

// Seconds runs one SecondFold. Its output topic has a single partition, and the member of its group
// that holds it is the one that folds.
type Seconds struct {
	Name   string
	Input  string
	Output string
	New    func() SecondFold
	Log    stream.Config
	Logger *slog.Logger
	// LagLimiter keeps the fold side by side with those that read its output; nil if nobody has to.
	Pace *LagLimiter
	// Metrics measures the fold; nil for nobody.
	Metrics *Metrics
}

// RateFor is how long a rate of a quote asset counts after its second, in log time.
const RateFor = 60 * time.Second

// secondsMemory is the span of a SecondFold's state: a market counts while it is fresh, by a rate that was not too
// old then and came from another market while that was fresh, both perhaps by a clock that was ahead; and whether
// a trade of that market counted, ids remembered before it say. A fold that was rewound this far, and as far again
// as clocks need to settle, has the state of one that never stopped.
const secondsMemory = 2*(schemas.FreshFor+maxLead) + RateFor + WindowMemory

// Run folds whenever this process holds the output partition, until the context ends.
func (s *Seconds) Run(ctx context.Context) error {
	return runSingleton(ctx, s.Log, s.Name, s.Output, s.fold)
}

// fold reads the input from where the output says, and writes what each second causes.
func (s *Seconds) fold(ctx context.Context) error {
	topic, err := schemas.TopicNamed(s.Input)
	if err != nil {
		return err
	}
	applied, err := stream.LastApplied(ctx, s.Log, s.Output, 0, 1)
	if err != nil {
		return fmt.Errorf("reading where %s stands: %w", s.Name, err)
	}
	merge := newMerge(topic.Partitions, applied[0].Checkpoint)
	offsets := map[int32]kgo.Offset{}
	for p := range topic.Partitions {
		offsets[p] = kgo.NewOffset().At(merge.partitions[p].next)
	}
	reader, err := s.Log.NewClient(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{s.Input: offsets}))
	if err != nil {
		return fmt.Errorf("opening a reader of %s: %w", s.Input, err)
	}
	defer reader.Close()
	producer, err := s.Log.NewProducer()
	if err != nil {
		return fmt.Errorf("opening the producer of %s: %w", s.Name, err)
	}
	defer producer.Close()
	s.Logger.Info("folding seconds", "unit", s.Name)
	metrics := s.Metrics.fold(s.Name, s.Input)
	for p := range topic.Partitions {
		metrics.hold(s.Input, p, merge.partitions[p].next)
		defer metrics.release(s.Input, p)
	}
	fold, w := s.New(), &singleWriter{name: s.Name, last: applied[0].Mark, producer: producer}
	for ctx.Err() == nil {
		fetches := reader.PollFetches(ctx)
		if ctx.Err() != nil {
			break
		}
		if errs := fetches.Errors(); len(errs) > 0 {
			return fmt.Errorf("reading %s/%d: %w", errs[0].Topic, errs[0].Partition, errs[0].Err)
		}
		fetches.EachRecord(func(rec *kgo.Record) { merge.add(rec) })
		fetches.EachPartition(func(p kgo.FetchTopicPartition) { metrics.read(p.Records, 0) })
		if err := merge.close(func(second int64, records []taken, checkpoint *eventsv1.Checkpoint) error {
			began, written := time.Now(), w.written
			if err := s.close(ctx, fold, w, second, records, checkpoint); err != nil {
				return err
			}
			metrics.closed(second, len(records), w.written-written, began)
			return nil
		}); err != nil && ctx.Err() == nil {
			return err
		}
		if err := w.failure(); err != nil {
			return err
		}
		merge.holdBack(reader, s.Input)
	}
	flush, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	_ = producer.Flush(flush) // what is not written will be folded again
	return nil
}

// close folds one second and writes what the log does not hold yet.
func (s *Seconds) close(ctx context.Context, fold SecondFold, w *singleWriter, second int64, records []taken, checkpoint *eventsv1.Checkpoint) error {
	if s.Pace != nil {
		if err := s.Pace.Wait(ctx, s.Name, second); err != nil {
			return err
		}
	}
	for _, t := range records {
		fold.Take(second, t.in, t.tick)
	}
	var out Outputs
	out.Begin(Input{Offset: second})
	fold.Close(second, &out)
	return w.write(ctx, &out, checkpoint)
}

// merge sorts the records of several partitions into log seconds. A partition's own clocks part it
// into seconds: a second is whole when every partition's now lies behind it.
type merge struct {
	partitions []mergePartition
	// begins remembers where each second began, for the checkpoints.
	begins []secondBegin
}

type mergePartition struct {
	clocks  Clocks
	next    int64
	pending map[int64]*segment
}

// segment is what one partition holds of one second.
type segment struct {
	begin   int64
	records []taken
}

type taken struct {
	in   Input
	tick *eventsv1.Tick
}

type secondBegin struct {
	second  int64
	offsets []int64
}

func newMerge(partitions int32, checkpoint *eventsv1.Checkpoint) *merge {
	m := &merge{partitions: make([]mergePartition, partitions)}
	for i := range m.partitions {
		m.partitions[i].pending = map[int64]*segment{}
	}
	for _, mark := range checkpoint.GetMarks() {
		m.partitions[mark.Partition].next = mark.Offset
	}
	begin := secondBegin{offsets: make([]int64, partitions)}
	for i := range m.partitions {
		begin.offsets[i] = m.partitions[i].next
	}
	m.begins = []secondBegin{begin}
	return m
}

// add puts a record where it belongs. What cannot be decoded is resolve's to refuse.
func (m *merge) add(rec *kgo.Record) {
	p := &m.partitions[rec.Partition]
	if rec.Offset < p.next {
		return
	}
	p.next = rec.Offset + 1
	record, err := schemas.DecodeRecord(rec.Topic, rec.Value)
	if err != nil {
		return
	}
	raw, ok := record.(*eventsv1.RawRecord)
	if !ok {
		return
	}
	if clock := raw.GetClock(); clock != nil {
		p.clocks.Observe(raw.Producer, raw.Epoch, clock.Time)
	}
	second := p.clocks.Now() / int64(time.Second)
	s := p.pending[second]
	if s == nil {
		s = &segment{begin: rec.Offset}
		p.pending[second] = s
	}
	if tick := raw.GetTick(); tick != nil {
		s.records = append(s.records, taken{Input{Topic: rec.Topic, Partition: rec.Partition, Offset: rec.Offset}, tick})
	}
}

// close hands over all seconds that are whole, in order.
func (m *merge) close(fold func(second int64, records []taken, checkpoint *eventsv1.Checkpoint) error) error {
	whole := m.partitions[0].clocks.Now() / int64(time.Second)
	for i := range m.partitions {
		whole = min(whole, m.partitions[i].clocks.Now()/int64(time.Second))
	}
	seconds := map[int64]bool{}
	for i := range m.partitions {
		for second := range m.partitions[i].pending {
			if second < whole {
				seconds[second] = true
			}
		}
	}
	for _, second := range slices.Sorted(maps.Keys(seconds)) {
		var records []taken
		begin := secondBegin{second: second, offsets: slices.Clone(m.begins[len(m.begins)-1].offsets)}
		for i := range m.partitions {
			p := &m.partitions[i]
			if s := p.pending[second]; s != nil {
				records = append(records, s.records...)
				begin.offsets[i] = s.begin
				delete(p.pending, second)
			}
		}
		m.begins = append(m.begins, begin)
		memory := second - int64(secondsMemory/time.Second)
		for len(m.begins) > settlePlaces && m.begins[1].second <= memory-int64(settle/time.Second) && m.begins[settlePlaces].second <= memory {
			m.begins = m.begins[1:]
		}
		if second == 0 {
			continue // before the first clock there is no second to fold
		}
		if err := fold(second*int64(time.Second), records, m.checkpoint()); err != nil {
			return err
		}
	}
	return nil
}

// maxPendingSeconds is how many seconds of one partition wait for those of another before it is held
// back: while a backlog is read, all of it would lie in memory otherwise.
const maxPendingSeconds = 60

// holdBack reads no more of a partition that is far ahead of another.
func (m *merge) holdBack(reader *kgo.Client, topic string) {
	var ahead, rest []int32
	for i := range m.partitions {
		if len(m.partitions[i].pending) > maxPendingSeconds {
			ahead = append(ahead, int32(i))
		} else {
			rest = append(rest, int32(i))
		}
	}
	if len(rest) == 0 {
		return // none is ahead of another: what waits is handed over next
	}
	reader.ResumeFetchPartitions(map[string][]int32{topic: rest})
	reader.PauseFetchPartitions(map[string][]int32{topic: ahead})
}

func (m *merge) checkpoint() *eventsv1.Checkpoint {
	begin := m.begins[0]
	c := &eventsv1.Checkpoint{Offset: begin.second}
	for i, offset := range begin.offsets {
		c.Marks = append(c.Marks, &eventsv1.Mark{Partition: int32(i), Offset: offset})
	}
	return c
}
