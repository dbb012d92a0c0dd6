package stream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Group times: a member that was killed gives its partitions back within sessionTimeout.
const (
	sessionTimeout    = 6 * time.Second
	heartbeatInterval = 2 * time.Second
	rebalanceTimeout  = 60 * time.Second
	// pollTimeout is how long the loop waits for records before it lets the handler do what is due, and
	// fullTimeout the same while a partition is full: it may take more again in a moment.
	pollTimeout = 200 * time.Millisecond
	fullTimeout = 5 * time.Millisecond
)

// Handler is what a member of a group does with its partitions. All methods are called from one
// goroutine at a time; an error ends the member, which its supervisor starts again.
type Handler interface {
	// Assigned reports at which offset each of the partitions begins. What was committed to the group
	// does not count: the handler finds its position in its own outputs.
	Assigned(ctx context.Context, partitions []int32) (map[int32]int64, error)
	// Records takes the next records of one partition, in order. It may block, which holds back all
	// partitions.
	Records(ctx context.Context, partition int32, records []*kgo.Record) error
	// Full lists the partitions that are to be held back alone: they are not read until they are
	// no longer listed. It is asked before every poll.
	Full() []int32
	// Due is called after every poll, at least five times a second.
	Due(ctx context.Context) error
	// Lost ends the work on partitions: after it, no record of them is handed over.
	Lost(ctx context.Context, partitions []int32)
	// Done returns per partition the offset below which everything has had its effect; it is
	// committed to the group, for those who look at lag.
	Done() map[int32]int64
}

// RunGroup joins a consumer group on a topic and hands partitions and records to the handler until
// the context ends or the handler fails.
func RunGroup(ctx context.Context, cfg Config, group, topic string, h Handler) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var mu sync.Mutex // the client calls back from its own goroutine
	splicer := NewSplicer(cfg)
	client, err := cfg.NewClient(
		kgo.ConsumerGroup(group),
		kgo.ConsumeTopics(topic),
		kgo.Balancers(kgo.CooperativeStickyBalancer()),
		kgo.SessionTimeout(sessionTimeout),
		kgo.HeartbeatInterval(heartbeatInterval),
		kgo.RebalanceTimeout(rebalanceTimeout),
		kgo.DisableAutoCommit(),
		kgo.BlockRebalanceOnPoll(),
		kgo.AdjustFetchOffsetsFn(func(ctx context.Context, offsets map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
			mu.Lock()
			defer mu.Unlock()
			partitions := make([]int32, 0, len(offsets[topic]))
			for p := range offsets[topic] {
				partitions = append(partitions, p)
			}
			starts, err := h.Assigned(ctx, partitions)
			if err != nil {
				if ctx.Err() == nil {
					cancel(fmt.Errorf("taking over partitions %v of %s: %w", partitions, topic, err))
				}
				return nil, err
			}
			for p := range offsets[topic] {
				offsets[topic][p] = kgo.NewOffset().At(starts[p])
				splicer.Begin(topic, p, starts[p])
			}
			return offsets, nil
		}),
		kgo.OnPartitionsRevoked(func(ctx context.Context, cl *kgo.Client, lost map[string][]int32) {
			mu.Lock()
			defer mu.Unlock()
			h.Lost(ctx, lost[topic])
			for _, p := range lost[topic] {
				splicer.End(topic, p)
			}
		}),
		kgo.OnPartitionsLost(func(ctx context.Context, _ *kgo.Client, lost map[string][]int32) {
			mu.Lock()
			defer mu.Unlock()
			h.Lost(ctx, lost[topic])
			for _, p := range lost[topic] {
				splicer.End(topic, p)
			}
		}),
	)
	if err != nil {
		return fmt.Errorf("joining group %s: %w", group, err)
	}
	defer client.CloseAllowingRebalance()
	committed, told := time.Time{}, commits{topic: topic, has: map[int32]int64{}}
	var held []int32
	for {
		timeout := pollTimeout
		mu.Lock()
		full := h.Full()
		behind := splicer.Behind()
		mu.Unlock()
		held = holdBack(client, topic, held, full)
		if len(full) > 0 || behind {
			timeout = fullTimeout
		}
		pollCtx, stop := context.WithTimeout(ctx, timeout)
		fetches := client.PollFetches(pollCtx)
		stop()
		if ctx.Err() != nil {
			return cause(ctx)
		}
		for _, e := range fetches.Errors() {
			if !errors.Is(e.Err, context.DeadlineExceeded) && !errors.Is(e.Err, context.Canceled) {
				return fmt.Errorf("reading %s/%d: %w", e.Topic, e.Partition, e.Err)
			}
		}
		mu.Lock()
		err := splicer.Take(ctx, client, fetches, func(_ string, p int32) bool { return slices.Contains(full, p) },
			func(_ string, p int32, records []*kgo.Record) error { return h.Records(ctx, p, records) })
		if err == nil {
			err = h.Due(ctx)
		}
		mu.Unlock()
		if err != nil {
			return err
		}
		if time.Since(committed) > time.Second {
			committed = time.Now()
			mu.Lock()
			done := h.Done()
			mu.Unlock()
			told.commit(ctx, client, done)
		}
		client.AllowRebalance()
	}
}

// holdBack pauses the partitions that are full and were not, and resumes those that are no longer.
func holdBack(client *kgo.Client, topic string, held, full []int32) []int32 {
	var pause, resume []int32
	for _, p := range full {
		if !slices.Contains(held, p) {
			pause = append(pause, p)
		}
	}
	for _, p := range held {
		if !slices.Contains(full, p) {
			resume = append(resume, p)
		}
	}
	if len(pause) > 0 {
		client.PauseFetchPartitions(map[string][]int32{topic: pause})
	}
	if len(resume) > 0 {
		client.ResumeFetchPartitions(map[string][]int32{topic: resume})
	}
	return full
}

// commits report to a group how far a handler has come, where that has changed. Nothing but what people see of lag rests on it.
type commits struct {
	topic string
	// has is what the group was notified of, refused that it may not have it.
	has     map[int32]int64
	refused atomic.Bool
}

func (c *commits) commit(ctx context.Context, client *kgo.Client, done map[int32]int64) {
	if c.refused.Swap(false) {
		clear(c.has)
	}
	offsets := map[int32]kgo.EpochOffset{}
	for p, offset := range done {
		if before, ok := c.has[p]; !ok || before != offset {
			offsets[p], c.has[p] = kgo.EpochOffset{Epoch: -1, Offset: offset}, offset
		}
	}
	if len(offsets) == 0 {
		return
	}
	client.CommitOffsets(ctx, map[string]map[int32]kgo.EpochOffset{c.topic: offsets},
		func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, response *kmsg.OffsetCommitResponse, err error) {
			if err != nil || isRefused(response) {
				c.refused.Store(true)
			}
		})
}

func isRefused(response *kmsg.OffsetCommitResponse) bool {
	for _, topic := range response.Topics {
		for _, p := range topic.Partitions {
			if p.ErrorCode != 0 {
				return true
			}
		}
	}
	return false
}

// cause is nil when the caller ended the context, else why the member ended itself.
func cause(ctx context.Context) error {
	if err := context.Cause(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}
