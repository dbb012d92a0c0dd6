package resolve

import "github.com/marketlog/marketlog/schemas"

// memory holds the event ids of the last span of log time.
type memory struct {
	ids map[schemas.EventID]struct{}
	// order lists the ids by the log time at which they were first seen.
	order []remembered
}

type remembered struct {
	id schemas.EventID
	at int64
}

func newMemory() *memory { return &memory{ids: map[schemas.EventID]struct{}{}} }

// add remembers an id and says whether it was known.
func (m *memory) add(id schemas.EventID, at int64) (known bool) {
	if _, known = m.ids[id]; known {
		return true
	}
	m.ids[id] = struct{}{}
	m.order = append(m.order, remembered{id, at})
	return false
}

// forget drops what was first seen before a log time (Unix nanoseconds).
func (m *memory) forget(before int64) {
	n := 0
	for n < len(m.order) && m.order[n].at < before {
		delete(m.ids, m.order[n].id)
		n++
	}
	if n > len(m.order)/2 {
		// Copied only when half is gone, so that each id is moved about once.
		m.order = append(m.order[:0:0], m.order[n:]...)
	} else {
		m.order = m.order[n:]
	}
}
