package market

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/marketlog/marketlog/schemas"
)

// Reporter is how one source sees the market: each coin as it was when the source last looked, at a price that
// is a little off the world's, as everybody's is.
type Reporter struct {
	Catalogue *Catalogue
	Seed      Seed
	// Spread is the greatest share by which its prices are off.
	Spread float64

	newest atomic.Pointer[Snapshot]
	mu     sync.Mutex // one snapshot is made at a time
}

// Snapshot is the market in one minute as a source sees it. It does not change.
type Snapshot struct {
	reporter *Reporter
	Minute   int64
	// By the place of a coin in the catalogue: when it was looked at and its price and capitalization then; 0
	// if it has none.
	At     []int64
	Prices []float64
	Caps   []float64
	// Ranked are the places of the coins with a capitalization, the largest first, rank is where a coin is among them, from 1.
	Ranked []int
	Rank   []int
	// Cap is that of all coins together, listed how many there are.
	Cap    float64
	Listed int

	figures []atomic.Pointer[Figures]
}

// Figures are what a source reports of a coin's market beside its price. Changes are in percent; what reaches
// back further than the coin is not a number.
type Figures struct {
	Circulating, Total, Max      float64
	Volume, VolumeBefore         float64
	High, Low, Before, CapBefore float64
	Change                       [len(Spans)]float64
	ATH, ATL                     float64
	ATHAt, ATLAt                 int64
}

// Spans over which sources report changes, as places in Spans.
const (
	Span15m = iota
	Span30m
	Span1h
	Span6h
	Span12h
	Span24h
	Span7d
	Span14d
	Span30d
	Span60d
	Span200d
	Span1y
)

// Spans by their constants. Not to be changed.
var Spans = [...]time.Duration{
	15 * time.Minute, 30 * time.Minute, time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour,
	7 * 24 * time.Hour, 14 * 24 * time.Hour, 30 * 24 * time.Hour, 60 * 24 * time.Hour, 200 * 24 * time.Hour, 365 * 24 * time.Hour,
}

// Snapshot is what the source knows at a time.
func (t *Reporter) Snapshot(now time.Time) *Snapshot {
	minute := FloorDiv(now.UnixNano(), Minute)
	if b := t.newest.Load(); b != nil && b.Minute == minute {
		return b
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if b := t.newest.Load(); b != nil && b.Minute == minute {
		return b
	}
	b := t.look(minute)
	t.newest.Store(b)
	return b
}

func (t *Reporter) look(index int64) *Snapshot {
	n := len(t.Catalogue.Coins)
	b := &Snapshot{
		reporter: t, Minute: index, At: make([]int64, n), Prices: make([]float64, n), Caps: make([]float64, n),
		Rank: make([]int, n), figures: make([]atomic.Pointer[Figures], n),
	}
	for i, c := range t.Catalogue.Coins {
		// Not everything is looked at in the same second.
		at := index*Minute - int64(t.Seed.At(int64(i))%60)*Second
		b.At[i] = at
		if !c.Listed(at) {
			continue
		}
		b.Listed++
		if c.Unpriced {
			continue
		}
		b.Prices[i] = c.At(at) * t.Factor(i)
		if b.Caps[i] = b.Prices[i] * c.CirculatingAt(at); b.Caps[i] > 0 {
			b.Ranked = append(b.Ranked, i)
			b.Cap += b.Caps[i]
		}
	}
	slices.SortFunc(b.Ranked, func(x, y int) int { return cmp.Or(cmp.Compare(b.Caps[y], b.Caps[x]), cmp.Compare(x, y)) })
	for rank, i := range b.Ranked {
		b.Rank[i] = rank + 1
	}
	return b
}

// Factor sets the source's price of a coin apart from the world's.
func (t *Reporter) Factor(place int) float64 {
	return 1 + t.Spread*(2*t.Seed.Unit(int64(place)+1<<32)-1)
}

// FiguresOf are a coin's figures; the coin has a price.
func (b *Snapshot) FiguresOf(c *Coin) *Figures {
	if f := b.figures[c.Place].Load(); f != nil {
		return f
	}
	at, price, factor := b.At[c.Place], b.Prices[c.Place], b.reporter.Factor(c.Place)
	f := &Figures{
		Circulating: c.CirculatingAt(at), Total: c.TotalAt(at), Max: c.max,
	}
	for i, span := range Spans {
		f.Change[i] = math.NaN()
		if then := at - int64(span); then >= c.Born {
			f.Change[i] = 100 * (price/(c.Past(then)*factor) - 1)
		}
	}
	f.Before = c.Past(at-Day) * factor
	f.CapBefore = f.Before * c.CirculatingAt(at-Day)
	f.Volume, f.VolumeBefore = c.VolumeOf(at, price), c.VolumeOf(at-Day, f.Before)
	high, low := c.dayBefore(at)
	f.High, f.Low = max(high*factor, price, f.Before), min(low*factor, price, f.Before)
	e := c.extremesAt(at)
	f.ATH, f.ATHAt = math.Exp(e.high)*factor, e.highAt
	if f.High > f.ATH { // what the hour under way has brought
		f.ATH, f.ATHAt = f.High, at
	}
	f.ATL, f.ATLAt = math.Exp(e.low)*factor, e.lowAt
	if f.Low < f.ATL {
		f.ATL, f.ATLAt = f.Low, at
	}
	b.figures[c.Place].Store(f)
	return f
}

// Totals are what all coins together are worth and what is traded of them in a day, and a day before.
func (b *Snapshot) Totals() (volume, capBefore, volumeBefore float64) {
	for i, c := range b.reporter.Catalogue.Coins {
		if price, at := b.Prices[i], b.At[i]; price > 0 {
			before := c.Past(at - Day)
			volume += c.VolumeOf(at, price)
			volumeBefore += c.VolumeOf(at-Day, before)
			capBefore += before * b.reporter.Factor(i) * c.CirculatingAt(at-Day)
		}
	}
	return volume, capBefore, volumeBefore
}

// Past is the price at a time that nobody asks for again, to the lattice.
func (a *Asset) Past(t int64) float64 {
	x, step := 0.0, FloorDiv(t, lattice)
	for index := FloorDiv(t, Hour); a != nil; a = a.Parent {
		x += a.Path.within(a.Path.newHour(index, a.Path.Walk(index)), step)
	}
	return math.Exp(x)
}

// hours are the extremes of the 23 full hours before an hour, as logarithms.
type hours struct {
	index     int64
	high, low float64
}

// dayBefore are the extremes of the 23 full hours before a time and of what has passed of its own hour.
func (c *Coin) dayBefore(t int64) (high, low float64) {
	index := FloorDiv(t, Hour)
	before := c.hours.Load()
	if before == nil || before.index != index {
		var highs, lows [23]float64
		for a := c.Asset; a != nil; a = a.Parent {
			open := a.Path.Walk(index - int64(len(highs)))
			for i := range highs {
				x := a.Path.newHour(index-int64(len(highs)-i), open)
				highs[i], lows[i], open = highs[i]+x.high, lows[i]+x.low, x.close
			}
		}
		before = &hours{index, slices.Max(highs[:]), slices.Min(lows[:])}
		c.hours.Store(before)
	}
	up, down := 0.0, 0.0
	for a := c.Asset; a != nil; a = a.Parent {
		x := a.Path.hour(index)
		highest, lowest := x.open, x.open
		if passed := FloorDiv(t-index*Hour, lattice); passed >= x.secondAt {
			highest, lowest = x.high, x.low
		} else if passed >= x.firstAt {
			highest, lowest = max(x.open, x.first), min(x.open, x.first)
		}
		up, down = up+highest, down+lowest
	}
	return math.Exp(max(before.high, up)), math.Exp(min(before.low, down))
}

// Dominance is the share of a coin's capitalization in all, in percent.
func (b *Snapshot) Dominance(id string) float64 {
	c := b.reporter.Catalogue.ByID[id]
	if c == nil || b.Cap == 0 {
		return 0
	}
	return 100 * b.Caps[c.Place] / b.Cap
}

// QuoteUnit is something that values are expressed in beside USD.
type QuoteUnit struct {
	Code  string
	Price func(t int64) float64 // in USD
}

// foreign are units that no market of the simulator knows: what one of them costs in USD.
var foreign = map[string]float64{"bmd": 1, "mmk": 1 / 2_100.0, "vef": 10, "xdr": 1.33, "xag": 33, "xau": 4_080}

// quoteUnits are what CoinGecko values coins in, in its order.
func (c *Catalogue) quoteUnits() []QuoteUnit {
	var units []QuoteUnit
	for _, id := range []string{
		"bitcoin", "ethereum", "litecoin", "bitcoin-cash", "binancecoin", "eos", "ripple", "stellar", "chainlink", "polkadot", "yearn-finance",
	} {
		if n := c.ByID[id]; n != nil {
			units = append(units, QuoteUnit{strings.ToLower(n.Symbol), n.At})
		}
	}
	for _, f := range c.World.Table.Fiats() {
		if a := c.World.Fiats[f.Code]; a != nil && f.Code != "CNH" {
			units = append(units, QuoteUnit{strings.ToLower(f.Code), a.At})
		}
	}
	for _, code := range []string{"bmd", "mmk", "vef", "xdr", "xag", "xau"} {
		units = append(units, QuoteUnit{code, func(int64) float64 { return foreign[code] }})
	}
	bitcoin := c.ByID["bitcoin"]
	return append(units,
		QuoteUnit{"bits", func(t int64) float64 { return bitcoin.At(t) / 1e6 }},
		QuoteUnit{"sats", func(t int64) float64 { return bitcoin.At(t) / 1e8 }})
}

// Pegged reports which currency a stablecoin aims at, empty for what is not one.
func (n *Coin) Pegged() string {
	if n.Kind != schemas.KindStablecoin {
		return ""
	}
	return n.Peg
}

// Opening is the price at a full hour.
func (a *Asset) Opening(index int64) float64 {
	x := 0.0
	for ; a != nil; a = a.Parent {
		x += a.Path.Walk(index)
	}
	return math.Exp(x)
}
