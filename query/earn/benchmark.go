package earn

import (
	"context"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// maxDays bounds a history; 30 days more are read for the changes of its end.
const maxDays = 1825

// BenchmarkBody answers GET /api/v1/earn/benchmark.
type BenchmarkBody struct {
	Data Benchmark     `json:"data"`
	Meta BenchmarkMeta `json:"meta"`
}

// BenchmarkMeta describes a benchmark.
type BenchmarkMeta struct {
	query.Meta
	query.AgeMeta
}

// Benchmark is what flexible deposits of USD stablecoins earn, in percent a year.
type Benchmark struct {
	AsOf        string   `json:"asOf" format:"date-time" doc:"Midnight (UTC) of the last fixing; if provisional, the end of the last minute"`
	Segment     string   `json:"segment" enum:"overall,cefi,defi" doc:"Providers that are included: overall is all, cefi exchanges, defi protocols"`
	Provisional bool     `json:"provisional" doc:"There is no fixing yet: the figures are current ones"`
	Median      *float64 `json:"median,omitempty" explain:"earn-benchmark/{segment}/{asOf}/median" doc:"Over providers, one rate each; absent if none is accepted"`
	TVLWeighted *float64 `json:"tvlWeighted,omitempty" explain:"earn-benchmark/{segment}/{asOf}/tvlWeighted" doc:"Over all providers that report a TVL"`
	// ProviderCount counts those with a rate.
	ProviderCount int          `json:"providerCount" explain:"earn-benchmark/{segment}/{asOf}/providerCount" doc:"Number of providers with an accepted rate"`
	TVL           *float64     `json:"tvl,omitempty" explain:"earn-benchmark/{segment}/{asOf}/tvl" doc:"USD; total weight of tvlWeighted"`
	CeFi          CeFiPart     `json:"cefi" doc:"At the same time, over exchanges"`
	DeFi          DeFiPart     `json:"defi" doc:"At the same time, over protocols"`
	Delta         Delta        `json:"delta" doc:"Changes of the median, in percentage points"`
	History       []DayRate    `json:"history" doc:"Fixings of the median, oldest first; a day without one is left out"`
	Current       *CurrentPart `json:"current,omitempty" doc:"The current value, not fixed"`
	Correction    *Correction  `json:"correction,omitempty" doc:"Present if the last fixing is a correction"`
	Methodology   uint32       `json:"methodologyVersion" doc:"Version of the formulas that the values were computed by"`
}

// Part is a segment at one time. Answers have it in types of the same fields, since each place names its numbers in its own way.
type Part struct {
	Median        *float64 `json:"median,omitempty"`
	TVLWeighted   *float64 `json:"tvlWeighted,omitempty"`
	ProviderCount int      `json:"providerCount"`
}

// CeFiPart is that of exchanges.
type CeFiPart struct {
	Median        *float64 `json:"median,omitempty" explain:"earn-benchmark/cefi/{asOf}/median" doc:"Over exchanges, one rate each, percent per year; absent if none is accepted"`
	TVLWeighted   *float64 `json:"tvlWeighted,omitempty" explain:"earn-benchmark/cefi/{asOf}/tvlWeighted" doc:"Mean weighted by TVL over exchanges that report one, percent per year; absent if none does"`
	ProviderCount int      `json:"providerCount" explain:"earn-benchmark/cefi/{asOf}/providerCount" doc:"Number of exchanges with an accepted rate"`
}

// DeFiPart is that of protocols.
type DeFiPart struct {
	Median        *float64 `json:"median,omitempty" explain:"earn-benchmark/defi/{asOf}/median" doc:"Over protocols, one rate each, percent per year; absent if none is accepted"`
	TVLWeighted   *float64 `json:"tvlWeighted,omitempty" explain:"earn-benchmark/defi/{asOf}/tvlWeighted" doc:"Mean weighted by TVL over protocols that report one, percent per year; absent if none does"`
	ProviderCount int      `json:"providerCount" explain:"earn-benchmark/defi/{asOf}/providerCount" doc:"Number of protocols with an accepted rate"`
}

// CurrentPart is the segment that was asked for, as it is now.
type CurrentPart struct {
	Median        *float64 `json:"median,omitempty" explain:"earn-benchmark/{segment}/median" doc:"Over the providers of the segment, one rate each, percent per year; absent if none is accepted"`
	TVLWeighted   *float64 `json:"tvlWeighted,omitempty" explain:"earn-benchmark/{segment}/tvlWeighted" doc:"Mean weighted by TVL over providers that report one, percent per year; absent if none does"`
	ProviderCount int      `json:"providerCount" explain:"earn-benchmark/{segment}/providerCount" doc:"Number of providers of the segment with an accepted rate"`
}

// Delta is how far the median moved; a change since a day without a fixing is left out.
type Delta struct {
	Day   *float64 `json:"1d,omitempty" explain:"earn-benchmark/{segment}/{asOf}/change1d" doc:"Since the fixing of the day before; absent without one"`
	Week  *float64 `json:"7d,omitempty" explain:"earn-benchmark/{segment}/{asOf}/change7d" doc:"Since the fixing of 7 days before; absent without one"`
	Month *float64 `json:"30d,omitempty" explain:"earn-benchmark/{segment}/{asOf}/change30d" doc:"Since the fixing of 30 days before; absent without one"`
}

// DayRate is the fixing of a day.
type DayRate struct {
	Date       string  `json:"date" format:"date" doc:"Day (UTC) that begins with the fixing"`
	Value      float64 `json:"value" explain:"earn-benchmark/{segment}/{date}/median" doc:"Median of the fixing, percent per year"`
	Supersedes string  `json:"supersedes,omitempty" doc:"The fixing that this correction supersedes, as date/segment/revision"`
}

// Correction reports what a fixing takes the place of.
type Correction struct {
	Revision   int    `json:"revision" doc:"Number of the correction of this fixing, from 1"`
	Supersedes string `json:"supersedes" example:"2026-01-31/overall/0" doc:"The fixing that it supersedes, as date/segment/revision"`
	Reason     string `json:"reason" doc:"Why the fixing was corrected"`
	WrittenAt  string `json:"writtenAt" format:"date-time" doc:"End of the minute in which the correction was written"`
}

func (u *Unit) getBenchmark(ctx context.Context, r *query.Request) (query.Answer, error) {
	s, at, err := u.stateAt(ctx, r)
	if err != nil {
		return query.Answer{}, err
	}
	past := r.Has("asOf")
	if s.time == 0 {
		return query.Answer{}, query.Starting("there are no earn products yet")
	}
	all, err := u.fixed(ctx, at, past)
	if err != nil {
		return query.Answer{}, err
	}
	segment, days := r.Text("segment"), int(r.Integer("history_days"))
	if past {
		days = r.HistoryIntervalsAsOf(days, day, "history_days", at)
	} else {
		days = r.HistoryIntervals(days, day, "history_days")
	}
	// What counts is open, which the fold decided; when it was received is written in its row only once an hour.
	quotes, simulated := schemas.EarnQuotes(u.coins, s.variants, 0)
	now, fixings := current(quotes), newest(all)
	data := Benchmark{Segment: segment, History: []DayRate{}, Methodology: schemas.EarnMethodology}
	if last := fixings.last(); last.IsZero() {
		data.Provisional, data.AsOf, data.CeFi, data.DeFi = true, query.FormatTime(s.time), CeFiPart(now[schemas.EarnCeFi]), DeFiPart(now[schemas.EarnDeFi])
		data.set(now[segment])
	} else {
		data.AsOf = query.FormatTime(last.UnixNano())
		data.CeFi, data.DeFi = CeFiPart(fixings.part(schemas.EarnCeFi, last)), DeFiPart(fixings.part(schemas.EarnDeFi, last))
		data.set(fixings.part(segment, last))
		data.Delta = Delta{fixings.delta(segment, last, 1), fixings.delta(segment, last, 7), fixings.delta(segment, last, 30)}
		data.History = fixings.history(segment, last, days)
		if f := fixings[fixingKey{segment, last}]; f != nil {
			simulated, data.Methodology = simulated || f.Simulated, f.MethodologyVersion
			if f.TvlUsd > 0 {
				data.TVL = &f.TvlUsd
			}
			if f.Supersedes != "" {
				data.Correction = &Correction{int(f.Revision), f.Supersedes, f.Reason, query.FormatTime(f.Time)}
			}
		}
		part := CurrentPart(now[segment])
		data.Current = &part
	}
	body := BenchmarkBody{Data: data, Meta: BenchmarkMeta{query.Meta{Count: len(data.History), LastUpdated: query.FormatTime(s.time), Clamped: r.Clamped()},
		query.AgeOf(s.time, at, staleAfter).Meta()}}
	answer, err := query.Encode(body)
	answer.Simulated = simulated
	return answer, err
}

func (b *Benchmark) set(p Part) {
	b.Median, b.TVLWeighted, b.ProviderCount = p.Median, p.TVLWeighted, p.ProviderCount
}

// fixed are the fixings that any answer needs, at most some seconds old, or those of an instant in the past.
func (u *Unit) fixed(ctx context.Context, at time.Time, past bool) ([]*eventsv1.EarnFixing, error) {
	from := at.AddDate(0, 0, -maxDays-31)
	if past {
		all, err := views.EarnFixingsAsOf(ctx, u.history, from, at)
		return all, query.FaultOfPast(err, at)
	}
	return u.fixings.Get(context.WithoutCancel(ctx), at.UnixNano()/int64(readFor), otter.LoaderFunc[int64, []*eventsv1.EarnFixing](
		func(ctx context.Context, _ int64) ([]*eventsv1.EarnFixing, error) {
			ctx, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			return u.history.EarnFixings(ctx, from)
		}))
}

// current works out the current segments.
func current(quotes []*eventsv1.EarnQuote) map[string]Part {
	parts := map[string]Part{}
	for _, segment := range schemas.EarnSegments {
		if b, ok := schemas.NewEarnBenchmark(segment, quotes); ok {
			parts[segment] = Part{&b.Median, b.TvlWeighted, len(b.Quotes)}
		}
	}
	return parts
}

type fixingKey struct {
	segment string
	date    time.Time
}

// calendar holds of each segment and day the fixing that no other has taken the place of.
type calendar map[fixingKey]*eventsv1.EarnFixing

// newest takes fixings in the order of their revisions.
func newest(all []*eventsv1.EarnFixing) calendar {
	c := calendar{}
	for _, f := range all {
		if date, err := time.Parse(time.DateOnly, f.Date); err == nil {
			c[fixingKey{f.Segment, date}] = f
		}
	}
	return c
}

// last is the newest day with a fixing, of all segments, so that they are all of the same time; zero for none.
func (c calendar) last() (last time.Time) {
	for key := range c {
		if key.date.After(last) {
			last = key.date
		}
	}
	return last
}

func (c calendar) part(segment string, date time.Time) Part {
	f := c[fixingKey{segment, date}]
	if f == nil {
		return Part{}
	}
	return Part{&f.Median, f.TvlWeighted, int(f.ProviderCount)}
}

func (c calendar) delta(segment string, date time.Time, days int) *float64 {
	now, then := c[fixingKey{segment, date}], c[fixingKey{segment, date.AddDate(0, 0, -days)}]
	if now == nil || then == nil {
		return nil
	}
	moved := now.Median - then.Median
	return &moved
}

func (c calendar) history(segment string, last time.Time, days int) []DayRate {
	list := []DayRate{}
	for date := last.AddDate(0, 0, 1-days); !date.After(last); date = date.AddDate(0, 0, 1) {
		if f := c[fixingKey{segment, date}]; f != nil {
			list = append(list, DayRate{f.Date, f.Median, f.Supersedes})
		}
	}
	return list
}
