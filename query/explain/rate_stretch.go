package explain

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// mostRolled bounds the hours and days of single rates that are read for a chart.
const mostRolled = 50_000

// rateStretch is a stretch of the series of providers that ends at a minute: as tables have it, and made again of what single rates did in its hours and days and, in steps of minutes and
// in the hour under way, of the rates that the log has. Note says why the latter was not possible.
type rateStretch struct {
	served, again []views.RateSeries
	note          string
	// held are the rates of each provider that count at the end, rolled what the single rates did, the newest last.
	held   map[string][]loggedRate
	rolled []views.RatePoint
}

// rateStretch reads the series of a chart from the start of an interval until a minute.
func (w *work) rateStretch(ctx context.Context, l rateLine, until time.Time) (*rateStretch, error) {
	chart := views.RateChart{CoinID: l.coinID, Category: l.category, Provider: l.provider, Step: l.step, Intervals: int(until.Truncate(l.step).Sub(l.start) / l.step)}
	s := &rateStretch{}
	var served, again []views.RateSeries
	var samples []time.Time
	read := func(q views.RateQuery) ([]views.RateSeries, error) {
		series, err := w.History.RateSeries(ctx, q)
		for _, of := range series {
			w.simulated = w.simulated || of.Simulated
		}
		served = append(served, series...)
		return series, err
	}
	for _, q := range chart.Parts(until) {
		if _, err := read(q); err != nil {
			return nil, err
		}
		if q.Step < time.Hour {
			for start := q.From; start.Before(q.To); start = start.Add(q.Step) {
				samples = append(samples, start)
			}
			continue
		}
		series, err := w.rolledSeries(ctx, s, q)
		if err != nil {
			return nil, err
		}
		again = append(again, series...)
	}
	// What counts at the end comes last.
	last, err := read(chart.Part(until.Add(-time.Minute), until, time.Minute))
	if err != nil {
		return nil, err
	}
	for _, of := range last {
		of.Points[0].Start = until
	}
	sampled, err := w.sampledAgain(ctx, s, chart, append(samples, until), until)
	if err != nil {
		return nil, err
	}
	current := w.Yields.Current(w.now)
	s.served, s.again = chart.Join(current, served), chart.Join(current, append(again, sampled...))
	return s, nil
}

// rolledSeries makes series again of what single rates did in hours or days.
func (w *work) rolledSeries(ctx context.Context, s *rateStretch, q views.RateQuery) (series []views.RateSeries, err error) {
	q.Limit = mostRolled
	rolled, err := w.History.RateHistory(ctx, q)
	if err != nil {
		return nil, err
	}
	if len(rolled) == mostRolled {
		s.note = fmt.Sprintf("not computed again: it is of more than %d hours or days of single rates", mostRolled)
	}
	slices.Reverse(rolled) // the newest came first
	s.rolled = append(s.rolled, rolled...)
	for len(rolled) > 0 {
		first := rolled[0]
		n := slices.IndexFunc(rolled, func(p views.RatePoint) bool { return !p.Start.Equal(first.Start) })
		if n < 0 {
			n = len(rolled)
		}
		byProvider := map[string][]views.RatePoint{}
		for _, p := range rolled[:n] {
			byProvider[p.Provider] = append(byProvider[p.Provider], p)
		}
		for provider, pools := range byProvider {
			series = append(series, views.RateSeries{Provider: provider, CoinID: first.CoinID, Category: first.Category, Points: []views.RateSeriesPoint{*views.MeanOfRolled(pools)}})
		}
		rolled = rolled[n:]
	}
	return series, nil
}

// sampledAgain makes points again of the rates that the log has when the samples end that start at some times, the last one at its start; these come in their order.
func (w *work) sampledAgain(ctx context.Context, s *rateStretch, chart views.RateChart, starts []time.Time, until time.Time) (series []views.RateSeries, err error) {
	step := min(chart.Step, views.RateSample)
	end := func(start time.Time) time.Time {
		if of := start.Add(step); of.Before(until) {
			return of
		}
		return until
	}
	first := end(starts[0])
	if err := w.agedOut(ctx, schemas.TopicRates, first.UnixNano()); err != nil {
		return nil, err
	}
	written, err := w.ratesWritten(ctx, chart.Category, first.UnixNano()-ratesRepeated, until.UnixNano())
	if err != nil {
		return nil, err
	}
	type rateID struct{ source, pool string }
	standing := map[rateID]loggedRate{}
	for _, start := range starts {
		at := end(start).UnixNano()
		for ; len(written) > 0 && written[0].entry.Time <= at; written = written[1:] {
			standing[rateID{written[0].entry.Source, written[0].entry.Pool}] = written[0]
		}
		s.held = map[string][]loggedRate{}
		for _, of := range standing {
			e := of.entry
			if e.CoinId == chart.CoinID && (chart.Provider == "" || e.Provider == chart.Provider) && views.RateCounts(e, at) && e.Time >= at-int64(sampledFor) {
				s.held[e.Provider] = append(s.held[e.Provider], of)
			}
		}
		for _, provider := range slices.Sorted(maps.Keys(s.held)) {
			slices.SortFunc(s.held[provider], inOrder)
			rates := make([]*eventsv1.RateEntry, len(s.held[provider]))
			for i, of := range s.held[provider] {
				rates[i] = of.entry
			}
			mean, tvl := views.MeanRate(rates)
			series = append(series, views.RateSeries{Provider: provider, CoinID: chart.CoinID, Category: chart.Category,
				Points: []views.RateSeriesPoint{{Start: start, Open: mean, High: mean, Low: mean, Close: mean, Mean: mean, TVL: tvl, Rates: len(rates)}}})
		}
	}
	return series, nil
}

// ratesWritten are the rates of a category that the log has of a span, in the order of time.
func (w *work) ratesWritten(ctx context.Context, category string, from, to int64) (written []loggedRate, err error) {
	_, err = w.scan(ctx, schemas.TopicRates, 0, from, to, func(r *kgo.Record) bool {
		record, err := schemas.DecodeRecord(schemas.TopicRates, r.Value)
		if rate, ok := record.(*eventsv1.RateRecord); err == nil && ok && rate.GetEntry().GetCategory() == category {
			written = append(written, loggedRate{rate.GetEntry(), place(schemas.TopicRates, 0, r.Offset)})
		}
		return true
	})
	return written, err
}

// locked are the TVLs that a provider's last point adds up: of the rates that count at the end, or where none of these has one, of the last hour or day with one.
func (s *rateStretch) locked(provider string) (inputs []*Node) {
	for _, of := range s.held[provider] {
		if e := of.entry; e.TvlUsd != nil {
			inputs = append(inputs, stated("weight/"+e.Provider+"/"+e.Category+"/"+e.Pool, e.TvlUsd, usd, e.Time, of.at))
		}
	}
	if len(inputs) > 0 {
		return inputs
	}
	start := time.Time{}
	for _, p := range slices.Backward(s.rolled) {
		if p.Provider != provider || p.TVL == nil || !start.IsZero() && !p.Start.Equal(start) {
			continue
		}
		start = p.Start
		inputs = append(inputs, headline("weight/"+p.Provider+"/"+p.Category+"/"+p.Pool, p.TVL, usd, p.Start.UnixNano()))
	}
	return inputs
}
