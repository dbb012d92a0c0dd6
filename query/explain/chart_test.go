package explain_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/query/charts"
	"github.com/marketlog/marketlog/query/coins"
	"github.com/marketlog/marketlog/query/explain"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/history/past"
	"github.com/marketlog/marketlog/stream/history/rows"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// drawn lets the price of bitcoin wander for some hours whose minutes close, in most of which there is a price, and publishes some more in the minutes that have not.
func (w *fixture) drawn(random *rand.Rand, start time.Time, minutes int) {
	w.T.Helper()
	price := 97_000.0
	for i := range minutes {
		if i > 0 && i%60 != 0 && random.IntN(6) == 0 {
			continue // there was no price
		}
		open := price
		price *= 1 + (random.Float64()-0.5)/100
		w.traded("bitcoin", start.Add(time.Duration(i)*time.Minute), open, max(open, price)*1.001, min(open, price)*0.999, price, 1e9)
	}
	end := start.Add(time.Duration(minutes) * time.Minute)
	w.close(end.UnixNano())
	w.Must(w.Store.Conn().Exec(w.T.Context(), "INSERT INTO ledger (sink, generation, log_partition, next_offset, closed_until) SELECT 'candles.v1', 0, number, 1, ? FROM numbers(8)", end))
	for at := end; at.Before(end.Add(100 * time.Second)); at = at.Add(time.Duration(2+random.IntN(20)) * time.Second) { // none in the second after the first
		w.Now = at
		w.tick("bitcoin", "kraken", "BTC/USD", price*(1+(random.Float64()-0.5)/100), "USD", 1)
		w.publish("bitcoin")
	}
	w.Now = w.Now.Add(3 * time.Second)
	w.Pulse()
}

func (w *fixture) read(path string, body any) {
	w.T.Helper()
	response, err := http.Get(w.Base() + path)
	w.Must(err)
	defer response.Body.Close()
	w.Must(json.NewDecoder(response.Body).Decode(body))
	if response.StatusCode != http.StatusOK {
		w.T.Fatalf("%s is answered with %d: %+v", path, response.StatusCode, body)
	}
}

// Each point of a chart and each of its stats is made again, those of the interval under way too, which end with prices that no minute holds yet; and later the
// same, when the price has moved on.
func TestChartsAreReproduced(t *testing.T) {
	random := streamtest.Rand(t)
	w := newFixture(t)
	start := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	w.drawn(random, start, 130+random.IntN(40))
	var bodies []charts.ChartBody
	for _, frame := range []string{"1h", "24h", "30d"} {
		var body struct {
			charts.ChartBody
			Explanations explain.Inlined
		}
		w.read("/api/v1/charts/bitcoin?format=simple&explain=1&timeframe="+frame, &body)
		for _, n := range body.Explanations.Numbers {
			if n.Reproduced == nil || !*n.Reproduced || n.Value == nil {
				text, _ := json.Marshal(n)
				t.Errorf("%s: %s is not reproduced: %.700s", frame, n.Number, text)
			}
		}
		bodies = append(bodies, body.ChartBody)
	}
	for _, body := range bodies {
		chart := body.Data
		for _, p := range chart.Prices {
			n := w.reproduced(fmt.Sprintf("chart-point/bitcoin/%s/%.0f", chart.Resolution, p[0]), "", true)
			if *n.Value != p[1] || len(n.Inputs) == 0 {
				t.Errorf("%s: got %+v, want %g with its inputs", chart.Timeframe, n, p[1])
			}
		}
		w.charted(chart.Resolution, chart.Stats)
	}
	w.Now = w.Now.Add(-3500 * time.Millisecond) // the clock of the fold of prices may be ahead
	w.charted(bodies[1].Data.Resolution, bodies[1].Data.Stats)
	w.Now = w.Now.Add(10500 * time.Millisecond)
	w.tick("bitcoin", "kraken", "BTC/USD", 12_345, "USD", 1)
	w.publish("bitcoin")
	for _, body := range bodies {
		w.charted(body.Data.Resolution, body.Data.Stats)
	}

	var history coins.HistoryBody
	w.read("/api/v1/coins/history/BTC?days=2&explain=1", &history)
	if n := w.reproduced("chart-point/bitcoin/hourly/"+history.Points[len(history.Points)-1].Timestamp, "", true); *n.Value != 12_345 || len(n.Records) != 1 || n.Records[0].Topic != "prices.v1" {
		t.Errorf("got %+v, want the price of 12345 and its record", n)
	}
	if n := w.reproduced("chart-point/bitcoin/hourly/"+history.Points[0].Timestamp, "", true); *n.Value != history.Points[0].Value || len(n.Inputs) != 20 {
		t.Errorf("got %+v, want %g of minutes", n, history.Points[0].Value)
	}
}

// charted asks for the stats of a chart, and holds them against those that it was answered with.
func (w *fixture) charted(resolution string, stats charts.Stats) {
	w.T.Helper()
	for field, want := range map[string]*float64{"minPrice": stats.MinPrice, "maxPrice": stats.MaxPrice, "avgPrice": stats.AvgPrice, "changePct": stats.ChangePct} {
		n := w.reproduced(fmt.Sprintf("chart/bitcoin/%s/%s/%s/%s", resolution, stats.From, stats.Until, field), "?depth=2", true)
		if *n.Value != *want || len(n.Inputs) == 0 {
			w.T.Errorf("%s of %s from %s: got %+v, want %g with its inputs", field, resolution, stats.From, n, *want)
		}
	}
}

// A price that tables have and the log has not shows, in the point of the interval under way and in the stats.
func TestChartsThatDifferAreNotReproduced(t *testing.T) {
	w := newFixture(t)
	start := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	w.drawn(streamtest.Rand(t), start, 150)
	var body charts.ChartBody
	w.read("/api/v1/charts/bitcoin?timeframe=24h", &body)
	w.charted("1h", body.Data.Stats)
	w.Price("bitcoin", start.Add(150*time.Minute+time.Second), 200_000) // a second in which none was published
	number := "chart/bitcoin/1h/" + body.Data.Stats.From + "/" + body.Data.Stats.Until
	if n := w.reproduced(number+"/maxPrice", "", false); *n.Value != 200_000 || *n.Recomputed != *body.Data.Stats.MaxPrice {
		t.Errorf("got %+v, want 200000 and %g recomputed", n, *body.Data.Stats.MaxPrice)
	}
	w.reproduced(number+"/changePct", "", true) // which begins and ends as before
	w.Price("bitcoin", w.Now, 200_001)
	if n := w.reproduced("chart-point/bitcoin/1h/2026-11-20T11:00:00Z", "", false); *n.Value != 200_001 || *n.Recomputed > 150_000 {
		t.Errorf("got %+v, want 200001 and the last price of the log", n)
	}
}

func TestChartsNameWhatTheyLack(t *testing.T) {
	w := newFixture(t)
	start := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	w.drawn(streamtest.Rand(t), start, 70)
	w.answered(map[string]int{
		"chart-point/bitcoin/5m/2026-11-20T09:05:00Z":                                                   http.StatusOK,
		"chart-point/bitcoin/5m/2026-11-20T09:06:00Z":                                                   http.StatusBadRequest,
		"chart-point/bitcoin/5m/2026-11-20T11:05:00Z":                                                   http.StatusNotFound,
		"chart-point/bitcoin/1h/2026-11-20T04:00:00Z":                                                   http.StatusNotFound,
		"chart-point/bitcoin/1m/2026-11-20T09:05:00Z":                                                   http.StatusNotFound,
		"chart-point/bitcoin/5m/2026-11-20T09:05:00Z?asOf=2026-11-20T09:09:59Z":                         http.StatusNotFound,
		"chart-point/ethereum/1h/2026-11-20T10:00:00Z":                                                  http.StatusNotFound,
		"chart/bitcoin/1h/2026-11-20T09:00:00Z/2026-11-20T10:05:01Z/avgPrice":                           http.StatusOK,
		"chart/bitcoin/1h/2026-11-20T09:00:00Z/2026-11-20T10:05:01.5Z/avgPrice":                         http.StatusBadRequest,
		"chart/bitcoin/1h/2026-11-20T09:00:00Z/2026-11-20T08:05:01Z/avgPrice":                           http.StatusBadRequest,
		"chart/bitcoin/1h/2016-11-20T09:00:00Z/2026-11-20T10:05:01Z/avgPrice":                           http.StatusBadRequest,
		"chart/bitcoin/1h/2026-11-20T09:00:00Z/2026-11-20T12:05:01Z/avgPrice":                           http.StatusNotFound,
		"chart/bitcoin/1h/2026-11-20T09:00:00Z/2026-11-20T10:05:01Z/avgPrice?asOf=2026-11-20T10:00:00Z": http.StatusNotFound,
		"chart/bitcoin/1h/2026-11-20T09:30:00Z/2026-11-20T10:05:01Z/avgPrice":                           http.StatusBadRequest,
		"chart/bitcoin/1h/2026-11-20T09:00:00Z/2026-11-20T10:05:01Z/avg":                                http.StatusNotFound,
		"chart/ethereum/1h/2026-11-20T09:00:00Z/2026-11-20T10:05:01Z/avgPrice":                          http.StatusNotFound,
	})
}

// venueCandles are candles of a venue of one length, each of another price, that start at and after a time.
func (w *fixture) venueCandles(length time.Duration, start time.Time, n int) {
	w.T.Helper()
	var batch rows.Batch
	for i := range n {
		price := fmt.Sprint(90_000 + 100*i)
		batch.Add(rows.Place{Topic: schemas.TopicBackfillRaw, Offset: w.Offset()}, &eventsv1.BackfillRecord{Producer: "kraken", Body: &eventsv1.BackfillRecord_Candle{Candle: &eventsv1.BackfillCandle{
			Venue: "kraken", Symbol: "BTC/USD", Base: "BTC", Quote: "USD", Interval: uint32(length / time.Second), Start: start.Add(time.Duration(i) * length).UnixNano(),
			Open: price, High: price, Low: price, Close: price, Volume: "1",
		}}})
	}
	w.Must(batch.Insert(w.T.Context(), w.Store, ""))
	_, err := past.NewFold(w.Store).Pass(w.T.Context())
	w.Must(err)
}

// What a chart shows of the past is made again of minutes of venues and of hours of theirs; of what is not there any more it is not said to be.
func TestChartsOfVenuesCandlesAreMadeAgain(t *testing.T) {
	w := newFixture(t)
	start := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	w.venueCandles(time.Minute, start.Add(-2*time.Hour), 120)
	w.drawn(streamtest.Rand(t), start, 70)
	var body charts.ChartBody
	w.read("/api/v1/charts/bitcoin?timeframe=24h", &body)
	w.charted("1h", body.Data.Stats)
	w.venueCandles(time.Hour, start.Add(-4*time.Hour), 2)
	w.Now = w.Now.Add(5 * time.Minute) // what charts hold of the past is read again
	w.Pulse()
	numbers := func(from time.Time) (numbers []string) {
		for _, field := range []string{"minPrice", "avgPrice", "changePct"} {
			numbers = append(numbers, fmt.Sprintf("chart/bitcoin/1h/%s/%s/%s", from.Format(time.RFC3339), body.Data.Stats.Until, field))
		}
		return numbers
	}
	for _, number := range append(numbers(start.Add(-2*time.Hour)), numbers(start.Add(-4*time.Hour))...) {
		if n := w.reproduced(number, "", true); n.Note != "" {
			t.Errorf("%s: got the note %q, want none", number, n.Note)
		}
	}
	// Their records are not in the log of this test.
	if n := w.reproduced("candle/bitcoin/1h/"+start.Add(-4*time.Hour).Format(time.RFC3339)+"/close", "", true); !strings.Contains(n.Note, "as the tables have them") {
		t.Errorf("got %+v, want that the log has no record", n)
	}
	w.Must(w.Store.Conn().Exec(t.Context(), "TRUNCATE TABLE backfill"))
	for _, number := range numbers(start.Add(-4 * time.Hour)) {
		if n := w.ask(number, ""); n.Reproduced != nil || !strings.Contains(n.Note, "not there any more") {
			t.Errorf("%s: got %+v, want that it is not made again, with the reason", number, n)
		}
	}
}
