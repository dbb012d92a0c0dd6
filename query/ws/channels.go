package ws

import (
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

// channelPrices is the channel that a client has which names none.
const channelPrices = "prices"

// channelNames are those that clients can ask for.
func (h *Hub) channelNames() []string {
	names := []string{channelPrices}
	for _, c := range h.channels {
		names = append(names, c.Channel.Name)
	}
	return names
}

// channelNames are those that a subscriber is sent; its caller holds s.mu.
func (s *subscriber) channelNames() (names []string) {
	if !s.priceless {
		names = append(names, channelPrices)
	}
	for _, f := range s.channels {
		names = append(names, f.of.name())
	}
	return names
}

// appendNames writes names as a list.
func appendNames(b []byte, names []string) []byte {
	b = append(b, '[')
	for i, name := range names {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendText(b, name)
	}
	return append(b, ']')
}

// nameChannels reads the channels of a request.
func (h *Hub) nameChannels(r *request, names []string) *fault {
	r.chooses, r.priceless = true, !slices.Contains(names, channelPrices)
	for _, name := range names {
		if name == channelPrices {
			continue
		}
		i := slices.IndexFunc(h.channels, func(c *channel) bool { return c.Channel.Name == name })
		if i < 0 {
			return h.unknownChannel(name)
		}
		if !slices.Contains(r.channels, h.channels[i]) {
			r.channels = append(r.channels, h.channels[i])
		}
	}
	switch {
	case len(r.channels) > 0 && r.unsubscribe:
		return faulty("channels", "of unsubscribe may only hold prices; subscribe with the channels that remain")
	case len(r.channels) > 0 && r.resume:
		return faulty("channels", "of resume may only hold prices: it goes on with those that are subscribed")
	case r.unsubscribe || r.resume:
		r.chooses, r.priceless = false, false
	}
	slices.SortFunc(r.channels, func(a, b *channel) int { return int(a.code()) - int(b.code()) })
	r.extended = r.extended || len(r.channels) > 0
	return nil
}

// suggestMost is how many letters may be wrong in a name for another one to be suggested.
const suggestMost = 2

// longestName bounds what is compared and repeated of a name.
const longestName = 64

func (h *Hub) unknownChannel(name string) *fault {
	known := h.channelNames()
	name = strings.ToValidUTF8(name[:min(len(name), longestName)], "�")
	nearest, least := "", suggestMost+1
	for _, other := range known {
		n := levenshtein.ComputeDistance(strings.ToLower(name), other)
		if kind, _, several := strings.Cut(other, ":"); several && strings.EqualFold(name, kind) {
			n = 1 // the first of its kind
		}
		if n < least {
			nearest, least = other, n
		}
	}
	f := faulty("channels", "has no %q: there are %s", name, strings.Join(known, ", "))
	if nearest != "" {
		f.candidates, f.hint = []string{nearest}, "did you mean "+nearest+"?"
		f.what += "; " + f.hint
	}
	return f
}

// assign gives a subscriber the channels that it named, each from now on unless it has it already; its caller holds h.mu and
// s.mu. It is true where prices begin.
func (h *Hub) assign(s *subscriber, r *request) (begins bool) {
	if !r.chooses {
		return false
	}
	begins = s.priceless && !r.priceless
	if s.priceless = r.priceless; s.priceless {
		s.starve()
		s.settle()
	}
	if begins {
		s.reached = h.position
	}
	before := s.channels
	s.channels = nil
	for _, c := range r.channels {
		i := slices.IndexFunc(before, func(f *feed) bool { return f.of == timeline(c) })
		if i >= 0 {
			s.channels = append(s.channels, before[i])
			continue
		}
		heads := c.heads()
		from := heads
		if c.FromLast && !r.silent {
			from = c.line.ring.beforeLast()
		}
		f := h.newFeed(c, s.caller.Grant.Budget, from, heads)
		f.begins, f.silent, f.unplaced = c.onDemand() || c.states(), r.silent, c.onDemand()
		s.channels = append(s.channels, f)
	}
	for _, f := range before {
		if !slices.Contains(s.channels, f) {
			f.drop()
		}
	}
	if len(s.channels) > 0 {
		h.followers[s] = struct{}{}
	} else {
		delete(h.followers, s)
	}
	return begins
}

// renew begins the feeds of channels again where another selection was asked for: pages hold what the one before wanted.
func (h *Hub) renew(s *subscriber, r *request) {
	if r.resume {
		return
	}
	for i, f := range s.channels {
		s.channels[i] = f.again()
	}
}

// goOnChannels begins the feeds of those channels that a cursor has a place in; the others begin now.
func (h *Hub) goOnChannels(s *subscriber, r *request) bool {
	for i, f := range s.channels {
		at, placed := r.places[f.of.code()]
		if !placed {
			continue
		}
		if f.unplaced {
			f.place, f.asked, f.replay = at, r, r.replay
			continue
		}
		heads := f.of.heads()
		if f.of.ahead(at) {
			return h.refuseLocked(s, r.id, "cursor lies ahead of the log; leave it out")
		}
		f.drop()
		f = h.newFeed(f.of, f.budget, at, heads)
		f.replay = r.replay
		s.channels[i] = f
	}
	for _, f := range s.channels {
		if _, placed := r.places[f.of.code()]; placed && !f.unplaced && !h.resumed(s, f, r) {
			return false
		}
	}
	return true
}

// gapOfAll reports since when nothing is sent of what a cursor has a place in, and begins with the present.
func (h *Hub) gapOfAll(s *subscriber, r *request, of selection) bool {
	gaps := 0
	for i, f := range s.channels {
		if at, placed := r.places[f.of.code()]; placed {
			gaps++
			f.drop()
			heads := f.of.heads()
			s.channels[i] = h.newFeed(f.of, f.budget, f.of.begin(at, heads), heads)
		}
	}
	more := r.from != nil && !s.priceless
	for _, f := range s.channels {
		at, placed := r.places[f.of.code()]
		if !placed {
			continue
		}
		cursor := ""
		if gaps--; gaps == 0 && !more {
			cursor = h.reachedCursor(s) // whoever is cut off before has what it came with
		}
		if !s.answer(gapFrame(r.id, f.of.name(), gapOtherLog, f.of.oldest(at), f.of.second(f.at)), cursor) {
			return false
		}
	}
	if !more {
		return true
	}
	return h.gap(s, r.id, gapOtherLog, r.from, of)
}

// identityOf is the identity of the logs that a cursor has places in.
func (h *Hub) identityOf(r *request) (id identity) {
	if r.places == nil {
		return h.prices.identity()
	}
	if r.from != nil {
		id.join(h.prices.identity())
	}
	for _, c := range h.channels {
		if r.places[c.code()] != nil {
			id.join(c.identity())
		}
	}
	return id
}

// partitionsOf is how many partitions a channel has, by its code; 0 where there is none.
func (h *Hub) partitionsOf(code byte) int {
	if code == h.prices.code() {
		return h.prices.partitions()
	}
	for _, c := range h.channels {
		if c.code() == code && !c.states() {
			return c.partitions()
		}
	}
	return 0
}

// notBegun is why nobody can follow a channel yet.
func (c *channel) notBegun() string {
	return "the channel " + c.name() + " cannot begin: a partition of " + c.Topic + " has not stated yet how far it is"
}
