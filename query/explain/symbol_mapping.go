package explain

import (
	"context"
	"slices"
	"strings"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// mappingConfidences are what methods are sure of at least: the constants of the list of mappings.
var mappingConfidences = map[schemas.SymbolMethod]float64{
	schemas.MethodOverride: 100, schemas.MethodExchange: 95, schemas.MethodUnique: 90, schemas.MethodDatabase: 80,
}

// mappingRules say when a mapping is of a method.
var mappingRules = map[schemas.SymbolMethod]string{
	schemas.MethodOverride: "100: an operator's word",
	schemas.MethodExchange: "95: the coin table names the coin by another symbol, so that it is the one that knows this spelling",
	schemas.MethodUnique:   "90: one coin of the coin table has the symbol",
	schemas.MethodDatabase: "80: several coins of the coin table have the symbol, and this is the largest",
}

// symbolMapping explains how sure the mapping of a symbol is: the constant of its method, which follows from the coin table or from an operator's override.
func (w *work) symbolMapping(ctx context.Context, name string, parts []string, depth int) (*Node, error) {
	method := schemas.SymbolMethod(parts[1])
	if mappingRules[method] == "" {
		return nil, w.nearField(name, parts, 1, []string{string(schemas.MethodOverride), string(schemas.MethodExchange), string(schemas.MethodUnique), string(schemas.MethodDatabase)})
	}
	symbol := strings.Join(parts[3:], "/")
	all, err := w.mappings(ctx)
	if err != nil {
		return nil, err
	}
	var m schemas.SymbolMapping
	for _, held := range all { // the newest counts
		if held.Method == method && held.Source == parts[2] && held.Symbol == symbol && !held.Since.Before(m.Since) {
			m = held
		}
	}
	if m.Method == "" {
		return nil, query.NotFound("%s has no mapping of %s by %s", parts[2], symbol, method)
	}
	n := headline("symbol-mapping/"+string(method)+"/"+m.Source+"/"+m.Symbol, known(float64(m.Confidence)), percent, m.Since.UnixNano())
	n.Method = &Method{Name: string(method), Version: symbolVersion, Formula: mappingRules[method]}
	if method != schemas.MethodOverride {
		n.Note = "a constant of the rule: the coin table of this service, read with " + m.CoinID + ", decides which"
		again := mappedBy(w.Prices.Coins(), m)
		n.compare(known(mappingConfidences[again]))
		return n, nil
	}
	in, recorded, err := w.override(ctx, &eventsv1.SymbolOverride{Source: m.Source, Symbol: m.Symbol, CoinId: m.CoinID, Time: m.Since.UnixNano()})
	switch {
	case err != nil:
		return nil, err
	case recorded == nil || recorded.CoinId != m.CoinID:
		n.notReproduced("the record of the operator's override is not in the log any more")
	default:
		n.compare(known(mappingConfidences[schemas.MethodOverride]))
	}
	if n.Records = in.Records; w.expands(depth) {
		n.Inputs = []*Node{in}
	}
	return n, nil
}

// mappings are those of symbols that hold, or held at the instant asked for.
func (w *work) mappings(ctx context.Context) ([]schemas.SymbolMapping, error) {
	if !w.past {
		return w.Symbols.Mappings(ctx, w.now)
	}
	if w.mapped == nil {
		mapped, err := w.Symbols.MappingsAsOf(ctx, w.asOf)
		if err != nil {
			return nil, query.FaultOfPast(err, w.asOf)
		}
		w.mapped = mapped
	}
	return w.mapped, nil
}

// mappedBy is the method by which the coin table has a venue's symbol mean a coin.
func mappedBy(table *schemas.CoinTable, m schemas.SymbolMapping) schemas.SymbolMethod {
	coin, _ := table.ByID(m.CoinID)
	if !strings.EqualFold(coin.Symbol, m.Symbol) {
		return schemas.MethodExchange
	}
	if slices.ContainsFunc(table.All(), func(other schemas.Coin) bool {
		return other.ID != coin.ID && strings.EqualFold(other.Symbol, coin.Symbol)
	}) {
		return schemas.MethodDatabase
	}
	return schemas.MethodUnique
}
