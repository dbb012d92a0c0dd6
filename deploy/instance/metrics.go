package instance

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/marketlog/marketlog/deploy/admin"
	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/schemas"
)

// UndecodableRecords registers the count of records of the log that are skipped, and returns what counts one.
func UndecodableRecords(metrics prometheus.Registerer) func(topic string) {
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
			topic = "other" // what a letter reports of its origin was written by anybody
		}
		counts.WithLabelValues(topic).Inc()
	}
}

// measure registers what is measured of the pipeline, whatever of it this process runs.
func (in *Instance) measure() {
	in.Folding = processors.NewMetrics(in.Metrics)
	in.Feeds = &feedMetrics{now: in.Clock.Now, began: in.Began, paused: func() []string { return in.Pauses.paused() }}
	in.position = &logMetrics{now: in.Clock.Now, began: in.Began, positions: in.Folding.Positions, limits: in.Config.LogLimits()}
	in.Jobs = admin.NewJobMetrics(in.Metrics)
	in.Metrics.MustRegister(in.Feeds, in.position, &tableMetrics{store: in.openedHistory})
	if in.archiving != nil {
		in.Metrics.MustRegister(in.archiving)
	}
}

var (
	instanceReady = prometheus.NewDesc("marketlog_ready", "Whether /readyz of this address answers 200.", nil, nil)
	partWaiting   = prometheus.NewDesc("marketlog_part_waiting", "1 for each part that the instance waits for, as /readyz names them.", []string{"part"}, nil)
)

// Readiness measures what /readyz answers, from the same source. Parts are roles and the parts beneath them.
type Readiness func() map[string][]string

// Describe names the metrics of readiness.
func (r Readiness) Describe(out chan<- *prometheus.Desc) {
	out <- instanceReady
	out <- partWaiting
}

// Collect asks what is missing.
func (r Readiness) Collect(out chan<- prometheus.Metric) {
	missing := r()
	out <- prometheus.MustNewConstMetric(instanceReady, prometheus.GaugeValue, truth(len(missing) == 0))
	for part := range missing {
		out <- prometheus.MustNewConstMetric(partWaiting, prometheus.GaugeValue, 1, part)
	}
}
