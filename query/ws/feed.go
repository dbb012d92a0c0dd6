package ws

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/fasthttp/websocket"

	"github.com/marketlog/marketlog/query"
)

// feed is what a subscriber has yet to be sent of a channel, or of the prices in delivery all: everything after a position,
// second by second. It has no queue: the next frame is made when the one before is written, from memory or, further back, from
// the store. So one that reads slowly falls behind in the log, and costs nobody anything.
type feed struct {
	hub    *Hub
	of     timeline
	budget string
	// at is what its subscriber was sent, offered what it may be sent.
	at, offered position
	// past reads the past; page is the part of it that is sent now, for which it holds a turn; reading means that a goroutine
	// reads the next one.
	past    pastReader
	page    page
	reading bool
	// joining means that a live frame is due once the present is reached; id is echoed in it, and sent counts entries.
	joining bool
	id      string
	sent    int
	ctx     context.Context
	cancel  context.CancelFunc
	// begins means that it has yet to be sent the present of its channel, unless silent; unplaced that it has no position yet.
	begins, silent, unplaced bool
	// place is where an unplaced one goes on, as it asked.
	place position
	asked *request
	ended bool
	// replay bounds how far it may be sent by now; nil: as far as it is offered.
	replay *replay
}

func (h *Hub) newFeed(of timeline, budget string, at, offered position) *feed {
	f := &feed{hub: h, of: of, budget: budget, at: at, offered: offered, past: pastReader{span: pageFirst}}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	if c, declared := of.(*channel); declared {
		c.join()
	}
	return f
}

// drop ends a feed, and gives back what it holds; its caller holds s.mu.
func (f *feed) drop() {
	f.cancel()
	if c, declared := f.of.(*channel); declared && !f.ended {
		c.leave()
	}
	f.ended = true
	f.give(f.page)
	f.page = page{}
}

// give gives back the turn of a page.
func (f *feed) give(p page) {
	if p.turn {
		f.hub.turns.give(f.budget)
	}
}

// again is the same feed for another selection; its caller holds s.mu.
func (f *feed) again() *feed {
	f.drop()
	next := f.hub.newFeed(f.of, f.budget, f.at, f.offered)
	next.joining, next.id, next.sent = f.joining, f.id, f.sent
	next.begins, next.silent, next.unplaced, next.place, next.asked = f.begins, f.silent, f.unplaced, f.place, f.asked
	next.replay = f.replay
	return next
}

// due means that there is something to write, or to look for.
func (f *feed) due() bool {
	switch {
	case f.reading || f.unplaced:
		return false
	case f.replay == nil:
		return f.joining || f.at.behind(f.offered)
	case f.replay.paused:
		return false
	case len(f.page.batches) > 0:
		return f.page.batches[0].second <= f.replay.reach(time.Now())
	}
	return f.at.behind(f.limit()) || f.joining && f.replay.until == 0 && !f.at.behind(f.offered)
}

// limit is up to where it may be sent now.
func (f *feed) limit() position {
	if f.replay == nil {
		return f.offered
	}
	reach := f.replay.reach(time.Now())
	limit := make(position, len(f.offered))
	for i := range limit {
		limit[i] = min(f.offered[i], reach)
	}
	return limit
}

// order is which of several feeds is served first: the one that is the furthest behind, and what comes all the time at last.
func (f *feed) order() int64 {
	if c, declared := f.of.(*channel); declared && c.offsets != nil {
		return math.MaxInt64
	}
	return f.at.oldest()
}

// due is the feed of a subscriber that is due and the furthest behind; nil if none is.
func (s *subscriber) due() (next *feed) {
	if s.feed != nil && s.feed.due() {
		next = s.feed
	}
	for _, f := range s.channels {
		if f.due() && (next == nil || f.order() < next.order()) {
			next = f
		}
	}
	return next
}

// has means that a feed is still one of a subscriber's.
func (s *subscriber) has(f *feed) bool { return s.feed == f || slices.Contains(s.channels, f) }

// pull makes the next frame of one of a subscriber's feeds; its caller holds s.mu, which is let go of meanwhile, and the claim.
// It returns nil where something else must be looked at first, or there is nothing.
func (h *Hub) pull(s *subscriber, f *feed) []byte {
	of := s.wanted(h.all)
	if !f.at.behind(f.offered) {
		f.joining = false
		s.enqueue(frame{own: s.render(liveFrame(f), h.reachedCursor(s))})
		f.sent, f.id = 0, ""
		s.joined(f)
		return nil
	}
	from := ""
	if of.everything {
		from = h.reachedCursor(s)
	}
	var b batch
	var cursor string
	if len(f.page.batches) > 0 {
		b, f.page.batches = f.page.batches[0], f.page.batches[1:]
		f.advance(b)
		cursor = h.reachedCursor(s)
		if len(f.page.batches) == 0 {
			f.turned()
		}
	} else {
		at, limit := f.at, f.limit()
		s.mu.Unlock()
		next, held := f.of.next(at, limit, of)
		s.mu.Lock()
		if !s.has(f) {
			return nil // another one was asked for meanwhile
		}
		if !held {
			h.fetch(s, f, of)
			return nil
		}
		b = next
		f.advance(b)
		if b.entries == nil {
			return nil
		}
		cursor = h.reachedCursor(s)
	}
	s.mu.Unlock()
	wire := h.feedFrame(s, f, from, cursor, b, of)
	s.mu.Lock()
	return wire
}

// advance moves a feed on.
func (f *feed) advance(b batch) {
	f.at = b.after
	f.sent += b.count()
}

// turned gives back the turn of a page that was sent.
func (f *feed) turned() {
	f.give(f.page)
	f.at, f.page = f.page.until, page{}
}

// fetch reads the next page of a feed on a goroutine of its own, which retire waits for; its caller holds s.mu.
func (h *Hub) fetch(s *subscriber, f *feed, of wanted) {
	if !f.of.stored() {
		at := f.at
		f.at = f.of.after(at, f.offered)
		s.enqueue(frame{own: s.render(gapFrame(f.id, f.of.name(), gapTooOld, f.of.oldest(at), f.of.second(f.at)), h.reachedCursor(s))})
		if c, declared := f.of.(*channel); declared && c.states() {
			f.begins, f.at = true, f.offered
			s.begin(h)
		}
		return
	}
	f.reading = true
	s.fetches++
	at := f.at
	go func() {
		read, err := h.nextPage(f, at, of)
		s.mu.Lock()
		s.fetches--
		s.released.Broadcast()
		current := s.has(f) && s.end == nil && !s.lost
		f.reading = false
		switch {
		case err != nil && current:
			h.lag(s, err)
		case err != nil:
		case !current:
			f.give(read)
		default:
			if read.from > 0 {
				f.skip(s, read.from-1, gapTooOld)
			}
			if f.replay != nil && f.replay.speed > 0 {
				f.give(read) // it is sent over a long time, and others wait
				read.turn = false
			}
			f.page = read
			if len(read.batches) == 0 {
				f.turned()
			}
		}
		claimed := s.claimed()
		s.mu.Unlock()
		if claimed {
			h.flush(s)
		}
	}()
}

// nextPage waits for its turn and reads; the turn is kept with the page. Where memory has come to hold what is asked for, it
// does neither.
func (h *Hub) nextPage(f *feed, at position, of wanted) (page, error) {
	patience := time.Now().Add(h.cfg.StoreWait)
	if err := f.of.awaitFilled(f.ctx); err != nil {
		return page{}, err
	}
	if f.of.holds(at, f.of.heads()) {
		return page{until: at}, nil
	}
	if err := h.turns.take(f.ctx, f.budget); err != nil {
		return page{}, err
	}
	if soonest := time.Now().Add(leastPatience); patience.Before(soonest) {
		patience = soonest // it waited for others
	}
	read, err := f.of.read(f.ctx, patience, &f.past, at, of)
	if err != nil {
		h.turns.give(f.budget)
	}
	read.turn = err == nil
	return read, err
}

// leastPatience is how long a reader whose turn has come waits for the store at least.
const leastPatience = time.Second

// skip announces a gap up to a second, and goes on after it; its caller holds s.mu.
func (f *feed) skip(s *subscriber, second int64, reason string) {
	since := f.at.oldest()
	f.at = f.at.upTo(second, f.offered)
	s.enqueue(frame{own: s.render(gapFrame(f.id, f.of.name(), reason, since, second), f.hub.reachedCursor(s))})
	if s.replay != nil {
		s.replay.skip(s.replayedTo(), time.Now())
	}
}

// codeLagging is the code of an error where the past cannot be read now.
const codeLagging = "LAGGING"

// lag sends a subscriber away whose past the store cannot read now; its caller holds s.mu.
func (h *Hub) lag(s *subscriber, why error) {
	if !errors.Is(why, context.Canceled) {
		h.deps.Log.Warn("the past of a stream cannot be read", "error", why)
	}
	b := append(open(nil, "error"), `,"error":{"code":"`+codeLagging+`","message":"the store has not got the prices after the cursor yet; come back with it"}`...)
	b = appendTail(b, h.deps.Now().UnixNano())
	s.conclude(&ending{code: websocket.CloseTryAgainLater, reason: "LAGGING: come back with the cursor", last: s.render(b, "")})
}

// Reasons of a gap.
const (
	gapTooOld   = "too_old"
	gapOtherLog = "other_log"
)

func appendID(b []byte, id string) []byte {
	if id == "" {
		return b
	}
	return appendText(append(b, `,"id":`...), id)
}

func appendTime(b []byte, name string, second int64) []byte {
	b = append(append(append(b, `,"`...), name...), `":"`...)
	return append(append(b, query.FormatTime(second*int64(time.Second))...), '"')
}

// appendTail ends a message that has no number.
func appendTail(b []byte, at int64) []byte {
	return append(append(append(b, `,"timestamp":"`...), query.FormatTime(at)...), `"}`...)
}

// appendChannel names the channel that a message is of; those of the prices have none.
func appendChannel(b []byte, name string) []byte {
	if name == "" {
		return b
	}
	return appendText(append(b, `,"channel":`...), name)
}

// gapFrame reports from when to when nothing was sent of a channel: after one second, up to another.
func gapFrame(id, channel, reason string, since, until int64) []byte {
	b := appendChannel(appendID(open(nil, "gap"), id), channel)
	b = append(append(append(b, `,"reason":"`...), reason...), '"')
	if since > 0 {
		b = appendTime(b, "since", since)
	}
	return appendTail(appendTime(b, "until", until), until*int64(time.Second))
}

// liveFrame reports that a feed has come to the present.
func liveFrame(f *feed) []byte {
	b := appendChannel(appendID(open(nil, "live"), f.id), f.of.name())
	counted := `,"prices":`
	if f.of.name() != "" {
		counted = `,"elements":`
	}
	b = strconv.AppendInt(append(b, counted...), int64(f.sent), 10)
	return appendTail(b, f.of.second(f.at)*int64(time.Second))
}

// feedFrame is a batch as it goes over the wire, after which a reader has a cursor. Readers of everything who were sent the
// same share it.
func (h *Hub) feedFrame(s *subscriber, f *feed, from, cursor string, b batch, of wanted) []byte {
	if !of.everything || cursor == "" || from == "" {
		return s.render(f.of.encode(b), cursor)
	}
	return s.formed(h.shared.frame(f.of.name()+" "+from+" "+cursor, func() *encoded { return encodeWith(f.of.encode(b), cursor) }))
}

// sharedMost bounds the frames of delivery all that are kept for others: some minutes of them.
const sharedMost = 128

// sharedFrames are frames that readers of everything share, by what they hold. Safe for concurrent use.
type sharedFrames struct {
	mu    sync.Mutex
	made  map[string]*encoded
	order []string // the oldest first
}

// frame returns what was made under a key, or makes it.
func (f *sharedFrames) frame(key string, encode func() *encoded) *encoded {
	f.mu.Lock()
	defer f.mu.Unlock()
	if e := f.made[key]; e != nil {
		return e
	}
	if len(f.order) == sharedMost {
		delete(f.made, f.order[0])
		f.order = append(f.order[:0], f.order[1:]...)
	}
	e := encode()
	f.made[key], f.order = e, append(f.order, key)
	return e
}

// resumedFrame reports from where to where what was missed of a channel comes now: from one cursor to another.
func resumedFrame(id, channel, fromCursor, toCursor string, from, to int64, source string) []byte {
	b := appendChannel(appendID(open(nil, "resumed"), id), channel)
	b = fmt.Appendf(b, `,"from":%q,"to":%q,"seconds":%d,"source":%q`, fromCursor, toCursor, max(0, to-from), source)
	return appendTail(b, to*int64(time.Second))
}
