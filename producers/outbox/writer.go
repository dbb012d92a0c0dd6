package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/stream"
)

// WriterConfig reports where the log is and how much may wait for it.
type WriterConfig struct {
	// Log is the broker.
	Log stream.Config
	// SpoolDir is this process's own: a second writer on it is refused.
	SpoolDir string
	// Clock is what clock records are taken from; nil is the machine's. A VirtualClock waits for them.
	Clock producers.Clock
	// Logger gets what an operator must know; nil is slog's default.
	Logger *slog.Logger

	// MemoryBytes bounds what waits in memory, a quarter of it before and the rest after it was
	// handed to the client. Each record counts 512 bytes more than its own.
	MemoryBytes int
	// SpoolBytes bounds the spool. Beyond it the oldest segment gives way to the gap it leaves.
	SpoolBytes int64
	// SegmentBytes is the size of the spool's files, the least that is dropped at once.
	SegmentBytes int64
	// SpoolAfter is how long the broker may leave everything unanswered before it is written to disk:
	// what a kill can lose of an outage. Elections of a leader take about as long.
	SpoolAfter time.Duration
	// DrainTimeout is how long Run waits for the broker once it has to end; what is not
	// acknowledged by then stays in the spool.
	DrainTimeout time.Duration
}

// DefaultWriterConfig returns the settings that suit a few thousand ticks a second; Log and SpoolDir are for the
// caller to set.
func DefaultWriterConfig() WriterConfig {
	return WriterConfig{
		MemoryBytes:  64 << 20,
		SpoolBytes:   1 << 30, // hours of ticks
		SegmentBytes: 16 << 20,
		SpoolAfter:   time.Second,
		DrainTimeout: 5 * time.Second,
	}
}

// Validate names every fault at once.
func (c WriterConfig) Validate() error {
	var faults []error
	fault := func(format string, a ...any) { faults = append(faults, fmt.Errorf(format, a...)) }
	if len(c.Log.Brokers) == 0 {
		fault("Log.Brokers is empty")
	}
	if c.SpoolDir == "" {
		fault("SpoolDir is empty")
	}
	if c.MemoryBytes < 16*recordOverhead {
		fault("MemoryBytes is %d, want at least %d", c.MemoryBytes, 16*recordOverhead)
	}
	if c.SegmentBytes <= 0 {
		fault("SegmentBytes is %d, want more than 0", c.SegmentBytes)
	}
	// What is in flight cannot be dropped, and dropping needs a few whole segments in addition.
	if least := int64(c.MemoryBytes) + 4*c.SegmentBytes; c.SpoolBytes <= 0 || c.SpoolBytes < least {
		fault("SpoolBytes is %d, want at least MemoryBytes + 4 SegmentBytes = %d", c.SpoolBytes, least)
	}
	if c.SpoolAfter <= 0 {
		fault("SpoolAfter is %s, want more than 0", c.SpoolAfter)
	}
	if c.DrainTimeout <= 0 {
		fault("DrainTimeout is %s, want more than 0", c.DrainTimeout)
	}
	return errors.Join(faults...)
}

// Writer is the way of all sources of a process into ticks.raw.v1 and its dead letters.
//
// What an outbox accepted is written to the log in the order in which it was accepted, each source's
// clock records among it, and at least once: it is acknowledged by all in-sync replicas, or it is in
// the spool when Run returns, or a gap reports how much was given up. A kill loses what was in memory
// only: what a broker that answers has not acknowledged yet, and the first SpoolAfter of an outage.
//
// A clock record at time t comes, in its partition, after every tick of its source with an ingest
// time of t or before.
//
// A record that the broker refuses is sent again, with everything after it, until it is taken: what
// followed it may then be in the log twice, and readers drop the second by its event id.
type Writer struct {
	cfg   WriterConfig
	clock producers.Clock
	queue *queue
	wake  chan struct{}
	stats counters

	mu      sync.Mutex
	sources map[string]*source
	order   []*source
}

// writerName is what a clock that waits for the writer knows it by.
const writerName = "ticks"

// NewWriter returns a writer that writes once Run runs. Until then outboxes accept what fits into memory.
func NewWriter(cfg WriterConfig) (*Writer, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configuring the writer: %w", err)
	}
	if cfg.Clock == nil {
		cfg.Clock = producers.WallClock{}
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	// One signal is enough: whoever takes it looks at everything.
	w := &Writer{cfg: cfg, clock: cfg.Clock, wake: make(chan struct{}, 1), sources: map[string]*source{}}
	w.queue = newQueue(cfg.MemoryBytes/4, w.wake)
	return w, nil
}

// Source returns the outbox of a source: one producer, whose epoch is the time of the first call and
// whose clock is written from then on. Its methods may change the ingest time of a tick and cut the
// payload of a dead letter; after Run has returned they do nothing but count.
func (w *Writer) Source(slug string) producers.Outbox {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.sources[slug]
	if s == nil {
		if p, ok := w.clock.(producers.Pacer); ok {
			p.Join(writerName)
		}
		s = newSource(w, slug, w.clock.Now().UnixNano())
		w.sources[slug] = s
		w.order = append(w.order, s)
	}
	return s
}

// Run writes until ctx ends, then takes nothing more, waits DrainTimeout for the broker, leaves the
// rest in the spool and returns nil. Cancel it after the sources. It may be called once.
func (w *Writer) Run(ctx context.Context) error {
	defer w.queue.close()
	spool, err := openSpool(w.cfg.SpoolDir, w.cfg.SegmentBytes, w.cfg.SpoolBytes)
	if err != nil {
		return err
	}
	client, err := w.cfg.Log.NewClient(ProducerOptions()...)
	if err != nil {
		return errors.Join(fmt.Errorf("opening the log: %w", err), spool.close())
	}
	defer client.Close()

	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		defer w.queue.close()
		w.writeClocks(ctx)
		return nil
	})
	g.Go(func() error { return newDispatcher(w, spool, client).run() })
	return g.Wait()
}

// ProducerOptions are idempotent by default and have no limit to retries, so that order holds through an outage.
func ProducerOptions() []kgo.Opt {
	return []kgo.Opt{
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		// Against lz4, zstd saves a quarter of the log's size and costs 0.35 µs a record.
		// Batches are many and small: lz4 takes 4 MB of fresh memory for each, snappy none, and packs 6 % less.
		kgo.ProducerBatchCompression(kgo.SnappyCompression(), kgo.NoCompression()),
		kgo.ProducerLinger(10 * time.Millisecond),
		kgo.UnknownTopicRetries(-1),
		// The writer bounds what it hands over by bytes; the client must never be the one that blocks.
		kgo.MaxBufferedRecords(1 << 30),
	}
}

// writeClocks writes the clock of every source at each full second of the clock, until ctx ends. A clock
// that waits for the writer may have moved on before this begins: what is left out then is made up for.
func (w *Writer) writeClocks(ctx context.Context) {
	var written time.Time
	for {
		now := w.clock.Now()
		second := now.Truncate(time.Second)
		w.mu.Lock()
		sources := w.order
		w.mu.Unlock()
		older := func(s *source) bool { return s.epoch < second.UnixNano() }
		if second.After(written) && slices.ContainsFunc(sources, older) {
			written = second
			for i, s := range sources {
				s.putClock(now, i == len(sources)-1)
			}
		}
		if err := producers.SleepUntil(ctx, w.clock, second.Add(time.Second)); err != nil {
			return
		}
	}
}

// refuse counts what came too late.
func (w *Writer) refuse(r *record) {
	w.stats.refused.Add(1)
	r.recycle()
}
