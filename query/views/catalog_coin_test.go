package views_test

import (
	"testing"

	"github.com/marketlog/marketlog/query/views"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

func TestCategorizedShareIsTheShareOfTheMarketCapWithCategories(t *testing.T) {
	capped := func(marketCap float64, categories ...string) *views.CatalogCoin {
		return &views.CatalogCoin{Market: &eventsv1.Market{MarketCap: &marketCap}, Categories: categories}
	}
	if got := views.CategorizedShare([]*views.CatalogCoin{capped(60, "Layer 1"), capped(15, "DeFi"), capped(25), {}}); got == nil || *got != 75 {
		t.Errorf("got %v, want 75", got)
	}
	if got := views.CategorizedShare([]*views.CatalogCoin{{Categories: []string{"DeFi"}}}); got != nil {
		t.Errorf("without a market cap: got %v, want nothing", *got)
	}
}
