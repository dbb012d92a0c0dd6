package market

import (
	"math"
	"testing"

	"github.com/marketlog/marketlog/producers/simulator/simulatortest"
)

// The search finds what looking at every hour finds.
func TestExtremesAreThoseOfAllHours(t *testing.T) {
	coins := NewCatalogue(NewWorld(NewSeed(3)), 1000)
	for _, id := range []string{"uniswap", "wrapped-steth", "euro-coin", "tether"} {
		c := coins.ByID[id]
		if c == nil {
			t.Fatalf("no %s", id)
		}
		c.Born = simulatortest.Noon.AddDate(-1, 0, -3).UnixNano()
		high, low := math.Inf(-1), math.Inf(1)
		for h := FloorDiv(c.Born, Hour); h < FloorDiv(simulatortest.Noon.UnixNano(), Hour); h++ {
			up, down := 0.0, 0.0
			for a := c.Asset; a != nil; a = a.Parent {
				x := a.Path.newHour(h, a.Path.Walk(h))
				up, down = up+x.high, down+x.low
			}
			high, low = max(high, up), min(low, down)
		}
		got := c.extremesAt(simulatortest.Noon.UnixNano())
		if math.Abs(got.high-high) > 1e-9 || math.Abs(got.low-low) > 1e-9 {
			t.Errorf("%s: %g to %g, want %g to %g", id, got.low, got.high, low, high)
		}
		// Hours that come later are added to what is known.
		later := simulatortest.Noon.AddDate(0, 2, 0).UnixNano()
		grown := c.extremesAt(later)
		c.extremes.Store(nil)
		if afresh := c.extremesAt(later); grown != afresh {
			t.Errorf("%s: %+v, found afresh %+v", id, grown, afresh)
		}
	}
}
