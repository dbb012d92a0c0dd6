package oracle

import (
	"fmt"
	"math/big"
	"sort"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// Candle is one closed minute of a coin.
type Candle struct {
	Coin                   string
	Start                  int64 // Unix seconds
	Open, High, Low, Close float64
	Volume                 *big.Rat
	VolumeUSD              float64
	Trades                 uint64
}

// VenueCandle is one closed minute of a market, by the time of its trades.
type VenueCandle struct {
	Venue, Symbol, Coin, Quote     string
	Start                          int64 // Unix seconds
	Open, High, Low, Close, Volume *big.Rat
	Trades                         uint64
}

const (
	minute   = 60 * second
	lateness = 5 * second
	// A trade of a minute further than that ahead of the log's now counts if now comes near it soon.
	near = minute
	soon = 10 * second
)

// trade is one trade that belongs to a candle.
type trade struct {
	coin, venue, symbol, quote string
	at                         int64
	received                   int64 // the log's now when it came
	price, size                *big.Rat
	usd                        float64
}

// candles keeps the prices and trades of minutes that are open.
type candles struct {
	prices map[int64][]Price
	trades map[int64][]trade
	coins  []Candle
	venues []VenueCandle
}

func newCandles() candles {
	return candles{prices: map[int64][]Price{}, trades: map[int64][]trade{}}
}

func (c *candles) price(p Price) {
	start := p.Second - p.Second%60
	c.prices[start] = append(c.prices[start], p)
}

// trade keeps a trade that is not late, by the minute that it happened in.
func (c *candles) trade(r *eventsv1.ResolvedTick, now, watermark int64) {
	if r.Flags&(flagLate|flagUnmapped|flagNotSpot|flagRepeat) != 0 {
		return
	}
	t := r.Tick
	at := t.EventTime
	if at == 0 {
		at = t.IngestTime
	}
	if start := at - at%minute; start+minute+lateness <= watermark {
		return
	}
	price, size := rat(t.Price), rat(t.Size)
	value, _ := new(big.Rat).Mul(price, size).Float64()
	start := at/second - at/second%60
	c.trades[start] = append(c.trades[start], trade{
		coin: r.CoinId, venue: t.Venue, symbol: t.Symbol, quote: r.QuoteId, at: at, received: now, price: price, size: size, usd: value * r.Rate,
	})
}

// leave leaves out the trades of minutes that now has not come near for too long.
func (c *candles) leave(now int64) {
	for start, trades := range c.trades {
		if start*second-now <= near {
			continue
		}
		var kept []trade
		for _, t := range trades {
			if now-t.received < soon {
				kept = append(kept, t)
			}
		}
		if c.trades[start] = kept; len(kept) == 0 {
			delete(c.trades, start)
		}
	}
}

// closeUntil closes the minutes that ended, lateness included, at or before the watermark.
func (c *candles) closeUntil(watermark int64) {
	starts := map[int64]bool{}
	for start := range c.prices {
		starts[start] = true
	}
	for start := range c.trades {
		starts[start] = true
	}
	for start := range starts {
		if start*second+minute+lateness <= watermark {
			c.close(start)
			delete(c.prices, start)
			delete(c.trades, start)
		}
	}
}

func (c *candles) close(start int64) {
	byCoin := map[string][]Price{}
	for _, p := range c.prices[start] {
		byCoin[p.Coin] = append(byCoin[p.Coin], p)
	}
	for id, prices := range byCoin {
		c.coins = append(c.coins, coinCandle(id, start, prices, c.trades[start]))
	}
	byMarket := map[marketID][]trade{}
	for _, t := range c.trades[start] {
		id := marketID{t.venue, t.symbol}
		byMarket[id] = append(byMarket[id], t)
	}
	for id, trades := range byMarket {
		c.venues = append(c.venues, venueCandle(id, start, trades))
	}
}

// coinCandle has the prices of its minute, and the trades of the venues that the last of them accepted.
func coinCandle(id string, start int64, prices []Price, trades []trade) Candle {
	last := prices[len(prices)-1]
	candle := Candle{
		Coin: id, Start: start, Open: prices[0].Price, High: prices[0].Price, Low: prices[0].Price, Close: last.Price,
		Volume: new(big.Rat),
	}
	for _, p := range prices {
		candle.High, candle.Low = max(candle.High, p.Price), min(candle.Low, p.Price)
	}
	var venues []string
	for _, in := range last.Inputs {
		if in.Accepted {
			venues = append(venues, in.Provider)
		}
	}
	sort.Strings(venues)
	// Venue by venue, each in the order of the log: so the sum of floats has one order.
	for _, venue := range venues {
		usd := 0.0
		for _, t := range trades {
			if t.coin == id && t.venue == venue {
				candle.Volume.Add(candle.Volume, t.size)
				candle.Trades++
				usd += t.usd
			}
		}
		candle.VolumeUSD += usd
	}
	return candle
}

// venueCandle opens with the first trade by time and closes with the last; of trades of one instant the
// log's order decides.
func venueCandle(id marketID, start int64, trades []trade) VenueCandle {
	sorted := append([]trade(nil), trades...)
	sort.SliceStable(sorted, func(i, j int) bool { return sorted[i].at < sorted[j].at })
	first, last := sorted[0], sorted[len(sorted)-1]
	candle := VenueCandle{
		Venue: id.provider, Symbol: id.symbol, Coin: first.coin, Quote: first.quote, Start: start,
		Open: first.price, High: first.price, Low: first.price, Close: last.price, Volume: new(big.Rat), Trades: uint64(len(trades)),
	}
	for _, t := range sorted {
		if t.price.Cmp(candle.High) > 0 {
			candle.High = t.price
		}
		if t.price.Cmp(candle.Low) < 0 {
			candle.Low = t.price
		}
		candle.Volume.Add(candle.Volume, t.size)
	}
	return candle
}

// Without returns the log less one of the trades of a candle, and names that trade.
func Without(ticks map[int32][]Record, candle VenueCandle) (shorter map[int32][]Record, what string, err error) {
	shorter = map[int32][]Record{}
	for p, records := range ticks {
		shorter[p] = records
	}
	for p, records := range ticks {
		list, err := admitted(records)
		if err != nil {
			return nil, "", err
		}
		for _, r := range list {
			t := r.rec.GetTick()
			if t == nil || t.Flags&(flagLate|flagUnmapped|flagNotSpot|flagRepeat) != 0 || t.Tick.Price == "" ||
				t.Tick.Venue != candle.Venue || t.Tick.Symbol != candle.Symbol || t.Tick.EventTime/minute != candle.Start*second/minute {
				continue
			}
			var rest []Record
			for _, other := range records {
				if other.Offset != r.offset {
					rest = append(rest, other)
				}
			}
			shorter[p] = rest
			return shorter, fmt.Sprintf("trade %s of %s %s", t.Tick.TradeId, t.Tick.Venue, t.Tick.Symbol), nil
		}
	}
	return nil, "", fmt.Errorf("the log holds no trade of the candle of %s %s at %d", candle.Venue, candle.Symbol, candle.Start)
}
