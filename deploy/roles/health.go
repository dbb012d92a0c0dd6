package roles

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/marketlog/marketlog/deploy/instance"
	"github.com/marketlog/marketlog/deploy/supervise"
)

// healthHandler serves what operators watch: /healthz at once, /readyz with 200 once nothing is missing, both with the
// state of each role, and /metrics.
func healthHandler(health *supervise.Health, missing func() map[string][]string, metrics prometheus.Gatherer) http.Handler {
	answer := func(w http.ResponseWriter, status int, missing map[string][]string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		body := map[string]any{"roles": health.Report()}
		if len(missing) > 0 {
			body["missing"] = missing
		}
		_ = json.NewEncoder(w).Encode(body)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, nil)
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		status, missing := http.StatusOK, missing()
		if len(missing) > 0 {
			status = http.StatusServiceUnavailable
		}
		answer(w, status, missing)
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}))
	return mux
}

const (
	arrival = 10 * time.Second
	// idle is how long a connection may be silent between two requests.
	idle = time.Minute
)

// metricsRole serves the health of all others.
func metricsRole(in *instance.Instance, at *port, health *supervise.Health) supervise.Role {
	var handler http.Handler = healthHandler(health, func() map[string][]string { return in.Missing(health) }, in.Metrics)
	return supervise.Role{Name: "metrics", Run: func(ctx context.Context) error { return at.serveHTTP(ctx, handler) }}
}
