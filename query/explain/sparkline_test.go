package explain_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	listed "github.com/marketlog/marketlog/query/coins"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// Numbers of a sparkline are closes of hours, of which one without a price repeats the one before, and the last one is the price of the row.
func TestSparklinesAreReproduced(t *testing.T) {
	random := streamtest.Rand(t)
	w := newFixture(t)
	start := time.Date(2026, 11, 20, 4, 0, 0, 0, time.UTC)
	w.Now = start
	for hour := range 6 {
		for k := range 3 {
			if hour == 3 {
				continue // nobody traded
			}
			p := 97_000 * (1 + random.Float64()/100)
			w.traded("bitcoin", start.Add(time.Duration(hour)*time.Hour+time.Duration(5+20*k+random.IntN(15))*time.Minute), p, p, p, p, 1e9)
		}
	}
	end := start.Add(6*time.Hour + 5*time.Minute)
	w.Now = end.Add(-30 * time.Second)
	w.observed(&eventsv1.CoinMarket{Source: "coingecko", SourceId: "bitcoin", Symbol: "BTC", Name: "bitcoin", Price: "97123", CirculatingSupply: "1000", IngestTime: w.Now.UnixNano()})
	w.traded("bitcoin", end.Add(-time.Minute), 97_200, 97_200, 97_200, 97_200, 1e9)
	w.close(end.UnixNano())
	var fresh listed.TableBody // before history was read
	w.read("/api/v1/coins/markets?sparkline=true", &fresh)
	if row := fresh.Data[0]; len(row.Sparkline7d) != 1 {
		t.Errorf("got %v, want the price of the row", row.Sparkline7d)
	} else if n := w.reproduced("sparkline/bitcoin/"+row.SparklineUntil+"/0", "", true); *n.Value != row.Sparkline7d[0] {
		t.Errorf("got %+v, want %g", n, row.Sparkline7d[0])
	}
	w.look()
	w.Must(w.listed.Refresh(t.Context()))
	var body listed.TableBody
	w.read("/api/v1/coins/markets?sparkline=true", &body)
	row := body.Data[0]
	if len(row.Sparkline7d) != 7 || row.SparklineUntil != "2026-11-20T10:00:00.000Z" {
		t.Fatalf("got %v until %s, want seven numbers until ten", row.Sparkline7d, row.SparklineUntil)
	}
	for i, want := range row.Sparkline7d {
		n := w.reproduced(fmt.Sprintf("sparkline/bitcoin/%s/%d", row.SparklineUntil, len(row.Sparkline7d)-i-1), "", true)
		if *n.Value != want || len(n.Inputs) == 0 || (n.Note != "") != (i == 3) {
			t.Errorf("got %+v, want %g with its inputs", n, want)
		}
	}
	w.explained("/api/v1/coins/markets?sparkline=true&explain=1")
	w.answered(map[string]int{
		"sparkline/bitcoin/2026-11-20T10:00:00Z/7":                           http.StatusNotFound,
		"sparkline/bitcoin/2026-11-20T10:00:00Z/168":                         http.StatusBadRequest,
		"sparkline/bitcoin/2026-11-20T10:30:00Z/1":                           http.StatusBadRequest,
		"sparkline/bitcoin/2026-11-20T10:00:00Z/last":                        http.StatusBadRequest,
		"sparkline/bitcoin/2026-11-20T10:00:00Z/1?asOf=2026-11-20T09:59:00Z": http.StatusNotFound,
		"sparkline/nobody/2026-11-20T10:00:00Z/1":                            http.StatusNotFound,
	})
}
