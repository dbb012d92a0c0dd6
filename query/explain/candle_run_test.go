package explain_test

import (
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/query/charts"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// A point of a chart that was merged of several days is named by how many they are, and made again of the minutes of these days.
func TestMergedPointsAreReproduced(t *testing.T) {
	random := streamtest.Rand(t)
	w := newFixture(t)
	end := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
	days := 1_200 + random.IntN(500)
	var minutes []*eventsv1.Candle
	price := 1_000.0
	for i := range days {
		if i > 0 && random.IntN(10) == 0 {
			continue // a day without a price
		}
		for j := range 1 + random.IntN(3) {
			open := price
			price *= 1 + (random.Float64()-0.5)/10
			start := end.Add(time.Duration(i-days) * oneDay).Add(time.Duration(j*400+random.IntN(300)) * time.Minute)
			minutes = append(minutes, &eventsv1.Candle{CoinId: "bitcoin", Start: start.UnixNano(), Open: open, High: max(open, price) * 1.01, Low: min(open, price) * 0.99, Close: price,
				Volume: fmt.Sprintf("%d.25", random.IntN(100)), VolumeUsd: 1e3 * random.Float64(), Trades: random.Uint64N(50)})
		}
	}
	w.AddCandles(minutes...)
	w.Now = end.Add(time.Minute)
	w.close(w.Now.UnixNano())
	w.Must(w.Store.Conn().Exec(t.Context(), "INSERT INTO ledger (sink, generation, log_partition, next_offset, closed_until) SELECT 'candles.v1', 0, number, 1, ? FROM numbers(8)", w.Now))
	var body charts.ChartBody
	w.read("/api/v1/charts/bitcoin?timeframe=max", &body)
	var merged []charts.Point
	for _, p := range body.Data.DataPoints {
		if p.Intervals > 1 {
			merged = append(merged, p)
		}
	}
	if len(merged) < 10 {
		t.Fatalf("%d of %d points are merged, want ten", len(merged), len(body.Data.DataPoints))
	}
	for range 6 {
		p := merged[random.IntN(len(merged))]
		first, err := time.Parse(time.RFC3339, p.Timestamp)
		w.Must(err)
		// The model takes the minutes of so many days that have any.
		var of []*eventsv1.Candle
		taken := map[time.Time]bool{}
		for _, c := range minutes {
			day := time.Unix(0, c.Start).UTC().Truncate(oneDay)
			if !day.Before(first) && (taken[day] || len(taken) < p.Intervals) {
				of, taken[day] = append(of, c), true
			}
		}
		want := map[string]float64{"open": of[0].Open, "close": of[len(of)-1].Close, "high": 0, "low": math.Inf(1)}
		for _, c := range of {
			want["high"], want["low"] = max(want["high"], c.High), min(want["low"], c.Low)
			volume := 0.0
			_, err := fmt.Sscan(c.Volume, &volume)
			w.Must(err)
			want["volume"] += volume
			want["trades"] += float64(c.Trades)
		}
		answered := map[string]float64{"open": p.Open, "close": p.Close, "high": p.High, "low": p.Low, "volume": p.Volume, "trades": float64(*p.Trades)}
		for field, value := range want {
			number := fmt.Sprintf("candles/bitcoin/1d/%s/%d/%s", p.Timestamp, p.Intervals, field)
			if n := w.reproduced(number, "", true); *n.Value != value || answered[field] != value || len(n.Inputs) != p.Intervals {
				t.Errorf("%s: answered %v, explained as %+v, want %v", number, answered[field], n, value)
			}
		}
		if n := w.reproduced(fmt.Sprintf("candles/bitcoin/1d/%s/%d/volumeUsd", p.Timestamp, p.Intervals), "", true); *n.Value != p.VolumeUSD || n.Recomputed != nil && !strings.Contains(n.Note, "rounding") {
			t.Errorf("got %+v, want %v", n, p.VolumeUSD)
		}
	}
	p := merged[0]
	base := "candles/bitcoin/1d/" + p.Timestamp
	if n := w.reproduced(base+"/1/high", "", true); !strings.HasPrefix(n.Number, "candle/bitcoin/1d/") {
		t.Errorf("got %s, want a candle", n.Number)
	}
	w.answered(map[string]int{base + "/2/hight": http.StatusNotFound, base + "/0/high": http.StatusBadRequest, base + "/x/high": http.StatusBadRequest, base + "/51/high": http.StatusBadRequest,
		"candles/bitcoin/1d/2026-11-19T00:00:00Z/3/high": http.StatusNotFound, "candles/bitcoin/1d/2026-11-19T01:00:00Z/2/high": http.StatusBadRequest, "candles/bitcoin/1w/2026-11-19T00:00:00Z/2/high": http.StatusNotFound,
		base + "/2/high?asOf=" + p.Timestamp: http.StatusNotFound})
}
