package operations

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/marketlog/marketlog/deploy/admin"
	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/deploy/instance"
	"github.com/marketlog/marketlog/deploy/supervise"
	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/adapter"
	"github.com/marketlog/marketlog/producers/backfill"
	"github.com/marketlog/marketlog/schemas"
	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/history/past"
	"github.com/marketlog/marketlog/stream/retry"
)

// ownReaches is what the timeframes of the charts show.
var ownReaches = []backfill.Reach{{Interval: 24 * time.Hour}, {Interval: time.Hour, Back: 30 * 24 * time.Hour}, {Interval: time.Minute, Back: 24 * time.Hour}}

const (
	// OwnTries is how often a venue is begun with, each after a longer pause.
	OwnTries = 3
	// ownPause is the first of these pauses, ownLongestPause as long as they become.
	ownPause        = time.Second
	ownLongestPause = 4 * time.Second
	// ownShare of the time may be filled with calls: the rest is for the venue's list, and for a machine or a venue that
	// is slower than the budget.
	ownShare = 0.8
	// ownSourceShare is that of a polled source: a start is to be over soon, and waits for the venues' charts.
	ownSourceShare = 0.4
	// keptLimit is how long the views may take to have what was read.
	keptLimit = 8 * time.Second
)

// errOwnLimit ends the back-fill that an instance makes by itself.
var errOwnLimit = errors.New("the time of backfill.seconds is up")

// OwnBackfill is the back-fill that an instance makes by itself, once a start, so that its charts have a past. It runs
// as a person's does: it is seen with --attach and ended with --cancel.
type OwnBackfill struct {
	in    *instance.Instance
	jobs  *admin.Server
	waits atomic.Pointer[string] // nil once it is over
}

// NewOwnBackfill back-fills by the job server of the instance.
func NewOwnBackfill(in *instance.Instance, jobs *admin.Server) *OwnBackfill {
	o := &OwnBackfill{in: in, jobs: jobs}
	o.wait("not begun yet")
	return o
}

func (o *OwnBackfill) wait(why string) { o.waits.Store(&why) }

// Waiting reports how far it is; empty once it is over, however it ended: a venue that does not answer must not keep an
// instance from serving.
func (o *OwnBackfill) Waiting() string {
	if o == nil {
		return ""
	}
	if why := o.waits.Load(); why != nil {
		return *why
	}
	return ""
}

// Role runs the back-fill once and is ready when it is over.
func (o *OwnBackfill) Role() supervise.Role {
	return supervise.Role{Name: "backfill", Run: o.run, Ready: func() bool { return o.Waiting() == "" }}
}

func (o *OwnBackfill) run(ctx context.Context) error {
	if o.Waiting() != "" {
		if len(OwnSources(o.in)) > 0 {
			o.fill(ctx)
			o.awaitViews(ctx)
		}
		if ctx.Err() == nil {
			o.waits.Store(nil)
		}
	}
	<-ctx.Done()
	return nil
}

// fill runs the job to its end and logs how it goes.
func (o *OwnBackfill) fill(ctx context.Context) {
	log := o.in.Log
	j, err := o.jobs.Begin(ctx, "backfill", BackfillInput{Own: true})
	if err != nil {
		log.Error("startup backfill failed", "error", err)
		return
	}
	steps := map[string]string{}
	logged := time.Now()
	j.Follow(ctx, func(r admin.Reply) error {
		var progress backfill.Progress
		var result backfill.Result
		switch {
		case r.Error != "" && ctx.Err() == nil:
			log.Warn("chart history has gaps; `marketlog gaps` lists them, `marketlog backfill --gaps` fills them", "error", r.Error)
		case r.End || r.Error != "" || errors.Join(json.Unmarshal(r.Line, &progress), json.Unmarshal(r.Line, &result)) != nil:
		case progress.Step != "":
			steps[progress.Step] = fmt.Sprintf("%s: %d of %d calls", progress.Step, progress.Done, progress.Total)
			how := make([]string, 0, len(steps))
			for _, step := range steps {
				how = append(how, step)
			}
			slices.Sort(how)
			o.wait(strings.Join(how, ", "))
			if time.Since(logged) > 10*time.Second {
				logged = time.Now()
				log.Info("backfill in progress", "progress", o.Waiting())
			}
		default:
			log.Info("backfill finished", "source", result.Source, "calls", result.Calls, "candles", result.Candles, "values", result.Values,
				"failed", result.Failed, "seconds", result.Seconds)
		}
		return nil
	})
}

// awaitViews waits until the views have what was read, or its time is up.
func (o *OwnBackfill) awaitViews(ctx context.Context) {
	o.wait("waiting until the views have all of it")
	ctx, cancel := context.WithTimeout(ctx, keptLimit)
	defer cancel()
	for ctx.Err() == nil {
		kept, err := o.kept(ctx)
		if kept || err != nil {
			if err != nil && ctx.Err() == nil {
				o.in.Log.Warn("requesting views for the backfill failed", "error", err)
			}
			return
		}
		_ = producers.Sleep(ctx, o.in.Clock, 200*time.Millisecond)
	}
}

// keptTopics are those that back-fills write to; reference values come by their pollers.
var keptTopics = []string{schemas.TopicBackfillRaw, schemas.TopicRatesRaw}

// kept reports whether the tables have all that the topics have, and what is folded of it.
func (o *OwnBackfill) kept(ctx context.Context) (bool, error) {
	client, err := o.in.Stream.NewClient()
	if err != nil {
		return false, fmt.Errorf("connecting to the log: %w", err)
	}
	defer client.Close()
	ends, err := stream.Ends(ctx, client, keptTopics...)
	if err != nil {
		return false, err
	}
	store, err := o.in.History(ctx)
	if err != nil {
		return false, err
	}
	for _, topic := range keptTopics {
		progress, err := store.Progress(ctx, topic, 0)
		if err != nil {
			return false, err
		}
		for partition, end := range ends[topic] {
			if progress[partition].Next < end {
				return false, nil
			}
		}
	}
	due, err := past.NewFold(store).Due(ctx)
	return due == 0, err
}

// OwnSources are the venues and polled sources that the instance back-fills by itself. An accelerated run has none: its time would pass
// while it asks, and its own minutes soon are a past. So has one without feeds.
func OwnSources(in *instance.Instance) []string {
	cfg := in.Config
	if _, virtual := in.Clock.(*producers.VirtualClock); virtual || !cfg.Backfill.Enabled || cfg.Feeds == "none" {
		return nil
	}
	var sources []string
	for _, source := range cfg.Backfill.Sources {
		if s, ok := config.HistoricSource(source); ok {
			if in.SourceState(s).Enabled {
				sources = append(sources, s.Slug)
			}
		} else if v := cfg.Venues[source]; v.Enabled && (cfg.Feeds == "live" || v.RESTURL != "") {
			sources = append(sources, source)
		}
	}
	return sources
}

// runOwnBackfill reads all own sources at a time, each within its own budget.
func runOwnBackfill(ctx context.Context, in *instance.Instance, emit func(any) error) error {
	log, err := openPast(in)
	if err != nil {
		return err
	}
	defer log.Close()
	working, cancel := context.WithTimeoutCause(ctx, time.Duration(in.Config.Backfill.Seconds)*time.Second, errOwnLimit)
	defer cancel()
	deadline, _ := working.Deadline()
	var mu sync.Mutex
	report := func(line any) error {
		mu.Lock()
		defer mu.Unlock()
		return emit(line)
	}
	log.report = func(p backfill.Progress) error { return report(p) }
	if log.known, err = backfill.ReadState(working, log.ranges); err != nil {
		return err
	}
	sources := OwnSources(in)
	faults := make([]error, len(sources))
	var all sync.WaitGroup
	for i, source := range sources {
		all.Go(func() {
			if err := ownBackfillOf(working, in, source, *log, deadline, report); err != nil {
				faults[i] = fmt.Errorf("%s: %w", source, err)
			}
		})
	}
	all.Wait()
	return errors.Join(append(faults, ctx.Err())...)
}

// ownBackfillOf reads one source, and begins again where it failed, a few times: what was read is not asked for again.
func ownBackfillOf(ctx context.Context, in *instance.Instance, source string, log pastLog, deadline time.Time, report func(any) error) error {
	pauses := retry.New(ownPause, ownLongestPause)
	for try := 1; ; try++ {
		err := tryOwnBackfill(ctx, in, source, &log, deadline, report)
		log.known = nil // it has changed
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err == nil || try == OwnTries {
			return err
		}
		pause := pauses.Next()
		in.Log.Warn("backfill failed", "source", source, "error", err, "retry_in", pause.Round(time.Millisecond))
		if producers.Sleep(ctx, in.Clock, pause) != nil {
			return context.Cause(ctx)
		}
	}
}

func tryOwnBackfill(ctx context.Context, in *instance.Instance, source string, log *pastLog, deadline time.Time, report func(any) error) error {
	job, err := openPastJob(ctx, in, source, BackfillInput{Own: true}, nil, log)
	if err != nil {
		return err
	}
	most := func(pace, share float64) int { return max(1, int(pace*share*time.Until(deadline).Seconds())) }
	switch j := job.(type) {
	case *backfill.Job:
		j.Reaches, j.Folded, j.MaxCalls = ownReaches, true, most(j.Pace, ownShare)
	case *backfill.SourceJob:
		j.MaxCalls = most(j.Pace, ownSourceShare)
	}
	result, err := job.Run(ctx)
	if result.Calls > 0 || err == nil {
		err = errors.Join(err, report(result))
	}
	return err
}

// ChartedMarkets are the markets that charts need most, one of each coin: first those that give what quotes are worth
// in USD, since the candles of other markets cannot be converted without; then the best of each coin, by rank; no more
// than most. At the end are the known ones beside them.
func ChartedMarkets(venue string, list []adapter.Instrument, most int, known map[string]bool) []adapter.Instrument {
	type market struct {
		adapter.Instrument
		rank, quote int
	}
	coins := schemas.Coins()
	convertible := instance.SelectMarkets(venue, nil)
	best := map[string]market{} // by asset
	for _, in := range list {
		base, known := coins.ResolveQuote(venue, in.Base)
		quote, quoted := coins.ResolveQuote(venue, in.Quote)
		if !known || !quoted || !convertible(in) {
			continue
		}
		m := market{Instrument: in, quote: schemas.QuoteRank(quote.ID)}
		if coin, ok := coins.ByID(base.ID); ok {
			m.rank = len(coins.All()) + coin.Rank
		}
		if quote.ID == schemas.USD && schemas.Convertible(coins, base) {
			m.rank -= len(coins.All())
		}
		if held, ok := best[base.ID]; !ok || cmp.Or(m.quote-held.quote, strings.Compare(m.Symbol, held.Symbol)) < 0 {
			best[base.ID] = m
		}
	}
	sorted := make([]market, 0, len(best))
	for _, m := range best {
		sorted = append(sorted, m)
	}
	slices.SortFunc(sorted, func(a, b market) int { return cmp.Or(a.rank-b.rank, strings.Compare(a.Symbol, b.Symbol)) })
	picked, chosen := make([]adapter.Instrument, 0, most), map[string]bool{}
	for _, m := range sorted[:min(most, len(sorted))] {
		picked, chosen[m.Symbol] = append(picked, m.Instrument), true
	}
	for _, in := range list {
		if known[in.Symbol] && !chosen[in.Symbol] {
			picked = append(picked, in)
		}
	}
	return picked
}

// ChartedMost is how many markets of a venue fit into the time of a start. It is the same at every start, so that a
// later one reads what was missed and is ready soon.
func ChartedMost(in *instance.Instance, h *adapter.History, pace float64) int {
	calls := 0
	for _, reach := range ownReaches {
		candles := int(cmp.Or(reach.Back, BackfilledPast) / reach.Interval)
		calls += (candles + h.Rows - 1) / h.Rows
	}
	return max(1, int(pace*ownShare*float64(in.Config.Backfill.Seconds))/calls)
}
