package processors

import (
	"context"
	"fmt"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/faults"
)

// recordWriter writes records in the order in which it got them, an idempotent *kgo.Client.
type recordWriter interface {
	Produce(ctx context.Context, rec *kgo.Record, written func(*kgo.Record, error))
	Flush(ctx context.Context) error
}

// outputID is a partition of an output topic.
type outputID struct {
	topic     string
	partition int32
}

// markedWriter hands the outputs of a fold to a producer: those that the log does not hold yet, which their marks show. What
// it hands over is written even if the context of its caller ends meanwhile; see write. It is used by one goroutine.
type markedWriter struct {
	// name is whose outputs they are, for errors.
	name string
	// last is the newest mark of each output partition, in the log or on its way.
	last     map[outputID]*eventsv1.Mark
	producer recordWriter
	// onTheWay has a place for each record that is not acknowledged.
	onTheWay chan struct{}
	// written counts the records handed to the producer.
	written int
	// produceStep and skipStep are the steps at which a test can end the process, where a record is handed over and where
	// the log holds it; empty for none.
	produceStep, skipStep string

	mu  sync.Mutex
	err error
}

// newMarkedWriter goes on after the marks that the log holds.
func newMarkedWriter(name string, producer recordWriter, last map[outputID]*eventsv1.Mark) *markedWriter {
	return &markedWriter{name: name, last: last, producer: producer, onTheWay: make(chan struct{}, maxOnTheWay)}
}

// holds reports whether the log has all that an input at an offset causes, as the outputs after it show.
func (w *markedWriter) holds(offset int64) bool {
	for _, mark := range w.last {
		if mark == nil || mark.Offset <= offset {
			return false
		}
	}
	return len(w.last) > 0
}

// write hands over one output unless the log holds it; a pulse gets the checkpoint. It waits while too many are on their
// way. It returns an error of the context, and that of an earlier record.
func (w *markedWriter) write(ctx context.Context, o Output, checkpoint func() *eventsv1.Checkpoint) error {
	id := outputID{o.Topic, o.Partition}
	mark := o.Record.GetMark()
	if !mark.After(w.last[id]) {
		hit(w.skipStep)
		return nil
	}
	if pulse := o.Record.GetPulse(); pulse != nil {
		pulse.Checkpoint = checkpoint()
	}
	rec, err := o.kafkaRecord()
	if err != nil {
		return fmt.Errorf("encoding for %s: %w", o.Topic, err)
	}
	if err := w.failure(); err != nil {
		return err
	}
	select {
	case w.onTheWay <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	w.last[id] = mark
	w.written++
	hit(w.produceStep)
	// The wait may be cancelled, a record may not: the client would fail it together with all that is
	// buffered for its partition, also what other workers go on from, and a gap in the marks of an
	// output is never filled.
	w.producer.Produce(context.WithoutCancel(ctx), rec, func(_ *kgo.Record, err error) {
		<-w.onTheWay
		if err != nil {
			w.mu.Lock()
			w.err = err
			w.mu.Unlock()
		}
	})
	return nil
}

func hit(step string) {
	if step != "" {
		faults.Hit(step)
	}
}

// failure is a write that failed. What followed it may have been written, so the fold stops: its successor reads from the
// outputs which did.
func (w *markedWriter) failure() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return fmt.Errorf("writing outputs of %s: %w", w.name, w.err)
	}
	return nil
}
