package schemas

import (
	"math"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// SentimentClass names a ratio of rising coins among those that moved, from 0 to 1.
func SentimentClass(ratio float64) string {
	switch {
	case ratio >= 0.75:
		return "very bullish"
	case ratio >= 0.55:
		return "bullish"
	case ratio > 0.45:
		return "neutral"
	case ratio > 0.25:
		return "bearish"
	default:
		return "very bearish"
	}
}

// NewSentiment counts the coins of a segment that rose and fell within 24 hours. Those without a known change do not
// count; where none moved, the ratio is 0.5. Ranked are the coins from rank 1 on: floats are summed in their order.
func NewSentiment(ranked []Standing, segment RankRange) *eventsv1.Sentiment {
	s := &eventsv1.Sentiment{Range: segment.String(), Ratio: 0.5}
	var changes []float64
	sum := 0.0
	for _, c := range segment.of(ranked) {
		change := c.change24h
		if math.IsNaN(change) {
			continue
		}
		changes = append(changes, change)
		sum += change
		switch {
		case change > 0:
			s.Positive++
		case change < 0:
			s.Negative++
		default:
			s.Neutral++
		}
	}
	s.Total = uint32(len(changes))
	if moved := s.Positive + s.Negative; moved > 0 {
		s.Ratio = float64(s.Positive) / float64(moved)
	}
	s.Classification = SentimentClass(s.Ratio)
	if s.Total > 0 {
		s.AverageChange24H = sum / float64(s.Total)
		s.MedianChange24H = median(changes)
	}
	return s
}

// FearGreedClass names an index from 0, extreme fear, to 100, extreme greed, with the bounds that the index of
// alternative.me has.
func FearGreedClass(value uint32) string {
	switch {
	case value < 26:
		return "Extreme Fear"
	case value < 47:
		return "Fear"
	case value < 55:
		return "Neutral"
	case value < 76:
		return "Greed"
	default:
		return "Extreme Greed"
	}
}
