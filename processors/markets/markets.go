// Package markets says each minute what every coin and the whole market are worth: it joins the closed candles of our own
// prices with what sources say of supplies, volumes and changes. A row is written when it changes, and once an hour with
// all that the next rows are made from, so the last hour of markets.v1 is enough to go on.
//
// The formulas are those of schemas, and on the page docs/formulas.md.
package markets

import (
	"bytes"
	"cmp"
	"hash/fnv"
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
	// coins are in the order of their ids, unless some came in the open minute.
	coins    []*coin
	unsorted bool
	// ranked are those with a market cap, in the order of the last minute; moved those of them whose row is new.
	ranked, moved []*coin
	standings     []schemas.Standing
	totals        totals
	// closed is the last minute that was.
	closed int64
}

// coin is one coin with its newest row. A minute goes through all coins several times and makes the rows of few of them
// anew: what it asks of each is kept here, since rows and states lie scattered in a memory that no cache holds.
type coin struct {
	id    string
	state *schemas.CoinState
	// loaded is the minute that the state was at when it was read back: inputs up to it are in it.
	loaded int64
	// heard says that an input came in the open minute.
	heard bool
	// expires is the minute after which the row changes though nothing is heard.
	expires int64
	row     *eventsv1.Market
	// evaluated is the minute in which the row was made.
	evaluated int64
	standing  schemas.Standing
	// empty says that nothing was remembered then.
	empty bool
	// activeUntil is the last minute in which the coin counts as active, markets how many of our venues' make its price.
	activeUntil int64
	markets     uint32
	// written is the row as it was in the last minute, without its time.
	written []byte
	rank    uint32
	// slot is the minute of the hour in which the state is written.
	slot int64
}

func (f *fold) coin(id string) *coin {
	c := f.byID[id]
	if c == nil {
		c = &coin{id: id, state: &schemas.CoinState{}, slot: slot(id)}
		f.byID[id] = c
		f.coins, f.unsorted = append(f.coins, c), true
	}
	return c
}

// slot spreads the coins over the minutes of an hour, by their ids.
func slot(id string) int64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id)) // never fails
	return int64(h.Sum32() % minutesPerHour)
}

// minutesPerHour is how many parts the states are written in.
const minutesPerHour = uint32(processors.StateEvery / time.Minute)

// Load takes the states, and the totals of all minutes: while minutes are read again, coins stand at different ones.
func (f *fold) Load(rec eventsv1.Marked) {
	r, ok := rec.(*eventsv1.MarketRecord)
	if !ok {
		return
	}
	switch body := r.Body.(type) {
	case *eventsv1.MarketRecord_Market:
		if r.State != nil {
			c := f.coin(body.Market.CoinId)
			c.state, c.loaded, c.heard = schemas.RecallCoinState(r.State), r.State.Minute, true
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

// Take folds a closed candle or what a source says of a coin's market.
func (f *fold) Take(minute int64, _ processors.Input, rec eventsv1.Marked) {
	switch r := rec.(type) {
	case *eventsv1.CandleRecord:
		if candle := r.GetCandle(); candle != nil {
			if c := f.coin(candle.CoinId); minute > c.loaded {
				c.state.AddCandle(candle)
				c.heard = true
			}
		}
	case *eventsv1.ReferenceRecord:
		said := r.GetCoinMarket()
		if said == nil {
			return
		}
		id, ok := schemas.CanonicalCoin(said.Source, said.SourceId, said.Symbol, said.Name)
		if !ok {
			return
		}
		if c := f.coin(id); minute > c.loaded {
			c.heard = c.state.Observe(said) || c.heard
		}
	}
}

// Close writes the rows that changed, the states that are due, and the summary.
func (f *fold) Close(minute int64, out *processors.Outputs) {
	if f.unsorted {
		slices.SortFunc(f.coins, func(a, b *coin) int { return strings.Compare(a.id, b.id) })
		f.unsorted = false
	}
	for _, c := range f.coins {
		if c.heard || minute > c.expires || f.due(minute, c.slot) {
			f.evaluate(c, minute)
			c.heard = false
		}
	}
	f.rank(minute)
	f.coins = slices.DeleteFunc(f.coins, func(c *coin) bool {
		changed := c.evaluated == minute && f.write(c, minute, out)
		if c.empty && !changed {
			delete(f.byID, c.id)
			return true
		}
		return false
	})
	f.summarize(minute, out)
	f.closed = minute
	if out != nil {
		out.Emit(schemas.TopicMarkets, 0, "", minute, &eventsv1.MarketRecord{Body: &eventsv1.MarketRecord_Pulse{
			Pulse: &eventsv1.Pulse{Now: minute, Watermark: minute},
		}})
	}
}

// due says whether a minute of the hour lies behind the last minute that was closed and not behind this one. Minutes of
// silence are never closed.
func (f *fold) due(minute, slot int64) bool {
	const length, hour = int64(time.Minute), int64(minutesPerHour)
	now, before := minute/length, f.closed/length
	if f.closed == 0 {
		before = now - 1
	}
	return now-before >= hour || (now-slot)/hour > (before-slot)/hour
}

// evaluate makes the row of a coin, but for its rank. One without a price has only names.
func (f *fold) evaluate(c *coin, minute int64) {
	c.state.Forget(minute)
	row := c.state.Row(minute)
	if row == nil {
		row = &eventsv1.Market{Time: minute}
	}
	row.CoinId = c.id
	if known, ok := f.table.ByID(c.id); ok {
		row.Symbol, row.Name = known.Symbol, known.Name
	} else {
		row.Symbol, row.Name = c.state.Named()
	}
	row.Rank = c.rank
	c.row, c.expires, c.evaluated, c.empty = row, c.state.Expires(minute), minute, c.state.Empty()
	c.standing = schemas.NewStanding(row, f.table)
	c.markets, c.activeUntil = c.state.Markets(minute), 0
	if row.PriceSource != "" {
		c.activeUntil = row.PriceTime + int64(activeFor)
	}
}

// rank numbers the coins by market cap, those of the same by id. A coin whose rank alone changed gets a new row too.
func (f *fold) rank(minute int64) {
	f.moved = f.moved[:0]
	for _, c := range f.coins {
		switch {
		case c.evaluated != minute:
		case c.standing.Ranked():
			f.moved = append(f.moved, c)
		default:
			f.setRank(c, 0, minute)
		}
	}
	f.ranked = slices.DeleteFunc(f.ranked, func(c *coin) bool { return c.evaluated == minute })
	slices.SortFunc(f.moved, byCap)
	f.ranked = merge(f.ranked, f.moved)
	for i, c := range f.ranked {
		f.setRank(c, uint32(i+1), minute)
	}
}

// merge adds coins to others, both in the order of byCap. That takes fewer steps than sorting all, of which most lie as
// they did a minute before.
func merge(list, added []*coin) []*coin {
	i, n := len(list)-1, len(added)
	list = slices.Grow(list, n)[:len(list)+n]
	for to := len(list) - 1; n > 0; to-- {
		if i >= 0 && byCap(list[i], added[n-1]) > 0 {
			list[to] = list[i]
			i--
		} else {
			list[to] = added[n-1]
			n--
		}
	}
	return list
}

func byCap(a, b *coin) int {
	if c := cmp.Compare(b.standing.MarketCap, a.standing.MarketCap); c != 0 {
		return c
	}
	return strings.Compare(a.id, b.id)
}

func (f *fold) setRank(c *coin, rank uint32, minute int64) {
	if c.rank == rank {
		return
	}
	c.rank = rank
	if c.evaluated != minute {
		f.evaluate(c, minute)
	}
	c.row.Rank = rank
}

// write adds the new row of a coin to out if it is another, or if its state is due. It says whether the row is another.
func (f *fold) write(c *coin, minute int64, out *processors.Outputs) (changed bool) {
	c.row.Time = 0
	row, err := c.row.MarshalVT()
	c.row.Time = minute
	if err != nil {
		panic(err) // the only error is a buffer of the wrong size
	}
	changed = !bytes.Equal(row, c.written)
	c.written = row
	due := f.due(minute, c.slot)
	if out == nil || !changed && !due {
		return changed
	}
	rec := &eventsv1.MarketRecord{Body: &eventsv1.MarketRecord_Market{Market: c.row}}
	if due {
		rec.State = c.state.Remembered(minute)
	}
	out.Emit(schemas.TopicMarkets, 0, c.id, minute, rec)
	return changed
}

// summarize adds the summary to out, and once an hour the totals that the next ones are compared with.
func (f *fold) summarize(minute int64, out *processors.Outputs) {
	f.standings = f.standings[:0]
	for _, c := range f.ranked {
		f.standings = append(f.standings, c.standing)
	}
	s := schemas.NewSummary(minute, f.standings, f.totals.dayBefore(minute))
	for _, c := range f.coins {
		if minute <= c.activeUntil {
			s.ActiveCoins++
		}
		s.ActiveMarkets += c.markets
		s.Simulated = s.Simulated || c.standing.Row.Simulated
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
