package ws

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/marketlog/marketlog/query"
)

const (
	// identifyEvery is how often the hub looks whether the view of the log was replaced.
	identifyEvery = 10 * time.Second
	// fillSeconds is how much of the log before the start is read into memory, for all who come back after a restart at once.
	fillSeconds = 300
	// fillSpan is how many seconds of it are read at a time.
	fillSpan = 60
	// fillPause is between two attempts.
	fillPause = 500 * time.Millisecond
	// marksMost bounds the rounds that a client can go on from by their number.
	marksMost = 1_024
)

// cursor is how a client receives a position in the prices.
func (h *Hub) cursor(p position) string { return cursorOf(h.prices.identity(), p) }

// cursorOf is the cursor of a subscriber that was sent the prices up to a position; its caller holds s.mu.
func (h *Hub) cursorOf(s *subscriber, at position) string {
	if len(s.channels) == 0 {
		return h.cursor(at)
	}
	spots := make([]spot, 0, len(s.channels)+1)
	if !s.priceless {
		spots = append(spots, spot{h.prices.code(), h.prices.identity(), at})
	}
	for _, f := range s.channels {
		at := f.at
		if f.unplaced {
			at = f.place // it has not begun yet to go on
		}
		if c, declared := f.of.(*channel); at == nil || declared && c.states() {
			continue
		}
		spots = append(spots, spot{f.of.code(), f.of.identity(), at})
	}
	return cursorOfAll(spots)
}

// mark is the position after the round with a number.
type mark struct {
	seq uint64
	at  position
}

// mark remembers the position of the last round.
func (h *Hub) mark() {
	switch n := len(h.marks); {
	case n > 0 && h.marks[n-1].seq == h.seq:
		return // it had no frame: one who goes on from here is sent nothing twice that changed
	case n == marksMost:
		h.marks = append(h.marks[:0], h.marks[1:]...)
	}
	h.marks = append(h.marks, mark{h.seq, h.position})
}

// positionOf is the position after the newest round up to a number; false if it is remembered no longer.
func (h *Hub) positionOf(seq uint64) (position, bool) {
	for i := len(h.marks) - 1; i >= 0; i-- {
		if h.marks[i].seq <= seq {
			return h.marks[i].at, true
		}
	}
	return nil, false
}

// keepIdentity looks for another log, or another view of it, until the context ends.
func (h *Hub) keepIdentity(ctx context.Context) {
	look := time.NewTicker(identifyEvery)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
		if h.deps.Past != nil {
			h.identify(ctx, &h.prices.id, h.deps.Past, identityOf, "prices")
		}
		for _, c := range h.channels {
			if c.Store != nil {
				h.identify(ctx, &c.line.id, c.Store, c.identityOf, c.Channel.Name)
			}
		}
	}
}

func (h *Hub) identify(ctx context.Context, known *atomic.Pointer[identity], store query.ChannelStore, of func(string) identity, channel string) {
	name, err := store.Identity(ctx)
	if err != nil {
		return // it is asked again; what cannot be read is not sent meanwhile
	}
	if id := of(name); id != *known.Load() {
		h.deps.Log.Info("the view of a channel was replaced: cursors given before are of another one", "channel", channel)
		known.Store(&id)
	}
}

// fillRing reads what the store had at the start into memory, as soon as that can be had.
func (h *Hub) fillRing(ctx context.Context) {
	if h.deps.Past == nil {
		close(h.prices.filled)
		return
	}
	try := time.NewTicker(fillPause)
	defer try.Stop()
	for !h.fill(ctx) {
		select {
		case <-ctx.Done():
			return
		case <-try.C:
		}
	}
	close(h.prices.filled)
}

// fill puts before what is in memory what the store has before it; false if that cannot be had yet.
func (h *Hub) fill(ctx context.Context) bool {
	if !h.prices.ring.heads().whole() {
		return false // some partition has reported nothing yet
	}
	until, err := h.prices.awaitStore(ctx, time.Now().Add(h.cfg.StoreWait), make(position, len(h.nows)))
	if err != nil {
		return false
	}
	first := until.oldest() - fillSeconds
	oldest, err := h.deps.Past.Oldest(ctx, time.Unix(until.newest(), 0))
	if err != nil {
		return false
	}
	first = max(first, oldest-1)
	after := make(position, len(until))
	for i := range after {
		after[i] = min(first, until[i])
	}
	older := make([][]sealed[pricePoint], len(until))
	before := make([]float64, len(h.known))
	for from := first; from < until.newest(); from += fillSpan {
		to := min(from+fillSpan, until.newest())
		err := h.deps.Past.Prices(ctx, from, to, nil, fillSpan*len(h.known)+1, func(p PastPrice) {
			coin, known := h.deps.Prices.Coins().ByID(p.CoinID)
			if !known || int(p.Partition) >= len(until) || p.Second > until[p.Partition] {
				return
			}
			seconds := older[p.Partition]
			if n := len(seconds); n == 0 || seconds[n-1].second != p.Second {
				seconds = append(seconds, sealed[pricePoint]{second: p.Second})
			}
			last := &seconds[len(seconds)-1]
			last.entries = append(last.entries, h.prices.fromStore(p, coin.Rank, before))
			older[p.Partition] = seconds
		})
		if err != nil {
			return false
		}
	}
	h.prices.ring.prepend(after, older, until)
	return true
}

// pingSilent is how often one whose connection shows nothing of who is there is written to.
const pingSilent = 15 * time.Second

// pingEvery is how often a subscriber is pinged.
func (h *Hub) pingEvery(s *subscriber) time.Duration {
	if s.form != formFrames {
		return min(pingSilent, h.cfg.Idle/3)
	}
	return h.cfg.Idle / 3
}

// beatIfDue reports whether its caller is to write a heartbeat: nothing was written for as long as the client asked. The
// cursor in it is that of all that it was sent; what it did not select is passed by.
func (s *subscriber) beatIfDue(now time.Time, h *Hub) (claimed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.heartbeat == 0 || s.end != nil || s.lost || now.Sub(s.wrote) < s.heartbeat || s.waiting() > 0 || s.due() != nil {
		return false
	}
	s.wrote = now
	s.enqueue(frame{own: s.render(appendTail(open(nil, "heartbeat"), h.logTime()), h.reachedCursor(s))})
	return s.claimed()
}
