package history

import (
	"context"
	"fmt"
	"io/fs"
	"strings"

	"github.com/marketlog/marketlog/schemas/tables"
)

// createViews makes all views anew. Those of analysts live in the default database, so that a plain
// client finds them without naming one.
func (s *Store) createViews(ctx context.Context) error {
	names, err := fs.Glob(tables.Views, "views/*.sql")
	if err != nil {
		return fmt.Errorf("listing views: %w", err)
	}
	for _, name := range names {
		statement, err := tables.Views.ReadFile(name)
		if err != nil {
			return fmt.Errorf("reading %s: %w", name, err)
		}
		if err := s.conn.Exec(ctx, strings.ReplaceAll(string(statement), "{database}", s.cfg.Database)); err != nil {
			return fmt.Errorf("creating view %s: %w", name, unavailable(err))
		}
	}
	return nil
}
