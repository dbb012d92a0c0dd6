package explain

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// benchmarkForm is the first word of the names of numbers of the earn benchmark.
const benchmarkForm = "earn-benchmark"

// benchmark is a segment of the earn benchmark: what a fixing says of it, or what quotes of providers come to.
type benchmark struct {
	median, weighted, tvl *float64
	providers             float64
}

func fixedBenchmark(f *eventsv1.EarnFixing) benchmark {
	return benchmark{&f.Median, f.TvlWeighted, positive(f.TvlUsd), float64(f.ProviderCount)}
}

// workedOut is a segment of quotes; without any there is nothing of it but their number.
func workedOut(segment string, quotes []*eventsv1.EarnQuote) benchmark {
	b, ok := schemas.NewEarnBenchmark(segment, quotes)
	if !ok {
		return benchmark{}
	}
	return benchmark{&b.Median, b.TvlWeighted, positive(b.TvlUsd), float64(len(b.Quotes))}
}

// positive is nil where there is none, as answers leave it out.
func positive(value float64) *float64 {
	if value <= 0 {
		return nil
	}
	return &value
}

// Parts of a provider's quote.
const (
	quoteRate = "rate"
	quoteTVL  = "tvl"
)

// benchmarkField is a number of a segment, with the parts of quotes that it is made of.
type benchmarkField struct {
	name, unit, formula string
	of                  []string
	value               func(benchmark) *float64
}

var benchmarkFields = []benchmarkField{
	{"median", percent, "median of the providers' rates, the mean of the middle two if their number is even", []string{quoteRate}, func(b benchmark) *float64 { return b.median }},
	{"tvlWeighted", percent, "sum of rate x TVL over the providers / tvl", []string{quoteRate, quoteTVL}, func(b benchmark) *float64 { return b.weighted }},
	{"providerCount", "", "number of providers with a rate", []string{quoteRate}, func(b benchmark) *float64 { return &b.providers }},
	{"tvl", usd, "sum of the providers' TVL", []string{quoteTVL}, func(b benchmark) *float64 { return b.tvl }},
}

func benchmarkFieldNames() []string {
	return namesOf(benchmarkFields, func(f benchmarkField) string { return f.name })
}

// benchmarkChange is how far the median of a fixing moved since that of some days before.
type benchmarkChange struct {
	name    string
	days    int
	formula string
}

var benchmarkChanges = []benchmarkChange{
	{"change1d", 1, "median of the day - median of the day before"}, {"change7d", 7, "median of the day - median of 7 days before"},
	{"change30d", 30, "median of the day - median of 30 days before"},
}

func benchmarkChangeNames() []string {
	return namesOf(benchmarkChanges, func(c benchmarkChange) string { return c.name })
}

// benchmarkTime is the day or the instant in the name of a number of the benchmark; false where there is none.
func benchmarkTime(parts []string) (at time.Time, ok bool) {
	if parts[0] != benchmarkForm || len(parts) != 4 {
		return at, false
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if at, err := time.Parse(layout, strings.ToUpper(parts[2])); err == nil && at.Unix() >= 0 {
			return at.UTC(), true
		}
	}
	return at, false
}

// earnBenchmark explains a number of the earn benchmark: of the fixing of a day, or what the providers' offers come to at an instant.
func (w *work) earnBenchmark(ctx context.Context, name string, parts []string, depth int) (*Node, error) {
	segment, wanted := parts[1], parts[len(parts)-1]
	at, dated := benchmarkTime(parts)
	i := slices.IndexFunc(benchmarkFields, func(f benchmarkField) bool { return f.name == wanted })
	change := slices.IndexFunc(benchmarkChanges, func(c benchmarkChange) bool { return c.name == wanted })
	until := w.now
	if w.past {
		until = w.asOf
	}
	switch {
	case !slices.Contains(schemas.EarnSegments, segment):
		return nil, w.nearField(name, parts, 1, schemas.EarnSegments)
	case i < 0 && change < 0:
		return nil, w.nearField(name, parts, len(parts)-1, append(benchmarkFieldNames(), benchmarkChangeNames()...))
	case !dated && len(parts) == 4:
		return nil, query.Invalid("number", "the day of a fixing must be as 2026-01-31, an instant as 2026-01-31T12:00:00Z")
	case dated && at.After(until):
		return nil, query.NotFound("%s had not come by %s", parts[2], query.FormatTime(until.UnixNano()))
	}
	if dated && at.Equal(at.Truncate(oneDay)) {
		fixings, err := w.fixingsOf(ctx, at)
		switch {
		case err != nil:
			return nil, err
		case len(fixings) > 0 && change >= 0:
			return w.benchmarkMoved(ctx, segment, at, benchmarkChanges[change], depth)
		case len(fixings) > 0:
			n, _, err := w.fixed(ctx, segment, at, benchmarkFields[i], depth)
			return n, err
		case len(parts[2]) == len(time.DateOnly) || change >= 0:
			return nil, noFixing(segment, at)
		}
	}
	if change >= 0 {
		return nil, query.Invalid("number", "%s is of the fixing of a day: ask for %s/%s/2026-01-31/%s", wanted, benchmarkForm, segment, wanted)
	}
	return w.benchmarkAt(ctx, segment, benchmarkFields[i], at, depth)
}

func noFixing(segment string, day time.Time) error {
	return query.NotFound("there is no fixing of %s of %s", segment, day.Format(time.DateOnly))
}

// benchmarkMoved explains how far the median moved. Both fixings are computed again, and the change follows from these.
func (w *work) benchmarkMoved(ctx context.Context, segment string, day time.Time, of benchmarkChange, depth int) (*Node, error) {
	median := benchmarkFields[0]
	now, nowAgain, err := w.fixed(ctx, segment, day, median, depth-1)
	if err != nil {
		return nil, err
	}
	then, thenAgain, err := w.fixed(ctx, segment, day.AddDate(0, 0, -of.days), median, depth-1)
	if err != nil {
		return nil, err
	}
	moved := *now.Value - *then.Value
	n := headline(strings.TrimSuffix(now.Number, median.name)+of.name, &moved, percent, day.UnixNano())
	n.Method = &Method{Name: benchmarkForm + "-change", Version: now.Method.Version, Formula: of.formula}
	n.Inputs = []*Node{now, then}
	if nowAgain == nil || thenAgain == nil {
		n.notReproduced("a fixing could not be computed again")
		return n, nil
	}
	again := *nowAgain - *thenAgain
	n.compare(&again)
	return n, nil
}

// benchmarkAt explains what offers come to: of now what the table has of them, and of an instant what the log had, which the zero time is
// none of.
func (w *work) benchmarkAt(ctx context.Context, segment string, field benchmarkField, at time.Time, depth int) (*Node, error) {
	number := benchmarkForm + "/" + segment + "/" + field.name
	if !at.IsZero() {
		number = benchmarkForm + "/" + segment + "/" + query.FormatTime(at.UnixNano()) + "/" + field.name
	} else if w.past {
		at = w.asOf
	}
	rows, last, err := w.offers(ctx, at)
	if err != nil {
		return nil, err
	}
	// What counts is open, as the fold decided it: a row says only once an hour when it was received.
	served, simulated := schemas.EarnQuotes(w.Prices.Coins(), rows, 0)
	w.simulated = w.simulated || simulated
	value := field.value(workedOut(segment, served))
	if value == nil {
		return nil, query.NotFound("no provider of %s has a %s at %s", segment, field.name, query.FormatTime(last))
	}
	n := headline(number, value, field.unit, last)
	n.Method = &Method{Name: benchmarkForm, Version: schemas.EarnMethodology, Formula: field.formula}
	q, err := w.quotesOf(ctx, last, 0)
	if err != nil {
		return nil, err
	}
	if q.why == "" {
		n.compare(field.value(workedOut(segment, q.quotes)))
	} else {
		n.notReproduced(q.why)
	}
	return n, w.quoteInputs(ctx, n, q, segment, field, served, nil, depth)
}
