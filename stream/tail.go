package stream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/segmentio/kafka-go"
	"golang.org/x/sync/errgroup"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/retry"
)

const (
	// tailMaxWait bounds a fetch that finds nothing. Most partitions of most topics are quiet, and each such fetch costs the broker as much as one with records.
	tailMaxWait = 2 * time.Second
	// tailQueue is how many records a partition's reader holds decoded ahead of the handler.
	tailQueue = 200
	// tailDialTimeout bounds one attempt to reach a broker.
	tailDialTimeout = 5 * time.Second
)

// TailStart is where a tail begins in one partition.
type TailStart struct {
	// Offset of the first record wanted.
	Offset int64
	// Marks are the newest ones already applied, one per origin; records at or below them are dropped.
	Marks []*eventsv1.Mark
}

// TailConfig says what a Tail follows.
type TailConfig struct {
	Brokers []string
	Topic   string
	// Start holds the partitions whose position is known.
	Start map[int32]TailStart
	// Rewind is how long before its newest record a partition begins that Start does not name, by
	// the records' timestamps; 0 begins at its first record.
	Rewind time.Duration
	// Raw hands on values undecoded, also those that were seen before: what is wanted of few of them is not decoded for all.
	Raw bool
	// Dialer reaches brokers that want TLS or a login; nil for loopback ones.
	Dialer *kafka.Dialer
	Log    *slog.Logger
}

// TailRecord is one record as a tail hands it on. Its slices are the handler's to keep.
type TailRecord struct {
	Partition  int32
	Offset     int64
	Key, Value []byte
	// Marked is the decoded value where the topic is a derived one, else nil.
	Marked eventsv1.Marked
}

// PastEndError means that a start lies after the end of its partition: what recorded that position
// has seen another log.
type PastEndError struct {
	Topic      string
	Partition  int32
	Start, End int64
}

func (e *PastEndError) Error() string {
	return fmt.Sprintf("the position %d in %s/%d lies behind its end %d: it belongs to another log", e.Start, e.Topic, e.Partition, e.End)
}

// Tail follows every partition of a topic without a consumer group, so that each process that has
// one sees every record. It is read with explicit offsets: through any loss of a broker it goes on
// where it was. Records of a derived topic that lie at or below the last mark of their origin
// are dropped, so that a fold which wrote something twice is seen once.
type Tail struct {
	cfg    TailConfig
	marked bool
	caught chan struct{}
	// behind counts the partitions that have not passed the end noted at the start; -1 before that.
	behind  atomic.Int32
	dropped atomic.Uint64
	bad     atomic.Uint64
}

// NewTail makes a tail; Run starts it.
func NewTail(cfg TailConfig) *Tail {
	if cfg.Dialer == nil {
		cfg.Dialer = &kafka.Dialer{Timeout: tailDialTimeout, DualStack: true}
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	row, err := schemas.TopicNamed(cfg.Topic)
	t := &Tail{cfg: cfg, marked: err == nil && row.Derived && !cfg.Raw, caught: make(chan struct{})}
	t.behind.Store(-1)
	return t
}

// CaughtUp is closed once every partition has passed the end that it had when Run began.
func (t *Tail) CaughtUp() <-chan struct{} { return t.caught }

// Waiting reports why the tail has not caught up yet; empty when it has.
func (t *Tail) Waiting() string {
	switch n := t.behind.Load(); {
	case n < 0:
		return "looking for the end of " + t.cfg.Topic
	case n > 0:
		return fmt.Sprintf("reading %d partitions of %s to their end", n, t.cfg.Topic)
	}
	return ""
}

// Dropped counts the records passed over: those already seen by their mark, and those that could
// not be decoded.
func (t *Tail) Dropped() (repeated, undecodable uint64) { return t.dropped.Load(), t.bad.Load() }

// Run hands every record to handle, one at a time and in the order of each partition, until the
// context ends or handle returns an error. Loss of the broker is waited out.
func (t *Tail) Run(ctx context.Context, handle func(TailRecord) error) error {
	positions, err := t.locate(ctx)
	if err != nil {
		return err
	}
	behind := 0
	for _, p := range positions {
		if p.next < p.end {
			behind++
		}
	}
	t.behind.Store(int32(behind))
	if behind == 0 {
		close(t.caught)
	}
	var one sync.Mutex
	g, ctx := errgroup.WithContext(ctx)
	for _, p := range positions {
		g.Go(func() error {
			return t.follow(ctx, p, func(rec TailRecord) error {
				one.Lock()
				defer one.Unlock()
				return handle(rec)
			})
		})
	}
	return g.Wait()
}

// RunSettled is Run, and reports with each record whether the tail had caught up before it.
func (t *Tail) RunSettled(ctx context.Context, handle func(rec TailRecord, settled bool) error) error {
	return t.Run(ctx, func(rec TailRecord) error {
		select {
		case <-t.caught:
			return handle(rec, true)
		default:
			return handle(rec, false)
		}
	})
}

// position is the tail's position in one partition.
type position struct {
	partition int32
	next, end int64
	marks     map[int32]*eventsv1.Mark
}

// locate finds the partitions, notes their ends and settles where each begins.
func (t *Tail) locate(ctx context.Context) ([]*position, error) {
	var positions []*position
	err := t.retry(ctx, func() error {
		partitions, err := t.partitions(ctx)
		if err != nil {
			return err
		}
		positions = make([]*position, len(partitions))
		// Side by side: each takes several round trips, and those are slow where a node that starts is busy.
		g, ctx := errgroup.WithContext(ctx)
		for i, p := range partitions {
			g.Go(func() (err error) {
				if positions[i], err = t.locatePartition(ctx, p); err != nil {
					return fmt.Errorf("locating %s/%d: %w", t.cfg.Topic, p.ID, err)
				}
				return nil
			})
		}
		return g.Wait()
	})
	return positions, err
}

func (t *Tail) partitions(ctx context.Context) ([]kafka.Partition, error) {
	var failed error
	for _, broker := range t.cfg.Brokers {
		partitions, err := t.cfg.Dialer.LookupPartitions(ctx, "tcp", broker, t.cfg.Topic)
		if err == nil && len(partitions) > 0 {
			return partitions, nil
		}
		failed = errors.Join(failed, err)
	}
	return nil, fmt.Errorf("looking up the partitions of %s: %w", t.cfg.Topic, failed)
}

func (t *Tail) locatePartition(ctx context.Context, partition kafka.Partition) (*position, error) {
	conn, err := t.cfg.Dialer.DialPartition(ctx, "tcp", "", partition)
	if err != nil {
		return nil, fmt.Errorf("reaching its leader: %w", err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(2 * tailDialTimeout)); err != nil {
		return nil, fmt.Errorf("setting a deadline: %w", err)
	}
	first, end, err := conn.ReadOffsets()
	if err != nil {
		return nil, fmt.Errorf("reading its bounds: %w", err)
	}
	p := &position{partition: int32(partition.ID), next: first, end: end, marks: map[int32]*eventsv1.Mark{}}
	if start, ok := t.cfg.Start[p.partition]; ok {
		if start.Offset > end {
			return nil, backoff.Permanent(&PastEndError{t.cfg.Topic, p.partition, start.Offset, end})
		}
		p.next = max(first, start.Offset)
		for _, m := range start.Marks {
			p.marks[m.Partition] = m
		}
		return p, nil
	}
	if t.cfg.Rewind == 0 || first == end {
		return p, nil
	}
	if _, err := conn.Seek(end-1, kafka.SeekAbsolute); err != nil {
		return nil, fmt.Errorf("seeking its newest record: %w", err)
	}
	newest, err := conn.ReadMessage(16 << 20)
	if err != nil {
		return nil, fmt.Errorf("reading its newest record: %w", err)
	}
	at, err := conn.ReadOffset(newest.Time.Add(-t.cfg.Rewind))
	if err != nil {
		return nil, fmt.Errorf("finding the offset %s before its newest record: %w", t.cfg.Rewind, err)
	}
	// A broker answers -1 where no record is that young.
	if at >= first {
		p.next = min(at, end)
	}
	return p, nil
}

// follow reads one partition for ever. A reader that reports an error is closed and another one
// begins at the first record that was not handled.
func (t *Tail) follow(ctx context.Context, p *position, handle func(TailRecord) error) error {
	return t.retry(ctx, func() error {
		open, hangUp := context.WithCancel(ctx)
		reader := kafka.NewReader(kafka.ReaderConfig{
			Brokers: t.cfg.Brokers, Topic: t.cfg.Topic, Partition: int(p.partition), Dialer: dialerUntil(open, t.cfg.Dialer),
			MinBytes: 1, MaxBytes: fetchMaxPartitionBytes, MaxWait: tailMaxWait, QueueCapacity: tailQueue,
			ReadBackoffMin: 20 * time.Millisecond, ReadBackoffMax: time.Second,
		})
		defer func() {
			hangUp()
			_ = reader.Close()
		}()
		if err := reader.SetOffset(p.next); err != nil {
			return fmt.Errorf("seeking %d in %s/%d: %w", p.next, t.cfg.Topic, p.partition, err)
		}
		for {
			m, err := reader.ReadMessage(ctx)
			if err != nil {
				return fmt.Errorf("reading %s/%d at %d: %w", t.cfg.Topic, p.partition, p.next, err)
			}
			if m.Offset < p.next {
				continue
			}
			if rec, fresh := t.admit(p, m); fresh {
				if err := handle(rec); err != nil {
					return backoff.Permanent(fmt.Errorf("handling %s/%d at %d: %w", t.cfg.Topic, p.partition, m.Offset, err))
				}
			}
			before := p.next
			p.next = m.Offset + 1
			if before < p.end && p.next >= p.end && t.behind.Add(-1) == 0 {
				close(t.caught)
			}
		}
	})
}

// admit decodes a record and reports whether it was not seen yet.
func (t *Tail) admit(p *position, m kafka.Message) (TailRecord, bool) {
	rec := TailRecord{Partition: p.partition, Offset: m.Offset, Key: m.Key, Value: m.Value}
	if !t.marked {
		return rec, true
	}
	marked, err := schemas.DecodeRecord(t.cfg.Topic, m.Value)
	if err != nil {
		t.bad.Add(1) // the sink of the topic reports it
		return rec, false
	}
	if mark := marked.GetMark(); mark != nil {
		if !mark.After(p.marks[mark.Partition]) {
			t.dropped.Add(1)
			return rec, false
		}
		p.marks[mark.Partition] = mark
	}
	rec.Marked = marked
	return rec, true
}

// retry calls try until it succeeds, fails for good or the context ends, which is not an error.
func (t *Tail) retry(ctx context.Context, try func() error) error {
	const longest = 5 * time.Second
	pauses := retry.New(100*time.Millisecond, longest)
	for {
		began := time.Now()
		err := try()
		if time.Since(began) > longest {
			pauses.Reset()
		}
		var permanent *backoff.PermanentError
		switch {
		case err == nil || ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &permanent):
			return err
		}
		pause := pauses.Next()
		t.cfg.Log.Warn("tail lost its connection to the log, resuming at its last offset", "topic", t.cfg.Topic, "retry_in", pause, "error", err)
		if err := retry.Wait(ctx, pause); err != nil {
			return err
		}
	}
}
