package explain

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
)

// categoryField is a sum over the coins of a category, or what follows from sums.
type categoryField struct {
	name, unit, formula string
	value               func(*schemas.CategorySums) *float64
	// parts are the fields of rows that it is made of; a coin counts that has all of them.
	parts []string
}

var categoryFields = []categoryField{
	{"marketCap", usd, "sum of marketCap over the coins that sources put in the category, in the order of rank", (*schemas.CategorySums).MarketCap, []string{"marketCap"}},
	{"volume24h", usd, "sum of volume24h over the coins that sources put in the category, in the order of rank", (*schemas.CategorySums).Volume24H, []string{"volume24h"}},
	{"marketCapChangePercentage24h", percent, "100 x (sum of marketCap - before) / before, where before is the sum of marketCap - marketCapChange24h, over the coins of which both are known",
		(*schemas.CategorySums).MarketCapChangePercentage24H, []string{"marketCap", "marketCapChange24h"}},
}

func categoryFieldNames() []string {
	return namesOf(categoryFields, func(f categoryField) string { return f.name })
}

// coinsByCategory are the coins of each category in the order of rank, by its id, as sources describe them.
func (w *work) coinsByCategory(snapshot *views.Snapshot) map[string][]*views.CatalogCoin {
	if w.categories != nil {
		return w.categories
	}
	all, ids := map[string][]*views.CatalogCoin{}, map[string]string{}
	for _, coin := range snapshot.Coins {
		for _, name := range coin.Categories {
			id, known := ids[name]
			if !known {
				id = schemas.CategoryID(name)
				ids[name] = id
			}
			// Two names of a coin may have one id.
			if coins := all[id]; id != "" && (len(coins) == 0 || coins[len(coins)-1] != coin) {
				all[id] = append(coins, coin)
			}
		}
	}
	w.categories = all
	return all
}

// category explains a sum over the coins of a category. Which coins it has is what sources had last said of them, one by one over days;
// what the sum is made of is read from the log again.
func (w *work) category(ctx context.Context, name string, parts []string, depth int) (*Node, error) {
	i := slices.IndexFunc(categoryFields, func(f categoryField) bool { return f.name == parts[2] })
	snapshot, err := w.coinsServed(ctx)
	if err != nil {
		return nil, err
	}
	coins, known := w.coinsByCategory(snapshot)[parts[1]]
	switch {
	case !known:
		return nil, w.nearField(name, parts, 1, slices.Sorted(maps.Keys(w.categories)))
	case i < 0:
		return nil, w.nearField(name, parts, 2, categoryFieldNames())
	case snapshot.Time == 0:
		return nil, query.Starting("no minute of the market was folded yet")
	}
	field := categoryFields[i]
	rows, err := w.servedRows(ctx, snapshot)
	if err != nil {
		return nil, err
	}
	served, again := &schemas.CategorySums{}, &schemas.CategorySums{}
	var inputs []*Node
	for _, coin := range coins {
		if coin.Market == nil {
			continue
		}
		w.simulated = w.simulated || coin.Market.Simulated
		served.Add(coin.Market)
		if row, err := w.rowAgain(ctx, rows, coin); err != nil {
			return nil, err
		} else if row != nil {
			again.Add(row)
		}
		var of []*Node
		for _, part := range field.parts {
			partField, _ := marketFieldNamed(part)
			if in := rowInput(coin, partField); in.Value != nil {
				of = append(of, in)
			}
		}
		if len(of) == len(field.parts) {
			inputs = append(inputs, of...)
		}
	}
	n := headline(strings.Join(parts, "/"), field.value(served), field.unit, snapshot.Time)
	n.Method = &Method{Name: "category-sum", Version: 1, Formula: field.formula}
	if n.Inputs = inputs; rows.lacks > 0 {
		rows.notReproduced(n)
	} else {
		n.compare(field.value(again))
	}
	n.fewer(len(field.parts) == 1)
	return n, w.traceRows(ctx, rows, n.Inputs, depth-1)
}
