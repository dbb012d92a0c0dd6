package processors

import (
	"maps"

	"github.com/marketlog/marketlog/schemas"
)

// EventIDs holds the event ids of the last span of log time. Each is held for that long after it was
// last seen: counted from the first time, what a fold remembers of an id that comes again and again
// would depend on all that came before, and a fold that was rewound would remember something else.
// It is not safe for concurrent use.
type EventIDs struct {
	ids map[schemas.EventID]int64 // when each was last seen
	// order lists every sight of an id by log time. Many come between two clocks.
	order []sights
	// added counts the ids that the map got since it was made: one whose keys come and go grows to several times what those that are there need.
	added int
}

// sights are the ids that were seen at a log time.
type sights struct {
	at  int64
	ids []schemas.EventID
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
	if !known {
		m.added++
	}
	if n := len(m.order); n == 0 || m.order[n-1].at != at {
		m.order = append(m.order, sights{at: at})
	}
	newest := &m.order[len(m.order)-1]
	newest.ids = append(newest.ids, id)
	return known
}

// Begin dates what was seen before the first clock.
func (m *EventIDs) Begin(now int64) {
	for i, s := range m.order {
		if s.at == 0 {
			m.order[i].at = now
			for _, id := range s.ids {
				m.ids[id] = now
			}
		}
	}
}

// Forget drops what was last seen before a log time (Unix nanoseconds).
func (m *EventIDs) Forget(before int64) {
	n := 0
	for ; n < len(m.order) && m.order[n].at < before; n++ {
		for _, id := range m.order[n].ids {
			if m.ids[id] == m.order[n].at {
				delete(m.ids, id)
			}
		}
		m.order[n].ids = nil
	}
	m.order = m.order[n:]
	if m.added > 4*len(m.ids)+1000 {
		ids := make(map[schemas.EventID]int64, len(m.ids)+len(m.ids)/8)
		maps.Copy(ids, m.ids)
		m.ids, m.added = ids, len(ids)
	}
}
