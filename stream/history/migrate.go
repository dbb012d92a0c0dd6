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

// Migrate brings the tables to the version this binary knows, and the analysts' views with them. A
// migration that was interrupted is made again: every step can be.
func (s *Store) Migrate(ctx context.Context) ([]Migration, error) {
	db := clickhouse.OpenDB(s.cfg.options(s.cfg.Database))
	defer db.Close()
	provider, err := goose.NewProvider(database.DialectClickHouse, db, tables.Files)
	if err != nil {
		return nil, fmt.Errorf("reading migrations: %w", err)
	}
	var made []Migration
	for {
		step, err := provider.UpByOne(ctx)
		if err != nil {
			if errors.Is(err, goose.ErrNoNextVersion) {
				break
			}
			return made, fmt.Errorf("migrating: %w", unavailable(err))
		}
		made = append(made, Migration{Version: step.Source.Version, Name: step.Source.Path})
		faults.Hit("migrate.step")
	}
	return made, s.createViews(ctx)
}
