package resolve

import (
	"math"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

const (
	// referenceFor is how long what a source reports of a coin's price counts, by the log's now.
	referenceFor = time.Hour
	// doubtAfter is how long a market must have contradicted the reference: a source may be minutes behind a crash.
	doubtAfter = 10 * time.Minute
	// silentFor is how long a doubted market may be silent, or this process not be there, without being believed again for doubtAfter.
	silentFor = time.Hour
)

// ConflictFilter finds the markets that have a coin's symbol and not its price: another coin of that name, which would halve the
// coin's venues or leave two of them without consensus. A market is doubted if it has been further from the price that
// sources of reference data report than an outlier may be from the median, for doubtAfter on end, while at least as many
// venues agree with that price as do not. So a source that is wrong itself makes nobody doubted, nor does one venue
// alone. What is not received here, in a process that resolves other partitions, is not counted: it makes the filter slower to
// doubt, never quicker. A market that was doubted stays so over a silence, and over a restart by Remember. Safe for concurrent use.
type ConflictFilter struct {
	// some means that there is any reference.
	some  atomic.Bool
	mu    sync.Mutex
	coins map[string]*referenceCoin
	// before is when the log had markets as doubted for which nothing has been received yet.
	before map[marketKey]int64
}

type referenceCoin struct {
	// price is in USD, reported at a log time.
	price   float64
	asOf    int64
	markets map[marketKey]*opinion
}

type marketKey struct{ venue, symbol string }

// opinion is the market's last price against the reference: since when it has been off, 0 where it agrees.
type opinion struct{ received, since int64 }

// doubted means that it was off for long enough when it was last received.
func (o *opinion) doubted() bool { return o.since != 0 && o.received-o.since >= int64(doubtAfter) }

// NewConflictFilter knows no reference yet, and doubts nothing.
func NewConflictFilter() *ConflictFilter {
	return &ConflictFilter{coins: map[string]*referenceCoin{}, before: map[marketKey]int64{}}
}

// Remember takes what the log has of a market: it was doubted at a log time (Unix nanoseconds), by a process before this one.
func (g *ConflictFilter) Remember(venue, symbol string, at int64) {
	market := marketKey{venue, symbol}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range g.coins {
		if o := c.markets[market]; o != nil {
			if o.since != 0 {
				o.since = min(o.since, at-int64(doubtAfter))
			}
			return // it was received already
		}
	}
	g.before[market] = at
}

// Apply takes a source's report of a coin's market.
func (g *ConflictFilter) Apply(reported *eventsv1.CoinMarket) {
	id, ok := schemas.CanonicalCoin(reported.Source, reported.SourceId, reported.Symbol, reported.Name)
	if !ok {
		return
	}
	if _, ours := schemas.Coins().ByID(id); !ours {
		return // no venue's symbol means it
	}
	price, err := strconv.ParseFloat(reported.Price, 64)
	if err != nil || !(price > 0) || math.IsInf(price, 0) {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.coins[id]
	if c == nil {
		c = &referenceCoin{markets: map[marketKey]*opinion{}}
		g.coins[id] = c
	}
	if reported.IngestTime >= c.asOf {
		c.price, c.asOf = price, reported.IngestTime
	}
	g.some.Store(true)
}

// doubts notes a market's price of a coin at a log time, in USD, and reports whether it is doubted.
func (g *ConflictFilter) doubts(coinID string, market marketKey, usd float64, now int64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.coins[coinID]
	if c == nil || now-c.asOf > int64(referenceFor) {
		return false
	}
	o := c.markets[market]
	if o == nil || now-o.received > int64(schemas.FreshFor) {
		o = &opinion{since: g.sinceBefore(market, o, now)}
		c.markets[market] = o
	}
	o.received = now
	if math.Abs(usd-c.price)/c.price <= schemas.MaxDeviation {
		o.since = 0
		return false
	}
	if o.since == 0 {
		o.since = now
	}
	return now-o.since >= int64(doubtAfter) && c.agreed(now)
}

// sinceBefore is since when a market that is received after a silence has been off: its price before is not "on end", unless it was doubted.
func (g *ConflictFilter) sinceBefore(market marketKey, last *opinion, now int64) int64 {
	at, was := g.before[market]
	delete(g.before, market)
	switch {
	case was && now-at <= int64(silentFor):
		return at - int64(doubtAfter)
	case last != nil && last.doubted() && now-last.received <= int64(silentFor):
		return last.since
	}
	return 0
}

// agreed reports whether at least as many venues agree with the reference as do not, of those that are received.
func (c *referenceCoin) agreed(now int64) bool {
	off := map[string]bool{}
	for m, o := range c.markets {
		if now-o.received > int64(schemas.FreshFor) {
			if !o.doubted() || now-o.received > int64(silentFor) {
				delete(c.markets, m)
			}
			continue
		}
		// A venue agrees if any of its markets does.
		if was, known := off[m.venue]; !known || was {
			off[m.venue] = o.since != 0
		}
	}
	balance := 0
	for _, isOff := range off {
		if isOff {
			balance--
		} else {
			balance++
		}
	}
	return balance >= 0
}

// decision is the filter's decision on a market in a second of log time.
type decision struct {
	second   int64
	doubtful bool
}

// asksAgain is how often, in seconds of log time, the filter is asked about a market of which the log has what was resolved: often enough for a
// market to count as received, and seldom, as a start works these ticks off before it has a fresh price.
const asksAgain = 10

// asks reports whether the filter is asked about a tick of which the log has what was resolved.
func (f *fold) asks(venue, symbol string) bool {
	return f.conflicts != nil && f.conflicts.some.Load() &&
		f.clocks.Now()/int64(time.Second)-f.decisions[marketKey{venue, symbol}].second >= asksAgain
}

// doubted asks the filter about a tick at most once a second and market; what its coin cannot be priced by is not asked.
func (f *fold) doubted(coinID string, t *eventsv1.Tick, rate float64) bool {
	if f.conflicts == nil || !f.conflicts.some.Load() || coinID == "" {
		return false
	}
	market, now := marketKey{t.Venue, t.Symbol}, f.clocks.Now()
	last := f.decisions[market]
	if last.second == now/int64(time.Second) {
		return last.doubtful
	}
	usd := tickPrice(t) * rate
	if !(usd > 0) {
		return last.doubtful
	}
	last = decision{now / int64(time.Second), f.conflicts.doubts(coinID, market, usd, now)}
	f.decisions[market] = last
	return last.doubtful
}

// tickPrice is the price that a tick carries, in its quote; 0 for none.
func tickPrice(t *eventsv1.Tick) float64 {
	for _, text := range []string{t.Price, t.Last} {
		if price, err := strconv.ParseFloat(text, 64); err == nil {
			return price
		}
	}
	bid, _ := strconv.ParseFloat(t.Bid, 64)
	ask, _ := strconv.ParseFloat(t.Ask, 64)
	if bid <= 0 || ask <= 0 {
		return 0
	}
	return (bid + ask) / 2
}
