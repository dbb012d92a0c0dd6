package sqlport

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	starts, ends prometheus.Counter
	statements   *prometheus.CounterVec
}

func newMetrics(registry prometheus.Registerer, s *slots) *metrics {
	m := &metrics{
		starts: prometheus.NewCounter(prometheus.CounterOpts{Name: "marketlog_sql_process_starts_total", Help: "Starts of the process that runs analysts' SQL."}),
		ends: prometheus.NewCounter(prometheus.CounterOpts{Name: "marketlog_sql_process_crashes_total",
			Help: "How often the process that runs analysts' SQL ended by itself, or was killed since a statement did not end in its time; the statements it ran were answered with 503."}),
		statements: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "marketlog_sql_statements_total", Help: "Analysts' statements by outcome."}, []string{"outcome"}),
	}
	if registry != nil {
		registry.MustRegister(m.starts, m.ends, m.statements,
			prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "marketlog_sql_statements_running", Help: "Analysts' statements that run."}, func() float64 { return float64(s.count()) }),
			prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "marketlog_sql_statements_stalled_total", Help: "Statements that were ended since their client took nothing while others waited."},
				func() float64 { return float64(s.stalled()) }))
	}
	return m
}

func (s *slots) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.running)
}

func (s *slots) stalled() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.evicted
}

func (s *slots) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.running)+len(s.waiting) == 0
}
