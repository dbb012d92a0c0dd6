package explain

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// earnEnded is how long before an instant the last minute of earn products is looked for, first in the near and then in the far: the
// service may have stood still.
var earnEnded = []int64{2 * minute, 24 * hour}

// lastOfEarn is the last minute of earn products that the log has by a time; 0 for none in the day before.
func (w *work) lastOfEarn(ctx context.Context, by int64) (last int64, err error) {
	for _, span := range earnEnded {
		_, err = w.scan(ctx, schemas.TopicEarn, 0, by-span, by+minute, func(r *kgo.Record) bool {
			// What an operator wrote is not a minute, and may lie before records of earlier minutes.
			if rec, err := schemas.DecodeRecord(schemas.TopicEarn, r.Value); err == nil && rec.GetMark() != nil && r.Timestamp.UnixNano() <= by {
				last = r.Timestamp.UnixNano()
			}
			return true
		})
		if last != 0 || err != nil {
			return last, err
		}
	}
	return 0, nil
}

// endedSince is within what time before now variants that are not offered any more are read: they report the last minute too.
const endedSince = 2 * time.Hour

// offers are the variants of earn products, and the minute that they are of: the current ones, or those that the log had at an instant.
func (w *work) offers(ctx context.Context, at time.Time) (rows []*eventsv1.EarnVariant, last int64, err error) {
	if at.IsZero() {
		if rows, err = w.History.EarnVariants(ctx, w.now.Add(-endedSince)); err != nil {
			return nil, 0, err
		}
		for _, v := range rows {
			last = max(last, v.Time)
		}
		if last == 0 {
			return nil, 0, query.Starting("there are no earn products yet")
		}
		return rows, last, nil
	}
	if err := w.agedOut(ctx, schemas.TopicEarn, at.UnixNano()); err != nil {
		return nil, 0, err
	}
	if last, err = w.lastOfEarn(ctx, at.UnixNano()); err != nil {
		return nil, 0, err
	}
	if last == 0 {
		return nil, 0, query.NotFound("the log has no earn products of the day before %s", query.FormatTime(at.UnixNano()))
	}
	// Those that are offered are written once an hour.
	standing := map[[2]string]*eventsv1.EarnVariant{}
	_, err = w.scan(ctx, schemas.TopicEarn, 0, last-ratesRepeated, last+minute, func(r *kgo.Record) bool {
		record, err := schemas.DecodeRecord(schemas.TopicEarn, r.Value)
		if rec, ok := record.(*eventsv1.EarnRecord); err == nil && ok && rec.GetVariant() != nil && rec.GetVariant().Time <= last {
			standing[[2]string{rec.GetVariant().ProductId, rec.GetVariant().VariantId}] = rec.GetVariant()
		}
		return true
	})
	for _, v := range standing {
		rows = append(rows, v)
	}
	return rows, last, err
}

// quotedAt is the minute that quotes are of, and the instant by which they must be fresh, 0 where they need not.
type quotedAt struct{ last, fresh int64 }

// quoted is what providers pay, made again of the entries of rates that the log has; why is the reason where that was not possible.
type quoted struct {
	at       int64
	quotes   []*eventsv1.EarnQuote
	variants map[string][]quotedVariant // by provider, those that count
	why      string
}

type quotedVariant struct {
	row   *eventsv1.EarnVariant
	entry *eventsv1.RateEntry
	at    Place
}

// quotesOf makes the quotes of providers again, as the fold of earn products does: each rate that is offered is a variant.
func (w *work) quotesOf(ctx context.Context, last, fresh int64) (*quoted, error) {
	if q := w.quoted[quotedAt{last, fresh}]; q != nil {
		return q, nil
	}
	q := &quoted{at: cmp.Or(fresh, last), variants: map[string][]quotedVariant{}}
	err := w.agedOut(ctx, schemas.TopicRates, last)
	var logged []loggedRate
	if err == nil {
		logged, err = w.loggedRates(ctx, last)
	}
	if err != nil {
		if aged := (*query.Error)(nil); errors.As(err, &aged) {
			q.why = "the log no longer has the rates of then"
		} else if q.why = lacks(err); q.why == "" {
			return nil, err
		}
	}
	table := w.Prices.Coins()
	var rows []*eventsv1.EarnVariant
	for _, l := range logged {
		if !schemas.EarnOffered(l.entry) {
			continue
		}
		row := schemas.NewEarnVariant(l.entry, l.entry.Time)
		if schemas.EarnCounts(table, row, fresh) {
			rows = append(rows, row)
			q.variants[row.Provider] = append(q.variants[row.Provider], quotedVariant{row, l.entry, l.at})
		}
	}
	for _, variants := range q.variants {
		slices.SortFunc(variants, func(a, b quotedVariant) int {
			return cmp.Or(strings.Compare(a.row.ProductId, b.row.ProductId), strings.Compare(a.row.VariantId, b.row.VariantId))
		})
	}
	q.quotes, _ = schemas.EarnQuotes(table, rows, fresh)
	w.quoted[quotedAt{last, fresh}] = q
	return q, nil
}

// quoteInputs adds to a number the quotes of its segment. What could not be made again is as a record has it.
func (w *work) quoteInputs(ctx context.Context, n *Node, q *quoted, segment string, field benchmarkField, quotes []*eventsv1.EarnQuote, record []Place, depth int) error {
	if depth <= 0 {
		return nil
	}
	for _, s := range quotes {
		if segment != schemas.EarnOverall && segment != s.Segment {
			continue
		}
		for _, part := range field.of {
			value, unit := quotePart(s, part)
			if s.TvlUsd == 0 && slices.Contains(field.of, quoteTVL) { // it weighs nothing
				continue
			}
			in := headline("quote/"+s.Provider+"/"+part, value, unit, q.at)
			n.Inputs = append(n.Inputs, in)
			if q.why != "" {
				in.Records = record
				continue
			}
			in.Method = &Method{Name: "earn-quote", Version: n.Method.Version, Formula: quoteFormulas[part]}
			i := slices.IndexFunc(q.quotes, func(again *eventsv1.EarnQuote) bool { return again.Provider == s.Provider })
			if i < 0 {
				in.notReproduced("the log has no rate of the provider that counts")
				continue
			}
			again, _ := quotePart(q.quotes[i], part)
			in.compare(again)
			if err := w.variantInputs(ctx, in, q, s.Provider, part, depth-1); err != nil {
				return err
			}
		}
	}
	n.fewer(field.name == quoteTVL)
	return nil
}

var quoteFormulas = map[string]string{
	quoteRate: "mean of the rates of the provider's variants that count, weighted by TVL; those without a TVL are left out unless none has one",
	quoteTVL:  "sum of the TVL of the provider's variants that count",
}

func quotePart(q *eventsv1.EarnQuote, part string) (value *float64, unit string) {
	if part == quoteTVL {
		return &q.TvlUsd, usd
	}
	return &q.Apy, percent
}

// variantInputs adds to a quote the variants that it is made of, each with the entry of rates that it was made of. Where no level is left
// for them the quote leads to these entries itself.
func (w *work) variantInputs(ctx context.Context, n *Node, q *quoted, provider, part string, depth int) error {
	variants := q.variants[provider]
	weighted := slices.ContainsFunc(variants, func(v quotedVariant) bool { return v.row.GetTvlUsd() > 0 })
	for _, v := range variants {
		value, unit := &v.row.Apy, percent
		if part == quoteTVL {
			value, unit = v.row.TvlUsd, usd
		}
		in := stated("earn/"+v.row.ProductId+"/"+v.row.VariantId+"/"+part, value, unit, v.entry.Time, v.at)
		if weighted && v.row.GetTvlUsd() <= 0 {
			in.Note = "does not count: it has no TVL, and another variant of the provider has"
		}
		if depth <= 0 {
			if len(n.Records) < shown {
				n.Records = append(n.Records, v.at)
			}
			continue
		}
		if part == quoteRate && len(n.Inputs) < shown && w.expands(depth-1) {
			rate, err := w.rateOf(ctx, v.entry, q.at)
			if err != nil {
				return err
			}
			in.Inputs = []*Node{rate}
		}
		n.Inputs = append(n.Inputs, in)
	}
	n.fewer(part == quoteTVL)
	return nil
}
