package market

import (
	"math"
	"testing"

	"github.com/marketlog/marketlog/producers/simulator/simulatortest"
)

// A few stablecoins lose their peg by half a percent now and then, and find it again.
func TestSomeStablecoinsLoseTheirPegForAWhile(t *testing.T) {
	lost, found := map[string]int{}, map[string]int{}
	for _, c := range NewCatalogue(NewWorld(NewSeed(1)), 1000).Coins {
		if c.Pegged() == "" || c.Dead {
			continue
		}
		off := false
		for h := FloorDiv(simulatortest.Noon.UnixNano(), Hour) - 30*24; h < FloorDiv(simulatortest.Noon.UnixNano(), Hour); h++ {
			switch deviation := math.Abs(c.Path.Walk(h) - math.Log(c.Path.level)); {
			case deviation >= 0.005 && !off:
				lost[c.ID]++
				off = true
			case deviation < 0.0025 && off:
				found[c.ID]++
				off = false
			}
		}
	}
	if len(lost) < 2 || len(lost) > 10 || len(found) < 2 {
		t.Errorf("within a month lost their peg: %v, found it again: %v", lost, found)
	}
}
