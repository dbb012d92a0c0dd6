package processors_test

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/processors/quotes"
	"github.com/marketlog/marketlog/schemas"
	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// sample is the value of a metric, or the count of a histogram, with these label values in the order of the label names.
func sample(t testing.TB, registry *prometheus.Registry, name string, labels ...string) float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.Metric {
			var values []string
			for _, label := range m.Label {
				values = append(values, label.GetValue())
			}
			if family.GetName() != name || strings.Join(values, " ") != strings.Join(labels, " ") {
				continue
			}
			if m.Histogram != nil {
				return float64(m.Histogram.GetSampleCount())
			}
			return m.Counter.GetValue() + m.Gauge.GetValue()
		}
	}
	return 0
}

func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not after a minute: %s", what)
		}
	}
}

// What a sink is measured by is what it did: rows, calls repeated while the store was away, letters, values, and where it
// is. It has no position in what it gave back.
func TestASinkIsMeasured(t *testing.T) {
	log, producer := newLog(t)
	store, way := newStore(t)
	s := newScript(t, schemas.TopicPrices, producer)
	s.somePrices(rand.New(rand.NewPCG(2, 2)), 400)
	s.raw(3, []byte("\xff not ours"))
	s.raw(3, []byte("\xff not ours either"))
	s.flush()
	var refusals atomic.Int32
	refuse := func(r *http.Request) error {
		if statement := r.URL.Query().Get("query"); strings.HasPrefix(statement, "INSERT") && refusals.Add(1) <= 2 {
			return errors.New("the store is away")
		}
		return nil
	}
	way.before.Store(&refuse)
	registry := prometheus.NewRegistry()
	metrics := processors.NewMetrics(registry)
	stop := start(t, &processors.Sink{
		Topic: s.topic, Log: log, History: store, Latest: embeddedCache(t), Logger: slog.New(slog.DiscardHandler), Metrics: metrics,
	})
	s.settled(store)
	eventually(t, "the positions are those of the ledger", func() bool {
		positions := metrics.Positions()
		for _, p := range positions {
			if p.Fold != "" || p.Topic != s.topic || p.Next != s.offsets[p.Partition] || p.Next > 0 && p.Read != noon {
				return false
			}
		}
		return len(positions) == 8
	})
	if rows := sample(t, registry, "marketlog_sink_rows_total", s.topic); rows < float64(s.expected.Len()) {
		t.Errorf("got %v rows, want at least the %d of the script", rows, s.expected.Len())
	}
	if n := sample(t, registry, "marketlog_sink_retries_total", s.topic); n != 2 {
		t.Errorf("got %v repeated calls, want 2: the store refused as often", n)
	}
	if n := sample(t, registry, "marketlog_sink_insert_duration_seconds", s.topic); n == 0 || n != sample(t, registry, "marketlog_sink_batch_rows", s.topic) {
		t.Errorf("%v inserts took their time, want as many as there were batches", n)
	}
	if n := sample(t, registry, "marketlog_dead_letters_total", string(schemas.Undecodable), s.topic); n < 2 {
		t.Errorf("got %v dead letters, want at least the two that were written last", n)
	}
	if n := sample(t, registry, "marketlog_cache_values_total"); n < float64(len(s.prices)) {
		t.Errorf("got %v values of the cache, want at least the %d coins", n, len(s.prices))
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if left := metrics.Positions(); len(left) != 0 {
		t.Errorf("the sink has ended and is at %v", left)
	}
}

// Folds of partitions and of seconds are measured: what they read and wrote, in how many batches, and up to which time.
func TestFoldsAreMeasured(t *testing.T) {
	b := openBroker(t.Context(), t, stream.Config{Brokers: []string{streamtest.Kfake(t)}, ClientID: "test"})
	total, newest := 0, time.Time{}
	for _, input := range rawLog(calmScenario(60)) {
		for _, rec := range input {
			at := secondsBegin.Add(time.Duration(rec.Offset) * time.Millisecond)
			b.producer.Produce(t.Context(), &kgo.Record{Topic: rec.Topic, Partition: rec.Partition, Value: rec.Value, Timestamp: at}, func(_ *kgo.Record, err error) {
				if err != nil {
					t.Error(err)
				}
			})
			newest = later(newest, at)
		}
		total += len(input)
	}
	if err := b.producer.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	metrics := processors.NewMetrics(registry)
	seconds := quotes.Seconds(schemas.Coins(), nil, nil, quotes.NewFixings())
	seconds.Log, seconds.Logger, seconds.Metrics = b.cfg, slog.New(slog.DiscardHandler), metrics
	runner := &processors.Runner{Unit: resolveUnit(), Log: b.cfg, Logger: slog.New(slog.DiscardHandler), Metrics: metrics}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	go func() { ended <- seconds.Run(ctx) }()
	go func() { ended <- runner.Run(ctx) }()
	folds := []string{runner.Unit.Name, seconds.Name}
	for _, fold := range folds {
		eventually(t, fold+" has read all", func() bool {
			return sample(t, registry, "marketlog_fold_records_total", fold, schemas.TopicTicksRaw) == float64(total)
		})
		eventually(t, fold+" has written something, in batches that took their time", func() bool {
			return sample(t, registry, "marketlog_fold_outputs_total", fold) > 0 && sample(t, registry, "marketlog_fold_batch_records", fold) > 0 &&
				sample(t, registry, "marketlog_fold_batch_duration_seconds", fold) > 0
		})
	}
	next, read := map[string]int64{}, map[string]time.Time{}
	for _, p := range metrics.Positions() {
		next[p.Fold] += p.Next
		read[p.Fold] = later(read[p.Fold], time.Unix(0, p.Read))
		if p.Folded == 0 {
			t.Errorf("%s has folded up to no time in partition %d", p.Fold, p.Partition)
		}
	}
	for _, fold := range folds {
		if next[fold] != int64(total) || !read[fold].Equal(newest) {
			t.Errorf("%s is at %d offsets and %s, want %d and %s", fold, next[fold], read[fold], total, newest)
		}
	}
	cancel()
	for range folds {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if left := metrics.Positions(); len(left) != 0 {
		t.Errorf("the folds have ended and are at %v", left)
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
