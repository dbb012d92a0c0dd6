package views

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
)

// DefiStore holds the newest summary of DeFi. Safe for concurrent use.
type DefiStore struct {
	newest atomic.Pointer[eventsv1.DefiSummary]
	served servedMinutes
}

// NewDefiStore makes an empty store.
func NewDefiStore() *DefiStore {
	return &DefiStore{served: servedMinutes{fold: foldOfDefi}}
}

// RememberBy makes the store remember from when on it gave each summary, by a clock, and record it. It must be called before the store is filled.
func (d *DefiStore) RememberBy(clock func() time.Time, steps *ServedSteps) {
	d.served.clock, d.served.steps = clock, steps
}

// Apply takes a record of defi.v1, one at a time. One that comes twice never takes the store back in time.
func (d *DefiStore) Apply(rec stream.TailRecord) error {
	r, ok := rec.Marked.(*eventsv1.DefiRecord)
	if !ok {
		return fmt.Errorf("reading %s: a record of another type", schemas.TopicDefi)
	}
	s := r.GetSummary()
	if s == nil || s.Time < d.newest.Load().GetTime() {
		return nil
	}
	newer := s.Time > d.newest.Load().GetTime()
	d.newest.Store(s)
	if newer {
		d.served.note(s.Time, func() {}) // readers get it already
	}
	return nil
}

// Newest is the newest summary, nil before the first. Nothing in it may be changed.
func (d *DefiStore) Newest() *eventsv1.DefiSummary { return d.newest.Load() }

// defiRepeated is within what time all that a summary holds is in the topic: it is written whole, with the minute that it is of.
const defiRepeated = 5 * time.Minute

// PastDefi are the summaries of DeFi that were served at past instants.
type PastDefi struct {
	minutes pastMinutes[*eventsv1.DefiSummary]
}

// NewPastDefi reads them from the log, by what a store of the newest ones remembers and history has recorded.
func NewPastDefi(current *DefiStore, log PastLog, history ServedHistory) *PastDefi {
	return &PastDefi{pastMinutes[*eventsv1.DefiSummary]{topic: schemas.TopicDefi, repeated: defiRepeated, instead: "/api/v1/global-stats/defi/history/{metricType} reaches further back", log: log, history: history, served: &current.served,
		made: func() (func(stream.TailRecord) error, func() *eventsv1.DefiSummary) {
			store := NewDefiStore()
			return store.Apply, store.Newest
		}, held: newPastViews[int64, *eventsv1.DefiSummary](pastHeld)}}
}

// At returns the summary that was served at an instant. It fails as PastYields does.
func (p *PastDefi) At(ctx context.Context, at time.Time) (*eventsv1.DefiSummary, error) {
	return p.minutes.at(ctx, at)
}
