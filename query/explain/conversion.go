package explain

import (
	"context"
	"strings"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
)

// conversion explains what one unit of a currency or coin costs that prices are stated in (vs), in USD.
func (w *work) conversion(ctx context.Context, text string, depth int) (*Node, error) {
	if why := w.converter.Check(text); why != "" {
		return nil, query.Invalid("number", "what prices are stated in %s", why)
	}
	vs := strings.ToLower(text)
	coin, isCoin := w.converter.Coin(vs)
	if !isCoin && strings.EqualFold(vs, schemas.USD) {
		n := headline("vs/"+vs, known(1), usd, 0)
		n.Method = &Method{Name: "definition", Version: 1, Formula: "one US dollar costs one"}
		n.compare(known(1))
		return n, nil
	}
	in, c, err := w.convertsBy(ctx, vs, coin, isCoin, max(depth-1, 1))
	if err != nil {
		return nil, err
	}
	used, again := in.Value, in.again()
	n := headline("vs/"+vs, nil, usd, 0)
	n.Time = in.Time
	if isCoin {
		n.Method = &Method{Name: "price", Version: 1, Formula: "the price of the coin"}
	} else {
		n.Method = &Method{Name: "inverse", Version: 1, Formula: "1 / units of the currency for one US dollar"}
		used, again = inverse(used), inverse(again)
	}
	if n.Value = used; !w.past { // what answers convert by
		n.Value = &c.USD
	}
	n.compare(again)
	if depth <= 1 {
		in.Inputs, in.LeftOut = nil, nil
	}
	if n.Inputs = []*Node{in}; depth <= 0 {
		n.Inputs = nil
	}
	return n, nil
}

// convertTries is how often a conversion and its input are read until they are of one moment.
const convertTries = 3

// convertsBy is the number that a conversion follows from, and the conversion as answers have it, which has no meaning for the past. A price may be published while
// the log is read for it: the conversion is that of before or of after, and both are read again where neither is of the price.
func (w *work) convertsBy(ctx context.Context, vs string, coin schemas.Coin, isCoin bool, depth int) (in *Node, c views.Conversion, err error) {
	for range convertTries {
		before, _ := w.converter.To(vs, w.now)
		if in, err = w.conversionInput(ctx, vs, coin, isCoin, depth); err != nil || w.past {
			return in, c, err
		}
		known := false
		if c, known = w.converter.To(vs, w.now); !known {
			return nil, c, query.NotFound("no rate of %s is known", vs)
		}
		used := in.Value
		if !isCoin {
			used = inverse(used)
		}
		switch {
		case used == nil || c.USD == *used:
			return in, c, nil
		case before.USD == *used:
			return in, before, nil
		}
	}
	return in, c, nil
}

// conversionInput is the number that a conversion follows from.
func (w *work) conversionInput(ctx context.Context, vs string, coin schemas.Coin, isCoin bool, depth int) (*Node, error) {
	if !isCoin {
		code := strings.ToUpper(vs)
		return w.currency(ctx, "fiat/"+code, code, depth)
	}
	of := &views.CatalogCoin{ID: coin.ID, Own: coin}
	if found, ok := w.snapshot.Find(coin.ID); ok {
		of = found.CatalogCoin
	}
	return w.price(ctx, of, priceFields[0], depth)
}

func inverse(of *float64) *float64 {
	if of == nil {
		return nil
	}
	return known(1 / *of)
}
