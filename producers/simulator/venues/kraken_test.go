package venues

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/marketlog/marketlog/producers/simulator/simulatortest"
)

func TestKrakenKeepsTheNewest720Candles(t *testing.T) {
	s := open(t, 1, kraken())
	w := httptest.NewRecorder()
	s.mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/kraken/0/public/OHLC?pair=XBTUSD&interval=60&since=1000000000", nil))
	var answer struct {
		Result struct {
			Rows [][]any `json:"XXBTZUSD"`
			Last int64
		}
	}
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		t.Fatal(err)
	}
	rows := answer.Result.Rows
	if len(rows) != 720 || int64(rows[719][0].(float64)) != simulatortest.Noon.Truncate(time.Hour).Unix() || answer.Result.Last != simulatortest.Noon.Truncate(time.Hour).Unix()-3600 {
		t.Errorf("%d rows, the last %v, last %d", len(rows), rows[len(rows)-1], answer.Result.Last)
	}
}
