package ws

import (
	"net"
	"sync"
	"time"

	"github.com/fasthttp/websocket"

	"github.com/marketlog/marketlog/query"
)

// frame is one encoded message that waits for a subscriber: one that it shares with others, or its own.
type frame struct {
	shared *websocket.PreparedMessage
	own    []byte
	reply  bool
}

// round is what one tick tells.
type round struct {
	// frames are those of every subscriber that did not ask for anything else.
	frames  []frame
	changes []*change
	states  []*state
	stamp   stamp
}

// ending is why a socket is closed.
type ending struct {
	code   int
	reason string
}

// subscriber is one open socket. The hub offers it rounds and never waits; its own goroutine writes.
type subscriber struct {
	id     string
	caller query.Caller
	gate   Gate
	conn   *websocket.Conn
	raw    net.Conn
	coins  int
	// wake has one place: a writer that is told twice looks once.
	wake chan struct{}

	mu      sync.Mutex
	queue   []frame
	replies int
	seq     uint64 // of the newest frame that was queued
	// chosen is nil for everything, every interval for each second.
	chosen   selection
	interval int64 // in seconds
	flushed  int64 // the second of log time in which changes were last due
	pending  *backlog
	end      *ending
	pinged   time.Time
	pingDue  bool
}

// backlog is what a subscriber was not sent yet, merged per coin: the newest price, and the price
// that it was last told.
type backlog struct {
	latest []*change // by rank-1, as the others
	from   []float64
	states []*state
	// changes and told count what latest and states hold.
	changes, told int
	// due says that changes are to be sent, updates counts the frames of them that it stands for; sole
	// are the frames of the first round while it is the only one.
	due     bool
	updates int
	sole    []frame
	stamp   stamp
}

var backlogs sync.Pool

func newBacklog(coins int) *backlog {
	if b, ok := backlogs.Get().(*backlog); ok && len(b.latest) == coins {
		return b
	}
	return &backlog{latest: make([]*change, coins), from: make([]float64, coins), states: make([]*state, coins)}
}

// free gives a backlog back once it is encoded.
func (b *backlog) free() {
	clear(b.latest)
	clear(b.states)
	b.changes, b.told, b.due, b.updates, b.sole = 0, 0, false, 0, nil
	backlogs.Put(b)
}

func (b *backlog) add(r *round, chosen selection) {
	for _, c := range r.changes {
		i := c.entry.Coin.Rank - 1
		if !chosen.has(i + 1) {
			continue
		}
		if b.latest[i] == nil {
			b.from[i] = c.previous
			b.changes++
		}
		b.latest[i] = c
	}
	for _, st := range r.states {
		i := st.entry.Coin.Rank - 1
		if !chosen.has(i + 1) {
			continue
		}
		if b.states[i] == nil {
			b.told++
		}
		b.states[i] = st
	}
	b.stamp = r.stamp
}

// keep forgets the coins outside a selection.
func (b *backlog) keep(chosen selection) {
	for i := range b.latest {
		if chosen.has(i + 1) {
			continue
		}
		if b.latest[i] != nil {
			b.latest[i] = nil
			b.changes--
		}
		if b.states[i] != nil {
			b.states[i] = nil
			b.told--
		}
	}
	b.sole = nil
}

// frames encodes a backlog; withChanges is false where only states are due.
func (b *backlog) frames(withChanges bool) []frame {
	if withChanges && b.sole != nil {
		return b.sole
	}
	var lost, regained []*state
	for i, st := range b.states {
		if st == nil {
			continue
		}
		if st.stale {
			lost = append(lost, st)
		} else {
			regained = append(regained, st)
		}
		b.states[i] = nil
	}
	b.told = 0
	var out []frame
	if len(regained) > 0 {
		out = append(out, frame{own: stateFrame(typeFresh, regained, b.stamp)})
	}
	if withChanges && b.changes > 0 {
		body := append(open(make([]byte, 0, 128+200*b.changes), typeUpdate), `,"data":[`...)
		first := true
		for i, c := range b.latest {
			if c == nil {
				continue
			}
			if !first {
				body = append(body, ',')
			}
			first = false
			body = appendChange(body, c, b.from[i])
		}
		s := b.stamp
		s.conflated = b.updates
		out = append(out, frame{own: s.close(append(body, ']'))})
	}
	if len(lost) > 0 {
		out = append(out, frame{own: stateFrame(typeStale, lost, b.stamp)})
	}
	return out
}

// offer hands a round to the subscriber, which takes it now, later or merged with others.
func (s *subscriber) offer(r *round, all selection) (merged bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end != nil {
		return false
	}
	if s.chosen == nil {
		return s.offerAll(r, all)
	}
	if len(r.changes) > 0 || len(r.states) > 0 {
		if s.pending == nil {
			s.pending = newBacklog(s.coins)
		}
		s.pending.add(r, s.chosen)
	}
	p := s.pending
	if p == nil {
		return false
	}
	second := r.stamp.at / int64(time.Second)
	if p.changes > 0 && second-s.flushed >= s.interval {
		s.flushed = second
		p.due = true
		p.updates++
	}
	if p.due || p.told > 0 {
		s.poke()
	}
	return p.updates > 1
}

// offerAll is offer to one who is sent everything each second: as long as it keeps up, the frames
// that all such subscribers share.
func (s *subscriber) offerAll(r *round, all selection) (merged bool) {
	if len(r.frames) == 0 {
		return false
	}
	defer s.poke()
	if s.pending == nil && len(s.queue)-s.replies < queueFrames {
		s.queue = append(s.queue, r.frames...)
		s.seq = r.stamp.seq
		return false
	}
	if s.pending == nil {
		s.pending = newBacklog(s.coins)
		s.pending.sole = r.frames
	} else {
		s.pending.sole = nil
		merged = true
	}
	s.pending.add(r, all)
	s.pending.due = true
	if len(r.changes) > 0 {
		s.pending.updates++
	}
	return merged
}

// reply queues an answer; false if too many wait already.
func (s *subscriber) reply(own []byte) bool {
	if s.end != nil {
		return true
	}
	if s.replies >= queueReplies {
		return false
	}
	s.queue = append(s.queue, frame{own: own, reply: true})
	s.replies++
	s.poke()
	return true
}

// finish has the socket closed as soon as what is being written is; the first reason counts.
func (s *subscriber) finish(code int, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end == nil {
		s.end = &ending{code, reason}
		s.queue, s.pending = nil, nil
		s.poke()
	}
}

func (s *subscriber) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// take returns what is to be written next.
func (s *subscriber) take() (frames []frame, ping bool, end *ending) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end != nil {
		return nil, false, s.end
	}
	ping, s.pingDue = s.pingDue, false
	if len(s.queue) > 0 {
		next := s.queue[0]
		s.queue[0] = frame{}
		if s.queue = s.queue[1:]; len(s.queue) == 0 {
			s.queue = nil
		}
		if next.reply {
			s.replies--
		}
		return []frame{next}, ping, nil
	}
	p := s.pending
	if p == nil || !p.due && p.told == 0 {
		return nil, ping, nil
	}
	s.seq = max(s.seq, p.stamp.seq)
	p.stamp.seq = s.seq
	if !p.due {
		return p.frames(false), ping, nil
	}
	frames = p.frames(true)
	s.pending = nil
	p.free()
	return frames, ping, nil
}

// pingIfDue asks the writer for a ping once an interval.
func (s *subscriber) pingIfDue(now time.Time, every time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.pinged) >= every {
		s.pinged, s.pingDue = now, true
		s.poke()
	}
}
