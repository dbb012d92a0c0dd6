package oracle

import (
	"math"
	"sort"
	"strings"
	"time"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

const (
	// rateFor is how long a rate counts after its second.
	rateFor = 60 * second
	// repeatEvery parts the log into spans, in the first second of each of which all rates are written.
	repeatEvery = 10 * second
	// fixingDays is how long a fixing counts, from the beginning of its day.
	fixingDays = 6
	// referenceWait is how long after it was read or entered a fixing or an override counts.
	referenceWait = 30 * second
	// idsFor is how long the id of a trade is remembered after it was last read.
	idsFor = 180 * second
	// reorderFor is how far apart what a market sends can be received in another order than it happened in.
	reorderFor = 5 * second
)

// quoteAsset is what markets are quoted in. Assets of the first level are converted by markets in USD, or
// by a fixing; those of the second by these and by markets in assets of the first.
type quoteAsset struct {
	id    string
	level int
}

// quoteAssets are the ones that this opinion knows, as venues call them.
var quoteAssets = map[string]quoteAsset{
	"USD": {"USD", 0}, "USDT": {"tether", 1}, "USDC": {"usd-coin", 1},
	"EUR": {"EUR", 1}, "GBP": {"GBP", 1}, "KRW": {"KRW", 1}, "JPY": {"JPY", 1},
	"BTC": {"bitcoin", 2}, "XBT": {"bitcoin", 2}, "ETH": {"ethereum", 2},
}

// QuoteRates works out what quotes.v1 must hold after what ticks.raw.v1, the central bank and operators say, without the
// checkpoints of its pulses.
func QuoteRates(raw map[int32][]Record, partitions int32, fixings []*eventsv1.Fixing, overrides []*eventsv1.SymbolOverride) ([]*eventsv1.QuoteRecord, error) {
	seconds, ticks, err := logSeconds(raw, partitions)
	if err != nil {
		return nil, err
	}
	q := quoteFold{markets: map[quoteAsset]map[marketID][]quoteTick{}, ids: map[string]int64{}, fixings: fixings, overrides: overrides}
	for _, at := range seconds {
		for _, t := range ticks[at] {
			q.hear(t)
		}
		q.close(at)
	}
	return q.written, nil
}

// quoteTick is a tick of a market in which a quote asset is traded, and the rate at which it is converted.
type quoteTick struct {
	rawTick
	quote    string
	rate     float64
	rateTime int64
}

type quoteFold struct {
	fixings   []*eventsv1.Fixing
	overrides []*eventsv1.SymbolOverride
	markets   map[quoteAsset]map[marketID][]quoteTick
	ids       map[string]int64 // when the id of a trade was last read
	// rates are those of the last second that ended.
	rates   map[string]float64
	closed  int64
	written []*eventsv1.QuoteRecord
}

// hear keeps what can become a rate: the ticks of an asset in USD, or of one of the second level in one of
// the first that had a rate in the second before.
func (q *quoteFold) hear(t rawTick) {
	base, quote := q.meant(t, t.Base), q.meant(t, t.Quote)
	if base.level == 0 || quote.id == "" {
		return
	}
	s := quoteTick{t, quote.id, 1, t.second}
	switch {
	case quote.id == "USD":
	case base.level == 2 && quote.level == 1:
		s.rate, s.rateTime = q.rates[quote.id], q.closed
	default:
		return
	}
	if t.Kind == eventsv1.TickKind_TICK_KIND_TRADE {
		last, known := q.ids[string(t.EventId)]
		q.ids[string(t.EventId)] = t.second
		if known && t.second-last <= idsFor {
			return
		}
	}
	if refusal(t.Tick) != "" || s.rate == 0 || t.second-s.rateTime > rateFor {
		return
	}
	if q.markets[base] == nil {
		q.markets[base] = map[marketID][]quoteTick{}
	}
	id := marketID{t.Venue, t.Symbol}
	q.markets[base][id] = append(q.markets[base][id], s)
}

// meant is what a venue calls so: of a coin, the last word of an operator on that venue's, else on everyone's.
func (q *quoteFold) meant(t rawTick, symbol string) quoteAsset {
	asset := quoteAssets[symbol]
	if asset.id != "" && strings.ToUpper(asset.id) == asset.id {
		return asset // a currency
	}
	for _, source := range []string{t.Venue, "general"} {
		var word *eventsv1.SymbolOverride
		for _, o := range q.overrides {
			later := word == nil || o.Time > word.Time || o.Time == word.Time && o.CoinId > word.CoinId
			if o.Source == source && o.Symbol == symbol && o.Time+referenceWait <= t.second && later {
				word = o
			}
		}
		if word.GetCoinId() == "" {
			continue
		}
		for _, known := range quoteAssets {
			if known.id == word.CoinId {
				return known
			}
		}
		return quoteAsset{}
	}
	return asset
}

// close writes the rates that changed in a second, and in the first second of every ten all of them.
func (q *quoteFold) close(at int64) {
	var assets []quoteAsset
	known := map[quoteAsset]bool{}
	for _, a := range quoteAssets {
		if a.level > 0 && !known[a] {
			known[a] = true
			assets = append(assets, a)
		}
	}
	sort.Slice(assets, func(i, j int) bool {
		if assets[i].level != assets[j].level {
			return assets[i].level < assets[j].level
		}
		return assets[i].id < assets[j].id
	})
	all := at/repeatEvery != q.closed/repeatEvery
	before := q.rates
	q.rates, q.closed = map[string]float64{}, at
	index := uint32(0)
	write := func(rec *eventsv1.QuoteRecord) {
		rec.Mark = &eventsv1.Mark{LogicVersion: 1, Offset: at, Index: index}
		q.written = append(q.written, rec)
		index++
	}
	for _, a := range assets {
		rate := q.rateOf(a, at)
		if rate == nil {
			continue
		}
		q.rates[a.id] = rate.Rate
		if all || rate.Rate != before[a.id] {
			write(&eventsv1.QuoteRecord{Body: &eventsv1.QuoteRecord_Rate{Rate: rate}})
		}
	}
	write(&eventsv1.QuoteRecord{Body: &eventsv1.QuoteRecord_Pulse{Pulse: &eventsv1.Pulse{Now: at, Watermark: at}}})
}

// rateOf is what an asset costs in a second: by its markets, else by the newest fixing, else nobody knows. A market that is alone
// is believed within half of the fixing.
func (q *quoteFold) rateOf(a quoteAsset, at int64) *eventsv1.QuoteRate {
	var inputs []*eventsv1.PriceInput
	for id, history := range q.markets[a] {
		in := lookAt(id, history, at)
		if in == nil {
			delete(q.markets[a], id) // it starts over
			continue
		}
		inputs = append(inputs, in)
	}
	rate, known := agreed(inputs)
	bank, fixed := q.fixing(a.id, at)
	believed := 0
	for _, in := range inputs {
		if in.Accepted {
			believed++
		}
	}
	if known && fixed && believed == 1 && (rate > 1.5*bank || rate < 0.5*bank) {
		known = false // one venue alone, and far from the bank
	}
	if known {
		return &eventsv1.QuoteRate{QuoteId: a.id, Rate: rate, Time: at, Method: "market", Inputs: inputs}
	}
	if fixed {
		return &eventsv1.QuoteRate{QuoteId: a.id, Rate: bank, Time: at, Method: "fixing"}
	}
	return nil
}

// fixing is what a unit of a currency cost on the newest day on which it and the dollar were fixed, by what was read half
// a minute ago.
func (q *quoteFold) fixing(currency string, at int64) (float64, bool) {
	units, read := map[string]map[string]float64{}, map[string]map[string]int64{} // by day and currency
	for _, f := range q.fixings {
		day, err := time.Parse("2006-01-02", f.Date)
		n := rat(f.Rate)
		if err != nil || f.Base != "EUR" || n.Sign() <= 0 || f.IngestTime+referenceWait > at || day.UnixNano() > f.IngestTime+24*int64(time.Hour) {
			continue
		}
		if units[f.Date] == nil {
			units[f.Date], read[f.Date] = map[string]float64{"EUR": 1}, map[string]int64{}
		}
		found, _ := n.Float64()
		if last, ok := read[f.Date][f.Quote]; !ok || f.IngestTime > last || f.IngestTime == last && found > units[f.Date][f.Quote] {
			units[f.Date][f.Quote], read[f.Date][f.Quote] = found, f.IngestTime
		}
	}
	newest, rate := int64(math.MinInt64), 0.0
	for date, fixed := range units {
		if fixed["USD"] == 0 || fixed[currency] == 0 {
			continue
		}
		day, _ := time.Parse("2006-01-02", date) // it was read above
		if begin := day.UnixNano(); begin > newest {
			newest, rate = begin, fixed["USD"]/fixed[currency]
		}
	}
	return rate, rate != 0 && at-newest <= fixingDays*24*int64(time.Hour)
}

// quotePart is the newest of one part of a market: its last price, its quote or its volume; nil before the first.
type quotePart struct{ *quoteTick }

// heardIn is when it counts as received in a later second: by a clock that does not count, it could have been
// received far ahead.
func (p quotePart) receivedIn(at int64) int64 {
	if at > p.second {
		return p.received()
	}
	return p.IngestTime
}

// received is the same once its second has ended.
func (p quotePart) received() int64 { return min(p.IngestTime, p.second+lead) }

// freshIn reports whether it still counted when a second began.
func (p quotePart) freshIn(at int64) bool {
	return p.quoteTick != nil && at-p.receivedIn(at) <= freshFor
}

// fresh reports whether it counts when a second ends.
func (p quotePart) fresh(at int64) bool { return p.quoteTick != nil && at-p.received() <= freshFor }

// news reports whether a new tick takes the place of this part.
func (p quotePart) news(s *quoteTick) bool {
	if s.second-s.IngestTime > freshFor {
		return false
	}
	if !p.freshIn(s.second) {
		return true
	}
	known := p.receivedIn(s.second)
	return s.IngestTime >= known && !(s.EventTime != 0 && s.EventTime < p.EventTime && s.IngestTime-known <= reorderFor)
}

// lookAt is a market as of the end of a second, after all its ticks; nil if nothing of it is fresh.
func lookAt(id marketID, history []quoteTick, at int64) *eventsv1.PriceInput {
	var price, quote, volume quotePart
	low, high := math.Inf(1), math.Inf(-1)
	note := func(s *quoteTick, value float64) {
		if s.second >= at-60*second {
			low, high = min(low, value), max(high, value)
		}
	}
	for i := range history {
		s := &history[i]
		trade := s.Kind == eventsv1.TickKind_TICK_KIND_TRADE
		if (trade || s.Last != "") && price.news(s) {
			price = quotePart{s}
			note(s, s.lastPrice())
		}
		if trade {
			continue
		}
		if (s.Bid != "" || s.Ask != "") && quote.news(s) {
			quote = quotePart{s}
			if s.Bid != "" && s.Ask != "" {
				note(s, (float(s.Bid)+float(s.Ask))/2)
			}
		}
		if (s.VolumeBase != "" || s.VolumeQuote != "") && !(volume.freshIn(s.second) && s.IngestTime < volume.receivedIn(s.second)) {
			volume = quotePart{s}
		}
	}
	if !price.fresh(at) && !quote.fresh(at) {
		return nil
	}
	last := history[len(history)-1]
	in := &eventsv1.PriceInput{
		Provider: id.provider, Symbol: id.symbol, QuoteId: last.quote, Rate: last.rate, RateTime: last.rateTime,
		Partition: last.partition, Offset: last.offset,
	}
	if price.fresh(at) {
		in.Last, in.LastHeard, in.EventTime = price.lastPrice(), price.received(), price.EventTime
	}
	if quote.fresh(at) {
		in.Bid, in.Ask, in.QuoteHeard = float(quote.Bid), float(quote.Ask), quote.received()
		in.EventTime = max(in.EventTime, quote.EventTime)
	}
	if high > low {
		in.Range60 = high - low
	}
	if volume.fresh(at) {
		if turnover := float(volume.VolumeQuote); turnover > 0 {
			in.Volume24H = turnover * in.Rate
		} else {
			in.Volume24H = float(volume.VolumeBase) * in.Last * in.Rate
		}
	}
	valueOf(in)
	return in
}

func (s *quoteTick) lastPrice() float64 {
	if s.Kind == eventsv1.TickKind_TICK_KIND_TRADE {
		return float(s.Price)
	}
	return float(s.Last)
}

// valueOf is the last price held within a usable quote, else the one of them that there is.
func valueOf(in *eventsv1.PriceInput) {
	usable := in.Bid > 0 && in.Ask >= in.Bid && in.Ask-in.Bid <= 0.1*((in.Bid+in.Ask)/2)
	switch {
	case in.Last > 0 && usable && in.Last < in.Bid:
		in.Value, in.Basis = in.Bid, "bid"
	case in.Last > 0 && usable && in.Last > in.Ask:
		in.Value, in.Basis = in.Ask, "ask"
	case in.Last > 0:
		in.Value, in.Basis = in.Last, "last"
	case usable:
		in.Value, in.Basis = (in.Bid+in.Ask)/2, "mid"
	case in.Ask > 0 && in.Bid > in.Ask:
		in.Reason = "crossed"
	default:
		in.Reason = "wide"
	}
	in.PriceUsd = in.Value * in.Rate
}

// agreed is the rule of prices: it orders inputs, and returns what became of each, and the price if there is one.
func agreed(inputs []*eventsv1.PriceInput) (float64, bool) {
	sort.Slice(inputs, func(i, j int) bool {
		a, b := inputs[i], inputs[j]
		switch {
		case a.Provider != b.Provider:
			return a.Provider < b.Provider
		case quotePlace(a.QuoteId) != quotePlace(b.QuoteId):
			return quotePlace(a.QuoteId) < quotePlace(b.QuoteId)
		case !strings.EqualFold(a.QuoteId, b.QuoteId):
			return strings.ToLower(a.QuoteId) < strings.ToLower(b.QuoteId)
		}
		return a.Symbol < b.Symbol
	})
	voted := map[string]bool{}
	var votes []float64
	for _, in := range inputs {
		switch {
		case in.Reason != "":
		case voted[in.Provider]:
			in.Reason = "other_market"
		default:
			voted[in.Provider] = true
			votes = append(votes, in.PriceUsd)
		}
	}
	if len(votes) == 0 {
		return 0, false
	}
	first := middle(votes)
	var accepted []float64
	for _, in := range inputs {
		if in.Reason != "" {
			continue
		}
		in.DeviationPct = (in.PriceUsd - first) / first * 100
		if in.Accepted = math.Abs((in.PriceUsd-first)/first) <= 0.5; in.Accepted {
			accepted = append(accepted, in.PriceUsd)
		} else {
			in.Reason = "outlier"
		}
	}
	if len(accepted) == 0 {
		return 0, false
	}
	return middle(accepted), true
}

// quotePlace is the place of a quote among those that are taken first.
func quotePlace(quote string) int {
	for i, p := range preference {
		if p == quote {
			return i
		}
	}
	return len(preference)
}
