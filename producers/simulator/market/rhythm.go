package market

import (
	"math"
	"slices"
	"time"
)

// rhythm numbers moments: n of them in each block of n periods, at random times within it. So the
// number of a moment follows from its time, without gaps, and the moments come in bursts and lulls.
type rhythm struct {
	seed   Seed
	period int64
}

const (
	rhythmBlock = 8
	// rhythmEpoch is when numbering begins: 2020.
	rhythmEpoch = 1_577_836_800 * Second
)

// block returns the moments with the numbers from*rhythmBlock on.
func (r rhythm) block(n int64) (at [rhythmBlock]int64) {
	length := r.period * rhythmBlock
	for i := range at {
		at[i] = rhythmEpoch + n*length + int64(r.seed.Unit(n*rhythmBlock+int64(i))*float64(length))
	}
	slices.Sort(at[:])
	return at
}

// at is the time of moment n.
func (r rhythm) at(n int64) int64 {
	block := FloorDiv(n, rhythmBlock)
	at := r.block(block)
	return at[n-block*rhythmBlock]
}

// before counts the moments before t: the number of the first that is not.
func (r rhythm) before(t int64) int64 {
	block := FloorDiv(t-rhythmEpoch, r.period*rhythmBlock)
	n := block * rhythmBlock
	for _, at := range r.block(block) {
		if at >= t {
			break
		}
		n++
	}
	return n
}

// next is a moment of a rhythm, with the others of its block.
type next struct {
	number, first int64
	block         [rhythmBlock]int64
}

func (r rhythm) from(number int64) next {
	block := FloorDiv(number, rhythmBlock)
	return next{number, block * rhythmBlock, r.block(block)}
}

func (n *next) at() int64 { return n.block[n.number-n.first] }

func (n *next) advance(r rhythm) {
	if n.number++; n.number == n.first+rhythmBlock {
		*n = r.from(n.number)
	}
}

// Cursor goes through what happens at a market, trades and changes of its state, in the order of time.
type Cursor struct {
	market       *Market
	trade, state next
	// lastAt is when the trade before the next one was.
	lastAt int64
}

// EventsFrom begins with the first event that is not before t.
func (m *Market) EventsFrom(t time.Time) Cursor {
	from := t.UnixNano()
	c := Cursor{market: m, trade: m.trades.from(m.trades.before(from)), state: m.states.from(m.states.before(from))}
	c.lastAt = m.trades.at(c.trade.number - 1)
	return c
}

// At is when the next event happens, in Unix nanoseconds.
func (c *Cursor) At() int64 { return min(c.trade.at(), c.state.at()) }

// IsTrade reports whether the next event is a trade, or else a change of the state.
func (c *Cursor) IsTrade() bool { return c.trade.at() <= c.state.at() }

// Trade is the next event, if it is one.
func (c *Cursor) Trade() Trade { return c.market.trade(c.trade.number, c.trade.at()) }

// State is the next event, if it is one.
func (c *Cursor) State() State {
	return c.market.state(c.state.number, c.state.at(), c.market.trade(c.trade.number-1, c.lastAt))
}

// Advance goes past the next event.
func (c *Cursor) Advance() {
	if c.IsTrade() {
		c.lastAt = c.trade.at()
		c.trade.advance(c.market.trades)
	} else {
		c.state.advance(c.market.states)
	}
}

// Pace sets how often the markets trade and change, so that they send rate messages a second in all, were everything
// subscribed to on one channel of each kind.
func Pace(markets []*Market, rate float64) {
	weight := func(m *Market) float64 { return math.Sqrt(m.dayVolume) }
	total := 0.0
	for _, m := range markets {
		total += weight(m)
	}
	for _, m := range markets {
		perSecond := rate * weight(m) / total
		m.trades = rhythm{m.Seed.Of("trades"), period(perSecond*0.4, slowestTrades)}
		m.states = rhythm{m.Seed.Of("states"), period(perSecond*0.6, slowestStates)}
	}
}

// The quietest markets trade every minute or two, and send their state more often.
const (
	slowestTrades = 90 * Second
	slowestStates = 45 * Second
)

func period(perSecond float64, slowest int64) int64 {
	return min(max(int64(float64(Second)/perSecond), 1000), slowest)
}

// TradesPerDay is how many trades the market has in a day.
func (m *Market) TradesPerDay() int64 { return Day / m.trades.period }
