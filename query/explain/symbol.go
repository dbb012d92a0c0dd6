package explain

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// Symbols is what decides which coin a symbol means.
type Symbols interface {
	// Asked is what a question is decided on now: the request with its price in USD, the exchange rate that this was converted by, nil for none, and what decides.
	Asked(q schemas.SymbolQuestion, at time.Time) (req schemas.SymbolRequest, rate *eventsv1.QuoteRate, by *schemas.Resolver)
	// AskedAt is Asked as of a past instant, of the coins that were served then, with a price in USD. Fault says, once something was resolved, why a price of then
	// could not be read.
	AskedAt(ctx context.Context, q schemas.SymbolQuestion, coins *views.Snapshot, at time.Time) (req schemas.SymbolRequest, by *schemas.Resolver, fault func() error, err error)
	// Mappings are those of symbols that hold now, MappingsAsOf those that held at a past instant; it fails with a *views.AgedOutError where that is not kept any more.
	Mappings(ctx context.Context, now time.Time) ([]schemas.SymbolMapping, error)
	MappingsAsOf(ctx context.Context, at time.Time) ([]schemas.SymbolMapping, error)
}

// symbolRules are what methods of resolving a symbol are sure of, as docs/symbols.md has them.
var symbolRules = map[schemas.SymbolMethod]string{
	schemas.MethodOverride: "100: an operator's word",
	schemas.MethodProvider: "100 for a source's own id of the coin and for its contract address, 95 for an address without its platform; at most 85 if the price is not the coin's",
	schemas.MethodExchange: "100 where the coin table names this spelling of the venue, 95 for an old name that any venue may use; at most 85 if the price is not the coin's",
	schemas.MethodUnique:   "90: one coin alone has the symbol",
	schemas.MethodPrice:    "85: one coin alone has the given price within 10 %, and all others are over 30 % away from it",
	schemas.MethodDatabase: "80 + 10 x (1 - square root of the share of the largest other coin), rounded down: of market caps, else of ranks",
	schemas.MethodRanking:  "70 + 30 x (1 - square root of the share of the largest other coin), rounded down: of market caps, else of ranks; at most 84 beyond rank 1000 or beside one that no ranking holds",
	schemas.MethodSearch:   "80 for the very name, 75 for an id, 70 for the beginning of one name, 65 for the likeliest of several and for one whose price is not the given one",
}

// symbolVersion is that of the rules of docs/symbols.md.
const symbolVersion = 1

const fieldConfidence, fieldUnits, fieldScore = "confidence", "units", "score"

// symbol explains a number of the answer to which coin a symbol means. The question is decided once more on what records of the log state: the sizes and prices of
// the coins that came into question, what a source says of a contract, operators' overrides and the exchange rate of the price. The coin table is part of the service.
func (w *work) symbol(ctx context.Context, name string, parts []string, depth int) (*Node, error) {
	q, field, ok := schemas.ParseSymbolQuestion(parts[1:])
	switch {
	case !ok || len(field) == 0:
		return nil, unknown(name, "")
	case !slices.Contains([]string{fieldConfidence, fieldUnits, fieldScore}, field[0]):
		return nil, w.nearField(name, parts, len(parts)-len(field), []string{fieldConfidence, fieldUnits, fieldScore})
	case (field[0] == fieldScore) != (len(field) == 2) || len(field) > 2:
		return nil, unknown(name, "")
	}
	asked, err := w.symbolAsked(ctx, q)
	if err != nil {
		return nil, err
	}
	by, got := asked.by, asked.by.Resolve(asked.req)
	if err := asked.fault(); err != nil {
		return nil, err
	}
	value := symbolNumber(got, field)
	if value == nil {
		ids := namesOf(got.Candidates, func(c schemas.SymbolCandidate) string { return c.Coin.ID })
		return nil, w.nearField(name, parts, len(parts)-1, ids)
	}
	n := headline("symbol/"+q.String()+"/"+strings.Join(field, "/"), value, percent, asked.at.UnixNano())
	n.Method = symbolMethod(got, field)
	if n.Number = strings.ToValidUTF8(n.Number, "\uFFFD"); field[0] == fieldUnits {
		n.Unit = ""
	}
	if !w.expands(depth) {
		return n, nil
	}
	of := loggedSymbols{work: w, asked: asked, coins: map[string]schemas.SymbolCoin{}, depth: max(depth-1, 1)}
	if err := of.read(ctx, q, got); err != nil {
		return nil, err
	}
	if n.Inputs = of.inputs; of.lost != "" {
		n.notReproduced("not computed again: " + of.lost)
	} else {
		again := (&schemas.Resolver{Table: by.Table, Catalog: of, Overrides: schemas.NewSymbolOverrides(of.overrides...)}).Resolve(of.req)
		n.compare(symbolNumber(again, field))
		if again.Method != got.Method { // the same number by another rule is another one
			n.notReproduced(fmt.Sprintf("what the log has is decided by %q", again.Method))
		}
	}
	if depth <= 1 {
		for _, in := range n.Inputs {
			in.Inputs, in.LeftOut = nil, nil
		}
	}
	n.fewer(false)
	return n, nil
}

// askedSymbol is what a question is decided on: now, or as of a past instant.
type askedSymbol struct {
	req  schemas.SymbolRequest
	rate *eventsv1.QuoteRate
	by   *schemas.Resolver
	// fault is why a price could not be read that was asked for.
	fault func() error
	coins *views.Snapshot
	at    time.Time
}

func (w *work) symbolAsked(ctx context.Context, q schemas.SymbolQuestion) (a askedSymbol, err error) {
	if !w.past {
		a = askedSymbol{coins: w.snapshot, at: w.now, fault: func() error { return nil }}
		a.req, a.rate, a.by = w.Symbols.Asked(q, w.now)
		return a, nil
	}
	coins, err := w.coinsServed(ctx)
	if err != nil {
		return a, err
	}
	a = askedSymbol{coins: coins, at: w.asOf}
	a.req, a.by, a.fault, err = w.Symbols.AskedAt(ctx, q, coins, w.asOf)
	return a, err
}

// symbolNumber is a number of an answer; nil for the score of a coin that did not come into question.
func symbolNumber(got schemas.ResolvedSymbol, field []string) *float64 {
	switch field[0] {
	case fieldConfidence:
		return known(float64(got.Confidence))
	case fieldUnits:
		return known(max(got.Units, 1))
	}
	for _, c := range got.Candidates {
		if c.Coin.ID == field[1] {
			return known(float64(c.Score))
		}
	}
	return nil
}

// symbolMethod is the rule that made a number of an answer.
func symbolMethod(got schemas.ResolvedSymbol, field []string) *Method {
	m := &Method{Name: string(got.Method), Version: symbolVersion, Formula: symbolRules[got.Method]}
	if got.Coin == nil {
		m.Name, m.Formula = "unresolved", "0: no rule can decide"
	}
	switch {
	case field[0] == fieldUnits:
		m.Name, m.Formula = "units-of-symbol", "the number before three letters or more where nothing has the symbol as given (1000000, 100000, 10000, 1000, or 1M for a million), else 1"
	case got.Coin == nil:
	case got.Units != 1 && got.Method != schemas.MethodOverride:
		m.Formula += "; of a number of units at most 85, or 80 of a coin outside the coin table"
	}
	if field[0] == fieldScore && got.Coin != nil && got.Coin.ID != field[1] {
		m.Formula = fmt.Sprintf("confidence (%d) x square root of its size as a fraction of that of %s, at most 1, rounded down: of market caps, else of ranks; 0 where a hint excludes it", got.Confidence, got.Coin.ID)
	}
	return m
}
