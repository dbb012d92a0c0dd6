package explain_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// What a provider pays is summed up again of the rates that the log has of it, of all coins; one that is served otherwise shows.
func TestRatesOfAProviderAreSummedUpAgain(t *testing.T) {
	w := newFixture(t)
	w.Now = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	w.Run("offered lido staking ethereum 0.03 apr_fraction")
	w.Run("offered lido staking bitcoin 0.01 apr_fraction")
	w.Run("offered lido staking tether 0.05 apr_fraction")
	w.Run("offered aave staking tether 0.09 apr_fraction")
	last := w.offered(&eventsv1.Rate{Source: "lido", Project: "lido", Category: "lending", Pool: "x", Symbol: "USDT", CoinId: "tether", Raw: "7", RawUnit: "apy_percent",
		Interval: int64(time.Hour), IngestTime: w.Now.UnixNano()})
	w.Now = w.Now.Add(time.Minute)
	w.Run("rated 2026-11-20T10:01:00Z")
	least := w.reproduced("provider-rates/lido/staking/minRate", "?depth=2", true)
	if *least.Value > 1.01 || len(least.Inputs) != 3 || least.Inputs[0].Reproduced == nil || len(least.Inputs[0].Records) == 0 {
		t.Errorf("got %+v, want the least of three rates", least)
	}
	greatest, mean := w.reproduced("provider-rates/lido/staking/maxRate", "", true), w.reproduced("provider-rates/lido/staking/averageRate", "", true)
	if *greatest.Value < 5 || *greatest.Value > 6 || *mean.Value <= *least.Value || *mean.Value >= *greatest.Value {
		t.Errorf("got a mean of %g between %g and %g", *mean.Value, *least.Value, *greatest.Value)
	}
	changed := proto.CloneOf(last)
	changed.Apy = 8
	w.RateFolded(&eventsv1.RateRecord{Body: &eventsv1.RateRecord_Entry{Entry: changed}})
	w.Run("rated 2026-11-20T10:01:00Z")
	if n := w.reproduced("provider-rates/lido/lending/averageRate", "", false); n.Recomputed == nil || *n.Recomputed != 7 {
		t.Errorf("got %+v, want 7 of the log", n)
	}
	w.answered(map[string]int{
		"provider-rates/lido/staking/medianRate":  http.StatusNotFound,
		"provider-rates/lido/price/minRate":       http.StatusNotFound,
		"provider-rates/lido/borrowing/minRate":   http.StatusNotFound,
		"provider-rates/nobody/staking/minRate":   http.StatusNotFound,
		"provider-rates/lido/staking/minRate/now": http.StatusNotFound,
	})
}

// An answer of a coin's rates has its own account of each; as of an instant it has the explanations of its numbers, those of what was served then.
func TestRatesAsOfAnInstantExplainTheirNumbers(t *testing.T) {
	w := newFixture(t)
	w.Now = time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)
	ended := func() { // a minute of the rates, in the log too
		rec := &eventsv1.RateRecord{Mark: &eventsv1.Mark{LogicVersion: 2, Offset: schemas.Minute(w.Now.UnixNano())}, Body: &eventsv1.RateRecord_Pulse{Pulse: &eventsv1.Pulse{Now: w.Now.UnixNano(), Watermark: w.Now.UnixNano()}}}
		w.append(schemas.TopicRates, 0, "pulse", w.Now.UnixNano(), rec)
		w.flush()
		w.RateFolded(rec)
		w.Now = w.Now.Add(20 * time.Second)
	}
	w.Run("offered aave lending tether 0.02 apr_fraction") // what was served follows from an hour of the log
	w.Now = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	steps := w.Prices.Steps()
	w.Yields.RememberBy(func() time.Time { return w.Now }, steps)
	steps.Begin(func() time.Time { return w.Now })
	w.Run("offered lido staking ethereum 0.03 apr_fraction")
	w.Now = w.Now.Add(time.Minute)
	ended()
	asOf := w.Now.Format(time.RFC3339)
	before, _ := w.explained("/api/v1/rates/ethereum?category=staking&explain=1&asOf=" + asOf)
	w.Now = w.Now.Add(40 * time.Second)
	w.Run("offered lido staking ethereum 0.04 apr_fraction")
	w.Now = w.Now.Add(time.Minute)
	ended()
	numbers, in := w.explained("/api/v1/rates/ethereum?category=staking&explain=1&asOf=" + asOf)
	if !slices.Contains(numbers, "rate/lido/staking/ethereum/main") && !slices.Contains(numbers, "rate/lido/staking/ethereum~2Fmain") || !slices.Equal(before, numbers) {
		t.Fatalf("got explanations of %s, and %s later", before, numbers)
	}
	for _, n := range in.Numbers {
		if *n.Value > 3.1 {
			t.Errorf("%s is %g as of an instant at which it was 3", n.Number, *n.Value)
		}
	}
	if now, _ := w.explained("/api/v1/rates/ethereum?category=staking&explain=1"); len(now) != 0 {
		t.Errorf("got explanations %s beside the answer's own account of its rates", now)
	}
}
