package charts

import (
	"math"
	"testing"
	"time"

	"github.com/marketlog/marketlog/schemas"
)

func wave(n int) []schemas.Candle {
	candles := make([]schemas.Candle, n)
	for i := range candles {
		price := 100 + 10*math.Sin(float64(i)/50)
		if i == n/3 {
			price = 500 // one spike
		}
		candles[i] = schemas.Candle{Start: time.Unix(int64(i)*3600, 0).UTC(), Open: price, High: price + 1, Low: price - 1, Close: price, VolumeUSD: 1, Trades: 1, Minutes: 60}
	}
	return candles
}

func TestMergingKeepsEndsAndExtremes(t *testing.T) {
	for _, n := range []int{0, 1, 2, 3, 999, 1000, 1001, 1002, 1826, 1999, 5000} {
		candles := wave(n)
		got := merged(candles, maxPoints)
		if want := min(n, maxPoints); len(got) != want {
			t.Fatalf("%d candles: got %d points, want %d", n, len(got), want)
		}
		if n == 0 {
			continue
		}
		trades, intervals, high := uint64(0), 0, 0.0
		for i, p := range got {
			trades, intervals, high = trades+p.Trades, intervals+p.intervals, max(high, p.High)
			if i > 0 && !p.Start.After(got[i-1].Start) {
				t.Fatalf("%d candles: point %d is not after the one before", n, i)
			}
		}
		if trades != uint64(n) || intervals != n || got[0].intervals != 1 || got[len(got)-1].intervals != 1 ||
			got[0].Candle != candles[0] || got[len(got)-1].Candle != candles[n-1] {
			t.Errorf("%d candles: got %d trades in %d intervals, ends %v and %v", n, trades, intervals, got[0], got[len(got)-1])
		}
		if n > 3 && high != 501 {
			t.Errorf("%d candles: got a high of %v, want the spike's", n, high)
		}
	}
}

func TestTrianglesKeepEndsAndSpikes(t *testing.T) {
	for _, n := range []int{0, 1, 2, 1000, 1001, 1002, 1826, 1999, 5000} {
		candles := wave(n)
		got := triangles(candles, maxPoints)
		if want := min(n, maxPoints); len(got) != want {
			t.Fatalf("%d candles: got %d points, want %d", n, len(got), want)
		}
		spike := n < 3
		for i, at := range got {
			spike = spike || at == n/3
			if i > 0 && at <= got[i-1] {
				t.Fatalf("%d candles: point %d is not after the one before", n, i)
			}
		}
		if n > 0 && (got[0] != 0 || got[len(got)-1] != n-1 || !spike) {
			t.Errorf("%d candles: got ends %d and %d, spike %v", n, got[0], got[len(got)-1], spike)
		}
	}
}
