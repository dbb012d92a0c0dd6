package processors

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/faults"
	"github.com/marketlog/marketlog/stream/history"
)

// ledgerInterval is the least time between two writes of the ledger. An insert of a few rows costs the store as much as one of
// thousands: with one after each batch of each sink, most inserts of a small instance were those of the ledger.
const ledgerInterval = time.Second

// ledgerTimeout bounds one write; what it did not write is in the next.
const ledgerTimeout = time.Minute

// Ledger writes how far the sinks of a process have come into the ledger of history: of all of them in one insert, at most once
// a ledgerInterval. What a sink has inserted and the ledger lacks is inserted again after a kill, which changes nothing.
// Safe for concurrent use.
type Ledger struct {
	history *history.Store
	logger  *slog.Logger
	// turn is held by whoever writes.
	turn chan struct{}

	mu     sync.Mutex
	sinks  map[*sinkProgress]struct{}
	timer  *time.Timer // nil while no write is due
	last   time.Time   // when a write ended last
	warned time.Time
	err    error // the store refused a write for good
}

// NewLedger returns the ledger of sinks that insert into a store.
func NewLedger(store *history.Store, logger *slog.Logger) *Ledger {
	return &Ledger{history: store, logger: logger, turn: make(chan struct{}, 1), sinks: map[*sinkProgress]struct{}{}}
}

// sinkProgress is how far one sink has come. Its methods are safe for concurrent use.
type sinkProgress struct {
	ledger     *Ledger
	sink       string
	generation uint32
	// inserted is what the ledger lacks, by partition; recorded is the end of what it holds. The ledger's mutex guards both.
	inserted map[int32]history.Progress
	recorded map[int32]int64
}

// join begins the progress of a sink, which ends with leave. What was refused is tried again: the sink that ended with it may be back.
func (l *Ledger) join(sink string, generation uint32) *sinkProgress {
	p := &sinkProgress{
		ledger: l, sink: sink, generation: generation, inserted: map[int32]history.Progress{}, recorded: map[int32]int64{},
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sinks[p] = struct{}{}
	l.err = nil
	l.schedule()
	return p
}

func (p *sinkProgress) leave() {
	l := p.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.sinks, p)
	if len(l.sinks) == 0 && l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
}

// begin reports what the ledger holds of a partition that the sink has got.
func (p *sinkProgress) begin(partition int32, next int64) {
	p.ledger.mu.Lock()
	defer p.ledger.mu.Unlock()
	delete(p.inserted, partition)
	p.recorded[partition] = next
}

// insertedTo has the ledger written soon. The marks of the progress are not changed any more.
func (p *sinkProgress) insertedTo(progress []history.Progress) {
	l := p.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, at := range progress {
		p.inserted[at.Partition] = at
	}
	l.schedule()
}

// recordedTo is before which offset the ledger holds a partition.
func (p *sinkProgress) recordedTo(partition int32) int64 {
	p.ledger.mu.Lock()
	defer p.ledger.mu.Unlock()
	return p.recorded[partition]
}

// refused returns why the store takes no more of the ledger; nil while it does.
func (p *sinkProgress) refused() error {
	p.ledger.mu.Lock()
	defer p.ledger.mu.Unlock()
	return p.ledger.err
}

// flush writes at once what the ledger lacks, and tries again while the store is away.
func (p *sinkProgress) flush(ctx context.Context) error {
	return retryUntilAvailable(ctx, p.ledger.logger, "ledger", func() error { return p.ledger.write(ctx) })
}

// schedule has a write made once the interval since the last is over. The mutex is held.
func (l *Ledger) schedule() {
	lacks := false
	for s := range l.sinks {
		lacks = lacks || len(s.inserted) > 0
	}
	if !lacks || l.timer != nil || l.err != nil {
		return
	}
	l.timer = time.AfterFunc(ledgerInterval-time.Since(l.last), func() {
		ctx, cancel := context.WithTimeout(context.Background(), ledgerTimeout)
		defer cancel()
		err := l.write(ctx)
		l.mu.Lock()
		defer l.mu.Unlock()
		if err != nil && l.err == nil && time.Since(l.warned) >= warnInterval {
			l.warned = time.Now()
			l.logger.Warn("waiting for a store", "topic", "ledger", "error", err)
		}
		l.timer = nil
		l.schedule()
	})
}

// write inserts what the ledger lacks of all sinks. What it could not insert is lacking still.
func (l *Ledger) write(ctx context.Context) error {
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	taken := map[*sinkProgress]map[int32]history.Progress{}
	var lines []history.SinkProgress
	l.mu.Lock()
	for s := range l.sinks {
		if len(s.inserted) == 0 {
			continue
		}
		for _, at := range s.inserted {
			lines = append(lines, history.SinkProgress{Sink: s.sink, Generation: s.generation, Progress: at})
		}
		taken[s], s.inserted = s.inserted, map[int32]history.Progress{}
	}
	l.mu.Unlock()
	if len(lines) == 0 {
		return l.refusal()
	}
	err := l.history.Record(ctx, lines)
	if err == nil {
		faults.Hit("sink.recorded")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = time.Now()
	for s, of := range taken {
		for partition, at := range of {
			if err == nil {
				s.recorded[partition] = max(s.recorded[partition], at.Next)
			} else if newer, ok := s.inserted[partition]; !ok || newer.Next < at.Next {
				s.inserted[partition] = at
			}
		}
	}
	if err != nil && ctx.Err() == nil && !errors.Is(err, stream.ErrUnavailable) {
		l.err = err
	}
	return err
}

func (l *Ledger) refusal() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}
