package oracle

import (
	"math"
	"slices"
	"sort"
	"strconv"
	"time"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// Price is one published price. Numbers that a row without a price lacks are 0.
type Price struct {
	Coin, Symbol             string
	Second                   int64 // Unix seconds
	Price, Median0, Min, Max float64
	Confidence, Score        float64
	Accepted, Rejected       uint32
	Volume24h                float64
	Source, Reason           string
	Partition                int32 // of ticks.v1
	Offset                   int64
	Inputs                   []Input
}

// Input is one market that a price was made from.
type Input struct {
	Provider, Symbol, Quote string
	Value, Rate, PriceUSD   float64
	Accepted                bool
	Reason, Basis           string
	Partition               int32 // of ticks.raw.v1
	Offset                  int64
}

const second = int64(time.Second)

// freshFor is how long a market counts after it was received, lead how far ahead of the log's now it can have been received.
const (
	freshFor = 120 * second
	lead     = 10 * second
)

// marketTick is one tick of a market, with its numbers read once.
type marketTick struct {
	received, happened int64
	at                 int64   // the log's now when it was received
	price              float64 // of a trade, or a ticker's last; 0 for none
	bid, ask           float64
	quoted             bool
	volume             float64 // of 24 hours, in the base
	turnover           float64 // the same in the quote
	hasVolume          bool
	quote              string
	rate               float64
	noRate             bool
	partition          int32
	offset             int64
	// What of it was news when it was received: newer than all that was known and still fresh.
	newPrice, newQuote, newVolume bool
	// judged reports whether a second was evaluated since.
	judged bool
}

type marketID struct{ provider, symbol string }

// partition folds one partition of ticks.v1.
type partition struct {
	number     int32
	now        int64
	watermarks map[int32]int64
	evaluated  int64 // the last evaluated second
	received   map[string]map[marketID][]marketTick
	published  map[string]*Price

	prices  []Price
	candles candles
}

// origins is how many partitions ticks.raw.v1 has: the watermark waits for each.
const origins = 8

// Fold works out what follows from ticks.v1.
func Fold(ticks map[int32][]Record) (Views, error) {
	var v Views
	for _, number := range partitionsOf(ticks) {
		records, err := admitted(ticks[number])
		if err != nil {
			return Views{}, err
		}
		p := &partition{
			number: number, watermarks: map[int32]int64{}, received: map[string]map[marketID][]marketTick{},
			published: map[string]*Price{}, candles: newCandles(),
		}
		for _, r := range records {
			if t := r.rec.GetTick(); t != nil {
				p.hear(r.rec.Mark, t)
			}
			if pulse := r.rec.GetPulse(); pulse != nil {
				p.pulse(r, pulse)
			}
		}
		v.Prices = append(v.Prices, p.prices...)
		v.Candles = append(v.Candles, p.candles.coins...)
		v.VenueCandles = append(v.VenueCandles, p.candles.venues...)
	}
	return v, nil
}

func (p *partition) hear(mark *eventsv1.Mark, r *eventsv1.ResolvedTick) {
	t := r.Tick
	s := marketTick{
		received: t.IngestTime, happened: t.EventTime, at: p.now, quote: r.QuoteId,
		rate: r.Rate, noRate: r.Flags&flagNoRate != 0, partition: mark.Partition, offset: mark.Offset,
	}
	if t.Kind == eventsv1.TickKind_TICK_KIND_TRADE {
		s.price = float(t.Price)
		p.candles.trade(r, p.now, p.watermark())
	} else {
		s.price, s.bid, s.ask = float(t.Last), float(t.Bid), float(t.Ask)
		s.quoted = t.Bid != "" || t.Ask != ""
		s.volume, s.turnover, s.hasVolume = float(t.VolumeBase), float(t.VolumeQuote), t.VolumeBase != "" || t.VolumeQuote != ""
	}
	if r.CoinId == "" {
		return
	}
	if p.received[r.CoinId] == nil {
		p.received[r.CoinId] = map[marketID][]marketTick{}
	}
	id := marketID{t.Venue, t.Symbol}
	history := p.received[r.CoinId][id]
	s.newPrice = s.price != 0 && !s.older(history, func(s marketTick) bool { return s.newPrice })
	s.newQuote = s.quoted && !s.older(history, func(s marketTick) bool { return s.newQuote })
	known, ok := lastOf(history, func(s marketTick) bool { return s.newVolume })
	s.newVolume = s.hasVolume && !(ok && p.now-known.received <= freshFor && s.received < known.received)
	p.received[r.CoinId][id] = append(history, s)
}

// lastOf is the last that has a value.
func lastOf(history []marketTick, has func(marketTick) bool) (marketTick, bool) {
	for i := len(history) - 1; i >= 0; i-- {
		if has(history[i]) {
			return history[i], true
		}
	}
	return marketTick{}, false
}

// older reports whether something is not news: no longer fresh, received before what was known and is still
// fresh, or within 5 s of it and by its own time before.
func (s marketTick) older(history []marketTick, has func(marketTick) bool) bool {
	if s.at-s.received > freshFor {
		return true
	}
	than, ok := lastOf(history, has)
	if !ok || s.at-than.received > freshFor {
		return false
	}
	return s.received < than.received || s.happened != 0 && s.happened < than.happened && s.received-than.received <= 5*second
}

// judge bounds by how much what was received since the last evaluated second is ahead of this one.
func judge(history []marketTick, at int64) {
	for i := range history {
		if s := &history[i]; !s.judged {
			s.received, s.judged = min(s.received, at*second+lead), true
		}
	}
}

func float(text string) float64 {
	if text == "" {
		return 0
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		panic(err) // a record with such a number was refused before
	}
	return f
}

// watermark is the least of all origins', 0 until each was received.
func (p *partition) watermark() int64 {
	if len(p.watermarks) < origins {
		return 0
	}
	least := int64(math.MaxInt64)
	for _, w := range p.watermarks {
		least = min(least, w)
	}
	return least
}

// pulse moves the clocks. Each second that the log's now reaches is evaluated once; a second that it
// passes over is not.
func (p *partition) pulse(r resolved, pulse *eventsv1.Pulse) {
	origin := r.rec.Mark.Partition
	p.watermarks[origin] = max(p.watermarks[origin], pulse.Watermark)
	p.now = max(p.now, pulse.Now)
	if at := p.now / second; at > p.evaluated {
		again := at/20 != p.evaluated/20
		p.evaluated = at
		for _, id := range sortedKeys(p.received) {
			p.evaluate(id, at, again, r.offset)
		}
	}
	p.candles.leave(p.now)
	p.candles.closeUntil(p.watermark())
}

func sortedKeys[T any](m map[string]T) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

// evaluate publishes the price of one coin if it changed, or if it is to be published again: every 20 s.
func (p *partition) evaluate(id string, at int64, again bool, offset int64) {
	price := priceOf(p.received[id], at)
	before := p.published[id]
	if price.Reason == "no_fresh_inputs" && before == nil {
		return
	}
	price.Coin, price.Symbol, price.Second, price.Partition, price.Offset = id, symbolOf(id), at, p.number, offset
	changed := before == nil || before.Price != price.Price || before.Min != price.Min || before.Max != price.Max ||
		before.Accepted != price.Accepted || before.Rejected != price.Rejected || before.Reason != price.Reason
	if !changed && !again {
		return
	}
	p.published[id] = &price
	if price.Reason == "no_fresh_inputs" {
		p.published[id] = nil
	}
	p.prices = append(p.prices, price)
	if price.Reason == "" {
		p.candles.price(price)
	}
}

// view is a market as of one second.
type view struct {
	Input
	bid, ask, last float64
	quoteUsable    bool
	volumeUSD      float64
	spread         float64
	// silent means that nothing was received of it for longer than its pace allows; alive is 1 less what its age takes.
	silent bool
	alive  float64
}

// priceOf is the rule: one vote a provider, by its best market that is not silent and has a value; the median of all; out
// with what lies more than half of that away; the median of the rest.
func priceOf(markets map[marketID][]marketTick, at int64) Price {
	var views []view
	for id, history := range markets {
		for len(history) > 0 && history[0].received < at*second-3*freshFor {
			history = history[1:]
		}
		markets[id] = history
		judge(history, at)
		v, fresh := look(id, history, at*second)
		if !fresh {
			delete(markets, id) // it starts over
			continue
		}
		views = append(views, v)
	}
	sort.Slice(views, func(i, j int) bool { return views[i].before(views[j]) })
	if len(views) == 0 {
		return Price{Reason: "no_fresh_inputs"}
	}
	voted := map[string]bool{}
	var votes []float64
	for i := range views {
		v := &views[i]
		if v.Reason != "" {
			continue
		}
		if voted[v.Provider] {
			v.Reason = "other_market"
			continue
		}
		voted[v.Provider] = true
		votes = append(votes, v.PriceUSD)
	}
	providers := map[string]bool{}
	for _, v := range views {
		providers[v.Provider] = true
	}
	price := Price{}
	if len(votes) > 0 {
		price.Median0 = middle(votes)
	}
	var accepted []float64
	for i := range views {
		v := &views[i]
		if v.Reason != "" {
			continue
		}
		if math.Abs((v.PriceUSD-price.Median0)/price.Median0) > 0.5 {
			v.Reason = "outlier"
			continue
		}
		v.Accepted = true
		accepted = append(accepted, v.PriceUSD)
	}
	price.Accepted = uint32(len(accepted))
	price.Rejected = uint32(len(providers) - len(accepted))
	for _, v := range views {
		price.Inputs = append(price.Inputs, v.Input)
	}
	if !slices.ContainsFunc(views, func(v view) bool { return !v.silent }) {
		return Price{Reason: "no_fresh_inputs", Rejected: price.Rejected, Inputs: price.Inputs}
	}
	if len(accepted) == 0 {
		return Price{Reason: "no_consensus", Rejected: price.Rejected, Inputs: price.Inputs}
	}
	price.Price = middle(accepted)
	sort.Float64s(accepted)
	price.Min, price.Max = accepted[0], accepted[len(accepted)-1]
	describe(&price, views, len(providers))
	return price
}

// patience is for how long a market may be silent: eight times the mean time between the seconds in which it sent a
// value, in the 40 s up to the last of them; 30 s at least, two minutes at most. It is not known of one that
// was received more than 10 s after the last value.
func patience(history []marketTick, received int64) int64 {
	times, first, last := int64(0), int64(0), int64(0)
	for i := len(history) - 1; i >= 0; i-- {
		s := history[i]
		if !s.newPrice && !(s.newQuote && s.bid > 0 && s.ask > 0) {
			continue
		}
		at := s.at / second
		if times == 0 && at < (received-lead)/second || times > 0 && at <= last-40 {
			break
		}
		if times == 0 {
			last = at
		}
		if times == 0 || at != first {
			times, first = times+1, at
		}
	}
	if times == 0 {
		return freshFor
	}
	return min(max(320*second/times, 30*second), freshFor)
}

// look is what a market sends in one second, from all that was received of it in the two minutes before.
func look(id marketID, history []marketTick, now int64) (view, bool) {
	v := view{Input: Input{Provider: id.provider, Symbol: id.symbol}}
	low, high := math.Inf(1), math.Inf(-1)
	note := func(s marketTick, value float64) {
		if s.at/second >= now/second-60 {
			low, high = min(low, value), max(high, value)
		}
	}
	var last marketTick
	for _, s := range history {
		last = s
		if s.newPrice {
			note(s, s.price)
		}
		if s.newQuote && s.bid > 0 && s.ask > 0 {
			note(s, (s.bid+s.ask)/2)
		}
	}
	fresh := func(has func(marketTick) bool) (marketTick, bool) {
		s, ok := lastOf(history, has)
		return s, ok && now-s.received <= freshFor
	}
	price, hasPrice := fresh(func(s marketTick) bool { return s.newPrice })
	quote, hasQuote := fresh(func(s marketTick) bool { return s.newQuote })
	volume, hasVolume := fresh(func(s marketTick) bool { return s.newVolume })
	if !hasPrice && !hasQuote {
		return v, false
	}
	if hasPrice {
		v.last = price.price
	}
	if hasQuote {
		v.bid, v.ask = quote.bid, quote.ask
	}
	v.Quote, v.Rate, v.Partition, v.Offset = last.quote, last.rate, last.partition, last.offset
	received := int64(0)
	if hasPrice {
		received = price.received
	}
	if hasQuote {
		received = max(received, quote.received)
	}
	allowed := patience(history, received)
	age := now - received
	v.silent, v.alive = age > allowed, 1
	if age > allowed/4 {
		v.alive = float64(allowed-age) / float64(allowed-allowed/4)
	}
	mid := (v.bid + v.ask) / 2
	v.quoteUsable = hasQuote && now-quote.received <= allowed && v.bid > 0 && v.ask >= v.bid && v.ask-v.bid <= 0.1*mid
	if hasPrice && !v.quoteUsable && now-price.received > allowed {
		hasPrice = false // too old to count by itself
	}
	switch {
	case v.silent:
		v.Reason = "silent"
	case hasPrice && v.quoteUsable && v.last < v.bid:
		v.Value, v.Basis = v.bid, "bid"
	case hasPrice && v.quoteUsable && v.last > v.ask:
		v.Value, v.Basis = v.ask, "ask"
	case hasPrice:
		v.Value, v.Basis = v.last, "last"
	case v.quoteUsable:
		v.Value, v.Basis = mid, "mid"
	case v.bid > v.ask:
		v.Reason = "crossed"
	default:
		v.Reason = "wide"
	}
	if v.Reason == "" && (last.noRate || last.rate == 0) {
		v.Reason = "no_rate"
	}
	if v.Reason == "" {
		v.PriceUSD = v.Value * v.Rate
	}
	switch {
	case hasVolume && volume.turnover > 0: // what the venue summed itself
		v.volumeUSD = volume.turnover * v.Rate
	case hasVolume:
		v.volumeUSD = volume.volume * v.last * v.Rate
	}
	v.spread = (v.ask - v.bid) * v.Rate
	if !v.quoteUsable {
		v.spread = 0
		if high > low {
			v.spread = (high - low) * v.Rate
		}
	}
	return v, true
}

// before is the order of inputs: by provider, then the quotes preferred, then by name.
func (v view) before(w view) bool {
	place := func(quote string) int {
		for i, q := range preference {
			if q == quote {
				return i
			}
		}
		return len(preference)
	}
	switch {
	case v.Provider != w.Provider:
		return v.Provider < w.Provider
	case place(v.Quote) != place(w.Quote):
		return place(v.Quote) < place(w.Quote)
	case v.Quote != w.Quote:
		return v.Quote < w.Quote
	}
	return v.Symbol < w.Symbol
}

// middle is the median: with an even count the mean of the two in the middle.
func middle(values []float64) float64 {
	sorted := append([]float64(nil), values...)
	sort.Float64s(sorted)
	n := len(sorted)
	if n%2 == 0 {
		return (sorted[n/2-1] + sorted[n/2]) / 2
	}
	return sorted[n/2]
}

// describe adds confidence, score, volume and source. All markets of the scripted venues are quoted, so
// half of the spread is always known.
func describe(price *Price, views []view, providers int) {
	var votes []float64
	distance, sourceVolume, alive := math.Inf(1), 0.0, 0.0
	for _, v := range views {
		if !v.Accepted {
			continue
		}
		half := max(v.spread/2, v.PriceUSD*0.0001) * (2 - v.alive)
		alive += v.alive
		votes = append(votes, v.PriceUSD-half, v.PriceUSD, v.PriceUSD+half)
		d := math.Abs(v.PriceUSD - price.Price)
		if d < distance || d == distance && v.volumeUSD > sourceVolume {
			distance, sourceVolume, price.Source = d, v.volumeUSD, v.Provider
		}
	}
	sort.Float64s(votes)
	rank := func(q float64) float64 { return votes[int(math.Ceil(q*float64(len(votes))))-1] }
	price.Confidence = max(price.Price-rank(0.25), rank(0.75)-price.Price)
	accepted := float64(price.Accepted)
	price.Score = min(1, accepted/5) * accepted / float64(providers) * max(0, 1-100*price.Confidence/price.Price) * (alive / accepted)
	// Provider by provider, so that the order of the sum is fixed.
	for i := 0; i < len(views); {
		sum, counts := 0.0, false
		j := i
		for ; j < len(views) && views[j].Provider == views[i].Provider; j++ {
			sum += views[j].volumeUSD
			counts = counts || views[j].Accepted
		}
		if counts {
			price.Volume24h += sum
		}
		i = j
	}
}
