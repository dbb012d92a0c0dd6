package charts_test

import (
	"io"
	"net/http"
	"testing"
	"time"
)

// A chart of a day over 30 days of minutes, cold (nothing held), and while it is held.
func BenchmarkChart_30DaysOfMinutes(b *testing.B) {
	w := newWorld(b)
	w.now = w.time("2026-11-20T10:00:30Z")
	w.pulse()
	w.candles("bitcoin", w.now.Truncate(time.Minute).Add(-30*24*time.Hour), 30*24*60, "1m", 100, 0.01)
	w.price("bitcoin", w.now, 150)
	get := func() {
		response, err := http.Get(w.base + "/api/v1/charts/bitcoin?timeframe=24h")
		w.must(err)
		if n, err := io.Copy(io.Discard, response.Body); err != nil || n < 2000 || response.StatusCode != http.StatusOK {
			b.Fatalf("got %d, %d bytes, %v", response.StatusCode, n, err)
		}
		response.Body.Close()
	}
	b.Run("cold", func(b *testing.B) {
		for b.Loop() {
			w.now = w.now.Add(-time.Hour) // other intervals than those held
			get()
		}
	})
	b.Run("held", func(b *testing.B) {
		for b.Loop() {
			get()
		}
	})
}
