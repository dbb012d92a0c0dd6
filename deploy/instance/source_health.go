package instance

import (
	"sync"
	"time"

	"github.com/marketlog/marketlog/deploy/metrics"
	"github.com/marketlog/marketlog/producers/fetch"
	"github.com/marketlog/marketlog/producers/poll"
	"github.com/marketlog/marketlog/schemas"
	"github.com/prometheus/client_golang/prometheus"
)

// SourcePoller is a source that is being asked, and the client that keeps to its budget.
type SourcePoller struct {
	Poller *poll.Poller
	Client *fetch.Client
	Since  time.Time // when it began to be asked
}

// sourceHealth reports how the polled sources are doing. A source from which nothing was received for long shows in its
// time; it makes no instance unready, since its last report still counts. The zero value has none.
type sourceHealth struct {
	// Now is the clock that the sources are asked by; set before any is.
	Now func() time.Time

	mu      sync.Mutex
	pollers map[string]SourcePoller
}

func (h *sourceHealth) Add(slug string, p SourcePoller) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.pollers == nil {
		h.pollers = map[string]SourcePoller{}
	}
	h.pollers[slug] = p
}

func (h *sourceHealth) Remove(slug string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.pollers, slug)
}

func (h *sourceHealth) Clear() {
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.pollers)
}

// Get returns the poller of a source that is asked.
func (h *sourceHealth) Get(slug string) (SourcePoller, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p, ok := h.pollers[slug]
	return p, ok
}

var (
	sourceReceived = sourceMetric("heard_timestamp_seconds", "When an answer of the source was last read, Unix seconds; 0 before the first.")
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
	for _, d := range []*prometheus.Desc{sourceReceived, sourceRequests, sourceFailures, sourceWritten, sourceRefused, sourceUp, sourceAge} {
		out <- d
	}
}

// Collect reads the statistics of every source that runs.
func (h *sourceHealth) Collect(out chan<- prometheus.Metric) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for slug, p := range h.pollers {
		s := p.Poller.Stats()
		received := 0.0
		if !s.Heard.IsZero() {
			received = float64(s.Heard.Unix())
		}
		out <- prometheus.MustNewConstMetric(sourceReceived, prometheus.GaugeValue, received, slug)
		out <- prometheus.MustNewConstMetric(sourceUp, prometheus.GaugeValue, metrics.Truth(s.Requests > 0 && s.Err == nil), slug)
		out <- prometheus.MustNewConstMetric(sourceAge, prometheus.GaugeValue, metrics.Age(h.Now(), s.Heard, p.Since), slug)
		for d, n := range map[*prometheus.Desc]int64{sourceRequests: s.Requests, sourceFailures: s.Failures, sourceWritten: s.Written} {
			out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), slug)
		}
		for _, reason := range schemas.Reasons {
			out <- prometheus.MustNewConstMetric(sourceRefused, prometheus.CounterValue, float64(s.ByReason[reason]), slug, string(reason))
		}
	}
}
