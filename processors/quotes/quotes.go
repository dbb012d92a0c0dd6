// Package quotes publishes what one unit of each quote asset costs in USD, level by level: stablecoins
// and currencies from their direct USD markets, currencies without one from the central bank's
// fixing, then the coins that markets are quoted in, from USD and first-level markets. A rate of
// 1.0 is never assumed: an asset without fresh inputs has none.
//
// quotes.v1 is log, not view: resolve records which of its rates it used.
package quotes

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// repeatEvery is how often an unchanged rate is written, so that the end of the topic holds all.
const repeatEvery = 10 * time.Second

// ruleVersion is the version of schemas.Aggregate that rates are made by.
const ruleVersion = 1

// referenceWait is how long after it was read or entered counts what other topics hold: fixings, and operators' overrides and corrections.
// By then they have been read up to there, so what a log second sees of them depends on the log and not on who read faster.
const referenceWait = 30 * time.Second

// Ways in which a rate was found.
const (
	methodMarket = "market"
	methodFixing = "fixing"
)

// Name is the consumer group.
const Name = "quotes"

// Seconds is the declaration of this processor; the caller adds the log.
func Seconds(coins *schemas.CoinTable, overrides *schemas.SymbolOverrides, corrections *schemas.Corrections, fixings *Fixings) *processors.Seconds {
	return &processors.Seconds{
		Name: Name, Input: schemas.TopicTicksRaw, Output: schemas.TopicQuotes,
		New:   func() processors.SecondFold { return newFold(coins, overrides, corrections, fixings) },
		Reads: func(venue, base string) bool { return mayQuote(coins, overrides, venue, base) },
	}
}

// mayQuote reports whether a venue's base is a quote asset by the table, or may be one by an override of any time.
func mayQuote(coins *schemas.CoinTable, overrides *schemas.SymbolOverrides, venue, base string) bool {
	asset, known := coins.ResolveQuote(venue, base)
	return known && schemas.QuoteLevel(coins, asset) != schemas.NoQuote || overrides.Mention(venue, base)
}

type fold struct {
	coins       *schemas.CoinTable
	overrides   *schemas.SymbolOverrides
	corrections *schemas.Corrections
	fixings     *Fixings
	assets      map[string]*asset
	// order is the ids of assets, level by level and sorted: first-level rates are needed by the second.
	order []string
	// closed is the last second that was.
	closed int64
	// seen are the trades that were read lately.
	seen *processors.EventIDs
}

type asset struct {
	id      string
	level   int
	markets map[processors.MarketID]*processors.Market
	rate    float64 // of the last second that was closed; 0 for none
}

func newFold(coins *schemas.CoinTable, overrides *schemas.SymbolOverrides, corrections *schemas.Corrections, fixings *Fixings) *fold {
	f := &fold{coins: coins, overrides: overrides, corrections: corrections, fixings: fixings, assets: map[string]*asset{}, seen: processors.NewEventIDs()}
	for _, fiat := range coins.Fiats() {
		if fiat.Code != schemas.USD {
			f.asset(fiat.Code, schemas.DirectQuote)
		}
	}
	return f
}

// asset finds or adds an asset. Assets are written in an order that depends on their names only.
func (f *fold) asset(id string, level int) *asset {
	a := f.assets[id]
	if a == nil {
		a = &asset{id: id, level: level, markets: map[processors.MarketID]*processors.Market{}}
		f.assets[id] = a
		f.order = append(f.order, id)
		slices.SortFunc(f.order, func(x, y string) int {
			return cmp.Or(f.assets[x].level-f.assets[y].level, strings.Compare(x, y))
		})
	}
	return a
}

// Take keeps the ticks of markets whose base is a quote asset. A market in another quote asset is converted by
// the rate of the second before, the last that the log has: within one second, the partitions have no order.
func (f *fold) Take(second int64, in processors.Input, t *eventsv1.Tick) {
	if t.Base == "" || t.Quote == "" {
		return
	}
	base, ok := f.overrides.Quote(f.coins, t.Venue, t.Base, second-int64(referenceWait))
	if !ok || base.ID == schemas.USD {
		return
	}
	quote, ok := f.overrides.Quote(f.coins, t.Venue, t.Quote, second-int64(referenceWait))
	if !ok {
		return
	}
	level := schemas.QuoteLevel(f.coins, base)
	resolved := &eventsv1.ResolvedTick{Tick: t, QuoteId: quote.ID, Rate: 1, RateTime: second}
	switch {
	case level == schemas.NoQuote:
		return
	case quote.ID == schemas.USD:
	case level == schemas.CrossQuote && schemas.QuoteLevel(f.coins, quote) == schemas.DirectQuote:
		resolved.Rate = 0
		if q := f.assets[quote.ID]; q != nil && second-f.closed <= int64(processors.RateFor) {
			resolved.Rate, resolved.RateTime = q.rate, f.closed
		}
	default:
		return
	}
	if f.repeated(second, t) || resolved.Rate == 0 {
		return
	}
	if reason, _ := schemas.CheckTick(t); reason != "" {
		return
	}
	if f.corrections.Excluded(t.Venue, t.Symbol, t.IngestTime, second-int64(referenceWait)) {
		resolved.Flags = uint32(schemas.Excluded)
	}
	a := f.asset(base.ID, level)
	id := processors.MarketID{Venue: t.Venue, Symbol: t.Symbol}
	m := a.markets[id]
	if m == nil {
		m = &processors.Market{}
		a.markets[id] = m
	}
	m.Apply(&eventsv1.Mark{Partition: in.Partition, Offset: in.Offset}, resolved, second)
}

// repeated reports whether a trade was read before, as a venue sends its last ones to those who connect again: it
// is no news, or a market without trades would live on. What is read of a quote is received each time.
func (f *fold) repeated(second int64, t *eventsv1.Tick) bool {
	if len(t.EventId) != len(schemas.EventID{}) {
		return true // resolve refuses it
	}
	f.seen.Forget(second - int64(processors.WindowMemory))
	return t.Kind == eventsv1.TickKind_TICK_KIND_TRADE && f.seen.Add(schemas.EventID(t.EventId), second)
}

// Close writes the rates that changed, and in the first second of every ten all of them. When one was last
// written does not count: a fold that was rewound would not know it.
func (f *fold) Close(second int64, out *processors.Outputs) {
	repeat := second/int64(repeatEvery) != f.closed/int64(repeatEvery)
	f.closed = second
	for _, id := range f.order {
		a := f.assets[id]
		before := a.rate
		rate := f.evaluate(a, second)
		a.rate = rate.GetRate()
		if rate == nil || a.rate == before && !repeat {
			continue
		}
		out.Emit(schemas.TopicQuotes, 0, id, second, &eventsv1.QuoteRecord{Body: &eventsv1.QuoteRecord_Rate{Rate: rate}})
	}
	out.Emit(schemas.TopicQuotes, 0, "", second, &eventsv1.QuoteRecord{Body: &eventsv1.QuoteRecord_Pulse{
		Pulse: &eventsv1.Pulse{Now: second, Watermark: second},
	}})
}

func (f *fold) evaluate(a *asset, second int64) *eventsv1.QuoteRate {
	inputs := make([]*eventsv1.PriceInput, 0, len(a.markets))
	for id, m := range a.markets {
		m.Expire(second)
		if m.Silent() {
			delete(a.markets, id)
			continue
		}
		inputs = append(inputs, m.Input(id, second))
	}
	result, inputs, _ := schemas.AggregateBy(ruleVersion, inputs, second)
	fixing, fixed := f.fixings.USD(a.id, second)
	switch {
	case result.Reason == "" && !(fixed && doubtful(result, fixing)):
		return &eventsv1.QuoteRate{QuoteId: a.id, Rate: result.Price, Time: second, Method: methodMarket, Inputs: inputs}
	case fixed:
		return &eventsv1.QuoteRate{QuoteId: a.id, Rate: fixing, Time: second, Method: methodFixing}
	}
	return nil
}

// doubtful reports whether one venue alone gives a rate that lies as far from the fixing as an outlier among venues. Two that agree
// know better than a fixing, which is days old at times.
func doubtful(result schemas.Aggregated, fixing float64) bool {
	return result.Accepted == 1 && math.Abs((result.Price-fixing)/fixing) > schemas.MaxDeviation
}
