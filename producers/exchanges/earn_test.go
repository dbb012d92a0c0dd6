package exchanges

import (
	"slices"
	"testing"

	"github.com/marketlog/marketlog/schemas"
)

// Who is an exchange of ours is one in the benchmark of earn products too, and nobody else is.
func TestEveryVenueIsOfTheSegmentCeFi(t *testing.T) {
	var venues []string
	for _, venue := range List() {
		venues = append(venues, venue.Slug)
		if got := schemas.EarnSegment(venue.Slug); got != schemas.EarnCeFi {
			t.Errorf("%s: got segment %s, want %s", venue.Slug, got, schemas.EarnCeFi)
		}
	}
	if !slices.Equal(schemas.EarnExchanges, venues) {
		t.Errorf("schemas.EarnExchanges is %q, want the venues %q", schemas.EarnExchanges, venues)
	}
	for _, protocol := range []string{"aave-v3", "binance-staked-eth", "coinbase-wrapped-staked-eth"} {
		if got := schemas.EarnSegment(protocol); got != schemas.EarnDeFi {
			t.Errorf("%s: got segment %s, want %s", protocol, got, schemas.EarnDeFi)
		}
	}
}
