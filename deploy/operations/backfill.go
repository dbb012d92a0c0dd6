package operations

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/marketlog/marketlog/deploy/admin"
	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/deploy/instance"
	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/adapter"
	"github.com/marketlog/marketlog/producers/backfill"
	"github.com/marketlog/marketlog/producers/exchanges"
	"github.com/marketlog/marketlog/producers/fetch"
	"github.com/marketlog/marketlog/producers/outbox"
	"github.com/marketlog/marketlog/producers/poll"
	"github.com/marketlog/marketlog/schemas"
)

const (
	// backfilledRank is the last rank of the coin table that is back-filled by default: a market is about 60 calls
	// at the venue that answers the most, and 370 at the one that answers the least.
	backfilledRank = 100
	// BackfilledPast is how far back is asked for by default.
	BackfilledPast = 5 * 365 * 24 * time.Hour
	// backfillShare of a venue's budget leaves room for the live feed, which asks from the same address.
	backfillShare = 0.5
)

// BackfillInput is what the verbs of back-filling take.
type BackfillInput struct {
	// Source is a venue or a polled source; empty, where Gaps is set: all that were back-filled before.
	Source string `json:"source"`
	// Symbols are the venue's or source's own, or of coins; empty: well-known coins.
	Symbols []string `json:"symbols"`
	// From is five years ago if it is zero, To is now.
	From time.Time `json:"from,omitzero"`
	To   time.Time `json:"to,omitzero"`
	// Gaps means what was back-filled before, and what the instance back-fills by itself.
	Gaps bool `json:"gaps"`
	// Unavailable lists each range that the venue or source does not have; else they are counted.
	Unavailable bool `json:"unavailable"`
	// Own means what the instance back-fills by itself.
	Own bool `json:"own"`
}

// RangeLine is a range of one market's candles, or of one series of a polled source, to be read (calls above 0) or missing.
type RangeLine struct {
	Source   string    `json:"source"`
	Symbol   string    `json:"symbol"`
	Base     string    `json:"base"`
	Quote    string    `json:"quote,omitempty"`
	Interval string    `json:"interval"`
	Status   string    `json:"status"` // missing or unavailable
	From     time.Time `json:"from"`
	To       time.Time `json:"to"`
	Candles  int64     `json:"candles,omitempty"`
	Values   int64     `json:"values,omitempty"`
	Calls    int64     `json:"calls,omitempty"`
	Reason   string    `json:"reason,omitempty"`
}

// AbsentLine counts the ranges that a venue or source does not have.
type AbsentLine struct {
	Absent  string `json:"absentFrom"`
	Ranges  int    `json:"ranges"`
	Candles int64  `json:"candles,omitempty"`
	Values  int64  `json:"values,omitempty"`
}

// PlanLine sums up what is left to do at one venue, or at one polled source.
type PlanLine struct {
	Plan    string  `json:"plan"` // its name
	Markets int     `json:"markets,omitempty"`
	Candles int64   `json:"candles,omitempty"`
	Series  int     `json:"series,omitempty"`
	Values  int64   `json:"values,omitempty"`
	Calls   int64   `json:"calls"`
	Pace    float64 `json:"callsPerSecond"`
	Seconds float64 `json:"seconds"`
}

// pastJob is a back-fill of a venue or of a polled source.
type pastJob interface {
	Plan(ctx context.Context) (backfill.Plan, error)
	Run(ctx context.Context) (backfill.Result, error)
}

// backfillVerbs read venues' and sources' own past into the log. Cancelled or killed, the work can be taken up.
func backfillVerbs(in *instance.Instance) []admin.Command {
	verb := func(name string, long bool, each func(ctx context.Context, j pastJob, input BackfillInput, emit func(any) error) error) admin.Command {
		return admin.Command{Name: name, Long: long, Run: func(ctx context.Context, raw json.RawMessage, emit func(any) error) error {
			var input BackfillInput
			if err := json.Unmarshal(raw, &input); err != nil {
				return fmt.Errorf("reading the input of %s: %w", name, err)
			}
			if input.Own {
				return runOwnBackfill(ctx, in, emit)
			}
			return eachBackfill(ctx, in, input, emit, func(j pastJob) error { return each(ctx, j, input, emit) })
		}}
	}
	return []admin.Command{
		verb("backfill", true, func(ctx context.Context, j pastJob, _ BackfillInput, emit func(any) error) error {
			result, err := j.Run(ctx)
			if result.Calls > 0 || err == nil {
				err = errors.Join(err, emit(result))
			}
			return err
		}),
		verb("backfill.plan", false, func(ctx context.Context, j pastJob, input BackfillInput, emit func(any) error) error {
			return planBackfill(ctx, j, false, input.Unavailable, emit)
		}),
		verb("gaps", false, func(ctx context.Context, j pastJob, input BackfillInput, emit func(any) error) error {
			return planBackfill(ctx, j, true, input.Unavailable, emit)
		}),
	}
}

// planBackfill reports what is left to do, and with gaps also what never can be done: counted, or with unavailable range by
// range.
func planBackfill(ctx context.Context, j pastJob, gaps, unavailable bool, emit func(any) error) error {
	plan, err := j.Plan(ctx)
	if err != nil {
		return err
	}
	_, polled := j.(*backfill.SourceJob)
	line := func(r backfill.Range, status string) RangeLine {
		l := RangeLine{
			Source: plan.Source, Symbol: r.Market.Symbol, Base: r.Market.Base, Quote: r.Market.Quote,
			Interval: adapter.Interval(r.Interval), Status: status, From: r.From, To: r.To, Candles: r.Candles(),
		}
		if polled {
			l.Candles, l.Values = 0, l.Candles
		}
		return l
	}
	sum := PlanLine{Plan: plan.Source, Calls: int64(len(plan.Calls)), Pace: plan.Pace, Seconds: plan.Duration().Seconds()}
	if polled {
		sum.Series = plan.Markets
	} else {
		sum.Markets = plan.Markets
	}
	for _, r := range plan.Missing {
		l := line(r, "missing")
		l.Calls = plan.CallsOf(r)
		sum.Candles, sum.Values = sum.Candles+l.Candles, sum.Values+l.Values
		if err := emit(l); err != nil {
			return err
		}
	}
	if !gaps {
		return emit(sum)
	}
	absent := AbsentLine{Absent: plan.Source, Ranges: len(plan.Unavailable)}
	for _, a := range plan.Unavailable {
		l := line(a.Range, "unavailable")
		l.Reason = a.Reason
		absent.Candles, absent.Values = absent.Candles+l.Candles, absent.Values+l.Values
		if !unavailable {
			continue
		}
		if err := emit(l); err != nil {
			return err
		}
	}
	if unavailable || absent.Ranges == 0 {
		return nil
	}
	return emit(absent)
}

// eachBackfill prepares a job for every venue and source that the input means, one after the other.
func eachBackfill(ctx context.Context, in *instance.Instance, input BackfillInput, emit func(any) error, do func(pastJob) error) error {
	log, err := openPast(in)
	if err != nil {
		return err
	}
	defer log.Close()
	if log.known, err = backfill.ReadState(ctx, log.ranges); err != nil {
		return err
	}
	log.report = func(p backfill.Progress) error { return emit(p) }
	known := map[string]map[string]bool{} // by venue or source, and symbol or series
	if input.Gaps {
		known = log.known.Markets(func(source string) string { return backfillProducer(in, source) })
	}
	if s, ok := config.HistoricSource(input.Source); ok {
		input.Source = s.Slug // it was called by another of its names
	}
	sources := []string{input.Source}
	if input.Source == "" {
		sources = slices.Collect(maps.Keys(known))
		sources = append(sources, OwnSources(in)...)
		slices.Sort(sources)
		sources = slices.Compact(sources)
	}
	var faults []error
	for _, source := range sources {
		j, err := openPastJob(ctx, in, source, input, known[source], log)
		if err == nil {
			err = do(j)
		}
		if err != nil && ctx.Err() != nil {
			return err
		}
		faults = append(faults, err) // of one of them: the others may answer
	}
	return errors.Join(faults...)
}

// pastLog is what back-fills read and write.
type pastLog struct {
	ranges *outbox.BackfillLog
	values *poll.SourceLog
	// known is what the log held, nil once that has changed.
	known  backfill.State
	report func(backfill.Progress) error
}

// openPast opens the log for back-fills. What sources report of the past comes beside what they report of now, through a way of
// its own, by which no clock is written: an accelerated clock does not wait for it.
func openPast(in *instance.Instance) (*pastLog, error) {
	ranges, err := outbox.NewBackfillLog(in.Stream, in.Clock)
	if err != nil {
		return nil, err
	}
	values, err := poll.NewSourceLog(in.Stream, struct{ producers.Clock }{in.Clock}, in.Log)
	if err != nil {
		ranges.Close()
		return nil, err
	}
	return &pastLog{ranges: ranges, values: values}, nil
}

// Close gives up the connections.
func (l *pastLog) Close() {
	l.values.Close()
	l.ranges.Close()
}

// pastJob prepares the back-fill of a venue or of a polled source; known are its markets or series that were back-filled
// before, where those are meant.
func openPastJob(ctx context.Context, in *instance.Instance, source string, input BackfillInput, known map[string]bool, log *pastLog) (pastJob, error) {
	if s, ok := config.HistoricSource(source); ok {
		return sourceJob(ctx, in, s, input, known, log)
	}
	return backfillJob(ctx, in, source, input, known, log)
}

// backfillProducer names who reported a past: a simulator reports another one than the venue or source.
func backfillProducer(in *instance.Instance, source string) string {
	if in.Simulated[source] || in.AtSimulator(in.Config.Sources[source].URL) {
		return "simulated " + source
	}
	return source
}

func backfillJob(ctx context.Context, in *instance.Instance, source string, input BackfillInput, known map[string]bool, log *pastLog) (*backfill.Job, error) {
	if _, err := config.HistoricVenue(source); err != nil {
		return nil, err
	}
	venue, rest, err := venueAt(in, source)
	if err != nil {
		return nil, err
	}
	pace := venue.Limits.Requests * backfillShare
	client, err := fetch.New(fetch.DefaultConfig(1, time.Duration(float64(time.Second)/pace)), in.Clock, nil)
	if err != nil {
		return nil, fmt.Errorf("preparing %s: %w", source, err)
	}
	markets, err := backfill.Markets(ctx, venue, rest, client, func(adapter.Instrument) bool { return true })
	if err != nil {
		return nil, err
	}
	symbols := input.Symbols
	if len(symbols) == 0 && len(known) == 0 {
		symbols = in.Config.Venues[source].Symbols
	}
	own := input.Own || input.Gaps && slices.Contains(OwnSources(in), source)
	if len(symbols) == 0 && own {
		markets = ChartedMarkets(source, markets, ChartedMost(in, venue.History, pace), known)
	} else if markets, err = backfilledMarkets(source, markets, symbols, known); err != nil {
		return nil, err
	}
	j := &backfill.Job{
		Venue: venue, REST: rest, Producer: backfillProducer(in, source), Markets: markets,
		Fetch: in.PausedFetch(client), Pace: pace, Log: log.ranges, Known: log.known, Clock: in.Clock, Report: log.report,
	}
	j.From, j.To = window(in, input, BackfilledPast)
	return j, nil
}

// window is the time that an input means, by default so far back.
func window(in *instance.Instance, input BackfillInput, back time.Duration) (from, to time.Time) {
	now := in.Clock.Now()
	from, to = input.From, input.To
	if from.IsZero() {
		from = now.Add(-back)
	}
	if to.IsZero() {
		to = now
	}
	return from, to
}

// venueAt is a venue and where its HTTP interface is asked. Beside the simulator no venue is asked at its public address.
func venueAt(in *instance.Instance, source string) (venue adapter.Venue, rest string, err error) {
	venue, ok := exchanges.Find(source)
	if !ok {
		return venue, "", fmt.Errorf("there is no venue %q", source)
	}
	rest = in.Config.Venues[source].RESTURL
	if rest == "" && in.Config.Feeds == "sim" {
		return venue, "", fmt.Errorf("feeds is sim, and no simulator of %s runs here: start the instance, or use MARKETLOG_FEEDS=live", source)
	}
	return venue, cmp.Or(rest, venue.URLs.REST), nil
}

// backfilledMarkets picks from a venue's list, by the rank of their coins: the named markets and those of named coins,
// else the known ones, else those of the best known coins. Their quotes can be converted to USD, unless a market was
// named itself. A name that fits none is an error.
func backfilledMarkets(venue string, list []adapter.Instrument, names []string, known map[string]bool) ([]adapter.Instrument, error) {
	coins := schemas.Coins()
	convertible := instance.SelectMarkets(venue, nil)
	found := make([]bool, len(names))
	rank := map[string]int{}
	var picked []adapter.Instrument
	for _, in := range list {
		coin, _, ok := coins.Resolve(venue, in.Base)
		wanted := false
		for i, name := range names {
			is := func(other string) bool { return strings.EqualFold(name, other) }
			if is(in.Symbol) || slices.ContainsFunc(in.Aliases, is) || convertible(in) && (is(in.Base) || ok && is(coin.Symbol)) {
				found[i], wanted = true, true
			}
		}
		switch {
		case len(names) > 0:
		case len(known) > 0:
			wanted = known[in.Symbol]
		default:
			wanted = convertible(in) && (!ok || coin.Rank <= backfilledRank)
		}
		if wanted {
			picked = append(picked, in)
			rank[in.Symbol] = coin.Rank // 0 is a currency, by which others are converted
		}
	}
	var faults []error
	for i, name := range names {
		if !found[i] {
			faults = append(faults, fmt.Errorf("%s has no market %q whose price can be converted to USD", venue, name))
		}
	}
	slices.SortFunc(picked, func(a, b adapter.Instrument) int {
		return cmp.Or(cmp.Compare(rank[a.Symbol], rank[b.Symbol]), strings.Compare(a.Symbol, b.Symbol))
	})
	return picked, errors.Join(faults...)
}

// Parse takes over the times, and finds what can be found wrong without an instance.
func (i *BackfillInput) Parse(from, to string) (err error) {
	if i.From, err = ParseTime("from", from); err != nil {
		return err
	}
	if i.To, err = ParseTime("to", to); err != nil {
		return err
	}
	if !i.To.IsZero() && !i.From.Before(i.To) {
		return fmt.Errorf("--from %s is not before --to %s", from, to)
	}
	if i.Source != "" {
		err = config.Historic(i.Source)
	}
	return err
}
