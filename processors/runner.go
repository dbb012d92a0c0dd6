package processors

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
)

const (
	// drainTimeout is how long a worker that gives a partition back may take to write what it holds.
	drainTimeout = 5 * time.Second
	// maxOnTheWay is how many records of a worker may be unacknowledged. Those of all partitions of a
	// topic fit into the producer's buffer, so that handing it one never blocks.
	maxOnTheWay = 10_000
	// maxWaiting is how many batches wait for a worker before its partition is held back, and
	// fewWaiting how many are left when it is read on. What is fetched of it meanwhile is fetched again.
	maxWaiting, fewWaiting = 3, 1
)

// Unit is one fold, or chain of folds, and the topics between which it works.
type Unit struct {
	// Name is the consumer group.
	Name  string
	Input string
	// Outputs are the topics that the fold emits to. It emits pulses to every partition that an
	// input partition can reach, so that recovery finds its marks near the end.
	Outputs []Route
	// New makes the fold of one input partition.
	New func(partition int32) Fold
}

// Route is an output topic of a unit.
type Route struct {
	Topic string
	// SamePartition means that input partition p writes to output partition p only.
	SamePartition bool
}

// Runner runs one unit on as many partitions as the group gives it.
type Runner struct {
	Unit   Unit
	Log    stream.Config
	Logger *slog.Logger
	// LagLimiter keeps the workers side by side with each other and with whoever else keeps it; nil for a
	// unit whose input partitions do not meet in an output.
	Pace *LagLimiter
	// Metrics measures the fold; nil for nobody.
	Metrics *Metrics
}

// Run joins the group and folds until the context ends; then everything folded is written.
func (r *Runner) Run(ctx context.Context) error {
	producer, err := r.Log.NewProducer()
	if err != nil {
		return fmt.Errorf("opening the producer of %s: %w", r.Unit.Name, err)
	}
	defer producer.Close()
	input, err := schemas.TopicNamed(r.Unit.Input)
	if err != nil {
		return err
	}
	m := &member{
		runner: r, producer: producer, derived: input.Derived, inputs: input.Partitions, workers: map[int32]*worker{},
		metrics: r.Metrics.fold(r.Unit.Name, r.Unit.Input),
	}
	err = stream.RunGroup(ctx, r.Log, r.Unit.Name, r.Unit.Input, m)
	m.Lost(ctx, m.partitions())
	return err
}

// member is a Runner's presence in its group.
type member struct {
	runner   *Runner
	producer recordWriter
	derived  bool
	inputs   int32
	workers  map[int32]*worker
	metrics  *foldMetrics
}

func (m *member) partitions() []int32 {
	list := make([]int32, 0, len(m.workers))
	for p := range m.workers {
		list = append(list, p)
	}
	slices.Sort(list)
	return list
}

// Assigned reads the ends of all output partitions, and starts a worker for each input partition
// at the checkpoint of the output that is furthest behind.
func (m *member) Assigned(ctx context.Context, partitions []int32) (map[int32]int64, error) {
	applied, err := m.lastApplied(ctx, partitions)
	if err != nil {
		return nil, err
	}
	starts := map[int32]int64{}
	for _, p := range partitions {
		w := m.recover(p, applied)
		starts[p] = w.rewind.places[0].offset
		m.workers[p] = w
		m.metrics.hold(m.runner.Unit.Input, p, starts[p])
		w.start(ctx)
	}
	if len(partitions) > 0 {
		m.runner.Logger.Info("folding", "unit", m.runner.Unit.Name, "from", starts)
	}
	return starts, nil
}

// lastApplied reads the ends of all output partitions of some input partitions.
func (m *member) lastApplied(ctx context.Context, partitions []int32) (map[outputID]map[int32]stream.Applied, error) {
	reads := map[string][]int32{}
	for _, p := range partitions {
		for _, id := range m.outputsOf(p) {
			if !slices.Contains(reads[id.topic], id.partition) {
				reads[id.topic] = append(reads[id.topic], id.partition)
			}
		}
	}
	applied := map[outputID]map[int32]stream.Applied{}
	var mu sync.Mutex
	g, ctx := errgroup.WithContext(ctx)
	for topic, outputs := range reads {
		origins := m.inputs
		if m.route(topic).SamePartition {
			origins = 1
		}
		g.Go(func() error {
			ends, err := stream.LastApplied(ctx, m.runner.Log, topic, outputs, origins)
			if err != nil {
				return fmt.Errorf("reading the position of %s: %w", m.runner.Unit.Name, err)
			}
			mu.Lock()
			defer mu.Unlock()
			for p, a := range ends {
				applied[outputID{topic, p}] = a
			}
			return nil
		})
	}
	return applied, g.Wait()
}

func (m *member) route(topic string) Route {
	i := slices.IndexFunc(m.runner.Unit.Outputs, func(r Route) bool { return r.Topic == topic })
	return m.runner.Unit.Outputs[i]
}

func (m *member) outputsOf(partition int32) []outputID {
	var ids []outputID
	for _, route := range m.runner.Unit.Outputs {
		if route.SamePartition {
			ids = append(ids, outputID{route.Topic, partition})
			continue
		}
		topic, _ := schemas.TopicNamed(route.Topic)
		for q := range topic.Partitions {
			ids = append(ids, outputID{route.Topic, q})
		}
	}
	return ids
}

// recover makes the worker that continues what the outputs hold of one input partition. An output
// that holds nothing of it yet sends the worker to the beginning of the input.
func (m *member) recover(partition int32, applied map[outputID]map[int32]stream.Applied) *worker {
	last := map[outputID]*eventsv1.Mark{}
	var behind stream.Applied
	first, fresh := true, false
	writtenUntil := int64(math.MaxInt64)
	for _, id := range m.outputsOf(partition) {
		a, ok := applied[id][partition]
		if !ok || a.Checkpoint == nil {
			fresh = true
		}
		if ok {
			last[id] = a.Mark
		}
		writtenUntil = min(writtenUntil, a.Watermark)
		if ok && (first || behind.Mark.After(a.Mark)) {
			behind, first = a, false
		}
	}
	start, written := &eventsv1.Checkpoint{}, int64(0)
	if !fresh && behind.Checkpoint != nil {
		start, written = behind.Checkpoint, behind.Mark.Offset
	}
	w := newMarkedWriter(PaceName(m.runner.Unit.Input, partition), m.producer, last)
	w.produceStep, w.skipStep = "fold.produce", "fold.rewind"
	return &worker{
		partition: partition,
		fold:      m.runner.Unit.New(partition),
		topic:     m.runner.Unit.Input,
		borrower:  m.borrower(),
		rewind:    newRewind(start.Offset, start.Marks),
		writer:    w,
		logger:    m.runner.Logger,
		batches:   make(chan []*kgo.Record, maxWaiting+1), // Full is asked once a poll
		pace:      m.runner.Pace,
		name:      PaceName(m.runner.Unit.Name, partition),
		metrics:   m.metrics,

		written: written, writtenUntil: writtenUntil,
	}
}

// borrower decodes what a worker reads of a derived topic.
func (m *member) borrower() *stream.Borrower {
	if !m.derived {
		return nil
	}
	return stream.NewBorrower(m.runner.Unit.Input)
}

// PaceName is what a LagLimiter knows the worker of an input partition by.
func PaceName(unit string, partition int32) string {
	return unit + "/" + strconv.Itoa(int(partition))
}

// Records hands a batch to the partition's worker, or returns why that worker stopped.
func (m *member) Records(ctx context.Context, partition int32, records []*kgo.Record) error {
	w := m.workers[partition]
	if w == nil {
		return nil // given back while the records were on their way
	}
	select {
	case w.batches <- records:
		return nil
	case <-w.done:
		return w.err
	case <-ctx.Done():
		return nil
	}
}

// Full lists the partitions whose workers have enough to do.
func (m *member) Full() []int32 {
	var full []int32
	for p, w := range m.workers {
		switch waiting := len(w.batches); {
		case waiting >= maxWaiting:
			w.full = true
		case waiting <= fewWaiting:
			w.full = false
		}
		if w.full {
			full = append(full, p)
		}
	}
	return full
}

// Due returns the error of any worker that stopped.
func (m *member) Due(context.Context) error {
	for _, w := range m.workers {
		select {
		case <-w.done:
			return w.err
		default:
			if err := w.writer.failure(); err != nil {
				return err
			}
		}
	}
	return nil
}

// Lost lets the workers finish what they hold and waits until it is written.
func (m *member) Lost(ctx context.Context, partitions []int32) {
	for _, p := range partitions {
		w := m.workers[p]
		if w == nil {
			continue
		}
		delete(m.workers, p)
		w.stop()
		m.metrics.release(m.runner.Unit.Input, p)
	}
	if len(partitions) > 0 {
		m.runner.Logger.Info("giving back", "unit", m.runner.Unit.Name, "partitions", partitions)
	}
	flushCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	_ = m.producer.Flush(flushCtx) // what is not written will be folded again
}

// Done is the position of each worker.
func (m *member) Done() map[int32]int64 {
	done := map[int32]int64{}
	for p, w := range m.workers {
		if offset := w.folded.Load(); offset > 0 {
			done[p] = offset
		}
	}
	return done
}

// worker folds one input partition.
type worker struct {
	partition int32
	fold      Fold
	topic     string
	borrower  *stream.Borrower // nil for a raw topic
	rewind    *rewind
	writer    *markedWriter
	logger    *slog.Logger
	batches   chan []*kgo.Record
	cancel    context.CancelFunc
	done      chan struct{}
	folded    atomic.Int64
	err       error
	full      bool
	pace      *LagLimiter
	name      string // in the pace
	paced     int64  // the second of log time that the pace was last asked for
	metrics   *foldMetrics
	// written is the offset below which the log holds all that the input causes, writtenUntil the watermark of these outputs.
	written, writtenUntil int64
}

func (w *worker) start(ctx context.Context) {
	ctx, w.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if w.pace != nil {
		w.pace.Join(w.name)
	}
	w.done = make(chan struct{})
	go func() {
		defer close(w.done)
		w.err = w.run(ctx)
	}()
}

func (w *worker) stop() {
	w.cancel()
	<-w.done
	if w.pace != nil {
		w.pace.Leave(w.name)
	}
}

func (w *worker) run(ctx context.Context) error {
	var out Outputs
	for {
		select {
		case <-ctx.Done():
			return nil
		case batch := <-w.batches:
			began, written := time.Now(), w.writer.written
			for _, rec := range batch {
				if ctx.Err() != nil {
					return nil
				}
				if err := w.apply(ctx, rec, &out); err != nil {
					if ctx.Err() != nil {
						return nil
					}
					return fmt.Errorf("folding %s/%d at %d: %w", w.topic, w.partition, rec.Offset, err)
				}
			}
			if err := w.writer.failure(); err != nil {
				return err
			}
			now, _ := w.fold.Clocks()
			w.metrics.folded(batch, w.writer.written-written, now, began)
		}
	}
}

func (w *worker) apply(ctx context.Context, rec *kgo.Record, out *Outputs) error {
	next := rec.Offset + 1
	in := Input{Topic: rec.Topic, Partition: rec.Partition, Offset: rec.Offset, Value: rec.Value}
	if rec.Offset < w.written {
		in.Written, in.WrittenUntil = true, w.writtenUntil
	}
	if w.borrower != nil {
		marked, err := w.borrower.Decode(rec.Value)
		if err != nil {
			w.folded.Store(next) // the sink of the topic reports it
			return nil
		}
		if !w.rewind.admit(marked.GetMark()) {
			return nil
		}
		in.Record = marked
	}
	out.Begin(in)
	if err := w.fold.Apply(in, out); err != nil {
		return err
	}
	now, watermark := w.fold.Clocks()
	if second := now / int64(time.Second); w.pace != nil && second > w.paced {
		w.paced = second
		if err := w.pace.step(ctx, w.name, now, in.Written); err != nil {
			return err
		}
	}
	for _, o := range out.List {
		if err := w.writer.write(ctx, o, w.rewind.checkpoint); err != nil {
			return err
		}
	}
	w.rewind.reached(now, watermark, rec.Offset)
	w.folded.Store(next)
	return nil
}

func sortMarks(marks []*eventsv1.Mark) {
	slices.SortFunc(marks, func(a, b *eventsv1.Mark) int { return cmp.Compare(a.Partition, b.Partition) })
}
