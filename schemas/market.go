package schemas

import (
	"cmp"
	"math"
	"slices"
	"time"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

const (
	// OwnPriceFor is how long our own price counts before any other after the end of its candle.
	OwnPriceFor = 10 * time.Minute
	// ObservationFor is how long a price or a supply counts at all: a source that is away for a weekend does not empty the
	// market, and a coin that all have dropped leaves it.
	ObservationFor = 8 * day
	// maxPriceOff is how far a source's price may lie outside of ours before it is another coin's, as a fraction: the
	// measure by which venues are outliers.
	maxPriceOff = 0.5
	// largeCap is the market cap, in USD, from which a coin has to trade leastTurnover of it in 24 hours.
	largeCap, leastTurnover = 100e9, 1e-6
	// observationsApart is how much older than the newest observation one may be that others are measured by.
	observationsApart = day
)

// PriceSourceMedian is the source of prices that are made of venues' own.
const PriceSourceMedian = "median"

// changeSpans are the spans that a row has changes over.
var changeSpans = [...]struct {
	name string
	span time.Duration
}{
	{"1h", time.Hour},
	{"24h", day},
	{"7d", 7 * day},
	{"14d", 14 * day},
	{"30d", 30 * day},
	{"60d", 60 * day},
	{"200d", 200 * day},
	{"1y", 365 * day},
}

// changeFields are where a row keeps them.
func changeFields(row *eventsv1.Market) [len(changeSpans)]**float64 {
	return [...]**float64{
		&row.Change1H, &row.Change24H, &row.Change7D, &row.Change14D, &row.Change30D, &row.Change60D, &row.Change200D, &row.Change1Y,
	}
}

// Row is the coin's row as of the end of a minute, but for its rank and names; nil where no price is known. Forget comes
// before it. The page docs/formulas.md says the same in words.
func (s *CoinState) Row(minute int64) *eventsv1.Market {
	believed := s.believed(minute)
	price, at, source := s.price(minute, believed)
	if source == "" {
		return nil
	}
	own := source == PriceSourceMedian
	row := &eventsv1.Market{Time: minute, Price: price, PriceSource: source, PriceTime: at, Simulated: own && s.Simulated}
	setSupply(row, believed)
	s.setVolume(row, minute, believed)
	setCap(row)
	s.setRange(row, minute, own, believed)
	s.setChanges(row, minute, own, believed)
	if c := row.Change24H; c != nil {
		row.PriceChange24H = known(risen(price, *c))
		if row.MarketCap != nil {
			row.MarketCapChange24H, row.MarketCapChangePct24H = known(risen(*row.MarketCap, *c)), known(*c)
		}
	}
	s.setExtremes(row, own, believed)
	return row
}

// believed are the observations that report this coin's price and no other's: those within half of what our own price did
// in 24 hours, or where we have none, within half of the price of the first source that is up to date.
func (s *CoinState) believed(minute int64) []*observation {
	list := make([]*observation, 0, len(s.observations))
	newest := int64(0)
	for i := range s.observations {
		list = append(list, &s.observations[i])
		newest = max(newest, s.observations[i].at)
	}
	low, high, ok := s.FiveMinutes.extremes(minute, day)
	if !ok {
		for _, o := range list {
			if !math.IsNaN(o.numbers.price) && newest-o.at <= int64(observationsApart) {
				low, high, ok = o.numbers.price, o.numbers.price, true
				break
			}
		}
	}
	if !ok {
		return list
	}
	return slices.DeleteFunc(list, func(o *observation) bool {
		return o.numbers.price < low*(1-maxPriceOff) || o.numbers.price > high*(1+maxPriceOff)
	})
}

// price is our own while it is fresh, else the newest there is, ours or a source's.
func (s *CoinState) price(minute int64, believed []*observation) (price float64, at int64, source string) {
	if s.PriceTime != 0 && minute-s.PriceTime <= int64(ObservationFor) {
		price, at, source = s.Days[len(s.Days)-1].Close, s.PriceTime, PriceSourceMedian
		if minute-at <= int64(OwnPriceFor) {
			return price, at, source
		}
	}
	for _, o := range believed {
		if !math.IsNaN(o.numbers.price) && o.at > at {
			price, at, source = o.numbers.price, o.at, o.source
		}
	}
	return price, at, source
}

// setSupply takes all supplies from one source: the first that reports what circulates, else the first that reports any.
func setSupply(row *eventsv1.Market, believed []*observation) {
	var from *observation
	for _, o := range believed {
		n := o.numbers
		if !math.IsNaN(n.circulating) {
			from = o
			break
		}
		if from == nil && (!math.IsNaN(n.total) || !math.IsNaN(n.maxSupply)) {
			from = o
		}
	}
	if from == nil {
		return
	}
	row.CirculatingSupply, row.TotalSupply, row.MaxSupply = known(from.numbers.circulating), known(from.numbers.total), known(from.numbers.maxSupply)
	row.SupplySource, row.SupplyTime = from.source, from.at
}

// setCap multiplies price and supplies. A coin among the largest that hardly trades is a token with an invented supply.
func setCap(row *eventsv1.Market) {
	if most := cmp.Or(row.MaxSupply, row.TotalSupply); most != nil {
		row.FullyDilutedValuation = known(float64(row.Price * *most))
	}
	if row.CirculatingSupply == nil {
		return
	}
	if worth := float64(row.Price * *row.CirculatingSupply); worth < largeCap || row.GetVolume24H() >= float64(worth*leastTurnover) {
		row.MarketCap = known(worth)
	}
}

// setVolume takes our own venues' volume beside a fresh price of ours, else that of the source of the price, else the first
// that is published.
func (s *CoinState) setVolume(row *eventsv1.Market, minute int64, believed []*observation) {
	if s.PriceTime != 0 && minute-s.PriceTime <= int64(OwnPriceFor) && s.Volume24h > 0 {
		row.Volume24H = known(s.Volume24h)
		return
	}
	for _, o := range pricedFirst(believed, row.PriceSource) {
		if o.numbers.volume >= 0 {
			row.Volume24H = known(o.numbers.volume)
			return
		}
	}
}

// setRange takes high and low from our own candles where those span 24 hours, joined with the source's where they do not.
// The price lies within.
func (s *CoinState) setRange(row *eventsv1.Market, minute int64, own bool, believed []*observation) {
	high, low := row.Price, row.Price
	whole, ranged := false, false
	if own {
		if l, h, ok := s.FiveMinutes.extremes(minute, day); ok {
			high, low, ranged = max(high, h), min(low, l), true
			whole = s.FiveMinutes[0].Start <= (minute-int64(day))/int64(time.Second)
		}
	}
	if !whole {
		for _, o := range pricedFirst(believed, row.PriceSource) {
			if !math.IsNaN(o.numbers.high) && !math.IsNaN(o.numbers.low) {
				high, low, ranged = max(high, o.numbers.high), min(low, o.numbers.low), true
				break
			}
		}
	}
	if ranged {
		row.High24H, row.Low24H = known(high), known(low)
	}
}

// setChanges takes the change of our own price since the close of a span ago, where our candles reach back so far;
// else what a source reports.
func (s *CoinState) setChanges(row *eventsv1.Market, minute int64, own bool, believed []*observation) {
	fields := changeFields(row)
	ranked := pricedFirst(believed, row.PriceSource)
	for i, c := range changeSpans {
		if own {
			if before, _, ok := s.closeBefore(minute, c.span); ok {
				*fields[i] = known(float64(row.Price/before-1) * 100)
				row.OwnChanges = append(row.OwnChanges, c.name)
				continue
			}
		}
		for _, o := range ranked {
			if change := o.numbers.changes[i]; !math.IsNaN(change) {
				*fields[i] = known(change)
				break
			}
		}
	}
}

// closeBefore is the close of the last interval that ended a span before a minute, or at most a tenth of the span earlier:
// in the finest ring that has one.
func (s *CoinState) closeBefore(minute int64, span time.Duration) (closed float64, end int64, ok bool) {
	at := (minute - int64(span)) / int64(time.Second)
	oldest := at - int64(span/time.Second)/10
	for _, r := range []struct {
		ring MarketRing
		step time.Duration
	}{{s.FiveMinutes, fiveMinuteStep}, {s.Hours, hourStep}, {s.Days, dayStep}} {
		step := int64(r.step / time.Second)
		i, found := slices.BinarySearchFunc(r.ring, at-step, func(b MarketInterval, start int64) int { return cmp.Compare(b.Start, start) })
		if !found {
			i--
		}
		if i >= 0 && r.ring[i].Start+step >= oldest {
			return r.ring[i].Close, (r.ring[i].Start + step) * int64(time.Second), true
		}
	}
	return 0, 0, false
}

// ChangeBasis is the close that a change of a row is measured from, by the name of its span, and the end of the interval that it closed
// (Unix nanoseconds); false where our own candles do not reach back so far.
func (s *CoinState) ChangeBasis(minute int64, name string) (closed float64, end int64, ok bool) {
	for _, c := range changeSpans {
		if c.name == name {
			return s.closeBefore(minute, c.span)
		}
	}
	return 0, 0, false
}

// setExtremes takes the highest and the lowest price ever from sources, unless our own days or the price go beyond. Without a
// source's word there is none: our log may begin later than the coin.
func (s *CoinState) setExtremes(row *eventsv1.Market, own bool, believed []*observation) {
	for _, o := range pricedFirst(believed, row.PriceSource) {
		if ath := o.numbers.ath; row.Ath == nil && !math.IsNaN(ath) {
			row.Ath, row.AthTime = known(ath), o.athTime
		}
		if atl := o.numbers.atl; row.Atl == nil && !math.IsNaN(atl) {
			row.Atl, row.AtlTime = known(atl), o.atlTime
		}
	}
	reach := func(high, low float64, at int64) {
		if row.Ath != nil && high > *row.Ath {
			row.Ath, row.AthTime = known(high), at
		}
		if row.Atl != nil && low < *row.Atl {
			row.Atl, row.AtlTime = known(low), at
		}
	}
	if own {
		past, today := s.pastDays(), s.Days[len(s.Days)-1]
		reach(past.highest.High, math.Inf(1), past.highest.Start*int64(time.Second))
		reach(math.Inf(-1), past.lowest.Low, past.lowest.Start*int64(time.Second))
		reach(today.High, today.Low, today.Start*int64(time.Second))
	}
	reach(row.Price, row.Price, row.PriceTime)
}

// pastDays are the first highest and the first lowest of the days before the last one. They change once a day, and to look
// through 400 days each minute costs more than the rest of the row.
type pastDays struct {
	first           int64
	days            int
	highest, lowest MarketInterval
}

func (s *CoinState) pastDays() *pastDays {
	days := s.Days[:len(s.Days)-1]
	if p := s.past; p != nil && p.first == s.Days[0].Start && p.days == len(days) {
		return p
	}
	p := &pastDays{first: s.Days[0].Start, days: len(days), highest: MarketInterval{High: math.Inf(-1)}, lowest: MarketInterval{Low: math.Inf(1)}}
	for _, d := range days {
		if d.High > p.highest.High {
			p.highest = d
		}
		if d.Low < p.lowest.Low {
			p.lowest = d
		}
	}
	s.past = p
	return p
}

// extremes are the lowest and the highest price of the intervals that reach into a span before a minute.
func (r MarketRing) extremes(minute int64, span time.Duration) (low, high float64, ok bool) {
	from := (minute-int64(span))/int64(time.Second) - int64(fiveMinuteStep/time.Second)
	for i := len(r) - 1; i >= 0 && r[i].Start > from; i-- {
		if !ok {
			low, high, ok = r[i].Low, r[i].High, true
		}
		low, high = min(low, r[i].Low), max(high, r[i].High)
	}
	return low, high, ok
}

// pricedFirst puts the observation that the price is from before the others.
func pricedFirst(believed []*observation, source string) []*observation {
	i := slices.IndexFunc(believed, func(o *observation) bool { return o.source == source })
	if i <= 0 {
		return believed
	}
	list := append(make([]*observation, 0, len(believed)), believed[i])
	return append(append(list, believed[:i]...), believed[i+1:]...)
}

// Named is what the coin's sources call it, the symbol in upper case; empty where none does.
func (s *CoinState) Named() (symbol, name string) {
	for _, o := range s.observations {
		if symbol == "" {
			symbol = o.symbol
		}
		if name == "" {
			name = o.name
		}
	}
	return symbol, name
}

// Expires is the last minute in which the row stays as it is, if nothing is received.
func (s *CoinState) Expires(minute int64) int64 {
	if len(s.Days) > 0 {
		return minute // every span moves on
	}
	oldest := int64(math.MaxInt64)
	for _, o := range s.observations {
		oldest = min(oldest, o.at)
	}
	if oldest == math.MaxInt64 {
		return oldest
	}
	return oldest + int64(ObservationFor)
}

// Empty reports whether nothing is remembered.
func (s *CoinState) Empty() bool { return len(s.Days) == 0 && len(s.observations) == 0 }

// Markets is how many venues' markets made the price of a minute that is still fresh.
func (s *CoinState) Markets(minute int64) uint32 {
	if s.PriceTime == 0 || minute-s.PriceTime > int64(OwnPriceFor) {
		return 0
	}
	return s.Accepted
}

// risen is by how much a value grew to reach its present amount, from a change in percent.
func risen(value, percent float64) float64 { return value - value/(1+percent/100) }

// known is nil for a number that is not.
func known(f float64) *float64 {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil
	}
	return &f
}

// PercentFrom is the change from a price of before to that of now, percent; nil where either is not known.
func PercentFrom(before *float64, now float64) *float64 {
	if before == nil || *before <= 0 || now <= 0 {
		return nil
	}
	return known(100 * (now - *before) / *before)
}

// VolumeToMarketCap is the volume of 24 hours as a share of the market cap, a ratio; nil where either is not known.
func VolumeToMarketCap(row *eventsv1.Market) *float64 {
	if row.Volume24H == nil {
		return nil
	}
	return ratio(*row.Volume24H, row.GetMarketCap())
}
