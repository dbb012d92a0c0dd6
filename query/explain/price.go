package explain

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

const usd = "USD"

// priceFormulas are the rules by which prices were made, by version.
var priceFormulas = map[uint32]string{
	1: "each provider votes with its best fresh market, value x exchange rate of its quote; median of the votes that lie within 50% of the median of all",
	2: "each provider votes with its best market that is fresh by its own pace, value x exchange rate of its quote; median of the votes that lie within 50% of the median of all",
}

// priceField is a number of a published price. Of the price of a source it is the field of the coin's row that row names; a count of venues is none then.
type priceField struct {
	name, unit, formula string
	value               func(schemas.Aggregated) *float64
	row                 string
}

// fieldPrice is what is meant where no field is named.
const fieldPrice = "price"

var priceFields = []priceField{
	{fieldPrice, usd, "", func(a schemas.Aggregated) *float64 { return &a.Price }, fieldPrice},
	{"min", usd, "lowest of the votes that count", func(a schemas.Aggregated) *float64 { return &a.Min }, fieldPrice},
	{"max", usd, "highest of the votes that count", func(a schemas.Aggregated) *float64 { return &a.Max }, fieldPrice},
	{"confidence", usd, "half width of the confidence interval of the votes that count; see docs/formulas", func(a schemas.Aggregated) *float64 { return &a.Confidence }, ""},
	{"score", "", "how many votes there are and how far they lie apart, 0 to 1; see docs/formulas", func(a schemas.Aggregated) *float64 { return &a.Score }, ""},
	{"volume24h", usd, "sum of the volumes of 24 hours of the providers that count", func(a schemas.Aggregated) *float64 { return &a.Volume24h }, "volume24h"},
	{"providers", "", "number of providers whose vote counts", func(a schemas.Aggregated) *float64 { return known(float64(a.Accepted)) }, ""},
	{"rejected", "", "number of providers whose vote does not count", func(a schemas.Aggregated) *float64 { return known(float64(a.Rejected)) }, ""},
}

func priceFieldNames() []string {
	return namesOf(priceFields, func(f priceField) string { return f.name })
}

// published are the numbers of a price as they were published.
func published(p *eventsv1.Price) schemas.Aggregated {
	return schemas.Aggregated{Price: p.Price, Min: p.Min, Max: p.Max, Confidence: p.Confidence, Score: p.Score, Volume24h: p.Volume24H,
		Accepted: int(p.Accepted), Rejected: int(p.Rejected)}
}

// number names a field of a coin's price.
func (f priceField) number(coinID string) string {
	if f.name == fieldPrice {
		return "price/" + coinID
	}
	return "price/" + coinID + "/" + f.name
}

// priceNamed explains the number of a price that a name means.
func (w *work) priceNamed(ctx context.Context, coin *views.CatalogCoin, name string, parts []string, depth int) (*Node, error) {
	if len(parts) == 2 {
		return w.price(ctx, coin, priceFields[0], depth)
	}
	i := slices.IndexFunc(priceFields, func(f priceField) bool { return f.name == parts[2] })
	if i < 0 {
		return nil, w.nearField(name, parts, 2, priceFieldNames())
	}
	return w.price(ctx, coin, priceFields[i], depth)
}

// price explains a number of the price of a coin.
func (w *work) price(ctx context.Context, coin *views.CatalogCoin, field priceField, depth int) (*Node, error) {
	if !w.past {
		spot, ok := w.Prices.Spot(w.snapshot, coin, w.now)
		switch {
		case !ok:
			return nil, query.NotFound("%s has no price", coin.ID)
		case spot.Entry == nil:
			return w.sourcePrice(ctx, coin, field, &spot.Price, spot.Volume24h, spot.Time, depth)
		}
		return w.median(ctx, field, spot.Entry.Price, spot.Entry.Mark, depth)
	}
	if coin.Own.Rank == 0 {
		row, err := w.row(ctx, coin)
		if err != nil {
			return nil, err
		}
		return w.sourcePrice(ctx, coin, field, &row.Price, row.Volume24H, row.PriceTime, depth)
	}
	entries, err := w.Prices.AsOf(ctx, w.History, []schemas.Coin{coin.Own}, w.asOf)
	if err != nil {
		return nil, query.FaultOfPast(err, w.asOf)
	}
	e := entries[coin.ID]
	if e == nil {
		return nil, query.NotFound("%s had no price by %s", coin.ID, query.FormatTime(w.asOf.UnixNano()))
	}
	return w.median(ctx, field, e.Price, e.Mark, depth)
}

// sourcePrice explains a number of the price of a coin that a reference source reports, with its volume: it is that of the coin's row.
func (w *work) sourcePrice(ctx context.Context, coin *views.CatalogCoin, field priceField, price, volume *float64, at int64, depth int) (*Node, error) {
	of, _ := marketFieldNamed(cmp.Or(field.row, fieldPrice))
	in, err := w.market(ctx, coin, of, depth-1)
	if err != nil {
		return nil, err
	}
	n := headline(field.number(coin.ID), price, field.unit, at)
	n.Method = &Method{Name: "reference-price", Version: 1, Formula: "the " + of.name + " of the coin's row: no venue of ours has a newer one"}
	n.Inputs = []*Node{in}
	switch field.row {
	case "": // no vote counts, so that there is neither an interval nor a score
		n.Method.Formula = "none of the providers is one of ours: the price is that of the coin's row"
		n.Value = nil
		if field.unit == "" && field.name != "score" {
			n.Value = known(0)
		}
		n.compare(n.Value) // nothing is computed: what could differ is whether the coin has an entry, which was just looked up
		return n, nil
	case "volume24h":
		n.Value = volume
	}
	n.compare(in.Value)
	return n, nil
}

// median explains a number of a published price.
func (w *work) median(ctx context.Context, field priceField, p *eventsv1.Price, mark *eventsv1.Mark, depth int) (*Node, error) {
	w.simulated = w.simulated || p.Simulated
	version := max(p.Method, 1)
	n := headline(field.number(p.CoinId), field.value(published(p)), field.unit, p.Time)
	n.Published = query.FormatTime(p.Published)
	n.Method = &Method{Name: "median", Version: version, Formula: cmp.Or(field.formula, priceFormulas[version], "a newer version of this service has it")}
	at, ok, err := w.find(ctx, schemas.TopicPrices, mark.GetPartition(), p.Time, max(p.Time, p.Published)+int64(views.PublishedWithin), p.CoinId, func(rec eventsv1.Marked) bool {
		price, is := rec.(*eventsv1.PriceRecord)
		return is && price.GetPrice().GetTime() == p.Time && price.Mark.GetOffset() == mark.GetOffset()
	})
	if err != nil {
		return nil, err
	}
	if ok {
		n.Records = []Place{at}
	}
	if depth <= 0 {
		return n, nil
	}
	result, considered, isKnown := aggregatedAgain(p)
	if !isKnown {
		n.notReproduced(fmt.Sprintf("version %d of the rule is newer than this service", p.Method))
	} else if n.compare(field.value(result)); !result.Equals(p) { // a price is the same only with all that is published beside it
		no := false
		n.Reproduced, n.Recomputed = &no, field.value(result)
	}
	w.addVotes(ctx, n, considered)
	n.fewer(false)
	return n, nil
}

// aggregatedAgain makes a price again of its inputs, by the rule that it was made by; false where this service does not know that rule yet.
func aggregatedAgain(p *eventsv1.Price) (result schemas.Aggregated, considered []*eventsv1.PriceInput, isKnown bool) {
	inputs := make([]*eventsv1.PriceInput, len(p.Inputs))
	for i, in := range p.Inputs {
		inputs[i] = proto.CloneOf(in) // it fills them
	}
	return schemas.AggregateBy(p.Method, inputs, p.Time)
}

// addVotes gives a price the markets that it was made from, those that count first: others may not be shown.
func (w *work) addVotes(ctx context.Context, n *Node, considered []*eventsv1.PriceInput) {
	counted, not := []*Node{}, []*Node{}
	for _, in := range considered {
		if vote := w.vote(ctx, in, n.Records); in.Accepted {
			counted = append(counted, vote)
		} else {
			not = append(not, vote)
		}
	}
	n.Inputs = append(n.Inputs, append(counted, not...)...)
}

// vote is a market that a price was made from. The log holds raw ticks for minutes only; after that the record of the price, which
// holds all its inputs, is where they are.
func (w *work) vote(ctx context.Context, in *eventsv1.PriceInput, priced []Place) *Node {
	n := headline("tick/"+in.Provider+"/"+in.Symbol, nil, usd, cmp.Or(in.EventTime, max(in.LastHeard, in.QuoteHeard)))
	n.Method = &Method{Name: "vote", Version: 1, Formula: fmt.Sprintf("%s %g", cmp.Or(in.Basis, "value"), in.Value)}
	if in.QuoteId != usd {
		n.Method.Formula += fmt.Sprintf(" x %g %s per %s", in.Rate, usd, in.QuoteId)
	}
	if in.PriceUsd > 0 {
		n.Value = &in.PriceUsd
	}
	if !in.Accepted {
		n.Note = "does not count: " + in.Reason
	}
	if n.Records = priced; w.kept(ctx, schemas.TopicTicksRaw, in.Partition, in.Offset) {
		n.Records = []Place{place(schemas.TopicTicksRaw, in.Partition, in.Offset)}
	}
	if in.QuoteId != usd && in.RateOffset > 0 && w.kept(ctx, schemas.TopicQuotes, 0, in.RateOffset) {
		n.Records = append(slices.Clip(n.Records), place(schemas.TopicQuotes, 0, in.RateOffset))
	}
	return n
}
