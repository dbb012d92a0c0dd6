package explain

import (
	"context"
	"slices"
	"strings"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// share is that of a coin among the largest, by its symbol or its id: a symbol means the largest coin that has it.
func share(s *eventsv1.Summary, coin string) *eventsv1.Share {
	for _, is := range []func(*eventsv1.Share) bool{
		func(of *eventsv1.Share) bool { return of.Symbol == coin },
		func(of *eventsv1.Share) bool { return of.CoinId == coin },
		func(of *eventsv1.Share) bool { return strings.EqualFold(of.Symbol, coin) },
	} {
		if i := slices.IndexFunc(s.Dominance, is); i >= 0 {
			return s.Dominance[i]
		}
	}
	return nil
}

// dominance explains the share that one of the largest coins has of the whole market: global/dominance/{coin}.
func (w *work) dominance(ctx context.Context, name string, parts []string, depth int) (*Node, error) {
	if parts[1] != "dominance" {
		return nil, w.nearField(name, parts, 1, []string{"dominance"})
	}
	m, err := w.whole(ctx)
	if err != nil {
		return nil, err
	}
	of := share(m.summary, parts[2])
	if of == nil {
		var names []string
		for _, of := range m.summary.Dominance {
			names = append(names, of.Symbol, of.CoinId)
		}
		return nil, w.nearField(name, parts, 2, names)
	}
	known := of.Symbol
	if share(m.summary, known) != of {
		known = of.CoinId
	}
	n := m.node("global/dominance/"+known, &of.Percent, percent, "marketCap of "+of.CoinId+" / totalMarketCap x 100")
	var again *float64
	for _, recomputed := range m.again.Dominance {
		if recomputed.CoinId == of.CoinId {
			again = &recomputed.Percent
		}
	}
	n.compare(again)
	for i := range m.ranked {
		if row := m.ranked[i].Row; row.CoinId == of.CoinId {
			n.Inputs = append(n.Inputs, headline("market/"+row.CoinId+"/marketCap", row.MarketCap, usd, row.Time))
		}
	}
	if err := w.deepen(ctx, m, n.Inputs, depth-1); err != nil {
		return nil, err
	}
	n.Inputs = append(n.Inputs, m.node("global/totalMarketCap", &m.summary.TotalMarketCap, usd, globalFields[0].formula))
	return n, nil
}
