package roles

import (
	"context"
	"net/http"

	"github.com/marketlog/marketlog/deploy/instance"
	"github.com/marketlog/marketlog/deploy/supervise"
)

// What each role of an instance runs, and which verbs it answers, is listed here and nowhere else.

// metricsRole serves the health of all others.
func metricsRole(in *instance.Instance, at *port, health *supervise.Health) supervise.Role {
	var handler http.Handler = healthHandler(health, func() map[string][]string { return in.Missing(health) }, in.Metrics)
	return supervise.Role{Name: "metrics", Run: func(ctx context.Context) error { return at.serveHTTP(ctx, handler) }}
}
