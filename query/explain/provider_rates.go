package explain

import (
	"context"
	"slices"
	"strings"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// providerStatistics are those of the rates of one provider, of all coins.
var providerStatistics = []string{"minRate", "maxRate", "averageRate"}

// providerRate explains a statistic of what a provider pays or takes in a category.
func (w *work) providerRate(ctx context.Context, name string, parts []string, depth int) (*Node, error) {
	provider, category, wanted := parts[1], parts[2], parts[3]
	switch {
	case !slices.Contains(providerStatistics, wanted):
		return nil, w.nearField(name, parts, 3, providerStatistics)
	case !slices.Contains(schemas.RateCategories, category):
		return nil, w.nearField(name, parts, 2, schemas.RateCategories)
	}
	of := rateStatistics[slices.Index(rateStatisticNames(), wanted)]
	n, err := w.statisticOf(ctx, of, category, func(e *eventsv1.RateEntry) bool { return e.Provider == provider }, depth)
	if n == nil && err == nil {
		return nil, query.NotFound("%s reports no rate in %s that counts", strings.ToValidUTF8(provider, "�"), category)
	}
	if err != nil {
		return nil, err
	}
	n.Number = "provider-rates/" + provider + "/" + category + "/" + of.name
	return n, nil
}
