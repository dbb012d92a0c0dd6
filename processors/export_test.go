package processors

import (
	"context"
	"log/slog"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/schemas"
	"github.com/marketlog/marketlog/stream"
)

// Takeover is how a member continues an input partition: the worker that it makes from what the
// outputs hold, without a group and without a goroutine.
type Takeover struct {
	// From is the input offset at which it begins.
	From   int64
	worker *worker
	out    Outputs
}

// Writer is what outputs are handed to.
type Writer = recordWriter

// TakeOver makes the worker of one input partition of a unit; applied says what an output partition holds.
func TakeOver(unit Unit, partition int32, writer Writer, applied func(topic string, partition int32) map[int32]stream.Applied) *Takeover {
	input, err := schemas.TopicNamed(unit.Input)
	if err != nil {
		panic(err)
	}
	m := &member{
		runner:   &Runner{Unit: unit, Logger: slog.New(slog.DiscardHandler)},
		producer: writer, derived: input.Derived, inputs: input.Partitions, workers: map[int32]*worker{},
	}
	held := map[outputID]map[int32]stream.Applied{}
	for _, id := range m.outputsOf(partition) {
		held[id] = applied(id.topic, id.partition)
	}
	w := m.recover(partition, held)
	return &Takeover{From: w.rewind.places[0].offset, worker: w}
}

// Apply folds one record.
func (t *Takeover) Apply(ctx context.Context, rec *kgo.Record) error {
	return t.worker.apply(ctx, rec, &t.out)
}

// Batches runs the worker as a member does and hands it batches, then waits until all is folded.
func (t *Takeover) Batches(ctx context.Context, batches [][]*kgo.Record) error {
	t.worker.start(ctx)
	for _, b := range batches {
		select {
		case t.worker.batches <- b:
		case <-t.worker.done:
			return t.worker.err
		}
	}
	// The last batch was folded when so many empty ones after it were taken that one of them was.
	for range cap(t.worker.batches) + 1 {
		select {
		case t.worker.batches <- nil:
		case <-t.worker.done:
			return t.worker.err
		}
	}
	t.worker.stop()
	return t.worker.err
}

// Step records that a fold is at a log time, and whether what it writes there is in the log.
func (p *LagLimiter) Step(ctx context.Context, name string, now int64, written bool) error {
	return p.step(ctx, name, now, written)
}
