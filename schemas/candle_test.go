package schemas_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/shopspring/decimal"

	"github.com/marketlog/marketlog/schemas"
)

func TestJoinedCandlesSpanTheirParts(t *testing.T) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	at := func(minute int, open, high, low, end float64, volume string) schemas.Candle {
		start := noon.Add(time.Duration(minute) * time.Minute)
		return schemas.Candle{Start: start, Open: open, High: high, Low: low, Close: end, Volume: decimal.RequireFromString(volume),
			VolumeUSD: 10, Trades: 1, Minutes: 1, Newest: start}
	}
	got := schemas.JoinCandles([]schemas.Candle{
		at(3, 5, 6, 4, 5, "0.1"), at(4, 7, 9, 7, 8, "0.000000000000000001"),
		at(5, 1, 2, 1, 2, "3"), // minutes 6 to 9 had no price
	}, 5*time.Minute)
	first, second := at(3, 5, 9, 4, 8, "0.100000000000000001"), at(5, 1, 2, 1, 2, "3")
	first.Start, first.Newest = noon, noon.Add(4*time.Minute)
	first.VolumeUSD, first.Trades, first.Minutes = 20, 2, 2
	if diff := cmp.Diff([]schemas.Candle{first, second}, got); diff != "" {
		t.Errorf("want(-), got(+):\n%s", diff)
	}
}
