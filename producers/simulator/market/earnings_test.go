package market

import (
	"math"
	"testing"

	"github.com/marketlog/marketlog/producers/simulator/simulatortest"
)

// Rates move, but not by leaps, and stay near what people expect.
func TestEarningsMoveSmoothly(t *testing.T) {
	w := NewWorld(NewSeed(1))
	coins := NewCatalogue(w, 1000).Lent(100, simulatortest.Noon.UnixNano())
	if len(coins) < 100 {
		t.Fatalf("%d coins are lent", len(coins))
	}
	for _, c := range coins[:30] {
		e := c.Borrowed(w, "okx")
		least, most, last := math.Inf(1), 0.0, e.At(simulatortest.Noon.UnixNano())
		for at := simulatortest.Noon.UnixNano() + 30*Minute; at < simulatortest.Noon.UnixNano()+60*Day; at += 30 * Minute {
			x := e.At(at)
			if math.Abs(x/last-1) > 0.1 {
				t.Fatalf("%s leaps from %g to %g", c.ID, last, x)
			}
			least, most, last = min(least, x), max(most, x), x
		}
		if most/least < 1.1 || least < e.level/4 || most > e.level*4 {
			t.Errorf("%s costs %g to %g within two months around %g", c.ID, least, most, e.level)
		}
	}
}
