package export

import "github.com/prometheus/client_golang/prometheus"

var (
	lakeNewest   = lakeMetric("newest_day_timestamp_seconds", "Start of the newest day of a dataset that is in the lake, Unix seconds.")
	lakeDue      = lakeMetric("due_days", "Finished days of a dataset that are not in the lake yet, with those that are still to be looked at for rows.")
	lakeFailing  = lakeMetric("failing", "Whether the last attempt to export a day of a dataset into the lake failed.")
	lakeFailures = lakeMetric("failures_total", "Attempts to export a day of a dataset into the lake that failed.")
	lakeBytes    = lakeMetric("bytes_total", "Size of the files of a dataset that this process exported into the lake.")
)

func lakeMetric(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("marketlog_lake_"+name, help, []string{"dataset"}, nil)
}

// Describe names the metrics.
func (l *Lake) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{lakeNewest, lakeDue, lakeFailing, lakeFailures, lakeBytes} {
		out <- d
	}
}

// Collect gives what the lake of this process knows.
func (l *Lake) Collect(out chan<- prometheus.Metric) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, dataset := range l.Datasets {
		s := l.state(dataset)
		failing := 0.0
		if s.failing != nil {
			failing = 1
		}
		if !s.newest.IsZero() {
			out <- prometheus.MustNewConstMetric(lakeNewest, prometheus.GaugeValue, float64(s.newest.Unix()), dataset)
		}
		out <- prometheus.MustNewConstMetric(lakeDue, prometheus.GaugeValue, float64(s.due), dataset)
		out <- prometheus.MustNewConstMetric(lakeFailing, prometheus.GaugeValue, failing, dataset)
		out <- prometheus.MustNewConstMetric(lakeFailures, prometheus.CounterValue, float64(s.failures), dataset)
		out <- prometheus.MustNewConstMetric(lakeBytes, prometheus.CounterValue, float64(s.bytes), dataset)
	}
}
