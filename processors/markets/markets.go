// Package markets publishes each minute what every coin and the whole market are worth: it joins the closed candles of our own
// prices with what sources report of supplies, volumes and changes. A row is written when it changes, and once an hour with
// all that the next rows are made from, so the last hour of markets.v1 is enough to go on.
//
// The formulas are those of schemas, and on the page docs/formulas.md.
package markets

import (
	"bytes"
	"slices"
	"strings"
	"time"

	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// Name is the consumer group.
const Name = "markets"

// Minutes is the declaration of this processor; the caller adds the log.
func Minutes(table *schemas.CoinTable) *processors.Minutes {
	return &processors.Minutes{
		Name: Name, Inputs: []string{schemas.TopicCandles, schemas.TopicCoinMarketsRaw}, Output: schemas.TopicMarkets,
		New: func() processors.MinuteFold { return New(table) },
	}
}

// New makes the fold. It names coins after the table, and those that the table does not have after their sources.
func New(table *schemas.CoinTable) processors.MinuteFold {
	return &fold{table: table, byID: map[string]*coin{}}
}

type fold struct {
	table *schemas.CoinTable
	byID  map[string]*coin
	// watched are all coins, in the order of their ids unless some came in the open minute.
	watched  []watch
	unsorted bool
	// ranked are those with a market cap, by rank; moved those of them that have a new row, and are not ranked yet.
	ranked, moved []ranked
	totals        totals
	// encoded is where rows are encoded.
	encoded []byte
	// closed is the last minute that was.
	closed int64
}

// watch is what each minute asks of every coin. It is apart from the coin, and small: most coins have nothing new in a
// minute, and to look at 20,000 that lie scattered in memory would cost more than to fold those that have.
type watch struct {
	coin *coin
	// expires is the minute after which the row changes though nothing is received, activeUntil the last one in which the coin
	// counts as active.
	expires, activeUntil int64
	// markets is how many of our venues' make the price.
	markets uint32
	// slot is the minute of the hour in which the state is written.
	slot uint8
	// received means that an input came in the open minute, fresh that the row is of the one that is closed, empty that
	// nothing is remembered.
	received, fresh, empty, simulated bool
}

// coin is one coin with its newest row.
type coin struct {
	id string
	// place is where it is watched.
	place int
	// known is what the table holds of it, nil for nothing.
	known *schemas.Coin
	state schemas.CoinState
	// loaded is the minute that the state was at when it was read back: inputs up to it are in it.
	loaded int64
	row    *eventsv1.Market
	// written is the row as it was in the last minute, without its time.
	written []byte
	rank    uint32
}

func (f *fold) coin(id string) *coin {
	c := f.byID[id]
	if c == nil {
		c = &coin{id: id, place: len(f.watched)}
		if known, ok := f.table.ByID(id); ok {
			c.known = &known
		}
		f.byID[id] = c
		f.watched, f.unsorted = append(f.watched, watch{coin: c, slot: schemas.MarketStateSlot(id)}), true
	}
	return c
}

// minutesPerHour is how many parts the states are written in.
const minutesPerHour = uint32(processors.StateEvery / time.Minute)

// Load takes the states, and the totals of all minutes: while minutes are read again, coins are at different ones.
func (f *fold) Load(rec eventsv1.Marked) {
	r, ok := rec.(*eventsv1.MarketRecord)
	if !ok {
		return
	}
	switch body := r.Body.(type) {
	case *eventsv1.MarketRecord_Market:
		if r.State != nil {
			c := f.coin(body.Market.CoinId)
			c.state, c.loaded, f.watched[c.place].received = *schemas.RecallCoinState(r.State), r.State.Minute, true
		}
	case *eventsv1.MarketRecord_Summary:
		if r.State != nil {
			f.totals.list = r.State.Totals
		} else {
			f.totals.add(body.Summary.Time, body.Summary.TotalVolume24H)
		}
		f.totals.loaded = body.Summary.Time
	}
}

// Take folds a closed candle or what a source reports of a coin's market.
func (f *fold) Take(minute int64, _ processors.Input, rec eventsv1.Marked) {
	switch r := rec.(type) {
	case *eventsv1.CandleRecord:
		if candle := r.GetCandle(); candle != nil {
			if c := f.coin(candle.CoinId); minute > c.loaded {
				c.state.AddCandle(candle)
				f.watched[c.place].received = true
			}
		}
	case *eventsv1.ReferenceRecord:
		reported := r.GetCoinMarket()
		if reported == nil {
			return
		}
		id, ok := schemas.CanonicalCoin(reported.Source, reported.SourceId, reported.Symbol, reported.Name)
		if !ok {
			return
		}
		if c := f.coin(id); minute > c.loaded && c.state.Observe(reported) {
			f.watched[c.place].received = true
		}
	}
}

// Close writes the rows that changed, the states that are due, and the summary.
func (f *fold) Close(minute int64, out *processors.Outputs) {
	if f.unsorted {
		slices.SortFunc(f.watched, func(a, b watch) int { return strings.Compare(a.coin.id, b.coin.id) })
		f.place()
		f.unsorted = false
	}
	for i := range f.watched {
		w := &f.watched[i]
		w.fresh = w.received || minute > w.expires || f.due(minute, w.slot)
		w.received = false
		if w.fresh {
			f.evaluate(w, minute)
			f.move(w.coin)
		}
	}
	f.rank(minute)
	before := len(f.watched)
	f.watched = slices.DeleteFunc(f.watched, func(w watch) bool {
		if w.fresh {
			f.write(&w, minute, out)
		}
		if w.empty { // at once, whatever was written: whoever begins again must not know more of it
			delete(f.byID, w.coin.id)
		}
		return w.empty
	})
	if len(f.watched) < before {
		f.place()
	}
	f.summarize(minute, out)
	f.closed = minute
	if out != nil {
		out.Emit(schemas.TopicMarkets, 0, "", minute, &eventsv1.MarketRecord{Body: &eventsv1.MarketRecord_Pulse{
			Pulse: &eventsv1.Pulse{Now: minute, Watermark: minute},
		}})
	}
}

// place gives the coins their places in the list.
func (f *fold) place() {
	for i := range f.watched {
		f.watched[i].coin.place = i
	}
}

// due reports whether a minute of the hour lies after the last minute that was closed and not after this one. Minutes of
// silence are never closed.
func (f *fold) due(minute int64, slot uint8) bool {
	const length, hour = int64(time.Minute), int64(minutesPerHour)
	now, before := minute/length, f.closed/length
	if f.closed == 0 {
		before = now - 1
	}
	return now-before >= hour || (now-int64(slot))/hour > (before-int64(slot))/hour
}

// evaluate makes the row of a coin, but for a rank that is another. One without a price has only names.
func (f *fold) evaluate(w *watch, minute int64) {
	c := w.coin
	c.state.Forget(minute)
	row := c.state.Row(minute)
	if row == nil {
		row = &eventsv1.Market{Time: minute}
	}
	row.CoinId, row.Rank = c.id, c.rank
	if c.known != nil {
		row.Symbol, row.Name = c.known.Symbol, c.known.Name
	} else {
		row.Symbol, row.Name = c.state.Named()
	}
	c.row = row
	w.fresh, w.empty, w.expires = true, c.state.Empty(), c.state.Expires(minute)
	w.markets, w.simulated, w.activeUntil = c.state.Markets(minute), row.Simulated, 0
	if row.PriceSource != "" {
		w.activeUntil = row.PriceTime + int64(activeFor)
	}
}

// write adds the new row of a coin to out if it is another, or if its state is due. One for which nothing is remembered has a
// row only after others that had more to report.
func (f *fold) write(w *watch, minute int64, out *processors.Outputs) {
	c := w.coin
	if w.empty && c.written == nil {
		return
	}
	c.row.Time = 0
	size := c.row.SizeVT()
	row := slices.Grow(f.encoded[:0], size)[:size]
	_, err := c.row.MarshalToSizedBufferVT(row)
	c.row.Time = minute
	if err != nil {
		panic(err) // the only error is a buffer of the wrong size
	}
	f.encoded = row
	changed := !bytes.Equal(row, c.written)
	if changed {
		c.written = append(c.written[:0], row...)
	}
	due := f.due(minute, w.slot)
	if out == nil || !changed && !due {
		return
	}
	rec := &eventsv1.MarketRecord{Body: &eventsv1.MarketRecord_Market{Market: c.row}}
	if due {
		rec.State = c.state.Remembered(minute)
	}
	out.Emit(schemas.TopicMarkets, 0, c.id, minute, rec)
}

// summarize adds the summary to out, and once an hour the totals that the next ones are compared with.
func (f *fold) summarize(minute int64, out *processors.Outputs) {
	s := schemas.NewSummary(minute, f.standings(), f.totals.dayBefore(minute))
	for i := range f.watched {
		w := &f.watched[i]
		if minute <= w.activeUntil {
			s.ActiveCoins++
		}
		s.ActiveMarkets += w.markets
		s.Simulated = s.Simulated || w.simulated
	}
	f.totals.add(minute, s.TotalVolume24H)
	if out == nil {
		return
	}
	rec := &eventsv1.MarketRecord{Body: &eventsv1.MarketRecord_Summary{Summary: s}}
	if f.due(minute, 0) {
		rec.State = f.totals.remembered(minute)
	}
	out.Emit(schemas.TopicMarkets, 0, "", minute, rec)
}

// activeFor is how long a coin counts as active after its last price.
const activeFor = 24 * time.Hour
