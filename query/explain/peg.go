package explain

import (
	"context"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
)

const bps = "bps"

// peg explains how far a stablecoin lies from its peg.
func (w *work) peg(ctx context.Context, coin *views.CatalogCoin, depth int) (*Node, error) {
	code := coin.Own.Peg
	if code == "" {
		return nil, query.NotFound("%s has no peg in our table of coins", coin.ID)
	}
	price, err := w.price(ctx, coin, max(depth-1, 0))
	if err != nil {
		return nil, err
	}
	at := price.Time
	target := views.PegTarget{USD: 1}
	if code != schemas.USD {
		of, err := w.sources(ctx)
		if err != nil {
			return nil, err
		}
		target = of.fiat.PegTarget(of.snapshot, code, of.at)
	}
	n := &Node{Number: "peg/" + coin.ID, Unit: bps, Time: at}
	n.Method = &Method{Name: "peg-deviation", Version: 1, Formula: "(price - target) / target x 10000, the target in USD"}
	n.Inputs = []*Node{price}
	if price.Value == nil || target.USD <= 0 {
		n.Note = "the price or what a unit of " + code + " costs is not known"
		return n, nil
	}
	deviation := schemas.PegDeviationBps(*price.Value, target.USD)
	n.Value = &deviation
	in, again, err := w.pegTarget(ctx, code, target, depth-1)
	if err != nil {
		return nil, err
	}
	n.Inputs = append(n.Inputs, in)
	recomputed := schemas.PegDeviationBps(*price.Value, again)
	n.compare(&recomputed)
	return n, nil
}

// pegTarget is what a unit of the currency of a peg costs, and the same of the records that state it.
func (w *work) pegTarget(ctx context.Context, code string, target views.PegTarget, depth int) (n *Node, again float64, err error) {
	number := "peg-target/" + code
	switch {
	case code == schemas.USD:
		n = headline(number, &target.USD, usd, 0)
		n.Method = &Method{Name: "definition", Version: 1, Formula: "one US dollar costs one"}
		return n, 1, nil
	case target.Dollars == nil:
		rate, err := w.currency(ctx, "fiat/"+code, code, max(depth, 0))
		if err != nil {
			return nil, 0, err
		}
		n = headline(number, &target.USD, usd, 0)
		n.Method = &Method{Name: "inverse", Version: 1, Formula: "1 / units of " + code + " for one US dollar"}
		n.Inputs = []*Node{rate}
		again = 1 / *rate.Value
		n.compare(&again)
		return n, again, nil
	}
	n = headline(number, &target.USD, usd, 0)
	n.Method = &Method{Name: "reference-rate", Version: 1, Formula: "US dollars for one euro, divided by units of " + code + " for one euro, of the newest day"}
	for _, f := range []*eventsv1.Fixing{target.Dollars, target.Units} {
		if f == nil {
			continue
		}
		in, recorded, err := w.fixing(ctx, f)
		if err != nil {
			return nil, 0, err
		}
		n.Inputs = append(n.Inputs, in)
		rate := schemas.Float(recorded.Rate)
		if f == target.Dollars {
			again = rate
		} else {
			again /= rate
		}
	}
	n.compare(&again)
	return n, again, nil
}
