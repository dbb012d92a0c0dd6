package limits

import (
	"strings"
	"sync/atomic"

	"github.com/marketlog/marketlog/query/collectors"
	"github.com/prometheus/client_golang/prometheus"
)

// LimiterStats is the state of a limiter.
type LimiterStats struct {
	// Budgets are held in memory: of keys that made a request lately, or this month.
	Budgets int
	// Replicas share the limits, this one included; 1 for one that is alone.
	Replicas int
	// StoreUp means that the store of the shared limits answered within the last second; true where nothing is shared.
	StoreUp bool
}

// Stats may be called at any time; it looks at every shard.
func (l *Limiter) Stats() LimiterStats {
	if s := l.shared; s != nil {
		stats := LimiterStats{Replicas: 1}
		if r := s.replicas.Load(); r != nil {
			stats.Replicas, stats.StoreUp = max(1, r.count), !r.away(s.clock())
		}
		budgets := map[string]bool{}
		s.pools.Range(func(key, _ any) bool {
			if name, ok := key.(string); ok {
				budgets[name[:strings.LastIndexByte(name, '}')+1]] = true // see poolName
			}
			return true
		})
		stats.Budgets = len(budgets)
		return stats
	}
	stats := LimiterStats{Replicas: 1, StoreUp: true}
	for i := range l.shards {
		s := &l.shards[i]
		s.Lock()
		stats.Budgets += len(s.budgets)
		s.Unlock()
	}
	return stats
}

// limiterMetrics measures the limiter that serves.
type limiterMetrics struct {
	of                         atomic.Pointer[Limiter]
	budgets, replicas, storeUp *prometheus.Desc
}

// MeasureLimiter registers the state of a limiter. One that takes the place of an earlier one in the same registry is
// measured from then on.
func MeasureLimiter(registry prometheus.Registerer, l *Limiter) error {
	m, err := collectors.Register(registry, &limiterMetrics{
		budgets:  prometheus.NewDesc("marketlog_limit_budgets", "Budgets of requests that are held in memory; keys that were rotated share one.", nil, nil),
		replicas: prometheus.NewDesc("marketlog_limit_replicas", "Replicas that share the limits of requests, this one included.", nil, nil),
		storeUp:  prometheus.NewDesc("marketlog_limit_store_up", "Whether the store of shared limits answers; 1 where nothing is shared.", nil, nil),
	})
	if err != nil {
		return err
	}
	m.of.Store(l)
	return nil
}

// Describe implements prometheus.Collector.
func (m *limiterMetrics) Describe(out chan<- *prometheus.Desc) {
	out <- m.budgets
	out <- m.replicas
	out <- m.storeUp
}

// Collect implements prometheus.Collector.
func (m *limiterMetrics) Collect(out chan<- prometheus.Metric) {
	l := m.of.Load()
	if l == nil {
		return
	}
	s := l.Stats()
	up := 0.0
	if s.StoreUp {
		up = 1
	}
	out <- prometheus.MustNewConstMetric(m.budgets, prometheus.GaugeValue, float64(s.Budgets))
	out <- prometheus.MustNewConstMetric(m.replicas, prometheus.GaugeValue, float64(s.Replicas))
	out <- prometheus.MustNewConstMetric(m.storeUp, prometheus.GaugeValue, up)
}
