package explain

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

const fieldRateUsed = "rateUsed"

// venueFields are the numbers of a market that a price is made from, beside what it contributes.
var venueFields = []string{fieldPrice, fieldRateUsed, "deviationBps"}

// venueField explains a number of a market of a venue.
func (w *work) venueField(ctx context.Context, name string, parts []string, depth int) (*Node, error) {
	field := parts[1]
	if !slices.Contains(venueFields, field) {
		return nil, w.nearField(name, parts, 1, venueFields)
	}
	entry, in, err := w.marketNamed(ctx, name, append([]string{parts[0] + "/" + field}, parts[2:]...), 2)
	if err != nil {
		return nil, err
	}
	var n *Node
	switch field {
	case fieldPrice:
		n, err = w.marketValue(ctx, entry, in)
	case fieldRateUsed:
		n, err = w.rateUsed(ctx, in)
	default:
		n, err = w.marketDeviation(ctx, entry, in, depth)
	}
	if err != nil {
		return nil, err
	}
	if n.Number = "venue-price/" + field + "/" + in.Provider + "/" + in.Symbol; depth <= 0 {
		n.Inputs = nil
	}
	return n, nil
}

// marketValue explains what a market is worth in its quote, without its name.
func (w *work) marketValue(ctx context.Context, entry *views.Entry, in *eventsv1.PriceInput) (*Node, error) {
	value := schemas.MarketValue(in)
	if value == 0 {
		return nil, query.NotFound("%s states no price of %s now", in.Provider, in.Symbol)
	}
	n := headline("", &value, in.QuoteId, cmp.Or(in.EventTime, max(in.LastHeard, in.QuoteHeard)))
	n.Method = &Method{Name: "market-value", Version: max(entry.Latest.Method, 1), Formula: "the last price within bid and ask, else the nearer of them; without a trade of late the middle"}
	n.Inputs = []*Node{w.vote(ctx, in, nil)}
	n.Records = n.Inputs[0].Records
	if again, isKnown := marketAgain(entry.Latest, in); isKnown {
		n.compare(known(schemas.MarketValue(again)))
	} else {
		n.notReproduced(fmt.Sprintf("version %d of the rule of prices is newer than this service", entry.Latest.Method))
	}
	return n, nil
}

// rateUsed explains what a unit of a market's quote costs, without its name: the exchange rate that the fold of quotes wrote.
func (w *work) rateUsed(ctx context.Context, in *eventsv1.PriceInput) (*Node, error) {
	n := headline("", &in.Rate, usd, in.RateTime)
	if in.QuoteId == usd {
		n.Method = &Method{Name: "definition", Version: 1, Formula: "one US dollar costs one"}
		n.compare(known(1))
		return n, nil
	}
	if in.Unpriced || in.Rate <= 0 {
		return nil, query.NotFound("no exchange rate of %s is known", in.QuoteId)
	}
	n.Method = &Method{Name: "quote-rate", Version: logic(schemas.TopicQuotes), Formula: "what a unit of " + in.QuoteId + " cost in USD, of its own markets, else as banks fixed it"}
	_, err := w.scan(ctx, schemas.TopicQuotes, 0, in.RateTime, in.RateTime+int64(views.PublishedWithin), func(r *kgo.Record) bool {
		if r.Offset != in.RateOffset {
			return r.Offset < in.RateOffset
		}
		record, err := schemas.DecodeRecord(schemas.TopicQuotes, r.Value)
		of, is := record.(*eventsv1.QuoteRecord)
		if rate := of.GetRate(); err == nil && is && rate.GetQuoteId() == in.QuoteId {
			n.Records = []Place{place(schemas.TopicQuotes, 0, r.Offset)}
			n.Method.Version = max(of.Mark.GetLogicVersion(), 1)
			n.Method.Formula += " (" + rate.Method + ")"
			n.compare(&rate.Rate)
			for _, market := range rate.Inputs {
				n.Inputs = append(n.Inputs, w.vote(ctx, market, n.Records))
			}
		}
		return false
	})
	if err != nil {
		return nil, err
	}
	if len(n.Records) == 0 {
		n.notReproduced("the record that states it is not in the log any more")
	}
	n.fewer(false)
	return n, nil
}

// marketDeviation explains how far a market of a stablecoin lies from the peg, without its name: of one quoted in the currency of the peg by its own price.
func (w *work) marketDeviation(ctx context.Context, entry *views.Entry, in *eventsv1.PriceInput, depth int) (*Node, error) {
	found, ok := w.snapshot.Find(entry.Coin.ID)
	if !ok {
		return nil, query.NotFound("%s is in no list of coins", entry.Coin.ID)
	}
	coin, err := w.stablecoin(ctx, found.CatalogCoin)
	if err != nil {
		return nil, err
	}
	value, err := w.marketValue(ctx, entry, in)
	if err != nil {
		return nil, err
	}
	number := "venue-price/" + fieldPrice + "/" + in.Provider + "/" + in.Symbol
	value.Number = number
	n := headline("", nil, bps, 0)
	n.Time, n.Inputs = value.Time, []*Node{value}
	n.Method = &Method{Name: "peg-deviation", Version: 1, Formula: "(price - 1) / 1 x 10000: it is quoted in the currency of the peg"}
	worth, again := *value.Value, value.again()
	target, targetAgain := 1.0, 1.0
	if in.QuoteId != coin.peg {
		rate, err := w.rateUsed(ctx, in)
		if err != nil {
			return nil, err
		}
		rate.Number = "venue-price/" + fieldRateUsed + "/" + in.Provider + "/" + in.Symbol
		of, recomputed, err := w.pegTarget(ctx, coin.peg, max(depth-1, 0))
		switch {
		case err != nil:
			return nil, err
		case *of.Value <= 0:
			return nil, query.NotFound("what a unit of %s costs is not known", coin.peg)
		}
		n.Method.Formula = "(price x rate of its quote - target) / target x 10000, the target in USD"
		n.Inputs = append(n.Inputs, rate, of)
		worth, target, targetAgain = worth*in.Rate, *of.Value, recomputed
		if rated := rate.again(); again == nil || rated == nil {
			again = nil
		} else {
			again = known(*again * *rated)
		}
	}
	n.Value = known(schemas.PegDeviationBps(worth, target))
	if again == nil {
		n.notReproduced("one of its inputs could not be computed again")
	} else {
		n.compare(known(schemas.PegDeviationBps(*again, targetAgain)))
	}
	if depth <= 1 {
		for _, in := range n.Inputs {
			in.Inputs, in.LeftOut = nil, nil
		}
	}
	return n, nil
}
