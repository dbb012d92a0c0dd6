package ws

import (
	"fmt"
	"math"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/fasthttp/websocket"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/limits"
)

const (
	// speedLeast and speedMost bound how many seconds of the log a replay sends in one.
	speedLeast, speedMost = 0.1, 3600
	// stepLeast and stepMost bound how often a replay with a speed looks for what is due.
	stepLeast, stepMost = 10 * time.Millisecond, time.Second
	// pacedMost bounds the replays with a speed at a time: each may hold a page of the past for long.
	pacedMost = 64
)

const speedWanted = "must be a number from 0.1 to 3600"

// replay is how the past is sent to one subscriber: by a clock that runs through the log at a speed of its own, up to an end. Its
// subscriber's s.mu guards it.
type replay struct {
	// first is the oldest second that is sent, until the last one that is; 0 for no end.
	first, until int64
	// speed is in seconds of the log per second; 0: as fast as it is read. With a speed, the clock was at second when it was at;
	// a paused one stands.
	speed  float64
	second float64
	at     time.Time
	paused bool
	// id is that of the message that asked for it.
	id string
	// timer drives one with a speed, which is one of those that running counts.
	timer   *time.Timer
	running *atomic.Int64
}

// readReplay reads how a request wants the past to be sent, and from when on unless it has a cursor.
func (h *Hub) readReplay(r *request, m *message) *fault {
	instant := func(name, text string) (int64, *fault) {
		at, fault := query.ParseTime(text)
		if fault != "" {
			return 0, faulty(name, "%s", fault)
		}
		if at.After(h.deps.Now()) && name == "from" {
			return 0, faulty(name, "must not lie in the future: it is %s here", query.FormatTime(h.deps.Now().UnixNano()))
		}
		second := at.Unix()
		if at.Nanosecond() > 0 && name == "from" {
			second++ // what is of a second is of its beginning
		}
		return second, nil
	}
	r.extended, r.silent = true, true
	p := &replay{id: r.id}
	var wrong *fault
	if m.To != "" {
		if p.until, wrong = instant("to", m.To); wrong != nil {
			return wrong
		}
	}
	if m.Speed != nil {
		if p.speed, wrong = speedOf(*m.Speed); wrong != nil {
			return wrong
		}
	}
	switch {
	case r.unsubscribe || r.resume:
		return faulty(m.ofReplay(), "belongs to subscribe")
	case m.From != "" && r.given():
		return faulty("from", "must be left out with a cursor, behind which a replay goes on")
	case m.From == "" && !r.given():
		return faulty("from", "must be given with to and speed, or a cursor in its place")
	case r.delivery == deliveryLatest:
		return faulty("delivery", "must be all, or left out, in a replay: every price is sent")
	}
	if !r.priceless {
		r.delivery = deliveryAll
	}
	if m.From != "" {
		if p.first, wrong = instant("from", m.From); wrong != nil {
			return wrong
		}
		p.second = float64(p.first)
		if wrong = h.placeAt(r, p.first-1); wrong != nil {
			return wrong
		}
	} else {
		p.first = r.oldestPlace() + 1
		// What partitions lag behind in the cursor was sent, or is due.
		p.second = float64(r.newestPlace())
	}
	if p.until != 0 && m.From != "" && p.until < p.first {
		return faulty("to", "must not lie before from")
	}
	r.replay = p
	return nil
}

// ofReplay is the first field that a message has of those that begin a replay.
func (m *message) ofReplay() string {
	switch {
	case m.From != "":
		return "from"
	case m.To != "":
		return "to"
	}
	return "speed"
}

func speedOf(given float64) (float64, *fault) {
	if !(given >= speedLeast && given <= speedMost) {
		return 0, faulty("speed", "%s", speedWanted)
	}
	return given, nil
}

// placeAt gives a request the place of one who was sent everything up to a second, in each channel that it names.
func (h *Hub) placeAt(r *request, second int64) *fault {
	everywhere := func(partitions int) position {
		p := make(position, partitions)
		for i := range p {
			p[i] = second
		}
		return p
	}
	var spots []spot
	if !r.priceless {
		r.from = everywhere(h.prices.partitions())
		spots = append(spots, spot{h.prices.code(), h.prices.identity(), r.from})
	}
	for _, c := range r.channels {
		if c.offsets != nil || c.states() || !c.stored() {
			return faulty("channels", "must not hold %s with from: it is about the present, and its past is not kept", c.name())
		}
		if r.places == nil {
			r.places = map[byte]position{}
		}
		r.places[c.code()] = everywhere(c.partitions())
		spots = append(spots, spot{c.code(), c.identity(), r.places[c.code()]})
	}
	r.of = h.identityOf(r)
	if r.cursor = cursorOfAll(spots); len(r.channels) == 0 {
		r.cursor = h.cursor(r.from)
	}
	return nil
}

// oldestPlace is the oldest second of a request's places, newestPlace the newest.
func (r *request) oldestPlace() int64 {
	oldest := int64(math.MaxInt64)
	for _, at := range r.allPlaces() {
		oldest = min(oldest, at.oldest())
	}
	return oldest
}

func (r *request) newestPlace() (newest int64) {
	for _, at := range r.allPlaces() {
		newest = max(newest, at.newest())
	}
	return newest
}

func (r *request) allPlaces() (all []position) {
	if r.from != nil {
		all = append(all, r.from)
	}
	for _, at := range r.places {
		all = append(all, at)
	}
	return all
}

// over means that a replay that goes on after a cursor has nothing left.
func (r *request) over() bool {
	return r.replay != nil && r.replay.until != 0 && r.replay.first > r.replay.until
}

// beyond is why a plan does not let a replay begin so far back; empty where it does.
func (r *request) beyond(plan *limits.Plan, now time.Time) string {
	if r.replay == nil {
		return ""
	}
	oldest := now.UTC().AddDate(0, 0, -plan.HistoryDays)
	if r.replay.first >= oldest.Unix() {
		return ""
	}
	return fmt.Sprintf("from must be %s or later: the plan %s includes %d days of history", query.FormatTime(oldest.UnixNano()), plan.Name, plan.HistoryDays)
}

// reach is the newest second that may be sent at a time.
func (p *replay) reach(now time.Time) int64 {
	reach := int64(math.MaxInt64)
	if p.until != 0 {
		reach = p.until
	}
	if p.speed > 0 {
		reach = min(reach, int64(math.Floor(p.clock(now))))
	}
	return reach
}

// clock is where in the log a replay with a speed is.
func (p *replay) clock(now time.Time) float64 {
	if p.paused {
		return p.second
	}
	return p.second + now.Sub(p.at).Seconds()*p.speed
}

// set lets the clock go on from where it is, at a speed or not at all.
func (p *replay) set(speed float64, paused bool, now time.Time) {
	p.second, p.at = p.clock(now), now
	p.speed, p.paused = speed, paused
}

// skip moves the clock on to a second before which there is nothing to send.
func (p *replay) skip(second int64, now time.Time) {
	if ahead := float64(second); ahead > p.clock(now) {
		p.second, p.at = ahead, now
	}
}

// step is how long it is until a replay with a speed looks for what is due.
func (p *replay) step() time.Duration {
	return max(stepLeast, min(stepMost, time.Duration(float64(time.Second)/p.speed)))
}

// beginReplay lets a subscriber's feeds be bound by a replay, or by none; its caller holds s.mu. It is false where too many run.
func (h *Hub) beginReplay(s *subscriber, p *replay) bool {
	s.finishReplay()
	if s.replay = p; p == nil {
		return true
	}
	p.at = time.Now()
	return h.drive(s, p)
}

// tooManyReplays is why a replay with a speed cannot begin.
const tooManyReplays = "too many replays with a speed run; try again later, or without one"

// drive has what is due of a replay with a speed sent, step by step; its caller holds s.mu. It is false where too many are.
func (h *Hub) drive(s *subscriber, p *replay) bool {
	if p.speed == 0 || p.timer != nil {
		return true
	}
	if h.paced.Add(1) > pacedMost {
		h.paced.Add(-1)
		return false
	}
	p.running = &h.paced
	p.timer = time.AfterFunc(p.step(), func() {
		s.mu.Lock()
		if s.replay != p || s.end != nil || s.lost {
			s.mu.Unlock()
			return
		}
		claimed := s.claimed()
		p.timer.Reset(p.step())
		s.mu.Unlock()
		if claimed {
			h.flush(s)
		}
	})
	return true
}

// finishReplay ends what drives a replay; its caller holds s.mu.
func (s *subscriber) finishReplay() {
	if p := s.replay; p != nil && p.timer != nil {
		p.timer.Stop()
		p.running.Add(-1)
	}
	s.replay = nil
}

// joined means that a feed has come to the present: the replay bounds it no longer, and is over with the last of them.
func (s *subscriber) joined(f *feed) {
	f.replay = nil
	s.uninformed = s.uninformed || f == s.feed
	s.settleReplay()
}

// settleReplay ends a replay that bounds no feed any more: all have come to the present, or were dropped.
func (s *subscriber) settleReplay() {
	for _, f := range s.feeds() {
		if f.replay != nil {
			return
		}
	}
	s.finishReplay()
}

// feeds are all that a subscriber has.
func (s *subscriber) feeds() []*feed {
	if s.feed == nil {
		return s.channels
	}
	return append([]*feed{s.feed}, s.channels...)
}

// replayedTo is the oldest second to which a feed of a replay has come.
func (s *subscriber) replayedTo() int64 {
	oldest := int64(math.MaxInt64)
	for _, f := range s.feeds() {
		at := f.at
		if f.unplaced {
			at = f.place
		}
		if f.replay != nil {
			oldest = min(oldest, at.oldest())
		}
	}
	return oldest
}

// replayed means that everything up to the end of a replay was sent; its caller holds s.mu.
func (s *subscriber) replayed() bool {
	if s.replay == nil || s.replay.until == 0 || s.end != nil {
		return false
	}
	for _, f := range s.feeds() {
		to := f.at.oldest() // what comes next of a page is the first after it
		if len(f.page.batches) > 0 {
			to = f.page.batches[0].second - 1
		}
		if f.unplaced || f.reading || to < s.replay.until {
			return false
		}
	}
	return true
}

// endReplay sends away one whose replay has come to its end; its caller holds s.mu, and nothing waits.
func (s *subscriber) endReplay() {
	sent := 0
	for _, f := range s.feeds() {
		sent += f.sent
		f.at = f.at.upTo(s.replay.until, f.offered)
	}
	cursor := s.feeds()[0].hub.reachedCursor(s)
	b := append(appendID(open(nil, "replay_end"), s.replay.id), `,"elements":`...)
	b = appendTail(strconv.AppendInt(b, int64(sent), 10), s.replay.until*int64(time.Second))
	s.conclude(&ending{code: websocket.CloseNormalClosure, reason: "the replay has come to its end", last: s.render(b, cursor)})
}

// steer changes how a replay goes on.
func (h *Hub) steer(s *subscriber, m *message) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.replay
	switch {
	case len(m.ID) > idMax:
		return h.refuseFaultsLocked(s, "", faults{longID(m.ID)})
	case p == nil:
		return h.refuseLocked(s, m.ID, "no replay runs: subscribe with from, or it has come to the present")
	case m.Speed == nil && m.Paused == nil:
		return h.refuseLocked(s, m.ID, "replay needs speed or paused")
	}
	speed, paused := p.speed, p.paused
	if m.Speed != nil {
		var wrong *fault
		if speed, wrong = speedOf(*m.Speed); wrong != nil {
			return h.refuseFaultsLocked(s, m.ID, faults{wrong})
		}
	}
	if m.Paused != nil {
		paused = *m.Paused
	}
	now := time.Now()
	if p.speed == 0 {
		p.second, p.at = float64(s.replayedTo()+1), now
	}
	p.set(speed, paused, now)
	if !h.drive(s, p) {
		p.speed = 0
		return h.refuseLocked(s, m.ID, tooManyReplays)
	}
	b := appendID(open(nil, "replaying"), m.ID)
	if speed > 0 {
		b = strconv.AppendFloat(append(b, `,"speed":`...), speed, 'g', -1, 64)
	}
	b = strconv.AppendBool(append(b, `,"paused":`...), paused)
	return s.answer(appendTail(b, s.replayedTo()*int64(time.Second)), h.reachedCursor(s))
}
