package explain

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

const blendFormula = "each source has one vote: the median of those that are fresh, after those more than half of the first median away were left out"

// sourced is what sources state of currencies, now or as it was served at a past instant, and what makes rates of it.
type sourced struct {
	snapshot *views.Snapshot
	fiat     *views.Rates
	at       time.Time
}

// sources are those of the instant that is asked for.
func (w *work) sources(ctx context.Context) (*sourced, error) {
	switch {
	case w.stated != nil:
	case !w.past:
		w.stated = &sourced{w.snapshot, w.fiat, w.now}
	default:
		snapshot, err := w.Currencies.At(ctx, w.asOf)
		if err != nil {
			return nil, query.FaultOfPast(err, w.asOf)
		}
		w.stated = &sourced{snapshot, views.NewFiatRates(w.Prices.Coins(), w.Catalog), w.asOf}
	}
	return w.stated, nil
}

// currency explains what one US dollar costs in a currency.
func (w *work) currency(ctx context.Context, name, text string, depth int) (*Node, error) {
	named, ok := w.Prices.Coins().Fiat(text)
	if named.Code == schemas.USD {
		one := 1.0
		n := headline("fiat/"+schemas.USD, &one, schemas.USD, 0)
		n.Method = &Method{Name: "definition", Version: 1, Formula: "one US dollar costs one"}
		n.compare(&one)
		return n, nil
	}
	of, err := w.sources(ctx)
	if err != nil {
		return nil, err
	}
	rates := of.fiat.Of(of.snapshot, of.at)
	if !ok {
		codes := make([]string, len(rates))
		for i, rate := range rates {
			codes[i] = rate.Code
		}
		return nil, w.nearField(name, []string{"fiat", text}, 1, codes)
	}
	i, found := slices.BinarySearchFunc(rates, named.Code, func(rate schemas.FiatRate, code string) int { return strings.Compare(rate.Code, code) })
	if !found {
		return nil, query.NotFound("no source has a rate of %s", named.Code)
	}
	rate := rates[i]
	n := headline("fiat/"+rate.Code, &rate.Rate, rate.Code, rate.Time)
	n.Method = &Method{Name: "fiat-blend", Version: 1, Formula: blendFormula}
	if rate.Stale {
		n.Note = "no source has a fresh rate: this is the newest that was stated"
	}
	if depth <= 0 {
		return n, nil
	}
	// The fixings of each source that may make its vote, as the log has them, are blended again.
	var fixings []*eventsv1.Fixing
	received := map[string]schemas.FiatReading{}
	for _, vote := range rate.Sources {
		in := headline("vote/"+vote.Source+"/"+rate.Code, &vote.Rate, rate.Code, vote.Time)
		if vote.Reason != "" {
			in.Note = "does not count: " + vote.Reason
		}
		received[vote.Source] = schemas.FiatReading{Read: of.snapshot.Read[vote.Source], Interval: of.snapshot.Notices[vote.Source].GetInterval()}
		for _, f := range votes(of.snapshot, vote.Source, rate.Code) {
			leaf, recorded, err := w.fixing(ctx, f)
			if err != nil {
				return nil, err
			}
			fixings = append(fixings, recorded)
			in.Inputs = append(in.Inputs, leaf)
			in.Records = append(in.Records, leaf.Records...)
		}
		in.Method = &Method{Name: "vote", Version: 1, Formula: "the rate as it is stated, turned round, or by way of another base of the same day"}
		if depth == 1 {
			in.Inputs = nil
		}
		n.Inputs = append(n.Inputs, in)
	}
	var again *float64
	for _, blended := range schemas.BlendFiat(fixings, received, of.at.UTC().Truncate(time.Minute).UnixNano()) {
		if blended.Code == rate.Code {
			again = &blended.Rate
		}
	}
	n.compare(again)
	n.fewer(false)
	return n, nil
}

// votes are the fixings of a source that its vote on a currency is made of: the pair with the US dollar, or those of the bases that
// have both.
func votes(snapshot *views.Snapshot, source, code string) (fixings []*eventsv1.Fixing) {
	for id, f := range snapshot.Fixings {
		if id.Source == source && (id.Base == schemas.USD && id.Quote == code || id.Base == code && id.Quote == schemas.USD) {
			fixings = append(fixings, f)
		}
	}
	if len(fixings) == 0 {
		for id, f := range snapshot.Fixings {
			if id.Source != source || id.Quote != code && id.Quote != schemas.USD {
				continue
			}
			other := id
			if other.Quote = schemas.USD; id.Quote == schemas.USD {
				other.Quote = code
			}
			if snapshot.Fixings[other] != nil {
				fixings = append(fixings, f)
			}
		}
	}
	slices.SortFunc(fixings, func(a, b *eventsv1.Fixing) int {
		return strings.Compare(a.Base+a.Quote, b.Base+b.Quote)
	})
	return fixings[:min(len(fixings), shown)]
}

// fixing is a rate that a source reports, and the same as its record in the log has it. Where the log has it no longer there is no
// record, and it is taken as it is remembered.
func (w *work) fixing(ctx context.Context, f *eventsv1.Fixing) (n *Node, recorded *eventsv1.Fixing, err error) {
	recorded = f
	value := schemas.Float(f.Rate)
	n = headline("fixing/"+f.Source+"/"+f.Base+f.Quote, &value, f.Quote, f.EventTime)
	if day, err := time.Parse(time.DateOnly, f.Date); err == nil && f.EventTime == 0 {
		n.Time = query.FormatTime(day.UnixNano())
	}
	at, ok, err := w.find(ctx, schemas.TopicReferenceRaw, 0, f.IngestTime-minute, f.IngestTime+minute, f.Source, func(rec eventsv1.Marked) bool {
		record, is := rec.(*eventsv1.ReferenceRecord)
		x := record.GetFixing()
		if !is || x.GetBase() != f.Base || x.GetQuote() != f.Quote || x.GetDate() != f.Date || x.GetEventTime() != f.EventTime || x.GetIngestTime() != f.IngestTime {
			return false
		}
		recorded = x
		return true
	})
	if err != nil {
		return nil, nil, err
	}
	if ok {
		n.Records = []Place{at}
	} else {
		n.Note = "its record is not in the log any more"
	}
	return n, recorded, nil
}
