package schemas

import (
	"time"

	"github.com/shopspring/decimal"
)

// Origin tells where a candle comes from.
type Origin string

// Origins of candles.
const (
	// OriginLive is folded from published prices.
	OriginLive Origin = "live"
	// OriginBackfill is made of venues' own candles of the past.
	OriginBackfill Origin = "backfill"
	// OriginMixed is folded from candles of both.
	OriginMixed Origin = "mixed"
)

// Candle is the published price of a coin over an interval, in USD. Candles of longer intervals are
// folded from those of the minutes.
type Candle struct {
	// Start labels the interval.
	Start                  time.Time
	Open, High, Low, Close float64
	// Volume is the base traded at the accepted venues, exact; VolumeUSD the same in USD.
	Volume    decimal.Decimal
	VolumeUSD float64
	Trades    uint64
	// Minutes is the number of closed minutes that were folded, and of a venue's own candle all that it spans; Newest the start of the last of them;
	// where single prices were folded too, the second of the last of those.
	Minutes int
	Newest  time.Time
	Origin  Origin
}

// Join folds a later candle into c, which keeps its start.
func (c *Candle) Join(later Candle) {
	c.High, c.Low, c.Close = max(c.High, later.High), min(c.Low, later.Low), later.Close
	c.Volume = c.Volume.Add(later.Volume)
	c.VolumeUSD += later.VolumeUSD
	c.Trades += later.Trades
	c.Minutes += later.Minutes
	if c.Origin != later.Origin {
		c.Origin = OriginMixed
	}
	if later.Newest.After(c.Newest) {
		c.Newest = later.Newest
	}
}

// JoinCandles folds candles, oldest first, into intervals of a step, which divides a day.
func JoinCandles(candles []Candle, step time.Duration) []Candle {
	var joined []Candle
	for _, c := range candles {
		start := c.Start.Truncate(step)
		if n := len(joined); n > 0 && joined[n-1].Start.Equal(start) {
			joined[n-1].Join(c)
			continue
		}
		c.Start = start
		joined = append(joined, c)
	}
	return joined
}

// Extremes are the highest and the lowest price of some candles, in USD, and the starts of the first of those that reached
// them. The zero value is that of no candle.
type Extremes struct {
	High, Low     float64
	HighAt, LowAt time.Time
}

// Reach takes a candle into e.
func (e *Extremes) Reach(c Candle) {
	if e.HighAt.IsZero() || c.High > e.High || c.High == e.High && c.Start.Before(e.HighAt) {
		e.High, e.HighAt = c.High, c.Start
	}
	if e.LowAt.IsZero() || c.Low < e.Low || c.Low == e.Low && c.Start.Before(e.LowAt) {
		e.Low, e.LowAt = c.Low, c.Start
	}
}
