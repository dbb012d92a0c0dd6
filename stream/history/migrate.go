package history

import (
	"context"
	"errors"
	"fmt"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"

	"github.com/marketlog/marketlog/schemas/tables"
	"github.com/marketlog/marketlog/stream/faults"
)

// Migration is one step that Migrate made.
type Migration struct {
	Version int64
	Name    string
}

// NewerError means that the tables were migrated by a newer version of the program. Nothing was changed.
type NewerError struct {
	Database string
	// Found is the migration that the tables have, Known the last that this version knows.
	Found, Known int64
}

func (e *NewerError) Error() string {
	return fmt.Sprintf("the tables of database %s are at migration %d, and this version knows migrations to %d only: a newer version wrote them. "+
		"Run that version or a later one, or restore a backup that was made before the upgrade", e.Database, e.Found, e.Known)
}

// Migrate brings the tables to the version this binary knows, and the analysts' views with them. A
// migration that was interrupted is made again: every step can be. Of tables that a newer version has
// migrated it changes nothing: a *NewerError reports it.
func (s *Store) Migrate(ctx context.Context) ([]Migration, error) {
	db := clickhouse.OpenDB(s.cfg.options(s.cfg.Database))
	defer db.Close()
	versions, err := database.NewStore(database.DialectClickHouse, goose.DefaultTablename)
	if err != nil {
		return nil, fmt.Errorf("naming the table of versions: %w", err)
	}
	provider, err := goose.NewProvider(goose.DialectCustom, db, tables.Files, goose.WithStore(versionStore{versions}))
	if err != nil {
		return nil, fmt.Errorf("reading migrations: %w", err)
	}
	sources := provider.ListSources()
	known := sources[len(sources)-1].Version
	switch found, err := provider.GetDBVersion(ctx); {
	case err != nil:
		return nil, fmt.Errorf("reading the version of the tables: %w", Unavailable(err))
	case found > known:
		return nil, &NewerError{Database: s.cfg.Database, Found: found, Known: known}
	}
	// All in one pass: one step at a time, goose asks for all versions again before each, which took longer than the steps.
	steps, err := provider.Up(ctx)
	var partial *goose.PartialError
	if errors.As(err, &partial) {
		steps = partial.Applied
	}
	var made []Migration
	for _, step := range steps {
		made = append(made, Migration{Version: step.Source.Version, Name: step.Source.Path})
	}
	if err != nil {
		return made, fmt.Errorf("migrating: %w", Unavailable(err))
	}
	if err := s.repartition(ctx); err != nil {
		return made, err
	}
	return made, s.createViews(ctx)
}

// versionStore is the table of versions, in which a test of crashes ends the process between two.
type versionStore struct{ database.Store }

func (v versionStore) Insert(ctx context.Context, db database.DBTxConn, request database.InsertRequest) error {
	err := v.Store.Insert(ctx, db, request)
	if err == nil {
		faults.Hit("migrate.step")
	}
	return err
}
