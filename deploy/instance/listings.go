package instance

import (
	"sync"

	"github.com/marketlog/marketlog/producers/adapter"
)

// Listings are the newest lists of markets that venues have sent and nobody has recorded yet. The zero value is ready; safe for concurrent use.
type Listings struct {
	mu      sync.Mutex
	lists   map[string][]adapter.Instrument
	changed chan struct{}
}

// Set takes a whole list of a venue in place of one that was not recorded.
func (l *Listings) Set(venue string, list []adapter.Instrument) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lists == nil {
		l.lists = map[string][]adapter.Instrument{}
	}
	l.lists[venue] = list
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}

// Take hands over what is there, by venue, and a channel that is closed when there is more.
func (l *Listings) Take() (lists map[string][]adapter.Instrument, more <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lists, l.lists = l.lists, nil
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	return lists, l.changed
}
