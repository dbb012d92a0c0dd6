package history

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// Part is an active part of a table, as ClickHouse keeps rows on disk. Of one whose directory is gone ClickHouse knows
// nothing, so who wants to notice remembers which there were.
type Part struct {
	Table string `json:"table"`
	// ID is the table's: one that a replay has put in its place is another.
	ID string `json:"id"`
	// Partition names the partition: a day or a month in most tables.
	Partition string `json:"partition"`
	// Min and Max are the blocks in it: a part that it was merged into has all of them.
	Min  int64  `json:"min"`
	Max  int64  `json:"max"`
	Rows uint64 `json:"rows"`
}

// Parts lists the active parts of all tables, in a fixed order.
func (s *Store) Parts(ctx context.Context) ([]Part, error) {
	parts, err := readRecords(ctx, s.conn, `SELECT p.table, toString(t.uuid), p.partition, p.min_block_number, p.max_block_number, p.rows
		FROM system.parts AS p INNER JOIN system.tables AS t ON t.database = p.database AND t.name = p.table
		WHERE p.database = ? AND p.active AND p.rows > 0
		ORDER BY p.table, p.partition, p.min_block_number`,
		[]any{s.cfg.Database},
		func(rows driver.Rows) (p Part, err error) {
			return p, rows.Scan(&p.Table, &p.ID, &p.Partition, &p.Min, &p.Max, &p.Rows)
		})
	if err != nil {
		return nil, fmt.Errorf("listing the parts of the tables: %w", err)
	}
	return parts, nil
}

// LostParts are the known parts that are neither there now nor merged into one that is. A table that was dropped or
// replaced has lost none, nor has one whose rows have expired by a log time.
func (s *Store) LostParts(ctx context.Context, known []Part, at time.Time) (lost []Part, err error) {
	now, err := s.Parts(ctx)
	if err != nil {
		return nil, err
	}
	type table struct{ name, id string }
	tables, err := readRecords(ctx, s.conn, "SELECT name, toString(uuid) FROM system.tables WHERE database = ?", []any{s.cfg.Database},
		func(rows driver.Rows) (t table, err error) { return t, rows.Scan(&t.name, &t.id) })
	if err != nil {
		return nil, fmt.Errorf("listing the tables: %w", err)
	}
	oldest := map[string]string{}
	for _, k := range s.kept() {
		oldest[k.table] = at.UTC().AddDate(0, 0, -k.days).Format(k.format)
	}
	for _, k := range known {
		covers := func(p Part) bool {
			return p.ID == k.ID && p.Partition == k.Partition && p.Min <= k.Min && p.Max >= k.Max
		}
		if !slices.Contains(tables, table{k.Table, k.ID}) || k.Partition < oldest[k.Table] || slices.ContainsFunc(now, covers) {
			continue
		}
		lost = append(lost, k)
	}
	return lost, nil
}
