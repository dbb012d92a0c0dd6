package schemas

import (
	"time"

	"github.com/shopspring/decimal"
)

// Origin says where a candle comes from.
type Origin string

// Origins of candles. Records of candles of the past name OriginImport, or none.
const (
	// OriginLive is folded from published prices.
	OriginLive Origin = "live"
	// OriginBackfill is made of venues' own candles of the past, of which at least one was read from its venue.
	OriginBackfill Origin = "backfill"
	// OriginImport is made of such candles that were all imported from files.
	OriginImport Origin = "import"
	// OriginMixed is folded from live candles and others.
	OriginMixed Origin = "mixed"
)

// Past reports that nothing of a candle was live.
func (o Origin) Past() bool { return o == OriginBackfill || o == OriginImport }

// with is the origin of what is folded of two.
func (o Origin) with(other Origin) Origin {
	switch {
	case o == other:
		return o
	case o.Past() && other.Past():
		return OriginBackfill // not all of it was imported
	default:
		return OriginMixed
	}
}

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

// Same reports that two candles are the same, whatever the form of their volume. As Equal it would be what go-cmp compares candles by, also where rounding is allowed for.
func (c Candle) Same(other Candle) bool {
	same := c.Volume.Equal(other.Volume) && c.Start.Equal(other.Start) && c.Newest.Equal(other.Newest)
	c.Volume, c.Start, c.Newest = other.Volume, other.Start, other.Newest
	return same && c == other
}

// Join folds a later candle into c, which keeps its start.
func (c *Candle) Join(later Candle) {
	c.High, c.Low, c.Close = max(c.High, later.High), min(c.Low, later.Low), later.Close
	c.Volume = c.Volume.Add(later.Volume)
	c.VolumeUSD += later.VolumeUSD
	c.Trades += later.Trades
	c.Minutes += later.Minutes
	c.Origin = c.Origin.with(later.Origin)
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
