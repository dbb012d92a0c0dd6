// Package ws streams prices over WebSocket. A client that sends nothing gets a welcome, a snapshot
// and, about once a second of log time in which something changed, one frame of changes that is
// encoded and deflated once for all such clients. Per coin, timestamps never go back and every
// change arrives: a client that reads slowly gets its changes merged per coin, never skipped and
// never at the cost of another client, and is closed when it stops reading. Each frame carries the
// epoch of the hub that made it and a sequence number that never goes back within it.
//
// Clients that ask for it follow other channels too, and every price: each element comes once over any number of connections,
// whichever replica serves them, or a gap says from when to when it does not. A channel is declared by a query.Channel.
package ws

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fasthttp/websocket"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// DayAgo reports what a coin cost 24 hours before a time (Unix nanoseconds); false where that is not
// known. It is asked once a change and must not wait.
type DayAgo interface {
	DayAgo(coin schemas.Coin, at int64) (float64, bool)
}

// Deps is what a hub is put together from.
type Deps struct {
	// PriceCache holds the prices; it must be given each record before the hub is.
	Prices *views.PriceCache
	// Catalog reports which coin a name means.
	Catalog *views.Catalog
	// DayAgo adds the change over 24 hours to each price; nil leaves it out.
	DayAgo DayAgo
	// Past reads what memory holds no longer; nil: then a client that was away for longer receives a gap.
	Past Past
	// Identity is Past's, as it was at the start.
	Identity string
	// Channels are those beside the prices.
	Channels []query.Channel
	// Waiting is why prices cannot be sent yet; empty when they can.
	Waiting func() string
	// Version of the service, for the document of the stream.
	Version string
	// Now is the clock by which ages are taken.
	Now     func() time.Time
	Metrics prometheus.Registerer
	Log     *slog.Logger
}

// Hub sends every open socket what changed. Safe for concurrent use.
type Hub struct {
	cfg   Config
	deps  Deps
	epoch string
	// all are the coins of one who did not choose.
	all     selection
	metrics *metrics
	// prices, channels, turns and shared are what feeds are sent from.
	prices   *priceLine
	channels []*channel
	turns    *turns
	shared   *sharedFrames
	// began and whole each have one place: a second of log time began in one partition of prices.v1,
	// and has begun in all. So have moved and together: a channel has something new, in one partition of its topic or in all.
	began, whole, moved, together chan struct{}
	// connections counts sockets, those that sent no key yet too; paced counts replays with a speed.
	connections, paced atomic.Int64

	mu       sync.Mutex
	draining bool
	sessions sync.WaitGroup
	// subs are in about the order in which they came, which is also that of what the kernel holds for
	// each: in another order a crowd costs a fifth more.
	subs []*subscriber
	// followers are those that have channels.
	followers map[*subscriber]struct{}
	// due are those whom Run's goroutine flushes next; it alone uses it.
	due []*subscriber
	// sockets are all that are open, also those of clients that sent no key yet.
	sockets map[net.Conn]struct{}
	// budgets counts the sockets of each budget, strangers those without a key by address, strangersAll of all addresses.
	budgets      map[string]int
	strangers    map[netip.Addr]int
	strangersAll int
	dirty        selection
	// known is, by rank-1, what subscribers were last sent of each coin.
	known []*change
	nows  []int64
	clock struct {
		second, ticked int64
	}
	at        int64
	seq       uint64
	simulated bool
	// position is that of one that was sent all rounds; marks are those of earlier ones, the oldest first.
	position position
	marks    []mark
	// snapshot is reported, encoded at the first need after a tick.
	snapshot *encoded
}

// NewHub makes a hub; Run starts it and Mount gives it a route.
func NewHub(cfg Config, deps Deps) (*Hub, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configuring the stream: %w", err)
	}
	m, err := newMetrics(deps.Metrics)
	if err != nil {
		return nil, fmt.Errorf("registering the stream's metrics: %w", err)
	}
	topic, err := schemas.TopicNamed(schemas.TopicPrices)
	if err != nil {
		return nil, err
	}
	coins := len(deps.Prices.Coins().All())
	h := &Hub{cfg: cfg, deps: deps, epoch: rand.Text()[:12], all: everything(deps.Prices), metrics: m,
		turns: newTurns(), shared: &sharedFrames{made: map[string]*encoded{}}, position: make(position, topic.Partitions),
		began: make(chan struct{}, 1), whole: make(chan struct{}, 1), moved: make(chan struct{}, 1), together: make(chan struct{}, 1), followers: map[*subscriber]struct{}{},
		sockets: map[net.Conn]struct{}{}, strangers: map[netip.Addr]int{}, budgets: map[string]int{},
		dirty: newSelection(coins), known: make([]*change, coins), nows: make([]int64, topic.Partitions)}
	h.prices = newPriceLine(h, int(topic.Partitions), coins, cfg.RingBytes)
	if deps.Past != nil {
		h.prices.store = deps.Past
	}
	id := identityOf(deps.Identity)
	h.prices.id.Store(&id)
	for _, declared := range deps.Channels {
		partitions := 1
		if declared.Topic != "" {
			topic, err := schemas.TopicNamed(declared.Topic)
			if err != nil {
				return nil, fmt.Errorf("declaring the channel %s: %w", declared.Name, err)
			}
			partitions = int(topic.Partitions)
		}
		h.channels = append(h.channels, h.newChannel(declared, partitions))
	}
	// What the price cache was filled with is new to all.
	for _, coin := range deps.Prices.Coins().All() {
		h.dirty.add(coin.Rank)
	}
	h.prices.seed(deps.Prices)
	return h, nil
}

// ApplyTo takes records of a topic that channels are read from, one at a time.
func (h *Hub) ApplyTo(topic string) func(views.TailRecord) error {
	var of []*channel
	for _, c := range h.channels {
		if c.Topic == topic && !c.onDemand() {
			of = append(of, c)
		}
	}
	return func(rec views.TailRecord) error {
		if rec.Marked == nil {
			return nil
		}
		var moved, together bool // signalled once all channels have the record: what they send of it then leaves at once
		for _, c := range of {
			read, err := c.Read(rec.Partition, rec.Marked)
			if err != nil {
				return fmt.Errorf("reading %s/%d at %d for the channel %s: %w", topic, rec.Partition, rec.Offset, c.Channel.Name, err)
			}
			if !c.apply(rec.Partition, rec.Offset, read) {
				continue
			}
			heads := c.heads()
			moved, together = true, together || heads.oldest() == heads.newest()
		}
		switch {
		case together:
			signal(h.together)
		case moved:
			signal(h.moved)
		}
		return nil
	}
}

// Apply takes one record of prices.v1, after the price cache has it.
func (h *Hub) Apply(rec views.TailRecord) error {
	record, ok := rec.Marked.(*eventsv1.PriceRecord)
	if !ok {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if price := record.GetPrice(); price != nil {
		if coin, known := h.deps.Prices.Coins().ByID(price.CoinId); known {
			h.dirty.add(coin.Rank)
			h.prices.apply(rec.Partition, coin.Rank, price)
		}
	}
	// The prices of a second come before the pulse that ends it.
	pulse := record.GetPulse()
	if pulse == nil || int(rec.Partition) >= len(h.nows) || pulse.Now <= h.nows[rec.Partition] {
		return nil
	}
	h.nows[rec.Partition] = pulse.Now
	h.prices.ring.pulse(rec.Partition, pulse.Now/int64(time.Second), rec.Offset, false)
	if second := pulse.Now / int64(time.Second); second > h.clock.second {
		h.clock.second = second
		signal(h.began)
	}
	if h.clock.second > h.clock.ticked && h.allReached(h.clock.second) {
		signal(h.whole)
	}
	return nil
}

func (h *Hub) allReached(second int64) bool {
	for _, now := range h.nows {
		if now/int64(time.Second) < second {
			return false
		}
	}
	return true
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Run reports what changes until the context ends, then sends every client away.
func (h *Hub) Run(ctx context.Context) error {
	housekeeping := time.NewTicker(time.Second)
	defer housekeeping.Stop()
	var past sync.WaitGroup
	past.Go(func() { h.keepIdentity(ctx) })
	past.Go(func() { h.fillRing(ctx) })
	for _, c := range h.channels {
		if c.onDemand() {
			past.Go(func() { h.attend(ctx, c) })
		}
	}
	defer past.Wait()
	var due, gathered <-chan time.Time
	var last time.Time
	tick := func() {
		if wait := h.cfg.Spacing - time.Since(last); wait > 0 {
			due = time.After(wait)
			return
		}
		due, last = nil, time.Now()
		h.tick()
	}
	for {
		select {
		case <-ctx.Done():
			h.drain()
			return ctx.Err()
		case <-h.began:
			if due == nil {
				due = time.After(h.cfg.Gather)
			}
		case <-h.whole:
			tick()
		case <-due:
			tick()
		case <-h.moved:
			if gathered == nil {
				gathered = time.After(h.cfg.Gather)
			}
		case <-gathered:
			gathered = nil
			h.offerChannels()
		case <-h.together:
			gathered = nil
			h.offerChannels()
		case now := <-housekeeping.C:
			h.housekeep(now)
			if due == nil && h.straggled() {
				tick()
			}
		}
	}
}

// straggled means that a partition came to a second after the tick that reported the others' of it, and no newer one has begun.
func (h *Hub) straggled() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.clock.ticked == h.clock.second && h.position.behind(h.prices.ring.heads())
}

// tick reports what changed since the last one.
func (h *Hub) tick() {
	if h.deps.Waiting() != "" {
		// The backlog is being read. A snapshot made in the middle of it would take the first who joins
		// back before what the earlier process has sent.
		return
	}
	h.mu.Lock()
	h.clock.ticked = h.clock.second
	r := h.collect(h.dirty)
	clear(h.dirty)
	h.due = h.broadcast(r, h.due[:0])
	h.mu.Unlock()
	h.pass(h.due)
	clear(h.due)
}

// offerChannels has what is new in channels sent to those who follow them.
func (h *Hub) offerChannels() {
	h.mu.Lock()
	h.due = h.due[:0]
	for s := range h.followers {
		if s.offerChannels(h) {
			h.due = append(h.due, s)
		}
	}
	h.mu.Unlock()
	h.pass(h.due)
	clear(h.due)
}

// collect finds what is new of some coins, by rank.
func (h *Hub) collect(of selection) *round {
	h.at = max(h.at, h.deps.Prices.Now())
	h.position = h.prices.ring.heads()
	now := h.deps.Now()
	r := &round{}
	for i := range h.known {
		if !of.has(i + 1) {
			continue
		}
		e := h.deps.Prices.Entry(h.deps.Prices.Coins().All()[i])
		if e == nil {
			continue
		}
		before := h.known[i]
		if before != nil && e.Price.Time < before.entry.Price.Time {
			continue // a subscriber's time never goes back, whatever is written
		}
		c := &change{entry: e, stale: h.deps.Prices.Freshness(e, now).Stale, previous: e.Price.Price}
		h.simulated = e.Price.Simulated
		if before != nil {
			c.previous = before.entry.Price.Price
		}
		if h.deps.DayAgo != nil {
			c.dayAgo, _ = h.deps.DayAgo.DayAgo(e.Coin, e.Price.Time)
		}
		if before == nil || differs(before.entry.Price, e.Price) {
			r.changes = append(r.changes, c)
		}
		if was := before != nil && before.stale; was != c.stale {
			r.states = append(r.states, &state{entry: e, stale: c.stale, reason: reason(c)})
		}
		h.known[i] = c
		h.snapshot = nil
	}
	return r
}

// differs reports whether a price has changed: the one that is written each minute, only to confirm
// that it still holds, does not.
func differs(before, after *eventsv1.Price) bool {
	return before.Price != after.Price || before.Volume24H != after.Volume24H || before.Source != after.Source
}

// reasonSilent is why a price is stale whose fold has written nothing for long.
const reasonSilent = "log_silent"

func reason(c *change) string {
	if !c.stale {
		return ""
	}
	if why := c.entry.Latest.Reason; why != "" {
		return why
	}
	return reasonSilent
}

// broadcast encodes a round once, offers it to all, and appends to due the subscribers that its caller must flush.
func (h *Hub) broadcast(r *round, due []*subscriber) []*subscriber {
	r.stamp = stamp{epoch: h.epoch, seq: h.seq, at: h.at, cursor: h.cursor(h.position), position: h.position}
	r.position = h.position
	if len(r.changes) > 0 || len(r.states) > 0 {
		h.encode(r)
	}
	h.mark()
	merged := 0
	for _, s := range h.subs {
		claimed, conflated := s.offer(r, h.all)
		if claimed {
			due = append(due, s)
		}
		if conflated {
			merged++
		}
	}
	h.metrics.sent(len(r.frames), merged)
	return due
}

// encode makes the frames that most subscribers share. Each has a number of its own, so that one
// who misses a frame sees it.
func (h *Hub) encode(r *round) {
	var lost, regained []*state
	for _, st := range r.states {
		switch {
		case !h.all.has(st.entry.Coin.Rank):
		case st.stale:
			lost = append(lost, st)
		default:
			regained = append(regained, st)
		}
	}
	changes := make([]*change, 0, len(r.changes))
	for _, c := range r.changes {
		if h.all.has(c.entry.Coin.Rank) {
			changes = append(changes, c)
		}
	}
	share := func(cursor string, render func(stamp) []byte) {
		h.seq++
		r.stamp.seq = h.seq
		r.frames = append(r.frames, frame{shared: encodeWith(render(r.stamp), cursor)})
	}
	if len(regained) > 0 {
		share("", func(s stamp) []byte { return stateFrame(typeFresh, regained, s) })
	}
	if len(changes) > 0 {
		share(r.stamp.cursor, func(s stamp) []byte { return updateFrame(changes, s) })
	}
	if len(lost) > 0 {
		share("", func(s stamp) []byte { return stateFrame(typeStale, lost, s) })
	}
	if len(r.frames) == 0 {
		// Only coins that must be asked for changed.
		h.seq++
		r.stamp.seq = h.seq
	}
}

// housekeep broadcasts which prices grew stale without a record, closes the sockets of keys that ended, and
// pings.
func (h *Hub) housekeep(now time.Time) {
	h.mu.Lock()
	h.due = h.due[:0]
	if h.seq > 0 {
		if r := h.aged(); len(r.states) > 0 {
			h.due = h.broadcast(r, h.due)
		}
	}
	valid := map[string]bool{}
	for _, s := range h.subs {
		id := s.caller.Grant.KeyID
		ok, known := valid[id]
		if !known {
			ok = s.gate.Valid(s.caller, now)
			valid[id] = ok
		}
		if !ok {
			s.finish(closeKey, "the key has ended")
			if s.claim() {
				h.due = append(h.due, s)
			}
			continue
		}
		if s.pingIfDue(now, h.pingEvery(s)) || s.beatIfDue(now, h) {
			h.due = append(h.due, s)
		}
	}
	h.mu.Unlock()
	h.pass(h.due)
	clear(h.due)
}

// aged finds the prices that grew stale, or fresh, by the clock alone.
func (h *Hub) aged() *round {
	now := h.deps.Now()
	r := &round{}
	for i, c := range h.known {
		if c == nil || h.dirty.has(i+1) {
			continue
		}
		if stale := h.deps.Prices.Freshness(c.entry, now).Stale; stale != c.stale {
			c = &change{entry: c.entry, stale: stale, dayAgo: c.dayAgo, previous: c.previous}
			h.known[i], h.snapshot = c, nil
			r.states = append(r.states, &state{entry: c.entry, stale: stale, reason: reason(c)})
		}
	}
	return r
}

// drain sends every client away and waits until they went, or are cut off.
func (h *Hub) drain() {
	h.mu.Lock()
	h.draining = true
	h.due = h.due[:0]
	for _, s := range h.subs {
		s.finish(websocket.CloseServiceRestart, "the server restarts: come back after a random delay")
		if s.claim() {
			h.due = append(h.due, s)
		}
	}
	h.mu.Unlock()
	h.pass(h.due)
	gone := make(chan struct{})
	go func() { h.sessions.Wait(); close(gone) }()
	timer := time.NewTimer(h.cfg.Drain)
	defer timer.Stop()
	select {
	case <-gone:
		return
	case <-timer.C:
	}
	h.mu.Lock()
	for socket := range h.sockets {
		_ = socket.Close()
	}
	h.mu.Unlock()
	<-gone
}
