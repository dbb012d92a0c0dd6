package explain_test

import (
	"net/http"
	"testing"
	"time"
)

// A point of a peg's history is the close of a candle, which is explained on its own, against what its unit costs.
func TestPointsOfAPegAreClosesOfCandles(t *testing.T) {
	w := newWorld(t)
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
	w.answered(map[string]int{
		"peg-point/tether/2026-11-20T10:05:00Z":                           http.StatusNotFound,
		"peg-point/tether/2026-11-20T10:01:30Z":                           http.StatusBadRequest,
		"peg-point/tether/2026-11-20T10:02:00Z/value":                     http.StatusNotFound,
		"peg-point/bitcoin/2026-11-20T10:01:00Z":                          http.StatusNotFound,
		"peg-point/tether/2026-11-20T10:02:00Z?asOf=2026-11-20T10:01:59Z": http.StatusNotFound,
	})
}
