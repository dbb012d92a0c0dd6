package explain

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

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

// publishedWithin is how long after its log time a price is looked for in the log: a fold writes what one input causes at once.
const publishedWithin = 30 * time.Second

// price explains the price of a coin.
func (w *work) price(ctx context.Context, coin *views.CatalogCoin, depth int) (*Node, error) {
	number := "price/" + coin.ID
	if !w.past {
		spot, ok := w.Prices.Spot(w.snapshot, coin, w.now)
		switch {
		case !ok:
			return nil, query.NotFound("%s has no price", coin.ID)
		case spot.Entry == nil:
			return w.sourcePrice(ctx, coin, number, spot.Price, spot.Time, depth)
		}
		return w.median(ctx, number, spot.Entry.Price, spot.Entry.Mark, depth)
	}
	if coin.Own.Rank == 0 {
		row, err := w.row(ctx, coin)
		if err != nil {
			return nil, err
		}
		return w.sourcePrice(ctx, coin, number, row.Price, row.PriceTime, depth)
	}
	entries, err := w.Prices.AsOf(ctx, w.History, []schemas.Coin{coin.Own}, w.asOf)
	if err != nil {
		return nil, query.FaultOfPast(err, w.asOf)
	}
	e := entries[coin.ID]
	if e == nil {
		return nil, query.NotFound("%s had no price by %s", coin.ID, query.FormatTime(w.asOf.UnixNano()))
	}
	return w.median(ctx, number, e.Price, e.Mark, depth)
}

// sourcePrice explains the price of a coin that a reference source states: it is that of the coin's row.
func (w *work) sourcePrice(ctx context.Context, coin *views.CatalogCoin, number string, price float64, at int64, depth int) (*Node, error) {
	n := headline(number, &price, usd, at)
	n.Method = &Method{Name: "reference-price", Version: 1, Formula: "the price of the coin's row: no venue of ours has a newer one"}
	field, _ := marketFieldNamed("price")
	in, err := w.market(ctx, coin, field, depth-1)
	if err != nil {
		return nil, err
	}
	n.Inputs = []*Node{in}
	n.compare(in.Value)
	return n, nil
}

// median explains a published price.
func (w *work) median(ctx context.Context, number string, p *eventsv1.Price, mark *eventsv1.Mark, depth int) (*Node, error) {
	w.simulated = w.simulated || p.Simulated
	version := max(p.Method, 1)
	n := headline(number, &p.Price, usd, p.Time)
	n.Published = query.FormatTime(p.Published)
	n.Method = &Method{Name: "median", Version: version, Formula: cmp.Or(priceFormulas[version], "a newer version of this service has it")}
	at, ok, err := w.find(ctx, schemas.TopicPrices, mark.GetPartition(), p.Time, max(p.Time, p.Published)+int64(publishedWithin), p.CoinId, func(rec eventsv1.Marked) bool {
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
	inputs := make([]*eventsv1.PriceInput, len(p.Inputs))
	for i, in := range p.Inputs {
		inputs[i] = proto.CloneOf(in)
	}
	result, considered, isKnown := schemas.AggregateBy(p.Method, inputs, p.Time)
	if !isKnown {
		n.notReproduced(fmt.Sprintf("version %d of the rule is newer than this service", p.Method))
	} else if same := result.Equals(p); !same {
		n.Reproduced, n.Recomputed = &same, &result.Price
	} else {
		n.Reproduced = &same
	}
	// The votes come first: what does not count may not be shown.
	slices.SortStableFunc(considered, func(a, b *eventsv1.PriceInput) int {
		switch {
		case a.Accepted == b.Accepted:
			return 0
		case a.Accepted:
			return -1
		}
		return 1
	})
	for _, in := range considered {
		n.Inputs = append(n.Inputs, w.vote(ctx, in, n.Records))
	}
	n.fewer(false)
	return n, nil
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
