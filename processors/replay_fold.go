package processors

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/faults"
	"github.com/marketlog/marketlog/stream/history"
	"github.com/marketlog/marketlog/stream/history/rows"
	"github.com/marketlog/marketlog/stream/history/shadow"
)

// replayLead is how long before From the fold begins, so that its windows are whole by then.
const replayLead = 10 * time.Minute

// replayStep is after how many records at most a partition's progress is written down.
const replayStep = 200_000

// partReplay is one partition of a replay, as its journal keeps it.
type partReplay struct {
	Partition int32 `json:"-"`
	// makes is the topic whose rows it makes; empty for those that ticks.v1 causes.
	makes string
	// Start is where the fold began, without knowing what was before.
	Start int64 `json:"start"`
	// Resume and Marks are the checkpoint to begin at again; rows of offsets below Done are inserted.
	Resume int64       `json:"resume"`
	Marks  []markEntry `json:"marks,omitempty"`
	Done   int64       `json:"done"`
	// Exact means that the windows are whole; From is the first offset whose rows are made, and the
	// clocks are those below it.
	Exact         bool  `json:"exact"`
	From          int64 `json:"from"`
	FromNow       int64 `json:"fromNow"`
	FromWatermark int64 `json:"fromWatermark"`
	// Until is the first offset whose rows are not made.
	Until          int64 `json:"until"`
	UntilNow       int64 `json:"untilNow"`
	UntilWatermark int64 `json:"untilWatermark"`
	// Last are the last marks derived, by topic.
	Last map[string]markEntry `json:"last"`
	// Changes counts the ticks that are resolved otherwise now, by what changed.
	Changes map[string]int64 `json:"changes,omitempty"`
	// Touched are the ticks that corrections are about, by coin and correction; of a replay that applies them.
	Touched map[string]map[string]touched `json:"touched,omitempty"`

	revision uint64
}

// markEntry is a mark in the journal.
type markEntry struct {
	Partition int32  `json:"partition"`
	Offset    int64  `json:"offset"`
	Index     uint32 `json:"index"`
}

func (m markEntry) mark() *eventsv1.Mark {
	return &eventsv1.Mark{Partition: m.Partition, Offset: m.Offset, Index: m.Index}
}

func entryOf(m *eventsv1.Mark) markEntry { return markEntry{m.Partition, m.Offset, m.Index} }

// bounds state which rows of a table the partition's replay makes.
func (p *partReplay) bounds(t rebuilt) shadow.Bounds {
	if !p.Exact {
		return shadow.Bounds{
			From: p.Until, FromTime: t.CompleteFrom(p.UntilNow, p.UntilWatermark),
			Until: p.Until, UntilTime: t.CompleteUntil(p.UntilNow, p.UntilWatermark),
		}
	}
	b := shadow.Bounds{From: p.From, Until: p.Until, UntilTime: t.CompleteUntil(p.UntilNow, p.UntilWatermark)}
	if p.From > 0 {
		b.FromTime = t.CompleteFrom(p.FromNow, p.FromWatermark)
	}
	return b
}

// replayFolds rebuilds all rows of the view in the shadow tables, as far as the log reached when it began. Partitions of ticks.v1 and the
// topics of other folds are folded side by side.
func (r *Replay) replayFolds(ctx context.Context, j *journal) (parts []*partReplay, err error) {
	meter := r.meter("folding")
	var folds []func(context.Context) error
	topics := schemas.ViewTopics(r.View)
	if slices.ContainsFunc(topics, fromTicks) {
		var ends []int64
		if parts, ends, err = r.locate(ctx, j); err != nil {
			return nil, err
		}
		for i, p := range parts {
			meter.expect(ends[i] - p.Resume)
			folds = append(folds, func(ctx context.Context) error {
				f := r.newPartFold(j, p)
				f.meter = meter
				return f.run(ctx, ends[i])
			})
		}
	}
	for _, topic := range topics {
		replay := r.replayRaw
		switch {
		case topic.Minutes:
			replay = r.replayMinutes
		case topic.Derived:
			continue
		}
		part := &partReplay{makes: topic.Name, Last: map[string]markEntry{}}
		parts = append(parts, part)
		folds = append(folds, func(ctx context.Context) error { return replay(ctx, j, part, meter) })
	}
	return parts, sideBySide(ctx, folds)
}

// sideBySide runs steps on all processors until one fails.
func sideBySide(ctx context.Context, steps []func(context.Context) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for _, step := range steps {
		g.Go(func() error { return step(ctx) })
	}
	return g.Wait()
}

// locate reports where each partition begins and where the log ends now.
func (r *Replay) locate(ctx context.Context, j *journal) (parts []*partReplay, ends []int64, err error) {
	topic, err := schemas.TopicNamed(schemas.TopicTicks)
	if err != nil {
		return nil, nil, err
	}
	starts, lasts, err := r.Log.LogBounds(ctx, topic.Name)
	if err != nil {
		return nil, nil, err
	}
	begins := starts
	if !r.From.IsZero() {
		if begins, err = r.Log.LogOffsetsFrom(ctx, r.From.Add(-replayLead), topic.Name); err != nil {
			return nil, nil, err
		}
	}
	for id := range topic.Partitions {
		start := starts[topic.Name][id]
		p := &partReplay{}
		if e, ok := j.parts[id]; ok {
			if err := json.Unmarshal(e.Record, p); err != nil {
				return nil, nil, fmt.Errorf("reading the journal of replay %d: %w", j.Generation, err)
			}
			p.revision = e.Revision
			if p.Changes == nil {
				p.Changes = map[string]int64{}
			}
			if p.Touched == nil {
				p.Touched = map[string]map[string]touched{}
			}
		}
		if p.revision == 0 || p.Resume < start {
			// Nothing was kept, or the log has lost what the fold would begin with again.
			at := max(start, begins[topic.Name][id])
			p = &partReplay{
				Start: at, Resume: at, Done: at, From: at, Last: map[string]markEntry{}, Changes: map[string]int64{},
				Touched: map[string]map[string]touched{}, revision: p.revision,
			}
			p.Exact = r.From.IsZero() && (at == 0 || r.View == schemas.ViewTicks)
		}
		p.Partition = id
		parts, ends = append(parts, p), append(ends, lasts[topic.Name][id])
	}
	return parts, ends, nil
}

// partFold folds one partition.
type partFold struct {
	replay *Replay
	part   *partReplay
	fold   Fold // nil for view ticks
	ticks  *remapper
	// borrower decodes what is read; rows are copies.
	borrower *stream.Borrower
	rewind   *rewind
	gen      uint32
	topics   []string // whose rows are made
	most     int
	meter    *meter

	out   Outputs
	batch rows.Batch
	// next is the offset below which all is folded, and the clocks are those there.
	next           int64
	now, watermark int64
	// since counts records since the progress was written down, unmetered those since it was reported.
	since     int
	unmetered int64
}

func (r *Replay) newPartFold(j *journal, p *partReplay) *partFold {
	marks := make([]*eventsv1.Mark, len(p.Marks))
	for i, m := range p.Marks {
		marks[i] = m.mark()
	}
	f := &partFold{
		replay: r, part: p, borrower: stream.NewBorrower(schemas.TopicTicks), rewind: newRewind(p.Resume, marks), gen: j.Generation,
		most: cmp.Or(r.BatchRows, replayBatchRows), next: p.Resume,
	}
	for _, topic := range schemas.ViewTopics(r.View) {
		f.topics = append(f.topics, topic.Name)
	}
	if r.View == schemas.ViewTicks {
		f.ticks = newRemapper(r.Rejoin)
	} else {
		f.fold = r.Unit.New(p.Partition)
	}
	return f
}

// errReachedTo ends a fold that has come to the replay's To.
var errReachedTo = errors.New("reached the end of the replay")

func (f *partFold) run(ctx context.Context, end int64) error {
	first := true
	err := stream.ReadRange(ctx, f.replay.Log, schemas.TopicTicks, f.part.Partition, f.next, end, func(rec *kgo.Record) error {
		switch {
		case rec.Offset == f.next:
		case first && rec.Offset > f.next && f.part.Done <= f.next:
			// Retention was faster: nothing was made of what is gone.
			f.part.Start, f.part.Done, f.part.Exact = rec.Offset, rec.Offset, false
			f.rewind = newRewind(rec.Offset, nil)
		default:
			return fmt.Errorf("%d follows %d: retention has removed what was being read; replay again", rec.Offset, f.next-1)
		}
		first = false
		return f.take(ctx, rec)
	})
	if err != nil && !errors.Is(err, errReachedTo) {
		return fmt.Errorf("replaying %s/%d: %w", schemas.TopicTicks, f.part.Partition, err)
	}
	f.part.Until, f.part.UntilNow, f.part.UntilWatermark = f.next, f.now, f.watermark
	f.meter.add(f.unmetered + max(0, end-f.next))
	return f.flush(ctx)
}

func (f *partFold) clocks() (now, watermark int64) {
	if f.fold == nil {
		return f.ticks.origins.Now(), f.ticks.origins.Watermark()
	}
	return f.fold.Clocks()
}

// take folds one record and collects its rows.
func (f *partFold) take(ctx context.Context, rec *kgo.Record) error {
	in := Input{Topic: rec.Topic, Partition: rec.Partition, Offset: rec.Offset, Value: rec.Value}
	marked, err := f.borrower.Decode(rec.Value)
	if err == nil && f.rewind.admit(marked.GetMark()) {
		in.Record = marked
		if err := f.derive(in); err != nil {
			return err
		}
	}
	// What live cannot decode it passes over, and so does a replay.
	f.next = rec.Offset + 1
	f.now, f.watermark = f.clocks()
	f.rewind.reached(f.now, f.watermark, rec.Offset)
	if !f.part.Exact && f.whole(f.now) {
		f.part.Exact, f.part.From, f.part.FromNow, f.part.FromWatermark = true, f.next, f.now, f.watermark
	}
	if f.unmetered++; f.unmetered == meterStep {
		f.meter.add(f.unmetered)
		f.unmetered = 0
	}
	if f.since++; f.batch.Len() >= f.most || f.since >= replayStep {
		return f.flush(ctx)
	}
	return nil
}

// whole reports whether the windows hold all that those of a fold hold which never stopped, and From is
// reached.
func (f *partFold) whole(now int64) bool {
	if from := f.replay.From; !from.IsZero() && now < from.Add(-time.Second).UnixNano() {
		return false
	}
	return f.fold == nil || f.part.Start == 0 || f.rewind.checkpoint().Offset > f.part.Start
}

func (f *partFold) derive(in Input) error {
	if f.fold == nil {
		return f.reresolve(in)
	}
	if f.replay.Corrected {
		in.Record = corrector{f.replay.corrections, f.part.Touched}.apply(in.Record.(*eventsv1.ResolvedRecord))
	}
	f.out.Begin(in)
	if err := f.fold.Apply(in, &f.out); err != nil {
		return err
	}
	if now, _ := f.fold.Clocks(); f.past(now) {
		return errReachedTo
	}
	if !f.part.Exact || in.Offset < f.part.Done {
		return nil
	}
	for _, o := range f.out.List {
		if !slices.Contains(f.topics, o.Topic) {
			continue
		}
		f.part.Last[o.Topic] = entryOf(o.Record.GetMark())
		f.batch.Add(rows.Place{Topic: o.Topic, Partition: o.Partition}, o.Record)
	}
	return nil
}

// past reports whether log time has come to To.
func (f *partFold) past(now int64) bool {
	to := f.replay.To
	return !to.IsZero() && now >= to.UnixNano()
}

func (f *partFold) reresolve(in Input) error {
	rec, change := f.ticks.apply(in.Record.(*eventsv1.ResolvedRecord))
	if f.past(f.ticks.origins.Now()) {
		return errReachedTo
	}
	if !f.part.Exact || in.Offset < f.part.Done {
		return nil
	}
	f.part.Last[schemas.TopicTicks] = markEntry{Partition: in.Partition, Offset: in.Offset}
	if change != "" {
		f.part.Changes[change]++
	}
	if rec.GetTick() == nil {
		return nil // a gap is not resolved: its table is not rebuilt
	}
	f.batch.Add(rows.Place{Topic: in.Topic, Partition: in.Partition, Offset: in.Offset}, rec)
	return nil
}

// flush inserts what was collected and then writes down how far the partition has come. What was
// inserted but not written down is inserted again, which changes nothing.
func (f *partFold) flush(ctx context.Context) error {
	if f.batch.Len() > 0 {
		err := retryUntilAvailable(ctx, f.replay.Logger, schemas.TopicTicks, func() error {
			return f.batch.Insert(ctx, f.replay.History, history.ShadowSuffix(f.gen))
		})
		if err != nil {
			return err
		}
		f.batch.Reset()
	}
	f.since = 0
	faults.Hit("replay.inserted")
	if !f.part.Exact {
		return nil // to begin again at the start costs no more
	}
	p := f.part
	p.Done = max(p.Done, f.next)
	c := f.rewind.checkpoint()
	p.Resume, p.Marks = c.Offset, p.Marks[:0]
	for _, m := range c.Marks {
		p.Marks = append(p.Marks, entryOf(m))
	}
	record, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("encoding the journal: %w", err)
	}
	p.revision++
	return retryUntilAvailable(ctx, f.replay.Logger, schemas.TopicTicks, func() error {
		return shadow.Of(f.replay.History).RecordReplay(ctx, shadow.Replay{
			Generation: f.gen, Partition: p.Partition, Revision: p.revision, State: stateFolding, Record: record,
		})
	})
}
