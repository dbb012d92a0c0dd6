package ws

import (
	"cmp"
	"time"

	"github.com/marketlog/marketlog/query"
)

// Deliveries that a client can ask for.
const (
	// deliveryLatest sends the newest price of each coin, at the reader's own pace.
	deliveryLatest = "latest"
	// deliveryAll sends every price.
	deliveryAll = "all"
)

// aheadMost is how many seconds a cursor may lie ahead of what this replica has read.
const aheadMost = 15 * 60

// idMax bounds what a client may have echoed.
const idMax = 64

// request is what a client asks for, by a message or when it connects.
type request struct {
	id string
	// unsubscribe takes coins away instead of adding them; named means that coins were named, by ranks.
	unsubscribe, named bool
	ranks              []int
	// interval is in seconds, 0 to leave it.
	interval int64
	// delivery is empty to leave it.
	delivery string
	// cursor is the one to go on from; empty for none. from is the position in the prices that it holds, places those in other
	// channels by their code; of is the log that it is of.
	cursor string
	from   position
	places map[byte]position
	of     identity
	// chooses means that channels were named: these, and the prices unless priceless.
	chooses, priceless bool
	channels           []*channel
	// silent means that no snapshot is wanted.
	silent bool
	// heartbeat is 0 to leave it.
	heartbeat time.Duration
	// extended means that something was asked for that the plain stream does not have.
	extended bool
	// resume means that nothing but to go on was asked for.
	resume bool
	// replay is how the past is sent; nil where everything is sent as fast as it is read, and then the present.
	replay *replay
}

// request checks a message; the faults are all that is wrong with it.
func (h *Hub) request(m *message) (r request, wrong faults) {
	r = request{id: m.ID, unsubscribe: m.Type == "unsubscribe", named: m.Symbols != nil, delivery: m.Delivery, resume: m.Type == "resume",
		extended: m.Delivery != "" || m.Cursor != "" || m.Snapshot != nil || m.HeartbeatMs != nil, silent: m.Snapshot != nil && !*m.Snapshot}
	if len(m.ID) > idMax {
		wrong.note(longID(m.ID))
	}
	if len(m.Channels) > 0 {
		wrong.note(h.nameChannels(&r, m.Channels))
	}
	var off *fault
	r.interval, off = intervalOf(m.IntervalMs)
	wrong.note(off)
	if m.HeartbeatMs != nil {
		ms := *m.HeartbeatMs
		if ms != float64(int64(ms)) || ms < 1000 || ms > 60_000 {
			wrong.note(faulty("heartbeatMs", millisecondsWanted))
		} else {
			r.heartbeat = time.Duration(ms) * time.Millisecond
		}
	}
	if m.Delivery != "" && m.Delivery != deliveryLatest && m.Delivery != deliveryAll {
		wrong.note(faulty("delivery", "must be %s or %s", deliveryLatest, deliveryAll))
	}
	if m.Delivery == deliveryAll && r.interval > 1 {
		wrong.note(faulty("intervalMs", intervalOfAll))
	}
	if m.Cursor != "" {
		wrong.note(h.readCursor(&r, m.Cursor))
	}
	// What a replay begins with is of channels and a cursor that are right.
	if len(wrong) == 0 && (m.From != "" || m.To != "" || m.Speed != nil) {
		wrong.note(h.readReplay(&r, m))
	}
	return r, wrong
}

const millisecondsWanted = "must be an integer from 1000 to 60000"

// intervalOfAll is why delivery all has no other interval.
const intervalOfAll = "must be left out, or be 1000, with delivery all, which merges nothing"

// longID is the fault of an id that is too long to be echoed.
func longID(id string) *fault { return faulty("id", "has %d bytes, and may have %d", len(id), idMax) }

// given means that there is a cursor.
func (r *request) given() bool { return r.from != nil || r.places != nil }

// readCursor reads the cursor of a request.
func (h *Hub) readCursor(r *request, text string) *fault {
	r.cursor = text
	var err error
	if text[0] == mixedForm {
		r.of, r.places, err = parseCursors(text, h.partitionsOf)
		r.from = r.places[h.prices.code()]
	} else {
		r.of, r.from, err = parseCursor(text, len(h.nows))
	}
	if err != nil {
		return faulty("cursor", "%s", err)
	}
	return nil
}

// intervalOf is an interval in seconds; 0 where none is given.
func intervalOf(given *float64) (int64, *fault) {
	if given == nil {
		return 0, nil
	}
	ms := *given
	if ms != float64(int64(ms)) || time.Duration(ms)*time.Millisecond < minInterval {
		return 0, faulty("intervalMs", millisecondsWanted)
	}
	// Ticks are whole seconds: an interval between two of them waits for the later one.
	return int64((min(time.Duration(min(ms, 1e9))*time.Millisecond, maxInterval) + time.Second - 1) / time.Second), nil
}

// choose changes what a subscriber is sent, and how.
func (h *Hub) choose(s *subscriber, m *message) bool {
	r, wrong := h.request(m)
	if len(wrong) > 0 {
		return h.refuseFaults(s, m.ID, wrong)
	}
	snapshot := h.deps.Catalog.Snapshot()
	ranks, unknown := find(snapshot, m.Symbols)
	if len(unknown) > 0 && !h.refuseFaults(s, m.ID, faults{unknownCoins(snapshot, unknown)}) {
		return false
	}
	if len(m.Symbols) > 0 && len(ranks) == 0 {
		return true
	}
	r.ranks = ranks
	h.mu.Lock()
	defer h.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	return h.grant(s, r)
}

// unplaced is what cannot begin before this replica has a position in the prices; empty where nothing of that kind is asked for. It is
// refused before anything changes: a feed without a position would be sent all that memory holds.
func (h *Hub) unplaced(s *subscriber, r *request) string {
	priceless := s.priceless
	if r.chooses {
		priceless = r.priceless
	}
	switch {
	case priceless:
		return ""
	case r.from != nil && h.position.newest() == 0:
		return "the stream cannot go on yet"
	case r.from == nil && r.delivery == deliveryAll && s.feed == nil && !h.position.whole():
		return "delivery all cannot begin"
	}
	return ""
}

// grant does what a subscriber asks for; its caller holds h.mu and s.mu. It is false if the client does not read the answers.
func (h *Hub) grant(s *subscriber, r request) bool {
	for _, c := range r.channels {
		if !c.onDemand() && !c.begun() {
			return h.refuseLocked(s, r.id, c.notBegun()+"; try again")
		}
	}
	if why := h.unplaced(s, &r); why != "" {
		return h.refuseLocked(s, r.id, why+": "+notBegun+"; try again")
	}
	s.extended = s.extended || r.extended
	before, chosen := s.selected(h.all), s.chosen
	if s.whole {
		chosen = nil
	}
	after := h.selection(chosen, !r.unsubscribe, r.named, r.ranks)
	if r.resume {
		after = before
	}
	if why := r.beyond(s.caller.Plan, time.Now()); why != "" {
		return h.refuseWith(s, r.id, query.CodePlanRequired, why)
	}
	for _, c := range s.following(&r) {
		if code, why := c.refuses(s.caller.Plan, after); why != "" {
			return h.refuseWith(s, r.id, code, why)
		}
	}
	if r.interval > 0 {
		s.interval = r.interval
	}
	if r.heartbeat > 0 {
		s.heartbeat, s.wrote = r.heartbeat, time.Now()
	}
	switched := h.assign(s, &r)
	switch {
	case s.priceless:
	case r.delivery == deliveryAll && s.feed == nil:
		switched = true
		s.interval = 1
		s.feed = h.newFeed(h.prices, s.caller.Grant.Budget, h.position, h.position)
		s.settle()
	case r.delivery == deliveryLatest && s.feed != nil:
		switched = true
		s.starve()
	case s.feed != nil:
		if r.interval > 1 {
			s.interval = 1
			return h.refuseFaultsLocked(s, r.id, faults{faulty("intervalMs", intervalOfAll)})
		}
		s.feed = s.feed.again()
	}
	s.settleReplay()
	added, any := newSelection(s.coins), false
	for i := range added {
		added[i] = after[i]
		if !switched {
			added[i] &^= before[i]
		}
		any = any || added[i] != 0
	}
	s.chosen, s.whole = after, false
	switch all := after.equal(h.all); {
	case len(s.channels) > 0:
		s.whole = all // its frames have other cursors than those that all share
	case all && s.interval == 1:
		s.chosen = nil
	}
	h.renew(s, &r)
	if s.pending != nil {
		s.pending.keep(after)
		s.pending.due = s.pending.due || s.chosen == nil && s.pending.changes > 0
	}
	cursor := h.reachedCursor(s)
	if r.given() {
		cursor = "" // whoever is cut off here has what it came with
	}
	if !r.resume && !s.answer(h.subscribed(s, r.id, after), cursor) {
		return false
	}
	s.begin(h)
	if r.given() {
		if !h.goOn(s, r, after) {
			return false
		}
		if r.from != nil {
			return true
		}
		cursor = h.reachedCursor(s)
	}
	// Coins that it was not sent for a while start over, so that each previous price is one it has seen. In delivery all each price
	// comes after the one before it in the log.
	if !any || r.silent || s.priceless || s.replay != nil || s.feed != nil && !switched {
		return true
	}
	return s.answer(h.encodeSnapshot(added), cursor)
}

// following are the channels that a subscriber will have after a request.
func (s *subscriber) following(r *request) (all []*channel) {
	if r.chooses {
		return r.channels
	}
	for _, f := range s.channels {
		all = append(all, f.of.(*channel))
	}
	return all
}

// settle ends what waits of delivery latest.
func (s *subscriber) settle() {
	if s.pending != nil {
		s.pending.free()
		s.pending = nil
	}
}

// reachedCursor is that of all that a subscriber was sent, or will have been when it has read what waits for it.
func (h *Hub) reachedCursor(s *subscriber) string {
	if s.feed != nil {
		return h.cursorOf(s, s.feed.at)
	}
	return h.cursorOf(s, s.reached)
}

// answer queues an answer with a cursor.
func (s *subscriber) answer(body []byte, cursor string) bool {
	return s.respond(s.render(body, cursor))
}

// goOn sends a subscriber what it missed since a cursor, of some coins; its caller holds h.mu and s.mu.
func (h *Hub) goOn(s *subscriber, r request, of selection) bool {
	if r.of != h.identityOf(&r) {
		s.finishReplay()
		return h.gapOfAll(s, &r, of)
	}
	if !h.beginReplay(s, r.replay) {
		s.replay = nil
		return h.refuseLocked(s, r.id, tooManyReplays)
	}
	if r.from != nil && !s.priceless && !h.goOnPrices(s, r, of) {
		return false
	}
	return h.goOnChannels(s, &r)
}

func (h *Hub) goOnPrices(s *subscriber, r request, of selection) bool {
	switch {
	case r.from.newest() > h.position.newest()+aheadMost:
		return h.refuseFaultsLocked(s, r.id, faults{faulty("cursor", "lies ahead of the log; leave it out")})
	case s.feed == nil:
		return h.catchUp(s, r, of)
	}
	s.starve()
	s.feed = h.newFeed(h.prices, s.caller.Grant.Budget, r.from, h.position)
	s.feed.replay = r.replay
	return h.resumed(s, s.feed, &r) && (r.replay != nil || h.present(s, of))
}

// resumed begins a feed where a cursor was given.
func (h *Hub) resumed(s *subscriber, f *feed, r *request) bool {
	f.joining, f.id = true, r.id
	source := "memory"
	if f.of.stored() && !f.of.holds(f.at, f.offered) {
		source = "store"
	}
	at := f.at
	f.at = f.offered
	until := h.reachedCursor(s)
	f.at = at
	return s.reply(resumedFrame(r.id, f.of.name(), r.cursor, until, f.of.second(f.at), f.of.second(f.offered), source))
}

// catchUp sends one of delivery latest the coins that have another price than when it had a position.
func (h *Hub) catchUp(s *subscriber, r request, of selection) bool {
	from := r.from
	var missed []*change
	for i, c := range h.known {
		if c == nil || !of.has(i+1) {
			continue
		}
		if p := c.entry.Partition; int(p) >= len(from) || c.entry.Price.Time/int64(time.Second) > from[p] {
			again := *c
			again.previous = c.entry.Price.Price
			missed = append(missed, &again)
		}
	}
	s.settle()
	s.reached = h.position
	cursor := h.reachedCursor(s)
	if !s.reply(resumedFrame(r.id, "", cmp.Or(r.cursor, h.cursor(from)), cursor, from.newest(), h.position.newest(), "memory")) {
		return false
	}
	if len(missed) > 0 {
		stamp := stamp{epoch: h.epoch, seq: h.seq, at: h.logTime(), conflated: int(max(1, h.position.newest()-from.newest()))}
		if !s.answer(updateFrame(missed, stamp), cursor) {
			return false
		}
	}
	return h.present(s, of)
}

// present sends one that goes on which of its prices are stale now: states are of the present, not of the log.
func (h *Hub) present(s *subscriber, of selection) bool {
	var lost []*state
	for i, c := range h.known {
		if c != nil && c.stale && of.has(i+1) {
			lost = append(lost, &state{entry: c.entry, stale: true, reason: reason(c)})
		}
	}
	return len(lost) == 0 || s.reply(stateFrame(typeStale, lost, h.stamp(s)))
}

// gap announces since when a subscriber was sent nothing, and begins with the present.
func (h *Hub) gap(s *subscriber, id, reason string, from position, of selection) bool {
	s.reached = h.prices.begin(from, h.position)
	if s.feed != nil {
		s.starve()
		s.feed = h.newFeed(h.prices, s.caller.Grant.Budget, s.reached, h.position)
	}
	s.settle()
	cursor := h.reachedCursor(s)
	since := int64(0)
	if from != nil {
		since = from.oldest()
	}
	until := s.reached.newest()
	if until == 0 {
		until = h.logTime() / int64(time.Second)
	}
	if !s.answer(gapFrame(id, "", reason, since, until), cursor) {
		return false
	}
	b := h.encodeSnapshot(of)
	head := len(open(nil, typeInitial))
	b = append(append(append(make([]byte, 0, len(b)+11), b[:head]...), `,"gap":true`...), b[head:]...)
	return s.answer(b, cursor)
}

// resume goes on where a client was: at a cursor, or of the same process at a number.
func (h *Hub) resume(s *subscriber, m *message) bool {
	switch {
	case m.Cursor != "":
		return h.choose(s, m)
	case m.Epoch == "" || m.Seq == nil:
		return h.refuseFaults(s, m.ID, faults{faulty("cursor", "is required by resume, or epoch and seq")})
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.selected(h.all)
	switch {
	case s.feed != nil:
		return h.refuseFaultsLocked(s, m.ID, faults{faulty("cursor", "is required by resume with delivery all")})
	case len(s.channels) > 0:
		return h.refuseFaultsLocked(s, m.ID, faults{faulty("cursor", "is required by resume with channels other than prices")})
	}
	from, known := h.positionOf(*m.Seq)
	if m.Epoch != h.epoch || !known || *m.Seq > h.seq {
		return h.gap(s, m.ID, gapTooOld, nil, of)
	}
	return h.catchUp(s, request{id: m.ID, from: from}, of)
}
