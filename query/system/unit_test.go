package system

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// process is one that measures two venues, a source, a fold and a table.
type process struct {
	events, connected, age *prometheus.GaugeVec
	registry               *prometheus.Registry
}

func newProcess() *process {
	p := &process{registry: prometheus.NewRegistry()}
	gauge := func(name string, labels ...string) *prometheus.GaugeVec {
		g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "marketlog_" + name}, labels)
		p.registry.MustRegister(g)
		return g
	}
	p.events, p.connected, p.age = gauge("venue_events_total", "venue"), gauge("venue_connections", "venue"), gauge("venue_last_event_age_seconds", "venue")
	gauge("venue_refused_total", "venue", "reason").WithLabelValues("kraken", "unreadable").Set(3)
	gauge("venue_gaps_total", "venue", "reason").WithLabelValues("kraken", "silence").Set(0)
	gauge("source_up", "source").WithLabelValues("ecb").Set(1)
	gauge("source_requests_total", "source").WithLabelValues("ecb").Set(5)
	gauge("fold_lag_seconds", "fold", "topic").WithLabelValues("resolve", "ticks.raw.v1").Set(0.25)
	gauge("fold_lag_seconds_other", "fold").WithLabelValues("x").Set(1)
	gauge("sink_lag_records", "topic").WithLabelValues("prices.v1").Set(12)
	return p
}

func (p *process) venue(slug string, connections, age, events float64) {
	p.connected.WithLabelValues(slug).Set(connections)
	p.age.WithLabelValues(slug).Set(age)
	p.events.WithLabelValues(slug).Set(events)
}

// What is answered is what was measured, and a rate needs two measurements that are far enough apart.
func TestStateIsWhatTheProcessMeasures(t *testing.T) {
	p := newProcess()
	u := New(p.registry, true)
	start := time.Unix(1_700_000_000, 0)
	for _, step := range []struct {
		after                    time.Duration
		connections, age, events float64
		state                    string
		rate                     float64 // -1: none
	}{
		{0, 2, 0.1, 1000, stateUp, -1},
		{500 * time.Millisecond, 0, 0.1, 1500, stateUp, -1}, // the same answer again
		{2 * time.Second, 2, 0.1, 1200, stateUp, -1},
		{5 * time.Second, 2, 0.1, 1500, stateUp, 100},
		{10 * time.Second, 2, 121, 1500, stateQuiet, 0},
		{15 * time.Second, 0, 126, 1500, stateDown, 0},
		{16 * time.Second, 1, 0, 10, stateUp, -1}, // begun again
		{5 * time.Minute, 1, 0, 9000, stateUp, -1},
	} {
		p.venue("kraken", step.connections, step.age, step.events)
		got, _, err := u.read(start.Add(step.after))
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Venues) != 1 || got.Venues[0].State != step.state {
			t.Fatalf("after %s: got %+v, want %s", step.after, got.Venues, step.state)
		}
		switch rate := got.Venues[0].EventsPerSecond; {
		case rate == nil && step.rate >= 0, rate != nil && *rate != step.rate:
			t.Errorf("after %s: got a rate of %v, want %v", step.after, rate, step.rate)
		}
		v := got.Venues[0]
		if v.Refused["unreadable"] != 3 || len(v.Gaps) != 0 {
			t.Errorf("after %s: got refused %v and gaps %v", step.after, v.Refused, v.Gaps)
		}
		if len(got.Sources) != 1 || got.Sources[0].State != stateUp || got.Sources[0].Requests != 5 {
			t.Errorf("after %s: got sources %+v", step.after, got.Sources)
		}
		if len(got.Path) != 2 || got.Path[0] != (Stage{"fold", "resolve", "ticks.raw.v1", 0.25, 0}) || got.Path[1] != (Stage{"table", "prices.v1", "prices.v1", 0, 12}) {
			t.Errorf("after %s: got path %+v", step.after, got.Path)
		}
	}
}
