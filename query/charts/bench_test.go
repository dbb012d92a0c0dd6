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
	w.Now = w.Time("2026-11-20T10:00:30Z")
	w.Pulse()
	w.Candles("bitcoin", w.Now.Truncate(time.Minute).Add(-30*24*time.Hour), 30*24*60, "1m", 100, 0.01)
	w.Price("bitcoin", w.Now, 150)
	get := func() {
		response, err := http.Get(w.Base() + "/api/v1/charts/bitcoin?timeframe=24h")
		w.Must(err)
		if n, err := io.Copy(io.Discard, response.Body); err != nil || n < 2000 || response.StatusCode != http.StatusOK {
			b.Fatalf("got %d, %d bytes, %v", response.StatusCode, n, err)
		}
		response.Body.Close()
	}
	b.Run("cold", func(b *testing.B) {
		for b.Loop() {
			w.Now = w.Now.Add(-time.Hour) // other intervals than those held
			get()
		}
	})
	b.Run("held", func(b *testing.B) {
		for b.Loop() {
			get()
		}
	})
}
