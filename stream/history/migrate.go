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

// NewerError says that the tables were migrated by a newer version of the program. Nothing was changed.
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
// migrated it changes nothing: a *NewerError says so.
func (s *Store) Migrate(ctx context.Context) ([]Migration, error) {
	db := clickhouse.OpenDB(s.cfg.options(s.cfg.Database))
	defer db.Close()
	provider, err := goose.NewProvider(database.DialectClickHouse, db, tables.Files)
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
	var made []Migration
	for {
		step, err := provider.UpByOne(ctx)
		if err != nil {
			if errors.Is(err, goose.ErrNoNextVersion) {
				break
			}
			return made, fmt.Errorf("migrating: %w", Unavailable(err))
		}
		made = append(made, Migration{Version: step.Source.Version, Name: step.Source.Path})
		faults.Hit("migrate.step")
	}
	return made, s.createViews(ctx)
}
