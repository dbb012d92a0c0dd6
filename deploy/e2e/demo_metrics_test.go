package e2e

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/marketlog/marketlog/deploy/admin"
	"github.com/marketlog/marketlog/producers/exchanges"
	"github.com/marketlog/marketlog/query/querytest"
	"github.com/marketlog/marketlog/schemas"
)

// scrape reads /metrics as Prometheus does.
type scrape struct {
	text     []byte
	at       time.Time
	families map[string]*dto.MetricFamily
}

func (d *demo) scrape(t *testing.T) *scrape {
	t.Helper()
	info, ok, err := admin.RunningInstance(d.dir)
	if err != nil || !ok {
		t.Fatalf("the demo is not running: %v", err)
	}
	response, err := http.Get("http://" + info.MetricsListen + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("/metrics answers %s, %v: %.2000s", response.Status, err, text)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("/metrics cannot be parsed: %v", err)
	}
	return &scrape{text, time.Now(), families}
}

// samples are the values of a family, of a histogram the counts, by their labels.
func (s *scrape) samples(name string) map[string]float64 {
	values := map[string]float64{}
	for _, m := range s.families[name].GetMetric() {
		var labels []string
		for _, label := range m.Label {
			labels = append(labels, label.GetValue())
		}
		values[strings.Join(labels, " ")] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
	}
	return values
}

// value is one sample; NaN-free, and -1 where it is not there.
func (s *scrape) value(name, labels string) float64 {
	if v, ok := s.samples(name)[labels]; ok {
		return v
	}
	return -1
}

// measured waits until what is measured holds, and returns the scrape in which it does.
func (d *demo) measured(t *testing.T, holds func(s *scrape) (lacks string)) *scrape {
	t.Helper()
	for deadline := time.Now().Add(demoPatience); ; time.Sleep(time.Second) {
		s := d.scrape(t)
		lacks := holds(s)
		if lacks == "" {
			return s
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %s %s", demoPatience, lacks)
		}
	}
}

// promisedMetrics are the families that docs/metrics.md promises of `marketlog run`, by what they measure.
var promisedMetrics = map[string][]string{
	"venues": {"venue_connections", "venue_markets", "venue_connects_total", "venue_frames_total", "venue_events_total", "venue_last_event_age_seconds",
		"venue_gaps_total", "venue_missed_messages_total", "venue_refused_total", "open_gaps"},
	"polled sources": {"source_up", "source_last_answer_age_seconds", "source_heard_timestamp_seconds", "source_requests_total", "source_failures_total",
		"source_written_total", "source_refused_total"},
	"queue and spool": {"producer_queue_bytes", "producer_in_flight_records", "producer_in_flight_bytes", "producer_memory_limit_bytes", "producer_spool_bytes",
		"producer_spool_limit_bytes", "producer_spooling", "producer_accepted_total", "producer_acknowledged_total", "producer_spooled_total",
		"producer_dropped_total", "producer_damaged_bytes_total", "producer_last_acknowledgement_age_seconds"},
	"log":     {"log_up", "log_records_total", "log_bytes", "log_limit_bytes", "disk_free_bytes", "disk_reserve_bytes", "ingest_paused", "disk_budget_bytes", "disk_budget_used_bytes", "disk_budget_dropped_bytes_total", "disk_budget_lacking_bytes"},
	"archive": {"archive_failing", "archive_failures_total", "archive_limit_bytes"},
	"folds": {"fold_offset", "fold_lag_records", "fold_lag_seconds", "fold_log_timestamp_seconds", "fold_records_total", "fold_outputs_total",
		"fold_batch_records", "fold_batch_duration_seconds"},
	"sinks": {"sink_offset", "sink_lag_records", "sink_lag_seconds", "sink_rows_total", "sink_retries_total", "sink_batch_rows", "sink_insert_duration_seconds",
		"undecodable_records_total", "dead_letters_total"},
	"cache":                   {"cache_put_duration_seconds", "cache_values_total", "cache_refills_total"},
	"tables":                  {"clickhouse_up", "clickhouse_memory_bytes", "table_bytes", "table_rows", "table_parts", "table_retention_seconds"},
	"replay and back-fill":    {"job_running", "job_progress_ratio", "job_ends_total"},
	"prices":                  {"price_age_seconds", "prices"},
	"limits":                  {"http_refused_total", "limit_budgets", "limit_replicas", "limit_store_up"},
	"roles":                   {"role_running", "role_restarts_total", "ready"},
	"REST, stream, SQL, keys": {"http_requests_total", "http_request_duration_seconds", "stream_connections", "stream_frames_total", "stream_conflated_total", "sql_statements_running", "sql_process_starts_total", "key_records_refused_total"},
}

// What is promised is measured, by the conventions of Prometheus, and with few enough series.
func TestDemoMeasuresItsPipeline(t *testing.T) {
	d := filledDemo(t)
	s := d.measured(t, func(s *scrape) string {
		var lacks []string
		for _, names := range promisedMetrics {
			for _, name := range names {
				if len(s.samples("marketlog_"+name)) == 0 {
					lacks = append(lacks, name)
				}
			}
		}
		slices.Sort(lacks)
		if len(lacks) > 0 {
			return "/metrics has no samples of " + strings.Join(lacks, ", ")
		}
		return ""
	})
	problems, err := promlint.New(bytes.NewReader(s.text)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	series := 0
	for name, family := range s.families {
		if strings.HasPrefix(name, "marketlog_") {
			series += len(family.Metric)
		}
		// Of a topic, venue or source there are some dozens, and two of these labels are the most that meet.
		if n := len(family.Metric); n > 400 {
			t.Errorf("%s has %d series, want at most 400", name, n)
		}
	}
	if series > 3000 {
		t.Errorf("there are %d series, want at most 3,000", series)
	}
	t.Logf("%d families, %d series, %d bytes", len(s.families), series, len(s.text))
}

// The numbers are those of what happens: they grow where something goes on, and what should be small is.
func TestDemoIsMeasuredAsItIs(t *testing.T) {
	d := filledDemo(t)
	first := d.scrape(t)
	growing := func(s *scrape, name, labels string) string {
		if before, now := first.value("marketlog_"+name, labels), s.value("marketlog_"+name, labels); now <= before || before < 0 {
			return fmt.Sprintf("marketlog_%s{%s} went from %v to %v, want it to grow; ", name, labels, before, now)
		}
		return ""
	}
	within := func(s *scrape, name string, least, most float64) (lacks string) {
		for labels, v := range s.samples("marketlog_" + name) {
			if v < least || v > most {
				lacks += fmt.Sprintf("marketlog_%s{%s} is %v, want %v to %v; ", name, labels, v, least, most)
			}
		}
		return lacks
	}
	s := d.measured(t, func(s *scrape) (lacks string) {
		for _, v := range exchanges.List() {
			lacks += growing(s, "venue_events_total", v.Slug)
			if s.value("marketlog_venue_connections", v.Slug) < 1 || s.value("marketlog_venue_markets", v.Slug) < 1 {
				lacks += v.Slug + " is not connected or has no markets; "
			}
		}
		for _, topic := range []string{schemas.TopicTicksRaw, schemas.TopicTicks, schemas.TopicQuotes, schemas.TopicPrices, schemas.TopicReferenceRaw} {
			lacks += growing(s, "log_records_total", topic)
		}
		for _, topic := range []string{schemas.TopicTicks, schemas.TopicPrices} {
			lacks += growing(s, "sink_rows_total", topic) + growing(s, "sink_insert_duration_seconds", topic) + growing(s, "sink_offset", topic)
		}
		for _, fold := range []string{"quotes", "resolve"} {
			lacks += growing(s, "fold_records_total", fold+" "+schemas.TopicTicksRaw) + growing(s, "fold_offset", fold+" "+schemas.TopicTicksRaw) +
				growing(s, "fold_outputs_total", fold) + growing(s, "fold_log_timestamp_seconds", fold)
		}
		lacks += growing(s, "fold_records_total", "prices "+schemas.TopicTicks)
		lacks += growing(s, "producer_accepted_total", "") + growing(s, "producer_acknowledged_total", "") + growing(s, "cache_values_total", "")
		lacks += within(s, "venue_last_event_age_seconds", 0, 60) + within(s, "fold_lag_seconds", 0, 30) + within(s, "sink_lag_seconds", 0, 30)
		lacks += within(s, "producer_last_acknowledgement_age_seconds", 0, 10) + within(s, "producer_spooling", 0, 0) + within(s, "producer_dropped_total", 0, 0)
		lacks += within(s, "source_up", 1, 1) + within(s, "log_up", 1, 1) + within(s, "clickhouse_up", 1, 1) + within(s, "ready", 1, 1)
		lacks += within(s, "clickhouse_memory_bytes", 1<<20, 8<<30) + within(s, "table_rows", 1, 1e9) + within(s, "limit_replicas", 1, 1)
		lacks += within(s, "undecodable_records_total", 0, 0)
		// A busy machine loses a connection or repeats an insert, and counts it: that never goes back to 0.
		lacks += within(s, "venue_missed_messages_total", 0, 1e6) + within(s, "sink_retries_total", 0, 1e6)
		return lacks
	})
	ages := s.samples("marketlog_price_age_seconds")
	if !(ages["newest"] <= ages["median"] && ages["median"] <= ages["p95"] && ages["p95"] <= ages["oldest"] && ages["newest"] < 10) {
		t.Errorf("the ages of prices are %v, want them in order and the newest within 10 s", ages)
	}
	if fresh := s.value("marketlog_prices", "fresh"); fresh < 100 {
		t.Errorf("%v prices are fresh, want 100 at least", fresh)
	}
	// A fold is nowhere beyond the end of what it reads, and the log keeps to its bounds.
	ends := s.samples("marketlog_log_records_total")
	for id, offset := range s.samples("marketlog_fold_offset") {
		if _, topic, _ := strings.Cut(id, " "); offset > 1.01*ends[topic]+1000 {
			t.Errorf("%s is at %v, and its topic ends at %v", id, offset, ends[topic])
		}
	}
	for topic, limit := range s.samples("marketlog_log_limit_bytes") {
		if size := s.value("marketlog_log_bytes", topic); size < 0 || size > 1.5*limit {
			t.Errorf("%s takes %v bytes, its bound is %v", topic, size, limit)
		}
	}
}

// docs/metrics.md lists what a demo measures, with its help; -update writes it.
func TestTheDocumentOfMetricsIsUpToDate(t *testing.T) {
	d := filledDemo(t)
	d.measured(t, func(s *scrape) string { // the last that appears
		if len(s.samples("marketlog_fold_log_timestamp_seconds")) < 7 {
			return "not every fold has folded anything"
		}
		if len(s.samples("marketlog_log_bytes")) == 0 {
			return "the topics have not been measured"
		}
		return ""
	})
	s := d.scrape(t)
	path := filepath.Join("..", "..", "docs", "metrics.md")
	want := metricsDocument(s.families)
	if *querytest.Update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("docs/metrics.md is not what the demo measures; `go test ./deploy/e2e -run TestTheDocumentOfMetrics -update` writes it:\n%s", want)
	}
}

const metricsDocumentBegins = `# Metrics

Written from what a running instance measures; a test holds them together, and lints them as ` + "`promtool check metrics`" + ` does.

Each process serves ` + "`/metrics`" + ` on ` + "`metrics_listen`" + `, beside ` + "`/healthz` and `/readyz`" + `, without a key: keep the address to those who
operate it. ` + "`marketlog run`" + ` has all families, a role apart those of its work. What shows all replicas alike (the log, the tables) each
of them measures: take ` + "`max by (topic)`" + ` of it, and ` + "`sum`" + ` of what each does for itself. ` + "`deploy/prometheus`" + ` has alerts, which
` + "[alerts.md](alerts.md) explains, `deploy/grafana`" + ` has dashboards.

The labels are bounded: ` + "`venue` and `source`" + ` by the lists in [sources.md](sources.md), ` + "`topic` and `table`" + ` by the schemas, ` + "`fold`, `role`, `part` and `name`" + ` (of a job) by
the program, ` + "`reason`, `state`, `of` and `outcome`" + ` by the lists named in the text, ` + "`operation`" + ` by the interface. No label holds a coin, a market or a
key: those are in the SQL views. A demo has some 1,300 series.

To see it: Prometheus with ` + "`deploy/prometheus/prometheus.yaml`" + `, and Grafana with ` + "`deploy/grafana/provisioning` as `/etc/grafana/provisioning`" + `,
` + "`deploy/grafana/dashboards` as `/etc/grafana/dashboards`, the plugin `grafana-clickhouse-datasource`" + ` and the variables
` + "`PROMETHEUS_URL` and `MARKETLOG_SQL_HOST`" + `. Start Marketlog with ` + "`--metrics-listen 127.0.0.1:9100`" + `; its default is any free port.

Ages and lags are by the clock that the feeds live in, which an accelerated simulator winds up; timestamps are of log time. A lag in
seconds is 0 where nothing is left to read, so a topic in which nothing happens is not behind.

Measured only once there is something to measure, and so not in the list: ` + "`marketlog_part_waiting{part}`" + `, 1 for each part that ` + "`/readyz`" + ` waits
for; ` + "`marketlog_backfill_calls_total`, `_failed_calls_total`, `_candles_total` and `_values_total{source}`" + `, what back-fills did;
` + "`marketlog_replay_compared_keys`, `_differing_keys` and `_end_timestamp_seconds{view}`" + `, of the last replay of a view;
` + "`marketlog_stream_closed_total{code}`, streams that the server closed; `marketlog_sql_statements_total{outcome}`;" + `
` + "`marketlog_archive_bytes`, `_segments` and `_newest_timestamp_seconds{topic}`" + `, once a segment is archived;
` + "`marketlog_lake_newest_day_timestamp_seconds`, `_due_days`, `_failing`, `_failures_total` and `_bytes_total{dataset}`, where `lake.dir`" + ` is set.

`

func metricsDocument(families map[string]*dto.MetricFamily) string {
	text := &strings.Builder{}
	text.WriteString(metricsDocumentBegins)
	text.WriteString("| Metric | Type | Labels | Meaning |\n|---|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(families)) {
		family := families[name]
		if !strings.HasPrefix(name, "marketlog_") || !slices.ContainsFunc(slices.Concat(slices.Collect(maps.Values(promisedMetrics))...), func(p string) bool { return "marketlog_"+p == name }) {
			continue // what comes only with some requests is no part of a page that a test compares
		}
		labels := map[string]bool{}
		for _, m := range family.Metric {
			for _, label := range m.Label {
				labels["`"+label.GetName()+"`"] = true
			}
		}
		fmt.Fprintf(text, "| `%s` | %s | %s | %s |\n", name, strings.ToLower(family.GetType().String()), strings.Join(slices.Sorted(maps.Keys(labels)), ", "), family.GetHelp())
	}
	return text.String()
}
