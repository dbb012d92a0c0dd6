package cli

import (
	"testing"

	"github.com/marketlog/marketlog/producers/exchanges"
	"github.com/marketlog/marketlog/schemas"
)

// Who is an exchange of ours must be one in the benchmark of earn products too.
func TestEveryVenueIsOfTheSegmentCeFi(t *testing.T) {
	for _, venue := range exchanges.List() {
		if got := schemas.EarnSegment(venue.Slug); got != schemas.EarnCeFi {
			t.Errorf("%s: got segment %s, want %s", venue.Slug, got, schemas.EarnCeFi)
		}
	}
	for _, protocol := range []string{"aave-v3", "binance-staked-eth", "coinbase-wrapped-staked-eth"} {
		if got := schemas.EarnSegment(protocol); got != schemas.EarnDeFi {
			t.Errorf("%s: got segment %s, want %s", protocol, got, schemas.EarnDeFi)
		}
	}
}
