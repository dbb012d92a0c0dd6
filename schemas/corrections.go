package schemas

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// Kinds of corrections.
const (
	// CorrectionExclude leaves the ticks of a venue, or of one of its markets, out of all that is derived.
	CorrectionExclude = "exclude"
	// CorrectionWithdraw takes an exclusion back.
	CorrectionWithdraw = "withdraw"
)

// Corrections are operators' corrections of what was received, in whatever order they were read. Nil holds none. Safe for concurrent use.
type Corrections struct {
	// some means that there are any: each tick asks, and hardly ever are there.
	some    atomic.Bool
	mu      sync.RWMutex
	records map[string]*eventsv1.CorrectionRecord
	// exclusions are by venue, withdrawn is the first withdrawal of an exclusion, by the exclusion's id.
	exclusions map[string][]*eventsv1.CorrectionRecord
	withdrawn  map[string]*eventsv1.CorrectionRecord
}

// NewCorrections holds the records.
func NewCorrections(records ...*eventsv1.CorrectionRecord) *Corrections {
	c := &Corrections{
		records: map[string]*eventsv1.CorrectionRecord{}, exclusions: map[string][]*eventsv1.CorrectionRecord{},
		withdrawn: map[string]*eventsv1.CorrectionRecord{},
	}
	for _, rec := range records {
		c.Apply(rec)
	}
	return c
}

// Apply takes a record; one whose id is known already changes nothing, so a topic may be read again.
func (c *Corrections) Apply(rec *eventsv1.CorrectionRecord) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.records[rec.Id] != nil {
		return
	}
	c.records[rec.Id] = rec
	switch rec.Kind {
	case CorrectionExclude:
		c.exclusions[rec.Venue] = append(c.exclusions[rec.Venue], rec)
		c.some.Store(true)
	case CorrectionWithdraw:
		if first := c.withdrawn[rec.Withdraws]; first == nil || inOrder(rec, first) < 0 {
			c.withdrawn[rec.Withdraws] = rec
		}
	}
}

// inOrder compares by time, then by id.
func inOrder(a, b *eventsv1.CorrectionRecord) int {
	return cmp.Or(cmp.Compare(a.Time, b.Time), strings.Compare(a.Id, b.Id))
}

// Excluded reports whether a tick of a market, received at a time, is left out by what was in force at a log time (both Unix
// nanoseconds).
func (c *Corrections) Excluded(venue, symbol string, received, at int64) bool {
	if c == nil || !c.some.Load() {
		return false
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	return slices.ContainsFunc(c.exclusions[venue], func(x *eventsv1.CorrectionRecord) bool {
		if x.Time > at || !covers(x, symbol, received) {
			return false
		}
		w := c.withdrawn[x.Id]
		return w == nil || w.Time > at
	})
}

// Corrected reports whether a tick of a market, received at a time (Unix nanoseconds), is left out by all that is known now, and the id of
// the newest correction that is about it: a withdrawal, too. It is empty where none is.
func (c *Corrections) Corrected(venue, symbol string, received int64) (excluded bool, by string) {
	if c == nil || !c.some.Load() {
		return false, ""
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	var newest *eventsv1.CorrectionRecord
	for _, x := range c.exclusions[venue] {
		if !covers(x, symbol, received) {
			continue
		}
		w := c.withdrawn[x.Id]
		excluded = excluded || w == nil
		for _, rec := range [...]*eventsv1.CorrectionRecord{x, w} {
			if rec != nil && (newest == nil || inOrder(rec, newest) > 0) {
				newest = rec
			}
		}
	}
	return excluded, newest.GetId()
}

// covers reports whether an exclusion is about a tick of a market of its venue that was received at a time.
func covers(x *eventsv1.CorrectionRecord, symbol string, received int64) bool {
	return received >= x.From && (x.To == 0 || received < x.To) && (x.Symbol == "" || strings.EqualFold(x.Symbol, symbol))
}

// Correction is one record with what became of it.
type Correction struct {
	*eventsv1.CorrectionRecord
	// Withdrawn is the withdrawal of an exclusion, nil for none.
	Withdrawn *eventsv1.CorrectionRecord
}

// All lists the corrections by time.
func (c *Corrections) All() []Correction {
	if c == nil {
		return nil
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	list := make([]Correction, 0, len(c.records))
	for _, rec := range c.records {
		list = append(list, Correction{rec, c.withdrawn[rec.Id]})
	}
	slices.SortFunc(list, func(a, b Correction) int { return inOrder(a.CorrectionRecord, b.CorrectionRecord) })
	return list
}
