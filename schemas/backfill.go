package schemas

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/shopspring/decimal"
)

// FoldMarketsVersion is raised whenever FoldMarkets or Conversion answer otherwise than before for the same input, so that what is
// stored of their answers is made again.
const FoldMarketsVersion = 1

// FixingDays is for how many days after its own a fixing counts where there is no newer one: Easter
// leaves five days without one.
const FixingDays = 6

// OHLC is the four prices of a candle, or what one unit of a quote asset cost in USD at the same moments.
type OHLC struct{ Open, High, Low, Close float64 }

func (p OHLC) times(rate OHLC) OHLC {
	return OHLC{p.Open * rate.Open, p.High * rate.High, p.Low * rate.Low, p.Close * rate.Close}
}

// MarketCandle is a venue's own candle of one of its markets, in the quote of the market.
type MarketCandle struct {
	CoinID, QuoteID, Venue, Symbol string
	Start                          time.Time
	OHLC
	Volume decimal.Decimal
	// Imported means that it is of a file.
	Imported bool
}

// origin is that of a candle of a coin which is made of this one alone.
func (c MarketCandle) origin() Origin {
	if c.Imported {
		return OriginImport
	}
	return OriginBackfill
}

// FoldMarkets makes the candles of a coin in USD, of one length, from those of its markets: each
// venue has one vote, its best market with a rate, and each field is the median of the votes. The
// volume is that of all markets of the venues that voted, and the origin that of all of these. An interval without a vote has no candle.
// It sorts the markets' candles in place.
func FoldMarkets(candles []MarketCandle, length time.Duration, rate func(quoteID string, start time.Time) (OHLC, bool)) []Candle {
	slices.SortFunc(candles, func(a, b MarketCandle) int {
		return cmp.Or(a.Start.Compare(b.Start), strings.Compare(a.Venue, b.Venue), compareMarkets(a.QuoteID, a.Symbol, b.QuoteID, b.Symbol))
	})
	var folded []Candle
	var votes []OHLC
	for i := 0; i < len(candles); {
		start, volume, origin := candles[i].Start, decimal.Zero, Origin("")
		votes = votes[:0]
		for i < len(candles) && candles[i].Start.Equal(start) {
			venue, traded, voted, first := candles[i].Venue, decimal.Zero, false, i
			for ; i < len(candles) && candles[i].Start.Equal(start) && candles[i].Venue == venue; i++ {
				traded = traded.Add(candles[i].Volume)
				if voted {
					continue
				}
				if r, ok := rate(candles[i].QuoteID, start); ok {
					votes, voted = append(votes, candles[i].times(r)), true
				}
			}
			if !voted {
				continue
			}
			volume = volume.Add(traded)
			for _, c := range candles[first:i] {
				if origin == "" {
					origin = c.origin()
				}
				origin = origin.with(c.origin())
			}
		}
		if len(votes) == 0 {
			continue
		}
		c := Candle{Start: start, Volume: volume, Minutes: int(length / time.Minute), Newest: start.Add(length - time.Minute), Origin: origin}
		c.Open, c.High = medianOf(votes, func(v OHLC) float64 { return v.Open }), medianOf(votes, func(v OHLC) float64 { return v.High })
		c.Low, c.Close = medianOf(votes, func(v OHLC) float64 { return v.Low }), medianOf(votes, func(v OHLC) float64 { return v.Close })
		c.VolumeUSD = volume.InexactFloat64() * (c.Open + c.High + c.Low + c.Close) / 4
		folded = append(folded, c)
	}
	return folded
}

func medianOf(votes []OHLC, field func(OHLC) float64) float64 {
	values := make([]float64, len(votes))
	for i, v := range votes {
		values[i] = field(v)
	}
	return median(values)
}

// Fixing is what one unit of a currency cost in USD by the reference rates of a day.
type Fixing struct {
	Currency string
	Day      time.Time
	USD      float64
}

// QuoteCandle is the live candle of a quote asset. It is whole if all its minutes had a price.
type QuoteCandle struct {
	CoinID string
	Start  time.Time
	OHLC
	Whole bool
}

// Conversion holds what quote assets cost in USD in intervals of one length.
type Conversion struct {
	fixings map[string][]Fixing // by day
	coins   map[quoteStart]OHLC
}

type quoteStart struct {
	quoteID string
	start   int64
}

// NewConversion finds the rates level by level: currencies by their fixings, stablecoins by their
// candles in currencies, then the coins that markets are quoted in by theirs in both. A live
// candle of a quote asset comes before a back-filled one, and after it if it is not whole.
func NewConversion(coins *CoinTable, length time.Duration, live []QuoteCandle, markets []MarketCandle, fixings []Fixing) *Conversion {
	c := &Conversion{fixings: map[string][]Fixing{}, coins: map[quoteStart]OHLC{}}
	for _, f := range fixings {
		c.fixings[f.Currency] = append(c.fixings[f.Currency], f)
	}
	for _, days := range c.fixings {
		slices.SortFunc(days, func(a, b Fixing) int { return a.Day.Compare(b.Day) })
	}
	levels := map[string]int{}
	level := func(coinID string) int {
		if _, ok := levels[coinID]; !ok {
			levels[coinID] = QuoteLevel(coins, Asset{ID: coinID})
		}
		return levels[coinID]
	}
	for _, of := range []int{DirectQuote, CrossQuote} {
		found := map[quoteStart]OHLC{}
		byCoin := map[string][]MarketCandle{}
		for _, m := range markets {
			if level(m.CoinID) == of {
				byCoin[m.CoinID] = append(byCoin[m.CoinID], m)
			}
		}
		for _, l := range live {
			if level(l.CoinID) == of && !l.Whole {
				found[quoteStart{l.CoinID, l.Start.Unix()}] = l.OHLC
			}
		}
		for coinID, candles := range byCoin {
			// Of the coins, only the level below is there yet: no two hang on each other.
			for _, f := range FoldMarkets(candles, length, c.Rate) {
				found[quoteStart{coinID, f.Start.Unix()}] = OHLC{f.Open, f.High, f.Low, f.Close}
			}
		}
		for _, l := range live {
			if level(l.CoinID) == of && l.Whole {
				found[quoteStart{l.CoinID, l.Start.Unix()}] = l.OHLC
			}
		}
		for key, rate := range found {
			c.coins[key] = rate
		}
	}
	return c
}

// Rate is what one unit of a quote asset (coin id or currency code) cost in the interval with that start.
func (c *Conversion) Rate(quoteID string, start time.Time) (OHLC, bool) {
	if quoteID == USD {
		return OHLC{1, 1, 1, 1}, true
	}
	if days := c.fixings[quoteID]; days != nil {
		day := start.UTC().Truncate(24 * time.Hour)
		i, same := slices.BinarySearchFunc(days, day, func(f Fixing, day time.Time) int { return f.Day.Compare(day) })
		if !same {
			i--
		}
		if i < 0 || day.Sub(days[i].Day) > FixingDays*24*time.Hour {
			return OHLC{}, false
		}
		usd := days[i].USD
		return OHLC{usd, usd, usd, usd}, true
	}
	rate, ok := c.coins[quoteStart{quoteID, start.Unix()}]
	return rate, ok
}
