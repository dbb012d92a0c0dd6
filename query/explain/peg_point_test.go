package explain_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/marketlog/marketlog/query/stablecoins"
)

// A point of a peg's history is the close of a candle, which is explained on its own, against what its unit costs.
func TestPointsOfAPegAreClosesOfCandles(t *testing.T) {
	w := newFixture(t)
	start := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	w.Now = start
	w.traded("tether", start, 0.999, 1.0001, 0.9985, 0.9987, 5)
	w.traded("tether", start.Add(time.Minute), 0.9987, 1, 0.9986, 0.9995, 5)
	w.close(start.Add(2 * time.Minute).UnixNano())
	n := w.reproduced("peg-point/tether/2026-11-20T10:01:00Z", "", true)
	if len(n.Inputs) != 2 || n.Inputs[0].Number != "candle/tether/1m/2026-11-20T10:00:00Z/close" || *n.Inputs[0].Value != 0.9987 || *n.Value > -12.9 || *n.Value < -13.1 {
		t.Errorf("got %+v, want 13 basis points below the peg, of the close 0.9987", n)
	}
	if price := w.reproduced("peg-point/tether/2026-11-20T10:02:00.000Z/price", "", true); *price.Value != 0.9995 {
		t.Errorf("got a price of %v, want 0.9995", *price.Value)
	}
	// The trough of an episode is such a point.
	w.traded("tether", start.Add(2*time.Minute), 0.9995, 0.9995, 0.98, 0.981, 5)
	w.traded("tether", start.Add(3*time.Minute), 0.981, 0.985, 0.98, 0.984, 5)
	w.Now = start.Add(4*time.Minute - time.Second)
	w.tick("tether", "kraken", "USDT/USD", 0.984, "USD", 1)
	w.publish("tether")
	w.close(start.Add(4 * time.Minute).UnixNano())
	var body stablecoins.StabilityBody
	w.read("/api/v1/stablecoins/USDT/peg-stability?window=1h", &body)
	if len(body.Episodes) != 1 {
		t.Fatalf("got %+v, want one episode", body.Episodes)
	}
	if n := w.reproduced("peg-point/tether/"+body.Episodes[0].Trough, "", true); *n.Value != body.Episodes[0].TroughBps {
		t.Errorf("got %v, want %v", *n.Value, body.Episodes[0].TroughBps)
	}
	w.answered(map[string]int{
		"peg-point/tether/2026-11-20T10:05:00Z":                           http.StatusNotFound,
		"peg-point/tether/2026-11-20T10:01:30Z":                           http.StatusBadRequest,
		"peg-point/tether/2026-11-20T10:02:00Z/value":                     http.StatusNotFound,
		"peg-point/bitcoin/2026-11-20T10:01:00Z":                          http.StatusNotFound,
		"peg-point/tether/2026-11-20T10:02:00Z?asOf=2026-11-20T10:01:59Z": http.StatusNotFound,
	})
}
