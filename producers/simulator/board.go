package simulator

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/marketlog/marketlog/schemas"
)

// teller is how one source sees the market: each coin as it was when the source last looked, at a price that
// is a little off the world's, as everybody's is.
type marketReporter struct {
	catalogue *catalogue
	seed      seed
	// spread is the greatest share by which its prices are off.
	spread float64

	newest atomic.Pointer[marketSnapshot]
	mu     sync.Mutex // one board is made at a time
}

// board is the market in one minute as a teller sees it.
type marketSnapshot struct {
	teller *marketReporter
	minute int64
	// By the place of a coin in the catalogue: when it was looked at and its price and capitalization then; 0
	// if it has none.
	at     []int64
	prices []float64
	caps   []float64
	// ranked are the places of the coins with a capitalization, the largest first, rank is where a coin is among them, from 1.
	ranked []int
	rank   []int
	// cap is that of all coins together, listed how many there are.
	cap    float64
	listed int

	figures []atomic.Pointer[figures]
}

// figures are what a source tells of a coin's market beside its price. Changes are in percent; what reaches
// back further than the coin is not a number.
type figures struct {
	circulating, total, max      float64
	volume, volumeBefore         float64
	high, low, before, capBefore float64
	change                       [len(spans)]float64
	ath, atl                     float64
	athAt, atlAt                 int64
}

// Spans that some source tells the change over.
const (
	spanQuarter = iota // of an hour
	spanHalf
	span1h
	span6h
	span12h
	span24h
	span7d
	span14d
	span30d
	span60d
	span200d
	span1y
)

var spans = [...]time.Duration{
	15 * time.Minute, 30 * time.Minute, time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour,
	7 * 24 * time.Hour, 14 * 24 * time.Hour, 30 * 24 * time.Hour, 60 * 24 * time.Hour, 200 * 24 * time.Hour, 365 * 24 * time.Hour,
}

// board is what the teller knows at a time.
func (t *marketReporter) board(now time.Time) *marketSnapshot {
	minute := floorDiv(now.UnixNano(), minute)
	if b := t.newest.Load(); b != nil && b.minute == minute {
		return b
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if b := t.newest.Load(); b != nil && b.minute == minute {
		return b
	}
	b := t.look(minute)
	t.newest.Store(b)
	return b
}

func (t *marketReporter) look(index int64) *marketSnapshot {
	n := len(t.catalogue.coins)
	b := &marketSnapshot{
		teller: t, minute: index, at: make([]int64, n), prices: make([]float64, n), caps: make([]float64, n),
		rank: make([]int, n), figures: make([]atomic.Pointer[figures], n),
	}
	for i, c := range t.catalogue.coins {
		// Not everything is looked at in the same second.
		at := index*minute - int64(t.seed.at(int64(i))%60)*second
		b.at[i] = at
		if !c.listed(at) {
			continue
		}
		b.listed++
		if c.unpriced {
			continue
		}
		b.prices[i] = c.at(at) * t.factor(i)
		if b.caps[i] = b.prices[i] * c.circulatingAt(at); b.caps[i] > 0 {
			b.ranked = append(b.ranked, i)
			b.cap += b.caps[i]
		}
	}
	slices.SortFunc(b.ranked, func(x, y int) int { return cmp.Or(cmp.Compare(b.caps[y], b.caps[x]), cmp.Compare(x, y)) })
	for rank, i := range b.ranked {
		b.rank[i] = rank + 1
	}
	return b
}

// factor sets the teller's price of a coin apart from the world's.
func (t *marketReporter) factor(place int) float64 {
	return 1 + t.spread*(2*t.seed.unit(int64(place)+1<<32)-1)
}

// of are a coin's figures; the coin has a price.
func (b *marketSnapshot) of(c *coin) *figures {
	if f := b.figures[c.place].Load(); f != nil {
		return f
	}
	at, price, factor := b.at[c.place], b.prices[c.place], b.teller.factor(c.place)
	f := &figures{
		circulating: c.circulatingAt(at), total: c.totalAt(at), max: c.max,
	}
	for i, span := range spans {
		f.change[i] = math.NaN()
		if then := at - int64(span); then >= c.born {
			f.change[i] = 100 * (price/(c.past(then)*factor) - 1)
		}
	}
	f.before = c.past(at-day) * factor
	f.capBefore = f.before * c.circulatingAt(at-day)
	f.volume, f.volumeBefore = c.volumeOf(at, price), c.volumeOf(at-day, f.before)
	high, low := c.dayBefore(at)
	f.high, f.low = max(high*factor, price, f.before), min(low*factor, price, f.before)
	e := c.extremesAt(at)
	f.ath, f.athAt = math.Exp(e.high)*factor, e.highAt
	if f.high > f.ath { // what the hour under way has brought
		f.ath, f.athAt = f.high, at
	}
	f.atl, f.atlAt = math.Exp(e.low)*factor, e.lowAt
	if f.low < f.atl {
		f.atl, f.atlAt = f.low, at
	}
	b.figures[c.place].Store(f)
	return f
}

// totals are what all coins together are worth and what is traded of them in a day, and a day before.
func (b *marketSnapshot) totals() (volume, capBefore, volumeBefore float64) {
	for i, c := range b.teller.catalogue.coins {
		if price, at := b.prices[i], b.at[i]; price > 0 {
			before := c.past(at - day)
			volume += c.volumeOf(at, price)
			volumeBefore += c.volumeOf(at-day, before)
			capBefore += before * b.teller.factor(i) * c.circulatingAt(at-day)
		}
	}
	return volume, capBefore, volumeBefore
}

// past is the price at a time that nobody asks for again, to the lattice.
func (a *asset) past(t int64) float64 {
	x, step := 0.0, floorDiv(t, lattice)
	for index := floorDiv(t, hour); a != nil; a = a.parent {
		x += a.path.within(a.path.newHour(index, a.path.walk(index)), step)
	}
	return math.Exp(x)
}

// hours are the extremes of the 23 full hours before an hour, as logarithms.
type hours struct {
	index     int64
	high, low float64
}

// dayBefore are the extremes of the 23 full hours before a time and of what has passed of its own hour.
func (c *coin) dayBefore(t int64) (high, low float64) {
	index := floorDiv(t, hour)
	before := c.hours.Load()
	if before == nil || before.index != index {
		var highs, lows [23]float64
		for a := c.asset; a != nil; a = a.parent {
			open := a.path.walk(index - int64(len(highs)))
			for i := range highs {
				x := a.path.newHour(index-int64(len(highs)-i), open)
				highs[i], lows[i], open = highs[i]+x.high, lows[i]+x.low, x.close
			}
		}
		before = &hours{index, slices.Max(highs[:]), slices.Min(lows[:])}
		c.hours.Store(before)
	}
	up, down := 0.0, 0.0
	for a := c.asset; a != nil; a = a.parent {
		x := a.path.hour(index)
		highest, lowest := x.open, x.open
		if passed := floorDiv(t-index*hour, lattice); passed >= x.secondAt {
			highest, lowest = x.high, x.low
		} else if passed >= x.firstAt {
			highest, lowest = max(x.open, x.first), min(x.open, x.first)
		}
		up, down = up+highest, down+lowest
	}
	return math.Exp(max(before.high, up)), math.Exp(min(before.low, down))
}

// dominance is the share of a coin's capitalization in all, in percent.
func (b *marketSnapshot) dominance(id string) float64 {
	c := b.teller.catalogue.byID[id]
	if c == nil || b.cap == 0 {
		return 0
	}
	return 100 * b.caps[c.place] / b.cap
}

// quoteUnit is something that values are told in beside USD.
type quoteUnit struct {
	code  string
	price func(t int64) float64 // in USD
}

// foreign are units that no market of the simulator knows: what one of them costs in USD.
var foreign = map[string]float64{"bmd": 1, "mmk": 1 / 2_100.0, "vef": 10, "xdr": 1.33, "xag": 33, "xau": 4_080}

// quoteUnits are what CoinGecko values coins in, in its order.
func (c *catalogue) quoteUnits() []quoteUnit {
	var units []quoteUnit
	for _, id := range []string{
		"bitcoin", "ethereum", "litecoin", "bitcoin-cash", "binancecoin", "eos", "ripple", "stellar", "chainlink", "polkadot", "yearn-finance",
	} {
		if n := c.byID[id]; n != nil {
			units = append(units, quoteUnit{lower(n.symbol), n.at})
		}
	}
	for _, f := range c.world.table.Fiats() {
		if a := c.world.fiats[f.Code]; a != nil && f.Code != "CNH" {
			units = append(units, quoteUnit{lower(f.Code), a.at})
		}
	}
	for _, code := range []string{"bmd", "mmk", "vef", "xdr", "xag", "xau"} {
		units = append(units, quoteUnit{code, func(int64) float64 { return foreign[code] }})
	}
	bitcoin := c.byID["bitcoin"]
	return append(units,
		quoteUnit{"bits", func(t int64) float64 { return bitcoin.at(t) / 1e6 }},
		quoteUnit{"sats", func(t int64) float64 { return bitcoin.at(t) / 1e8 }})
}

func lower(symbol string) string { return string(appendLower(nil, symbol)) }

// pegged says which currency a stablecoin aims at, empty for what is none.
func (n *coin) pegged() string {
	if n.kind != schemas.KindStablecoin {
		return ""
	}
	return n.peg
}
