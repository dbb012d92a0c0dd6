package explain_test

import (
	"net/http"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// What comes with a rate is compared with the record in which its source reports it.
func TestTermsOfARateAreThoseOfItsSource(t *testing.T) {
	w := newFixture(t)
	w.Now = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	reported := &eventsv1.Rate{Source: "aave", Project: "aave-v3", Category: "lending", Pool: "0xabc/usdt", Symbol: "USDT", CoinId: "tether", Raw: "0.05", RawUnit: "apr_fraction",
		Compounding: "daily", Reward: "0.01", TvlUsd: "1200000.5", MinAmount: "10", MaxAmount: "5000", LockupDays: proto.Float64(30), NoticeDays: proto.Float64(7), CollateralUsd: "3.5", MaxLtv: "0.8",
		Interval: int64(time.Hour), IngestTime: w.Now.UnixNano()}
	entry := w.offered(reported)
	w.Run("rated 2026-11-20T10:00:00Z")
	for _, term := range []string{"apr", "tvlUsd", "collateralUsd", "maxLtv", "minAmount", "maxAmount", "lockupDays", "noticeDays"} {
		n := w.reproduced("rate-term/"+term+"/aave-v3/lending/0xabc/usdt", "", true)
		if term == "minAmount" && (*n.Value != 10 || n.Unit != "tether" || len(n.Records) != 1 || n.Records[0].Topic != "rates.raw.v1") {
			t.Errorf("got %+v, want 10 tether, as a record of rates.raw.v1 states it", n)
		}
		// By the symbol, and by the id that lists have.
		w.reproduced("rate-term/"+term+"/aave-v3/lending/USDT", "", true)
		w.reproduced("rate-term/"+term+"/aave-v3/lending/aave|lending|0xabc%2Fusdt", "", true)
	}
	changed := proto.CloneOf(entry)
	changed.TvlUsd = proto.Float64(7)
	w.RateFolded(&eventsv1.RateRecord{Body: &eventsv1.RateRecord_Entry{Entry: changed}})
	w.Run("rated 2026-11-20T10:01:00Z")
	if n := w.reproduced("rate-term/tvlUsd/aave-v3/lending/0xabc/usdt", "", false); n.Recomputed == nil || *n.Recomputed != 1200000.5 {
		t.Errorf("got %+v, want what the source stated", n)
	}
	w.answered(map[string]int{
		"rate-term/tvl/aave-v3/lending/0xabc/usdt":       http.StatusNotFound,
		"rate-term/tvlUsd/aave-v2/lending/0xabc/usdt":    http.StatusNotFound,
		"rate-term/rewardApy/aave-v3/lending/0xabc/usdt": http.StatusNotFound, // the entry has none
		"rate-term/tvlUsd/aave-v3/lending":               http.StatusNotFound,
	})
}
