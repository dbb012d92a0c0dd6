package processors

import (
	"context"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
)

// SecondFold is a fold over all partitions of a raw topic at once. The records of one log second
// are taken partition by partition, so how the partitions were read side by side makes no
// difference; the second takes the place of the offset in the marks of what it puts out.
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
	// Reads reports whether a tick of a venue's base can matter to the fold; nil: each can. The others are passed over before they
	// are decoded, which is most of the work of a fold that takes few. Its arguments must not be kept.
	Reads  func(venue, base string) bool
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
const secondsMemory = 2*(schemas.FreshFor+schemas.MaxLead) + RateFor + WindowMemory

// bySecond are log seconds, each named by its start. A second is whole when now lies after it.
var bySecond = joinStep{
	length: time.Second, memory: secondsMemory, settle: settle, settlePlaces: settlePlaces, unit: time.Second, maxPending: 60,
	sort: func(p *joinPartition, rec *kgo.Record, record eventsv1.Marked) {
		raw, ok := record.(*eventsv1.RawRecord)
		if !ok {
			return
		}
		if clock := raw.GetClock(); clock != nil {
			p.clocks.Observe(raw.Producer, raw.Epoch, clock.Time)
		}
		second := p.clocks.Now() - p.clocks.Now()%int64(time.Second)
		p.reached = max(p.reached, second-int64(time.Second))
		s := p.span(second, rec)
		if raw.GetTick() != nil {
			s.add(rec, raw)
		}
	},
}

// Run folds whenever this process holds the output partition, until the context ends.
func (s *Seconds) Run(ctx context.Context) error {
	f := &joinedFold{
		name: s.Name, inputs: []string{s.Input}, output: s.Output, step: s.step(), log: s.Log, logger: s.Logger, metrics: s.Metrics,
	}
	return f.run(ctx, func(context.Context, *eventsv1.Checkpoint) (spanFolder, error) { return s.folder(s.New()), nil })
}

// step is bySecond for the ticks that the fold reads.
func (s *Seconds) step() joinStep {
	step := bySecond
	if s.Reads != nil {
		step.passOver = func(value []byte) bool {
			head, ok := schemas.FindTickHead(value)
			return ok && !s.Reads(head.Venue, head.Base)
		}
	}
	return step
}

// folder keeps the pace of those that read the output.
func (s *Seconds) folder(fold SecondFold) spanFolder {
	return func(ctx context.Context, second int64, records []joined, out *Outputs) (bool, error) {
		if s.Pace != nil {
			if err := s.Pace.step(ctx, s.Name, second, out.input.Written); err != nil {
				return false, err
			}
		}
		for _, r := range records {
			fold.Take(second, r.in, r.rec.(*eventsv1.RawRecord).GetTick())
		}
		fold.Close(second, out)
		return true, nil
	}
}
