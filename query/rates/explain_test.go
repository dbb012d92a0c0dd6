package rates_test

import (
	"testing"

	"github.com/marketlog/marketlog/query/querytest"
	"github.com/marketlog/marketlog/query/rates"
)

// Each rate is worked out again by the version of the rule that its row names. A row that a newer version made is shown as it
// is and not called wrong; a row of a known version that comes out otherwise is.
func TestARateIsExplainedByTheRuleThatMadeIt(t *testing.T) {
	w := newFixture(t)
	for _, line := range []string{
		"now 2026-11-20T10:00:00Z",
		"rate unnamed lending ethereum 0 raw=12,apr_percent,monthly",
		"rate first lending ethereum 0 raw=12,apr_percent,monthly reward=2,2.2111962690672478 method=1",
		"rate newer lending ethereum 13 method=9 tier=0,,5", "rate rewarded lending ethereum 4 reward=1,7 method=1",
		"rate wrong lending ethereum 4 apy=4.5 method=1",
		"rated 2026-11-20T10:00:00Z",
	} {
		w.Run(line)
	}
	var answer rates.SymbolBody
	querytest.Decode(t, w.Base()+"/api/v1/rates/ETH?category=lending&explain=1", &answer)
	x := answer.Data.Explain
	if x == nil || x.Reproduced || len(x.Inputs) != 5 {
		t.Fatalf("got %+v, want five inputs of which not all are reproduced", x)
	}
	for _, in := range x.Inputs {
		want := map[string]struct {
			version    uint32
			reproduced bool
		}{"unnamed": {1, true}, "first": {1, true}, "newer": {9, false}, "rewarded": {1, false}, "wrong": {1, false}}[in.Provider]
		if in.MethodVersion != want.version || in.Reproduced != want.reproduced {
			t.Errorf("%s: got version %d, reproduced %v, want %+v", in.Provider, in.MethodVersion, in.Reproduced, want)
		}
		if in.Provider == "newer" && (in.Recomputed != nil || in.APY != 13) {
			t.Errorf("a row of a newer version: got %+v, want it as it is", in)
		}
		if (in.Provider == "rewarded" || in.Provider == "wrong") && (in.Recomputed == nil || *in.Recomputed != 4) {
			t.Errorf("%s: got %+v, want the APY that was worked out again", in.Provider, in)
		}
	}
}
