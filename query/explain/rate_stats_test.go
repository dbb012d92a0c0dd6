package explain_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/marketlog/marketlog/query/charts"
	"github.com/marketlog/marketlog/query/rates"
)

// stated asks for numbers of a chart or a series of rates, and holds them against what it was answered with.
func (w *fixture) stated(subject, from, until string, want map[string]*float64) {
	w.T.Helper()
	for field, value := range want {
		if value == nil {
			continue
		}
		n := w.reproduced(fmt.Sprintf("%s/%s/%s/%s", subject, from, until, field), "", true)
		if *n.Value != *value || len(n.Inputs) == 0 {
			w.T.Errorf("%s of %s from %s until %s: got %+v, want %g with its inputs", field, subject, from, until, n, *value)
		}
	}
}

func (w *fixture) statedOfChart(body charts.RateChartBody) {
	w.T.Helper()
	d := body.Data
	w.stated("rate-chart-stats/"+d.CoinID+"/"+d.Category+"/"+d.Provider+"/"+d.Resolution, d.Stats.From, d.Stats.Until,
		map[string]*float64{"minRate": d.Stats.MinRate, "maxRate": d.Stats.MaxRate, "avgRate": d.Stats.AvgRate, "changePct": d.Stats.ChangePct})
}

func (w *fixture) statedOfSeries(s rates.Series) {
	w.T.Helper()
	w.stated("rate-series-stats/"+s.Provider+"/"+s.CoinID+"/"+s.Category+"/1d", s.Stats.From, s.Stats.Until, map[string]*float64{"minRate": &s.Stats.MinRate, "maxRate": &s.Stats.MaxRate,
		"avgRate": &s.Stats.AvgRate, "latestRate": &s.Stats.LatestRate, "changePct": s.Stats.ChangePct, "tvlUsd": s.TVLUSD})
}

// What the points of charts and series of rates did is worked out again of the same points: of what single rates did in hours and days, and of the rates that the
// log has for the hour under way; and later the same, when rates have changed.
func TestStatsOfRatesAreReproduced(t *testing.T) {
	w := newFixture(t)
	last := w.staked(time.Date(2026, 11, 20, 10, 37, 0, 0, time.UTC))
	var drawn []charts.RateChartBody
	for _, chart := range []string{"timeframe=1h", "timeframe=24h", "timeframe=30d", "timeframe=7d&provider=lido"} {
		var body charts.RateChartBody
		w.read("/api/v1/charts/ethereum/rates/staking?"+chart, &body)
		if body.Data.Stats.Until != "2026-11-20T10:37:00.000Z" {
			t.Errorf("%s: the stats are until %s, want the minute of the rates", chart, body.Data.Stats.Until)
		}
		drawn = append(drawn, body)
	}
	var listed rates.SeriesBody
	w.read("/api/v1/rates/history?coin=ethereum&country=DE&product=staking-rewards", &listed)
	if len(listed.Data.Series) != len(stakers) {
		t.Fatalf("got %d series, want %d", len(listed.Data.Series), len(stakers))
	}
	for _, body := range drawn {
		w.statedOfChart(body)
	}
	for _, s := range listed.Data.Series {
		w.statedOfSeries(s)
	}
	day := drawn[1].Data.Stats
	change := w.reproduced("rate-chart-stats/ethereum/staking/all/1h/"+day.From+"/"+day.Until+"/changePct", "?depth=2", true)
	if first, last := change.Inputs[0], change.Inputs[1]; first.Reproduced == nil || !*first.Reproduced || len(first.Inputs) == 0 || last.Note == "" {
		t.Errorf("got %+v and %+v, want a point that is made again of its providers, and one that had not ended", first, last)
	}

	w.Now = w.Now.Add(5 * time.Minute)
	changed := proto.CloneOf(last.Said)
	changed.Raw, changed.IngestTime = "99", w.Now.UnixNano()
	w.offered(changed)
	w.Run("rated " + w.Now.Format(time.RFC3339))
	var newer rates.SeriesBody
	w.read("/api/v1/rates/history?coin=ethereum&country=DE&product=staking-rewards", &newer)
	of := func(body rates.SeriesBody) rates.Series {
		return body.Data.Series[slices.IndexFunc(body.Data.Series, func(s rates.Series) bool { return s.Provider == changed.Project })]
	}
	if of(newer).Stats.LatestRate < 90 { // others are of up to 5
		t.Errorf("the latest rate is %g, want that of 99 which it changed to", of(newer).Stats.LatestRate)
	}
	w.statedOfSeries(of(newer))
	w.statedOfSeries(of(listed))
	w.statedOfChart(drawn[1])
}

// What tables have of a rate and the log has not shows.
func TestStatsOfRatesThatDifferAreNotReproduced(t *testing.T) {
	w := newFixture(t)
	last := w.staked(time.Date(2026, 11, 20, 10, 37, 0, 0, time.UTC))
	w.Must(w.Store.Conn().Exec(t.Context(), "INSERT INTO rates SELECT * REPLACE (apy + 1000 AS apy, version + 1 AS version) FROM rates FINAL WHERE provider = ?", last.Provider))
	for _, number := range []string{"rate-series-stats/" + last.Provider + "/ethereum/staking/1h/2026-11-20T09:00:00Z/2026-11-20T10:37:00Z/maxRate",
		"rate-chart-stats/ethereum/staking/" + last.Provider + "/1h/2026-11-20T09:00:00Z/2026-11-20T10:37:00Z/avgRate"} {
		if n := w.reproduced(number, "", false); n.Recomputed == nil || *n.Value < 300 || *n.Recomputed > 20 {
			t.Errorf("got %+v, want what tables have, and what the log has recomputed", n)
		}
	}
}

func TestStatsOfRatesNameWhatTheyLack(t *testing.T) {
	w := newFixture(t)
	w.staked(time.Date(2026, 11, 20, 10, 37, 0, 0, time.UTC))
	const chart, series = "rate-chart-stats/ethereum/staking/all/1h/", "rate-series-stats/lido/ETH/staking/1h/"
	w.answered(map[string]int{
		chart + "2026-11-20T09:00:00Z/2026-11-20T10:37:00Z/avgRate":                                      http.StatusOK,
		series + "2026-11-20T09:00:00Z/2026-11-20T10:37:00Z/tvlUsd":                                      http.StatusOK,
		series + "2026-11-20T09:00:00Z/2026-11-20T10:37:00Z/latestRate":                                  http.StatusOK,
		chart + "2026-11-20T09:00:00Z/2026-11-20T10:37:00Z/latestRate":                                   http.StatusNotFound,
		chart + "2026-11-20T09:00:00Z/2026-11-20T10:37:00Z/mean":                                         http.StatusNotFound,
		chart + "2026-11-20T09:30:00Z/2026-11-20T10:37:00Z/avgRate":                                      http.StatusBadRequest,
		chart + "2026-11-20T09:00:00Z/2026-11-20T10:37:30Z/avgRate":                                      http.StatusBadRequest,
		chart + "2026-11-20T09:00:00Z/2026-11-20T08:37:00Z/avgRate":                                      http.StatusBadRequest,
		chart + "2026-11-20T09:00:00Z/2026-11-20T10:38:00Z/avgRate":                                      http.StatusNotFound,
		chart + "2016-11-20T09:00:00Z/2026-11-20T10:37:00Z/avgRate":                                      http.StatusPaymentRequired,
		chart + "2026-11-20T09:00:00Z/2026-11-20T10:37:00Z/avgRate?asOf=2026-11-20T10:36:00Z":            http.StatusNotFound,
		series + "2026-11-20T09:00:00Z/2026-11-20T10:37:00Z/avgRate?asOf=2026-11-20T10:37:00Z":           http.StatusOK,
		"rate-chart-stats/bitcoin/staking/all/1h/2026-11-20T09:00:00Z/2026-11-20T10:37:00Z/avgRate":      http.StatusNotFound,
		"rate-series-stats/nobody/ethereum/staking/1h/2026-11-20T09:00:00Z/2026-11-20T10:37:00Z/avgRate": http.StatusNotFound,
	})
}
