package metrics

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/marketlog/marketlog/deploy/admin"
	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/producers/backfill"
	"github.com/marketlog/marketlog/stream"
)

// gathered are the values of a registry, by name and label values in the order of the label names.
func gathered(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, family := range families {
		for _, m := range family.Metric {
			key := []string{family.GetName()}
			for _, label := range m.Label {
				key = append(key, label.GetValue())
			}
			values[strings.Join(key, " ")] = m.Counter.GetValue() + m.Gauge.GetValue()
		}
	}
	return values
}

// The lag of a fold or sink is what comes after its position, and as old as the newest that it has read; one that has
// read all is not behind, however old that is.
func TestLagIsOfThePartitionThatIsFurthestBehind(t *testing.T) {
	began := time.Unix(1_000, 0)
	now := began.Add(time.Hour)
	at := func(ago time.Duration) int64 { return now.Add(-ago).UnixNano() }
	l := &Log{Began: began, Now: func() time.Time { return now }, Positions: func() []processors.Position {
		return []processors.Position{
			{Fold: "prices", Topic: "ticks.v1", Partition: 0, Next: 90, Read: at(3 * time.Second), Folded: at(4 * time.Second)},
			{Fold: "prices", Topic: "ticks.v1", Partition: 1, Next: 70, Read: at(9 * time.Second), Folded: at(10 * time.Second)},
			{Fold: "prices", Topic: "ticks.v1", Partition: 2, Next: 100, Read: at(time.Minute), Folded: at(time.Second)},
			{Fold: "markets", Topic: "candles.v1", Partition: 0, Next: 5}, // nothing read yet
			{Topic: "ticks.v1", Partition: 0, Next: 100, Read: at(time.Minute)},
			{Topic: "ticks.v1", Partition: 1, Next: 101, Read: at(time.Second)}, // read on since the ends were listed
		}
	}}
	ends := stream.Offsets{"ticks.v1": {0: 100, 1: 100, 2: 100}, "candles.v1": {0: 8}}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collected(func(out chan<- prometheus.Metric) {
		l.lags(ends, func(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
			out <- prometheus.MustNewConstMetric(d, kind, v, labels...)
		})
	}))
	want := map[string]float64{
		"marketlog_fold_offset prices ticks.v1": 260, "marketlog_fold_lag_records prices ticks.v1": 40, "marketlog_fold_lag_seconds prices ticks.v1": 9,
		"marketlog_fold_log_timestamp_seconds prices": float64(now.Unix() - 10),
		"marketlog_fold_offset markets candles.v1":    5, "marketlog_fold_lag_records markets candles.v1": 3,
		"marketlog_fold_lag_seconds markets candles.v1": 3600,
		"marketlog_sink_offset ticks.v1":                201, "marketlog_sink_lag_records ticks.v1": 0, "marketlog_sink_lag_seconds ticks.v1": 0,
	}
	if got := gathered(t, registry); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// collected is a collector without descriptions.
type collected func(chan<- prometheus.Metric)

func (c collected) Describe(chan<- *prometheus.Desc)     {}
func (c collected) Collect(out chan<- prometheus.Metric) { c(out) }

// A job is measured while it runs and when it has ended, whichever way.
func TestJobsAreMeasured(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := admin.NewJobMetrics(registry)
	var during map[string]float64
	ctx, cancel := context.WithCancel(t.Context())
	run := func(ctx context.Context, input json.RawMessage, emit func(any) error) error {
		lines := []any{
			&processors.ReplayProgress{Step: "folding", Done: 50, Total: 100},
			&processors.ReplayProgress{Step: "comparing", Done: 25, Total: 200},
			backfill.Result{Source: "kraken", Calls: 7, Failed: 2, Candles: 600},
			processors.ReplayResult{View: "prices", Compared: 900, Differing: 4},
		}
		for _, line := range lines {
			if err := emit(line); err != nil {
				return err
			}
		}
		during = gathered(t, registry)
		switch string(input) {
		case `"fails"`:
			return errors.New("no")
		case `"cancelled"`:
			cancel()
			return ctx.Err()
		}
		return nil
	}
	verbs := m.Measured(admin.NewVerbs(admin.Command{Name: "replay", Long: true, Run: run}, admin.Command{Name: "keys.list", Run: run}))
	var lines []any
	for _, input := range []string{`"ends"`, `"ends"`, `"fails"`, `"cancelled"`} {
		err := verbs["replay"].Run(ctx, json.RawMessage(input), func(line any) error { lines = append(lines, line); return nil })
		if (err == nil) != (input == `"ends"`) {
			t.Errorf("%s: %v", input, err)
		}
		if during["marketlog_job_running replay"] != 1 || during["marketlog_job_progress_ratio replay"] != 0.25 {
			t.Errorf("while it ran it was measured as %v, want running and a quarter done", during)
		}
	}
	if len(lines) != 16 {
		t.Errorf("%d lines were handed on, want all 16", len(lines))
	}
	got := gathered(t, registry)
	for name, want := range map[string]float64{
		"marketlog_job_running replay": 0, "marketlog_job_ends_total replay done": 2, "marketlog_job_ends_total replay failed": 1,
		"marketlog_job_ends_total replay cancelled": 1, "marketlog_backfill_calls_total kraken": 28, "marketlog_backfill_failed_calls_total kraken": 8,
		"marketlog_backfill_candles_total kraken": 2400, "marketlog_replay_compared_keys prices": 900, "marketlog_replay_differing_keys prices": 4,
	} {
		if got[name] != want {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
	for name := range got {
		if strings.Contains(name, "keys.list") {
			t.Errorf("%s: a short verb is no job", name)
		}
	}
}

// What is measured of readiness is what /readyz reports.
func TestReadinessIsMeasured(t *testing.T) {
	missing := map[string][]string{"disk": {"full"}, "sink/prices.v1": {"waiting"}}
	registry := prometheus.NewRegistry()
	registry.MustRegister(Readiness(func() map[string][]string { return missing }))
	want := map[string]float64{"marketlog_ready": 0, "marketlog_part_waiting disk": 1, "marketlog_part_waiting sink/prices.v1": 1}
	if got := gathered(t, registry); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	clear(missing)
	if got := gathered(t, registry); !maps.Equal(got, map[string]float64{"marketlog_ready": 1}) {
		t.Errorf("got %v, want ready and nothing that is waited for", got)
	}
}

func TestTheBoundsOfTheLogAreThoseOfItsTopics(t *testing.T) {
	cfg := config.DefaultConfig()
	sum := int64(0)
	for _, limit := range cfg.LogLimits() {
		sum += limit
	}
	// Compacted topics have none.
	if whole := cfg.Retention.LogBytes; sum > whole || sum < whole*9/10 {
		t.Errorf("the topics' bounds are %d bytes together, want nearly the %d of retention.log_bytes", sum, whole)
	}
	cfg.Kafka.Brokers = []string{"kafka:9092"}
	if limits := cfg.LogLimits(); len(limits) > 0 {
		t.Errorf("a cluster has the bounds %v, want none", fmt.Sprint(limits))
	}
}
