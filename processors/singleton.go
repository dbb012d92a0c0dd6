package processors

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/stream"
)

// runSingleton runs a fold that is one for its whole input whenever this process holds the single partition of its output,
// until the context ends.
func runSingleton(ctx context.Context, log stream.Config, group, output string, fold func(context.Context) error) error {
	m := &singletonMember{fold: fold}
	err := stream.RunGroup(ctx, log, group, output, m)
	m.stop()
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

// Lost ends the fold, unless nothing is lost: a rebalance calls it to members that keep what they have.
func (m *singletonMember) Lost(_ context.Context, partitions []int32) {
	if len(partitions) > 0 {
		m.stop()
	}
}

func (m *singletonMember) stop() {
	if m.cancel != nil {
		m.cancel()
		<-m.done
		m.cancel, m.done = nil, nil
	}
}

func (m *singletonMember) Done() map[int32]int64 { return nil }
