package supervise

import (
	"github.com/prometheus/client_golang/prometheus"
)

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
