// Package backfill reads a venue's own candles of the past into the log, every candle once: days as far
// back as asked for, hours of the last year, minutes of the last 30 days. Of a polled source it reads what that
// has of the past.
//
// How far it came is in the log alone. After the candles of each response comes a range, which says that
// they are all that the venue has of it; it is never asked for again. Whatever a death leaves without its
// range is read again, and candles of it that the log has already are not written again. Values of a polled source
// are: they go to the topic of what it reports of now, whose rows know a repetition by its moment.
package backfill

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/adapter"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// Log keeps the records; producers.BackfillLog is one.
type Log interface {
	// Read hands over all records, those of a venue and base in their order.
	Read(ctx context.Context, visit func(*eventsv1.BackfillRecord) error) error
	// Append returns once the records are kept. After an error the first ones may be.
	Append(ctx context.Context, venue, base string, recs []*eventsv1.BackfillRecord) error
}

// Job is a back-fill of one venue. Of each venue one may work on a log at a time.
type Job struct {
	Venue adapter.Venue
	// REST is where the venue is asked, without a slash at the end.
	REST string
	// Producer distinguishes histories of different origin: that of the venue and that of a simulator.
	Producer string
	// Markets are read in this order.
	Markets []adapter.Instrument
	// Candles that start in [From, To) are wanted, if they are closed.
	From, To time.Time
	// Reaches is what is read of each market; nil is Reaches.
	Reaches []Reach
	// Folded leaves out hours and days whose minutes are read, or will be: they fold from them.
	Folded bool
	// MaxCalls leaves the last markets to another time, those that would need more calls in all; 0 leaves none.
	MaxCalls int
	// Fetch keeps within the budget, which is LagLimiter calls a second.
	Fetch adapter.Fetcher
	Pace  float64
	Log   Log
	// Known is what the log held just now, where it was read for several jobs; nil: it is read. A job that ran needs
	// another.
	Known State
	Clock producers.Clock
	// Report receives the progress, about once a second; one call at a time.
	Report func(Progress) error
}

// Result is what a job did.
type Result struct {
	Source string `json:"source"`
	// Series are what was asked for at a polled source; 0 at a venue.
	Series int64 `json:"series,omitempty"`
	Calls  int64 `json:"calls"`
	// Values were written of a polled source.
	Values int64 `json:"values,omitempty"`
	// Candles were written; Known ones of a range that was begun before were in the log already.
	Candles int64 `json:"candles"`
	Known   int64 `json:"known"`
	// Refused candles had a price or volume that cannot be; their ranges are read to the end without them.
	Refused int64   `json:"refused"`
	Failed  int64   `json:"failed"`
	Seconds float64 `json:"seconds"`
}

// ErrIncomplete means that some ranges could not be read. Started again, the job asks for them again.
var ErrIncomplete = errors.New("ranges could not be read")

const (
	// inFlight is how many calls are under way at once, so that a slow answer does not cost the budget.
	inFlight = 4
	// giveUp is after how many failures in a row the venue or source counts as down.
	giveUp = 10
)

// Markets reads the venue's list and returns the markets that are wanted, in its order.
func Markets(ctx context.Context, v adapter.Venue, rest string, f adapter.Fetcher, want func(adapter.Instrument) bool) ([]adapter.Instrument, error) {
	var markets []adapter.Instrument
	for _, path := range v.Listing {
		body, err := f.Fetch(ctx, http.MethodGet, rest+path)
		if err != nil {
			return nil, fmt.Errorf("fetching instruments of %s: %w", v.Slug, err)
		}
		list, err := v.Instruments(path, body)
		if err != nil {
			return nil, fmt.Errorf("reading instruments of %s: %w", v.Slug, err)
		}
		for _, in := range list {
			in.Base, in.Quote = strings.ToUpper(in.Base), strings.ToUpper(in.Quote)
			if want(in) {
				markets = append(markets, in)
			}
		}
	}
	return markets, nil
}

// Plan reports what is left to do; it asks the log only.
func (j *Job) Plan(ctx context.Context) (Plan, error) {
	known, err := j.read(ctx)
	if err != nil {
		return Plan{}, err
	}
	return j.plan(known), nil
}

func (j *Job) read(ctx context.Context) (State, error) {
	if j.Known != nil {
		return j.Known, nil
	}
	return ReadState(ctx, j.Log)
}

// Run reads what is left to do, to its end. The error wraps ErrIncomplete if only single ranges failed.
func (j *Job) Run(ctx context.Context) (Result, error) {
	known, err := j.read(ctx)
	if err != nil {
		return Result{}, err
	}
	plan := j.plan(known)
	r := &run{Job: j, known: known, tally: newTally(j.Venue.Slug, len(plan.Calls), j.Clock, j.Report)}
	g, working := errgroup.WithContext(ctx)
	g.SetLimit(inFlight)
	for _, c := range plan.Calls {
		if working.Err() != nil {
			break
		}
		g.Go(func() error {
			if err := working.Err(); err != nil {
				return err
			}
			return r.call(working, c)
		})
	}
	return r.end(g.Wait())
}

// run is one time of running a Job.
type run struct {
	*Job
	*tally
	known State // only read
}

// call asks for a range and writes what the venue has of it.
func (r *run) call(ctx context.Context, c Range) error {
	oldest := time.Unix(0, r.oldest(r.Clock.Now(), c.Interval)).UTC()
	if c.From.Before(oldest) { // it became too old since it was planned
		c.From = oldest
	}
	if !c.From.Before(c.To) {
		return r.count(Result{}, nil)
	}
	candles, err := r.fetch(ctx, c)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return r.count(Result{}, fmt.Errorf("%s %s of %s from %s: %w", r.Venue.Slug, adapter.Interval(c.Interval), c.Market.Symbol, c.From.Format(time.RFC3339), err))
	}
	recs := make([]*eventsv1.BackfillRecord, 0, len(candles)+1)
	one := r.known[r.key(c.Market, c.Interval)]
	for _, candle := range candles {
		if one == nil || !one.loose[candle.Start] {
			recs = append(recs, &eventsv1.BackfillRecord{Producer: r.Producer, Body: &eventsv1.BackfillRecord_Candle{Candle: candle}})
		}
	}
	written := len(recs)
	recs = append(recs, &eventsv1.BackfillRecord{Producer: r.Producer, Body: &eventsv1.BackfillRecord_Range{Range: &eventsv1.BackfillRange{
		Venue: r.Venue.Slug, Symbol: c.Market.Symbol, Base: c.Market.Base, Quote: c.Market.Quote, Interval: uint32(c.Interval / time.Second),
		FromTime: c.From.UnixNano(), ToTime: c.To.UnixNano(), Rows: uint64(len(candles)), IngestTime: r.Clock.Now().UnixNano(),
	}}})
	if err := r.Log.Append(ctx, r.Venue.Slug, c.Market.Base, recs); err != nil {
		return err
	}
	return r.count(Result{Candles: int64(written), Known: int64(len(candles) - written)}, nil)
}

// fetch returns the closed candles of the range, the oldest first.
func (r *run) fetch(ctx context.Context, c Range) ([]*eventsv1.BackfillCandle, error) {
	q := r.Venue.History.Query(c.Market, c.Interval, c.From, c.To)
	body, err := r.Fetch.Fetch(ctx, http.MethodGet, r.REST+q.Path)
	if err != nil {
		return nil, err
	}
	var out adapter.Out
	if err := r.Venue.DecodeREST(q.Path, body, &out); err != nil {
		return nil, fmt.Errorf("reading the answer: %w", err)
	}
	if len(out.Refused) > 0 {
		return nil, fmt.Errorf("reading the answer: %w", out.Refused[0])
	}
	received := r.Clock.Now().UnixNano()
	byStart := map[int64]bool{}
	var candles []*eventsv1.BackfillCandle
	for _, e := range out.Events {
		switch {
		case e.Kind != adapter.Candle || e.Interval != adapter.Interval(c.Interval):
			return nil, producers.Unreadable("the answer is not about candles of %s", adapter.Interval(c.Interval))
		case e.Start < c.From.UnixNano() || e.Start >= c.To.UnixNano() || byStart[e.Start]:
			continue
		case e.Start%int64(c.Interval) != 0:
			return nil, producers.Unreadable("a candle begins at %s", time.Unix(0, e.Start).UTC().Format(time.RFC3339))
		}
		byStart[e.Start] = true
		candle := &eventsv1.BackfillCandle{
			Venue: r.Venue.Slug, Symbol: c.Market.Symbol, Base: c.Market.Base, Quote: c.Market.Quote,
			Start: e.Start, Interval: uint32(c.Interval / time.Second), IngestTime: received,
			Open: string(e.OpenPrice), High: string(e.High), Low: string(e.Low), Close: string(e.ClosePrice), Volume: string(e.Volume),
		}
		if reason, _ := schemas.CheckCandle(candle); reason != "" {
			r.refuse(1)
			continue
		}
		candles = append(candles, candle)
	}
	slices.SortFunc(candles, func(a, b *eventsv1.BackfillCandle) int { return int(min(max(a.Start-b.Start, -1), 1)) })
	return candles, nil
}
