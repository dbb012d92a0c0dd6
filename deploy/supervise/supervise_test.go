package supervise

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/marketlog/marketlog/deploy/deploytest"
)

func TestFailedRoleIsStartedAgainLaterEachTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		health := NewHealth(time.Now)
		ctx, cancel := context.WithCancel(t.Context())
		var starts []time.Time
		role := Role{Name: "median", Run: func(ctx context.Context) error {
			starts = append(starts, time.Now())
			if len(starts) < 5 {
				return errors.New("reading ticks: no broker")
			}
			<-ctx.Done()
			return ctx.Err()
		}}
		done := make(chan struct{})
		go func() { Run(ctx, role, health, deploytest.Quiet); close(done) }()

		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		if got := health.Report()[0]; got.State != "waiting" || got.Ready || got.Restarts != 1 || got.Error != "reading ticks: no broker" {
			t.Errorf("after the first failure: got %+v", got)
		}
		checkRoleMetrics(t, health, 1, 0)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if got := health.Report()[0]; got.State != "running" || !got.Ready || got.Restarts != 4 {
			t.Errorf("after the last start: got %+v", got)
		}
		checkRoleMetrics(t, health, 4, 1)
		if len(starts) != 5 || starts[4].Sub(starts[3]) <= starts[1].Sub(starts[0]) {
			t.Errorf("starts at %v, want five, further and further apart", starts)
		}
		cancel()
		<-done
		if got := health.Report()[0].State; got != "stopped" {
			t.Errorf("at the end: got %s, want stopped", got)
		}
	})
}

// checkRoleMetrics holds what is measured of the one role of a test against how often it was started again, and whether it runs.
func checkRoleMetrics(t *testing.T, health *Health, restarts, running int) {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(health)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		m := f.GetMetric()[0]
		got[f.GetName()+" "+m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
	}
	want := map[string]float64{"marketlog_role_restarts_total median": float64(restarts), "marketlog_role_running median": float64(running)}
	if !maps.Equal(got, want) {
		t.Errorf("got metrics %v, want %v", got, want)
	}
}

// What writes stops before what reads it, and each has the time that it needs within the limit.
func TestStagesStopInReverseOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var stopped []string
		role := func(name string, drain time.Duration) []Role {
			return []Role{{Name: name, Run: func(ctx context.Context) error {
				<-ctx.Done()
				time.Sleep(drain)
				mu.Lock()
				defer mu.Unlock()
				stopped = append(stopped, name)
				return nil
			}}}
		}
		run := func(drain time.Duration) error {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			stopped = nil
			return RunStages(ctx, []Stage{{"process", role("median", drain)}, {"query", role("rest", drain)}, {"produce", role("feeds", drain)}}, 8*time.Second, NewHealth(time.Now), deploytest.Quiet)
		}
		if err := run(2 * time.Second); err != nil {
			t.Error(err)
		}
		if want := []string{"feeds", "rest", "median"}; !slices.Equal(stopped, want) {
			t.Errorf("stopped %v, want %v", stopped, want)
		}
		began := time.Now()
		if err := run(5 * time.Second); err == nil || !strings.Contains(err.Error(), "query had not drained after 8s") {
			t.Errorf("too slow: got %v", err)
		}
		if took := time.Since(began); took != 9*time.Second {
			t.Errorf("too slow: took %v, want 1s and the limit", took)
		}
		time.Sleep(time.Minute) // the bubble waits for the stragglers
	})
}
