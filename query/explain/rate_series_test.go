package explain_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/marketlog/marketlog/query/charts"
	"github.com/marketlog/marketlog/query/explain"
	"github.com/marketlog/marketlog/query/rates"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/history/rows"
	"github.com/marketlog/marketlog/stream/streamtest"
)

var stakers = []struct {
	provider string
	pools    int
}{{"lido", 3}, {"okx", 1}, {"rocket-pool", 2}, {"stader", 1}}

// staked has providers pay changing rates of ether for some minutes, and what they did in the hours and the days before, with some missing.
func (w *fixture) staked(now time.Time) (last *eventsv1.RateEntry) {
	random := streamtest.Rand(w.T)
	rolled := func(start time.Time, interval time.Duration) {
		for _, of := range stakers {
			if random.IntN(5) == 0 {
				continue // nothing was reported
			}
			for pool := range of.pools {
				open, closed := random.Float64()*5, random.Float64()*5
				r := &eventsv1.RateRollup{Provider: of.provider, Source: of.provider, Category: "staking", CoinId: "ethereum", Symbol: "ETH", ProviderSymbol: "ETH", Pool: fmt.Sprint("pool/", pool),
					Start: start.UnixNano(), Interval: uint32(interval / time.Second), Open: open, Close: closed, High: max(open, closed) + random.Float64(), Low: min(open, closed) - random.Float64(),
					Mean: (open + closed) / 2, N: 5}
				if random.IntN(3) > 0 {
					r.TvlUsd = proto.Float64(1e9 * random.Float64())
				}
				w.RateFolded(&eventsv1.RateRecord{Body: &eventsv1.RateRecord_Rollup{Rollup: r}})
			}
		}
	}
	for i := range 12 {
		rolled(now.Truncate(time.Hour).Add(-time.Duration(i+1)*time.Hour), time.Hour)
	}
	for i := range 6 {
		rolled(now.Truncate(24*time.Hour).AddDate(0, 0, -i-1), 24*time.Hour)
	}
	for at := now.Add(-32 * time.Minute); at.Before(now); at = at.Add(7 * time.Minute) {
		w.Now = at
		for _, of := range stakers {
			for pool := range of.pools {
				reported := &eventsv1.Rate{Source: of.provider, Project: of.provider, Category: "staking", Pool: fmt.Sprint("pool/", pool), Symbol: "ETH", CoinId: "ethereum",
					Raw: fmt.Sprint(random.Float64() * 5), RawUnit: "apy_percent", Interval: int64(time.Hour), IngestTime: at.UnixNano()}
				if of.provider != "okx" {
					reported.TvlUsd = fmt.Sprint(1e9 * random.Float64())
				}
				last = w.offered(reported)
			}
		}
	}
	w.Now = now
	w.Run("rated " + now.Format(time.RFC3339))
	return last
}

// Points of charts of rates are medians of the points of providers, and these are made again of the rates that the log has, of hours and of days.
func TestChartsOfRatesAreReproduced(t *testing.T) {
	w := newFixture(t)
	last := w.staked(time.Date(2026, 11, 20, 10, 37, 0, 0, time.UTC))
	for _, chart := range []string{"timeframe=1h", "timeframe=24h", "timeframe=30d", "timeframe=7d&provider=lido"} {
		var body struct {
			charts.RateChartBody
			Explanations explain.Inlined
		}
		path := "/api/v1/charts/ethereum/rates/staking?" + chart
		w.read(path+"&format=simple&explain=1", &body)
		if len(body.Data.Rates) < 3 || len(body.Explanations.Numbers) == 0 {
			t.Errorf("%s: got %d points and %d explanations", chart, len(body.Data.Rates), len(body.Explanations.Numbers))
		}
		for _, n := range body.Explanations.Numbers {
			if n.Reproduced == nil || !*n.Reproduced || n.Value == nil {
				text, _ := json.Marshal(n)
				t.Errorf("%s: %s is not reproduced: %.700s", chart, n.Number, text)
			}
		}
		w.read(path, &body)
		for i, p := range body.Data.DataPoints {
			fields := map[string]float64{"close": p.Close, "providers": float64(p.Providers)}
			if p.Complete {
				fields["open"], fields["high"], fields["low"] = p.Open, p.High, p.Low
			}
			for field, want := range fields {
				if field != "close" && i%3 > 0 {
					continue
				}
				n := w.reproduced(fmt.Sprintf("rate-chart/ethereum/staking/%s/%s/%d/%s", body.Data.Provider, body.Data.Resolution, p.Timestamp, field), "?depth=2", true)
				if *n.Value != want || len(n.Inputs) != p.Providers || len(n.Inputs[0].Inputs) == 0 {
					t.Errorf("%s: %s is %v of %d inputs, want %g of %d", chart, n.Number, *n.Value, len(n.Inputs), want, p.Providers)
				}
			}
		}
	}
	var body rates.SeriesBody
	w.read("/api/v1/rates/history?coin=ethereum&country=DE&product=staking-rewards", &body)
	if len(body.Data.Series) != len(stakers) {
		t.Fatalf("got %d series, want %d", len(body.Data.Series), len(stakers))
	}
	for _, s := range body.Data.Series {
		for _, p := range s.Points {
			if n := w.reproduced(fmt.Sprintf("rate-series/%s/ethereum/staking/1d/%.0f", s.Provider, p[0]), "", true); *n.Value != p[1] {
				t.Errorf("%s is %g, want %g", n.Number, *n.Value, p[1])
			}
		}
	}

	// What is served of a rate and the log has otherwise shows, in what the rates are now and what they were.
	changed := proto.CloneOf(last)
	changed.Apy += 1
	w.Must(w.Yields.Apply(views.TailRecord{Offset: w.Offset(), Marked: &eventsv1.RateRecord{Mark: &eventsv1.Mark{LogicVersion: 1, Offset: w.Now.Unix() / 60}, Body: &eventsv1.RateRecord_Entry{Entry: changed}}}))
	w.Must(w.Store.Conn().Exec(t.Context(), "INSERT INTO rates SELECT * REPLACE (apy + 1 AS apy, version + 1 AS version) FROM rates FINAL WHERE provider = ?", changed.Provider))
	w.Now = w.Now.Add(time.Minute)
	w.Run("rated " + w.Now.Format(time.RFC3339))
	for _, start := range []string{"2026-11-20T10:20:00Z", "2026-11-20T10:35:00Z"} {
		n := w.reproduced("rate-series/"+changed.Provider+"/ethereum/staking/5m/"+start, "", false)
		if by := *n.Value - *n.Recomputed; by < 0.999 || by > 1.001 {
			t.Errorf("%s differs by %g, want by one", n.Number, by)
		}
	}
}

func TestChartsOfRatesNameWhatTheyLack(t *testing.T) {
	w := newFixture(t)
	w.staked(time.Date(2026, 11, 20, 10, 37, 0, 0, time.UTC))
	w.answered(map[string]int{
		"rate-series/lido/ethereum/staking/1h/2026-11-20T10:00:00Z/close":                         http.StatusOK,
		"rate-series/lido/ETH/staking/5m/2026-11-20T10:20:00Z/high":                               http.StatusOK,
		"rate-series/lido/ethereum/staking/1h/2026-11-20T10:00:00Z/high":                          http.StatusNotFound, // it has not ended
		"rate-series/lido/ethereum/staking/1h/2026-11-20T10:30:00Z":                               http.StatusBadRequest,
		"rate-series/lido/ethereum/staking/1h/2016-11-20T10:00:00Z":                               http.StatusPaymentRequired,
		"rate-series/lido/ethereum/staking/5m/2026-11-20T11:00:00Z":                               http.StatusNotFound,
		"rate-series/lido/ethereum/lending/5m/2026-11-20T10:20:00Z":                               http.StatusNotFound,
		"rate-series/lido/ethereum/stacking/5m/2026-11-20T10:20:00Z":                              http.StatusNotFound,
		"rate-series/nobody/ethereum/staking/5m/2026-11-20T10:20:00Z":                             http.StatusNotFound,
		"rate-series/lido/ethereum/staking/5m/2026-11-20T10:20:00Z/mean":                          http.StatusNotFound,
		"rate-series/lido/ethereum/staking/5m/2026-11-20T10:20:00Z?asOf=2026-11-20T10:24:00Z":     http.StatusNotFound,
		"rate-chart/ethereum/staking/all/5m/2026-11-20T10:20:00Z/providers":                       http.StatusOK,
		"rate-chart/ethereum/staking/all/5m/2026-11-20T10:20:00Z/mean":                            http.StatusNotFound,
		"rate-chart/bitcoin/staking/all/5m/2026-11-20T10:20:00Z/close":                            http.StatusNotFound,
		"rate-chart/ethereum/staking/all/5m/2026-11-20T10:20:00Z/close?asOf=2026-11-20T10:20:00Z": http.StatusNotFound,
	})
}

// A point of a chart of rates that was merged of several days is named by how many they are, and made again of the days.
func TestMergedPointsOfRatesAreReproduced(t *testing.T) {
	random := streamtest.Rand(t)
	w := newFixture(t)
	now := time.Date(2026, 11, 20, 10, 37, 0, 0, time.UTC)
	w.staked(now)
	var batch rows.Batch
	days := 1_250 + random.IntN(350)
	for i := range days {
		start := now.Truncate(oneDay).AddDate(0, 0, -2-days+i)
		if i > 0 && random.IntN(10) == 0 {
			continue // nobody reported a rate
		}
		for _, provider := range []string{"lido", "rocket-pool"}[:1+random.IntN(2)] {
			open, closing := 2+2*random.Float64(), 2+2*random.Float64()
			batch.Add(rows.Place{Topic: schemas.TopicRates, Offset: w.Offset()}, &eventsv1.RateRecord{Mark: &eventsv1.Mark{LogicVersion: 1, Offset: w.Offset()}, Body: &eventsv1.RateRecord_Rollup{Rollup: &eventsv1.RateRollup{
				Provider: provider, Source: provider, Category: "staking", CoinId: "ethereum", Symbol: "ETH", ProviderSymbol: "eth", Pool: provider + "/old", Start: start.UnixNano(), Interval: 86400,
				Open: open, High: max(open, closing) + random.Float64(), Low: min(open, closing) - random.Float64(), Close: closing, Mean: (open + closing) / 2, N: 2}}})
		}
	}
	w.Must(batch.Insert(t.Context(), w.Store, ""))
	var body charts.RateChartBody
	w.read("/api/v1/charts/ethereum/rates/staking?timeframe=max", &body)
	var merged []charts.RatePoint
	for _, p := range body.Data.DataPoints {
		if p.Intervals > 1 {
			merged = append(merged, p)
		}
	}
	if len(merged) == 0 {
		t.Fatalf("no point of %d is merged", len(body.Data.DataPoints))
	}
	for range min(6, len(merged)) {
		p := merged[random.IntN(len(merged))]
		answered := map[string]float64{"open": p.Open, "high": p.High, "low": p.Low, "close": p.Close, "providers": float64(p.Providers)}
		for field, value := range answered {
			n := w.reproduced(fmt.Sprintf("rate-points/ethereum/staking/all/1d/%d/%d/%s", p.Timestamp, p.Intervals, field), "", true)
			of := make([]float64, len(n.Inputs))
			for i, in := range n.Inputs {
				of[i] = *w.reproduced(in.Number, "", true).Value
			}
			if len(of) != p.Intervals || *n.Value != value {
				t.Fatalf("%s: got %v of %v, want %v of %d days", n.Number, *n.Value, of, value, p.Intervals)
			}
			want := map[string]float64{"open": of[0], "close": of[len(of)-1], "high": slices.Max(of), "low": slices.Min(of), "providers": of[0]}[field]
			if want != value {
				t.Errorf("%s: answered %v, want %v of %v", n.Number, value, want, of)
			}
		}
	}
	last := body.Data.DataPoints[len(body.Data.DataPoints)-1]
	base := "rate-points/ethereum/staking/all/1d/"
	w.answered(map[string]int{
		fmt.Sprintf("%s%d/1/close", base, last.Timestamp):  http.StatusOK,
		fmt.Sprintf("%s%d/2/close", base, last.Timestamp):  http.StatusNotFound,
		fmt.Sprintf("%s%d/0/close", base, last.Timestamp):  http.StatusBadRequest,
		fmt.Sprintf("%s%d/51/close", base, last.Timestamp): http.StatusBadRequest,
		fmt.Sprintf("%s%d/2/mean", base, last.Timestamp):   http.StatusNotFound,
	})
}
