package views

import (
	"math"
	"time"

	"github.com/marketlog/marketlog/schemas"
)

// CandleStats are over the candles of a chart.
type CandleStats struct {
	// Min is the lowest low, Max the highest high, Mean the mean of the closes.
	Min, Max, Mean float64
	// ChangePct is from the first open to the last close, in percent of the size of the first; nil where that is zero.
	ChangePct *float64
}

// StatsOf sums up candles, oldest first; false where there is none.
func StatsOf(candles []schemas.Candle) (s CandleStats, ok bool) {
	if len(candles) == 0 {
		return s, false
	}
	first, last := candles[0], candles[len(candles)-1]
	s.Min, s.Max = first.Low, first.High
	sum := 0.0
	for _, c := range candles {
		s.Min, s.Max = min(s.Min, c.Low), max(s.Max, c.High)
		sum += c.Close
	}
	s.Mean = Mean(sum, len(candles), s.Min, s.Max)
	if first.Open != 0 {
		change := (last.Close - first.Open) / math.Abs(first.Open) * 100
		s.ChangePct = &change
	}
	return s, true
}

// PricedUntil is the second up to which published prices are in the candles of Candles.Read that end with c, as of a time. A closed minute holds all of its
// prices; an interval that only carries the price before it is up to its start.
func PricedUntil(c schemas.Candle, now time.Time) time.Time {
	switch {
	case c.Newest.Before(c.Start):
		return c.Start
	case c.Newest.Truncate(time.Minute).Equal(c.Newest) && !now.Before(c.Newest.Add(time.Minute)):
		return c.Newest.Add(time.Minute - time.Second)
	}
	return c.Newest
}
