package schemas

import (
	"cmp"
	"hash/fnv"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// Steps and lengths of what is remembered of a coin's price.
const (
	fiveMinuteStep, fiveMinutesFor = 5 * time.Minute, 25 * time.Hour
	hourStep, hoursFor             = time.Hour, 8 * day
	dayStep, daysFor               = day, 400 * day
)

// MarketRing is what the price did in intervals of one length, oldest first. Intervals without a candle are left out; the
// last one may be open.
type MarketRing []MarketInterval

// MarketInterval is what the price did in one of them.
type MarketInterval struct {
	// Start is in Unix seconds.
	Start            int64
	High, Low, Close float64
}

// CoinState is what the rows of a coin are made from: our own candles of the last 400 days in three resolutions, and the
// newest observation of each source. It is used by one goroutine.
type CoinState struct {
	FiveMinutes, Hours, Days MarketRing
	// Volume24h, Accepted and Simulated are the newest candle's; PriceTime is its end, Unix nanoseconds, 0 before the first.
	Volume24h float64
	Accepted  uint32
	Simulated bool
	PriceTime int64
	// observations are in the order of preference of their sources.
	observations []observation
	past         *pastDays
}

// observation is what a source reported last, with its numbers as they count here: NaN for those it does not report. All that a
// row is made from lies in it: the report itself lies elsewhere in memory, and is read only where the state is written.
type observation struct {
	reported         *eventsv1.CoinMarket
	source           string
	symbol, name     string // the symbol in upper case
	at               int64
	athTime, atlTime int64
	numbers          observedNumbers
}

type observedNumbers struct {
	price, marketCap, volume, high, low float64
	circulating, total, maxSupply       float64
	ath, atl                            float64
	changes                             [len(changeSpans)]float64
}

// AddCandle takes a closed minute. One that is not newer than the newest changes nothing.
func (s *CoinState) AddCandle(c *eventsv1.Candle) {
	end := c.Start + int64(time.Minute)
	if end <= s.PriceTime || !(c.Close > 0) {
		return
	}
	s.PriceTime, s.Volume24h, s.Accepted, s.Simulated = end, c.Volume24H, c.Accepted, c.Simulated
	s.FiveMinutes.add(c, fiveMinuteStep)
	s.Hours.add(c, hourStep)
	s.Days.add(c, dayStep)
}

func (r *MarketRing) add(c *eventsv1.Candle, step time.Duration) {
	start := (c.Start - c.Start%int64(step)) / int64(time.Second)
	if n := len(*r); n > 0 && (*r)[n-1].Start == start {
		last := &(*r)[n-1]
		last.High, last.Low, last.Close = max(last.High, c.High), min(last.Low, c.Low), c.Close
		return
	}
	*r = append(*r, MarketInterval{start, c.High, c.Low, c.Close})
}

// Forget drops what lies too far before a minute to be published in its row.
func (s *CoinState) Forget(minute int64) {
	s.FiveMinutes.forget(minute, fiveMinutesFor)
	s.Hours.forget(minute, hoursFor)
	s.Days.forget(minute, daysFor)
	s.observations = slices.DeleteFunc(s.observations, func(o observation) bool { return minute-o.at > int64(ObservationFor) })
}

func (r *MarketRing) forget(minute int64, keep time.Duration) {
	from := (minute - int64(keep)) / int64(time.Second)
	old := 0
	for old < len(*r) && (*r)[old].Start < from {
		old++
	}
	if old > 0 {
		*r = slices.Delete(*r, 0, old)
	}
}

// Observe takes what a source reports. It reports whether that counts: an older one than that which is known does not, nor does one
// with a market cap that is over maxCapJump times that of the same source within a day before, which is an error of the
// source more often than it is true. What a source repeats for a day is believed.
func (s *CoinState) Observe(reported *eventsv1.CoinMarket) bool {
	o := newObservation(reported)
	i, known := slices.BinarySearchFunc(s.observations, reported.Source, func(o observation, source string) int {
		return compareSources(o.source, source)
	})
	if !known {
		s.observations = slices.Insert(s.observations, i, o)
		return true
	}
	before := &s.observations[i]
	if o.at < before.at || o.at-before.at <= int64(day) && o.worth() > float64(before.worth()*maxCapJump) {
		return false
	}
	*before = o
	return true
}

// maxCapJump is how many times as much a coin can be worth a day later.
const maxCapJump = 100

// worth is the market cap by the source's own price; NaN, which exceeds nothing, where it is unknown.
func (o *observation) worth() float64 { return float64(o.numbers.price * o.numbers.circulating) }

// marketSources are those whose words count first; others follow by name.
var marketSources = []string{"coingecko", "coinpaprika"}

func compareSources(a, b string) int {
	place := func(source string) int {
		if i := slices.Index(marketSources, source); i >= 0 {
			return i
		}
		return len(marketSources)
	}
	return cmp.Or(place(a)-place(b), strings.Compare(a, b))
}

func newObservation(reported *eventsv1.CoinMarket) observation {
	at := reported.IngestTime
	if reported.EventTime != 0 && reported.EventTime < at { // a source whose clock is fast would be the newest for ever
		at = reported.EventTime
	}
	n := observedNumbers{
		price: positive(reported.Price), marketCap: positive(reported.MarketCap), volume: finite(reported.Volume24H),
		high: positive(reported.High24H), low: positive(reported.Low24H),
		circulating: positive(reported.CirculatingSupply), total: positive(reported.TotalSupply), maxSupply: positive(reported.MaxSupply),
		ath: positive(reported.Ath), atl: positive(reported.Atl),
	}
	for i, text := range [len(changeSpans)]string{
		reported.Change1H, reported.Change24H, reported.Change7D, reported.Change14D, reported.Change30D, reported.Change60D, reported.Change200D, reported.Change1Y,
	} {
		n.changes[i] = finite(text)
		if n.changes[i] <= -100 { // nothing falls by all it is worth and still has a price
			n.changes[i] = math.NaN()
		}
	}
	// A supply that contradicts the source's own market cap is in other units, or another coin's.
	if ratio := float64(n.price*n.circulating) / n.marketCap; ratio > maxCapRatio || ratio < 1/maxCapRatio {
		n.circulating = math.NaN()
	}
	return observation{
		reported: reported, source: reported.Source, symbol: strings.ToUpper(reported.Symbol), name: reported.Name, at: at, athTime: reported.AthTime, atlTime: reported.AtlTime, numbers: n,
	}
}

// maxCapRatio is how far a source's market cap and its price x supply may lie apart: it makes them at different times.
const maxCapRatio = 2

// positive reads a number that is unknown, NaN, where it is not above zero: sources write 0 for what they do not know.
func positive(s string) float64 {
	if f := finite(s); f > 0 {
		return f
	}
	return math.NaN()
}

func finite(s string) float64 {
	if s == "" {
		return math.NaN() // most sources leave most numbers out, and an error costs more than a number
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsInf(f, 0) {
		return math.NaN()
	}
	return f
}

// MarketStateSlot is the minute of the hour, counted from the epoch, in which a coin's state is written: coins are spread over the
// hour by their ids.
func MarketStateSlot(coinID string) uint8 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(coinID)) // never fails
	return uint8(h.Sum32() % uint32(time.Hour/time.Minute))
}

// MarketStateDue is the last minute, at or before one, in which a coin's state was due, Unix nanoseconds. It was written then, or in the
// first minute after it in which anything was folded.
func MarketStateDue(coinID string, minute int64) int64 {
	const length, hour = int64(time.Minute), int64(time.Hour / time.Minute)
	now, slot := minute/length, int64(MarketStateSlot(coinID))
	return (now - ((now-slot)%hour+hour)%hour) * length
}

// Remembered is the state as it is written, as of the end of a minute.
func (s *CoinState) Remembered(minute int64) *eventsv1.MarketState {
	state := &eventsv1.MarketState{
		Minute: minute, Volume24H: s.Volume24h, PriceTime: s.PriceTime, Accepted: s.Accepted, Simulated: s.Simulated,
		FiveMinutes: s.FiveMinutes.remembered(), Hours: s.Hours.remembered(), Days: s.Days.remembered(),
	}
	for _, o := range s.observations {
		state.Sources = append(state.Sources, o.reported)
	}
	return state
}

func (r MarketRing) remembered() []*eventsv1.MarketBucket {
	buckets := make([]*eventsv1.MarketBucket, len(r))
	for i, b := range r {
		buckets[i] = &eventsv1.MarketBucket{Start: b.Start, High: b.High, Low: b.Low, Close: b.Close}
	}
	return buckets
}

// RecallCoinState is the state that was written.
func RecallCoinState(state *eventsv1.MarketState) *CoinState {
	s := &CoinState{
		Volume24h: state.Volume24H, PriceTime: state.PriceTime, Accepted: state.Accepted, Simulated: state.Simulated,
		FiveMinutes: recallRing(state.FiveMinutes), Hours: recallRing(state.Hours), Days: recallRing(state.Days),
	}
	for _, reported := range state.Sources {
		s.Observe(reported)
	}
	return s
}

func recallRing(buckets []*eventsv1.MarketBucket) MarketRing {
	var r MarketRing
	for _, b := range buckets {
		r = append(r, MarketInterval{b.Start, b.High, b.Low, b.Close})
	}
	return r
}
