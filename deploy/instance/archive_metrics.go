package instance

import (
	"github.com/marketlog/marketlog/deploy/metrics"
	"github.com/prometheus/client_golang/prometheus"
)

var (
	archiveSegments = archiveMetric("segments", "Segments that the archive has of a topic.")
	archiveBytes    = archiveMetric("bytes", "Size of the archived segments of a topic, compressed.")
	archiveNewest   = archiveMetric("newest_timestamp_seconds", "Time of the newest archived record of a topic, Unix seconds; an open segment is not archived yet.")
	archiveLimit    = prometheus.NewDesc("marketlog_archive_limit_bytes", "Bound of the archive, beyond which the oldest ticks and prices are deleted.", nil, nil)
	archiveFailing  = prometheus.NewDesc("marketlog_archive_failing", "Whether the last attempt to archive a segment failed.", nil, nil)
	archiveFailures = prometheus.NewDesc("marketlog_archive_failures_total", "Attempts to archive that failed.", nil, nil)
)

func archiveMetric(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("marketlog_archive_"+name, help, []string{"topic"}, nil)
}

// Describe names the metrics.
func (s *archiveState) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{archiveSegments, archiveBytes, archiveNewest, archiveLimit, archiveFailing, archiveFailures} {
		out <- d
	}
}

// Collect gives what the archiver of this process knows.
func (s *archiveState) Collect(out chan<- prometheus.Metric) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, topic := range s.topics {
		for d, v := range map[*prometheus.Desc]float64{
			archiveSegments: float64(topic.segments), archiveBytes: float64(topic.bytes), archiveNewest: float64(topic.newest) / 1e3,
		} {
			out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, name)
		}
	}
	out <- prometheus.MustNewConstMetric(archiveLimit, prometheus.GaugeValue, float64(s.in.Config.ArchiveBound()))
	out <- prometheus.MustNewConstMetric(archiveFailing, prometheus.GaugeValue, metrics.Truth(s.failing != nil))
	out <- prometheus.MustNewConstMetric(archiveFailures, prometheus.CounterValue, float64(s.failures))
}
