package globalstats

import (
	"context"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

var asOfParam = query.AsOfParam("Point in time: the answer that was given then, with its age as it was. Where no server recorded which minute it served then, " +
	"the answer is the last one that had ended a minute before. Default: now.")

// answerAt is answer as of the instant that a request asks for; without one it is answer. Make may use the summary and the age alone.
func (u *Unit) answerAt(ctx context.Context, r *query.Request, k key, make func(current) (any, error)) (query.Answer, error) {
	at, past := r.Time("asOf")
	if !past {
		return u.answer(r, k, make)
	}
	summary, err := u.summaryAt(ctx, at)
	if err != nil {
		return query.Answer{}, err
	}
	body, err := make(current{Snapshot: &views.Snapshot{Time: summary.Time, Summary: summary}, age: query.AgeOf(summary.Time, at, views.StatisticsStaleAfter),
		minute: at.Truncate(time.Minute)})
	if err != nil {
		return query.Answer{}, err
	}
	answer, err := query.Encode(body)
	answer.Simulated = summary.Simulated || u.catalog.Snapshot().Simulated
	return answer, err
}

// summaryAt reads the summary that was served at an instant.
func (u *Unit) summaryAt(ctx context.Context, at time.Time) (*eventsv1.Summary, error) {
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
		if summary, err = u.logged.At(ctx, at); err == nil && summary == nil {
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

func errNothingServed(at time.Time) error {
	return query.NotFound("no minute in which a coin had a market cap was served by %s", query.FormatTime(at.UnixNano()))
}

var errHistoryBehind = query.Starting("history has not come to the minute that was served then yet")
