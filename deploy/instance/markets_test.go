package instance

import (
	"testing"

	"github.com/marketlog/marketlog/producers/adapter"
)

func TestMarketsOfWellKnownCoinsAndOfStablecoinsAreSubscribed(t *testing.T) {
	picked := SelectMarkets("bitfinex", nil)
	for _, tc := range []struct {
		base, quote string
		want        bool
	}{
		{"BTC", "USD", true},
		{"BTC", "UST", true},
		{"CNHT", "USD", true}, // rank 653
		{"EUS", "USD", true},  // an alias, rank 645
		{"REVV", "USD", false},
		{"BTC", "CNHT", true},
		{"BTC", "LEO", false}, // nothing converts it
		{"EUR", "USD", true},
		{"EUR", "UST", false},
		{"NOSUCH", "USD", false},
	} {
		if got := picked(adapter.Instrument{Symbol: "t" + tc.base + ":" + tc.quote, Base: tc.base, Quote: tc.quote}); got != tc.want {
			t.Errorf("%s in %s: got %v, want %v", tc.base, tc.quote, got, tc.want)
		}
	}
	if !SelectMarkets("bitfinex", []string{"trevv:usd"})(adapter.Instrument{Symbol: "tREVV:USD", Base: "REVV", Quote: "USD"}) {
		t.Error("a market that is configured by its symbol is left out")
	}
}
