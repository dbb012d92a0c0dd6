package backfill

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/adapter"
	"github.com/marketlog/marketlog/producers/poll"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// Outbox writes the values of a polled source to the log; that of a producers.SourceLog is one. Both return once
// the log has it.
type Outbox interface {
	Append(ctx context.Context, records ...*eventsv1.ReferenceRecord) error
	Dead(ctx context.Context, letter *eventsv1.DeadLetter) error
}

// SourceJob is a back-fill of one polled source. Of each source one may work on a log at a time.
type SourceJob struct {
	// Source has a Past, and is the one by which its listing was decoded.
	Source poll.Source
	// URL is where the source is asked, without a slash at the end.
	URL string
	// Producer distinguishes histories of different origin: that of the source and that of a simulator.
	Producer string
	// Series are read in this order.
	Series []poll.Series
	// Values of [From, To) are wanted, in whole intervals of the source.
	From, To time.Time
	// MaxCalls leaves the last series to another time, those that would need more calls in all; 0 leaves none.
	MaxCalls int
	// Fetch keeps within the budget, which is LagLimiter calls a second.
	Fetch adapter.Fetcher
	Pace  float64
	// Log keeps the ranges, Out the values.
	Log Log
	Out Outbox
	// Known is what the log held just now, where it was read for several jobs; nil: it is read. A job that ran needs
	// another.
	Known State
	Clock producers.Clock
	// Report receives the progress, about once a second; one call at a time.
	Report func(Progress) error
}

// Listed asks a source what it has a past of, the best known first.
func Listed(ctx context.Context, s poll.Source, url string, f adapter.Fetcher) ([]poll.Series, error) {
	var readings poll.Readings
	for _, path := range s.Past.Listing {
		body, err := f.Fetch(ctx, http.MethodGet, url+path)
		if err != nil {
			return nil, fmt.Errorf("fetching the list of histories of %s: %w", s.Slug, err)
		}
		if err := s.Decode(path, body, &readings); err != nil {
			return nil, fmt.Errorf("reading the list of histories of %s: %w", s.Slug, err)
		}
	}
	return s.Past.Series(readings.Records), nil
}

func (j *SourceJob) read(ctx context.Context) (State, error) {
	if j.Known != nil {
		return j.Known, nil
	}
	return ReadState(ctx, j.Log)
}

// Run reads what is left to do, to its end. The error wraps ErrIncomplete if only single ranges failed.
func (j *SourceJob) Run(ctx context.Context) (Result, error) {
	known, err := j.read(ctx)
	if err != nil {
		return Result{}, err
	}
	plan := j.plan(known)
	r := &sourceRun{SourceJob: j, tally: newTally(j.Source.Slug, len(plan.Calls), j.Clock, j.Report)}
	r.result.Series = int64(len(j.Series))
	missing := map[string][]span{}
	for _, m := range plan.Missing {
		missing[m.Market.Symbol] = append(missing[m.Market.Symbol], span{m.From.UnixNano(), m.To.UnixNano()})
	}
	g, working := errgroup.WithContext(ctx)
	g.SetLimit(inFlight)
	for _, s := range j.Series {
		if working.Err() != nil {
			break
		}
		if len(missing[s.ID]) == 0 {
			continue
		}
		g.Go(func() error {
			if err := working.Err(); err != nil {
				return err
			}
			return r.series(working, s, missing[s.ID])
		})
	}
	return r.end(g.Wait())
}

// sourceRun is one time of running a SourceJob.
type sourceRun struct {
	*SourceJob
	*tally
}

// series reads what is missing of one series, answer by answer. What fails ends it, not the run.
func (r *sourceRun) series(ctx context.Context, s poll.Series, missing []span) error {
	past := r.Source.Past
	planned, made := len(r.calls(instrument(s), missing)), 0
	defer func() { r.expect(made - planned) }()
	for len(missing) > 0 {
		asked := missing[len(missing)-1]
		switch {
		case past.Rows == 0:
			asked.from = missing[0].from
		case past.OldestFirst:
			asked = missing[0]
		}
		made++
		readings, err := r.ask(ctx, s, asked)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			from, to := time.Unix(0, asked.from).UTC(), time.Unix(0, asked.to).UTC()
			return r.count(Result{}, fmt.Errorf("%s of %s from %s to %s: %w", r.Source.Slug, s.ID, from.Format(time.RFC3339), to.Format(time.RFC3339), err))
		}
		read, left := r.alreadyRead(asked, missing, readings)
		values, err := r.write(ctx, s, readings, read)
		if err != nil {
			return err
		}
		if err := r.count(Result{Values: int64(values)}, nil); err != nil {
			return err
		}
		missing = left
	}
	return nil
}

// ask returns what the source reports of a time of a series, the oldest first; it may return more.
func (r *sourceRun) ask(ctx context.Context, s poll.Series, asked span) ([]*eventsv1.ReferenceRecord, error) {
	path := r.Source.Past.Path(s, time.Unix(0, asked.from).UTC(), time.Unix(0, asked.to).UTC())
	body, err := r.Fetch.Fetch(ctx, http.MethodGet, r.URL+path)
	if err != nil {
		return nil, err
	}
	readings, refused, err := r.Source.ReadPast(path, body)
	r.refuse(len(refused))
	if bad := errors.Join(append(refused, err)...); bad != nil {
		letter := &eventsv1.DeadLetter{
			Reason: string(producers.ReasonOf(bad)), Detail: bad.Error(), Source: r.Source.Slug, AdapterVersion: r.Source.Version, Payload: body,
		}
		if err := r.Out.Dead(ctx, letter); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(readings, func(a, b *eventsv1.ReferenceRecord) int { return int(min(max(moment(a)-moment(b), -1), 1)) })
	return readings, err
}

// alreadyRead returns which of the missing ranges a response has covered, and what is left. An answer that does not reach to the end of
// what was asked for is followed by another, and only an empty one says that nothing more is there: how much an answer holds
// is the source's to change.
func (r *sourceRun) alreadyRead(asked span, missing []span, readings []*eventsv1.ReferenceRecord) (read, left []span) {
	past := r.Source.Past
	if past.Rows == 0 {
		return missing, nil
	}
	if past.OldestFirst {
		until := asked.to
		for _, rec := range readings {
			if at := moment(rec); asked.from <= at && at < asked.to {
				until = min(floor(at, past.Interval)+int64(past.Interval), asked.to)
			}
		}
		read = []span{{asked.from, until}}
	} else {
		since := missing[0].from // of an empty answer: nothing is older
		if len(readings) > 0 && moment(readings[0]) < asked.to {
			since = floor(moment(readings[0]), past.Interval)
		}
		for _, s := range missing {
			read = append(read, intersect(span{since, asked.to}, []span{s})...)
		}
	}
	for _, s := range missing {
		left = append(left, subtract(s, read)...)
	}
	return read, left
}

// write puts the values of what was read into the log, and then that it was read.
func (r *sourceRun) write(ctx context.Context, s poll.Series, readings []*eventsv1.ReferenceRecord, read []span) (values int, err error) {
	now := r.Clock.Now().UnixNano()
	var kept []*eventsv1.ReferenceRecord
	ranges := make([]*eventsv1.BackfillRecord, 0, len(read))
	for _, of := range read {
		before := len(kept)
		for _, rec := range readings {
			if at := moment(rec); of.from <= at && at < of.to {
				kept = append(kept, rec)
			}
		}
		ranges = append(ranges, &eventsv1.BackfillRecord{Producer: r.Producer, Body: &eventsv1.BackfillRecord_Range{Range: &eventsv1.BackfillRange{
			Venue: r.Source.Slug, Symbol: s.ID, Base: s.Symbol, Interval: uint32(r.Source.Past.Interval / time.Second),
			FromTime: of.from, ToTime: of.to, Rows: uint64(len(kept) - before), IngestTime: now,
		}}})
	}
	if len(kept) > 0 {
		if err := r.Out.Append(ctx, kept...); err != nil {
			return 0, err
		}
	}
	return len(kept), r.Log.Append(ctx, r.Source.Slug, s.ID, ranges)
}

// moment is the one that a record speaks of.
func moment(rec *eventsv1.ReferenceRecord) int64 {
	at, _ := poll.EventTime(rec)
	return at
}
