package backfill

import (
	"context"
	"slices"
	"time"

	"github.com/marketlog/marketlog/producers/adapter"
	"github.com/marketlog/marketlog/producers/poll"
)

// Plan reports what is left to do; it asks the log only.
func (j *SourceJob) Plan(ctx context.Context) (Plan, error) {
	known, err := j.read(ctx)
	if err != nil {
		return Plan{}, err
	}
	return j.plan(known), nil
}

// plan compares what is wanted with what the log holds. All times it speaks of are whole intervals.
func (j *SourceJob) plan(known State) Plan {
	past := j.Source.Past
	p := Plan{Source: j.Source.Slug, Markets: len(j.Series), Rows: past.Rows, Pace: j.Pace}
	now := j.Clock.Now()
	step := int64(past.Interval)
	wanted := span{ceil(j.From, past.Interval), min(j.To.UnixNano(), now.Add(-past.Settle).UnixNano()) / step * step}
	oldest, why := int64(0), ""
	if !past.Since.IsZero() {
		oldest, why = ceil(past.Since, past.Interval), "the source's past begins later"
	}
	if past.Back > 0 {
		oldest, why = ceil(now.Add(-past.Back), past.Interval), "the source no longer has it"
	}
	named := make([]adapter.Instrument, len(j.Series))
	for i, s := range j.Series {
		named[i] = instrument(s)
		var read, empty []span
		if one := known[j.key(s)]; one != nil {
			read, empty = one.read, one.empty
		}
		absent := func(spans []span, reason string) {
			for _, s := range spans {
				p.Unavailable = append(p.Unavailable, Absence{newRange(named[i], past.Interval, s), reason})
			}
		}
		absent(subtract(span{wanted.from, min(wanted.to, oldest)}, read), why)
		absent(intersect(wanted, empty), "read, and the source had nothing")
		missing := subtract(span{max(wanted.from, oldest), wanted.to}, read)
		for _, s := range missing {
			p.Missing = append(p.Missing, newRange(named[i], past.Interval, s))
		}
		p.Calls = append(p.Calls, j.calls(named[i], missing)...)
	}
	p.fit(named, j.MaxCalls)
	return p
}

// calls cuts what is missing of a series into what one answer holds, in the order of asking. How many there are in the end
// the responses have: a series may begin late, or have gaps.
func (j *SourceJob) calls(named adapter.Instrument, missing []span) []Range {
	past := j.Source.Past
	if len(missing) == 0 {
		return nil
	}
	if past.Rows == 0 {
		return []Range{newRange(named, past.Interval, span{missing[0].from, missing[len(missing)-1].to})}
	}
	var calls []Range
	size := int64(past.Interval) * int64(past.Rows)
	for _, s := range missing {
		for from := s.from; from < s.to; from += size {
			calls = append(calls, newRange(named, past.Interval, span{from, min(from+size, s.to)}))
		}
	}
	if !past.OldestFirst {
		slices.Reverse(calls)
	}
	return calls
}

func (j *SourceJob) key(s poll.Series) seriesKey {
	return seriesKey{j.Producer, j.Source.Slug, s.ID, j.Source.Past.Interval}
}

// instrument is a series in the terms of a market.
func instrument(s poll.Series) adapter.Instrument {
	return adapter.Instrument{Symbol: s.ID, Base: s.Symbol}
}

func floor(at int64, interval time.Duration) int64 { return at - at%int64(interval) }
