package metrics

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/marketlog/marketlog/stream/history"
)

const (
	// tablesAskTimeout bounds what a scrape may wait for ClickHouse.
	tablesAskTimeout = 3 * time.Second
	// tablesAskEvery is how long its answer is used again: sizes change slowly, and the list of parts is long.
	tablesAskEvery = 10 * time.Second
)

// Tables measures what ClickHouse holds. Labels are bounded by the tables; those that a replay builds count as one.
type Tables struct {
	// Store is the open one; nil while there is none.
	Store func() *history.Store

	mu    sync.Mutex
	taken time.Time
	found []prometheus.Metric
}

var (
	tablesUp        = prometheus.NewDesc("marketlog_clickhouse_up", "Whether ClickHouse answered when it was measured.", nil, nil)
	tablesMemory    = prometheus.NewDesc("marketlog_clickhouse_memory_bytes", "Memory that ClickHouse accounts for; of the embedded engine it is part of this process.", nil, nil)
	tablesSize      = tableMetric("bytes", "Compressed size of a table on disk.")
	tablesRows      = tableMetric("rows", "Rows of a table, those included that a newer version replaces.")
	tablesParts     = tableMetric("parts", "Active parts of a table; inserts are refused at 3,000 of a partition.")
	tablesRetention = tableMetric("retention_seconds", "How long a table keeps rows, in log time; tables without keep all.")
)

func tableMetric(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("marketlog_table_"+name, help, []string{"table"}, nil)
}

// Describe names the metrics.
func (t *Tables) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{tablesUp, tablesMemory, tablesSize, tablesRows, tablesParts, tablesRetention} {
		out <- d
	}
}

// Collect asks ClickHouse, at most once in ten seconds.
func (t *Tables) Collect(out chan<- prometheus.Metric) {
	store := t.Store()
	if store == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if time.Since(t.taken) >= tablesAskEvery {
		t.found = measuredTables(store)
		t.taken = time.Now()
	}
	for _, m := range t.found {
		out <- m
	}
}

func measuredTables(store *history.Store) (found []prometheus.Metric) {
	add := func(d *prometheus.Desc, v float64, labels ...string) {
		found = append(found, prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...))
	}
	ctx, cancel := context.WithTimeout(context.Background(), tablesAskTimeout)
	defer cancel()
	sizes, err := store.Sizes(ctx)
	add(tablesUp, Truth(err == nil))
	for table, kept := range store.Retention() {
		add(tablesRetention, kept.Seconds(), table)
	}
	if err != nil {
		return found
	}
	add(tablesMemory, float64(sizes.Memory))
	for _, size := range sizes.Tables {
		add(tablesSize, float64(size.Bytes), size.Table)
		add(tablesRows, float64(size.Rows), size.Table)
		add(tablesParts, float64(size.Parts), size.Table)
	}
	return found
}
