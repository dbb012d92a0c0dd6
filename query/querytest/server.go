// Package querytest lets the tests of endpoints read as their specification: a script sets up what was
// published, asks, and is followed by the answer.
package querytest

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/limits"
)

// Serve runs a server with the given endpoints, open to all and without limits, until the test ends. It
// returns where it listens. Now is the server's clock.
func Serve(t testing.TB, now func() time.Time, endpoints []query.Endpoint) (base string) {
	t.Helper()
	plans := limits.DefaultPlans()
	pro := plans[limits.PlanPro]
	pro.PerMinute, pro.PerMonth = 0, 0
	plans[limits.PlanPro] = pro
	return serve(t, now, endpoints, query.AuthOpen, plans)
}

// ServeFree is Serve for those who have no key: with the limits and the history of the plan Free.
func ServeFree(t testing.TB, now func() time.Time, endpoints []query.Endpoint) (base string) {
	t.Helper()
	return serve(t, now, endpoints, query.AuthOptional, limits.DefaultPlans())
}

func serve(t testing.TB, now func() time.Time, endpoints []query.Endpoint, auth query.AuthMode, plans map[string]limits.Plan) (base string) {
	t.Helper()
	cfg := query.DefaultConfig()
	cfg.Listen, cfg.Auth = "127.0.0.1:0", auth
	server, err := query.NewServer(cfg, query.Deps{
		Limiter: limits.NewLimiter(time.Now, nil), Plans: plans, Endpoints: endpoints,
		Now: now, Metrics: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler), Version: "test",
	})
	if err != nil {
		t.Fatalf("making the server: %v", err)
	}
	if err := server.Bind(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("running the server: %v", err)
		}
	})
	return "http://" + server.Addr()
}
