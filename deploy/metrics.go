package deploy

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/schemas"
)

// undecodableRecords registers the count of records of the log that are passed over, and returns what counts one.
func undecodableRecords(metrics prometheus.Registerer) func(topic string) {
	counts := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "marketlog_undecodable_records_total",
		Help: "Records of the log that could not be decoded; each is in the dead letters, and readers pass over it.",
	}, []string{"topic"})
	metrics.MustRegister(counts)
	known := map[string]bool{}
	for _, topic := range schemas.Topics {
		known[topic.Name] = true
		counts.WithLabelValues(topic.Name) // so that each is there before the first
	}
	return func(topic string) {
		if !known[topic] {
			topic = "other" // what a letter says of its origin was written by anybody
		}
		counts.WithLabelValues(topic).Inc()
	}
}

var (
	roleRestarts = prometheus.NewDesc("marketlog_role_restarts_total", "How often a role ended with an error and was started again.", []string{"role"}, nil)
	roleRunning  = prometheus.NewDesc("marketlog_role_running", "Whether a role runs: 0 while it waits to be started again.", []string{"role"}, nil)
)

// Describe names the metrics of the roles.
func (h *Health) Describe(out chan<- *prometheus.Desc) {
	out <- roleRestarts
	out <- roleRunning
}

// Collect gives the metrics of the roles.
func (h *Health) Collect(out chan<- prometheus.Metric) {
	for _, r := range h.Report() {
		running := 0.0
		if r.State == "running" {
			running = 1
		}
		out <- prometheus.MustNewConstMetric(roleRestarts, prometheus.CounterValue, float64(r.Restarts), r.Name)
		out <- prometheus.MustNewConstMetric(roleRunning, prometheus.GaugeValue, running, r.Name)
	}
}

// measure registers what is measured of the pipeline, whatever of it this process runs.
func (in *Instance) measure() {
	in.folding = processors.NewMetrics(in.Metrics)
	in.feeds = &feedMetrics{now: in.Clock.Now, began: in.Began, paused: func() []string { return in.pauses.paused() }}
	in.position = &logMetrics{now: in.Clock.Now, began: in.Began, positions: in.folding.Positions, limits: in.Config.logLimits()}
	in.jobs = newJobMetrics(in.Metrics)
	in.Metrics.MustRegister(in.feeds, in.position, &tableMetrics{store: in.openedHistory})
}

var (
	instanceReady = prometheus.NewDesc("marketlog_ready", "Whether /readyz of this address answers 200.", nil, nil)
	partWaiting   = prometheus.NewDesc("marketlog_part_waiting", "1 for each part that the instance waits for, as /readyz names them.", []string{"part"}, nil)
)

// readiness measures what /readyz answers, from the same source. Parts are roles and the parts beneath them.
type readiness func() map[string][]string

// Describe names the metrics of readiness.
func (r readiness) Describe(out chan<- *prometheus.Desc) {
	out <- instanceReady
	out <- partWaiting
}

// Collect asks what is missing.
func (r readiness) Collect(out chan<- prometheus.Metric) {
	missing := r()
	out <- prometheus.MustNewConstMetric(instanceReady, prometheus.GaugeValue, truth(len(missing) == 0))
	for part := range missing {
		out <- prometheus.MustNewConstMetric(partWaiting, prometheus.GaugeValue, 1, part)
	}
}
