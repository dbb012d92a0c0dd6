package metrics

import "github.com/prometheus/client_golang/prometheus"

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
	out <- prometheus.MustNewConstMetric(instanceReady, prometheus.GaugeValue, Truth(len(missing) == 0))
	for part := range missing {
		out <- prometheus.MustNewConstMetric(partWaiting, prometheus.GaugeValue, 1, part)
	}
}
