// Package candles folds published prices into one-minute candles, and trades into their volume and
// into each venue's own candles. A minute closes when the watermark passes its end plus the
// allowed lateness; a later trade carries the flag late and is left out, so a closed candle never
// changes and a replay agrees.
package candles

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/shopspring/decimal"

	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// New makes the fold of one partition of ticks.v1, which is fed by the given number of partitions
// of ticks.raw.v1. It follows the median of the same partition.
func New(origins int32) processors.Follower {
	return &fold{origins: processors.NewOrigins(origins), minutes: map[int64]*minute{}}
}

type fold struct {
	origins *processors.Origins
	// minutes are the open ones by start.
	minutes map[int64]*minute
	// ahead are trades of minutes more than maxAhead ahead of now, in the order of the log.
	ahead []aheadTrade
}

// aheadTrade is a trade of a minute start that came when the log's now was received.
type aheadTrade struct {
	trade           *eventsv1.ResolvedTick
	start, received int64
}

// minute is all that is known of one open minute.
type minute struct {
	coins  map[string]*coinMinute
	venues map[venueMarket]*venueMinute
}

type coinMinute struct {
	open, high, low, close float64
	// accepted are the providers of the last published price; volume24h and simulated are its own.
	accepted  []string
	volume24h float64
	simulated bool
	volumes   map[string]*volume // by venue
}

// volume is what one venue traded of a coin in a minute, over all its spot markets.
type volume struct {
	base   decimal.Decimal
	usd    float64
	trades uint64
}

type venueMarket struct{ venue, symbol string }

type venueMinute struct {
	coinID, quoteID        string
	first, last            int64 // event times of the trades that opened and closed it
	open, high, low, close decimal.Decimal
	volume                 decimal.Decimal
	trades                 uint64
}

func (f *fold) Clocks() (now, watermark int64) { return f.origins.Now(), f.origins.Watermark() }

// Follow takes a published price.
func (f *fold) Follow(o processors.Output, _ *processors.Outputs) error {
	rec, ok := o.Record.(*eventsv1.PriceRecord)
	if !ok || rec.GetPrice() == nil || rec.GetPrice().Reason != "" {
		return nil
	}
	p := rec.GetPrice()
	c := f.minute(schemas.Minute(p.Time)).coin(p.CoinId)
	if c.accepted == nil {
		c.open, c.high, c.low = p.Price, p.Price, p.Price
	}
	c.high, c.low, c.close = max(c.high, p.Price), min(c.low, p.Price), p.Price
	c.volume24h, c.simulated = p.Volume24H, p.Simulated
	c.accepted = c.accepted[:0]
	for _, in := range p.Inputs {
		if in.Accepted {
			c.accepted = append(c.accepted, in.Provider)
		}
	}
	return nil
}

// Apply takes a trade or a pulse.
func (f *fold) Apply(in processors.Input, out *processors.Outputs) error {
	rec := in.Record.(*eventsv1.ResolvedRecord)
	switch body := rec.Body.(type) {
	case *eventsv1.ResolvedRecord_Tick:
		f.trade(in, body.Tick)
	case *eventsv1.ResolvedRecord_Pulse:
		f.pulse(in, rec.Mark, body.Pulse, out)
	case *eventsv1.ResolvedRecord_Control:
		out.Emit(schemas.TopicCandles, in.Partition, "", f.origins.Now(),
			&eventsv1.CandleRecord{Body: &eventsv1.CandleRecord_Control{Control: body.Control}})
	}
	return nil
}

const (
	// maxAhead is how far a minute may lie ahead of the log's now: an open minute of the future would outlive any rewind.
	maxAhead = time.Minute
	// patience is for how much log time a trade of a minute further ahead is kept. Where all producers were away, their first trades
	// come before now leaps to their clocks, which the pulses of other partitions, of before, may precede. If now reaches their minute
	// by less, it is a producer's wrong clock, and its trades belong to no minute.
	patience = 10 * time.Second
)

func (f *fold) trade(in processors.Input, r *eventsv1.ResolvedTick) {
	t := r.Tick
	if !schemas.Traded(r) {
		return
	}
	start := schemas.Minute(schemas.TradeTime(t))
	if schemas.MinuteClosed(start, f.origins.Watermark()) {
		return // a trade before its minute's end by resolve's clock cannot be after it by all clocks
	}
	if in.Written && schemas.MinuteClosed(start, in.WrittenUntil) {
		return // the candle is in the log
	}
	if start > f.origins.Now()+int64(maxAhead) {
		f.ahead = append(f.ahead, aheadTrade{trade: copied(r), start: start, received: f.origins.Now()})
		return
	}
	f.count(start, r)
}

// copied has its own strings, which a clone of a message shares.
func copied(r *eventsv1.ResolvedTick) *eventsv1.ResolvedTick {
	own := &eventsv1.ResolvedTick{}
	value, err := r.MarshalVT()
	if err == nil {
		err = own.UnmarshalVT(value)
	}
	if err != nil {
		panic(fmt.Sprintf("candles: a tick cannot be encoded: %v", err)) // it was decoded
	}
	return own
}

// count adds a trade to its minute.
func (f *fold) count(start int64, r *eventsv1.ResolvedTick) {
	t := r.Tick
	price, errPrice := decimal.NewFromString(t.Price)
	size, errSize := decimal.NewFromString(t.Size)
	if errPrice != nil || errSize != nil {
		return // resolve refuses these
	}
	m := f.minute(start)
	c := m.coin(r.CoinId)
	v := c.volumes[t.Venue]
	if v == nil {
		v = &volume{}
		c.volumes[strings.Clone(t.Venue)] = v
	}
	v.base = v.base.Add(size)
	v.usd += float64(price.Mul(size).InexactFloat64() * r.Rate)
	v.trades++
	m.venueTrade(r, price, size)
}

func (m *minute) venueTrade(r *eventsv1.ResolvedTick, price, size decimal.Decimal) {
	at := schemas.TradeTime(r.Tick)
	id := venueMarket{r.Tick.Venue, r.Tick.Symbol}
	v := m.venues[id]
	if v == nil {
		v = &venueMinute{
			coinID: strings.Clone(r.CoinId), quoteID: strings.Clone(r.QuoteId),
			first: at, last: at, open: price, high: price, low: price, close: price,
		}
		m.venues[venueMarket{strings.Clone(id.venue), strings.Clone(id.symbol)}] = v
	}
	if at < v.first {
		v.first, v.open = at, price
	}
	if at >= v.last {
		v.last, v.close = at, price
	}
	v.high, v.low = decimal.Max(v.high, price), decimal.Min(v.low, price)
	v.volume = v.volume.Add(size)
	v.trades++
}

func (f *fold) pulse(in processors.Input, mark *eventsv1.Mark, p *eventsv1.Pulse, out *processors.Outputs) {
	moved := f.origins.Observe(mark.Partition, p.Now, p.Watermark)
	if !moved {
		return
	}
	f.reach()
	for _, start := range slices.Sorted(maps.Keys(f.minutes)) {
		if !schemas.MinuteClosed(start, f.origins.Watermark()) {
			break
		}
		f.close(in, start, out)
		delete(f.minutes, start)
	}
	out.Emit(schemas.TopicCandles, in.Partition, "", f.origins.Now(), &eventsv1.CandleRecord{Body: &eventsv1.CandleRecord_Pulse{
		Pulse: &eventsv1.Pulse{Now: f.origins.Now(), Watermark: f.origins.Watermark()},
	}})
}

// reach counts the trades whose minutes are ahead of now no more, and forgets those that were kept for long enough.
func (f *fold) reach() {
	now := f.origins.Now()
	f.ahead = slices.DeleteFunc(f.ahead, func(t aheadTrade) bool {
		if t.start > now+int64(maxAhead) {
			return now-t.received >= int64(patience)
		}
		f.count(t.start, t.trade)
		return true
	})
}

// close writes the candles of one minute, in the order of their names.
func (f *fold) close(in processors.Input, start int64, out *processors.Outputs) {
	m := f.minutes[start]
	for _, id := range slices.Sorted(maps.Keys(m.coins)) {
		if c := m.coins[id]; c.accepted != nil {
			out.Emit(schemas.TopicCandles, in.Partition, id, start,
				&eventsv1.CandleRecord{Body: &eventsv1.CandleRecord_Candle{Candle: c.candle(id, start)}})
		}
	}
	for _, id := range slices.SortedFunc(maps.Keys(m.venues), compareMarkets) {
		v := m.venues[id]
		out.Emit(schemas.TopicCandles, in.Partition, v.coinID, start,
			&eventsv1.CandleRecord{Body: &eventsv1.CandleRecord_VenueCandle{VenueCandle: &eventsv1.VenueCandle{
				Venue: id.venue, Symbol: id.symbol, CoinId: v.coinID, QuoteId: v.quoteID, Start: start,
				Open: v.open.String(), High: v.high.String(), Low: v.low.String(), Close: v.close.String(),
				Volume: v.volume.String(), Trades: v.trades,
			}}})
	}
}

func compareMarkets(a, b venueMarket) int {
	return cmp.Or(strings.Compare(a.venue, b.venue), strings.Compare(a.symbol, b.symbol))
}

// candle sums the volumes of the venues that were accepted in the minute's last price. Venues are
// taken in the order of their names, so that the sum of floats is always the same.
func (c *coinMinute) candle(id string, start int64) *eventsv1.Candle {
	candle := &eventsv1.Candle{
		CoinId: id, Start: start, Open: c.open, High: c.high, Low: c.low, Close: c.close,
		Volume24H: c.volume24h, Accepted: uint32(len(c.accepted)), Simulated: c.simulated,
	}
	base := decimal.Decimal{}
	for _, venue := range c.accepted {
		v := c.volumes[venue]
		if v == nil {
			continue
		}
		base = base.Add(v.base)
		candle.VolumeUsd += v.usd
		candle.Trades += v.trades
	}
	candle.Volume = base.String()
	return candle
}

func (f *fold) minute(start int64) *minute {
	m := f.minutes[start]
	if m == nil {
		m = &minute{coins: map[string]*coinMinute{}, venues: map[venueMarket]*venueMinute{}}
		f.minutes[start] = m
	}
	return m
}

func (m *minute) coin(id string) *coinMinute {
	c := m.coins[id]
	if c == nil {
		c = &coinMinute{volumes: map[string]*volume{}}
		m.coins[strings.Clone(id)] = c
	}
	return c
}
