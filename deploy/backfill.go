package deploy

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

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/backfill"
	"github.com/marketlog/marketlog/producers/exchanges"
	"github.com/marketlog/marketlog/producers/fetch"
	"github.com/marketlog/marketlog/schemas"
)

const (
	// backfilledRank is the last rank of the coin table that is back-filled by default: a market is about 60 calls
	// at the venue that answers the most, and 370 at the one that answers the least.
	backfilledRank = 100
	// backfilledPast is how far back is asked for by default.
	backfilledPast = 5 * 365 * 24 * time.Hour
	// backfillShare of a venue's budget leaves room for the live feed, which asks from the same address.
	backfillShare = 0.5
)

// errBackfillEnded is the end of a back-fill that was cancelled, or whose instance stops.
var errBackfillEnded = errors.New("the back-fill is ended; given again, it goes on where it stood")

// backfillInput is what the verbs of back-filling take.
type backfillInput struct {
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

// rangeLine is a range of one market's candles, or of one series of a polled source, to be read (calls above 0) or missing.
type rangeLine struct {
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

// absentLine counts the ranges that a venue or source does not have.
type absentLine struct {
	Absent  string `json:"absentFrom"`
	Ranges  int    `json:"ranges"`
	Candles int64  `json:"candles,omitempty"`
	Values  int64  `json:"values,omitempty"`
}

// planLine sums up what is left to do at one venue, or at one polled source.
type planLine struct {
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
func backfillVerbs(in *Instance) []Verb {
	verb := func(name string, long bool, each func(ctx context.Context, j pastJob, input backfillInput, emit func(any) error) error) Verb {
		return Verb{Name: name, Long: long, Run: func(ctx context.Context, raw json.RawMessage, emit func(any) error) error {
			var input backfillInput
			if err := json.Unmarshal(raw, &input); err != nil {
				return fmt.Errorf("reading the input of %s: %w", name, err)
			}
			if input.Own {
				return in.runOwnBackfill(ctx, emit)
			}
			return in.eachBackfill(ctx, input, emit, func(j pastJob) error { return each(ctx, j, input, emit) })
		}}
	}
	return []Verb{
		verb("backfill", true, func(ctx context.Context, j pastJob, _ backfillInput, emit func(any) error) error {
			result, err := j.Run(ctx)
			if result.Calls > 0 || err == nil {
				err = errors.Join(err, emit(result))
			}
			if err != nil && ctx.Err() != nil {
				return errBackfillEnded
			}
			return err
		}),
		verb("backfill.plan", false, func(ctx context.Context, j pastJob, input backfillInput, emit func(any) error) error {
			return planBackfill(ctx, j, false, input.Unavailable, emit)
		}),
		verb("gaps", false, func(ctx context.Context, j pastJob, input backfillInput, emit func(any) error) error {
			return planBackfill(ctx, j, true, input.Unavailable, emit)
		}),
	}
}

// planBackfill tells what is left to do, and with gaps also what never can be done: counted, or with unavailable range by
// range.
func planBackfill(ctx context.Context, j pastJob, gaps, unavailable bool, emit func(any) error) error {
	plan, err := j.Plan(ctx)
	if err != nil {
		return err
	}
	_, polled := j.(*backfill.SourceJob)
	line := func(r backfill.Range, status string) rangeLine {
		l := rangeLine{
			Source: plan.Source, Symbol: r.Market.Symbol, Base: r.Market.Base, Quote: r.Market.Quote,
			Interval: producers.Interval(r.Interval), Status: status, From: r.From, To: r.To, Candles: r.Candles(),
		}
		if polled {
			l.Candles, l.Values = 0, l.Candles
		}
		return l
	}
	sum := planLine{Plan: plan.Source, Calls: int64(len(plan.Calls)), Pace: plan.Pace, Seconds: plan.Duration().Seconds()}
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
	absent := absentLine{Absent: plan.Source, Ranges: len(plan.Unavailable)}
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
func (in *Instance) eachBackfill(ctx context.Context, input backfillInput, emit func(any) error, do func(pastJob) error) error {
	log, err := in.openPast()
	if err != nil {
		return err
	}
	defer log.Close()
	if log.known, err = backfill.ReadState(ctx, log.ranges); err != nil {
		return err
	}
	log.tell = func(p backfill.Progress) error { return emit(p) }
	known := map[string]map[string]bool{} // by venue or source, and symbol or series
	if input.Gaps {
		known = log.known.Markets(in.backfillProducer)
	}
	if s, ok := historicSource(input.Source); ok {
		input.Source = s.Slug // it was called by another of its names
	}
	sources := []string{input.Source}
	if input.Source == "" {
		sources = slices.Collect(maps.Keys(known))
		sources = append(sources, in.ownSources()...)
		slices.Sort(sources)
		sources = slices.Compact(sources)
	}
	var faults []error
	for _, source := range sources {
		j, err := in.pastJob(ctx, source, input, known[source], log)
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
	ranges *producers.BackfillLog
	values *producers.SourceLog
	// known is what the log held, nil once that has changed.
	known backfill.State
	tell  func(backfill.Progress) error
}

// openPast opens the log for back-fills. What sources tell of the past comes beside what they tell of now, through a way of
// its own, by which no clock is written: an accelerated clock does not wait for it.
func (in *Instance) openPast() (*pastLog, error) {
	ranges, err := producers.NewBackfillLog(in.Stream, in.Clock)
	if err != nil {
		return nil, err
	}
	values, err := producers.NewSourceLog(in.Stream, struct{ producers.Clock }{in.Clock}, in.Log)
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
func (in *Instance) pastJob(ctx context.Context, source string, input backfillInput, known map[string]bool, log *pastLog) (pastJob, error) {
	if s, ok := historicSource(source); ok {
		return in.sourceJob(ctx, s, input, known, log)
	}
	return in.backfillJob(ctx, source, input, known, log)
}

// backfillProducer names who told a past: a simulator tells another one than the venue or source.
func (in *Instance) backfillProducer(source string) string {
	if in.Simulated[source] || in.atSimulator(in.Config.Sources[source].URL) {
		return "simulated " + source
	}
	return source
}

func (in *Instance) backfillJob(ctx context.Context, source string, input backfillInput, known map[string]bool, log *pastLog) (*backfill.Job, error) {
	if _, err := historicVenue(source); err != nil {
		return nil, err
	}
	venue, rest, err := in.venueAt(source)
	if err != nil {
		return nil, err
	}
	pace := venue.Limits.Requests * backfillShare
	client, err := fetch.New(fetch.DefaultConfig(1, time.Duration(float64(time.Second)/pace)), in.Clock, nil)
	if err != nil {
		return nil, fmt.Errorf("preparing %s: %w", source, err)
	}
	markets, err := backfill.Markets(ctx, venue, rest, client, func(producers.Instrument) bool { return true })
	if err != nil {
		return nil, err
	}
	symbols := input.Symbols
	if len(symbols) == 0 && len(known) == 0 {
		symbols = in.Config.Venues[source].Symbols
	}
	own := input.Own || input.Gaps && slices.Contains(in.ownSources(), source)
	if len(symbols) == 0 && own {
		markets = chartedMarkets(source, markets, in.chartedMost(venue.History, pace), known)
	} else if markets, err = backfilledMarkets(source, markets, symbols, known); err != nil {
		return nil, err
	}
	j := &backfill.Job{
		Venue: venue, REST: rest, Producer: in.backfillProducer(source), Markets: markets,
		Fetch: pausedFetch{client, in.disk}, Pace: pace, Log: log.ranges, Known: log.known, Clock: in.Clock, Tell: log.tell,
	}
	j.From, j.To = in.window(input, backfilledPast)
	return j, nil
}

// window is the time that an input means, by default so far back.
func (in *Instance) window(input backfillInput, back time.Duration) (from, to time.Time) {
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
func (in *Instance) venueAt(source string) (venue producers.Venue, rest string, err error) {
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

// historicVenue is a venue that tells its past.
func historicVenue(source string) (producers.Venue, error) {
	if v, ok := exchanges.Find(source); ok && v.History != nil {
		return v, nil
	}
	return producers.Venue{}, fmt.Errorf("%q cannot be back-filled; use one of the venues %s, or of the sources %s", source,
		strings.Join(historicVenues(), ", "), strings.Join(historicSources(), ", "))
}

// historic finds nothing wrong with the name of a venue or source that tells its past.
func historic(source string) error {
	if _, ok := historicSource(source); ok {
		return nil
	}
	_, err := historicVenue(source)
	return err
}

func historicVenues() (names []string) {
	for _, v := range exchanges.List() {
		if v.History != nil {
			names = append(names, v.Slug)
		}
	}
	return names
}

// backfilledMarkets picks from a venue's list, by the rank of their coins: the named markets and those of named coins,
// else the known ones, else those of the best known coins. Their quotes can be converted to USD, unless a market was
// named itself. A name that fits none is an error.
func backfilledMarkets(venue string, list []producers.Instrument, names []string, known map[string]bool) ([]producers.Instrument, error) {
	coins := schemas.Coins()
	convertible := selectMarkets(venue, nil)
	found := make([]bool, len(names))
	rank := map[string]int{}
	var picked []producers.Instrument
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
			faults = append(faults, fmt.Errorf("%s lists no market %q whose price can be told in USD", venue, name))
		}
	}
	slices.SortFunc(picked, func(a, b producers.Instrument) int {
		return cmp.Or(cmp.Compare(rank[a.Symbol], rank[b.Symbol]), strings.Compare(a.Symbol, b.Symbol))
	})
	return picked, errors.Join(faults...)
}
