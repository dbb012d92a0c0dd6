package query

import (
	"strconv"
	"sync"
	"time"

	"github.com/marketlog/marketlog/query/collectors"
	"github.com/marketlog/marketlog/query/limits"
	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the server's own.
type metrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	refused  *prometheus.CounterVec
}

func newMetrics(registry prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "marketlog_http_requests_total", Help: "Requests answered, by operation and status.",
		}, []string{"operation", "status"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "marketlog_http_request_duration_seconds", Help: "Time from the read request to the written answer's hand-over, by operation.",
			Buckets: []float64{.00001, .0001, .001, .005, .01, .05, .1, .5, 1, 5},
		}, []string{"operation"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "marketlog_http_refused_total", Help: "Requests refused by a limit, by its scope.",
		}, []string{"scope"}),
	}
	var err error
	if m.requests, err = collectors.Register(registry, m.requests); err != nil {
		return nil, err
	}
	if m.duration, err = collectors.Register(registry, m.duration); err != nil {
		return nil, err
	}
	if m.refused, err = collectors.Register(registry, m.refused); err != nil {
		return nil, err
	}
	for _, scope := range []string{limits.ScopeMinute, limits.ScopeMonth, limits.ScopeCharts} {
		m.refused.WithLabelValues(scope) // so that each is there before the first
	}
	return m, nil
}

// operationMetrics are those of one operation, looked up once per status.
type operationMetrics struct {
	name     string
	requests *prometheus.CounterVec
	duration prometheus.Observer
	byStatus sync.Map // int → prometheus.Counter
	ok       prometheus.Counter
}

func (m *metrics) operation(name string) *operationMetrics {
	return &operationMetrics{name: name, requests: m.requests, duration: m.duration.WithLabelValues(name),
		ok: m.requests.WithLabelValues(name, "200")}
}

func (o *operationMetrics) observe(status int, took time.Duration) {
	o.duration.Observe(took.Seconds())
	if status == 200 {
		o.ok.Inc()
		return
	}
	counter, ok := o.byStatus.Load(status)
	if !ok {
		counter, _ = o.byStatus.LoadOrStore(status, o.requests.WithLabelValues(o.name, strconv.Itoa(status)))
	}
	counter.(prometheus.Counter).Inc()
}
