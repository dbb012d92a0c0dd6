package views

import (
	"sync/atomic"
	"time"

	"github.com/marketlog/marketlog/query/collectors"
	"github.com/prometheus/client_golang/prometheus"
)

// priceCacheMetrics measures how old the prices of a price cache are when they are asked for.
type priceCacheMetrics struct {
	of          atomic.Pointer[measuredPriceCache]
	age, prices *prometheus.Desc
}

type measuredPriceCache struct {
	*PriceCache
	now func() time.Time
}

// MeasurePriceCache registers the ages of a price cache's prices by a clock: marketlog_price_age_seconds and
// marketlog_prices. A price cache that takes the place of an earlier one in the same registry is measured from then on.
func MeasurePriceCache(registry prometheus.Registerer, b *PriceCache, now func() time.Time) error {
	m, err := collectors.Register(registry, &priceCacheMetrics{
		age: prometheus.NewDesc("marketlog_price_age_seconds",
			"Age of the current prices by the second that they were evaluated in: of the newest, the median, the 95th percentile and the oldest.", []string{"of"}, nil),
		prices: prometheus.NewDesc("marketlog_prices",
			"Current prices by state: fresh, stale (older than 30 s or kept for a reason), and those of the stale that are critical (older than two hours).", []string{"state"}, nil),
	})
	if err != nil {
		return err
	}
	m.of.Store(&measuredPriceCache{b, now})
	return nil
}

// Describe implements prometheus.Collector.
func (m *priceCacheMetrics) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- m.age
	descriptions <- m.prices
}

// Collect implements prometheus.Collector.
func (m *priceCacheMetrics) Collect(metrics chan<- prometheus.Metric) {
	priceCache := m.of.Load()
	if priceCache == nil {
		return
	}
	ages := priceCache.Ages(priceCache.now())
	for state, n := range map[string]int{"fresh": ages.Fresh, "stale": ages.Stale, "critical": ages.Critical} {
		metrics <- prometheus.MustNewConstMetric(m.prices, prometheus.GaugeValue, float64(n), state)
	}
	if ages.Fresh+ages.Stale == 0 {
		return
	}
	for of, age := range map[string]time.Duration{"newest": ages.Newest, "median": ages.Median, "p95": ages.P95, "oldest": ages.Oldest} {
		metrics <- prometheus.MustNewConstMetric(m.age, prometheus.GaugeValue, age.Seconds(), of)
	}
}
