package admin

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/producers/backfill"
)

// JobMetrics measures long work: replays, back-fills, rebuilds. Its labels are bounded: name by the long verbs, source by the
// venues and sources that can be back-filled, view by those that can be replayed.
type JobMetrics struct {
	running, progress *prometheus.GaugeVec
	ends              *prometheus.CounterVec

	calls, failed, candles, values *prometheus.CounterVec

	compared, differing, verified *prometheus.GaugeVec
}

// Outcomes of a job.
const (
	outcomeDone      = "done"
	outcomeFailed    = "failed"
	outcomeCancelled = "cancelled"
)

// NewJobMetrics registers what is measured of long work.
func NewJobMetrics(registry prometheus.Registerer) *JobMetrics {
	gauge := func(name, help, label string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "marketlog_" + name, Help: help}, []string{label})
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "marketlog_" + name, Help: help}, labels)
	}
	m := &JobMetrics{
		running:   gauge("job_running", "Whether a long job runs.", "name"),
		progress:  gauge("job_progress_ratio", "How much of its known work a running or the last job has done, 0 to 1.", "name"),
		ends:      counter("job_ends_total", "Jobs that ended, by outcome: done, failed or cancelled.", "name", "outcome"),
		calls:     counter("backfill_calls_total", "Requests of back-fills that have ended.", "source"),
		failed:    counter("backfill_failed_calls_total", "Requests of back-fills that brought nothing.", "source"),
		candles:   counter("backfill_candles_total", "Candles written by back-fills.", "source"),
		values:    counter("backfill_values_total", "Values of polled sources written by back-fills.", "source"),
		compared:  gauge("replay_compared_keys", "Keys that the last replay of a view compared.", "view"),
		differing: gauge("replay_differing_keys", "Keys under which the last replay of a view found other rows than the live ones.", "view"),
		verified:  gauge("replay_end_timestamp_seconds", "When the last replay of a view ended, Unix seconds.", "view"),
	}
	registry.MustRegister(m.running, m.progress, m.ends, m.calls, m.failed, m.candles, m.values, m.compared, m.differing, m.verified)
	return m
}

// Measured are the same verbs; the long ones are measured while they run.
func (m *JobMetrics) Measured(verbs Verbs) Verbs {
	for name, v := range verbs {
		if !v.Long {
			continue
		}
		m.running.WithLabelValues(name).Set(0)
		m.progress.WithLabelValues(name).Set(0)
		for _, outcome := range []string{outcomeDone, outcomeFailed, outcomeCancelled} {
			m.ends.WithLabelValues(name, outcome)
		}
		run := v.Run
		v.Run = func(ctx context.Context, input json.RawMessage, emit func(any) error) error {
			w := &watchedJob{metrics: m, name: name, steps: map[string]step{}}
			m.running.WithLabelValues(name).Set(1)
			defer m.running.WithLabelValues(name).Set(0)
			m.progress.WithLabelValues(name).Set(0)
			err := run(ctx, input, func(line any) error {
				w.take(line)
				return emit(line)
			})
			switch {
			case err == nil:
				m.progress.WithLabelValues(name).Set(1)
				m.ends.WithLabelValues(name, outcomeDone).Inc()
			case ctx.Err() != nil:
				m.ends.WithLabelValues(name, outcomeCancelled).Inc()
			default:
				m.ends.WithLabelValues(name, outcomeFailed).Inc()
			}
			return err
		}
		verbs[name] = v
	}
	return verbs
}

// watchedJob follows the progress lines of one run of a job. Its lines may come from several goroutines.
type watchedJob struct {
	metrics *JobMetrics
	name    string

	mu    sync.Mutex
	steps map[string]step // those reported so far: a view has some tens, a back-fill one a source
}

type step struct{ done, total int64 }

func (w *watchedJob) take(line any) {
	switch l := line.(type) {
	case *processors.ReplayProgress:
		w.advance(l.Step, step{l.Done, l.Total})
	case backfill.Progress:
		w.advance(l.Step, step{l.Done, l.Total})
	case backfill.Result:
		w.metrics.calls.WithLabelValues(l.Source).Add(float64(l.Calls))
		w.metrics.failed.WithLabelValues(l.Source).Add(float64(l.Failed))
		w.metrics.candles.WithLabelValues(l.Source).Add(float64(l.Candles))
		w.metrics.values.WithLabelValues(l.Source).Add(float64(l.Values))
	case processors.ReplayResult:
		w.metrics.compared.WithLabelValues(l.View).Set(float64(l.Compared))
		w.metrics.differing.WithLabelValues(l.View).Set(float64(l.Differing))
		w.metrics.verified.WithLabelValues(l.View).Set(float64(time.Now().Unix()))
	}
}

func (w *watchedJob) advance(name string, s step) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.steps[name] = s
	var done, total int64
	for _, s := range w.steps {
		done, total = done+s.done, total+s.total
	}
	if total > 0 {
		w.metrics.progress.WithLabelValues(w.name).Set(min(1, float64(done)/float64(total)))
	}
}
