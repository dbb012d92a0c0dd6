package simulator

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
)

// Faults are what a venue or a polled source does wrong. The zero value is a good one.
type Faults struct {
	// Silence keeps connections open, hears nothing on them and says nothing, heartbeats included. A source
	// answers no request; in an accelerated run it hangs up.
	Silence bool
	// Garbage is the share of frames, or of answers of a source, 0 to 1, that cannot be read.
	Garbage float64
	// Flood is how many more times every frame is sent. A source says of every request that it is one too many.
	Flood int
	// Refuse closes every new connection, and answers HTTP with 503.
	Refuse bool
	// Frozen has a source answer as it did when this began, whatever happens in its market. It does nothing to a venue.
	Frozen bool
	// Until is when the venue is good again, by its clock; zero is never by itself.
	Until time.Time
}

// Faults tells what is in force, by venue or source; good ones are left out.
func (s *Simulator) Faults() map[string]Faults {
	faults := map[string]Faults{}
	for _, x := range s.exchanges {
		x.mu.Lock()
		x.heal(x.clock.Now())
		if x.faults != (Faults{}) {
			faults[x.venue.Slug] = x.faults
		}
		x.mu.Unlock()
	}
	for _, r := range s.references {
		r.mu.Lock()
		r.heal(r.clock.Now())
		if r.faults != (Faults{}) {
			faults[r.source.Slug] = r.faults
		}
		r.mu.Unlock()
	}
	return faults
}

// heal ends faults whose time is over; x.mu is held.
func (x *Exchange) heal(now time.Time) {
	if until := x.faults.Until; !until.IsZero() && !now.Before(until) {
		x.faults = Faults{}
	}
}

// SetFaults makes a venue or a source misbehave from now on, in place of what it did wrong before.
func (s *Simulator) SetFaults(slug string, f Faults) error {
	if r := s.reference(slug); r != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.faults, r.frozen = f, r.clock.Now()
		return nil
	}
	x, err := s.exchange(slug)
	if err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.faults = f
	return nil
}

// Disconnect closes every connection of a venue; clients may come back at once. Those of a source last no
// longer than an answer.
func (s *Simulator) Disconnect(slug string) error {
	if s.reference(slug) != nil {
		return nil
	}
	x, err := s.exchange(slug)
	if err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for c := range x.conns {
		c.Close(websocket.StatusGoingAway, "disconnected on demand")
	}
	return nil
}

func (s *Simulator) exchange(slug string) (*Exchange, error) {
	for _, x := range s.exchanges {
		if x.venue.Slug == slug {
			return x, nil
		}
	}
	return nil, fmt.Errorf("no venue %q is simulated", slug)
}

// Stats count what a venue did since the simulator began.
type Stats struct {
	// Connects were accepted, Connected are open now.
	Connects, Connected int64
	// Frames were sent, Requests answered, Throttled of them with a refusal.
	Frames, Requests, Throttled int64
}

type counter struct {
	connects, frames, requests, throttled atomic.Int64
}

// Stats of a venue or a source; zero for one that is not simulated.
func (s *Simulator) Stats(slug string) Stats {
	if r := s.reference(slug); r != nil {
		return Stats{Requests: r.counter.requests.Load(), Throttled: r.counter.throttled.Load()}
	}
	x, err := s.exchange(slug)
	if err != nil {
		return Stats{}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return Stats{
		Connects: x.counter.connects.Load(), Connected: int64(len(x.conns)),
		Frames: x.counter.frames.Load(), Requests: x.counter.requests.Load(), Throttled: x.counter.throttled.Load(),
	}
}

// garbage spoils a frame in one of the ways that frames are spoilt.
func garbage(bits uint64, frame []byte) []byte {
	switch bits % 4 {
	case 0:
		return frame[:len(frame)/2] // cut off
	case 1:
		return []byte("<html><body>502 Bad Gateway</body></html>")
	case 2:
		spoilt := slices.Clone(frame)
		for i := 0; i < len(spoilt); i += 7 {
			spoilt[i] ^= byte(bits >> (8 * (i % 8)))
		}
		return spoilt
	}
	return []byte(`{"unheard":"of"}`)
}
