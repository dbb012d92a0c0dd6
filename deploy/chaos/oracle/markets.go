package oracle

import (
	"fmt"
	"math"
	"sort"
	"strconv"
	"strings"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// Market is what the oracle is given of coins: the fold has it from the tables in the code.
type Market struct {
	// Coins by id. One that is not here is named by its sources.
	Coins map[string]MarketCoin
	// ID is the coin that a source means by its own id, empty for none of ours.
	ID func(source, sourceID string) string
}

// MarketCoin is a coin of the table.
type MarketCoin struct {
	Symbol, Name string
	Stablecoin   bool
	// Peg is the currency that a stablecoin aims at one unit of.
	Peg string
}

const (
	hour = 60 * minute
	day  = 24 * hour
)

// MarketMinute is what must be known at the end of a minute.
type MarketMinute struct {
	End  int64
	Rows map[string]*eventsv1.Market
	// Summary is without the index of fear and greed and the sentiment: those are in Components and Sentiments.
	Summary *eventsv1.Summary
}

// observation is what a source reported of a coin, and the end of the minute in which it was read.
type observation struct {
	*eventsv1.CoinMarket
	minute, at         int64
	price, cap, supply float64
}

// coinHistory is all that the log has of a coin.
type coinHistory struct {
	candles []*eventsv1.Candle
	// observed are the observations that were believed when they came, by source.
	observed map[string][]observation
}

// FoldMarkets works out the rows of all coins at the end of each of the minutes, from all that the log holds.
func (m Market) FoldMarkets(candles map[int32][]Record, observations []Record, minutes []int64) ([]MarketMinute, error) {
	coins := map[string]*coinHistory{}
	coin := func(id string) *coinHistory {
		if coins[id] == nil {
			coins[id] = &coinHistory{observed: map[string][]observation{}}
		}
		return coins[id]
	}
	for p, records := range candles {
		offset, index := int64(-1), uint32(0)
		for _, r := range records {
			rec := &eventsv1.CandleRecord{}
			if err := rec.UnmarshalVT(r.Value); err != nil {
				return nil, fmt.Errorf("decoding the candle %d/%d: %w", p, r.Offset, err)
			}
			if mark := rec.Mark; mark != nil {
				if mark.Offset < offset || mark.Offset == offset && mark.Index <= index {
					continue
				}
				offset, index = mark.Offset, mark.Index
			}
			if c := rec.GetCandle(); c != nil {
				coin(c.CoinId).candles = append(coin(c.CoinId).candles, c)
			}
		}
	}
	err := eachObserved(observations, func(rec *eventsv1.ReferenceRecord, end int64) {
		if observed := rec.GetCoinMarket(); observed != nil {
			if id := m.ID(observed.Source, observed.SourceId); id != "" {
				coin(id).hear(observed, end)
			}
		}
	})
	if err != nil {
		return nil, err
	}
	var list []MarketMinute
	volumes := map[int64]float64{}
	for _, end := range minutes {
		list = append(list, m.minute(coins, end, volumes))
	}
	return list, nil
}

// hear keeps what a source reports unless it is older than its last report, or a hundred times as much within a day.
func (c *coinHistory) hear(reported *eventsv1.CoinMarket, end int64) {
	o := observation{CoinMarket: reported, minute: end, at: reported.IngestTime, price: above0(reported.Price), cap: above0(reported.MarketCap), supply: above0(reported.CirculatingSupply)}
	if reported.EventTime > 0 && reported.EventTime < o.at {
		o.at = reported.EventTime
	}
	if o.price > 0 && o.supply > 0 && o.cap > 0 && (o.price*o.supply > 2*o.cap || o.price*o.supply < o.cap/2) {
		o.supply = 0
	}
	if before := c.observed[reported.Source]; len(before) > 0 {
		b := before[len(before)-1]
		if o.at < b.at {
			return
		}
		if o.at-b.at <= day && o.price > 0 && o.supply > 0 && b.price > 0 && b.supply > 0 && o.price*o.supply > 100*b.price*b.supply {
			return
		}
	}
	c.observed[reported.Source] = append(c.observed[reported.Source], o)
}

// above0 is 0 for all that is not a number above it.
func above0(s string) float64 {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || !(f > 0) || math.IsInf(f, 0) {
		return 0
	}
	return f
}

// sources are the observations that count at the end of a minute, those of the sources that come first before others.
func (c *coinHistory) sources(end int64) []observation {
	var names []string
	for name := range c.observed {
		names = append(names, name)
	}
	place := map[string]string{"coingecko": "1", "coinpaprika": "2"}
	order := func(name string) string {
		if place[name] != "" {
			return place[name]
		}
		return "3" + name
	}
	sort.Slice(names, func(i, j int) bool { return order(names[i]) < order(names[j]) })
	var list []observation
	for _, name := range names {
		for i := len(c.observed[name]) - 1; i >= 0; i-- {
			if o := c.observed[name][i]; o.minute <= end {
				if end-o.at <= 8*day {
					list = append(list, o)
				}
				break
			}
		}
	}
	return list
}

// believed leaves out what is another coin's.
func (c *coinHistory) believed(end int64) []observation {
	list := c.sources(end)
	low, high := c.range24(end)
	if high == 0 {
		var newest int64
		for _, o := range list {
			newest = max(newest, o.at)
		}
		for _, o := range list {
			if high == 0 && o.price > 0 && o.at >= newest-day {
				low, high = o.price, o.price
			}
		}
	}
	var kept []observation
	for _, o := range list {
		if high > 0 && o.price > 0 && (o.price < low*0.5 || o.price > high*1.5) {
			continue
		}
		kept = append(kept, o)
	}
	return kept
}

// known are the candles that had closed at the end of a minute; they close in order.
func (c *coinHistory) known(end int64) []*eventsv1.Candle {
	n := len(c.candles)
	for n > 0 && c.candles[n-1].Start+minute > end {
		n--
	}
	return c.candles[:n]
}

// range24 is over the intervals of five minutes that reach into the 24 hours before; 0 and 0 without any.
func (c *coinHistory) range24(end int64) (low, high float64) {
	for _, k := range c.known(end) {
		if k.Start/(5*minute)*(5*minute)+5*minute > end-day {
			if high == 0 {
				low = k.Low
			}
			low, high = math.Min(low, k.Low), math.Max(high, k.High)
		}
	}
	return low, high
}

// before is the close of the last interval that ended a span before, in the finest resolution that is kept so long.
func (c *coinHistory) before(end, span int64) float64 {
	for _, step := range []struct{ length, kept int64 }{{5 * minute, 25 * hour}, {hour, 8 * day}, {day, 400 * day}} {
		found := 0.0
		for _, k := range c.known(end) {
			start := k.Start / step.length * step.length
			if start >= end-step.kept && start+step.length <= end-span && start+step.length >= end-span-span/10 {
				found = k.Close
			}
		}
		if found != 0 {
			return found
		}
	}
	return 0
}

func (m Market) row(c *coinHistory, id string, end int64) *eventsv1.Market {
	row := &eventsv1.Market{CoinId: id}
	believed := c.believed(end)
	all := c.sources(end)
	if t, ok := m.Coins[id]; ok {
		row.Symbol, row.Name = t.Symbol, t.Name
	} else {
		for i := len(all) - 1; i >= 0; i-- {
			if all[i].Symbol != "" {
				row.Symbol = strings.ToUpper(all[i].Symbol)
			}
			if all[i].Name != "" {
				row.Name = all[i].Name
			}
		}
	}
	candles := c.known(end)
	var newest *eventsv1.Candle
	fresh := false
	if len(candles) > 0 {
		newest = candles[len(candles)-1]
		if age := end - newest.Start - minute; age <= 8*day {
			row.Price, row.PriceSource, row.PriceTime = newest.Close, "median", newest.Start+minute
			fresh = age <= 10*minute
		}
	}
	if !fresh {
		for _, o := range believed {
			if o.price > 0 && o.at > row.PriceTime {
				row.Price, row.PriceSource, row.PriceTime = o.price, o.Source, o.at
			}
		}
	}
	if row.PriceSource == "" {
		return row
	}
	own := row.PriceSource == "median"
	row.Simulated = own && newest.Simulated
	// The source of the price is asked before the others.
	asked := []observation{}
	for _, o := range believed {
		if o.Source == row.PriceSource {
			asked = append(asked, o)
		}
	}
	for _, o := range believed {
		if o.Source != row.PriceSource {
			asked = append(asked, o)
		}
	}
	m.supplies(row, believed)
	if fresh && newest.Volume24H > 0 {
		row.Volume24H = &newest.Volume24H
	} else {
		for _, o := range asked {
			if f, err := strconv.ParseFloat(o.Volume24H, 64); err == nil && f >= 0 && row.Volume24H == nil {
				row.Volume24H = &f
			}
		}
	}
	if row.CirculatingSupply != nil {
		worth := row.Price * *row.CirculatingSupply
		if worth < 100e9 || row.Volume24H != nil && *row.Volume24H >= worth/1e6 {
			row.MarketCap = &worth
		}
	}
	c.highLow(row, asked, end, own)
	c.changes(row, asked, end, own)
	c.everHighLow(row, asked, end, own)
	return row
}

func (Market) supplies(row *eventsv1.Market, believed []observation) {
	take := func(o observation) {
		if row.SupplySource != "" {
			return
		}
		row.SupplySource, row.SupplyTime = o.Source, o.at
		row.CirculatingSupply, row.TotalSupply, row.MaxSupply = optional(o.supply), optional(above0(o.TotalSupply)), optional(above0(o.MaxSupply))
	}
	for _, o := range believed {
		if o.supply > 0 {
			take(o)
		}
	}
	for _, o := range believed {
		if above0(o.TotalSupply) > 0 || above0(o.MaxSupply) > 0 {
			take(o)
		}
	}
	switch {
	case row.MaxSupply != nil:
		row.FullyDilutedValuation = optional(row.Price * *row.MaxSupply)
	case row.TotalSupply != nil:
		row.FullyDilutedValuation = optional(row.Price * *row.TotalSupply)
	}
}

func optional(f float64) *float64 {
	if f == 0 {
		return nil
	}
	return &f
}

func (c *coinHistory) highLow(row *eventsv1.Market, asked []observation, end int64, own bool) {
	var lows, highs []float64
	long := false
	if low, high := c.range24(end); own && high > 0 {
		lows, highs = append(lows, low), append(highs, high)
		for _, k := range c.known(end) {
			start := k.Start / (5 * minute) * (5 * minute)
			long = long || start <= end-day && start >= end-25*hour
		}
	}
	for _, o := range asked {
		if low, high := above0(o.Low24H), above0(o.High24H); !long && low > 0 && high > 0 {
			lows, highs, long = append(lows, low), append(highs, high), true
		}
	}
	if len(lows) == 0 {
		return
	}
	low, high := row.Price, row.Price
	for i := range lows {
		low, high = math.Min(low, lows[i]), math.Max(high, highs[i])
	}
	row.Low24H, row.High24H = &low, &high
}

func (c *coinHistory) changes(row *eventsv1.Market, asked []observation, end int64, own bool) {
	for _, s := range []struct {
		name     string
		span     int64
		field    **float64
		reported func(*eventsv1.CoinMarket) string
	}{
		{"1h", hour, &row.Change1H, (*eventsv1.CoinMarket).GetChange1H},
		{"24h", day, &row.Change24H, (*eventsv1.CoinMarket).GetChange24H},
		{"7d", 7 * day, &row.Change7D, (*eventsv1.CoinMarket).GetChange7D},
		{"14d", 14 * day, &row.Change14D, (*eventsv1.CoinMarket).GetChange14D},
		{"30d", 30 * day, &row.Change30D, (*eventsv1.CoinMarket).GetChange30D},
		{"60d", 60 * day, &row.Change60D, (*eventsv1.CoinMarket).GetChange60D},
		{"200d", 200 * day, &row.Change200D, (*eventsv1.CoinMarket).GetChange200D},
		{"1y", 365 * day, &row.Change1Y, (*eventsv1.CoinMarket).GetChange1Y},
	} {
		if then := c.before(end, s.span); own && then > 0 {
			change := (row.Price/then - 1) * 100
			*s.field = &change
			row.OwnChanges = append(row.OwnChanges, s.name)
			continue
		}
		for _, o := range asked {
			if f, err := strconv.ParseFloat(s.reported(o.CoinMarket), 64); err == nil && f > -100 && !math.IsInf(f, 0) && *s.field == nil {
				*s.field = &f
			}
		}
	}
	if row.Change24H == nil {
		return
	}
	then := 1 + *row.Change24H/100
	rise := row.Price - row.Price/then
	row.PriceChange24H = &rise
	if row.MarketCap != nil {
		capRise, percent := *row.MarketCap-*row.MarketCap/then, *row.Change24H
		row.MarketCapChange24H, row.MarketCapChangePct24H = &capRise, &percent
	}
}

func (c *coinHistory) everHighLow(row *eventsv1.Market, asked []observation, end int64, own bool) {
	for i := len(asked) - 1; i >= 0; i-- {
		if f := above0(asked[i].Ath); f > 0 {
			row.Ath, row.AthTime = &f, asked[i].AthTime
		}
		if f := above0(asked[i].Atl); f > 0 {
			row.Atl, row.AtlTime = &f, asked[i].AtlTime
		}
	}
	reach := func(low, high float64, at int64) {
		if row.Ath != nil && high > *row.Ath {
			row.Ath, row.AthTime = &high, at
		}
		if row.Atl != nil && low < *row.Atl {
			row.Atl, row.AtlTime = &low, at
		}
	}
	if own {
		for _, k := range c.known(end) {
			if start := k.Start / day * day; start >= end-400*day {
				reach(k.Low, k.High, start)
			}
		}
	}
	reach(row.Price, row.Price, row.PriceTime)
}
