package globalstats

import (
	"testing"

	"github.com/marketlog/marketlog/query"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

func TestCategorizedIsTheShareOfTheMarketCapWithCategories(t *testing.T) {
	capped := func(marketCap float64, categories ...string) *query.CatalogCoin {
		return &query.CatalogCoin{Market: &eventsv1.Market{MarketCap: &marketCap}, Categories: categories}
	}
	if got := categorized([]*query.CatalogCoin{capped(60, "Layer 1"), capped(15, "DeFi"), capped(25), {}}); got == nil || *got != 75 {
		t.Errorf("got %v, want 75", got)
	}
	if got := categorized([]*query.CatalogCoin{{Categories: []string{"DeFi"}}}); got != nil {
		t.Errorf("without a market cap: got %v, want nothing", *got)
	}
}
