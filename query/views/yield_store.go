package views

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
)

// RatesKept is how far before its end rates.v1 is read at a start: every current rate was repeated within it. What has
// not been for as long is forgotten, so that a process which has long run knows the same as one that has just begun.
const RatesKept = 65 * time.Minute

// rateIntervals are how many intervals of its source a rate counts after it was last reported.
const rateIntervals = 3

// YieldStore holds in memory what everything earns and costs, as the tail of rates.v1 delivers it. What was folded of a minute
// becomes visible with the pulse that ends it. Safe for concurrent use.
type YieldStore struct {
	// due means that a new snapshot can be made; the first who reads makes it.
	due     atomic.Bool
	counted atomic.Pointer[CurrentRates]
	// snapshot's mutex guards what follows.
	snapshot Lazy[RateSnapshot]
	entries  map[rateID]*eventsv1.RateEntry
	projects map[string]*eventsv1.RateProject
	staged   []*eventsv1.RateRecord
	minute   int64
	mark     *eventsv1.Mark
	served   servedMinutes
	ended    endedMinutes
}

// rateID names a rate.
type rateID struct{ source, category, pool string }

// RateSnapshot is the book at the end of a minute. Nothing in it may be changed.
type RateSnapshot struct {
	// Time is the end of the last minute that was folded, Unix nanoseconds; 0 before the first.
	Time int64
	// Mark is of the pulse that ended it, nil before the first.
	Mark *eventsv1.Mark
	// Entries are all that have not ended, also those that do not count, by source, category and pool.
	Entries []*eventsv1.RateEntry
	// Projects are what sources state that projects are, by slug.
	Projects map[string]*eventsv1.RateProject
}

// CurrentRates are the rates that count. Nothing in it may be changed.
type CurrentRates struct {
	*RateSnapshot
	// Counted have a coin and a category that the API serves, no other source that reports the same better, and were reported
	// within three intervals of their source; by source, category and pool.
	Counted []*eventsv1.RateEntry
	// until is when the first of them counts no more, Unix nanoseconds.
	until int64
}

// NewYieldStore makes an empty store.
func NewYieldStore() *YieldStore {
	b := &YieldStore{entries: map[rateID]*eventsv1.RateEntry{}, projects: map[string]*eventsv1.RateProject{}, served: servedMinutes{fold: foldOfRates}}
	b.Settle()
	return b
}

// RememberBy makes the store remember from when on it gave each minute, by a clock, and record it. It must be called before the store is
// filled.
func (b *YieldStore) RememberBy(clock func() time.Time, steps *ServedSteps) {
	b.served.clock, b.served.steps = clock, steps
}

// Apply takes one record of rates.v1 from its tail.
func (b *YieldStore) Apply(rec stream.TailRecord) error {
	record, ok := rec.Marked.(*eventsv1.RateRecord)
	if !ok {
		return nil
	}
	b.snapshot.mu.Lock()
	defer b.snapshot.mu.Unlock()
	switch body := record.Body.(type) {
	case *eventsv1.RateRecord_Entry, *eventsv1.RateRecord_Project:
		b.staged = append(b.staged, record)
	case *eventsv1.RateRecord_Pulse:
		b.endMinute(body.Pulse.Now, record.Mark, rec.Offset)
	}
	return nil
}

// endMinute makes what was published of a minute visible. A record that comes twice takes nothing back in time.
func (b *YieldStore) endMinute(at int64, mark *eventsv1.Mark, offset int64) {
	for _, record := range b.staged {
		if project := record.GetProject(); project != nil {
			b.projects[project.Slug] = project
			continue
		}
		entry := record.GetEntry()
		id := rateID{entry.Source, entry.Category, entry.Pool}
		known := b.entries[id]
		switch {
		case known != nil && known.Time > entry.Time:
		case entry.Ended:
			delete(b.entries, id)
		default:
			b.entries[id] = entry
		}
	}
	clear(b.staged)
	b.staged = b.staged[:0]
	newer := at > b.minute
	if newer {
		b.minute, b.mark = at, mark
		b.ended.add(at, offset)
	}
	b.due.Store(true)
	if newer {
		b.served.note(at, func() { b.snapshot.update(b.current, b.build) })
	}
}

// endedMinutes are the last minutes that ended, the newest last, with the offset of the record that ended each.
type endedMinutes struct {
	mu   sync.Mutex
	list []endedMinute
}

type endedMinute struct{ end, offset int64 }

func (m *endedMinutes) add(end, offset int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.list) == 2*int(RatesKept/time.Minute) { // by halves, so that each is moved once
		m.list = append(m.list[:0], m.list[len(m.list)/2:]...)
	}
	m.list = append(m.list, endedMinute{end, offset})
}

// before is the end of the last minute, Unix nanoseconds, all records of which lie before an offset; 0 where none is known.
func (m *endedMinutes) before(offset int64) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, minute := range slices.Backward(m.list) {
		if minute.offset < offset {
			return minute.end
		}
	}
	return 0
}

// Snapshot is the newest one; it is never nil. Where one is due, the caller makes it; while another does, the one
// before is the newest.
func (b *YieldStore) Snapshot() *RateSnapshot { return b.snapshot.Get(b.current, b.build) }

// Settle makes what was applied so far visible before it returns: until then a reader may get the snapshot before.
func (b *YieldStore) Settle() { b.snapshot.Settle(b.current, b.build) }

func (b *YieldStore) current(*RateSnapshot) bool { return !b.due.Load() }

// build makes the snapshot of what has changed. Callers hold the mutex.
func (b *YieldStore) build() *RateSnapshot {
	b.due.Store(false)
	next := &RateSnapshot{Time: b.minute, Mark: b.mark}
	forgotten := b.minute - int64(RatesKept)
	maps.DeleteFunc(b.entries, func(_ rateID, e *eventsv1.RateEntry) bool { return e.Time < forgotten })
	maps.DeleteFunc(b.projects, func(_ string, p *eventsv1.RateProject) bool { return p.Time < forgotten })
	next.Entries, next.Projects = slices.AppendSeq(make([]*eventsv1.RateEntry, 0, len(b.entries)), maps.Values(b.entries)), maps.Clone(b.projects)
	slices.SortFunc(next.Entries, func(x, y *eventsv1.RateEntry) int {
		return cmp.Or(strings.Compare(x.Source, y.Source), strings.Compare(x.Category, y.Category), strings.Compare(x.Pool, y.Pool))
	})
	return next
}

// Current returns the rates that count at a time of the query's clock. It is the same one as long as the same count.
func (b *YieldStore) Current(now time.Time) *CurrentRates {
	snapshot, at := b.Snapshot(), now.UnixNano()
	known := b.counted.Load()
	if known != nil && known.RateSnapshot == snapshot && at < known.until {
		return known
	}
	next := snapshot.counting(at)
	b.counted.Store(next)
	return next
}

// counting are the rates that count at a time, Unix nanoseconds.
func (s *RateSnapshot) counting(at int64) *CurrentRates {
	next := &CurrentRates{RateSnapshot: s, until: at + int64(RatesKept)}
	for _, e := range s.Entries {
		if !RateCounts(e, at) {
			continue
		}
		next.Counted = append(next.Counted, e)
		next.until = min(next.until, goodUntil(e)+1)
	}
	return next
}

// RateCounts reports whether a rate is served at a time of the query's clock, Unix nanoseconds.
func RateCounts(e *eventsv1.RateEntry, at int64) bool {
	return !e.Ended && e.Unattached == "" && e.Shadowed == "" && slices.Contains(schemas.RateCategories, e.Category) && at <= goodUntil(e)
}

// goodUntil is the last moment at which a rate counts that is not reported again.
func goodUntil(e *eventsv1.RateEntry) int64 { return e.Heard + rateIntervals*e.Said.GetInterval() }

// RateSum sums up rates.
type RateSum struct{ Min, Max, Mean, Median float64 }

// SumRates sums up at least one rate; it sorts them.
func SumRates(rates []float64) RateSum {
	slices.Sort(rates)
	total := 0.0
	for _, r := range rates {
		total += r
	}
	n := len(rates)
	return RateSum{rates[0], rates[n-1], Mean(total, n, rates[0], rates[n-1]), (rates[(n-1)/2] + rates[n/2]) / 2}
}
