package history

import (
	"context"
	"fmt"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// Select makes a T of each row that a query reads.
func Select[T any](ctx context.Context, s *Store, query string, args []any, scan func(driver.Rows) (T, error)) ([]T, error) {
	rows, err := s.conn.Query(ctx, query, args...)
	if err != nil {
		return nil, Unavailable(err)
	}
	defer rows.Close()
	var all []T
	for rows.Next() {
		one, err := scan(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, Unavailable(rows.Err())
}

// TableID is the UUID of a table, by which it is known after it has changed names with another.
func (s *Store) TableID(ctx context.Context, table string) (uuid string, err error) {
	row := s.conn.QueryRow(ctx, "SELECT toString(uuid) FROM system.tables WHERE database = ? AND name = ?", s.cfg.Database, table)
	if err := row.Scan(&uuid); err != nil {
		return "", fmt.Errorf("finding table %s: %w", table, Unavailable(err))
	}
	return uuid, nil
}
