package apy

import (
	"math"
	"strconv"
	"time"

	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// rate is the current state of one rate.
type rate struct {
	key rateKey
	// pending are the answers of the open minute.
	pending []observation
	// loaded is the minute that the rate was at when it was read back: answers up to it are in it.
	loaded int64
	observation
	// received is when an answer last reported it, Unix nanoseconds.
	received int64
	ended    bool
	// attached is by attachedFor, of a project of category attachedAs.
	attached    attachment
	attachedFor *eventsv1.Rate
	attachedAs  string
	hour, day   bucket
	// row is what was written last, at the minute written; 0 before the first.
	row          row
	written      int64
	writtenEnded bool
}

// observation is an answer, with its rate by the year and the version of the rule that made it.
type observation struct {
	reported *eventsv1.Rate
	offset   int64
	apr, apy float64
	reward   *float64 // the part of apy in other tokens, nil where the source does not report it
	method   uint32
}

// attachment is what a rate is of.
type attachment struct {
	category, coinID, symbol string
	unattached               schemas.RateReason
}

// row is what an entry holds beside what the source reported.
type row struct {
	attachment
	providerName, shadowed string
	simulated              bool
}

// key is the record's key.
func (d row) key(r *rate) string { return r.key.source + "|" + d.category + "|" + r.key.pool }

// newest is what the source reported last, in the open minute too.
func (r *rate) newest() *eventsv1.Rate {
	if n := len(r.pending); n > 0 {
		return r.pending[n-1].reported
	}
	return r.reported
}

// heldAt reports whether the rate was reported within heldFor intervals.
func (r *rate) heldAt(minute int64) bool {
	reported, received := r.newest(), r.received
	for _, o := range r.pending {
		received = max(received, o.reported.IngestTime)
	}
	return minute-received <= heldFor*reported.Interval
}

// take makes the answers of the minute part of the rate. It reports whether there were any.
func (r *rate) take(minute int64) bool {
	for _, o := range r.pending {
		r.observation, r.received = o, max(r.received, o.reported.IngestTime)
		r.hour.add(minute, hour, o.apy)
		r.day.add(minute, day, o.apy)
	}
	pending := len(r.pending) > 0
	r.pending = nil
	return pending
}

// closeBuckets ends the hour and the day that end at an instant or before.
func (r *rate) closeBuckets(until, minute int64, out *processors.Outputs) {
	for _, b := range []struct {
		open   *bucket
		length int64
	}{{&r.hour, hour}, {&r.day, day}} {
		if b.open.n == 0 || b.open.start+b.length > until {
			continue
		}
		if out != nil {
			out.Emit(schemas.TopicRates, 0, r.row.key(r), minute, &eventsv1.RateRecord{Body: &eventsv1.RateRecord_Rollup{Rollup: r.rollup(*b.open, b.length)}})
		}
		*b.open = bucket{}
	}
}

// write adds the entry to out. One that was another category's before holds no more there.
func (r *rate) write(before row, minute int64, out *processors.Outputs) {
	if r.written > 0 && before.category != r.row.category && !r.writtenEnded {
		e := r.entry(before, minute)
		e.Ended = true
		out.Emit(schemas.TopicRates, 0, before.key(r), minute, &eventsv1.RateRecord{Body: &eventsv1.RateRecord_Entry{Entry: e}})
	}
	r.written, r.writtenEnded = minute, r.ended
	out.Emit(schemas.TopicRates, 0, r.row.key(r), minute, &eventsv1.RateRecord{
		Body: &eventsv1.RateRecord_Entry{Entry: r.entry(r.row, minute)}, State: r.remembered(minute),
	})
}

func (r *rate) rollup(b bucket, length int64) *eventsv1.RateRollup {
	return &eventsv1.RateRollup{
		Provider: r.reported.Project, Source: r.key.source, Category: r.row.category, CoinId: r.row.coinID, Symbol: r.row.symbol,
		Pool: r.key.pool, ProviderSymbol: r.reported.Symbol, Chain: r.reported.Chain,
		Start: b.start, Interval: uint32(length / int64(time.Second)), Open: b.open, High: b.high, Low: b.low, Close: b.close, Mean: b.mean(), N: b.n,
		TvlUsd: number(r.reported.TvlUsd), Simulated: r.row.simulated, Shadowed: r.row.shadowed,
	}
}

func (r *rate) entry(d row, minute int64) *eventsv1.RateEntry {
	return &eventsv1.RateEntry{
		Provider: r.reported.Project, Source: r.key.source, Category: d.category, CoinId: d.coinID, Symbol: d.symbol,
		Pool: r.key.pool, ProviderSymbol: r.reported.Symbol, Chain: r.reported.Chain, Name: r.reported.Name,
		Apr: r.apr, Apy: r.apy, RewardApy: r.reward, Method: r.method,
		TvlUsd: number(r.reported.TvlUsd), Term: r.reported.Term, Said: r.reported,
		Time: minute, Heard: r.received, Ended: r.ended, Unattached: string(d.unattached), Shadowed: d.shadowed, Simulated: d.simulated,
		Offset: r.offset, ProviderName: d.providerName,
	}
}

func (r *rate) remembered(minute int64) *eventsv1.RateState {
	return &eventsv1.RateState{Minute: minute, Hour: r.hour.remembered(), Day: r.day.remembered()}
}

// recall takes back what was written.
func (r *rate) recall(e *eventsv1.RateEntry, state *eventsv1.RateState) {
	r.loaded, r.written = state.Minute, e.Time
	r.observation = observation{
		reported: e.Said, offset: e.Offset, apr: e.Apr, apy: e.Apy, reward: e.RewardApy, method: max(e.Method, 1),
	}
	r.received, r.ended, r.writtenEnded = e.Heard, e.Ended, e.Ended
	r.row = row{attachment{e.Category, e.CoinId, e.Symbol, schemas.RateReason(e.Unattached)}, e.ProviderName, e.Shadowed, e.Simulated}
	r.hour, r.day = recallBucket(state.Hour), recallBucket(state.Day)
}

// number is nil for what a source does not report.
func number(s string) *float64 {
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsInf(n, 0) || math.IsNaN(n) {
		return nil
	}
	return &n
}

// bucket is what a rate did in an hour or a day; n is 0 where it was not reported.
type bucket struct {
	start                  int64
	open, high, low, close float64
	sum                    float64
	n                      uint32
}

// add takes an answer that was read in the minute that ends then.
func (b *bucket) add(minute, length int64, apy float64) {
	if b.n == 0 {
		*b = bucket{start: (minute - 1) / length * length, open: apy, high: apy, low: apy}
	}
	b.high, b.low, b.close = max(b.high, apy), min(b.low, apy), apy
	b.sum += apy
	b.n++
}

// mean is within what was reported: a sum of equal numbers may not divide into them.
func (b *bucket) mean() float64 { return min(max(b.sum/float64(b.n), b.low), b.high) }

func (b *bucket) remembered() *eventsv1.RateBucket {
	if b.n == 0 {
		return nil
	}
	return &eventsv1.RateBucket{Start: b.start, Open: b.open, High: b.high, Low: b.low, Close: b.close, Sum: b.sum, N: b.n}
}

func recallBucket(b *eventsv1.RateBucket) bucket {
	return bucket{start: b.GetStart(), open: b.GetOpen(), high: b.GetHigh(), low: b.GetLow(), close: b.GetClose(), sum: b.GetSum(), n: b.GetN()}
}
