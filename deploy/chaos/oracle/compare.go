package oracle

import (
	"fmt"
	"sort"
)

// Views are the rows of v_prices, v_candles_1m and v_venue_candles_1m.
type Views struct {
	Prices       []Price
	Candles      []Candle
	VenueCandles []VenueCandle
}

// Compare names every row that one side has and the other has not, or has with other contents.
func Compare(want, got Views) []string {
	wanted, wrong := want.lines("wanted")
	found, wrongGot := got.lines("found")
	wrong = append(wrong, wrongGot...)
	for key, line := range wanted {
		switch other, ok := found[key]; {
		case !ok:
			wrong = append(wrong, fmt.Sprintf("%s is missing: want %s", key, line))
		case other != line:
			wrong = append(wrong, fmt.Sprintf("%s differs:\n   got %s\n  want %s", key, other, line))
		}
	}
	for key, line := range found {
		if _, ok := wanted[key]; !ok {
			wrong = append(wrong, fmt.Sprintf("%s should not be: got %s", key, line))
		}
	}
	sort.Strings(wrong)
	return wrong
}

// lines writes each row as its key and its contents; floats with all their digits, so that rows with
// equal lines are equal. Keys that name two rows are wrong.
func (v Views) lines(side string) (lines map[string]string, wrong []string) {
	lines = map[string]string{}
	add := func(key, line string) {
		if _, twice := lines[key]; twice {
			wrong = append(wrong, fmt.Sprintf("%s twice among those %s", key, side))
		}
		lines[key] = line
	}
	for _, p := range v.Prices {
		add(fmt.Sprintf("price of %s at %d", p.Coin, p.Second), fmt.Sprintf("%+v", p))
	}
	for _, c := range v.Candles {
		add(fmt.Sprintf("candle of %s at %d", c.Coin, c.Start), fmt.Sprintf("o=%v h=%v l=%v c=%v v=%s usd=%v n=%d",
			c.Open, c.High, c.Low, c.Close, c.Volume.RatString(), c.VolumeUSD, c.Trades))
	}
	for _, c := range v.VenueCandles {
		add(fmt.Sprintf("candle of %s %s at %d", c.Venue, c.Symbol, c.Start), fmt.Sprintf("%s/%s o=%s h=%s l=%s c=%s v=%s n=%d",
			c.Coin, c.Quote, c.Open.RatString(), c.High.RatString(), c.Low.RatString(), c.Close.RatString(), c.Volume.RatString(), c.Trades))
	}
	return lines, wrong
}
