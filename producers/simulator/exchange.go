package simulator

import (
	"cmp"
	"container/heap"
	"context"
	"math"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// Exchange is one simulated venue at work. Its exported methods are for the venue's side.
type Exchange struct {
	venue   *Venue
	markets []*Market
	byName  map[string]*Market
	clock   Clock
	// stream and rest are the base URLs.
	stream, rest string
	routes       http.Handler
	requests     *bucket
	connects     *bucket

	mu sync.Mutex
	// sent is the time up to which all frames were sent.
	sent    time.Time
	conns   map[*Conn]bool
	feeds   map[*Market]*feed
	due     schedule
	faults  Faults
	random  uint64
	counter counter
	frame   []byte
}

// feed is a market that somebody subscribed to, with the next moments of its rhythms.
type feed struct {
	market       *Market
	topics       map[string]map[*Conn]bool // by channel
	trade, state next
	// lastAt is when the trade before the next one was.
	lastAt int64
	order  int64
	place  int
}

func (f *feed) lastTrade() Trade { return f.market.trade(f.trade.number-1, f.lastAt) }

// next is a moment of a rhythm, with the others of its block.
type next struct {
	number, first int64
	block         [rhythmBlock]int64
}

func (r rhythm) from(number int64) next {
	block := floorDiv(number, rhythmBlock)
	return next{number, block * rhythmBlock, r.block(block)}
}

func (n *next) at() int64 { return n.block[n.number-n.first] }

func (n *next) advance(r rhythm) {
	if n.number++; n.number == n.first+rhythmBlock {
		*n = r.from(n.number)
	}
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

// ranked is how far down the coin table venues list, but for what they name themselves.
const ranked = 320

// list gives a venue its markets: all coins of the first ranks and, of the others, those that the venue
// happens to have.
func (w *world) list(v *Venue) []*Market {
	var markets []*Market
	listing := w.seed.of("listing " + v.Slug)
	for i, q := range v.Quotes {
		quote := w.quoteAsset(v.Slug, q.Asset)
		if quote == nil {
			continue
		}
		add := func(base string, a *asset, weight float64) {
			// A code that the venue uses for something else, or that the table gives to another coin, is left out.
			if b := w.quoteAsset(v.Slug, base); a == nil || b != a || a == quote {
				return
			}
			// The larger coin is the quote: ETH in BTC, not BTC in ETH.
			if !quote.stable && a.rank < quote.rank {
				return
			}
			m := w.market(v, base, q.Asset, a, quote)
			if m == nil {
				return
			}
			m.dayVolume = a.volume * v.Share / 16 * weight
			markets = append(markets, m)
		}
		for _, c := range w.table.All()[:ranked] {
			a := w.coins[c.ID]
			// What is stable is worth a market against currencies, and against the first quote.
			listed := c.Rank <= q.ToRank && (c.Rank <= 30 || listing.unit(int64(c.Rank)) < 0.7)
			if listed && (!a.stable || i == 0 || quote.rank == 0) {
				base := c.Symbol
				if own, ok := v.Assets[base]; ok {
					base = own
				}
				add(base, a, 1/float64(1+i))
			}
		}
		if i == 0 {
			for _, f := range v.Fiats {
				add(f, w.fiats[f], 1)
			}
			for _, symbol := range v.Beyond {
				add(symbol, w.quoteAsset(v.Slug, symbol), 1)
			}
		}
	}
	slices.SortFunc(markets, byName)
	return markets
}

// market is nil if the venue's prices have too few decimals for the pair.
func (w *world) market(v *Venue, base, quote string, b, q *asset) *Market {
	decimals := cmp.Or(v.PriceDecimals, 12)
	level := b.level() / q.level()
	if level*pow10(decimals) < 1000 {
		return nil
	}
	m := &Market{Base: base, Quote: quote, Symbol: v.Symbol(base, quote), base: b, quote: q}
	m.seed = w.seed.of(v.Slug + " " + m.Symbol)
	m.factor = 1 + 0.0003*(2*m.seed.unit(-1)-1)
	m.lag = int64(m.seed.unit(-2) * float64(800*time.Millisecond))
	m.halfSpread = 0.00004 * (0.5 + m.seed.unit(-3)) * (1 + math.Log(float64(b.rank+1))/2)
	if b.stable {
		m.halfSpread = 0.00003
	}
	// Six digits of a price that may rise tenfold, sizes of about a cent.
	m.PriceScale = min(max(5-int(math.Floor(math.Log10(level))), 0), decimals)
	m.SizeScale = min(max(2+int(math.Ceil(math.Log10(b.level()))), 0), 8)
	return m
}

// pace sets the rhythms of all venues so that they send rate messages a second in all, were everything
// subscribed to on one channel of each kind.
func pace(exchanges []*Exchange, rate float64) {
	weight := func(m *Market) float64 { return math.Sqrt(m.dayVolume) }
	total := 0.0
	for _, x := range exchanges {
		for _, m := range x.markets {
			total += weight(m)
		}
	}
	for _, x := range exchanges {
		for _, m := range x.markets {
			perSecond := rate * weight(m) / total
			m.trades = rhythm{m.seed.of("trades"), period(perSecond*0.4, slowestTrades)}
			m.states = rhythm{m.seed.of("states"), period(perSecond*0.6, slowestStates)}
		}
	}
}

// The quietest markets trade every minute or two, and tell their state more often.
const (
	slowestTrades = 90 * second
	slowestStates = 45 * second
)

func period(perSecond float64, slowest int64) int64 {
	return min(max(int64(float64(second)/perSecond), 1000), slowest)
}

// Markets are all of the venue, in the order of their symbols.
func (x *Exchange) Markets() []*Market { return x.markets }

// Market finds one by the feed's name for it, nil if there is none.
func (x *Exchange) Market(symbol string) *Market { return x.byName[symbol] }

// Now is the venue's time.
func (x *Exchange) Now() time.Time { return x.clock.Now() }

// StreamURL is where clients open WebSocket connections; any path below it does too.
func (x *Exchange) StreamURL() string { return x.stream }

// RESTURL is the base of the HTTP interface.
func (x *Exchange) RESTURL() string { return x.rest }

// pumpEvery is how often frames are sent. The later ones of a batch are late by as much.
const pumpEvery = 20 * time.Millisecond

// run sends what is due until the context ends. delivered, unless nil, is told each time up to which
// everything was handed to the network.
func (x *Exchange) run(ctx context.Context, delivered func(time.Time)) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		for {
			now := x.clock.Now()
			x.pump(now)
			x.maintain(now)
			if delivered != nil {
				if err := x.drained(ctx); err != nil {
					return err
				}
				delivered(now)
			}
			select {
			case <-x.clock.After(pumpEvery):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	})
	return g.Wait()
}

// pump sends everything that happens before now.
func (x *Exchange) pump(now time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	t := now.UnixNano()
	for len(x.due) > 0 && x.due[0].order < t {
		f := x.due[0]
		if f.trade.at() <= f.state.at() {
			x.say(f, true)
			f.lastAt = f.trade.at()
			f.trade.advance(f.market.trades)
		} else {
			x.say(f, false)
			f.state.advance(f.market.states)
		}
		f.order = min(f.trade.at(), f.state.at())
		heap.Fix(&x.due, 0)
	}
	x.sent = now
}

// say encodes one event once for each channel that somebody listens to.
func (x *Exchange) say(f *feed, trade bool) {
	var t Trade
	var s State
	spoken := false
	for name, conns := range f.topics {
		channel := x.venue.Channels[name]
		if trade != (channel.Trade != nil) || len(conns) == 0 {
			continue
		}
		if !spoken {
			spoken = true
			if trade {
				t = f.market.trade(f.trade.number, f.trade.at())
			} else {
				s = f.market.state(f.state.number, f.state.at(), f.lastTrade())
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
func (x *Exchange) subscribe(c *Conn, channel string, m *Market) {
	f := x.feeds[m]
	if f == nil {
		from := x.sent.UnixNano()
		f = &feed{
			market: m, topics: map[string]map[*Conn]bool{},
			trade: m.trades.from(m.trades.before(from)), state: m.states.from(m.states.before(from)),
		}
		f.lastAt = m.trades.at(f.trade.number - 1)
		f.order = min(f.trade.at(), f.state.at())
		x.feeds[m] = f
		heap.Push(&x.due, f)
	}
	if f.topics[channel] == nil {
		f.topics[channel] = map[*Conn]bool{}
	}
	f.topics[channel][c] = true
}

// unsubscribe closes a topic, and the feed with its last; x.mu is held.
func (x *Exchange) unsubscribe(c *Conn, channel string, m *Market) {
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
