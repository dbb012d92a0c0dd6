package views

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
)

// servedSources remembers from which instant of the query's clock on answers of currencies, and of coins, were made of which records of the sources.
type servedSources struct {
	clock func() time.Time // nil: nothing is remembered
	steps *ServedSteps     // nil: nothing is recorded
	// first and last are the offsets of what was read, last of what counts for currencies, stablecoins, and fear and greed, coins one more than that of what counts for
	// coins; known means that anything was read. Who takes records holds the catalog's mutex.
	first, last, coins int64
	known              bool
	// fixing are the sources of rates.
	fixing map[string]bool
	mu     sync.Mutex
	list   servedList[*eventsv1.ServedSources]
}

// take notes a record that was read.
func (s *servedSources) take(offset int64, rec *eventsv1.ReferenceRecord) {
	if !s.known {
		s.known, s.first, s.last, s.coins, s.fixing = true, offset, offset, offset+1, map[string]bool{}
	}
	if fixing := rec.GetFixing(); fixing != nil {
		s.fixing[fixing.Source] = true
	}
	// Requests to sources of all else change nothing, and are most of them.
	if rec.GetFixing() != nil || rec.GetNotice() != nil || rec.GetStablecoin() != nil || rec.GetFearGreed() != nil || s.fixing[rec.GetFetch().GetSource()] {
		s.last = offset
	}
	if countsForCoins(rec) {
		s.coins = offset + 1
	}
}

// note remembers that answers are made of what was read so far, and records it.
func (s *servedSources) note(clock int64) {
	if s.clock == nil || !s.known {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.list); n > 0 && s.list[n-1].value.Last == s.last && s.list[n-1].value.Coins == s.coins && s.list[n-1].value.Clock == clock {
		return
	}
	now := s.clock().UnixNano()
	read := &eventsv1.ServedSources{First: s.first, Last: s.last, Coins: s.coins, Clock: clock}
	if s.steps != nil {
		s.steps.readSources(now, read)
	}
	s.list.add(now, read, servedFor)
}

// at is what answers were made of at an instant; false where that is not remembered.
func (s *servedSources) at(at time.Time) (read *eventsv1.ServedSources, remembered bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.list.at(at)
}

// SourcesHistory is where it is kept of which records answers of currencies were made.
type SourcesHistory interface {
	// SourcesServed returns of which they were made at an instant; nil where nothing is recorded of it or before.
	SourcesServed(ctx context.Context, at time.Time) (*eventsv1.ServedSources, error)
	// SourcesServedSince returns from which instant on that is recorded; zero where nothing is.
	SourcesServedSince(ctx context.Context) (time.Time, error)
	// ServedWritten is up to when all is kept that was recorded of what was served.
	ServedWritten(ctx context.Context) (time.Time, error)
}

// SourcesLog is the log as what was known of currencies is made again of it.
type SourcesLog interface {
	// Range hands the records of a partition of a topic from one offset to another, both included, to visit.
	Range(ctx context.Context, topic string, partition int32, first, last int64, visit func(*kgo.Record) error) error
}

// PastCurrencies are what was known of currencies, and of the coins that aim at them, at past instants: the records of the sources that had been read then, by the code that read
// them. Safe for concurrent use.
type PastCurrencies struct {
	current *servedSources
	coins   *schemas.CoinTable
	log     SourcesLog
	history SourcesHistory
	held    *pastViews[[2]int64, *Snapshot]
}

// NewPastCurrencies reads them from the log, by what a catalog of what is current remembers and history has recorded.
func NewPastCurrencies(current *Catalog, log SourcesLog, history SourcesHistory) *PastCurrencies {
	return &PastCurrencies{current: &current.sources, coins: current.table, log: log, history: history, held: newPastViews[[2]int64, *Snapshot](pastHeld)}
}

// At returns a snapshot of an instant that has what sources stated of currencies, of stablecoins and of fear and greed, and nothing else. It fails with an *AgedOutError where it is
// not recorded what was served or not in the log any more, and with ErrHistoryBehind where that is not kept yet, after it has waited for it
// for six seconds.
func (p *PastCurrencies) At(ctx context.Context, at time.Time) (*Snapshot, error) {
	read, err := onceKept(ctx, func() (*eventsv1.ServedSources, error) { return p.served(ctx, at) })
	if err != nil {
		return nil, fmt.Errorf("reading currencies as of %s: %w", at.UTC().Format(time.RFC3339Nano), err)
	}
	snapshot, err := p.held.get(ctx, [2]int64{read.First, read.Last}, func(ctx context.Context) (*Snapshot, error) { return p.make(ctx, read) })
	if err != nil {
		return nil, fmt.Errorf("reading currencies as of %s: %w", at.UTC().Format(time.RFC3339Nano), err)
	}
	timed := *snapshot
	timed.SourcesTime = read.Clock
	return &timed, nil
}

// served is of which records answers were made at an instant.
func (p *PastCurrencies) served(ctx context.Context, at time.Time) (*eventsv1.ServedSources, error) {
	return whatServed(ctx, p.current.steps, p.history, at, serving[*eventsv1.ServedSources]{
		remembered: p.current.at,
		recorded: func(ctx context.Context) (*eventsv1.ServedSources, bool, error) {
			read, err := p.history.SourcesServed(ctx, at)
			return read, read != nil, err
		},
		since: p.history.SourcesServedSince,
		aged:  AgedOutError{Kept: "which rates of currencies were served is recorded", Instead: "v_fixings and v_fiat reach further back: /api/v1/sql"},
	})
}

// countsForCurrencies reports whether something that a source reports may be in what is known of currencies.
func countsForCurrencies(rec *eventsv1.ReferenceRecord) bool {
	return rec.GetFixing() != nil || rec.GetNotice() != nil || rec.GetFetch() != nil || rec.GetStablecoin() != nil || rec.GetFearGreed() != nil
}

// make reads what sources stated of currencies.
func (p *PastCurrencies) make(ctx context.Context, read *eventsv1.ServedSources) (*Snapshot, error) {
	catalog := NewCatalog(p.coins)
	err := p.log.Range(ctx, schemas.TopicReferenceRaw, 0, read.First, read.Last, func(r *kgo.Record) error {
		record, err := schemas.DecodeRecord(schemas.TopicReferenceRaw, r.Value)
		if reported, is := record.(*eventsv1.ReferenceRecord); err != nil || !is || !countsForCurrencies(reported) {
			return nil
		}
		return catalog.ApplyReference(stream.TailRecord{Partition: r.Partition, Offset: r.Offset, Key: r.Key, Value: r.Value})
	})
	if err != nil {
		return nil, err
	}
	catalog.due.Store(true)
	catalog.Settle()
	return catalog.Snapshot(), nil
}
