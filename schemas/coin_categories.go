package schemas

import (
	"strings"
	"unicode"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// CategoryID writes the name of a category of coins as its id; empty for a name without a letter or a digit.
func CategoryID(name string) string {
	parts := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	return strings.Join(parts, "-")
}

// CategorySums are the sums over the coins of a category. Floats are summed in the order in which coins are added, which is that of
// their ranks.
type CategorySums struct {
	marketCap, volume float64
	// capNow and capBefore are of the coins whose cap of 24 hours ago is known.
	capNow, capBefore           float64
	marketCapKnown, volumeKnown bool
	changeKnown                 bool
}

// Add adds a coin by its row, nil for none. A sum is over the coins that have the figure; the change is over those whose cap of a day
// ago is known too.
func (s *CategorySums) Add(row *eventsv1.Market) {
	if row == nil {
		return
	}
	if row.Volume24H != nil {
		s.volume, s.volumeKnown = s.volume+*row.Volume24H, true
	}
	if row.MarketCap == nil {
		return
	}
	s.marketCap, s.marketCapKnown = s.marketCap+*row.MarketCap, true
	if row.MarketCapChange24H != nil {
		s.capNow, s.capBefore, s.changeKnown = s.capNow+*row.MarketCap, s.capBefore+*row.MarketCap-*row.MarketCapChange24H, true
	}
}

// MarketCap is in USD, nil where that of no coin is known.
func (s *CategorySums) MarketCap() *float64 {
	if !s.marketCapKnown {
		return nil
	}
	sum := s.marketCap
	return &sum
}

// Volume24H is in USD, nil where that of no coin is known.
func (s *CategorySums) Volume24H() *float64 {
	if !s.volumeKnown {
		return nil
	}
	sum := s.volume
	return &sum
}

// MarketCapChangePercentage24H is nil where that of no coin is known.
func (s *CategorySums) MarketCapChangePercentage24H() *float64 {
	if !s.changeKnown || !(s.capBefore > 0) {
		return nil
	}
	change := 100 * (s.capNow - s.capBefore) / s.capBefore
	return &change
}
