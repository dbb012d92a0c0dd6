package simulator

import (
	"cmp"
	"math"
	"slices"
	"sync/atomic"
	"time"
)

// Market is one pair at one venue. All that it says is a function of the seed and the time, so that a
// client which comes back, and a process which starts again, meet the same history. Safe for concurrent use.
type Market struct {
	// Base and Quote are the venue's codes of the assets, Symbol its name of the pair.
	Base, Quote, Symbol string
	// PriceScale and SizeScale are the decimals of prices and of sizes.
	PriceScale, SizeScale int

	base, quote *asset
	seed        seed
	// factor sets the venue's price apart from the world's; halfSpread is a share of the price.
	factor, halfSpread float64
	// strange, unless 0, takes the price far off in some spells.
	strange seed
	// lag is how far the venue is behind the world.
	lag int64
	// dayVolume is what is traded here in a day, in USD.
	dayVolume      float64
	trades, states rhythm
	// Of the newest hour asked for.
	past atomic.Pointer[past]
	busy atomic.Pointer[busy]
}

// past is what the 24 full hours before an hour tell.
type past struct {
	hour int64
	span span
	// volume is of those hours; first and next are those of the oldest of them and of the one after the newest.
	volume, first, next float64
}

// Trade is one executed order.
type Trade struct {
	// ID is numbered without holes within the market.
	ID    int64
	Time  int64
	Price Decimal
	Size  Decimal
	// Buy tells the taker's side.
	Buy bool
}

// State is what a ticker tells. Open, High, Low and the volumes are of the 24 hours before.
type State struct {
	// Seq is numbered without holes within the market.
	Seq              int64
	Time             int64
	Bid, Ask         Decimal
	BidSize, AskSize Decimal
	Last             Trade
	Open, High, Low  Decimal
	Volume           Decimal
	QuoteVolume      Decimal
}

// Candle is a time of the market: start-labelled, with the sum of the sizes traded.
type Candle struct {
	Start                  int64
	Open, High, Low, Close Decimal
	Volume, QuoteVolume    Decimal
	Trades                 int64
}

// rhythm numbers moments: n of them in each block of n periods, at random times within it. So the
// number of a moment follows from its time, without holes, and the moments come in bursts and lulls.
type rhythm struct {
	seed   seed
	period int64
}

const (
	rhythmBlock = 8
	// rhythmEpoch is when numbering begins: 2020.
	rhythmEpoch = 1_577_836_800 * second
)

// block returns the moments with the numbers from*rhythmBlock on.
func (r rhythm) block(n int64) (at [rhythmBlock]int64) {
	length := r.period * rhythmBlock
	for i := range at {
		at[i] = rhythmEpoch + n*length + int64(r.seed.unit(n*rhythmBlock+int64(i))*float64(length))
	}
	slices.Sort(at[:])
	return at
}

// at is the time of moment n.
func (r rhythm) at(n int64) int64 {
	block := floorDiv(n, rhythmBlock)
	at := r.block(block)
	return at[n-block*rhythmBlock]
}

// before counts the moments before t: the number of the first that is not.
func (r rhythm) before(t int64) int64 {
	block := floorDiv(t-rhythmEpoch, r.period*rhythmBlock)
	n := block * rhythmBlock
	for _, at := range r.block(block) {
		if at >= t {
			break
		}
		n++
	}
	return n
}

// mid is the price between bid and ask, in the quote asset.
func (m *Market) mid(t int64) float64 {
	t -= m.lag
	return m.base.at(t) / m.quote.at(t) * m.factor * m.off(t)
}

// A market of the outlier venue is off in half of its spells, so that there is both to see within minutes.
const (
	spell     = 10 * minute
	offFactor = 2.4
)

// off is how far the market's price is from that of others.
func (m *Market) off(t int64) float64 {
	if m.strange == 0 || m.strange.at(floorDiv(t, spell))&1 == 0 {
		return 1
	}
	return offFactor
}

func (m *Market) bidAsk(t int64) (bid, ask Decimal) {
	mid := m.mid(t)
	scale := pow10(m.PriceScale)
	low := int64(math.Floor(mid * (1 - m.halfSpread) * scale))
	high := int64(math.Ceil(mid * (1 + m.halfSpread) * scale))
	low = max(low, 1)
	return Decimal{low, m.PriceScale}, Decimal{max(high, low+1), m.PriceScale}
}

// trade is the one with this number, at the time that the rhythm gives it.
func (m *Market) trade(id, at int64) Trade {
	bid, ask := m.bidAsk(at)
	bits := m.seed.at(id)
	t := Trade{ID: id, Time: at, Buy: bits&1 == 0, Price: bid}
	if t.Buy {
		t.Price = ask
	}
	size := m.minuteVolume(floorDiv(at, minute)) * float64(m.trades.period) / float64(minute)
	size *= -math.Log(1 - float64(bits>>11)/(1<<53))
	t.Size = decimal(size, m.SizeScale)
	t.Size.Units = max(t.Size.Units, 1)
	return t
}

// Trades returns the n newest trades before a time, the oldest first.
func (m *Market) Trades(before time.Time, n int) []Trade {
	first := m.trades.before(before.UnixNano()) - int64(n)
	trades := make([]Trade, n)
	for i := range trades {
		id := first + int64(i)
		trades[i] = m.trade(id, m.trades.at(id))
	}
	return trades
}

// lastTrade is the newest one before a time.
func (m *Market) lastTrade(t int64) Trade {
	id := m.trades.before(t) - 1
	return m.trade(id, m.trades.at(id))
}

// State is the market's state at a time.
func (m *Market) State(at time.Time) State {
	t := at.UnixNano()
	return m.state(m.states.before(t)-1, t, m.lastTrade(t))
}

// After is the market's state right after a trade; it takes the trade's number.
func (m *Market) After(t Trade) State { return m.describe(State{Seq: t.ID, Time: t.Time, Last: t}) }

func (m *Market) state(seq, at int64, last Trade) State {
	return m.describe(State{Seq: seq, Time: at, Last: last})
}

// describe fills in what follows from the number, the time and the last trade.
func (m *Market) describe(s State) State {
	seq, at := s.Seq, s.Time
	s.Bid, s.Ask = m.bidAsk(at)
	depth := m.dayVolume / m.base.level() / 20_000
	s.BidSize = decimal(depth*(0.2+m.seed.unit(2*seq)), m.SizeScale)
	s.AskSize = decimal(depth*(0.2+m.seed.unit(2*seq+1)), m.SizeScale)
	past := m.before(floorDiv(at, hour))
	last := s.Last.Price.Float()
	s.Open = m.price(past.span.open)
	s.High = m.price(max(past.span.high, last))
	s.Low = m.price(min(past.span.low, last))
	gone := float64(at-past.hour*hour) / float64(hour)
	volume := past.volume + (past.next-past.first)*gone
	s.Volume = decimal(volume, m.SizeScale)
	s.QuoteVolume = decimal(volume*last, 4)
	return s
}

func (m *Market) before(index int64) *past {
	if p := m.past.Load(); p != nil && p.hour == index {
		return p
	}
	p := &past{hour: index, span: m.over((index-24)*hour, index*hour), first: m.hourVolume(index - 24), next: m.hourVolume(index)}
	for h := index - 24; h < index; h++ {
		p.volume += m.hourVolume(h)
	}
	m.past.Store(p)
	return p
}

// over bounds the market's mid in [from, to). High and low of a longer time hold those of its parts.
func (m *Market) over(from, to int64) span {
	if m.strange == 0 {
		return m.within(from, to, m.factor)
	}
	var s span
	for at := from; at < to; {
		end := min(floorDiv(at, spell)*spell+spell, to)
		part := m.within(at, end, m.factor*m.off(at))
		if at == from {
			s = part
		}
		s.close, s.high, s.low = part.close, max(s.high, part.high), min(s.low, part.low)
		at = end
	}
	return s
}

func (m *Market) within(from, to int64, factor float64) span {
	b, q := m.base.over(from, to), m.quote.over(from, to)
	s := span{
		open: b.open / q.open * factor, close: b.close / q.close * factor,
		high: b.high / q.low * factor, low: b.low / q.high * factor,
	}
	s.high = max(s.high, s.open, s.close)
	s.low = min(s.low, s.open, s.close)
	return s
}

// Candles returns those that start in [from, to), the oldest first; the one that now lies in tells what
// has passed of it. The interval divides a day, or is whole days counted from 1970.
func (m *Market) Candles(from, to, now time.Time, interval time.Duration) []Candle {
	step, end := int64(interval), min(to.UnixNano(), now.UnixNano())
	start := floorDiv(from.UnixNano()+step-1, step) * step
	var candles []Candle
	for ; start < end; start += step {
		candles = append(candles, m.candle(start, min(start+step, now.UnixNano())))
	}
	return candles
}

func (m *Market) candle(from, to int64) Candle {
	s := m.over(from, to)
	volume := m.volume(from, to)
	return Candle{
		Start: from,
		Open:  m.price(s.open), High: m.price(s.high), Low: m.price(s.low), Close: m.price(s.close),
		Volume:      decimal(volume, m.SizeScale),
		QuoteVolume: decimal(volume*(s.open+s.close)/2, 4),
		Trades:      max(1, (to-from)/m.trades.period),
	}
}

func (m *Market) price(x float64) Decimal {
	d := decimal(x, m.PriceScale)
	d.Units = max(d.Units, 1)
	return d
}

// busy is how much is traded in an hour, in the base asset, and where within it most is.
type busy struct {
	hour          int64
	volume, phase float64
}

func (m *Market) busyness(index int64) *busy {
	if b := m.busy.Load(); b != nil && b.hour == index {
		return b
	}
	b := &busy{
		hour:   index,
		volume: m.dayVolume / 24 / m.base.level() * math.Exp(0.3*m.seed.noise(index, 2)-0.2),
		phase:  2 * math.Pi * m.seed.unit(^index),
	}
	m.busy.Store(b)
	return b
}

func (m *Market) hourVolume(index int64) float64 { return m.busyness(index).volume }

// minuteVolume shares an hour's volume out, unevenly, to its minutes: the cosine sums to zero over the hour.
func (m *Market) minuteVolume(index int64) float64 {
	h := floorDiv(index, 60)
	b := m.busyness(h)
	return b.volume / 60 * (1 + 0.7*math.Cos(b.phase+2*math.Pi*float64(index-h*60)/60))
}

// volume is what is traded in [from, to), to the second.
func (m *Market) volume(from, to int64) float64 {
	sum := 0.0
	for from < to {
		switch {
		case from%hour == 0 && from+hour <= to:
			sum += m.hourVolume(from / hour)
			from += hour
		default:
			next := min(floorDiv(from, minute)*minute+minute, to)
			sum += m.minuteVolume(floorDiv(from, minute)) * float64(next-from) / float64(minute)
			from = next
		}
	}
	return sum
}

func byName(a, b *Market) int { return cmp.Compare(a.Symbol, b.Symbol) }
