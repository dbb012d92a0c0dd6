package query

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
)

const (
	// asOf is the name of the parameter that asks for the past.
	asOf = "asOf"
	// pastRetry is in seconds, where the past could not be read in time.
	pastRetry = 5
	// RecordedFor is for how long before an instant a record of the log must have been written to count as of it: whoever asks gets it some seconds later.
	RecordedFor = time.Minute
)

// AsOfParam declares the parameter that asks an operation for what it answered at a past instant, as far back as the plan's history.
func AsOfParam(doc string) Param {
	return Param{Name: asOf, Kind: Time, Past: true, Planned: true, Stored: true, AgesOut: true, Positions: true, Essential: true, Example: "2026-01-31T12:00:00Z", Doc: doc}
}

// Values of KnowledgeParam.
const (
	knowledgeSaid   = "said"
	knowledgeLatest = "latest"
)

// KnowledgeParam declares as whose knowledge candles are answered as of an instant.
var KnowledgeParam = Param{Name: "knowledge", Kind: Text, Allowed: []string{knowledgeSaid, knowledgeLatest}, Essential: true,
	Doc: "With `asOf`: said is what was answered then; latest is what is known now of the time up to then, with what was back-filled, imported or replayed since. Default: said."}

// OnlyWithAsOf refuses a parameter that means something of an instant only, where no instant is asked for.
func (r *Request) OnlyWithAsOf(param string) error {
	if r.Text(param) == "" {
		return nil
	}
	why := "needs asOf"
	return &Error{Status: http.StatusBadRequest, Code: CodeValidation, Fields: map[string][]string{param: {why}}, Message: param + " " + why + ": without it an answer is of what is known now"}
}

// CandlesAsOf reads the candles of a coin as of an instant, by the knowledge that the request asks for.
func (r *Request) CandlesAsOf(ctx context.Context, candles *views.Candles, coin schemas.Coin, step time.Duration, intervals int, at time.Time) (read []schemas.Candle, err error) {
	if r.Text(KnowledgeParam.Name) == knowledgeLatest {
		read, err = candles.Until(ctx, coin, step, intervals, at)
	} else {
		read, err = candles.AsOf(ctx, coin, step, intervals, at)
	}
	return read, FaultOfPast(err, at)
}

// FaultOfPast turns what keeps an answer as of an instant from being made into what the caller can do about it. Other faults stay as they
// are.
func FaultOfPast(err error, at time.Time) error {
	aged, gap, unknown := (*views.AgedOutError)(nil), (*views.OffsetGapError)(nil), (*views.UnknownReplicaError)(nil)
	switch {
	case errors.As(err, &unknown):
		e := AgedOut(time.Time{}, "%s", unknown)
		e.Hint = "ask for " + asOf + "=" + FormatTime(at.UnixNano()) + ", which is answered by what any replica served"
		return e
	case errors.As(err, &aged) && aged.Since.IsZero():
		e := AgedOut(aged.Since, "%s; %s", aged, aged.Instead)
		e.Hint = "ask without " + asOf + " for what is known now"
		return e
	case errors.As(err, &aged):
		e := AgedOut(aged.Since, "%s, and %s is before that; %s", aged, FormatTime(at.UnixNano()), aged.Instead)
		e.Hint = "ask for " + asOf + "=" + FormatTime(e.AvailableFrom) + " or later"
		return e
	case errors.Is(err, views.ErrHistoryBehind):
		return Starting(err.Error())
	case errors.As(err, &gap):
		return AgedOut(time.Time{}, "%s", gap)
	case errors.Is(err, context.DeadlineExceeded):
		return &Error{Status: http.StatusServiceUnavailable, Code: CodeOverloaded, RetryAfter: pastRetry, Message: "reading the past took too long: try again"}
	}
	return err
}

// PriceNotKept refuses the price of a coin as of an instant by which our venues had none, or an old one: a reference source may have reported it.
func PriceNotKept(coinID string, at time.Time) error {
	instant := FormatTime(at.UnixNano())
	return NotSupported(asOf, "by %s our venues had no price of %s that was younger than %s, and prices of reference sources are not kept as they were served: "+
		"/api/v1/explain/price/%s?asOf=%s has what is known of it", instant, coinID, schemas.OwnPriceFor, coinID, instant)
}

// HistoryFrom is from when on the caller's plan lets rates of the past be reported: from itself, or where the plan begins. What
// it cuts off is reported as the days that are left, in meta.clamped under the name of a parameter. Every operation that answers
// the history of rates asks it, whatever it calls its span.
func (r *Request) HistoryFrom(from time.Time, param string) time.Time {
	oldest := r.Now.UTC().AddDate(0, 0, -r.Plan.HistoryDays)
	if !from.Before(oldest) {
		return from
	}
	r.clamp(param, int64(r.Plan.HistoryDays))
	return oldest
}

// HistoryIntervals is HistoryFrom for a number of closed intervals of a length.
func (r *Request) HistoryIntervals(intervals int, step time.Duration, param string) int {
	most := int(time.Duration(r.Plan.HistoryDays) * 24 * time.Hour / step)
	if intervals <= most {
		return intervals
	}
	r.clamp(param, int64(r.Plan.HistoryDays))
	return most
}

// OldestAsOf is from when on the caller's plan lets an answer as of an instant reach: what it allowed then, as far as it still does now, by whole days.
func (r *Request) OldestAsOf(at time.Time) time.Time {
	oldest := at.UTC().AddDate(0, 0, -r.Plan.HistoryDays)
	if now := r.Now.UTC().AddDate(0, 0, -r.Plan.HistoryDays).Truncate(24 * time.Hour); oldest.Before(now) {
		return now
	}
	return oldest
}

// HistoryFromAsOf is HistoryFrom of an answer as of an instant.
func (r *Request) HistoryFromAsOf(from time.Time, param string, at time.Time) time.Time {
	oldest := r.OldestAsOf(at)
	if !from.Before(oldest) {
		return from
	}
	r.clamp(param, int64(at.Sub(oldest)/(24*time.Hour)))
	return oldest
}

// HistoryIntervalsAsOf is HistoryIntervals of an answer as of an instant: those that the plan allowed then, as far as it still does now.
func (r *Request) HistoryIntervalsAsOf(intervals int, step time.Duration, param string, at time.Time) int {
	most := int((time.Duration(r.Plan.HistoryDays)*24*time.Hour - r.Now.UTC().Truncate(step).Sub(at.UTC().Truncate(step))) / step)
	if intervals <= most {
		return intervals
	}
	most = max(most, 0)
	r.clamp(param, int64(time.Duration(most)*step/(24*time.Hour)))
	return most
}

// withinPlan refuses times of Planned parameters from before what the caller's plan allows. Where one instant is asked for, another
// one would be another answer, so it is not cut.
func (r *Request) withinPlan() error {
	for i := range r.endpoint.Params {
		if p := &r.endpoint.Params[i]; p.Planned && r.values[i].set {
			if err := r.WithinPlan(p.Name, r.values[i].at); err != nil {
				return err
			}
		}
	}
	return nil
}

// WithinPlan refuses a time from before the history that the caller's plan includes: one that a parameter has in another form than that
// of a time, such as the day in the name of a number.
func (r *Request) WithinPlan(param string, at time.Time) error {
	oldest := r.Now.UTC().AddDate(0, 0, -r.Plan.HistoryDays)
	if !at.Before(oldest) {
		return nil
	}
	why := fmt.Sprintf("must be %s or later", FormatTime(oldest.UnixNano()))
	return &Error{Status: http.StatusPaymentRequired, Code: CodePlanRequired, Fields: map[string][]string{param: {why}},
		Message: fmt.Sprintf("the plan %s includes %d days of history: %s %s", r.Plan.Name, r.Plan.HistoryDays, param, why)}
}

// clamp notes for meta.clamped to what a parameter was lowered.
func (r *Request) clamp(param string, to int64) {
	if r.clamped == nil {
		r.clamped = map[string]int64{}
	}
	r.clamped[param] = to
}
