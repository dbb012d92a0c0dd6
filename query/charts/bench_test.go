package charts_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/marketlog/marketlog/deploy/embedded/enginetest"
	"github.com/marketlog/marketlog/query/charts"
	"github.com/marketlog/marketlog/query/querytest"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
)

// A chart of a day over 30 days of minutes, cold (nothing held), and while it is held.
func BenchmarkChart_30DaysOfMinutes(b *testing.B) {
	w := newFixture(b)
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

// BenchmarkChart_100MillionCandles asks how long charts of 500 coins take over 200,000 minutes of each: cold, where nothing is
// held, and while they are held.
func BenchmarkChart_100MillionCandles(b *testing.B) {
	const coins, minutes = 500, 200_000
	table := schemas.Coins()
	w := &fixture{Fixture: querytest.NewFixture(b, table)}
	w.Open(enginetest.Database(b))
	w.Serve(charts.New(w.Prices, w.Catalog, views.NewCandles(w.Prices, counted{w.History(), &w.reads}), w.History(), w.Yields, views.NewRateCharts(w.Yields, w.History())).Endpoints())
	w.Now = w.Time("2026-11-20T10:00:30Z")
	w.Pulse()
	ids := make([]string, coins)
	for i := range ids {
		ids[i] = table.All()[i].ID
	}
	slices.Sort(ids)
	began := time.Now()
	w.Must(w.Store.Conn().Exec(b.Context(), `INSERT INTO candles_1m (coin_id, start, open, high, low, close, volume, volume_usd, trades, log_partition, log_offset, version)
		SELECT ?[intDiv(number, ?) + 1], toDateTime(?, 'UTC') + toIntervalMinute(number % ?), 100 + sin(number) AS open, open + 1, open - 1, open + cos(number), 0.5, 50, 2, 0, number, 1
		FROM numbers(?)`, ids, minutes, w.Now.Truncate(time.Minute).Add(-minutes*time.Minute).Unix(), minutes, coins*minutes))
	b.Logf("%d candles written in %s", coins*minutes, time.Since(began).Round(time.Second))
	chart := func(id, timeframe string) {
		response, err := http.Get(w.Base() + fmt.Sprintf("/api/v1/charts/%s?timeframe=%s", id, timeframe))
		w.Must(err)
		n, err := io.Copy(io.Discard, response.Body)
		response.Body.Close()
		if err != nil || n < 2000 || response.StatusCode != http.StatusOK {
			b.Fatalf("%s of %s: got %d, %d bytes, %v", id, timeframe, response.StatusCode, n, err)
		}
	}
	// The rows of a chart as one statement reads them from the database.
	query := func(id string, frame frame) {
		open := w.Now.Truncate(frame.step)
		rows, err := w.Store.Conn().Query(b.Context(), "SELECT start, open, high, low, close, volume, volume_usd, trades, minutes, newest FROM "+frame.table+
			" WHERE coin_id = ? AND start >= ? AND start < ? ORDER BY start", id, open.Add(-time.Duration(frame.intervals)*frame.step), open.Add(frame.step))
		w.Must(err)
		n := 0
		for rows.Next() {
			n++
		}
		w.Must(rows.Close())
		if w.Must(rows.Err()); n < frame.intervals {
			b.Fatalf("%d rows for %s of %s", n, frame.name, id)
		}
	}
	timed := func(do func()) float64 {
		began := time.Now()
		do()
		return float64(time.Since(began).Microseconds()) / 1000
	}
	for b.Loop() {
		w.Now = w.Now.Add(-30 * 24 * time.Hour) // other intervals than those held
		var cold, rows, held []float64
		for _, frame := range frames {
			for i := 0; i < coins; i += 5 {
				asChart, asRows := func() { cold = append(cold, timed(func() { chart(ids[i], frame.name) })) }, func() { rows = append(rows, timed(func() { query(ids[i], frame) })) }
				if i%2 == 0 { // what comes second finds the pages of the first in memory
					asChart, asRows = asRows, asChart
				}
				asChart()
				asRows()
			}
		}
		for _, frame := range frames {
			for i := 0; i < coins; i += 5 {
				held = append(held, timed(func() { chart(ids[i], frame.name) }))
			}
		}
		p50 := func(took []float64) float64 { slices.Sort(took); return took[len(took)/2] }
		p99 := func(took []float64) float64 { slices.Sort(took); return took[len(took)*99/100] }
		b.ReportMetric(p50(cold), "cold-p50-ms")
		b.ReportMetric(p99(cold), "cold-p99-ms")
		b.ReportMetric(p50(rows), "rows-p50-ms")
		b.ReportMetric(p99(rows), "rows-p99-ms")
		b.ReportMetric(p50(held), "held-p50-ms")
		b.ReportMetric(p99(held), "held-p99-ms")
	}
}

// frame is a timeframe of charts that steps by hours or days, and the table of its candles.
type frame struct {
	name, table string
	step        time.Duration
	intervals   int
}

var frames = []frame{
	{"24h", "candles_1h", time.Hour, 24}, {"7d", "candles_1h", time.Hour, 7 * 24}, {"30d", "candles_1d", 24 * time.Hour, 30}, {"90d", "candles_1d", 24 * time.Hour, 90},
}
