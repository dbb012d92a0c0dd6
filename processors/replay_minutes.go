package processors

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/faults"
	"github.com/marketlog/marketlog/stream/history"
	"github.com/marketlog/marketlog/stream/history/rows"
)

// replayMinutes refolds the minutes whose rows a topic holds. It takes seconds, so nothing of it is kept in the journal: interrupted, it begins
// again, and inserts the same rows.
//
// Where the log holds all inputs and all that was made of them, it begins with the first. Else it begins as a fold that is
// started again does, at the first checkpoint that lies in the log with all that it needs; rows of minutes before lie outside.
func (r *Replay) replayMinutes(ctx context.Context, j *journal, part *partReplay, meter *meter) error {
	i := slices.IndexFunc(r.Minutes, func(m *Minutes) bool { return m.Output == part.makes })
	if i < 0 {
		part.Exact = true // nobody makes such rows
		return nil
	}
	m := *r.Minutes[i]
	m.Log, m.Logger = r.Log, r.Logger
	starts, ends, err := m.Log.LogBounds(ctx, append([]string{m.Output}, m.Inputs...)...)
	if err != nil {
		return err
	}
	found, until, ok, err := m.firstCheckpoint(ctx, starts, ends)
	if err != nil {
		return err
	}
	if !ok {
		part.Until, part.UntilNow = math.MaxInt64, math.MaxInt64
		return r.emit(&ReplayNote{Note: "the log no longer holds all that a minute of " + m.Name + " is folded from: none is compared"})
	}
	fold := m.New()
	loaded := int64(0)
	if found != nil {
		if loaded, err = m.load(ctx, fold, found, until); err != nil {
			return fmt.Errorf("reading the state of %s: %w", m.Name, err)
		}
	}
	part.Exact = true
	if outside := max(loaded, unixNano(r.From)); outside > 0 {
		part.From, part.FromNow = outside+1, outside
	}
	f := &minuteReplay{
		replay: r, part: part, fold: minuteFolder(fold, loaded), gen: j.Generation, most: cmp.Or(r.BatchRows, replayBatchRows),
	}
	err = m.readAgain(ctx, found, ends, meter, f.close)
	if err != nil && !errors.Is(err, errReachedTo) {
		return fmt.Errorf("replaying %s: %w", m.Name, err)
	}
	part.Until, part.UntilNow = f.closed+1, f.closed
	return f.flush(ctx)
}

// minuteReplay collects the rows of minutes.
type minuteReplay struct {
	replay *Replay
	part   *partReplay
	fold   spanFolder
	// closed is the last minute that is folded.
	closed int64
	gen    uint32
	most   int
	out    Outputs
	batch  rows.Batch
}

func (f *minuteReplay) close(ctx context.Context, minute int64, records []joined) error {
	if to := unixNano(f.replay.To); to > 0 && minute > to {
		return errReachedTo
	}
	f.closed = minute
	f.out.Begin(Input{Offset: minute})
	if made, err := f.fold(ctx, minute, records, &f.out); err != nil || !made {
		return err
	}
	for _, o := range f.out.List {
		f.part.Last[o.Topic] = entryOf(o.Record.GetMark())
		if minute >= f.part.From {
			f.batch.Add(rows.Place{Topic: o.Topic, Partition: o.Partition}, o.Record)
		}
	}
	if f.batch.Len() < f.most {
		return nil
	}
	return f.flush(ctx)
}

func (f *minuteReplay) flush(ctx context.Context) error {
	return f.replay.insertShadow(ctx, &f.batch, f.gen)
}

// insertShadow inserts what was collected, and empties the batch.
func (r *Replay) insertShadow(ctx context.Context, b *rows.Batch, gen uint32) error {
	if b.Len() == 0 {
		return nil
	}
	err := retryUntilAvailable(ctx, r.Logger, r.View, func() error { return b.Insert(ctx, r.History, history.ShadowSuffix(gen)) })
	if err != nil {
		return err
	}
	b.Reset()
	faults.Hit("replay.inserted")
	return nil
}

// errFound ends the search for a checkpoint.
var errFound = errors.New("found")

// firstCheckpoint finds where minutes can be folded again from: nil if that is the beginning of the log. Until is the offset
// after the pulse that carries it. It is not ok if there is no such place.
func (m *Minutes) firstCheckpoint(
	ctx context.Context, starts, ends stream.Offsets,
) (found *eventsv1.Checkpoint, until int64, ok bool, err error) {
	whole := true
	for _, partitions := range starts {
		for _, at := range partitions {
			whole = whole && at == 0
		}
	}
	if whole {
		return nil, 0, true, nil
	}
	inputs, err := inputTopics(m.Inputs...)
	if err != nil {
		return nil, 0, false, err
	}
	join := newTimeJoin(byMinute, inputs, nil)
	first := int64(-1) // the minute of the oldest record: it may lack some of its own
	err = stream.ReadRange(ctx, m.Log, m.Output, 0, starts[m.Output][0], ends[m.Output][0], func(r *kgo.Record) error {
		rec, err := schemas.DecodeRecord(m.Output, r.Value)
		if err != nil {
			return nil // the live fold passed over it too
		}
		if first < 0 && rec.GetMark() != nil {
			first = rec.GetMark().Offset
		}
		checkpoint := rec.GetPulse().GetCheckpoint()
		if checkpoint == nil || checkpoint.Offset <= first {
			return nil
		}
		for _, mark := range checkpoint.Marks {
			if int(mark.Partition) < len(join.partitions) {
				p := join.partitions[mark.Partition]
				if mark.Offset < starts[p.topic.Name][p.partition] {
					return nil
				}
			}
		}
		found, until, ok = checkpoint, r.Offset+1, true
		return errFound
	})
	if errors.Is(err, errFound) {
		err = nil
	}
	return found, until, ok, err
}

// readAgain reads the inputs from a checkpoint to their ends and hands over the minutes that are whole by then.
func (m *Minutes) readAgain(
	ctx context.Context, from *eventsv1.Checkpoint, ends stream.Offsets, meter *meter,
	fold func(ctx context.Context, minute int64, records []joined) error,
) error {
	inputs, err := inputTopics(m.Inputs...)
	if err != nil {
		return err
	}
	join := newTimeJoin(byMinute, inputs, from)
	for _, p := range join.partitions {
		meter.expect(ends[p.topic.Name][p.partition] - p.next)
	}
	return join.read(ctx, m.Log, ends, func(records []*kgo.Record) error {
		meter.add(int64(len(records)))
		return nil
	}, func(minute int64, records []joined, _ *eventsv1.Checkpoint) error { return fold(ctx, minute, records) })
}

// replayRaw rebuilds the rows of a topic of sources.
func (r *Replay) replayRaw(ctx context.Context, j *journal, part *partReplay, meter *meter) error {
	name := part.makes
	starts, ends, err := r.Log.LogBounds(ctx, name)
	if err != nil {
		return err
	}
	start, end := starts[name][0], ends[name][0]
	part.Exact, part.From, part.Until = true, start, end
	if end > start {
		part.Last[name] = markEntry{Offset: end - 1}
	}
	meter.expect(end - start)
	most := cmp.Or(r.BatchRows, replayBatchRows)
	var batch rows.Batch
	err = stream.ReadRange(ctx, r.Log, name, 0, start, end, func(rec *kgo.Record) error {
		meter.add(1)
		record, err := schemas.DecodeRecord(name, rec.Value)
		if err != nil {
			return nil // the sink passes over it too
		}
		batch.Add(rows.Place{Topic: name, Partition: rec.Partition, Offset: rec.Offset}, record)
		if batch.Len() < most {
			return nil
		}
		return r.insertShadow(ctx, &batch, j.Generation)
	})
	if err != nil {
		return fmt.Errorf("replaying %s: %w", name, err)
	}
	return r.insertShadow(ctx, &batch, j.Generation)
}

// unixNano is 0 for the zero time.
func unixNano(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}
