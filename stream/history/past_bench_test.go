package history_test

import (
	"slices"
	"testing"
	"time"

	"github.com/shopspring/decimal"

	"github.com/marketlog/marketlog/schemas"
	"github.com/marketlog/marketlog/stream/history"
	"github.com/marketlog/marketlog/stream/history/read"
)

// What a chart of a timeframe reads cold, beside the engine's own time for a range of the same rows, in turns: x-raw is the ratio
// of the medians.
func BenchmarkCharts_BesideRawRange(b *testing.B) {
	store := newStore(b)
	now := pastAndLive(b, store, 140)
	for _, chart := range []struct {
		name     string
		interval time.Duration
		span     time.Duration
	}{
		{"max", day, 1825 * day}, {"1y", day, 365 * day}, {"30d", day, 30 * day}, {"7d", time.Hour, 7 * day}, {"24h", time.Hour, day}, {"1h", time.Minute, time.Hour},
		{"minutes", time.Minute, day},
	} {
		b.Run(chart.name, func(b *testing.B) {
			to := now.Add(-4 * time.Hour).Truncate(chart.interval) // before there was a live minute
			from := to.Add(-chart.span)
			var raws, reads []time.Duration
			for b.Loop() {
				began := time.Now()
				raw := rawRange(b, store, "solana", chart.interval, from, to)
				raws, began = append(raws, time.Since(began)), time.Now()
				read, err := read.From(store).Intervals(b.Context(), "solana", chart.interval, from, to)
				reads = append(reads, time.Since(began))
				if err != nil || len(read) != raw || raw == 0 {
					b.Fatalf("got %d candles, %v; the range has %d", len(read), err, raw)
				}
			}
			slices.Sort(raws)
			slices.Sort(reads)
			raw, read := raws[len(raws)/2], reads[len(reads)/2]
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(raw.Microseconds())/1e3, "raw-ms")
			b.ReportMetric(float64(read.Microseconds())/1e3, "read-ms")
			b.ReportMetric(float64(read)/float64(raw), "x-raw")
		})
	}
}

// rawRange reads the rows of past_candles in a range of its key and counts them.
func rawRange(b *testing.B, store *history.Store, coin string, interval time.Duration, from, to time.Time) (n int) {
	rows, err := store.Conn().Query(b.Context(), "SELECT start, open, high, low, close, volume, volume_usd FROM past_candles FINAL WHERE coin_id = ? AND seconds = ? AND start >= ? AND start < ? ORDER BY start",
		coin, uint32(interval/time.Second), from, to)
	if err != nil {
		b.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var c schemas.Candle
		var volume decimal.Decimal
		if err := rows.Scan(&c.Start, &c.Open, &c.High, &c.Low, &c.Close, &volume, &c.VolumeUSD); err != nil {
			b.Fatal(err)
		}
		n++
	}
	if err := rows.Err(); err != nil {
		b.Fatal(err)
	}
	return n
}
