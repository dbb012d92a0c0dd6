package ws

import (
	"slices"
	"testing"

	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
)

// Frax has the symbol that is the id of another coin: each can be subscribed to.
func TestSubscriptionsNameCoinsAsAllOperationsDo(t *testing.T) {
	legacy, _ := schemas.Coins().ByID("frax")
	frax, _ := schemas.Coins().ByID("frax-share")
	ranks, unknown := find(views.NewCatalog(schemas.Coins()).Snapshot(), []string{"frax", " FRAX ", "id:frax", "fxs", "nosuch", "id:btc"})
	if want := []int{legacy.Rank, frax.Rank, legacy.Rank, frax.Rank}; !slices.Equal(ranks, want) || !slices.Equal(unknown, []string{"nosuch", "id:btc"}) {
		t.Errorf("got ranks %v and unknown %v, want %v", ranks, unknown, want)
	}
}
