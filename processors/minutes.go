package processors

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
)

// MinuteFold is a fold over all partitions of several topics at once, by log minutes. A minute is named by its end,
// Unix nanoseconds, which stands for the offset in the marks of what the fold puts out. It is used by one goroutine.
//
// Its memory is longer than what can be read again at a start. So it writes the state of each of its things at least
// every StateEvery, and is given that at the start: the state of a thing says which minute it stands at, and what is
// taken of minutes up to that one changes it no more. Minutes in which nothing was heard are never closed: a state that
// was due in one of them is written in the first minute after.
type MinuteFold interface {
	// Load takes one record of the fold's own output, oldest first, up to the pulse of the last minute that is there
	// whole. It begins more than StateEvery before.
	Load(rec eventsv1.Marked)
	// Take folds one record of the minute that is closed next. The record must not be changed.
	Take(minute int64, in Input, rec eventsv1.Marked)
	// Close ends a minute and adds what it causes to out, last of all a pulse. Out is nil for a minute that was
	// loaded: only the state moves on.
	Close(minute int64, out *Outputs)
}

// StateEvery is how often a MinuteFold writes the state of each of its things, in log time.
const StateEvery = time.Hour

// minutesMemory is how far before the last whole minute a MinuteFold is read again: the states, and the minute in which the
// oldest of them was written.
const minutesMemory = StateEvery + 2*time.Minute

// Minutes runs one MinuteFold. Its output topic has a single partition, and the member of its group
// that holds it is the one that folds.
//
// A closed candle belongs to its own minute, which is whole in a partition when the watermark there has closed it. What
// another MinuteFold put out belongs to the minute that it folded, which its pulse ends. An observation belongs to the minute of the clock before it, which is whole when that clock has passed it. A minute is
// folded when it is whole in all partitions, partition by partition, so how they were read side by side makes no difference.
type Minutes struct {
	Name   string
	Inputs []string
	Output string
	New    func() MinuteFold
	Log    stream.Config
	Logger *slog.Logger
	// Metrics measures the fold; nil for nobody.
	Metrics *Metrics
}

// Run folds whenever this process holds the output partition, until the context ends.
func (m *Minutes) Run(ctx context.Context) error {
	return runSingleton(ctx, m.Log, m.Name, m.Output, m.fold)
}

func (m *Minutes) fold(ctx context.Context) error {
	applied, err := stream.LastApplied(ctx, m.Log, m.Output, 0, 1)
	if err != nil {
		return fmt.Errorf("reading where %s stands: %w", m.Name, err)
	}
	joined, err := newMinuteJoin(m.Inputs, applied[0].Checkpoint)
	if err != nil {
		return err
	}
	fold := m.New()
	loaded, err := m.load(ctx, fold, applied[0].Checkpoint, math.MaxInt64)
	if err != nil {
		return fmt.Errorf("reading the state of %s: %w", m.Name, err)
	}
	offsets := map[string]map[int32]kgo.Offset{}
	for _, p := range joined.partitions {
		if offsets[p.topic] == nil {
			offsets[p.topic] = map[int32]kgo.Offset{}
		}
		offsets[p.topic][p.partition] = kgo.NewOffset().At(p.next)
	}
	reader, err := m.Log.NewClient(kgo.ConsumePartitions(offsets))
	if err != nil {
		return fmt.Errorf("opening a reader for %s: %w", m.Name, err)
	}
	defer reader.Close()
	producer, err := m.Log.NewProducer()
	if err != nil {
		return fmt.Errorf("opening the producer of %s: %w", m.Name, err)
	}
	defer producer.Close()
	m.Logger.Info("folding minutes", "unit", m.Name)
	w := &singleWriter{name: m.Name, last: applied[0].Mark, producer: producer}
	metrics := m.Metrics.fold(m.Name, m.Inputs...)
	for _, p := range joined.partitions {
		metrics.hold(p.topic, p.partition, p.next)
		defer metrics.release(p.topic, p.partition)
	}
	for ctx.Err() == nil {
		fetches := reader.PollFetches(ctx)
		if ctx.Err() != nil {
			break
		}
		if errs := fetches.Errors(); len(errs) > 0 {
			return fmt.Errorf("reading %s/%d: %w", errs[0].Topic, errs[0].Partition, errs[0].Err)
		}
		fetches.EachRecord(joined.add)
		fetches.EachPartition(func(p kgo.FetchTopicPartition) { metrics.read(p.Records, 0) })
		err := joined.close(func(minute int64, records []minuteRecord, checkpoint *eventsv1.Checkpoint) error {
			began, written := time.Now(), w.written
			if err := closeMinute(ctx, fold, w, loaded, minute, records, checkpoint); err != nil {
				return err
			}
			metrics.closed(minute, len(records), w.written-written, began)
			return nil
		})
		if err != nil && ctx.Err() == nil {
			return err
		}
		if err := w.failure(); err != nil {
			return err
		}
		joined.holdBack(reader)
	}
	flush, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	_ = producer.Flush(flush) // what is not written will be folded again
	return nil
}

// closeMinute folds one minute and writes what the log does not hold yet.
func closeMinute(ctx context.Context, fold MinuteFold, w *singleWriter, loaded, minute int64, records []minuteRecord, checkpoint *eventsv1.Checkpoint) error {
	for _, r := range records {
		fold.Take(minute, r.in, r.rec)
	}
	if minute <= loaded {
		fold.Close(minute, nil)
		return nil
	}
	var out Outputs
	out.Begin(Input{Offset: minute})
	fold.Close(minute, &out)
	return w.write(ctx, &out, checkpoint)
}

// load hands the fold its own output from a checkpoint on, below offset until, and returns the last minute that is there
// whole; 0 for none.
func (m *Minutes) load(ctx context.Context, fold MinuteFold, checkpoint *eventsv1.Checkpoint, until int64) (whole int64, err error) {
	if checkpoint == nil {
		return 0, nil
	}
	client, err := m.Log.NewClient()
	if err != nil {
		return 0, fmt.Errorf("opening a client: %w", err)
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	// The checkpoint's own place is the minute after which the inputs are read again.
	from, err := admin.ListOffsetsAfterMilli(ctx, time.Unix(0, checkpoint.Offset).UnixMilli(), m.Output)
	if err == nil {
		err = from.Error()
	}
	if err != nil {
		return 0, fmt.Errorf("finding the last hour of %s: %w", m.Output, err)
	}
	ends, err := admin.ListEndOffsets(ctx, m.Output)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return 0, fmt.Errorf("finding the end of %s: %w", m.Output, err)
	}
	begin, _ := from.Lookup(m.Output, 0)
	end, _ := ends.Lookup(m.Output, 0)
	l := stateLoader{fold: fold}
	err = stream.ReadRange(ctx, m.Log, m.Output, 0, begin.Offset, min(end.Offset, until), func(r *kgo.Record) error {
		if rec, err := schemas.DecodeRecord(m.Output, r.Value); err == nil {
			l.add(rec)
		}
		return nil
	})
	return l.whole, err
}

// stateLoader hands a fold its own records, each minute when its pulse shows that it is whole.
type stateLoader struct {
	fold  MinuteFold
	last  *eventsv1.Mark
	held  []eventsv1.Marked // of the minute that is read
	whole int64
}

func (l *stateLoader) add(rec eventsv1.Marked) {
	if mark := rec.GetMark(); mark != nil {
		if !mark.After(l.last) {
			return // a twin's
		}
		l.last = mark
	}
	l.held = append(l.held, rec)
	if rec.GetPulse() == nil {
		return
	}
	l.whole = l.last.GetOffset()
	for _, rec := range l.held {
		l.fold.Load(rec)
	}
	l.held = l.held[:0]
}

// minuteJoin sorts the records of all partitions of several topics into log minutes.
type minuteJoin struct {
	partitions []*minutePartition
	// begins remembers where each of the last minutes began, for the checkpoints.
	begins []minuteBegin
}

type minutePartition struct {
	topic     string
	partition int32
	derived   bool
	minutes   bool // made by a MinuteFold
	next      int64
	clocks    Clocks         // of a raw topic
	last      *eventsv1.Mark // of a derived one
	// reached is the end of the last minute that is whole here, 0 while no clock has told.
	reached int64
	pending map[int64]*minuteSegment
}

// minuteSegment is what one partition holds of one minute.
type minuteSegment struct {
	begin   int64
	records []minuteRecord
}

type minuteRecord struct {
	in  Input
	rec eventsv1.Marked
}

type minuteBegin struct {
	minute  int64
	offsets []int64
}

func newMinuteJoin(topics []string, checkpoint *eventsv1.Checkpoint) (*minuteJoin, error) {
	j := &minuteJoin{}
	for _, name := range topics {
		topic, err := schemas.TopicNamed(name)
		if err != nil {
			return nil, err
		}
		for p := range topic.Partitions {
			j.partitions = append(j.partitions, &minutePartition{topic: name, partition: p, derived: topic.Derived, minutes: topic.Minutes, pending: map[int64]*minuteSegment{}})
		}
	}
	begin := minuteBegin{minute: checkpoint.GetOffset(), offsets: make([]int64, len(j.partitions))}
	for _, mark := range checkpoint.GetMarks() {
		if int(mark.Partition) < len(j.partitions) { // the place in the list of all partitions
			j.partitions[mark.Partition].next = mark.Offset
			begin.offsets[mark.Partition] = mark.Offset
		}
	}
	j.begins = []minuteBegin{begin}
	return j, nil
}

func (j *minuteJoin) find(topic string, partition int32) *minutePartition {
	i := slices.IndexFunc(j.partitions, func(p *minutePartition) bool { return p.topic == topic && p.partition == partition })
	return j.partitions[i]
}

// add puts a record where it belongs.
func (j *minuteJoin) add(rec *kgo.Record) {
	p := j.find(rec.Topic, rec.Partition)
	if rec.Offset < p.next {
		return
	}
	p.next = rec.Offset + 1
	record, err := schemas.DecodeRecord(rec.Topic, rec.Value)
	if err != nil {
		return // the sink of the topic reports it
	}
	if !p.derived {
		p.observe(rec, record)
		return
	}
	if mark := record.GetMark(); mark != nil {
		if !mark.After(p.last) {
			return
		}
		p.last = mark
	}
	p.derive(rec, record)
}

const minute = int64(time.Minute)

// derive takes a record of a topic of closed minutes.
func (p *minutePartition) derive(rec *kgo.Record, record eventsv1.Marked) {
	if p.minutes {
		folded := record.GetMark().GetOffset()
		s := p.segment(folded, rec.Offset)
		if record.GetPulse() != nil {
			p.reached = max(p.reached, folded)
			return
		}
		s.records = append(s.records, minuteRecord{Input{Topic: rec.Topic, Partition: rec.Partition, Offset: rec.Offset}, record})
		return
	}
	if pulse := record.GetPulse(); pulse != nil {
		if pulse.Watermark > 0 {
			p.reached = max(p.reached, schemas.Minute(pulse.Watermark-int64(schemas.AllowedLateness)))
			p.segment(p.reached, rec.Offset)
		}
		return
	}
	candle, ok := record.(*eventsv1.CandleRecord)
	if !ok || candle.GetCandle() == nil {
		return
	}
	s := p.segment(candle.GetCandle().Start+minute, rec.Offset)
	s.records = append(s.records, minuteRecord{Input{Topic: rec.Topic, Partition: rec.Partition, Offset: rec.Offset}, record})
}

// observe takes a record of a topic that producers write.
func (p *minutePartition) observe(rec *kgo.Record, record eventsv1.Marked) {
	said, ok := record.(*eventsv1.ReferenceRecord)
	if !ok {
		return
	}
	if clock := said.GetClock(); clock != nil {
		p.clocks.Observe(said.Producer, said.Epoch, clock.Time)
		before := p.reached
		if now := p.clocks.Now(); now > 0 {
			p.reached = max(p.reached, schemas.Minute(now))
		}
		// What a source said before the first clock of all belongs to the first minute: at the start of a log the
		// first answers come before it, and what does not change is not said again.
		if s := p.pending[minute]; s != nil && before == 0 && p.reached > 0 {
			delete(p.pending, minute)
			p.pending[p.reached+minute] = s
		}
	}
	s := p.segment(p.reached+minute, rec.Offset)
	if said.GetClock() == nil {
		s.records = append(s.records, minuteRecord{Input{Topic: rec.Topic, Partition: rec.Partition, Offset: rec.Offset}, record})
	}
}

func (p *minutePartition) segment(minute, offset int64) *minuteSegment {
	s := p.pending[minute]
	if s == nil {
		s = &minuteSegment{begin: offset}
		p.pending[minute] = s
	}
	return s
}

// close hands over all minutes that are whole, in order.
func (j *minuteJoin) close(fold func(minute int64, records []minuteRecord, checkpoint *eventsv1.Checkpoint) error) error {
	whole := j.partitions[0].reached
	for _, p := range j.partitions {
		whole = min(whole, p.reached)
	}
	minutes := map[int64]bool{}
	for _, p := range j.partitions {
		for m := range p.pending {
			if m <= whole {
				minutes[m] = true
			}
		}
	}
	for _, m := range slices.Sorted(maps.Keys(minutes)) {
		var records []minuteRecord
		begin := minuteBegin{minute: m, offsets: slices.Clone(j.begins[len(j.begins)-1].offsets)}
		for i, p := range j.partitions {
			if s := p.pending[m]; s != nil {
				records = append(records, s.records...)
				begin.offsets[i] = s.begin
				delete(p.pending, m)
			}
		}
		j.begins = append(j.begins, begin)
		for len(j.begins) > 1 && j.begins[1].minute <= m-int64(minutesMemory) {
			j.begins = j.begins[1:]
		}
		if m <= minute {
			continue // before the first clock there is no minute to fold
		}
		if err := fold(m, records, j.checkpoint()); err != nil {
			return err
		}
	}
	return nil
}

// maxPendingMinutes is how many minutes of one partition wait for those of another before it is held
// back: while a backlog is read, all of it would lie in memory otherwise.
const maxPendingMinutes = 30

// holdBack reads no more of a partition that is far ahead of another.
func (j *minuteJoin) holdBack(reader *kgo.Client) {
	ahead, rest := map[string][]int32{}, map[string][]int32{}
	for _, p := range j.partitions {
		if len(p.pending) > maxPendingMinutes {
			ahead[p.topic] = append(ahead[p.topic], p.partition)
		} else {
			rest[p.topic] = append(rest[p.topic], p.partition)
		}
	}
	if len(rest) == 0 {
		return // none is ahead of another: what waits is handed over next
	}
	reader.ResumeFetchPartitions(rest)
	reader.PauseFetchPartitions(ahead)
}

// checkpoint is where the inputs are read again from, by the place of each partition in the list of all.
func (j *minuteJoin) checkpoint() *eventsv1.Checkpoint {
	begin := j.begins[0]
	c := &eventsv1.Checkpoint{Offset: begin.minute}
	for i, offset := range begin.offsets {
		c.Marks = append(c.Marks, &eventsv1.Mark{Partition: int32(i), Offset: offset})
	}
	return c
}
