package venues

import (
	"container/heap"
	"context"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
	"github.com/marketlog/marketlog/producers/simulator/market"
	"github.com/marketlog/marketlog/producers/simulator/provider"
)

// Exchange is one simulated venue at work. Its exported methods are for the venue's side.
type Exchange struct {
	venue   *Venue
	markets []*market.Market
	byName  map[string]*market.Market
	// leaving are the markets that are off the list while delists is set, and that the list calls halted while halts is; staying all others.
	leaving        map[*market.Market]bool
	staying        []*market.Market
	delists, halts atomic.Bool
	clock          provider.Clock
	// stream and rest are the base URLs.
	stream, rest string
	routes       http.Handler
	requests     *provider.Bucket
	connects     *provider.Bucket

	mu sync.Mutex
	// sent is the time up to which all frames were sent.
	sent    time.Time
	conns   map[*Conn]bool
	feeds   map[*market.Market]*feed
	due     schedule
	faults  provider.Faults
	random  uint64
	counter provider.Counter
	frame   []byte
}

// feed is a market that somebody subscribed to, with the next moments of its rhythms.
type feed struct {
	market *market.Market
	topics map[string]map[*Conn]bool // by channel
	events market.Cursor
	order  int64
	place  int
}

// schedule is a heap of feeds by the time of their next event.
type schedule []*feed

func (s schedule) Len() int           { return len(s) }
func (s schedule) Less(i, j int) bool { return s[i].order < s[j].order }
func (s schedule) Swap(i, j int) {
	s[i], s[j] = s[j], s[i]
	s[i].place, s[j].place = i, j
}

// Push is for container/heap.
func (s *schedule) Push(f any) {
	f.(*feed).place = len(*s)
	*s = append(*s, f.(*feed))
}

// Pop is for container/heap.
func (s *schedule) Pop() any {
	old := *s
	f := old[len(old)-1]
	*s = old[:len(old)-1]
	return f
}

// Markets are those on the venue's list now, in the order of their symbols. Two calls may differ.
func (x *Exchange) Markets() []*market.Market {
	if x.delists.Load() {
		return x.staying
	}
	return x.markets
}

// Halted reports whether a market is halted by the venue's list. Two calls may differ.
func (x *Exchange) Halted(m *market.Market) bool { return x.halts.Load() && x.leaving[m] }

// Status is the venue's word for a market that trades, or for one that is halted.
func (x *Exchange) Status(m *market.Market, trades, halted string) string {
	if x.Halted(m) {
		return halted
	}
	return trades
}

// Quotes reports that the venue has a ticker of a market: of one that is off its list or halted it has none. Two calls may differ.
func (x *Exchange) Quotes(m *market.Market) bool {
	return !x.leaving[m] || !x.delists.Load() && !x.halts.Load()
}

// Quoted are those of which the venue has a ticker.
func (x *Exchange) Quoted(markets []*market.Market) []*market.Market {
	return slices.DeleteFunc(slices.Clone(markets), func(m *market.Market) bool { return !x.Quotes(m) })
}

// leaveEvery is the share of markets that a venue takes off its list, or halts, when it is made to: one in so many.
const leaveEvery = 10

// chooseLeaving chooses which markets go, and which stay, when the venue delists or halts some.
func (x *Exchange) chooseLeaving() {
	x.leaving = map[*market.Market]bool{}
	for i, m := range x.markets {
		if i%leaveEvery == leaveEvery-1 {
			x.leaving[m] = true
		} else {
			x.staying = append(x.staying, m)
		}
	}
}

// setFaults is for whoever holds x.mu.
func (x *Exchange) setFaults(f provider.Faults) {
	x.faults = f
	x.delists.Store(f.Delisted || f.Halted && x.venue.ListsTrading)
	x.halts.Store(f.Halted && !x.venue.ListsTrading)
}

// Market finds one by the feed's name for it, nil if there is none.
func (x *Exchange) Market(symbol string) *market.Market { return x.byName[symbol] }

// Now is the venue's time.
func (x *Exchange) Now() time.Time { return x.clock.Now() }

// StreamURL is where clients open WebSocket connections; any path below it does too.
func (x *Exchange) StreamURL() string { return x.stream }

// RESTURL is the base of the HTTP interface.
func (x *Exchange) RESTURL() string { return x.rest }

// Slug is the venue's name.
func (x *Exchange) Slug() string { return x.venue.Slug }

// Faults are in force now.
func (x *Exchange) Faults() provider.Faults {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.setFaults(x.faults.At(x.clock.Now()))
	return x.faults
}

// SetFaults makes the venue misbehave from now on, in place of what it did wrong before.
func (x *Exchange) SetFaults(f provider.Faults) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.setFaults(f)
}

// Disconnect closes every connection; clients may come back at once.
func (x *Exchange) Disconnect() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for c := range x.conns {
		c.Close(websocket.StatusGoingAway, "disconnected on demand")
	}
}

// Stats are what the venue did so far.
func (x *Exchange) Stats() provider.Stats {
	x.mu.Lock()
	defer x.mu.Unlock()
	stats := x.counter.Stats()
	stats.Connected = int64(len(x.conns))
	return stats
}

// pumpEvery is how often frames are sent. The later ones of a batch are late by as much.
const pumpEvery = 20 * time.Millisecond

// run sends what is due until the context ends. delivered, unless nil, is given each time up to which
// everything was handed to the network.
func (x *Exchange) run(ctx context.Context, delivered func(time.Time)) error {
	for {
		now := x.clock.Now()
		x.pump(now)
		x.maintain(now)
		if delivered != nil {
			if err := x.drained(ctx); err != nil {
				return err
			}
		}
		// Set before the time is delivered: a clock that waits for that may move on at once, and its next step waits for the next delivery.
		timer := x.clock.After(pumpEvery)
		if delivered != nil {
			delivered(now)
		}
		select {
		case <-timer:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// pump sends everything that happens before now.
func (x *Exchange) pump(now time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	t := now.UnixNano()
	for len(x.due) > 0 && x.due[0].order < t {
		f := x.due[0]
		x.encode(f)
		f.events.Advance()
		f.order = f.events.At()
		heap.Fix(&x.due, 0)
	}
	x.sent = now
}

// encode makes the frame of the feed's next event, once for each channel that somebody is subscribed to.
func (x *Exchange) encode(f *feed) {
	var t market.Trade
	var s market.State
	if !x.Quotes(f.market) {
		return
	}
	computed, trade := false, f.events.IsTrade()
	for name, conns := range f.topics {
		channel := x.venue.Channels[name]
		if trade != (channel.Trade != nil) || len(conns) == 0 {
			continue
		}
		if !computed {
			computed = true
			if trade {
				t = f.events.Trade()
			} else {
				s = f.events.State()
			}
		}
		x.frame = x.frame[:0]
		if trade {
			x.frame = channel.Trade(x.frame, f.market, t)
		} else {
			x.frame = channel.State(x.frame, f.market, s)
		}
		shared := slices.Clone(x.frame)
		for c := range conns {
			frame := shared
			if channel.Personal != nil {
				frame = channel.Personal(c, f.market, shared)
			}
			x.deliver(c, message{bytes: frame, binary: channel.Binary})
		}
	}
}

// subscribe opens a topic; x.mu is held.
func (x *Exchange) subscribe(c *Conn, channel string, m *market.Market) {
	f := x.feeds[m]
	if f == nil {
		f = &feed{market: m, topics: map[string]map[*Conn]bool{}, events: m.EventsFrom(x.sent)}
		f.order = f.events.At()
		x.feeds[m] = f
		heap.Push(&x.due, f)
	}
	if f.topics[channel] == nil {
		f.topics[channel] = map[*Conn]bool{}
	}
	f.topics[channel][c] = true
}

// unsubscribe closes a topic, and the feed with its last; x.mu is held.
func (x *Exchange) unsubscribe(c *Conn, channel string, m *market.Market) {
	f := x.feeds[m]
	if f == nil {
		return
	}
	delete(f.topics[channel], c)
	if len(f.topics[channel]) == 0 {
		delete(f.topics, channel)
	}
	if len(f.topics) == 0 {
		heap.Remove(&x.due, f.place)
		delete(x.feeds, m)
	}
}

func (x *Exchange) serveREST(w http.ResponseWriter, r *http.Request) {
	x.counter.Requests.Add(1)
	x.mu.Lock()
	refuse := x.faults.Refuse
	x.mu.Unlock()
	if refuse {
		http.Error(w, "unavailable", http.StatusServiceUnavailable)
		return
	}
	weight := 1
	if x.venue.Weight != nil {
		weight = x.venue.Weight(r)
	}
	if !x.requests.Take(x.clock.Now(), weight) {
		x.throttle(w, r)
		return
	}
	x.routes.ServeHTTP(w, r)
}

// throttle refuses a request beyond a limit.
func (x *Exchange) throttle(w http.ResponseWriter, r *http.Request) {
	x.counter.Throttled.Add(1)
	if x.venue.Throttled != nil {
		x.venue.Throttled(w, r)
		return
	}
	w.Header().Set("Retry-After", "1")
	http.Error(w, "too many requests", http.StatusTooManyRequests)
}

// Limited gives an endpoint a limit of its own: n requests within a time.
func (x *Exchange) Limited(n int, per time.Duration, handle http.HandlerFunc) http.HandlerFunc {
	requests := provider.NewBucket(n, per)
	return func(w http.ResponseWriter, r *http.Request) {
		if !requests.Allow(x.clock.Now()) {
			x.throttle(w, r)
			return
		}
		handle(w, r)
	}
}
