package archive

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/retry"
)

// Group is the consumer group of the archivers.
const Group = "archive"

const (
	// pollTimeout is how long an archiver waits for records before it lets others have its partitions.
	pollTimeout = time.Second
	// firstPause and maxPause are how long a store that failed is left alone: a full disk is tried again soon enough for
	// the log to stay within its bound, and seldom enough for its failures to be read.
	firstPause = time.Second
	maxPause   = 30 * time.Second
)

// Observer gets to know what an Archiver does. Its methods are called from one goroutine at a time, and are quick.
type Observer interface {
	// Opened reports what the store has of a partition that the archiver takes over.
	Opened(Catalog)
	// Committed reports that a segment was committed.
	Committed(Segment)
	// Failed reports that the store failed, and is tried again. The next Committed means that it works.
	Failed(error)
	// Lost reports that records [last.Next, next) of a partition left the brokers before they were archived, just before the
	// segment that begins at next is committed; it is called again if that fails. An error ends the archiver.
	Lost(ctx context.Context, last Segment, next int64) error
}

// Archiver writes what topics get into a store. Several may run over the same store and broker: the partitions are shared
// out by their consumer group, and one that does not know yet that it lost a partition harms nobody.
type Archiver struct {
	// Log is where the records come from.
	Log stream.Config
	// Store is where they go to.
	Store Store
	// Topics says where segments of each topic end. Only these are archived.
	Topics map[string]Rule
	// Schema is the digest of the descriptor set that the values are read by: what WriteSchema returned.
	Schema string
	// Logger gets a line for each gap and each failure, at the level of an error, and for each segment, for debugging.
	Logger *slog.Logger
	// Observer is notified of what happens.
	Observer Observer

	mu         sync.Mutex // the client takes partitions away from its own goroutine
	partitions map[topicPartition]*assigned
	client     *kgo.Client
}

type topicPartition struct {
	topic  string
	number int32
}

// assigned is a partition that this archiver has.
type assigned struct {
	of   Partition
	last Segment // the one before, or the zero Segment
	lost Segment // the one before the gap before first, or the zero Segment
	// first is the offset that the segment begins with which is not written yet, next that of the record which is looked
	// at next.
	first, next int64
	cut         Cutter
}

// Run archives until the context ends or the log fails; its supervisor starts it again. Its position it finds in the
// store. While the store fails, it is tried again and the log waits.
func (a *Archiver) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	a.partitions = map[topicPartition]*assigned{}
	topics := make([]string, 0, len(a.Topics))
	for topic := range a.Topics {
		topics = append(topics, topic)
	}
	ids, err := stream.TopicIDs(ctx, a.Log, topics...)
	if err != nil {
		return err
	}
	client, err := a.Log.Gathering().NewClient(
		kgo.ConsumerGroup(Group),
		kgo.ConsumeTopics(topics...),
		kgo.Balancers(kgo.CooperativeStickyBalancer()),
		kgo.DisableAutoCommit(),
		kgo.BlockRebalanceOnPoll(),
		kgo.AdjustFetchOffsetsFn(func(ctx context.Context, offsets map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
			for topic, partitions := range offsets {
				for number := range partitions {
					start, err := a.take(ctx, Partition{Topic: topic, TopicID: ids[topic], Number: number})
					if err != nil {
						if errors.Is(err, ErrUnavailable) {
							a.Observer.Failed(err)
						}
						cancel(fmt.Errorf("taking over %s/%d: %w", topic, number, err))
						return nil, err
					}
					offsets[topic][number] = kgo.NewOffset().At(start)
				}
			}
			return offsets, nil
		}),
		kgo.OnPartitionsRevoked(a.drop),
		kgo.OnPartitionsLost(a.drop),
	)
	if err != nil {
		return fmt.Errorf("joining group %s: %w", Group, err)
	}
	defer client.CloseAllowingRebalance()
	a.client = client
	for {
		pollCtx, stop := context.WithTimeout(ctx, pollTimeout)
		fetches := client.PollFetches(pollCtx)
		stop()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		for _, e := range fetches.Errors() {
			if !errors.Is(e.Err, context.DeadlineExceeded) {
				return fmt.Errorf("reading %s/%d: %w", e.Topic, e.Partition, e.Err)
			}
		}
		var done []*kgo.Record
		for _, r := range fetches.Records() {
			committed, err := a.record(ctx, r)
			if err != nil {
				return err
			}
			if committed {
				// For those who look at lag: what counts is in the store.
				done = append(done, &kgo.Record{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset - 1, LeaderEpoch: r.LeaderEpoch})
			}
		}
		if len(done) > 0 {
			if err := client.CommitRecords(ctx, done...); err != nil {
				a.Logger.Warn("committing the positions of the archive", "error", err)
			}
		}
		client.AllowRebalance()
	}
}

// take opens a partition, and returns the offset to read from.
func (a *Archiver) take(ctx context.Context, of Partition) (int64, error) {
	catalog, err := Load(ctx, a.Store, of)
	if err != nil {
		return 0, err
	}
	if len(catalog.Faults) > 0 {
		return 0, fmt.Errorf("%w; `marketlog archive verify` names all", catalog.Faults[0])
	}
	if err := catalog.Sweep(ctx, a.Store); err != nil { // it only takes room
		a.Logger.Warn("sweeping the archive", "topic", of.Topic, "partition", of.Number, "error", err)
	}
	starts, ends, err := a.Log.Bounds(ctx, of.Topic)
	if err != nil {
		return 0, err
	}
	a.Observer.Opened(catalog)
	p := &assigned{of: of, last: catalog.Last(), first: catalog.Next(), cut: Cutter{Rule: a.Topics[of.Topic]}}
	start, end := starts[of.Topic][of.Number], ends[of.Topic][of.Number]
	switch {
	case end < p.first:
		return 0, fmt.Errorf("the archive has %s up to %d, and the log ends at %d: records that were archived are gone from the log; "+
			"it was restored from an older copy or lost its last writes", of, p.first, end)
	case start > p.first:
		if len(catalog.Segments) > 0 {
			a.Logger.Error("records left the log before they were archived", "topic", of.Topic, "partition", of.Number, "from", p.first, "next", start)
			p.lost = p.last
		}
		p.last, p.first = Segment{}, start
	}
	p.next = p.first
	a.mu.Lock()
	defer a.mu.Unlock()
	a.partitions[topicPartition{of.Topic, of.Number}] = p
	return p.first, nil
}

func (a *Archiver) drop(_ context.Context, _ *kgo.Client, lost map[string][]int32) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for topic, numbers := range lost {
		for _, number := range numbers {
			delete(a.partitions, topicPartition{topic, number})
		}
	}
}

// record looks at the next record of a partition and writes the segment that ends before it, if one does.
func (a *Archiver) record(ctx context.Context, r *kgo.Record) (committed bool, err error) {
	at := topicPartition{r.Topic, r.Partition}
	p := a.assigned(at)
	if p == nil || r.Offset < p.next { // it was taken away, or came back and begins again
		return false, nil
	}
	if r.Offset > p.next {
		return false, fmt.Errorf("reading %s: the log has record %d where %d belongs: records left it before they were archived", p.of, r.Offset, p.next)
	}
	p.next++
	if !p.cut.Ends(r) {
		return false, nil
	}
	made, err := a.commit(ctx, at, p, r.Offset)
	if err != nil || made.Next == 0 {
		return false, err
	}
	a.Logger.Debug("segment archived", "topic", r.Topic, "partition", r.Partition, "first", made.First, "next", made.Next, "bytes", made.Size)
	p.last, p.lost, p.first = made, Segment{}, made.Next
	a.Observer.Committed(made)
	return true, nil
}

func (a *Archiver) assigned(at topicPartition) *assigned {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.partitions[at]
}

// commit writes a segment, and tries again while the store fails: to begin from the store would read all open segments
// again each time. It returns the zero Segment if the partition was taken away meanwhile.
func (a *Archiver) commit(ctx context.Context, at topicPartition, p *assigned, next int64) (Segment, error) {
	backoff := retry.New(firstPause, maxPause)
	var tried Segment // what the last attempt would have committed
	for attempt := 1; ; attempt++ {
		made, err := tried.settled(ctx, a.Store)
		if errors.Is(err, ErrMissing) {
			made, err = commitAfter(ctx, a.Store, p.of, p.last, p.first, a.Schema, a.records(ctx, p.of, p.first, next), func() error {
				if p.lost.Next == 0 {
					return nil
				}
				return a.Observer.Lost(ctx, p.lost, p.first)
			})
		}
		switch {
		case err == nil:
			if attempt > 1 {
				if err := made.sweep(ctx, a.Store); err != nil { // it only takes room
					a.Logger.Warn("sweeping the archive", "topic", p.of.Topic, "partition", p.of.Number, "error", err)
				}
			}
			return made, nil
		case ctx.Err() != nil:
			return Segment{}, context.Cause(ctx)
		}
		if mismatch := (*MismatchError)(nil); errors.Is(err, errLog) || errors.As(err, &mismatch) {
			return Segment{}, err
		}
		if made.Digest != "" {
			tried = made
		}
		pause := backoff.Next()
		a.Logger.Error("archiving failed", "topic", p.of.Topic, "partition", p.of.Number, "error", err, "retry_in", pause.Round(time.Millisecond))
		a.Observer.Failed(err)
		a.client.AllowRebalance() // others may reach the store
		if retry.Wait(ctx, pause) != nil {
			return Segment{}, context.Cause(ctx)
		}
		if a.assigned(at) != p {
			return Segment{}, nil
		}
	}
}

// errStop ends a read that nobody wants the rest of.
var errStop = errors.New("stopped")

// records reads the records of a segment a second time: to keep them from the first would take the memory of one segment
// for each partition.
func (a *Archiver) records(ctx context.Context, of Partition, first, next int64) iter.Seq2[*kgo.Record, error] {
	return func(yield func(*kgo.Record, error) bool) {
		err := stream.ReadBroker(ctx, a.Log, of.Topic, of.Number, first, next, func(r *kgo.Record) error {
			if !yield(r, nil) {
				return errStop
			}
			return nil
		})
		if err != nil && !errors.Is(err, errStop) {
			yield(nil, err)
		}
	}
}
