package diskbudget

import "github.com/prometheus/client_golang/prometheus"

var (
	limitMetric   = prometheus.NewDesc("marketlog_disk_budget_bytes", "What log, archive and tables may take on the disk together (retention.disk_bytes).", nil, nil)
	usedMetric    = prometheus.NewDesc("marketlog_disk_budget_used_bytes", "What log, archive and tables take of the disk budget.", []string{"part"}, nil)
	droppedMetric = prometheus.NewDesc("marketlog_disk_budget_dropped_bytes_total", "What was dropped to stay within the disk budget.", []string{"part"}, nil)
	lackingMetric = prometheus.NewDesc("marketlog_disk_budget_lacking_bytes", "What would have to be dropped to stay within the disk budget, and may not be.", nil, nil)
)

// Describe implements prometheus.Collector.
func (b *Budget) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{limitMetric, usedMetric, droppedMetric, lackingMetric} {
		out <- d
	}
}

// Collect implements prometheus.Collector: nothing before the first look.
func (b *Budget) Collect(out chan<- prometheus.Metric) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.known {
		return
	}
	out <- prometheus.MustNewConstMetric(limitMetric, prometheus.GaugeValue, float64(b.Limit))
	out <- prometheus.MustNewConstMetric(lackingMetric, prometheus.GaugeValue, float64(b.lacking))
	for _, part := range b.Parts {
		out <- prometheus.MustNewConstMetric(usedMetric, prometheus.GaugeValue, float64(b.used[part.Name]), part.Name)
		out <- prometheus.MustNewConstMetric(droppedMetric, prometheus.CounterValue, float64(b.dropped[part.Name]), part.Name)
	}
}
