package explain

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

const (
	priceInForm = "price-in"
	// everywhere is the region of a price of all venues.
	everywhere = "all"
)

// priceIn explains a number of a price in another currency, of all venues or of those that serve a country. In USD of all venues it is the price itself.
func (w *work) priceIn(ctx context.Context, coin *views.CatalogCoin, name string, parts []string, depth int) (*Node, error) {
	vs, region := strings.ToLower(parts[1]), parts[2]
	if why := w.converter.Check(vs); why != "" {
		return nil, query.Invalid("number", "what prices are stated in %s", why)
	}
	field := priceFields[0]
	if len(parts) == 5 {
		i := slices.IndexFunc(priceFields, func(f priceField) bool { return f.name == parts[4] })
		if i < 0 {
			return nil, w.nearField(name, parts, 4, priceFieldNames())
		}
		field = priceFields[i]
	}
	if region != everywhere {
		if region = query.Country(region); query.CheckCountry(region) != "" {
			return nil, query.Invalid("number", "the region must be all or the two letters of a country")
		}
	}
	if vs == strings.ToLower(usd) || field.unit != usd {
		return w.priceOfRegion(ctx, coin, field, region, depth)
	}
	// One input alone explains nothing: both are computed again.
	of, err := w.priceOfRegion(ctx, coin, field, region, max(depth-1, 1))
	if err != nil {
		return nil, err
	}
	quote, isCoin := w.converter.Coin(vs)
	rate, c, err := w.convertsBy(ctx, vs, quote, isCoin, max(depth-1, 1))
	if err != nil {
		return nil, err
	}
	n := headline(priceInNumber(vs, region, coin.ID, field), nil, strings.ToUpper(vs), 0)
	n.Time, n.Published = of.Time, of.Published
	n.Method = &Method{Name: "conversion", Version: 1, Formula: "price in USD x units of the currency for one US dollar"}
	convert := func(price, rate float64) float64 { return price * rate }
	if isCoin {
		n.Method.Formula = "price in USD / price of the coin that it is stated in"
		convert = func(price, rate float64) float64 { return price / rate }
	}
	if n.Value = converted(of.Value, rate.Value, convert); !w.past && of.Value != nil { // what answers convert by
		n.Value = known(c.From(*of.Value))
	}
	n.compare(converted(of.again(), rate.again(), convert))
	if n.Inputs = []*Node{of, rate}; depth <= 0 {
		n.Inputs = nil
	}
	if depth <= 1 {
		of.Inputs, of.LeftOut, rate.Inputs, rate.LeftOut = nil, nil, nil, nil
	}
	return n, nil
}

// converted is a price in another currency; nil where either is not known.
func converted(price, rate *float64, convert func(price, rate float64) float64) *float64 {
	if price == nil || rate == nil {
		return nil
	}
	return known(convert(*price, *rate))
}

func priceInNumber(vs, region, coinID string, field priceField) string {
	number := priceInForm + "/" + vs + "/" + region + "/" + coinID
	if field.name == fieldPrice {
		return number
	}
	return number + "/" + field.name
}

// priceOfRegion explains a number of a price in USD, of the venues that serve a country or of all.
func (w *work) priceOfRegion(ctx context.Context, coin *views.CatalogCoin, field priceField, region string, depth int) (*Node, error) {
	if region == everywhere {
		return w.price(ctx, coin, field, depth)
	}
	e, err := w.entry(ctx, coin)
	switch {
	case err != nil:
		return nil, err
	case e == nil:
		return nil, query.NotFound("no venue of ours makes a price of %s", coin.ID)
	}
	return w.regional(ctx, field, e.Latest, e.Mark.GetPartition(), region, depth)
}

// entry is the price of a coin that venues made; nil where there is none, or that of a source counts.
func (w *work) entry(ctx context.Context, coin *views.CatalogCoin) (*views.Entry, error) {
	if !w.past {
		spot, _ := w.Prices.Spot(w.snapshot, coin, w.now)
		return spot.Entry, nil
	}
	entries, err := w.Prices.AsOf(ctx, w.History, []schemas.Coin{coin.Own}, w.asOf)
	if err != nil {
		return nil, query.FaultOfPast(err, w.asOf)
	}
	return entries[coin.ID], nil
}

// regional explains a number of the median over the venues that serve a country: of the markets of the newest record, by the rule of that record.
func (w *work) regional(ctx context.Context, field priceField, p *eventsv1.Price, partition int32, region string, depth int) (*Node, error) {
	w.simulated = w.simulated || p.Simulated
	result, considered, isKnown := w.aggregatedIn(p, region)
	switch {
	case !isKnown:
		return nil, query.NotFound("version %d of the rule of prices is newer than this service", p.Method)
	case result.Reason != "":
		return nil, query.NotFound("the venues that serve %s make no price of %s now: %s", region, p.CoinId, result.Reason)
	}
	version := max(p.Method, 1)
	n := headline(priceInNumber(strings.ToLower(usd), region, p.CoinId, field), field.value(result), field.unit, p.Time)
	n.Published = query.FormatTime(p.Published)
	n.Method = &Method{Name: "median", Version: version, Formula: cmp.Or(field.formula, priceFormulas[version]) + "; of the venues that serve " + region}
	if depth <= 0 {
		return n, nil
	}
	recorded := (*eventsv1.Price)(nil)
	at, ok, err := w.find(ctx, schemas.TopicPrices, partition, p.Time, max(p.Time, p.Published)+int64(views.PublishedWithin), p.CoinId, func(rec eventsv1.Marked) bool {
		record, is := rec.(*eventsv1.PriceRecord)
		if price := record.GetPrice(); is && price.GetTime() == p.Time && price.GetPublished() == p.Published {
			recorded = price
		}
		return recorded != nil
	})
	switch {
	case err != nil:
		return nil, err
	case !ok:
		n.notReproduced("the record of its markets is not in the log any more")
	default:
		n.Records = []Place{at}
		again, _, _ := w.aggregatedIn(recorded, region)
		n.compare(field.value(again))
	}
	w.addVotes(ctx, n, considered)
	for _, in := range p.Inputs {
		if !w.Providers[in.Provider].Available(region) {
			out := w.vote(ctx, in, n.Records)
			out.Note = fmt.Sprintf("does not count: %s does not serve %s", in.Provider, region)
			n.Inputs = append(n.Inputs, out)
		}
	}
	n.fewer(false)
	return n, nil
}

// aggregatedIn makes a price again of the markets of a record whose venues serve a country, by the rule that it was made by; false where this service does not know
// that rule yet.
func (w *work) aggregatedIn(p *eventsv1.Price, region string) (result schemas.Aggregated, considered []*eventsv1.PriceInput, isKnown bool) {
	var inputs []*eventsv1.PriceInput
	for _, in := range p.Inputs {
		if w.Providers[in.Provider].Available(region) {
			inputs = append(inputs, proto.CloneOf(in)) // it fills them
		}
	}
	return schemas.AggregateBy(p.Method, inputs, p.Time)
}
