package deploy

import (
	"context"
	"fmt"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/fetch"
	"github.com/marketlog/marketlog/producers/reference"
)

// sourceRoles poll reference values into the log. Their public interfaces are asked with the live feeds
// only: beside the simulator, only at a URL that was configured.
func sourceRoles(in *Instance) []Role {
	var sources []producers.Source
	for _, s := range reference.List() {
		if c := in.Config.Sources[s.Slug]; c.Enabled && (in.Config.Feeds == "live" || c.URL != "") {
			sources = append(sources, s)
		}
	}
	health := &sourceHealth{}
	in.Metrics.MustRegister(health)
	return []Role{{Name: "sources", Run: func(ctx context.Context) error { return in.runSources(ctx, sources, health) }}}
}

func (in *Instance) runSources(ctx context.Context, sources []producers.Source, health *sourceHealth) error {
	log, err := producers.NewSourceLog(in.Stream, in.Clock, in.Log)
	if err != nil {
		return err
	}
	defer log.Close()
	g, ctx := errgroup.WithContext(ctx)
	pollers := map[string]*producers.Poller{}
	for _, s := range sources {
		client, err := fetch.New(fetch.SourceConfig(s), in.Clock, nil)
		if err != nil {
			return fmt.Errorf("preparing %s: %w", s.Slug, err)
		}
		pollers[s.Slug] = producers.NewPoller(s, in.Config.Sources[s.Slug].URL, client, log.Source(s.Slug), in.Clock, in.Log)
	}
	health.set(pollers)
	for _, p := range pollers {
		g.Go(func() error { return p.Run(ctx) })
	}
	g.Go(func() error { return log.Run(ctx) })
	return g.Wait()
}

// sourceHealth tells how the polled sources are doing. A source that was not heard for long shows in its
// time; it makes no instance unready, since what it said last still counts.
type sourceHealth struct {
	mu      sync.Mutex
	pollers map[string]*producers.Poller
}

func (h *sourceHealth) set(pollers map[string]*producers.Poller) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pollers = pollers
}

var (
	sourceHeard    = sourceMetric("heard_timestamp_seconds", "When an answer of the source was last read, Unix seconds; 0 before the first.")
	sourceRequests = sourceMetric("requests_total", "Requests made to the source.")
	sourceFailures = sourceMetric("failures_total", "Requests that brought nothing which could be read.")
	sourceWritten  = sourceMetric("written_total", "Rows of the source that were new or changed.")
	sourceRefused  = sourceMetric("refused_total", "Rows of the source that could not be read.")
)

func sourceMetric(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("marketlog_source_"+name, help, []string{"source"}, nil)
}

// Describe names the metrics.
func (h *sourceHealth) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{sourceHeard, sourceRequests, sourceFailures, sourceWritten, sourceRefused} {
		out <- d
	}
}

// Collect reads the statistics of every source that runs.
func (h *sourceHealth) Collect(out chan<- prometheus.Metric) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for slug, p := range h.pollers {
		s := p.Stats()
		heard := 0.0
		if !s.Heard.IsZero() {
			heard = float64(s.Heard.Unix())
		}
		out <- prometheus.MustNewConstMetric(sourceHeard, prometheus.GaugeValue, heard, slug)
		for d, n := range map[*prometheus.Desc]int64{
			sourceRequests: s.Requests, sourceFailures: s.Failures, sourceWritten: s.Written, sourceRefused: s.Refused,
		} {
			out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), slug)
		}
	}
}
