package explain

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// fixingsOf are the fixings of a day, by segment and revision, as far as they were written by the instant that is asked for.
func (w *work) fixingsOf(ctx context.Context, day time.Time) ([]*eventsv1.EarnFixing, error) {
	if known, read := w.fixings[day]; read {
		return known, nil
	}
	fixings, err := w.History.EarnFixingsOf(ctx, day)
	if err != nil {
		return nil, err
	}
	if w.past {
		fixings = slices.DeleteFunc(fixings, func(f *eventsv1.EarnFixing) bool { return f.Time > w.asOf.UnixNano() })
	}
	w.fixings[day] = fixings
	return fixings, nil
}

// fixed explains a number of the fixing of a day: the newest revision counts. It returns what was computed again too, nil where that was not possible.
func (w *work) fixed(ctx context.Context, segment string, day time.Time, field benchmarkField, depth int) (n *Node, again *float64, err error) {
	fixings, err := w.fixingsOf(ctx, day)
	if err != nil {
		return nil, nil, err
	}
	var first, f *eventsv1.EarnFixing
	for _, one := range fixings { // they come by revision
		if one.Segment == segment {
			if f = one; first == nil {
				first = one
			}
		}
	}
	if f == nil && len(fixings) > 0 { // no provider of the segment counted
		f = &eventsv1.EarnFixing{Date: day.Format(time.DateOnly), Segment: segment, MethodologyVersion: fixings[0].MethodologyVersion, Time: fixings[0].Time}
		first = f
	}
	if f == nil || field.value(fixedBenchmark(f)) == nil || f.ProviderCount == 0 && field.name != "providerCount" {
		return nil, nil, noFixing(segment, day)
	}
	w.simulated = w.simulated || f.Simulated
	n = headline(benchmarkForm+"/"+segment+"/"+f.Date+"/"+field.name, field.value(fixedBenchmark(f)), field.unit, day.UnixNano())
	n.Method = &Method{Name: benchmarkForm, Version: f.MethodologyVersion, Formula: field.formula}
	recorded := f
	if f.ProviderCount > 0 {
		var at Place
		if recorded, at, err = w.recordedFixing(ctx, f); err != nil {
			return nil, nil, err
		}
		if recorded != nil {
			n.Records = []Place{at}
		}
	}
	q, err := w.quotesOfDay(ctx, day, first.Time)
	if err != nil {
		return nil, nil, err
	}
	without := left(first, f)
	switch {
	case f.MethodologyVersion != schemas.EarnMethodology:
		n.notReproduced(fmt.Sprintf("version %d of the formulas is not that of this service, %d", f.MethodologyVersion, schemas.EarnMethodology))
	case q.why == "":
		kept := slices.DeleteFunc(slices.Clone(q.quotes), func(quote *eventsv1.EarnQuote) bool { return slices.Contains(without, quote.Provider) })
		again = field.value(workedOut(segment, kept))
		n.compare(again)
	case recorded != nil:
		again = field.value(workedOut(segment, recorded.Quotes))
		n.compare(again)
		n.Note = "computed again of the quotes that its record states: " + q.why
	default:
		n.notReproduced(q.why + ", nor the record of the fixing")
	}
	quotes := f.Quotes
	if recorded != nil {
		quotes = recorded.Quotes
	}
	if err := w.quoteInputs(ctx, n, q, segment, field, quotes, n.Records, depth); err != nil {
		return nil, nil, err
	}
	if f.Supersedes != "" {
		n.addNote("takes the place of " + f.Supersedes + ": " + f.Reason)
	}
	return n, again, nil
}

func (n *Node) addNote(note string) {
	if n.Note != "" {
		n.Note += "; "
	}
	n.Note += note
}

// left are the providers that a correction left out of the first fixing of its day.
func left(first, corrected *eventsv1.EarnFixing) (providers []string) {
	for _, q := range first.Quotes {
		if !slices.ContainsFunc(corrected.Quotes, func(kept *eventsv1.EarnQuote) bool { return kept.Provider == q.Provider }) {
			providers = append(providers, q.Provider)
		}
	}
	return providers
}

// quotesOfDay are the quotes at a midnight, of which the fixings were first written at a time. If that was later, the last minute before midnight is the one
// that they are of: what came in the minute that closed after it is not in them.
func (w *work) quotesOfDay(ctx context.Context, day time.Time, written int64) (*quoted, error) {
	midnight := day.UnixNano()
	last := midnight
	if written != midnight {
		var err error
		last, err = w.lastOfEarn(ctx, midnight)
		if why := lacks(err); why != "" || err == nil && last == 0 {
			return &quoted{at: midnight, why: "the log no longer has the minute before the fixing"}, nil
		} else if err != nil {
			return nil, err
		}
	}
	return w.quotesOf(ctx, last, midnight)
}

// recordedFixing is a fixing as its record in the log has it; nil where the log has none.
func (w *work) recordedFixing(ctx context.Context, f *eventsv1.EarnFixing) (recorded *eventsv1.EarnFixing, at Place, err error) {
	// The table has the times of corrections to the second.
	_, err = w.scan(ctx, schemas.TopicEarn, 0, f.Time, f.Time+int64(time.Second), func(r *kgo.Record) bool {
		record, err := schemas.DecodeRecord(schemas.TopicEarn, r.Value)
		rec, ok := record.(*eventsv1.EarnRecord)
		if one := rec.GetFixing(); err == nil && ok && one != nil && schemas.EarnFixingID(one) == schemas.EarnFixingID(f) {
			recorded, at = one, place(schemas.TopicEarn, 0, r.Offset)
		}
		return recorded == nil
	})
	if lacks(err) != "" {
		return nil, at, nil
	}
	return recorded, at, err
}
