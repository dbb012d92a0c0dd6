package ws

import (
	"crypto/rand"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/marketlog/marketlog/query"
)

// frame waits for a subscriber: a message that it shares with others, or bytes of its own as they go
// over the wire.
type frame struct {
	shared *encoded
	own    []byte
	reply  bool
}

// round is what one tick broadcasts.
type round struct {
	// frames are those of every subscriber that did not ask for anything else.
	frames  []frame
	changes []*change
	states  []*state
	stamp   stamp
	// position is that of one that was sent all rounds up to this one.
	position position
}

// ending is why a socket is closed.
type ending struct {
	code   int
	reason string
	// answered means that the client closed, and only gets the close frame back.
	answered bool
	// last is written before the close frame, as it goes over the wire.
	last []byte
}

// subscriber is one open socket. The hub offers it rounds and never waits.
type subscriber struct {
	id     string
	caller query.Caller
	gate   Gate
	raw    net.Conn
	// direct is raw for writes that do not wait; nil where there are none.
	direct syscall.RawConn
	// deflated means that the client takes deflated messages.
	deflated bool
	coins    int
	// place is where the hub's list has it, and belongs to the hub.
	place int

	mu sync.Mutex
	// writing means that a goroutine has claimed the socket: it alone writes, until nothing waits. Lost is
	// set once nobody will any more; released is signalled when a claim ends.
	writing, lost bool
	released      sync.Cond
	// queue are the frames that wait, from next on.
	queue   []frame
	next    int
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
	// form is how it is written to. Extended means that it asked for something beyond the plain stream: it is sent cursors.
	form     form
	extended bool
	// feed is of the prices and set in delivery all, channels are of other channels, in the order of the hub's; fetches counts
	// the goroutines that read for one.
	feed     *feed
	channels []*feed
	fetches  int
	// priceless means that it wants no prices, whole that it wants all coins although chosen is set; both only with channels.
	priceless, whole bool
	// replay is how fast its feeds may go on, and up to where; nil: to the present at once.
	replay *replay
	// uninformed means that it has come to the present of the prices, and has yet to be sent which of them are stale.
	uninformed bool
	// reached is up to where it was sent the prices, in delivery latest.
	reached position
	// heartbeat is after which silence it is sent the cursor, 0 for never; wrote is when something was last written.
	heartbeat time.Duration
	wrote     time.Time
}

func newSubscriber(a *admission, raw net.Conn, coins int) *subscriber {
	s := &subscriber{id: rand.Text()[:16], caller: a.caller, gate: a.gate, raw: raw, direct: directOf(raw),
		deflated: a.deflated, coins: coins, interval: 1, pinged: time.Now()}
	s.released.L = &s.mu
	return s
}

// backlog is what a subscriber was not sent yet, merged per coin: the newest price, and the price
// that it was last reported.
type backlog struct {
	latest []*change // by rank-1, as the others
	from   []float64
	states []*state
	// changes and sent count what latest and states hold.
	changes, sent int
	// due means that changes are to be sent, updates counts the frames of them that it merges; only
	// are the frames of the first round while it is the only one.
	due     bool
	updates int
	only    []frame
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
	b.changes, b.sent, b.due, b.updates, b.only = 0, 0, false, 0, nil
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
			b.sent++
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
			b.sent--
		}
	}
	b.only = nil
}

// frames encodes a backlog for a subscriber; withChanges is false where only states are due.
func (b *backlog) frames(s *subscriber, withChanges bool) []frame {
	if withChanges && b.only != nil {
		return b.only
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
	b.sent = 0
	var out []frame
	if len(regained) > 0 {
		out = append(out, frame{own: s.render(stateFrame(typeFresh, regained, b.stamp), "")})
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
		stamp := b.stamp
		stamp.conflated = b.updates
		out = append(out, frame{own: s.render(stamp.close(append(body, ']')), s.cursorOf(stamp))})
	}
	if len(lost) > 0 {
		out = append(out, frame{own: s.render(stateFrame(typeStale, lost, b.stamp), "")})
	}
	return out
}

// offer hands a round to the subscriber, which takes it now, later or merged with others. A caller
// that it claims the socket for must flush it.
func (s *subscriber) offer(r *round, all selection) (claimed, merged bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end != nil || s.lost {
		return false, false
	}
	switch {
	case s.priceless:
	case s.feed != nil:
		s.offerFeed(r, all)
	case s.chosen == nil:
		merged = s.offerAll(r, all)
	default:
		merged = s.offerChosen(r)
	}
	if s.extended && (s.pending == nil || s.pending.changes == 0) {
		s.reached = r.position // all that the round sends it is queued
	}
	return s.claimed(), merged
}

// offerFeed lets the feed go on to the round's position. States are no part of it. Its caller holds h.mu and s.mu.
func (s *subscriber) offerFeed(r *round, all selection) {
	s.feed.offered = r.position
	if s.uninformed {
		s.uninformed = false
		s.feed.hub.present(s, s.selected(all))
	}
	if len(r.states) == 0 || s.replay != nil { // states are of the present
		return
	}
	if s.pending == nil {
		s.pending = newBacklog(s.coins)
	}
	s.pending.add(&round{states: r.states, stamp: r.stamp}, s.selected(all))
}

// selected are the coins that it is sent.
func (s *subscriber) selected(all selection) selection {
	if s.chosen == nil {
		return all
	}
	return s.chosen
}

// offerChannels lets the feeds of channels go on to the present. A caller that it claims the socket for must flush it.
func (s *subscriber) offerChannels(h *Hub) (claimed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end != nil || s.lost {
		return false
	}
	s.begin(h)
	for _, f := range s.channels {
		if !f.unplaced {
			f.offered = f.of.heads()
		}
	}
	return s.claimed()
}

// wanted is what its feeds choose from their channels.
func (s *subscriber) wanted(all selection) wanted {
	return wanted{coins: s.selected(all), everything: s.chosen == nil || s.whole}
}

// cursorOf is the cursor of one who was sent a round.
func (s *subscriber) cursorOf(of stamp) string {
	if len(s.channels) == 0 {
		return of.cursor
	}
	return s.channels[0].hub.cursorOf(s, of.position)
}

// offerChosen is offer to one who asked for some coins, or for an interval.
func (s *subscriber) offerChosen(r *round) (merged bool) {
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
	return p.updates > 1
}

// offerAll is offer to one who is sent everything each second: as long as it keeps up, the frames
// that all such subscribers share.
func (s *subscriber) offerAll(r *round, all selection) (merged bool) {
	if len(r.frames) == 0 {
		return false
	}
	if s.pending == nil && s.waiting()-s.replies < queueFrames {
		s.enqueue(r.frames...)
		s.seq = r.stamp.seq
		return false
	}
	if s.pending == nil {
		s.pending = newBacklog(s.coins)
		s.pending.only = r.frames
	} else {
		s.pending.only = nil
		merged = true
	}
	s.pending.add(r, all)
	s.pending.due = true
	if len(r.changes) > 0 {
		s.pending.updates++
	}
	return merged
}

// reply queues an answer, false if too many wait already; who read what it answers flushes.
func (s *subscriber) reply(body []byte) bool { return s.respond(s.render(body, "")) }

// render is a message of its own as it goes over the wire, with the cursor if it knows such.
func (s *subscriber) render(body []byte, cursor string) []byte {
	if !s.extended {
		cursor = ""
	}
	return s.form.write(withCursor(body, cursor), cursor)
}

// formed is a shared message as it goes over the wire.
func (s *subscriber) formed(e *encoded) []byte {
	switch s.form {
	case formEvents:
		return e.event()
	case formLines:
		return e.line()
	}
	if s.extended {
		e = e.extended()
	}
	if s.deflated {
		return e.deflated()
	}
	return e.plain
}

// respond is reply for bytes as they go over the wire.
func (s *subscriber) respond(wire []byte) bool {
	if s.end != nil {
		return true
	}
	if s.replies >= queueReplies {
		return false
	}
	s.enqueue(frame{own: wire, reply: true})
	s.replies++
	return true
}

// finish has the socket closed as soon as what is being written is; the first reason counts.
func (s *subscriber) finish(code int, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conclude(&ending{code: code, reason: reason})
}

// answerClose has a client's goodbye answered.
func (s *subscriber) answerClose(code int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conclude(&ending{code: code, answered: true})
}

func (s *subscriber) conclude(end *ending) {
	if s.end == nil {
		s.end = end
		s.queue, s.next, s.pending = nil, 0, nil
		s.starveAll()
	}
}

// starve ends the feed of prices, if there is one.
func (s *subscriber) starve() {
	if s.feed != nil {
		s.feed.drop()
		s.feed = nil
	}
}

// starveAll ends all feeds.
func (s *subscriber) starveAll() {
	s.finishReplay()
	s.starve()
	for _, f := range s.channels {
		f.drop()
	}
	s.channels = nil
}

func (s *subscriber) waiting() int { return len(s.queue) - s.next }

// enqueue uses the room of what was written before it takes more: the queue of a reader that is always
// a little behind must not grow.
func (s *subscriber) enqueue(frames ...frame) {
	if s.next > 0 && len(s.queue)+len(frames) > cap(s.queue) {
		n := copy(s.queue, s.queue[s.next:])
		clear(s.queue[n:])
		s.queue, s.next = s.queue[:n], 0
	}
	s.queue = append(s.queue, frames...)
}

// claim reports whether its caller is to write: something waits and nobody writes yet. It must flush.
func (s *subscriber) claim() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.claimed()
}

func (s *subscriber) claimed() bool {
	due := s.end != nil || s.pingDue || s.waiting() > 0 || s.pending != nil && (s.pending.due || s.pending.sent > 0) || s.due() != nil || s.replayed()
	if s.writing || s.lost || !due {
		return false
	}
	s.writing = true
	return true
}

// release ends the last claim: nothing is written any more.
func (s *subscriber) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writing, s.lost = false, true
	s.starveAll()
	s.released.Broadcast()
}

// retire closes the socket and waits until nobody writes. A close frame that waits behind a frame gets a
// moment to be written.
func (s *subscriber) retire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end != nil && s.writing {
		timer := time.AfterFunc(goodbye, func() { _ = s.raw.Close() }) // it ends the write
		for s.writing {
			s.released.Wait()
		}
		timer.Stop()
	}
	s.lost = true
	s.starveAll()
	_ = s.raw.Close() // the server closes it once more
	for s.writing || s.fetches > 0 {
		s.released.Wait()
	}
}

// take returns the bytes that are to be written next, with an ending if they are the last. Nil ends
// the claim: nothing waits.
func (s *subscriber) take() ([]byte, *ending) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.lost:
			s.queue, s.next, s.pending = nil, 0, nil
		case s.end != nil:
			return s.form.end(s.end), s.end
		case s.pingDue:
			s.pingDue = false
			return s.form.ping(), nil
		case s.waiting() == 0:
			s.queue, s.next = s.queue[:0], 0
			s.unpend()
		}
		if s.waiting() > 0 {
			return s.pop(), nil
		}
		if s.replayed() {
			s.endReplay()
			continue
		}
		f := s.due()
		if s.lost || f == nil {
			s.writing = false
			s.released.Broadcast()
			return nil, nil
		}
		if wire := f.hub.pull(s, f); wire != nil {
			s.note()
			return wire, nil
		}
	}
}

// pop takes the next frame of the queue, which is not empty.
func (s *subscriber) pop() []byte {
	out := s.queue[s.next]
	s.queue[s.next] = frame{}
	s.next++
	if out.reply {
		s.replies--
	}
	s.note()
	if out.shared == nil {
		return out.own
	}
	return s.formed(out.shared)
}

// note remembers when something was written, where silence counts.
func (s *subscriber) note() {
	if s.heartbeat > 0 {
		s.wrote = time.Now()
	}
}

// unpend queues what is due of the backlog.
func (s *subscriber) unpend() {
	p := s.pending
	if p == nil || !p.due && p.sent == 0 {
		return
	}
	s.seq = max(s.seq, p.stamp.seq)
	p.stamp.seq = s.seq
	s.enqueue(p.frames(s, p.due)...)
	if p.due {
		s.reached = p.stamp.position
		s.pending = nil
		p.free()
	}
}

// pingIfDue reports whether its caller is to write a ping, which happens once an interval.
func (s *subscriber) pingIfDue(now time.Time, every time.Duration) (claimed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.pinged) < every {
		return false
	}
	s.pinged, s.pingDue = now, true
	return s.claimed()
}
