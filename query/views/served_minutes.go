package views

import (
	"sync"
	"time"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

const (
	// minutesServedFor is how long it is remembered from when on a minute was served: 16 bytes a minute.
	minutesServedFor = 7 * 24 * time.Hour
	// minutePublishedIn is after what time a minute that ended certainly counts as published, where it is neither remembered nor
	// recorded; some seconds are usual.
	minutePublishedIn = time.Minute
)

// servedMinutes remembers from which instant of the query's clock on each minute of a fold was served.
type servedMinutes struct {
	fold  servedFold
	mu    sync.Mutex
	clock func() time.Time  // nil: nothing is remembered
	list  servedList[int64] // the ends of minutes, Unix nanoseconds
	steps *ServedSteps      // nil: nothing is recorded
}

// servedFold is a fold of log minutes, of which readers get whole minutes.
type servedFold int

const (
	foldOfMarkets servedFold = iota
	foldOfRates
	foldOfDefi
	servedFolds
)

// step is that from which instant on readers get a minute, by its end; both Unix nanoseconds.
func (f servedFold) step(from, end int64) *eventsv1.ServedStep {
	switch f {
	case foldOfRates:
		return &eventsv1.ServedStep{Time: from, Read: &eventsv1.ServedStep_Rates{Rates: end}}
	case foldOfDefi:
		return &eventsv1.ServedStep{Time: from, Read: &eventsv1.ServedStep_Defi{Defi: end}}
	}
	return &eventsv1.ServedStep{Time: from, Read: &eventsv1.ServedStep_Minute{Minute: end}}
}

// note remembers that a minute is served from now on, and records it. Where readers are answered, show makes it what they get before: while the
// first of them made it, the others would get the one before.
func (m *servedMinutes) note(end int64, show func()) {
	if m.clock == nil {
		return
	}
	if _, answers := m.steps.began(); answers {
		show()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.clock().UnixNano()
	if m.steps != nil {
		m.steps.minute(m.fold, now, end)
	}
	m.list.add(now, end, minutesServedFor)
}

// recall remembers what others served before, in the order of time.
func (m *servedMinutes) recall(before []ServedMinute) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list servedList[int64]
	for _, b := range before {
		if from := b.From.UnixNano(); len(m.list) == 0 || from < m.list[0].from {
			list = append(list, servedFrom[int64]{from, b.End.UnixNano()})
		}
	}
	m.list = append(list, m.list...)
}

// first is from when on it is remembered which minute was served; zero where none was.
func (m *servedMinutes) first() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.list) == 0 {
		return time.Time{}
	}
	return time.Unix(0, m.list[0].from).UTC()
}

// at returns the end of the minute that was served at an instant. It is false where that is not remembered: then it is of the last
// minute that had certainly been published.
func (m *servedMinutes) at(at time.Time) (end int64, remembered bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	end, remembered = m.list.at(at)
	if !remembered {
		end = schemas.Minute(at.Add(-minutePublishedIn).UnixNano())
	}
	return end, remembered
}

// RememberBy makes the catalog remember from when on it gave each summary of the whole market, and figures of candles, by a clock, and record it. It must be
// called before the catalog is filled.
func (c *Catalog) RememberBy(clock func() time.Time, steps *ServedSteps) {
	c.served.clock, c.served.steps = clock, steps
	c.figured.clock, c.figured.steps = clock, steps
	c.sources.clock, c.sources.steps = clock, steps
}

// MinutesServedSince is from when on minutes that were served are of use to Recall, at a time.
func MinutesServedSince(now time.Time) time.Time { return now.Add(-minutesServedFor) }

// Recall makes the catalog remember what it, or others, served before it was made, in the order of time.
func (c *Catalog) Recall(before []ServedMinute) { c.served.recall(before) }

// SummaryServedAt returns the end of the minute whose summary was served at an instant (Unix nanoseconds). Where this process does not
// remember, which is false, it is of the last minute that had certainly been published by then.
func (c *Catalog) SummaryServedAt(at time.Time) (end int64, remembered bool) { return c.served.at(at) }
