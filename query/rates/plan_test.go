package rates_test

import (
	"testing"
	"time"

	"github.com/marketlog/marketlog/query/querytest"
	"github.com/marketlog/marketlog/query/rates"
	"github.com/marketlog/marketlog/query/views"
)

// Those without a key are served as the plan Free, which looks back seven days; a longer window is cut, and the answer says so.
func TestHistoryReachesAsFarAsThePlan(t *testing.T) {
	w := newFixture(t)
	w.Run("now 2026-11-20T10:00:00Z")
	w.Run("rate lido staking ethereum 2.5")
	w.Run("rated 2026-11-20T10:00:00Z")
	past := stored{w}
	base := querytest.ServeFree(t, func() time.Time { return w.Now },
		rates.New(w.Yields, w.Prices, w.Catalog, past, rates.Served{}, views.NewRateCharts(w.Yields, past), states{}, venues).Endpoints())
	for _, test := range []struct {
		asked, from, granularity string
		clamped                  bool
	}{
		{"", "2026-11-13T10:00:00.000Z", "raw", false},
		{"?days=7", "2026-11-13T10:00:00.000Z", "raw", false},
		{"?days=8", "2026-11-13T10:00:00.000Z", "raw", true},
		{"?days=1825", "2026-11-13T10:00:00.000Z", "raw", true},
		{"?days=1826", "2026-11-13T10:00:00.000Z", "raw", true},
		{"?from=2021-01-01T00:00:00Z", "2026-11-13T10:00:00.000Z", "raw", true},
		{"?from=2021-01-01T00:00:00Z&to=2021-01-02T00:00:00Z", "2026-11-13T10:00:00.000Z", "raw", true},
		{"?from=2026-11-19T00:00:00Z&days=30", "2026-11-19T00:00:00.000Z", "raw", false},
	} {
		var body rates.PastBody
		querytest.Decode(t, base+"/api/v1/rates/ETH/history"+test.asked, &body)
		clamped := map[string]int64(nil)
		if test.clamped {
			clamped = map[string]int64{"days": 7}
		}
		if m := body.Meta; m.From != test.from || m.Granularity != test.granularity || len(m.Clamped) != len(clamped) || m.Clamped["days"] != clamped["days"] {
			t.Errorf("%q: got from %s, %s, clamped %v; want %s, %s, %v", test.asked, m.From, m.Granularity, m.Clamped, test.from, test.granularity, clamped)
		}
	}
}
