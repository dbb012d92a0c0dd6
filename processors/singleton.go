package processors

import (
	"context"
	"fmt"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/faults"
)

// runSingleton runs a fold that is one for its whole input whenever this process holds the single partition of its output,
// until the context ends.
func runSingleton(ctx context.Context, log stream.Config, group, output string, fold func(context.Context) error) error {
	m := &singletonMember{fold: fold}
	err := stream.RunGroup(ctx, log, group, output, m)
	m.Lost(ctx, nil)
	return err
}

type singletonMember struct {
	fold   func(context.Context) error
	cancel context.CancelFunc
	done   chan struct{}
	err    error
}

// fromEnd is franz-go's offset for the end of a partition: the group is joined for the lock that its
// assignment is, not for the records.
const fromEnd = -1

func (m *singletonMember) Assigned(ctx context.Context, partitions []int32) (map[int32]int64, error) {
	starts := map[int32]int64{}
	for _, p := range partitions {
		starts[p] = fromEnd
	}
	if len(partitions) == 0 {
		return starts, nil
	}
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	m.cancel, m.done = cancel, make(chan struct{})
	go func() {
		defer close(m.done)
		m.err = m.fold(run)
	}()
	return starts, nil
}

func (m *singletonMember) Records(context.Context, int32, []*kgo.Record) error { return nil }

func (m *singletonMember) Full() []int32 { return nil }

func (m *singletonMember) Due(context.Context) error {
	if m.done == nil {
		return nil
	}
	select {
	case <-m.done:
		return m.err
	default:
		return nil
	}
}

func (m *singletonMember) Lost(context.Context, []int32) {
	if m.cancel != nil {
		m.cancel()
		<-m.done
		m.cancel, m.done = nil, nil
	}
}

func (m *singletonMember) Done() map[int32]int64 { return nil }

// singleWriter writes what the log does not hold yet.
type singleWriter struct {
	name     string
	last     *eventsv1.Mark
	producer recordWriter
	written  int // records handed to the producer

	mu  sync.Mutex
	err error
}

func (w *singleWriter) failure() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// write hands outputs to the producer; the pulses among them get the checkpoint.
func (w *singleWriter) write(ctx context.Context, out *Outputs, checkpoint *eventsv1.Checkpoint) error {
	for _, o := range out.List {
		mark := o.Record.GetMark()
		if !mark.After(w.last) {
			continue
		}
		w.last = mark
		w.written++
		if pulse := o.Record.GetPulse(); pulse != nil {
			pulse.Checkpoint = checkpoint
		}
		rec, err := o.kafkaRecord()
		if err != nil {
			return fmt.Errorf("encoding for %s: %w", o.Topic, err)
		}
		faults.Hit("seconds.produce")
		w.producer.Produce(ctx, rec, func(_ *kgo.Record, err error) {
			if err != nil {
				w.mu.Lock()
				w.err = fmt.Errorf("writing outputs of %s: %w", w.name, err)
				w.mu.Unlock()
			}
		})
	}
	return nil
}
