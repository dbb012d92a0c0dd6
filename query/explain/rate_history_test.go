package explain_test

import (
	"cmp"
	"fmt"
	"math"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/rates"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/history/rows"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// A rate of the past is made again of what its source stated, and what it did in an hour or a day of the answers in it.
func TestPastRatesAreReproduced(t *testing.T) {
	random := streamtest.Rand(t)
	w := newFixture(t)
	start := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	const answers = 24 // of which three make no step
	roll := &eventsv1.RateRollup{Provider: "aave", Source: "aave", Category: "lending", CoinId: "tether", Symbol: "USDT", ProviderSymbol: "tether", Pool: "tether/main",
		Start: start.UnixNano(), Interval: 3600, N: answers}
	sum := 0.0
	for i := range answers {
		w.Now = start.Add(time.Duration(i)*2*time.Minute + time.Duration(1+random.IntN(100))*time.Second)
		tvl := fmt.Sprint(1e6 + random.IntN(1e6))
		e := w.offered(&eventsv1.Rate{Source: "aave", Project: "aave", Category: "lending", Pool: "tether/main", Symbol: "tether", CoinId: "tether", Raw: fmt.Sprint(random.Float64() / 10),
			RawUnit: "apr_fraction", Compounding: "daily", Interval: int64(time.Hour), IngestTime: w.Now.UnixNano(), TvlUsd: tvl})
		if sum += e.Apy; i == 0 {
			roll.Open, roll.High, roll.Low = e.Apy, e.Apy, e.Apy
		}
		roll.High, roll.Low, roll.Close, roll.TvlUsd = max(roll.High, e.Apy), min(roll.Low, e.Apy), e.Apy, e.TvlUsd
	}
	roll.Mean = sum / answers
	w.Now = start.Add(62 * time.Minute)
	w.RateFolded(&eventsv1.RateRecord{Body: &eventsv1.RateRecord_Rollup{Rollup: roll}})
	w.Run("rated 2026-11-20T10:02:00Z")
	var body rates.PastBody
	w.read("/api/v1/rates/USDT/history?explain=1", &body)
	if len(body.Data.History) != answers {
		t.Fatalf("got %d answers, want %d", len(body.Data.History), answers)
	}
	for _, e := range body.Data.History {
		number := func(field string) string {
			return fmt.Sprintf("rate-history/%s/%s/%s/%s/%s/%s", field, e.Timestamp, e.CreatedAt, e.Provider, e.Category, e.ID)
		}
		if n := w.reproduced(number("rate"), "", true); *n.Value != e.Rate || len(n.Inputs) != 1 || len(n.Records) != 1 || n.Records[0].Topic != schemas.TopicRates {
			t.Errorf("got %+v, want %g of one record", n, e.Rate)
		}
		if n := w.reproduced(number("apr"), "", true); *n.Value != *e.Metadata.APR {
			t.Errorf("got %+v, want %g", n, *e.Metadata.APR)
		}
		if n := w.reproduced(number("tvlUsd"), "", true); *n.Value != *e.Metadata.TVLUSD || n.Unit != "USD" {
			t.Errorf("got %+v, want %g", n, *e.Metadata.TVLUSD)
		}
	}
	hour := query.FormatTime(start.UnixNano()) + "/" + query.FormatTime(start.Add(time.Hour).UnixNano()) + "/aave/lending/aave%7Clending%7Ctether/main"
	for field, want := range map[string]float64{"rate": roll.Close, "open": roll.Open, "high": roll.High, "low": roll.Low, "close": roll.Close, "mean": roll.Mean, "tvlUsd": *roll.TvlUsd} {
		n := w.reproduced("rate-history/"+field+"/"+hour, "?depth=2", true)
		if *n.Value != want || len(n.Inputs) != 20 || n.LeftOut.Count != answers-20 || n.Inputs[0].Reproduced == nil || !*n.Inputs[0].Reproduced || field != "mean" && *n.Inputs[0].Value != want {
			t.Errorf("%s: got %+v, want %g of %d answers, the one that decides first", field, n, want, answers)
		}
	}
	w.Must(w.Store.Conn().Exec(t.Context(), "INSERT INTO rates_1h SELECT * REPLACE (mean + 1 AS mean, version + 1 AS version) FROM rates_1h FINAL"))
	w.reproduced("rate-history/mean/"+hour, "", false)
	first := body.Data.History[0]
	single := first.Timestamp + "/" + first.Timestamp + "/aave/lending/" + first.ID
	w.Must(w.Store.Conn().Exec(t.Context(), "INSERT INTO rates SELECT * REPLACE (apy + 1 AS apy, version + 1 AS version) FROM rates FINAL"))
	if n := w.reproduced("rate-history/rate/"+single, "", false); n.Recomputed == nil || *n.Recomputed != first.Rate {
		t.Errorf("got %+v, want %g recomputed", n, first.Rate)
	}
	w.answered(map[string]int{
		"rate-history/mean/" + single:                                     http.StatusNotFound,
		"rate-history/apr/" + hour:                                        http.StatusNotFound,
		"rate-history/means/" + hour:                                      http.StatusNotFound,
		"rate-history/rate/" + single + "s":                               http.StatusNotFound,
		"rate-history/rate/" + single + "?asOf=" + "2026-11-20T09:00:00Z": http.StatusNotFound,
		"rate-history/mean/2026-11-20T09:30:00Z/2026-11-20T10:30:00Z/aave/lending/aave%7Clending%7Ctether/main": http.StatusBadRequest,
		"rate-history/rate/2026-11-20T09:30:00Z/2026-11-20T09:30:00Z/aave/lending/main":                         http.StatusBadRequest,
		"rate-history/rate/2026-11-20T09:30:00Z/2026-11-20T09:30:00Z/okx/price/okx%7Cprice%7CBTC-USD":           http.StatusNotFound,
	})
}

// What a source reported afterwards of a rate is made again of its records: single reports, and what they make of an hour or a day.
func TestReportedPastOfRatesIsReproduced(t *testing.T) {
	random := streamtest.Rand(t)
	w := newFixture(t)
	day := time.Date(2026, 11, 18, 0, 0, 0, 0, time.UTC)
	w.Now = day.Add(48 * time.Hour)
	w.offered(&eventsv1.Rate{Source: "aave", Project: "aave", Category: "lending", Pool: "tether/main", Symbol: "tether", CoinId: "tether", Raw: "0.05", RawUnit: "apr_fraction", Compounding: "daily",
		Interval: int64(time.Hour), IngestTime: w.Now.UnixNano()})
	type report struct {
		at       time.Time
		apy, tvl float64
		offset   int64
	}
	var reports []report
	for hour := range 24 {
		for half := range 1 + random.IntN(2) {
			at := day.Add(time.Duration(2*hour+half)*30*time.Minute + time.Duration(random.IntN(1800))*time.Second)
			raw, tvl := math.Round(1e6*random.Float64()/10)/1e6, 1e6+random.IntN(1e6)
			rec := &eventsv1.ReferenceRecord{Producer: "sources", Epoch: 1, Body: &eventsv1.ReferenceRecord_Rate{Rate: &eventsv1.Rate{Source: "aave", Project: "aave", Category: "lending", Pool: "tether/main",
				Symbol: "tether", CoinId: "tether", Raw: fmt.Sprint(raw), RawUnit: "apy_fraction", TvlUsd: fmt.Sprint(tvl), Past: true, EventTime: at.UnixNano(), IngestTime: w.Now.UnixNano()}}}
			for range random.IntN(3) { // others' records lie between
				w.append(schemas.TopicRatesRaw, 0, "other", w.Now.UnixNano(), &eventsv1.ReferenceRecord{Producer: "sources", Epoch: 1})
			}
			r := w.append(schemas.TopicRatesRaw, 0, "aave", w.Now.UnixNano(), rec)
			w.flush()
			var b rows.Batch
			b.Add(rows.Place{Topic: schemas.TopicRatesRaw, Offset: r.Offset}, rec)
			w.Must(b.Insert(t.Context(), w.Store, ""))
			reports = append(reports, report{at, 100 * raw, float64(tvl), r.Offset})
		}
	}
	slices.SortFunc(reports, func(a, b report) int { return a.at.Compare(b.at) })
	w.Run("rated 2026-11-20T00:01:00Z")
	const id = "/aave/lending/aave%7Clending%7Ctether/main"
	for _, step := range []time.Duration{0, time.Hour, oneDay} {
		for i := 0; i < len(reports); {
			start := reports[i].at
			if step > 0 {
				start = start.Truncate(step)
			}
			of := []report{reports[i]}
			for i++; i < len(reports) && reports[i].at.Before(start.Add(step)); i++ {
				of = append(of, reports[i])
			}
			want := map[string]float64{"rate": of[len(of)-1].apy, "tvlUsd": of[len(of)-1].tvl}
			if step > 0 {
				lowest := slices.MinFunc(of, func(a, b report) int { return cmp.Compare(a.apy, b.apy) }).apy
				highest := slices.MaxFunc(of, func(a, b report) int { return cmp.Compare(a.apy, b.apy) }).apy
				sum := 0.0
				for _, r := range of {
					sum += r.apy
				}
				want["open"], want["close"], want["low"], want["high"], want["mean"] = of[0].apy, of[len(of)-1].apy, lowest, highest, sum/float64(len(of))
			}
			for field, value := range want {
				number := "rate-history/" + field + "/" + query.FormatTime(start.UnixNano()) + "/" + query.FormatTime(start.Add(step).UnixNano()) + id
				n := w.reproduced(number, "?depth=2", true)
				places := n.Records
				for _, in := range n.Inputs {
					places = append(places, in.Records...)
				}
				if n.Value == nil || math.Abs(*n.Value-value) > 1e-9 || n.Method.Name != "reported-afterwards" || len(places) != min(len(of), 20) || places[0].Offset != of[0].offset || places[0].Topic != schemas.TopicRatesRaw {
					t.Errorf("%s: got %+v, want %g of %+v", number, n, value, of)
				}
			}
		}
	}
	first := "rate-history/rate/" + query.FormatTime(reports[0].at.UnixNano()) + "/" + query.FormatTime(reports[0].at.UnixNano()) + id
	w.answered(map[string]int{first + "?asOf=2026-11-19T12:00:00Z": http.StatusNotFound})
	w.Must(w.Store.Conn().Exec(t.Context(), "INSERT INTO rates_past SELECT * REPLACE (apy + 1 AS apy, version + 1 AS version) FROM rates_past FINAL"))
	w.reproduced(first, "", false)
}
