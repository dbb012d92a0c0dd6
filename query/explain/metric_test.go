package explain_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// wander lets two coins of which a source reports prices and supplies wander for some minutes.
func (w *fixture) wander(random *rand.Rand, start time.Time, minutes int) {
	prices := map[string]float64{"bitcoin": 97_000, "ethereum": 2_000}
	symbols := map[string]string{"bitcoin": "BTC", "ethereum": "ETH"}
	for i := range minutes {
		end := start.Add(time.Duration(i+1) * time.Minute)
		w.Now = end.Add(-30 * time.Second)
		for _, coin := range []string{"bitcoin", "ethereum"} {
			prices[coin] *= 1 + (random.Float64()-0.5)/100
			w.observed(&eventsv1.CoinMarket{Source: "coingecko", SourceId: coin, Symbol: symbols[coin], Name: coin, Price: fmt.Sprint(prices[coin]),
				CirculatingSupply: "1000000", Volume24H: fmt.Sprint(1e9 * random.Float64()), IngestTime: w.Now.UnixNano()})
		}
		w.close(end.UnixNano())
	}
}

// Each point of a series and each number of an hour is made again: points of the rows of the log, hours of the points. What the
// table has and the log does not is found out.
func TestSeriesOfMetricsAreReproduced(t *testing.T) {
	random := streamtest.Rand(t)
	w := newFixture(t)
	start := time.Date(2026, 11, 20, 9, 55, 0, 0, time.UTC)
	const minutes = 70 // five minutes, a whole one and five minutes
	w.wander(random, start, minutes)
	for _, metric := range []string{"total_market_cap", "total_volume_24h", "btc_dominance", "eth_dominance"} {
		end := start.Add(time.Duration(1+random.IntN(minutes)) * time.Minute)
		n := w.reproduced(fmt.Sprintf("metric/%s/%d", metric, end.Unix()), "", true)
		if len(n.Inputs) == 0 || len(n.Records) == 0 || n.Number != fmt.Sprintf("metric/%s/%d", metric, end.Unix()) {
			t.Errorf("got %+v, want the point with its inputs and its record", n)
		}
		hour := 9 + random.IntN(3) // the first and the last are not whole
		for _, field := range []string{"open", "high", "low", "close", "avg", "samples"} {
			w.reproduced(fmt.Sprintf("metric/%s/hourly/2026-11-20T%02d:00:00Z/%s", metric, hour, field), "", true)
		}
		w.reproduced(fmt.Sprintf("metric/%s/daily/2026-11-20T00:00:00Z/avg", metric), "", true)
	}
	deep := w.ask("metric/total_market_cap/hourly/2026-11-20T10:00:00Z/high", "?depth=3")
	if len(deep.Inputs) != 1 || deep.Inputs[0].Reproduced == nil || !*deep.Inputs[0].Reproduced || *deep.Inputs[0].Value != *deep.Value || len(deep.Inputs[0].Inputs) != 2 {
		t.Errorf("got %+v, want the highest minute with its two coins", deep)
	}
	if samples := w.ask("metric/total_market_cap/hourly/2026-11-20T10:00:00Z/samples", ""); *samples.Value != 60 || len(samples.Inputs) != 20 || samples.LeftOut.Count != 40 {
		t.Errorf("got %v samples, %d inputs and %+v, want 60, 20 and 40 left out", *samples.Value, len(samples.Inputs), samples.LeftOut)
	}

	at := start.Add(40 * time.Minute)
	w.Must(w.Store.Conn().Exec(t.Context(), "INSERT INTO summaries SELECT * REPLACE (total_market_cap + 1 AS total_market_cap, version + 1 AS version) FROM summaries FINAL WHERE time = ?", at))
	changed := w.reproduced(fmt.Sprintf("metric/total_market_cap/%d", at.Unix()), "", false)
	if changed.Recomputed == nil || *changed.Recomputed != *changed.Value-1 {
		t.Errorf("got %+v, want the total of the log, one dollar less", changed)
	}
}

func TestSeriesOfDefiAreReproduced(t *testing.T) {
	w, folded := newDefiFixture(t)
	for _, metric := range []string{"defi_tvl", "lending_tvl", "staking_tvl", "borrowing_tvl", "lending_apy", "staking_apy", "borrow_apy"} {
		n := w.reproduced(fmt.Sprintf("metric/%s/%d", metric, folded.Unix()), "", true)
		if len(n.Inputs) == 0 || len(n.Records) == 0 {
			t.Errorf("%s: got %+v, want inputs and a record", metric, n)
		}
		w.reproduced(fmt.Sprintf("metric/%s/hourly/2026-11-20T10:00:00Z/avg", metric), "", true)
	}
	w.Must(w.Store.Conn().Exec(t.Context(), "INSERT INTO defi SELECT * REPLACE (lending_apy + 1 AS lending_apy, version + 1 AS version) FROM defi FINAL"))
	w.reproduced(fmt.Sprintf("metric/lending_apy/%d", folded.Unix()), "", false)
}

func TestSeriesNameWhatTheyLack(t *testing.T) {
	w := newFixture(t)
	start := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	w.wander(streamtest.Rand(t), start, 3)
	w.answered(map[string]int{
		"metric/total_market_cap/2026-11-20T10:02:00Z":                                      http.StatusOK,
		"metric/total_market_cap/2026-11-20T10:02:01Z":                                      http.StatusBadRequest,
		"metric/total_market_cap/2026-11-20T10:20:00Z":                                      http.StatusNotFound,
		"metric/total_market_cap/yesterday":                                                 http.StatusBadRequest,
		"metric/total_market_cap/99999999999999":                                            http.StatusBadRequest,
		"metric/total_marketcap/2026-11-20T10:02:00Z":                                       http.StatusNotFound,
		"metric/total_market_cap/hourly/2026-11-20T10:00:00Z":                               http.StatusNotFound,
		"metric/total_market_cap/hourly/2026-11-20T10:30:00Z/low":                           http.StatusBadRequest,
		"metric/total_market_cap/weekly/2026-11-20T10:00:00Z/low":                           http.StatusNotFound,
		"metric/total_market_cap/hourly/2026-11-20T08:00:00Z/low":                           http.StatusNotFound,
		"metric/total_market_cap/hourly/2026-11-20T10:00:00Z/last":                          http.StatusNotFound,
		"metric/total_market_cap/2026-11-20T10:02:00Z?asOf=2026-11-20T10:01:30Z":            http.StatusNotFound,
		"metric/total_market_cap/hourly/2026-11-20T10:00:00Z/low?asOf=2026-11-20T10:02:30Z": http.StatusNotFound,
	})
}
