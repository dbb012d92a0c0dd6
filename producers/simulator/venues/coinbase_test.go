package venues

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestCoinbaseCandlesAreBoundedAndNewestFirst(t *testing.T) {
	s := open(t, 1, coinbase())
	get := func(query string) (int, [][]float64) {
		w := httptest.NewRecorder()
		s.mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/coinbase/products/BTC-USD/candles?"+query, nil))
		var rows [][]float64
		body, _ := io.ReadAll(w.Body)
		_ = json.Unmarshal(body, &rows)
		return w.Code, rows
	}
	status, rows := get("granularity=3600&start=2026-03-01T00:00:00Z&end=2026-03-02T00:00:00Z")
	if status != 200 || len(rows) != 25 || rows[0][0] != 1772409600 || rows[24][0] != 1772323200 {
		t.Errorf("status %d, %d rows: %v", status, len(rows), rows)
	}
	if status, _ := get("granularity=60&start=2026-03-01T00:00:00Z&end=2026-03-02T00:00:00Z"); status != 400 {
		t.Errorf("1440 candles asked for: status %d, want 400", status)
	}
	if status, rows := get("granularity=86400"); status != 200 || len(rows) != 300 {
		t.Errorf("the newest days: status %d, %d rows, want 300", status, len(rows))
	}
}
