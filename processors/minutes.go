package processors

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
)

// MinuteFold is a fold over all partitions of several topics at once, by log minutes. A minute is named by its end,
// Unix nanoseconds, which takes the place of the offset in the marks of what the fold puts out. It is used by one goroutine.
//
// Its memory is longer than what can be read again at a start. So it writes the state of each of its entities at least
// every StateEvery, and is given that at the start: the state of an entity says which minute it is of, and what is
// taken of minutes up to that one changes it no more. Minutes in which nothing was received are never closed: a state that
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

// StateEvery is how often a MinuteFold writes the state of each of its entities, in log time.
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

const minute = int64(time.Minute)

// byMinute are log minutes, each named by its end.
var byMinute = joinStep{
	length: time.Minute, clockless: minute, memory: minutesMemory, settlePlaces: 1, unit: time.Nanosecond, maxPending: 30,
	sort: func(p *joinPartition, rec *kgo.Record, record eventsv1.Marked) {
		switch {
		case !p.topic.Derived:
			p.observe(rec, record)
		case p.topic.Minutes:
			p.folded(rec, record)
		default:
			p.candle(rec, record)
		}
	},
}

// Run folds whenever this process holds the output partition, until the context ends.
func (m *Minutes) Run(ctx context.Context) error {
	f := &joinedFold{
		name: m.Name, inputs: m.Inputs, output: m.Output, step: byMinute, log: m.Log, logger: m.Logger, metrics: m.Metrics,
	}
	return f.run(ctx, func(ctx context.Context, checkpoint *eventsv1.Checkpoint) (spanFolder, error) {
		fold := m.New()
		loaded, err := m.load(ctx, fold, checkpoint, math.MaxInt64)
		if err != nil {
			return nil, fmt.Errorf("reading the state of %s: %w", m.Name, err)
		}
		return minuteFolder(fold, loaded), nil
	})
}

// minuteFolder writes nothing of minutes up to the last one that was loaded.
func minuteFolder(fold MinuteFold, loaded int64) spanFolder {
	return func(_ context.Context, minute int64, records []joined, out *Outputs) (bool, error) {
		for _, r := range records {
			fold.Take(minute, r.in, r.rec)
		}
		if minute <= loaded {
			fold.Close(minute, nil)
			return false, nil
		}
		fold.Close(minute, out)
		return true, nil
	}
}

// load hands the fold its own output from a checkpoint on, below offset until, and returns the last minute that is there
// whole; 0 for none.
func (m *Minutes) load(ctx context.Context, fold MinuteFold, checkpoint *eventsv1.Checkpoint, until int64) (whole int64, err error) {
	if checkpoint == nil {
		return 0, nil
	}
	// The checkpoint's own place is the minute after which the inputs are read again.
	from, err := m.Log.LogOffsetsFrom(ctx, time.Unix(0, checkpoint.Offset), m.Output)
	if err != nil {
		return 0, err
	}
	_, ends, err := m.Log.Bounds(ctx, m.Output)
	if err != nil {
		return 0, err
	}
	l := stateLoader{fold: fold}
	err = stream.ReadRange(ctx, m.Log, m.Output, 0, from[m.Output][0], min(ends[m.Output][0], until), func(r *kgo.Record) error {
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
			return // a duplicate's
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

// folded takes a record of another MinuteFold.
func (p *joinPartition) folded(rec *kgo.Record, record eventsv1.Marked) {
	mark := record.GetMark()
	if mark == nil {
		return // the control of a replay: no fold wrote it, so it is of no minute
	}
	end := mark.Offset
	s := p.span(end, rec)
	if record.GetPulse() != nil {
		p.reached = max(p.reached, end)
		return
	}
	s.add(rec, record)
}

// candle takes a record of a topic of closed minutes.
func (p *joinPartition) candle(rec *kgo.Record, record eventsv1.Marked) {
	if pulse := record.GetPulse(); pulse != nil {
		if pulse.Watermark > 0 {
			p.reached = max(p.reached, schemas.Minute(pulse.Watermark-int64(schemas.AllowedLateness)))
			p.span(p.reached, rec)
		}
		return
	}
	candle, ok := record.(*eventsv1.CandleRecord)
	if !ok || candle.GetCandle() == nil {
		return
	}
	p.span(candle.GetCandle().Start+minute, rec).add(rec, record)
}

// observe takes a record of a topic that producers write.
func (p *joinPartition) observe(rec *kgo.Record, record eventsv1.Marked) {
	reference, ok := record.(*eventsv1.ReferenceRecord)
	if !ok {
		return
	}
	if clock := reference.GetClock(); clock != nil {
		p.clocks.Observe(reference.Producer, reference.Epoch, clock.Time)
		before := p.reached
		if now := p.clocks.Now(); now > 0 {
			p.reached = max(p.reached, schemas.Minute(now))
		}
		// What a source reported before the first clock of all belongs to the first minute: at the start of a log the
		// first answers come before it, and what does not change is not reported again.
		if s := p.pending[minute]; s != nil && before == 0 && p.reached > 0 {
			delete(p.pending, minute)
			p.pending[p.reached+minute] = s
		}
	}
	s := p.span(p.reached+minute, rec)
	if reference.GetClock() == nil {
		s.add(rec, record)
	}
}
