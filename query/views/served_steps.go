package views

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/history/read"
)

const (
	// stepsEvery is how often steps are written.
	stepsEvery = 2 * time.Second
	// stepsLate is within what time the log certainly has steps that another process wrote, if it has any.
	stepsLate = time.Second
	// figuresWhole is after what time figures are recorded whole again. An instant is read from there on.
	figuresWhole = time.Hour
	// stepSpan is for how long records of one partition, which come in bursts, make one step.
	stepSpan = 20 * time.Millisecond
	// maxSteps bounds those that wait to be written, some minutes of them: while the log cannot be reached there are no prices either.
	maxSteps = 10_000
)

// ServedLog is where steps are written. After an error it is open whether the record is kept.
type ServedLog interface {
	WriteServed(ctx context.Context, record *eventsv1.ServedRecord) error
}

// ServedSteps records from when on a process has served which part of the log, so that a later one, or another, can answer as it did. Safe
// for concurrent use.
type ServedSteps struct {
	mu sync.Mutex
	// clock is nil until the process answers: what it reads before, nobody is served.
	clock func() time.Time
	since int64 // by that clock, Unix nanoseconds
	// replica is the process's name; empty before Run.
	replica string
	// offsets are how far each partition of prices.v1 was read, -1 for not at all; wholeCauses are the causes up to which all records were: a
	// pulse is the last of its cause. open are the steps that go on, last those that were put into waiting last.
	offsets, wholeCauses []int64
	open, last           []openStep
	waiting              []*eventsv1.ServedStep
	// minuteEnds are those of the minutes which are served, by fold, Unix nanoseconds; 0 for none.
	minuteEnds [servedFolds]int64
	// sources are what answers of currencies are made of, nil for nothing.
	sources *eventsv1.ServedSources
	// pegs are the statistics that stablecoins are scored by, nil for none.
	pegs *eventsv1.ServedPegs
	// candles is what charts are made of, nil for nothing.
	candles *eventsv1.ServedCandles
	// series is what series of yields are read from, nil for nothing.
	series *eventsv1.ServedSeries
	// figures are those of candles that rows of coins are served with, nil before they are known. figuresLast is when they were recorded last,
	// figuresFrom when all of them were; both Unix nanoseconds, figuresFrom 0 for never.
	figures                  *AllFigures
	figuresFrom, figuresLast int64
	number                   int64 // only Run uses it
}

type openStep struct {
	step  *eventsv1.ServedStep // nil: none
	began int64
}

func newServedSteps(partitions int32) *ServedSteps {
	none := slices.Repeat([]int64{-1}, int(partitions))
	return &ServedSteps{offsets: none, wholeCauses: slices.Clone(none), open: make([]openStep, partitions), last: make([]openStep, partitions)}
}

// Steps are those of a price cache.
func (b *PriceCache) Steps() *ServedSteps { return b.steps }

// Begin means that the process answers from now on, by the clock that ages in its answers are taken by.
func (s *ServedSteps) Begin(clock func() time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clock, s.since = clock, clock().UnixNano()
	for partition, offset := range s.offsets {
		if offset >= 0 {
			s.step(int32(partition), offset)
		}
	}
	for fold, end := range s.minuteEnds {
		if end != 0 {
			s.minuteEnded(servedFold(fold), s.since)
		}
	}
	if s.sources != nil {
		s.wait(&eventsv1.ServedStep{Time: s.since, Read: &eventsv1.ServedStep_Sources{Sources: s.sources}})
	}
	if s.pegs != nil {
		s.wait(&eventsv1.ServedStep{Time: s.since, Read: &eventsv1.ServedStep_Pegs{Pegs: s.pegs}})
	}
	if s.candles != nil {
		s.wait(&eventsv1.ServedStep{Time: s.since, Read: &eventsv1.ServedStep_Candles{Candles: s.candles}})
	}
	if s.series != nil {
		s.wait(&eventsv1.ServedStep{Time: s.since, Read: &eventsv1.ServedStep_Series{Series: s.series}})
	}
	s.figured(s.since, s.figures, nil)
}

// began is when the process first answered, Unix nanoseconds; false if it does not answer yet, or records nothing.
func (s *ServedSteps) began() (at int64, answers bool) {
	if s == nil {
		return 0, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.since, s.clock != nil
}

// mine reports whether what is asked for may be what this process served: that of any, or its own.
func (s *ServedSteps) mine(ctx context.Context) bool {
	replica := read.ReplicaOf(ctx)
	if replica == "" || s == nil {
		return replica == ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.replica == replica
}

// recordedBy is by which log time all must be kept that was recorded of what was served at an instant, Unix nanoseconds both: what this process
// remembers need not be.
func (s *ServedSteps) recordedBy(ctx context.Context, at int64) time.Time {
	if !s.mine(ctx) {
		return logged(at + int64(stepsEvery+stepsLate))
	}
	began, _ := s.began()
	return logged(min(at, began))
}

// read takes that readers get what a record of prices.v1 holds. The order of the log is that of the offsets of what causes its records.
func (s *ServedSteps) read(mark *eventsv1.Mark) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if mark == nil || int(mark.Partition) >= len(s.offsets) || mark.Offset < s.offsets[mark.Partition] {
		return
	}
	s.offsets[mark.Partition] = mark.Offset
	if s.clock != nil {
		s.step(mark.Partition, mark.Offset)
	}
}

// causeEnded takes that a pulse was read, after which no record of its cause comes. A fold that is killed amid the records of one writes the rest of
// them, and the pulse, when it runs again: who was killed with it has had a part of them.
func (s *ServedSteps) causeEnded(mark *eventsv1.Mark) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if mark == nil || int(mark.Partition) >= len(s.wholeCauses) || mark.Offset < s.wholeCauses[mark.Partition] {
		return
	}
	s.wholeCauses[mark.Partition] = mark.Offset
	s.close(mark.Partition)
}

// step goes on with the open step of a partition, which is of the last record of a cause, or begins another one.
func (s *ServedSteps) step(partition int32, offset int64) {
	now, open := s.clock().UnixNano(), &s.open[partition]
	if open.step != nil && open.step.GetPrices().Offset == offset {
		open.step.Time = now
	} else {
		if open.step != nil { // what comes of another cause comes after all of this one
			s.put(partition)
		}
		*open = openStep{&eventsv1.ServedStep{Time: now, Read: &eventsv1.ServedStep_Prices{Prices: &eventsv1.ServedPrices{Partition: partition, Offset: offset}}}, now}
	}
	s.close(partition)
}

// close ends the open step of a partition if its cause has ended.
func (s *ServedSteps) close(partition int32) {
	if open := s.open[partition].step; open != nil && open.GetPrices().Offset <= s.wholeCauses[partition] {
		s.put(partition)
	}
}

// put has the open step of a partition wait to be written; within a burst it takes the place of the one before.
func (s *ServedSteps) put(partition int32) {
	open, last := s.open[partition], s.last[partition]
	s.open[partition] = openStep{}
	if last.step != nil && (open.step.Time-last.began < int64(stepSpan) || len(s.waiting) >= maxSteps) {
		last.step.Time, last.step.Read = open.step.Time, open.step.Read
		return
	}
	s.waiting, s.last[partition] = append(s.waiting, open.step), open
}

// minute takes that readers get what a fold made as of the end of a minute, from an instant on; both Unix nanoseconds.
func (s *ServedSteps) minute(fold servedFold, from, end int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.minuteEnds[fold] = end
	if s.clock != nil {
		s.minuteEnded(fold, from)
	}
}

func (s *ServedSteps) minuteEnded(fold servedFold, from int64) {
	s.wait(fold.step(from, s.minuteEnds[fold]))
}

// readSources takes that answers of currencies are made of records of the sources, from an instant on.
func (s *ServedSteps) readSources(from int64, read *eventsv1.ServedSources) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sources = read
	if s.clock != nil {
		s.wait(&eventsv1.ServedStep{Time: from, Read: &eventsv1.ServedStep_Sources{Sources: read}})
	}
}

// readPegs takes that stablecoins are scored by statistics, from an instant on.
func (s *ServedSteps) readPegs(from int64, pegs *eventsv1.ServedPegs) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pegs = pegs
	if s.clock != nil {
		s.wait(&eventsv1.ServedStep{Time: from, Read: &eventsv1.ServedStep_Pegs{Pegs: pegs}})
	}
}

// readCandles takes that charts are made of candles that are closed and folded so far, from an instant on.
func (s *ServedSteps) readCandles(from int64, candles *eventsv1.ServedCandles) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.candles = candles
	if s.clock != nil {
		s.wait(&eventsv1.ServedStep{Time: from, Read: &eventsv1.ServedStep_Candles{Candles: candles}})
	}
}

// readSeries takes that series of yields are read from what the tables have so far, from an instant on.
func (s *ServedSteps) readSeries(from int64, series *eventsv1.ServedSeries) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.series = series
	if s.clock != nil {
		s.wait(&eventsv1.ServedStep{Time: from, Read: &eventsv1.ServedStep_Series{Series: series}})
	}
}

// readFigures takes that rows of coins are served with figures, from an instant on.
func (s *ServedSteps) readFigures(from int64, figures *AllFigures) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.figures
	s.figures = figures
	if s.clock == nil {
		return
	}
	if s.figuresFrom == 0 || from-s.figuresFrom >= int64(figuresWhole) {
		before = nil
	}
	s.figured(from, figures, before)
}

// figured has figures wait to be written: what differs from those before, all where before is nil. Before any are known rows are served without,
// which is recorded too.
func (s *ServedSteps) figured(from int64, figures, before *AllFigures) {
	s.figuresLast = max(from, s.figuresLast+1) // no two have the same key
	if before == nil {
		s.figuresFrom = s.figuresLast
	}
	if !s.wait(&eventsv1.ServedStep{Time: s.figuresLast, Read: &eventsv1.ServedStep_Figures{Figures: figures.since(before)}}) {
		s.figuresFrom = 0 // those that come next differ from some that nobody can read
	}
}

// wait has a step wait to be written; false where too many do.
func (s *ServedSteps) wait(step *eventsv1.ServedStep) bool {
	if len(s.waiting) >= maxSteps {
		return false
	}
	s.waiting = append(s.waiting, step)
	return true
}

// Run writes the steps of a process, whose name no other ever had, until the context ends, and then what is left. Begin comes before. With
// stepsEvery a kill takes those of some seconds.
func (s *ServedSteps) Run(ctx context.Context, replica string, to ServedLog, log *slog.Logger) error {
	s.mu.Lock()
	s.replica = replica
	s.mu.Unlock()
	ticker := time.NewTicker(stepsEvery)
	defer ticker.Stop()
	for {
		if err := s.write(ctx, replica, to); err != nil && ctx.Err() == nil {
			log.Error("recording what was served failed, retrying with the next steps", "error", err)
		}
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			defer cancel()
			return s.write(last, replica, to)
		case <-ticker.C:
		}
	}
}

// write writes the steps that are whole: those whose cause has ended. Where there are none it writes too: that none is missing shows by the time of
// the record alone.
func (s *ServedSteps) write(ctx context.Context, replica string, to ServedLog) error {
	steps, now := s.whole()
	s.number++
	err := to.WriteServed(ctx, &eventsv1.ServedRecord{Replica: replica, Number: s.number, Time: now, Steps: steps})
	if err != nil {
		s.mu.Lock()
		s.waiting = append(steps, s.waiting...)
		s.mu.Unlock()
		return fmt.Errorf("writing %d steps: %w", len(steps), err)
	}
	return nil
}

// whole takes the steps that are, in the order of time.
func (s *ServedSteps) whole() (steps []*eventsv1.ServedStep, now int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now = s.clock().UnixNano()
	steps, s.waiting = s.waiting, nil
	clear(s.last)
	slices.SortStableFunc(steps, func(a, b *eventsv1.ServedStep) int { return cmp.Compare(a.Time, b.Time) })
	return steps, now
}
