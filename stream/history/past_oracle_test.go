package history_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/shopspring/decimal"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// pastOracle knows what was added and works out the candles from nothing else, one at a time, by docs/decisions/0008.
// It shares no code with what folds them.
type pastOracle struct {
	markets map[oracleMarket]oracleCandle
	// fixings are units for one euro, by day and currency.
	fixings map[string]map[string]oracleFixing
	live    map[string]map[int64]*eventsv1.Candle
	// closed is the end of the last closed live minute, Unix seconds.
	closed int64
}

type oracleMarket struct {
	coin          string
	length, start int64 // seconds
	venue, symbol string
}

type oracleCandle struct {
	offset int64
	quote  string
	prices [4]float64
	volume decimal.Decimal
	// imported is of a file; withdrawn no longer counts.
	imported, withdrawn bool
}

type oracleFixing struct {
	offset int64
	rate   float64
}

func newPastOracle() *pastOracle {
	return &pastOracle{markets: map[oracleMarket]oracleCandle{}, fixings: map[string]map[string]oracleFixing{}, live: map[string]map[int64]*eventsv1.Candle{}, closed: 1 << 40}
}

// oracleIDs are what the venues' names mean; oracleLevels those that convert others, and how.
var (
	oracleIDs    = map[string]string{"BTC": "bitcoin", "ETH": "ethereum", "USDT": "tether", "USDC": "usd-coin", "SOL": "solana", "DOGE": "dogecoin"}
	oracleLevels = map[string]int{"tether": 1, "usd-coin": 1, "bitcoin": 2, "ethereum": 2}
	oracleQuotes = []string{"USD", "tether", "usd-coin", "EUR", "GBP", "bitcoin", "ethereum"}
)

func oracleID(name string) string { return cmp.Or(oracleIDs[name], name) }

func (o *pastOracle) add(record logged) {
	switch r := record.record.(type) {
	case *eventsv1.BackfillRecord:
		c := r.GetCandle()
		key := oracleMarket{oracleID(c.Base), int64(c.Interval), c.Start / int64(time.Second), c.Venue, c.Symbol}
		if before, known := o.markets[key]; known && before.offset > record.place.Offset {
			return
		}
		candle := oracleCandle{offset: record.place.Offset, quote: oracleID(c.Quote), imported: len(c.File) > 0, withdrawn: c.Withdrawn}
		if !c.Withdrawn {
			candle.volume = decimal.RequireFromString(c.Volume)
		}
		for i, text := range []string{c.Open, c.High, c.Low, c.Close} {
			candle.prices[i], _ = strconv.ParseFloat(text, 64)
		}
		o.markets[key] = candle
	case *eventsv1.ReferenceRecord:
		f := r.GetFixing()
		if o.fixings[f.Date] == nil {
			o.fixings[f.Date] = map[string]oracleFixing{}
		}
		if before, known := o.fixings[f.Date][f.Quote]; known && before.offset > record.place.Offset {
			return
		}
		rate, _ := strconv.ParseFloat(f.Rate, 64)
		o.fixings[f.Date][f.Quote] = oracleFixing{record.place.Offset, rate}
	case *eventsv1.CandleRecord:
		c := r.GetCandle()
		if o.live[c.CoinId] == nil {
			o.live[c.CoinId] = map[int64]*eventsv1.Candle{}
		}
		o.live[c.CoinId][c.Start/int64(time.Second)] = c
	}
}

// fiat is what a currency cost on the day of a time, or on the newest of the six days before that has it.
func (o *pastOracle) fiat(currency string, start int64) (usd float64, ok bool) {
	for back := range 7 {
		fixed := o.fixings[time.Unix(start, 0).UTC().AddDate(0, 0, -back).Format(time.DateOnly)]
		dollar, known := fixed["USD"]
		if !known {
			continue
		}
		if currency == "EUR" {
			return dollar.rate, true
		}
		if of, known := fixed[currency]; known {
			return dollar.rate / of.rate, true
		}
	}
	return 0, false
}

// rate is what a quote cost in an interval, if coins below a level may give it.
func (o *pastOracle) rate(quote string, length, start int64, below int) (rate [4]float64, ok bool) {
	if quote == "USD" {
		return [4]float64{1, 1, 1, 1}, true
	}
	if quote == "EUR" || quote == "GBP" {
		usd, ok := o.fiat(quote, start)
		return [4]float64{usd, usd, usd, usd}, ok
	}
	level := oracleLevels[quote]
	if level == 0 || level >= below {
		return rate, false
	}
	live, minutes := o.liveCandle(quote, length, start)
	if minutes*60 == length {
		return live, true
	}
	if past, _, ok := o.fold(quote, length, start, level); ok {
		return past, true
	}
	return live, minutes > 0
}

func (o *pastOracle) liveCandle(coin string, length, start int64) (prices [4]float64, minutes int64) {
	for at := start; at < start+length; at += 60 {
		c := o.live[coin][at]
		if c == nil {
			continue
		}
		if minutes++; minutes == 1 {
			prices = [4]float64{c.Open, c.High, c.Low, c.Close}
			continue
		}
		prices = [4]float64{prices[0], max(prices[1], c.High), min(prices[2], c.Low), c.Close}
	}
	return prices, minutes
}

// fold makes the candle of a coin from its markets: a vote a venue.
func (o *pastOracle) fold(coin string, length, start int64, below int) (prices [4]float64, volume decimal.Decimal, ok bool) {
	type market struct {
		symbol string
		oracleCandle
	}
	venues := map[string][]market{}
	for key, c := range o.markets {
		if key.coin == coin && key.length == length && key.start == start && !c.withdrawn {
			venues[key.venue] = append(venues[key.venue], market{key.symbol, c})
		}
	}
	var votes [4][]float64
	for _, markets := range venues {
		place := func(m market) string {
			at := slices.Index(oracleQuotes, m.quote)
			if at < 0 {
				at = len(oracleQuotes)
			}
			return fmt.Sprintf("%d %s %s %s", at, strings.ToLower(m.quote), m.quote, m.symbol)
		}
		slices.SortFunc(markets, func(a, b market) int { return strings.Compare(place(a), place(b)) })
		at := slices.IndexFunc(markets, func(m market) bool { _, ok := o.rate(m.quote, length, start, below); return ok })
		if at < 0 {
			continue
		}
		rate, _ := o.rate(markets[at].quote, length, start, below)
		for i, price := range markets[at].prices {
			votes[i] = append(votes[i], price*rate[i])
		}
		for _, m := range markets {
			volume = volume.Add(m.volume)
		}
	}
	n := len(votes[0])
	if n == 0 {
		return prices, volume, false
	}
	for i := range votes {
		slices.Sort(votes[i])
		prices[i] = (votes[i][(n-1)/2] + votes[i][n/2]) / 2
	}
	return prices, volume, true
}

// anyLevel is above all coins that convert others.
const anyLevel = 3

// past is the back-filled candle that is shown of an interval.
func (o *pastOracle) past(coin string, length, start int64) (c schemas.Candle, ok bool) {
	if start+length > o.closed {
		return c, false
	}
	prices, volume, ok := o.fold(coin, length, start, anyLevel)
	mean := (prices[0] + prices[1] + prices[2] + prices[3]) / 4
	usd, _ := volume.Float64()
	return schemas.Candle{Start: time.Unix(start, 0).UTC(), Open: prices[0], High: prices[1], Low: prices[2], Close: prices[3], Volume: volume, VolumeUSD: usd * mean,
		Minutes: int(length / 60), Origin: o.origin(coin, length, start)}, ok
}

// origin is that of a back-filled candle: whether all markets of the venues that have a vote are of files.
func (o *pastOracle) origin(coin string, length, start int64) schemas.Origin {
	votes, other := map[string]bool{}, map[string]bool{} // by venue
	for key, c := range o.markets {
		if key.coin != coin || key.length != length || key.start != start || c.withdrawn {
			continue
		}
		if _, ok := o.rate(c.quote, length, start, anyLevel); ok {
			votes[key.venue] = true
		}
		other[key.venue] = other[key.venue] || !c.imported
	}
	for venue := range votes {
		if other[venue] {
			return schemas.OriginBackfill
		}
	}
	return schemas.OriginImport
}

func (o *pastOracle) minute(coin string, start int64) (schemas.Candle, bool) {
	if c := o.live[coin][start]; c != nil {
		return schemas.Candle{Start: time.Unix(start, 0).UTC(), Open: c.Open, High: c.High, Low: c.Low, Close: c.Close, Volume: decimal.RequireFromString(c.Volume), VolumeUSD: c.VolumeUsd,
			Trades: c.Trades, Minutes: 1, Origin: schemas.OriginLive}, true
	}
	return o.past(coin, 60, start)
}

// candle is what is shown of an interval.
func (o *pastOracle) candle(coin string, length, start int64) (schemas.Candle, bool) {
	if length == 60 {
		return o.minute(coin, start)
	}
	var joined schemas.Candle
	live, n, imported := 0, int64(0), true
	for at := start; at < start+length; at += 60 {
		m, ok := o.minute(coin, at)
		if !ok {
			continue
		}
		if m.Origin == schemas.OriginLive {
			live++
		}
		imported = imported && m.Origin == schemas.OriginImport
		if n++; n == 1 {
			joined = m
			joined.Start = time.Unix(start, 0).UTC()
			continue
		}
		joined.High, joined.Low, joined.Close = max(joined.High, m.High), min(joined.Low, m.Low), m.Close
		joined.Volume, joined.VolumeUSD, joined.Trades = joined.Volume.Add(m.Volume), joined.VolumeUSD+m.VolumeUSD, joined.Trades+m.Trades
	}
	joined.Minutes = int(n)
	switch {
	case live == 0 && imported:
		joined.Origin = schemas.OriginImport
	case live == 0:
		joined.Origin = schemas.OriginBackfill
	case int64(live) < n:
		joined.Origin = schemas.OriginMixed
	}
	if past, ok := o.past(coin, length, start); ok && (n*60 < length || live == 0) {
		return past, true
	}
	return joined, n > 0
}

// candles are those of a coin, oldest first.
func (o *pastOracle) candles(coin string, length int64) (all []schemas.Candle) {
	starts := map[int64]bool{}
	for key := range o.markets {
		if key.coin == coin && (key.length == length || key.length == 60) {
			starts[key.start-key.start%length] = true
		}
	}
	for at := range o.live[coin] {
		starts[at-at%length] = true
	}
	for _, start := range slices.Sorted(maps.Keys(starts)) {
		if c, ok := o.candle(coin, length, start); ok {
			all = append(all, c)
		}
	}
	return all
}

// left returns each venue's own candle as v_backfill shows it.
func (o *pastOracle) left() (all []string) {
	for key, c := range o.markets {
		if c.withdrawn {
			continue
		}
		rate, _ := o.rate(c.quote, key.length, key.start, anyLevel)
		reason := ""
		switch {
		case c.quote == "NOSUCH":
			reason = "unmapped"
		case key.start+key.length > o.closed:
			rate[0], reason = 0, "waits"
		case rate[0] == 0:
			reason = "no_rate"
		}
		all = append(all, fmt.Sprintf("%s %d %d %s %s %v %s", key.coin, key.length, key.start, key.venue, key.symbol, rate[0], reason))
	}
	slices.Sort(all)
	return all
}
