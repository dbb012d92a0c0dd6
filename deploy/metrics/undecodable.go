package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

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
