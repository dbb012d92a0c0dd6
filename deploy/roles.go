package deploy

import (
	"context"
	"net/http"
	"slices"

	"github.com/marketlog/marketlog/stream/history"
)

// What each role of an instance runs, and which verbs it answers, is listed here and nowhere else.

// ports are the addresses of an instance, opened; nil where it does not serve.
type ports struct {
	api                  *front
	metrics, sql, engine *port
}

// close closes what nobody came to serve on.
func (at ports) close() {
	for _, p := range []*port{at.api.address(), at.metrics, at.sql, at.engine} {
		if p != nil {
			p.close()
		}
	}
}

// migrate brings the tables to the state that this binary expects, and tells what it made.
func migrate(ctx context.Context, in *Instance) ([]history.Migration, error) {
	store, err := in.History(ctx)
	if err != nil {
		return nil, err
	}
	made, err := store.Migrate(ctx)
	for _, m := range made {
		in.Log.Info("migrated", "version", m.Version, "name", m.Name)
	}
	return made, err
}

// instanceVerbs are what commands can ask of an instance.
func instanceVerbs(in *Instance) Verbs {
	if in.Stream.Brokers == nil { // an engine alone
		return NewVerbs()
	}
	return NewVerbs(append(slices.Concat(keyVerbs(in), backfillVerbs(in), sourceVerbs(in), symbolVerbs(in)), replayVerb(in), rebuildVerb(in), tablesVerb(in), retryVerb(in), migrateVerb(in), simFaultsVerb(in), earnVerb(in))...)
}

// metricsRole serves the health of all others.
func metricsRole(in *Instance, at *port, health *Health) Role {
	var handler http.Handler = healthHandler(health, func() map[string][]string { return in.missing(health) }, in.Metrics)
	return Role{Name: "metrics", Run: func(ctx context.Context) error { return at.serveHTTP(ctx, handler) }}
}
