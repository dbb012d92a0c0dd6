package explain_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/marketlog/marketlog/query/stablecoins"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/history"
	"github.com/marketlog/marketlog/stream/streamtest"
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

// looked has the process look what histories of pegs are made of: all that the tables have.
func (w *fixture) looked() {
	w.T.Helper()
	closed := w.Now.Truncate(time.Minute).UnixNano()
	progress := []history.SinkProgress{{Sink: schemas.TopicReferenceRaw, Progress: history.Progress{Next: w.fixingsEnd}}}
	for partition := range int32(8) {
		progress = append(progress, history.SinkProgress{Sink: schemas.TopicCandles, Progress: history.Progress{Partition: partition, Next: w.Offset(), ClosedUntil: closed}})
	}
	w.Must(w.Store.Record(w.T.Context(), progress))
	w.Must(w.candles.Look(w.T.Context()))
}

// Points of a peg to another currency are explained as of an instant by the rates that were known then, though they are corrected since.
func TestPegsToOtherCurrenciesAreExplainedByRatesOfThen(t *testing.T) {
	w, random := newFixture(t), streamtest.Rand(t)
	w.candles.RememberBy(func() time.Time { return w.Now }, w.Prices.Steps(), w.History())
	w.stable(random)
	unlooked := w.Now.Add(-time.Second)
	w.looked()
	points, err := w.History().PegSeries(t.Context(), "euro-coin", w.Now.Add(-time.Hour), w.Now, time.Minute)
	w.Must(err)
	point := "peg-point/euro-coin/" + points[random.IntN(len(points))].Time.Format(time.RFC3339)
	var answers []servedNumber
	ask := func() {
		n := w.reproduced(point, "?depth=2", true)
		rate := n.Inputs[1]
		if rate.Reproduced == nil || !*rate.Reproduced || len(rate.Inputs) != 1 || len(rate.Inputs[0].Records) != 1 || *rate.Inputs[0].Value != *rate.Value {
			t.Errorf("%s is of the rate %+v, want that which a record states", point, rate)
		}
		answers = append(answers, servedNumber{point, *n.Value, w.Now})
		w.Now = w.Now.Add(time.Duration(60+random.IntN(9)) * time.Second)
	}
	ask()
	for range 3 {
		w.fixing(&eventsv1.Fixing{Source: "ecb", Base: "EUR", Quote: "USD", Rate: fmt.Sprintf("%.4f", 1+random.Float64()/5), Date: "2026-11-20", IngestTime: w.Now.UnixNano()})
		w.looked()
		ask()
	}
	if answers[0].value == answers[len(answers)-1].value {
		t.Errorf("%s stays %v, though the rate is corrected", point, answers[0].value)
	}
	for _, was := range answers {
		n := w.reproduced(was.number, "?depth=2&asOf="+was.at.Format(time.RFC3339Nano), true)
		if rate := n.Inputs[1]; *n.Value != was.value || rate.Reproduced == nil || !*rate.Reproduced {
			t.Errorf("%s as of %s is %v of %+v, and was %v", was.number, was.at, *n.Value, rate, was.value)
		}
	}
	w.record()
	w.answered(map[string]int{point + "?asOf=" + unlooked.Format(time.RFC3339Nano): http.StatusGone})
}
