package operations

import (
	"context"
	"encoding/json"

	"github.com/marketlog/marketlog/deploy/admin"
	"github.com/marketlog/marketlog/deploy/instance"
	"github.com/marketlog/marketlog/stream/history"
)

// MigrationLine is one migration as `marketlog migrate` prints it.
type MigrationLine struct {
	Version int64  `json:"version"`
	Name    string `json:"name"`
}

// migrateVerb creates missing topics and brings the tables up to date. Roles do so when they start; on a cluster it can
// be done before.
func migrateVerb(in *instance.Instance) admin.Command {
	return admin.Command{Name: "migrate", Run: func(ctx context.Context, _ json.RawMessage, emit func(any) error) error {
		made, err := Migrate(ctx, in)
		for _, m := range made {
			if err := emit(MigrationLine(m)); err != nil {
				return err
			}
		}
		return err
	}}
}

// Migrate brings the tables to the state that this binary expects, and returns what it made.
func Migrate(ctx context.Context, in *instance.Instance) ([]history.Migration, error) {
	store, err := in.History(ctx)
	if err != nil {
		return nil, err
	}
	made, err := store.Migrate(ctx)
	for _, m := range made {
		in.Log.Debug("table migrated", "version", m.Version, "name", m.Name)
	}
	if len(made) > 0 {
		in.Log.Info("tables migrated", "migrations", len(made), "version", made[len(made)-1].Version)
	}
	return made, err
}
