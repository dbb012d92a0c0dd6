package market

import (
	"math"
	"testing"

	"github.com/marketlog/marketlog/producers/simulator/simulatortest"
)

// Bitcoin and another large coin move together, as they do.
func TestMovesAreCorrelated(t *testing.T) {
	w := NewWorld(99)
	for _, at := range []struct {
		name string
		step int64
	}{{"hours", Hour}, {"minutes", Minute}} {
		var xy, xx, yy float64
		from := simulatortest.Noon.UnixNano() / Day * Day
		for i := range int64(500) {
			move := func(id string) float64 {
				a := w.Coins[id]
				return math.Log(a.At(from+(i+1)*at.step) / a.At(from+i*at.step))
			}
			x, y := move("bitcoin"), move("ethereum")
			xy, xx, yy = xy+x*y, xx+x*x, yy+y*y
		}
		if r := xy / math.Sqrt(xx*yy); r < 0.4 || r > 0.99 {
			t.Errorf("correlation over %s is %.2f", at.name, r)
		}
	}
}

func TestStablecoinsStayNearTheirPeg(t *testing.T) {
	w := NewWorld(4)
	moved := false
	for id, a := range w.Coins {
		if !a.Stable || a.Parent == nil {
			continue
		}
		for i := range int64(200) {
			at := simulatortest.Noon.UnixNano() - i*7*Hour
			peg := a.At(at) / a.Parent.At(at)
			if peg < 0.98 || peg > 1.02 {
				t.Errorf("%s is at %g of its peg", id, peg)
			}
			moved = moved || peg != 1
		}
	}
	if !moved {
		t.Error("nothing wobbles")
	}
}
