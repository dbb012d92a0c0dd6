package history

import (
	"context"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// ReplayTables stands for the tables that replays are building, in sizes.
const ReplayTables = "replay"

// TableSize is what one table takes.
type TableSize struct {
	// Table is its name, or ReplayTables.
	Table string
	// Bytes are compressed, on disk. Rows include those that a newer version replaces.
	Bytes, Rows, Parts uint64
}

// Sizes is what ClickHouse holds of our tables, and what it needs.
type Sizes struct {
	Tables []TableSize
	// Memory is what ClickHouse accounts for, in bytes.
	Memory int64
}

// Sizes measures the tables, by name; tables without rows have none.
func (s *Store) Sizes(ctx context.Context) (Sizes, error) {
	var sizes Sizes
	var err error
	sizes.Tables, err = readRecords(ctx, s.conn, `SELECT if(match(table, '_replay[0-9]+$'), '`+ReplayTables+`', table) AS name,
			sum(bytes_on_disk), sum(rows), count()
		FROM system.parts WHERE database = ? AND active GROUP BY name ORDER BY name`, []any{s.cfg.Database},
		func(rows driver.Rows) (t TableSize, err error) {
			return t, rows.Scan(&t.Table, &t.Bytes, &t.Rows, &t.Parts)
		})
	if err != nil {
		return sizes, fmt.Errorf("measuring the tables: %w", err)
	}
	memory, err := readRecords(ctx, s.conn, "SELECT value FROM system.metrics WHERE metric = 'MemoryTracking'", nil,
		func(rows driver.Rows) (n int64, err error) { return n, rows.Scan(&n) })
	if err != nil {
		return sizes, fmt.Errorf("measuring the memory of ClickHouse: %w", err)
	}
	for _, n := range memory {
		sizes.Memory = n
	}
	return sizes, nil
}

// Retention is how long tables keep rows, in log time; those without keep all.
func (s *Store) Retention() map[string]time.Duration {
	kept := map[string]time.Duration{}
	for _, k := range s.kept() {
		kept[k.table] = time.Duration(k.days) * 24 * time.Hour
	}
	return kept
}
