package charts

import (
	"math"

	"github.com/marketlog/marketlog/schemas"
)

// maxPoints bounds the points of one chart.
const maxPoints = 1000

// joined is a candle of one or more intervals.
type joined struct {
	schemas.Candle
	intervals int
}

// merged keeps the first and the last candle and joins neighbours between them, so many to a point
// that most remain; most is at least 3.
func merged(candles []schemas.Candle, most int) []joined {
	points := make([]joined, 0, min(len(candles), most))
	inner := len(candles) - 2
	for i, c := range candles {
		last := i == len(candles)-1
		if len(candles) > most && i > 0 && !last {
			// Inner candle i-1 of inner belongs to this one of most-2 groups.
			group := (i - 1) * (most - 2) / inner
			if group == len(points)-2 {
				p := &points[len(points)-1]
				p.Join(c)
				p.intervals++
				continue
			}
		}
		points = append(points, joined{c, 1})
	}
	return points
}

// triangles chooses the candles whose closes keep the shape of the line: the first, the last, and of
// each group between them the one that makes the largest triangle with the one chosen before and the
// mean of the next group. It returns their indexes; most is at least 3.
//
// It is Largest-Triangle-Three-Buckets of Sveinn Steinarsson, Downsampling Time Series for Visual
// Representation (2013), section 4.2.
func triangles(candles []schemas.Candle, most int) []int {
	n := len(candles)
	chosen := make([]int, 0, min(n, most))
	if n <= most {
		for i := range candles {
			chosen = append(chosen, i)
		}
		return chosen
	}
	x := func(i int) float64 { return candles[i].Start.Sub(candles[0].Start).Seconds() }
	y := func(i int) float64 { return candles[i].Close }
	// Group g of most-2 holds the inner candles [begin(g), begin(g+1)); the last candle follows them.
	begin := func(g int) int { return 1 + g*(n-2)/(most-2) }
	chosen = append(chosen, 0)
	before := 0
	for g := range most - 2 {
		nextFrom, nextTo := begin(g+1), n
		if g+2 <= most-2 {
			nextTo = begin(g + 2)
		}
		meanX, meanY := 0.0, 0.0
		for i := nextFrom; i < nextTo; i++ {
			meanX += x(i)
			meanY += y(i)
		}
		meanX /= float64(nextTo - nextFrom)
		meanY /= float64(nextTo - nextFrom)
		best, largest := begin(g), -1.0
		for i := begin(g); i < nextFrom; i++ {
			area := math.Abs(float64((x(before)-meanX)*(y(i)-y(before))) - float64((x(before)-x(i))*(meanY-y(before))))
			if area > largest {
				best, largest = i, area
			}
		}
		chosen = append(chosen, best)
		before = best
	}
	return append(chosen, n-1)
}
