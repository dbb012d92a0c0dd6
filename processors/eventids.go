package processors

import "github.com/marketlog/marketlog/schemas"

// EventIDs holds the event ids of the last span of log time. Each is held for that long after it was
// last seen: counted from the first time, what a fold remembers of an id that comes again and again
// would depend on all that came before, and a fold that was rewound would remember something else.
// It is not safe for concurrent use.
type EventIDs struct {
	ids map[schemas.EventID]int64 // when each was last seen
	// order lists every sight of an id by log time.
	order []sight
}

type sight struct {
	id schemas.EventID
	at int64
}

// NewEventIDs knows none.
func NewEventIDs() *EventIDs { return &EventIDs{ids: map[schemas.EventID]int64{}} }

// Add remembers an id as seen at a log time (Unix nanoseconds), which must not go back, and reports whether it was known.
func (m *EventIDs) Add(id schemas.EventID, at int64) (known bool) {
	last, known := m.ids[id]
	if known && last == at {
		return true
	}
	m.ids[id] = at
	m.order = append(m.order, sight{id, at})
	return known
}

// Begin dates what was seen before the first clock.
func (m *EventIDs) Begin(now int64) {
	for i, s := range m.order {
		if s.at == 0 {
			m.order[i].at, m.ids[s.id] = now, now
		}
	}
}

// Forget drops what was last seen before a log time (Unix nanoseconds).
func (m *EventIDs) Forget(before int64) {
	n := 0
	for n < len(m.order) && m.order[n].at < before {
		if s := m.order[n]; m.ids[s.id] == s.at {
			delete(m.ids, s.id)
		}
		n++
	}
	if n > len(m.order)/2 {
		// Copied only when half is gone, so that each id is moved about once.
		m.order = append(m.order[:0:0], m.order[n:]...)
	} else {
		m.order = m.order[n:]
	}
}
