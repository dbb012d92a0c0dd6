package market

import (
	"math"
	"sync/atomic"
	"time"
)

// Market is one pair at one venue. Everything about it is a function of the seed and the time, so that a
// client which comes back, and a process which starts again, meet the same history. Safe for concurrent use.
type Market struct {
	// Base and Quote are the venue's codes of the assets, Symbol its name of the pair.
	Base, Quote, Symbol string
	// PriceScale and SizeScale are the decimals of prices and of sizes.
	PriceScale, SizeScale int

	BaseAsset, QuoteAsset *Asset
	Seed                  Seed
	// factor sets the venue's price apart from the world's; halfSpread is a share of the price.
	factor, halfSpread float64
	// strange, unless 0, takes the price far off in some spells.
	strange Seed
	// lag is how far the venue is behind the world.
	lag int64
	// dayVolume is what is traded here in a day, in USD.
	dayVolume      float64
	trades, states rhythm
	// Of the newest hour asked for.
	past atomic.Pointer[past]
	busy atomic.Pointer[busy]
}

// Listing is what a venue declares of a market.
type Listing struct {
	// Venue is its slug; Base and Quote are its codes of the assets, Symbol its name of the pair.
	Venue, Base, Quote, Symbol string
	BaseAsset, QuoteAsset      *Asset
	// Decimals is how many a price may have.
	Decimals int
	// DayVolume is what is traded in a day, in USD.
	DayVolume float64
}

// NewMarket is nil if prices would have too few decimals for the pair. It is silent until Pace.
func (w *World) NewMarket(l Listing) *Market {
	b, q := l.BaseAsset, l.QuoteAsset
	level := b.Level() / q.Level()
	if level*pow10(l.Decimals) < 1000 {
		return nil
	}
	m := &Market{Base: l.Base, Quote: l.Quote, Symbol: l.Symbol, BaseAsset: b, QuoteAsset: q, dayVolume: l.DayVolume}
	m.Seed = w.Seed.Of(l.Venue + " " + m.Symbol)
	m.factor = 1 + 0.0003*(2*m.Seed.Unit(-1)-1)
	m.lag = int64(m.Seed.Unit(-2) * float64(800*time.Millisecond))
	m.halfSpread = 0.00004 * (0.5 + m.Seed.Unit(-3)) * (1 + math.Log(float64(b.Rank+1))/2)
	if b.Stable {
		m.halfSpread = 0.00003
	}
	// Six digits of a price that may rise tenfold, sizes of about a cent.
	m.PriceScale = min(max(5-int(math.Floor(math.Log10(level))), 0), l.Decimals)
	m.SizeScale = min(max(2+int(math.Ceil(math.Log10(b.Level()))), 0), 8)
	return m
}

// past are the figures of the 24 full hours before an hour.
type past struct {
	hour int64
	span span
	// volume is of those hours; first and next are those of the oldest of them and of the one after the newest.
	volume, first, next float64
}

// Trade is one executed order.
type Trade struct {
	// ID is numbered without gaps within the market.
	ID    int64
	Time  int64
	Price Decimal
	Size  Decimal
	// Buy is the taker's side.
	Buy bool
}

// State is what a ticker contains. Open, High, Low and the volumes are of the 24 hours before.
type State struct {
	// Seq is numbered without gaps within the market.
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

// Mid is the price between bid and ask, in the quote asset.
func (m *Market) Mid(t int64) float64 {
	t -= m.lag
	return m.BaseAsset.At(t) / m.QuoteAsset.At(t) * m.factor * m.off(t)
}

func (m *Market) bidAsk(t int64) (bid, ask Decimal) {
	mid := m.Mid(t)
	scale := pow10(m.PriceScale)
	low := int64(math.Floor(mid * (1 - m.halfSpread) * scale))
	high := int64(math.Ceil(mid * (1 + m.halfSpread) * scale))
	low = max(low, 1)
	return Decimal{low, m.PriceScale}, Decimal{max(high, low+1), m.PriceScale}
}

// trade is the one with this number, at the time that the rhythm gives it.
func (m *Market) trade(id, at int64) Trade {
	bid, ask := m.bidAsk(at)
	bits := m.Seed.At(id)
	t := Trade{ID: id, Time: at, Buy: bits&1 == 0, Price: bid}
	if t.Buy {
		t.Price = ask
	}
	size := m.minuteVolume(FloorDiv(at, Minute)) * float64(m.trades.period) / float64(Minute)
	size *= -math.Log(1 - float64(bits>>11)/(1<<53))
	t.Size = Round(size, m.SizeScale)
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

// LastTrade is the newest one before a time.
func (m *Market) LastTrade(t int64) Trade {
	id := m.trades.before(t) - 1
	return m.trade(id, m.trades.at(id))
}

// State is the market's state at a time.
func (m *Market) State(at time.Time) State {
	t := at.UnixNano()
	return m.state(m.states.before(t)-1, t, m.LastTrade(t))
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
	depth := m.dayVolume / m.BaseAsset.Level() / 20_000
	s.BidSize = Round(depth*(0.2+m.Seed.Unit(2*seq)), m.SizeScale)
	s.AskSize = Round(depth*(0.2+m.Seed.Unit(2*seq+1)), m.SizeScale)
	past := m.before(FloorDiv(at, Hour))
	last := s.Last.Price.Float()
	s.Open = m.Price(past.span.open)
	s.High = m.Price(max(past.span.high, last))
	s.Low = m.Price(min(past.span.low, last))
	gone := float64(at-past.hour*Hour) / float64(Hour)
	volume := past.volume + (past.next-past.first)*gone
	s.Volume = Round(volume, m.SizeScale)
	s.QuoteVolume = Round(volume*last, 4)
	return s
}

func (m *Market) before(index int64) *past {
	if p := m.past.Load(); p != nil && p.hour == index {
		return p
	}
	p := &past{hour: index, span: m.over((index-24)*Hour, index*Hour), first: m.hourVolume(index - 24), next: m.hourVolume(index)}
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
		end := min(FloorDiv(at, spell)*spell+spell, to)
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
	b, q := m.BaseAsset.over(from, to), m.QuoteAsset.over(from, to)
	s := span{
		open: b.open / q.open * factor, close: b.close / q.close * factor,
		high: b.high / q.low * factor, low: b.low / q.high * factor,
	}
	s.high = max(s.high, s.open, s.close)
	s.low = min(s.low, s.open, s.close)
	return s
}

// Candles returns those that start in [from, to), the oldest first; the one that now lies in covers what
// has passed of it. The interval divides a day, or is whole days counted from 1970.
func (m *Market) Candles(from, to, now time.Time, interval time.Duration) []Candle {
	step, end := int64(interval), min(to.UnixNano(), now.UnixNano())
	start := FloorDiv(from.UnixNano()+step-1, step) * step
	var candles []Candle
	for ; start < end; start += step {
		candles = append(candles, m.Candle(start, min(start+step, now.UnixNano())))
	}
	return candles
}

// Candle is that of [from, to), in Unix nanoseconds.
func (m *Market) Candle(from, to int64) Candle {
	s := m.over(from, to)
	volume := m.volume(from, to)
	return Candle{
		Start: from,
		Open:  m.Price(s.open), High: m.Price(s.high), Low: m.Price(s.low), Close: m.Price(s.close),
		Volume:      Round(volume, m.SizeScale),
		QuoteVolume: Round(volume*(s.open+s.close)/2, 4),
		Trades:      max(1, (to-from)/m.trades.period),
	}
}

// Price rounds to the decimals of the market; it is never 0.
func (m *Market) Price(x float64) Decimal {
	d := Round(x, m.PriceScale)
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
		volume: m.dayVolume / 24 / m.BaseAsset.Level() * math.Exp(0.3*m.Seed.Noise(index, 2)-0.2),
		phase:  2 * math.Pi * m.Seed.Unit(^index),
	}
	m.busy.Store(b)
	return b
}

func (m *Market) hourVolume(index int64) float64 { return m.busyness(index).volume }

// minuteVolume shares an hour's volume out, unevenly, to its minutes: the cosine sums to zero over the hour.
func (m *Market) minuteVolume(index int64) float64 {
	h := FloorDiv(index, 60)
	b := m.busyness(h)
	return b.volume / 60 * (1 + 0.7*math.Cos(b.phase+2*math.Pi*float64(index-h*60)/60))
}

// volume is what is traded in [from, to), to the second.
func (m *Market) volume(from, to int64) float64 {
	sum := 0.0
	for from < to {
		switch {
		case from%Hour == 0 && from+Hour <= to:
			sum += m.hourVolume(from / Hour)
			from += Hour
		default:
			next := min(FloorDiv(from, Minute)*Minute+Minute, to)
			sum += m.minuteVolume(FloorDiv(from, Minute)) * float64(next-from) / float64(Minute)
			from = next
		}
	}
	return sum
}
