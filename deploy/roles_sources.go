package deploy

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"

	"github.com/marketlog/marketlog/deploy/diskguard"
	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/fetch"
	"github.com/marketlog/marketlog/producers/sources"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// sourceRoles poll reference values into the log. Their public interfaces are asked with the live feeds
// only: beside the simulator, only at a URL that was configured.
func sourceRoles(in *Instance) []Role {
	in.sources.now = in.Clock.Now
	in.Metrics.MustRegister(&in.sources)
	run := func(ctx context.Context) error { return in.disk.While(ctx, diskguard.Sources, in.runSources) }
	return []Role{{Name: "sources", Run: run}}
}

// runSources reads the sources that are enabled, starts and ends them as they are switched, and tells the log of each
// what it is.
func (in *Instance) runSources(ctx context.Context) error {
	log, err := producers.NewSourceLog(in.Stream, in.Clock, in.Log)
	if err != nil {
		return err
	}
	defer log.Close()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return log.Run(ctx) })
	// What a source is, simulated or not, is in the log before what it says.
	declared := make(chan struct{})
	g.Go(func() error { return in.declareSources(ctx, log, declared) })
	g.Go(func() error {
		select {
		case <-declared:
			return in.superviseSources(ctx, log)
		case <-ctx.Done():
			return nil
		}
	})
	return g.Wait()
}

// declareSources writes a notice of each source and venue at the start, when it changes, and once a day. It closes declared
// after the first of all.
func (in *Instance) declareSources(ctx context.Context, log *producers.SourceLog, declared chan<- struct{}) error {
	said := map[string]*eventsv1.SourceNotice{}
	for first := true; ; first = false {
		switched, day := in.switches.change(), in.Clock.After(noticeInterval)
		for _, notice := range in.notices() {
			if proto.Equal(said[notice.Source], notice) {
				continue
			}
			said[notice.Source] = proto.Clone(notice).(*eventsv1.SourceNotice)
			record := &eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_Notice{Notice: notice}}
			if err := log.Source(notice.Source).Append(ctx, record); err != nil {
				return stopped(ctx, err)
			}
		}
		if first {
			close(declared)
		}
		select {
		case <-switched:
		case <-day:
			clear(said)
		case <-ctx.Done():
			return nil
		}
	}
}

// superviseSources keeps a poller for each source that is enabled, until ctx ends or one cannot go on.
func (in *Instance) superviseSources(ctx context.Context, log *producers.SourceLog) error {
	g, ctx := errgroup.WithContext(ctx)
	running := map[string]context.CancelFunc{}
	ended := map[string]chan struct{}{}
	for {
		switched := in.switches.change()
		for _, declared := range sources.List() {
			s := in.sourceState(declared)
			stop, runs := running[s.Slug]
			switch {
			case s.Enabled && !runs:
				p, err := in.newSourcePoller(s, log)
				if err != nil {
					in.Log.Error("a source cannot be asked", "source", s.Slug, "error", err)
					continue
				}
				polling, cancel := context.WithCancel(ctx)
				done := make(chan struct{})
				running[s.Slug], ended[s.Slug] = cancel, done
				in.sources.add(s.Slug, p)
				g.Go(func() error {
					defer close(done)
					return p.poller.Run(polling)
				})
			case !s.Enabled && runs:
				stop()
				<-ended[s.Slug]
				delete(running, s.Slug)
				in.sources.remove(s.Slug)
				in.Log.Info("a source is not asked any more", "source", s.Slug, "why", s.Why)
			}
		}
		select {
		case <-switched:
		case <-ctx.Done():
			for _, stop := range running {
				stop()
			}
			err := g.Wait()
			in.sources.clear()
			return err
		}
	}
}

// newSourcePoller prepares to ask a source with its key and within its budget.
func (in *Instance) newSourcePoller(s sourceState, log *producers.SourceLog) (sourcePoller, error) {
	client, err := in.sourceClient(s)
	if err != nil {
		return sourcePoller{}, err
	}
	poller := producers.NewPoller(s.Source, in.Config.Sources[s.Slug].URL, client, log.Source(s.Slug), in.Clock, in.Log)
	return sourcePoller{poller: poller, client: client, since: in.Clock.Now()}, nil
}

// sourceConfig bounds what is asked of a source, and carries its key.
func (in *Instance) sourceConfig(s sourceState) (fetch.Config, error) {
	cfg := fetch.SourceConfig(s.Source)
	key, err := in.Config.Sources[s.Slug].key(s.Slug)
	cfg.KeyHeader, cfg.Key, cfg.Sign = s.KeyHeader, key, s.Sign
	return cfg, err
}

func (in *Instance) sourceClient(s sourceState) (*fetch.Client, error) {
	cfg, err := in.sourceConfig(s)
	if err != nil {
		return nil, err
	}
	client, err := fetch.New(cfg, in.Clock, nil)
	if err != nil {
		return nil, fmt.Errorf("preparing %s: %w", s.Slug, err)
	}
	return client, nil
}

// sourcePoller is a source that is being asked, and the client that keeps to its budget.
type sourcePoller struct {
	poller *producers.Poller
	client *fetch.Client
	since  time.Time // when it began to be asked
}

// sourceHealth tells how the polled sources are doing. A source that was not heard for long shows in its
// time; it makes no instance unready, since what it said last still counts. The zero value has none.
type sourceHealth struct {
	// now is the clock that the sources are asked by; set before any is.
	now func() time.Time

	mu      sync.Mutex
	pollers map[string]sourcePoller
}

func (h *sourceHealth) add(slug string, p sourcePoller) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.pollers == nil {
		h.pollers = map[string]sourcePoller{}
	}
	h.pollers[slug] = p
}

func (h *sourceHealth) remove(slug string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.pollers, slug)
}

func (h *sourceHealth) clear() {
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.pollers)
}

// get returns the poller of a source that is asked.
func (h *sourceHealth) get(slug string) (sourcePoller, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p, ok := h.pollers[slug]
	return p, ok
}

var (
	sourceHeard    = sourceMetric("heard_timestamp_seconds", "When an answer of the source was last read, Unix seconds; 0 before the first.")
	sourceRequests = sourceMetric("requests_total", "Requests made to the source.")
	sourceFailures = sourceMetric("failures_total", "Requests that brought nothing which could be read.")
	sourceWritten  = sourceMetric("written_total", "Rows of the source that were new or changed.")
	sourceRefused  = sourceMetric("refused_total", "Rows of the source that could not be read, by reason.", "reason")
	sourceUp       = sourceMetric("up", "Whether the last request to the source brought something that could be read.")
	sourceAge      = sourceMetric("last_answer_age_seconds", "Time since an answer of the source was last read; since it is asked before the first.")
)

func sourceMetric(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("marketlog_source_"+name, help, append([]string{"source"}, labels...), nil)
}

// Describe names the metrics.
func (h *sourceHealth) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{sourceHeard, sourceRequests, sourceFailures, sourceWritten, sourceRefused, sourceUp, sourceAge} {
		out <- d
	}
}

// Collect reads the statistics of every source that runs.
func (h *sourceHealth) Collect(out chan<- prometheus.Metric) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for slug, p := range h.pollers {
		s := p.poller.Stats()
		heard := 0.0
		if !s.Heard.IsZero() {
			heard = float64(s.Heard.Unix())
		}
		out <- prometheus.MustNewConstMetric(sourceHeard, prometheus.GaugeValue, heard, slug)
		out <- prometheus.MustNewConstMetric(sourceUp, prometheus.GaugeValue, truth(s.Requests > 0 && s.Err == nil), slug)
		out <- prometheus.MustNewConstMetric(sourceAge, prometheus.GaugeValue, age(h.now(), s.Heard, p.since), slug)
		for d, n := range map[*prometheus.Desc]int64{sourceRequests: s.Requests, sourceFailures: s.Failures, sourceWritten: s.Written} {
			out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), slug)
		}
		for _, reason := range schemas.Reasons {
			out <- prometheus.MustNewConstMetric(sourceRefused, prometheus.CounterValue, float64(s.ByReason[reason]), slug, string(reason))
		}
	}
}
