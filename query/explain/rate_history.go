package explain

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

const (
	rateHistoryForm = "rate-history"
	// mostAnswers bounds the single answers that are read for an hour or a day: of all pools that a provider has of a coin.
	mostAnswers = 20_000
	// answerWritten is within what time the entry of an answer is written.
	answerWritten = 2 * time.Minute
)

// rateHistoryField is a number of a history of rates. Rolled makes it of at least one answer of an hour or a day, oldest first; nil where those have none. Of a
// single answer there are the first ones only, of which term is the number that comes with the rate; the rate itself has none.
type rateHistoryField struct {
	name, formula, term string
	single              bool
	value               func(views.RatePoint) *float64
	rolled              func([]views.RatePoint) *float64
}

var rateHistoryFields = []rateHistoryField{
	{"rate", "rate of the last answer", "", true, func(p views.RatePoint) *float64 { return &p.Close }, lastRate},
	{"apr", "", "apr", true, func(p views.RatePoint) *float64 { return p.APR }, nil},
	{"tvlUsd", "TVL of the last answer", "tvlUsd", true, func(p views.RatePoint) *float64 { return p.TVL }, func(a []views.RatePoint) *float64 { return a[len(a)-1].TVL }},
	{"open", "rate of the first answer", "", false, func(p views.RatePoint) *float64 { return &p.Open }, func(a []views.RatePoint) *float64 { return &a[0].Close }},
	{"high", "highest rate of an answer", "", false, func(p views.RatePoint) *float64 { return &p.High }, func(a []views.RatePoint) *float64 {
		return known(slices.MaxFunc(a, lowerRate).Close)
	}},
	{"low", "lowest rate of an answer", "", false, func(p views.RatePoint) *float64 { return &p.Low }, func(a []views.RatePoint) *float64 {
		return known(slices.MinFunc(a, lowerRate).Close)
	}},
	{"close", "rate of the last answer", "", false, func(p views.RatePoint) *float64 { return &p.Close }, lastRate},
	{"mean", "mean of the rates of the answers, from the oldest on", "", false, func(p views.RatePoint) *float64 { return &p.Mean }, meanRate},
}

func rateHistoryFieldNames() []string {
	return namesOf(rateHistoryFields, func(f rateHistoryField) string { return f.name })
}

func lastRate(answers []views.RatePoint) *float64 { return &answers[len(answers)-1].Close }

func lowerRate(a, b views.RatePoint) int { return cmp.Compare(a.Close, b.Close) }

// meanRate adds up as the fold does.
func meanRate(answers []views.RatePoint) *float64 {
	sum := 0.0
	for _, a := range answers {
		sum += a.Close
	}
	return known(views.Mean(sum, len(answers), slices.MinFunc(answers, lowerRate).Close, slices.MaxFunc(answers, lowerRate).Close))
}

// pastRate is which rate of the past is asked for, and of when; a step of 0 is a single answer.
type pastRate struct {
	provider, category, source, pool string
	start                            time.Time
	step                             time.Duration
}

func (of pastRate) number(field string, start time.Time, step time.Duration) string {
	return strings.Join([]string{rateHistoryForm, field, query.FormatTime(start.UnixNano()), query.FormatTime(start.Add(step).UnixNano()),
		of.provider, of.category, of.source + "|" + of.category + "|" + of.pool}, "/")
}

// ratePast explains a number of a history of rates: of a single answer by what its source stated, of an hour or a day by the answers in it.
func (w *work) ratePast(ctx context.Context, name string, parts []string, depth int) (*Node, error) {
	i := slices.Index(rateHistoryFieldNames(), parts[1])
	if i < 0 {
		return nil, w.nearField(name, parts, 1, rateHistoryFieldNames())
	}
	field := rateHistoryFields[i]
	of, err := w.pastRateNamed(parts)
	if err != nil {
		return nil, err
	}
	if of.step == 0 && !field.single || of.step > 0 && field.rolled == nil {
		return nil, query.NotFound("%s is not a number of a single answer, nor is apr one of an hour or a day", field.name)
	}
	if end := of.start.Add(of.step); w.past && w.asOf.Before(end) {
		return nil, query.NotFound("%s had not passed by %s", query.FormatTime(end.UnixNano()), query.FormatTime(w.asOf.UnixNano()))
	}
	points, err := w.ratePoints(ctx, of, of.start, of.start.Add(time.Second), of.step)
	if err != nil {
		return nil, err
	}
	// Answers state milliseconds of a time, and the table is asked for seconds.
	points = slices.DeleteFunc(points, func(p views.RatePoint) bool { return !p.Start.Truncate(time.Millisecond).Equal(of.start) })
	if len(points) == 0 || field.value(points[0]) == nil {
		return nil, query.NotFound("there is no %s of that time", field.name)
	}
	p := points[0]
	w.simulated = w.simulated || p.Simulated
	n := headline(of.number(field.name, of.start, of.step), field.value(p), percent, p.Start.UnixNano())
	if field.term == "tvlUsd" {
		n.Unit = usd
	}
	switch {
	case p.Origin != schemas.OriginLive:
		return n, w.reportedPoint(ctx, n, of, p, field, depth)
	case of.step == 0:
		return n, w.singleAnswer(ctx, n, p, field)
	}
	return n, w.rolledAnswers(ctx, n, of, p, field, depth)
}

// pastRateNamed reads the name of a number of a history.
func (w *work) pastRateNamed(parts []string) (of pastRate, err error) {
	start, ok := instant(parts[2])
	end, known := instant(parts[3])
	of = pastRate{provider: parts[4], category: parts[5], start: start, step: end.Sub(start)}
	if !ok || !known || of.step != 0 && of.step != time.Hour && of.step != oneDay || of.step > 0 && !start.Truncate(of.step).Equal(start) {
		return of, query.Invalid("number", "start and end must be those of an hour or a day, or equal, as in 2026-01-31T12:00:00Z")
	}
	id := strings.SplitN(strings.Join(parts[6:], "/"), "|", 3)
	switch {
	case of.category == categoryPrice:
		return of, query.NotFound("past prices of venues are explained as rate/{venue}/price/{symbol} with asOf")
	case len(id) != 3 || id[1] != of.category:
		return of, query.Invalid("number", "the id must be as histories have it: source|category|pool")
	}
	of.source, of.pool = id[0], id[2]
	return of, nil
}

// ratePoints are the points of a history of one rate, oldest first.
func (w *work) ratePoints(ctx context.Context, of pastRate, from, to time.Time, step time.Duration) ([]views.RatePoint, error) {
	q := views.RateQuery{Categories: []string{of.category}, Providers: []string{of.provider}, From: from.Truncate(time.Second), To: to.Truncate(time.Second), Step: step, Limit: mostAnswers}
	for _, e := range w.Yields.Snapshot().Entries { // the table is in the order of coins
		if e.Source == of.source && e.Category == of.category && e.Pool == of.pool && e.CoinId != "" {
			q.CoinIDs = []string{e.CoinId}
		}
	}
	points, err := w.History.RateHistory(ctx, q)
	if err != nil {
		return nil, err
	}
	points = slices.DeleteFunc(points, func(p views.RatePoint) bool {
		return p.Source != of.source || p.Pool != of.pool
	})
	slices.Reverse(points)
	return points, nil
}

// singleAnswer makes a rate, or what comes with it, again of what its source stated.
func (w *work) singleAnswer(ctx context.Context, n *Node, p views.RatePoint, field rateHistoryField) error {
	e, at, err := w.answered(ctx, p)
	switch {
	case err != nil:
		return err
	case e == nil:
		n.Method = &Method{Name: "apy", Version: 1, Formula: asReported}
		n.notReproduced("the entry of rates that was written of it is not in the log any more")
		return nil
	}
	if field.term == "" {
		made, err := w.rateOf(ctx, e, e.Time)
		if err != nil {
			return err
		}
		n.Method, n.Inputs, n.Note = made.Method, made.Inputs, made.Note
		if again := made.again(); again != nil {
			n.compare(again)
		} else {
			n.Reproduced = made.Reproduced
		}
		n.Records = []Place{at}
		return nil
	}
	term := rateTerms[slices.Index(rateTermNames(), field.term)]
	n.Method = &Method{Name: "rate-term", Version: max(e.Method, 1), Formula: term.formula}
	reported, source, err := w.reportOf(ctx, e)
	rule, isKnown := schemas.RateRuleBy(e.Method)
	switch {
	case err != nil:
		return err
	case reported == nil:
		n.notReproduced("the record that states it is not in the log any more")
	case !isKnown:
		n.notReproduced("the version of its rule is newer than this service")
	default:
		n.Records = []Place{at, source}
		n.compare(term.again(rule, reported))
	}
	return nil
}

// answered reads the entry that was written of an answer; nil where the log no longer has it.
func (w *work) answered(ctx context.Context, p views.RatePoint) (entry *eventsv1.RateEntry, at Place, err error) {
	_, err = w.scan(ctx, schemas.TopicRates, 0, p.Start.UnixNano(), p.Start.Add(answerWritten).UnixNano(), func(r *kgo.Record) bool {
		record, err := schemas.DecodeRecord(schemas.TopicRates, r.Value)
		rate, is := record.(*eventsv1.RateRecord)
		e := rate.GetEntry()
		if err == nil && is && e != nil && e.Source == p.Source && e.Category == p.Category && e.Pool == p.Pool && e.Heard == p.Start.UnixNano() && !e.Ended {
			entry, at = e, place(schemas.TopicRates, 0, r.Offset)
		}
		return entry == nil
	})
	return entry, at, err
}

// rolledAnswers makes what a rate did in an hour or a day again of the answers in it.
func (w *work) rolledAnswers(ctx context.Context, n *Node, of pastRate, p views.RatePoint, field rateHistoryField, depth int) error {
	n.Method = &Method{Name: "rate-rollup", Version: logic(schemas.TopicRates), Formula: field.formula}
	answers, err := w.ratePoints(ctx, of, p.Start, p.Start.Add(of.step), 0)
	if err != nil {
		return err
	}
	answers = slices.DeleteFunc(answers, func(a views.RatePoint) bool { return a.Origin != schemas.OriginLive })
	if len(answers) != int(p.N) {
		n.Note = fmt.Sprintf("not computed again: it is of %d answers, of which %d are still kept", p.N, len(answers))
		return nil
	}
	n.compare(field.rolled(answers))
	value, isTerm := n.Value, field.term != ""
	input := func(a views.RatePoint) *float64 {
		if isTerm {
			return a.TVL
		}
		return &a.Close
	}
	if field.name != "mean" { // the answer that decides comes first
		slices.SortStableFunc(answers, func(a, b views.RatePoint) int {
			x, y := input(a), input(b)
			if x == nil || y == nil {
				return 0
			}
			return decidesFirst(*x, *y, *value)
		})
	}
	name := "rate"
	if isTerm {
		name = field.name
	}
	for _, a := range answers {
		in := headline(of.number(name, a.Start, 0), input(a), n.Unit, a.Start.UnixNano())
		if len(n.Inputs) < shown && w.expands(depth-1) && in.Value != nil {
			if err := w.singleAnswer(ctx, in, a, rateHistoryFields[slices.Index(rateHistoryFieldNames(), name)]); err != nil {
				return err
			}
		}
		n.Inputs = append(n.Inputs, in)
	}
	n.fewer(false)
	return nil
}
