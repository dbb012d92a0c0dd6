package schemas

import (
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// longSpans is how many of the changeSpans, the last ones, are so long that days give them.
const longSpans = 4

// LongSpans are the spans of these changes, the shortest first.
func LongSpans() [longSpans]time.Duration {
	var spans [longSpans]time.Duration
	for i := range spans {
		spans[i] = changeSpans[len(changeSpans)-longSpans+i].span
	}
	return spans
}

// LongCloses are prices in USD as of each of the LongSpans ago, 0 where none is known.
type LongCloses [longSpans]float64

// CandleFigures are what the candles of a coin, live and back-filled, give of it, in USD; what is 0 is not known.
type CandleFigures struct {
	// DayAgo is the close of the last candle that ended 24 hours before, or at most 2.4 hours earlier.
	DayAgo float64
	// High and Low are those of the candles of the 24 hours. Whole means that there is a candle before these: what sources
	// say of them counts no more.
	High, Low float64
	Whole     bool
	// Ever are the extremes of all back-filled days and hours.
	Ever Extremes
	// Ago are the closes of the last days that ended each of the LongSpans before, or at most a tenth of it earlier.
	Ago LongCloses
}

// Measure returns a coin's row with the figures of its candles in the place of those that the fold of rows has made of live
// candles and sources alone, if the price is our own; it does not change the row. Those of 24 hours count at the end of the
// minute that they are of. The page docs/formulas.md says the same in words.
func (f CandleFigures) Measure(row *eventsv1.Market) *eventsv1.Market {
	if row.GetPriceSource() != PriceSourceMedian || f == (CandleFigures{}) {
		return row
	}
	measured := proto.CloneOf(row)
	if f.DayAgo > 0 {
		measured.Change24H = known(float64(row.Price/f.DayAgo-1) * 100)
		measured.PriceChange24H = known(risen(row.Price, *measured.Change24H))
		if row.MarketCap != nil {
			measured.MarketCapChange24H, measured.MarketCapChangePct24H = known(risen(*row.MarketCap, *measured.Change24H)), measured.Change24H
		}
		measured.OwnChanges = withOwnChange(row.OwnChanges, "24h")
	}
	for i, before := range f.Ago {
		at := len(changeSpans) - longSpans + i
		if change := changeFields(measured)[at]; *change == nil && before > 0 {
			*change = known(float64(row.Price/before-1) * 100)
			measured.OwnChanges = withOwnChange(measured.OwnChanges, changeSpans[at].name)
		}
	}
	if f.High > 0 {
		high, low := max(f.High, row.Price), min(f.Low, row.Price)
		if !f.Whole && row.High24H != nil && row.Low24H != nil {
			high, low = max(high, *row.High24H), min(low, *row.Low24H)
		}
		measured.High24H, measured.Low24H = &high, &low
	}
	if e := f.Ever; !e.HighAt.IsZero() && row.Ath != nil && e.High > *row.Ath {
		measured.Ath, measured.AthTime = &e.High, e.HighAt.UnixNano()
	}
	if e := f.Ever; !e.LowAt.IsZero() && row.Atl != nil && e.Low < *row.Atl {
		measured.Atl, measured.AtlTime = &e.Low, e.LowAt.UnixNano()
	}
	// What is back-filled of the last hours may go beyond what it serves of days, which it does not have yet.
	if measured.Ath != nil && measured.GetHigh24H() > *measured.Ath {
		measured.Ath, measured.AthTime = measured.High24H, row.Time
	}
	if measured.Atl != nil && measured.Low24H != nil && *measured.Low24H < *measured.Atl {
		measured.Atl, measured.AtlTime = measured.Low24H, row.Time
	}
	return measured
}

// withOwnChange adds a span to those whose change is of our own candles, in the order of the spans.
func withOwnChange(own []string, name string) []string {
	var spans []string
	for _, c := range changeSpans {
		if c.name == name || slices.Contains(own, c.name) {
			spans = append(spans, c.name)
		}
	}
	return spans
}
