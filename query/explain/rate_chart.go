package explain

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
)

// providersField is the number of providers that a median is of.
const providersField = "providers"

// rateChart explains a number of a point of a chart of rates: the median over providers.
func (w *work) rateChart(ctx context.Context, name string, parts []string, depth int) (*Node, error) {
	field := parts[6]
	names := append(slices.Clone(rateSeriesFields), providersField)
	if !slices.Contains(names, field) {
		return nil, w.nearField(name, parts, 6, names)
	}
	l, err := w.rateLineNamed(name, parts, parts[1], parts[2])
	if err != nil {
		return nil, err
	}
	if l.provider = parts[3]; l.provider == views.AllProviders {
		l.provider = ""
	}
	of := field
	if field == providersField {
		of = "close"
	}
	points, err := w.rateLine(ctx, l, of)
	if err != nil {
		return nil, err
	}
	if len(points) == 0 {
		return nil, query.NotFound("no chart of rates of %s in %s has a point at %s", strings.ToValidUTF8(l.coinID, "�"), l.category, l.start.Format(time.RFC3339))
	}
	var served, again []float64
	providers := slices.Sorted(maps.Keys(points))
	for _, provider := range providers {
		p := points[provider]
		served = append(served, rateSeriesValue(p.served, of))
		if p.again != nil {
			again = append(again, rateSeriesValue(*p.again, of))
		}
	}
	n := headline(l.chartNumber(parts[3], field), nil, percent, l.start.UnixNano())
	if n.Method = (&Method{Name: "median-of-providers", Version: 1, Formula: "median over the providers of the " + field + " of each one's series"}); field == providersField {
		n.Unit, n.Method.Formula = "", "number of providers that have a point then"
		n.Value = known(float64(len(served)))
		n.compare(known(float64(len(again))))
	} else {
		n.Value = known(views.SumRates(served).Median)
		if len(again) == len(points) {
			n.compare(known(views.SumRates(again).Median))
		}
	}
	if lost := len(points) - len(again); lost > 0 {
		n.Note = fmt.Sprintf("not computed again: the points of %d of the providers could not be", lost)
		n.Reproduced, n.Recomputed = nil, nil
	}
	if depth <= 0 {
		return n, nil
	}
	for _, provider := range providers {
		l.provider = provider
		n.Inputs = append(n.Inputs, w.providerNode(l, points[provider], of, depth-1))
	}
	n.fewer(false)
	return n, nil
}

// chartNumber names a number of the point of a chart, of all providers or of one.
func (l rateLine) chartNumber(provider, field string) string {
	return strings.Join([]string{rateChartForm, l.coinID, l.category, provider, l.interval, l.start.Format(time.RFC3339), field}, "/")
}
