package explain_test

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/globalstats"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/history/rows"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// backfilled is what a source reports afterwards, in the log and in the tables.
func (w *fixture) backfilled(rec *eventsv1.ReferenceRecord) int64 {
	r := w.append(schemas.TopicReferenceRaw, 0, "coingecko", w.Now.UnixNano(), rec)
	w.flush()
	var b rows.Batch
	b.Add(rows.Place{Topic: schemas.TopicReferenceRaw, Offset: r.Offset}, rec)
	w.Must(b.Insert(w.T.Context(), w.Store, ""))
	return r.Offset
}

// hourTold is what the model of this test has of a coin in an hour.
type hourTold struct {
	at          time.Time
	cap, volume float64
}

// What a source reported afterwards of the market is made again of its records, point by point and step by step, and compared with the newest total that was measured.
func TestPastOfTheMarketIsReproduced(t *testing.T) {
	random := streamtest.Rand(t)
	w := newFixture(t)
	start := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	w.Now = start
	told := map[string][]hourTold{}
	for _, day := range []int{14, 18, 19} { // euro-coin is not reported any more
		for _, coin := range []string{"bitcoin", "ethereum", "tether", "euro-coin", "some-coin"} {
			if coin == "euro-coin" && day > 14 {
				continue
			}
			from := time.Date(2026, 11, day, 0, 0, 0, 0, time.UTC)
			rec := &eventsv1.CoinPast{Source: "coingecko", SourceId: coin, Day: from.UnixNano(), IngestTime: w.Now.UnixNano()}
			for hour := range 24 {
				if random.IntN(12) == 0 && hour < 20 {
					continue
				}
				for i := range 1 + random.IntN(2) {
					p := hourTold{from.Add(time.Duration(hour)*time.Hour + time.Duration(i*20+random.IntN(20))*time.Minute), 1e10 * random.Float64(), 1e8 * random.Float64()}
					if coin == "some-coin" { // hours without it are still told
						p.cap = 1e7 * random.Float64()
					}
					rec.Points = append(rec.Points, &eventsv1.CoinPastPoint{Time: p.at.UnixNano(), MarketCap: fmt.Sprint(p.cap), Volume24H: fmt.Sprint(p.volume)})
					if i == 0 {
						p.at = p.at.Truncate(time.Hour)
						told[coin] = append(told[coin], p)
					}
				}
			}
			w.backfilled(&eventsv1.ReferenceRecord{Producer: "sources", Epoch: 1, Body: &eventsv1.ReferenceRecord_CoinPast{CoinPast: rec}})
		}
	}
	w.wander(random, start, 3)
	w.Now = w.Now.Add(10 * time.Second)
	total := w.totalCap
	model := func(at time.Time) (value map[string]float64, coverage float64) {
		value = map[string]float64{}
		newest := 0.0
		for coin, hours := range told {
			for _, p := range hours {
				if p.at.Equal(at) {
					value["total_market_cap"] += p.cap
					value["total_volume_24h"] += p.volume
					value[coin] = p.cap
					if last := hours[len(hours)-1]; last.at.After(time.Date(2026, 11, 17, 23, 30, 0, 0, time.UTC)) {
						newest += last.cap
					}
				}
			}
		}
		value["btc_dominance"] = 100 * value["bitcoin"] / value["total_market_cap"]
		value["eth_dominance"] = 100 * value["ethereum"] / value["total_market_cap"]
		return value, min(100, 100*newest/total)
	}
	near := func(got, want float64) bool { return math.Abs(got-want) <= 1e-12*want }
	for _, metric := range []string{"total_market_cap", "total_volume_24h", "btc_dominance", "eth_dominance"} {
		var body struct {
			Data globalstats.MetricHistory `json:"data"`
		}
		w.read("/api/v1/global-stats/metrics/history/"+metric+"?period=7d", &body)
		points := body.Data.History
		var reported []globalstats.MetricPoint
		for _, p := range points {
			if p.Origin != "" {
				reported = append(reported, p)
			}
		}
		if len(reported) < 20 {
			t.Fatalf("%s has %d points that were reported afterwards, want some twenty: %+v", metric, len(reported), points)
		}
		for range 3 {
			p := reported[random.IntN(len(reported))]
			want, coverage := model(time.Unix(p.Timestamp, 0).UTC())
			n := w.reproduced(fmt.Sprintf("metric/%s/%d", metric, p.Timestamp), "", true)
			if *n.Value != p.Value || !near(p.Value, want[metric]) || len(n.Inputs) < 3 || !strings.Contains(n.Note, "backfill") {
				t.Errorf("%s of %d: got %v, explained as %+v, want %v", metric, p.Timestamp, p.Value, n, want[metric])
			}
			c := w.reproduced(fmt.Sprintf("metric-coverage/%s/%s/%d", metric, body.Data.Granularity, p.Timestamp), "?depth=2", true)
			if p.Coverage == nil || *c.Value != *p.Coverage || !near(*c.Value, coverage) && body.Data.Granularity == "1h" || len(c.Inputs) < 3 || !strings.HasPrefix(c.Inputs[0].Number, "metric/total_market_cap/") || len(c.Inputs[0].Inputs) == 0 {
				t.Errorf("%s of %d covers %v, explained as %+v, want %v", metric, p.Timestamp, p.Coverage, c, coverage)
			}
		}
		var candles struct {
			Data globalstats.MetricOHLC `json:"data"`
		}
		w.read("/api/v1/global-stats/metrics/ohlc/"+metric+"?period=30d", &candles)
		for _, c := range candles.Data.OHLC {
			if c.Origin == "" {
				continue
			}
			name := fmt.Sprintf("%s/%s/%d", metric, candles.Data.Granularity, c.Timestamp)
			field := []string{"open", "high", "low", "close", "avg", "samples"}[random.IntN(6)]
			want := map[string]float64{"open": c.Open, "high": c.High, "low": c.Low, "close": c.Close, "avg": c.Avg, "samples": float64(c.Samples)}[field]
			if n := w.reproduced("metric/"+name+"/"+field, "", true); *n.Value != want || len(n.Inputs) == 0 {
				t.Errorf("%s/%s is %v, explained as %+v", name, field, want, n)
			}
			if n := w.reproduced("metric-coverage/"+name, "", true); *n.Value != *c.Coverage {
				t.Errorf("%s covers %v, explained as %v", name, *c.Coverage, *n.Value)
			}
		}
	}
	numbers, _ := w.explained("/api/v1/global-stats/metrics/history/btc_dominance?period=7d&explain=1")
	if len(numbers) != 20 || !strings.Contains(strings.Join(numbers, " "), "metric-coverage/btc_dominance/") {
		t.Errorf("got %q, want coverages and values", numbers)
	}
	w.answered(map[string]int{"metric-coverage/total_market_cap/1h/2026-11-16T05:00:00Z": http.StatusNotFound, "metric-coverage/total_market_cap/daily/2026-11-19T05:00:00Z": http.StatusBadRequest,
		"metric-coverage/total_market_cap/1h/2026-11-20T10:02:00Z": http.StatusNotFound, "metric-coverage/total_market_cap/2h/2026-11-19T05:00:00Z": http.StatusNotFound,
		"metric-coverage/total_cap/1h/2026-11-19T05:00:00Z": http.StatusNotFound, "metric-coverage/total_market_cap/1h/x": http.StatusBadRequest,
		"metric-coverage/lending_tvl/1h/2026-11-19T05:00:00Z": http.StatusNotFound,
		"metric/total_market_cap/2026-11-16T05:00:00Z":        http.StatusNotFound, "metric/total_market_cap/hourly/2026-11-16T05:00:00Z/open": http.StatusNotFound})
	// As of an instant what is compared with is the total of the minute that was served.
	at := w.Now
	asOf := "asOf=" + at.Format(time.RFC3339)
	w.wander(random, time.Unix(0, w.ended).UTC(), 2)
	w.Now = w.Now.Add(10 * time.Second)
	reportedAt := int64(0)
	for _, metric := range []string{"total_market_cap", "btc_dominance"} {
		var body struct {
			Data globalstats.MetricHistory `json:"data"`
		}
		w.read("/api/v1/global-stats/metrics/history/"+metric+"?period=7d&"+asOf, &body)
		reported := slices.DeleteFunc(body.Data.History, func(p globalstats.MetricPoint) bool { return p.Origin == "" })
		reportedAt = reported[0].Timestamp
		for range 3 {
			p := reported[random.IntN(len(reported))]
			if n := w.reproduced(fmt.Sprintf("metric/%s/%d", metric, p.Timestamp), "?"+asOf, true); *n.Value != p.Value {
				t.Errorf("%s of %d as of then: got %v, explained as %+v", metric, p.Timestamp, p.Value, n)
			}
			c := w.reproduced(fmt.Sprintf("metric-coverage/%s/%s/%d", metric, body.Data.Granularity, p.Timestamp), "?"+asOf, true)
			if p.Coverage == nil || *c.Value != *p.Coverage || c.Inputs[0].Time > query.FormatTime(at.UnixNano()) {
				t.Errorf("%s of %d as of then covers %v, explained as %+v", metric, p.Timestamp, p.Coverage, c)
			}
		}
	}
	number := fmt.Sprintf("total_market_cap/1h/%d?", reportedAt)
	w.answered(map[string]int{"metric-coverage/" + number + asOf: http.StatusOK, "metric-coverage/" + number + "asOf=2026-11-20T09:00:00Z": http.StatusGone})
	w.Now = w.Now.Add(time.Minute)
	w.backfilled(&eventsv1.ReferenceRecord{Producer: "sources", Epoch: 1, Body: &eventsv1.ReferenceRecord_CoinPast{CoinPast: &eventsv1.CoinPast{Source: "coingecko", SourceId: "euro-coin", IngestTime: w.Now.UnixNano(),
		Day: time.Date(2026, 11, 14, 0, 0, 0, 0, time.UTC).UnixNano(), Points: []*eventsv1.CoinPastPoint{{Time: told["bitcoin"][0].at.UnixNano(), MarketCap: "1", Volume24H: "1"}}}}})
	w.answered(map[string]int{"metric-coverage/" + number + asOf: http.StatusGone, "metric/" + strings.Replace(number, "1h/", "", 1) + asOf: http.StatusGone})
	// The tables say otherwise than the records.
	last := told["bitcoin"][len(told["bitcoin"])-1].at
	w.Must(w.Store.Conn().Exec(t.Context(), "INSERT INTO coin_past SELECT * REPLACE (assumeNotNull(market_cap) + 1 AS market_cap, version + 1 AS version) FROM coin_past FINAL WHERE coin_id = 'bitcoin'"))
	w.reproduced(fmt.Sprintf("metric/total_market_cap/%d", last.Unix()), "", false)
	w.reproduced(fmt.Sprintf("metric-coverage/total_market_cap/1h/%d", last.Unix()), "", false)
}

// What a source reported afterwards of DeFi is what its record states, and is compared with the newest total that was measured.
func TestPastOfDefiIsReproduced(t *testing.T) {
	random := streamtest.Rand(t)
	w := newFixture(t)
	w.Now = time.Date(2026, 11, 20, 10, 0, 30, 0, time.UTC)
	want := map[int64]float64{}
	newest := 0.0
	for day := 15; day <= 20; day++ {
		at := time.Date(2026, 11, day, 0, 0, 0, 0, time.UTC)
		newest = 1e9 * (0.5 + random.Float64())
		want[at.Unix()] = newest
		w.backfilled(&eventsv1.ReferenceRecord{Producer: "sources", Epoch: 1, Body: &eventsv1.ReferenceRecord_DefiPast{DefiPast: &eventsv1.DefiPast{Source: "defillama", TotalTvl: plain(newest),
			EventTime: at.UnixNano(), IngestTime: w.Now.UnixNano()}}})
	}
	w.remember()
	w.locked(&eventsv1.Protocol{Source: schemas.DefiTVLSource, Slug: "aave", Name: "Aave", Category: "Lending", Tvl: "1000000000", IngestTime: w.Now.UnixNano()})
	for i := range 3 {
		w.Now = time.Date(2026, 11, 20, 10, 1+i, 0, 0, time.UTC)
		w.defi(w.Now.UnixNano())
	}
	w.Now = time.Date(2026, 11, 20, 10, 4, 0, 0, time.UTC)
	for at, value := range want {
		if n := w.reproduced(fmt.Sprintf("metric/defi_tvl/%d", at), "", true); *n.Value != value || len(n.Inputs) != 1 || len(n.Inputs[0].Records) != 1 {
			t.Errorf("got %+v, want %v", n, value)
		}
		start := at - int64(oneDay/time.Second) // the beginning of a day ends the step before
		if n := w.reproduced(fmt.Sprintf("metric/defi_tvl/daily/%d/avg", start), "", true); *n.Value != value {
			t.Errorf("got %+v, want %v", n, value)
		}
		for _, number := range []string{fmt.Sprintf("metric-coverage/defi_tvl/daily/%d", start), fmt.Sprintf("metric-coverage/defi_tvl/4h/%d", at)} {
			if n := w.reproduced(number, "?depth=2", true); math.Abs(*n.Value-min(100, newest/1e7)) > 1e-9 || len(n.Inputs) != 2 || n.Inputs[0].Number != fmt.Sprintf("metric/defi_tvl/%d", time.Date(2026, 11, 20, 10, 3, 0, 0, time.UTC).Unix()) {
				t.Errorf("%s: got %+v, want %v", number, n, newest/1e7)
			}
		}
	}
	// As of an instant it is compared with the total of the minute that was served.
	asOf := "?asOf=" + w.Now.Format(time.RFC3339)
	w.Now = w.Now.Add(30 * time.Second)
	w.locked(&eventsv1.Protocol{Source: schemas.DefiTVLSource, Slug: "aave", Name: "Aave", Category: "Lending", Tvl: "4000000000", IngestTime: w.Now.UnixNano()})
	w.Now = w.Now.Add(30 * time.Second)
	w.defi(w.Now.UnixNano())
	for at, value := range want {
		if n := w.reproduced(fmt.Sprintf("metric-coverage/defi_tvl/4h/%d", at), asOf, true); math.Abs(*n.Value-min(100, newest/1e7)) > 1e-9 {
			t.Errorf("got %+v as of then, want %v", n, newest/1e7)
		}
		if n := w.reproduced(fmt.Sprintf("metric-coverage/defi_tvl/4h/%d", at), "", true); math.Abs(*n.Value-newest/4e7) > 1e-9 {
			t.Errorf("got %+v now, want %v", n, newest/4e7)
		}
		if n := w.reproduced(fmt.Sprintf("metric/defi_tvl/%d", at), asOf, true); *n.Value != value {
			t.Errorf("got %+v as of then, want %v", n, value)
		}
	}
	day := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
	w.backfilled(&eventsv1.ReferenceRecord{Producer: "sources", Epoch: 1, Body: &eventsv1.ReferenceRecord_DefiPast{DefiPast: &eventsv1.DefiPast{Source: "defillama", TotalTvl: "1", EventTime: day.UnixNano(), IngestTime: w.Now.UnixNano()}}})
	w.answered(map[string]int{fmt.Sprintf("metric-coverage/defi_tvl/4h/%d", day.Unix()) + asOf: http.StatusGone, fmt.Sprintf("metric/defi_tvl/%d", day.Unix()) + asOf: http.StatusGone})
}

const oneDay = 24 * time.Hour
