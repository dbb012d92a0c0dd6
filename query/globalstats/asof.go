package globalstats

import (
	"context"
	"slices"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

var seriesAsOfParam = query.AsOfParam("Point in time. The series that was answered then; period counts back from it. Default: now.")

var asOfParam = query.AsOfParam("Point in time. The answer that was given then, with its age as it was. Default: now.")

// parts are what an answer is made of beside the summary and the age.
type parts int

const (
	partCoins     parts = 1 << iota // the rows of coins
	partFearGreed                   // what sources stated of fear and greed
)

// answerAt is answer as of the instant that a request asks for; without one it is answer. Make may use the summary and the age, and the parts that are
// named.
func (u *Unit) answerAt(ctx context.Context, r *query.Request, k key, of parts, make func(current) (any, error)) (query.Answer, error) {
	at, past := r.Time("asOf")
	if !past {
		return u.answer(r, k, make)
	}
	now, err := u.at(ctx, at, of)
	if err != nil {
		return query.Answer{}, err
	}
	body, err := make(now)
	if err != nil {
		return query.Answer{}, err
	}
	answer, err := query.Encode(body)
	answer.Simulated = now.Summary.GetSimulated() || u.catalog.Snapshot().Simulated
	return answer, err
}

// at is the market as of an instant.
func (u *Unit) at(ctx context.Context, at time.Time, of parts) (now current, err error) {
	summary, err := u.summaryAt(ctx, at)
	if err != nil {
		return now, err
	}
	snapshot := &views.Snapshot{}
	var unrowed, unstated error
	if of&partCoins != 0 {
		if snapshot, unrowed = u.served.Coins.At(ctx, at); unrowed != nil {
			snapshot = &views.Snapshot{}
		}
	}
	if of&partFearGreed != 0 {
		snapshot.FearGreed, now.past, snapshot.Notices, unstated = u.fearGreedAt(ctx, at)
	}
	if err := views.FaultOfParts(unrowed, unstated); err != nil {
		return now, query.FaultOfPast(err, at)
	}
	snapshot.Time, snapshot.Summary = summary.Time, summary
	now.Snapshot, now.age, now.minute = snapshot, query.AgeOf(summary.Time, at, views.StatisticsStaleAfter), at.Truncate(time.Minute)
	return now, nil
}

// fearGreedAt are the days that sources had published by an instant, what was read of them in the log and what history held before, and who they are.
func (u *Unit) fearGreedAt(ctx context.Context, at time.Time) (lately, before []*eventsv1.FearGreed, notices map[string]*eventsv1.SourceNotice, err error) {
	stated, err := u.served.Sources.At(ctx, at)
	if err != nil {
		return nil, nil, nil, err
	}
	before, err = u.history.FearGreedHistory(ctx, at.Add(-(fearGreedDays+1)*day), at.Add(day))
	if err != nil {
		return nil, nil, nil, err
	}
	before = slices.DeleteFunc(before, func(d *eventsv1.FearGreed) bool { return d.IngestTime > at.UnixNano() })
	return stated.FearGreed, before, stated.Notices, nil
}

// summaryAt reads the summary that was served at an instant.
func (u *Unit) summaryAt(ctx context.Context, at time.Time) (*eventsv1.Summary, error) {
	if !views.AnyReplica(ctx) {
		summary, err := u.served.Summaries.At(ctx, at)
		if err == nil && summary == nil {
			err = errNothingServed(at)
		}
		return summary, query.FaultOfPast(err, at)
	}
	end, remembered := u.catalog.SummaryServedAt(at)
	if !remembered {
		written, err := u.history.SummariesWritten(ctx)
		if err != nil {
			return nil, err
		}
		// What the fold has not ended yet is not there to be written.
		if !written.IsZero() && written.UnixNano() < min(end, u.catalog.Snapshot().Time) {
			return nil, errHistoryBehind
		}
	}
	summary, err := u.history.SummaryAt(ctx, time.Unix(0, end))
	if err != nil {
		return nil, err
	}
	// A replay may also have removed the summary, so that an older one is found.
	from := end
	if !remembered {
		from = summary.GetTime()
	}
	restated, err := u.history.Restated(ctx, []string{"summaries", "sentiment"}, []string{""}, time.Unix(0, from), time.Unix(0, end+1), at)
	if err != nil {
		return nil, err
	}
	if !restated.IsZero() { // the log has what it was
		if summary, err = u.served.Summaries.At(ctx, at); err == nil && summary == nil {
			err = errNothingServed(at)
		}
		return summary, query.FaultOfPast(err, at)
	}
	switch {
	case remembered && summary.GetTime() != end:
		return nil, errHistoryBehind
	case summary == nil:
		return nil, errNothingServed(at)
	case len(summary.Sentiment) <= len(schemas.RankRanges): // its rows are being written: all ranks are one segment more
		return nil, errHistoryBehind
	}
	return summary, nil
}

// pastInstant is an instant in the past that a series is asked for as of: the total that was served then, with which coverage compares, USD, and how far the sources' clock
// has been read by now, Unix nanoseconds.
type pastInstant struct {
	at    time.Time
	total float64
	clock int64
}

// reportedFor is for how long before an instant something must have been reported to count as of it: what was read is in the tables some seconds later.
const reportedFor = time.Minute

// reported is what a source reported afterwards of (from, to], by steps, of those that are not taken. As of an instant it fails where a replay has changed since what was
// measured, or sources have reported anything since that may be in its place: the tables keep the newest report of each moment.
func (s *series) reported(ctx context.Context, metric string, from, to time.Time, step time.Duration, taken map[int64]bool, then *pastInstant) ([][]pastValue, error) {
	values, err := s.past(ctx, metric, from, to)
	if err != nil {
		return nil, err
	}
	steps := untaken(values, step, taken)
	if then == nil {
		return steps, nil
	}
	for _, values := range steps {
		for i := range values {
			values[i].coverage = nil
			if then.total > 0 {
				coverage := min(100, 100*values[i].told/then.total)
				values[i].coverage = &coverage
			}
		}
	}
	table, begin := "summaries", from
	if s.ofDefi {
		table = "defi"
		if len(steps) > 0 {
			begin = time.Unix(0, 0) // where anything was measured first ends what counts
		}
	}
	restated, err := s.history.Restated(ctx, []string{table}, nil, begin, to.Add(time.Nanosecond), then.at)
	switch {
	case err != nil:
		return nil, err
	case !restated.IsZero():
		return nil, &views.AgedOutError{Kept: "what no replay has changed afterwards is kept", Since: restated, Instead: seriesInstead}
	case s.ofDefi && metric != pastOfDefi:
		return steps, nil
	}
	until := then.at.Add(-reportedFor)
	written, err := s.history.ReportedWritten(ctx)
	if err != nil {
		return nil, err
	}
	if !written.IsZero() && written.UnixNano() < min(until.UnixNano(), then.clock) {
		return nil, errHistoryBehind
	}
	last, times, err := s.history.ReportedSince(ctx, s.ofDefi, from, to, until)
	if err != nil {
		return nil, err
	}
	if !last.IsZero() && slices.ContainsFunc(times, func(at time.Time) bool { return !taken[stepOf(at.UnixNano(), step)] }) {
		return nil, &views.AgedOutError{Kept: "what sources reported of the past until now is kept", Since: last.Add(reportedFor).UTC(), Instead: seriesInstead}
	}
	return steps, nil
}

const seriesInstead = "without asOf series have what is known now of the time before"

func errNothingServed(at time.Time) error {
	return query.NotFound("no minute in which a coin had a market cap was served by %s", query.FormatTime(at.UnixNano()))
}

var errHistoryBehind = query.Starting("history has not come to the minute that was served then yet")
