package explain_test

import (
	"net/http"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

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
