package history

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// Part is an active part of a table, as ClickHouse keeps rows on disk. Of one whose directory is gone ClickHouse knows
// nothing, so who wants to notice remembers which there were.
type Part struct {
	Table string `json:"table"`
	// ID is the table's: one that a replay has put in its place is another.
	ID string `json:"id"`
	// Partition names the partition: an hour, a day or a month in most tables.
	Partition string `json:"partition"`
	// Min and Max are the blocks in it: a part that it was merged into has all of them.
	Min  int64  `json:"min"`
	Max  int64  `json:"max"`
	Rows uint64 `json:"rows"`
}

// Span is the time that the rows of a part are of, as far as its partition says: an hour, a day, a month or a year. From is
// zero and to far ahead where the table has no partitions by time.
func (p Part) Span() (from, to time.Time) { return partitionSpan(p.Partition) }

// partitionSpan is the time that a partition names, of several the last one, which is the shortest.
func partitionSpan(name string) (from, to time.Time) {
	if parts := strings.Split(name, "'"); len(parts) > 2 { // such as ('2026-11-24','2026-11-24 13:00:00')
		name = parts[len(parts)-2]
	}
	for _, by := range []struct {
		format              string
		years, months, days int
		hours               time.Duration
	}{{time.DateTime, 0, 0, 0, time.Hour}, {time.DateOnly, 0, 0, 1, 0}, {"200601", 0, 1, 0, 0}, {"2006", 1, 0, 0, 0}} {
		if start, err := time.Parse(by.format, name); err == nil {
			return start, start.AddDate(by.years, by.months, by.days).Add(by.hours)
		}
	}
	return time.Time{}, time.Unix(math.MaxInt64/int64(time.Second), 0)
}

// Parts lists the active parts of all tables, in a fixed order.
func (s *Store) Parts(ctx context.Context) ([]Part, error) {
	parts, err := Select(ctx, s, `SELECT p.table, toString(t.uuid), p.partition, p.min_block_number, p.max_block_number, p.rows
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
	tables, err := Select(ctx, s, "SELECT name, toString(uuid) FROM system.tables WHERE database = ?", []any{s.cfg.Database},
		func(rows driver.Rows) (t table, err error) { return t, rows.Scan(&t.name, &t.id) })
	if err != nil {
		return nil, fmt.Errorf("listing the tables: %w", err)
	}
	since := map[string]time.Time{}
	for _, t := range slices.Concat(s.kept(), droppable()) {
		if since[t.Name], err = s.KeptSince(ctx, t.Name, at); err != nil {
			return nil, err
		}
	}
	end := func(p Part) time.Time { _, to := p.Span(); return to }
	for _, k := range known {
		covers := func(p Part) bool {
			return p.ID == k.ID && p.Partition == k.Partition && p.Min <= k.Min && p.Max >= k.Max
		}
		if !slices.Contains(tables, table{k.Table, k.ID}) || !end(k).After(since[k.Table]) || slices.ContainsFunc(now, covers) {
			continue
		}
		lost = append(lost, k)
	}
	return lost, nil
}

// PartFault is a part whose files are not what was written. Path is its folder, where ClickHouse sees it.
type PartFault struct{ Table, Part, Path, Says string }

// CheckParts reads every active part of all tables and compares it with its checksums. It returns how many were read, and
// those that are damaged.
func (s *Store) CheckParts(ctx context.Context) (checked int, faults []PartFault, err error) {
	tables, err := Select(ctx, s, "SELECT DISTINCT table FROM system.parts WHERE database = ? AND active ORDER BY table", []any{s.cfg.Database},
		func(rows driver.Rows) (table string, err error) { return table, rows.Scan(&table) })
	if err != nil {
		return 0, nil, fmt.Errorf("listing the tables: %w", err)
	}
	type place struct{ table, part, path string }
	places, err := Select(ctx, s, "SELECT table, name, path FROM system.parts WHERE database = ? AND active", []any{s.cfg.Database},
		func(rows driver.Rows) (p place, err error) { return p, rows.Scan(&p.table, &p.part, &p.path) })
	if err != nil {
		return 0, nil, fmt.Errorf("listing the parts: %w", err)
	}
	for _, table := range tables {
		parts, err := Select(ctx, s, "CHECK TABLE "+s.cfg.Database+"."+table+" SETTINGS check_query_single_value_result = 0", nil,
			func(rows driver.Rows) (f PartFault, err error) {
				var passed bool
				if err = rows.Scan(&f.Part, &passed, &f.Says); passed {
					f = PartFault{}
				}
				f.Table = table
				return f, err
			})
		if err != nil {
			return checked, faults, fmt.Errorf("checking the parts of %s: %w", table, err)
		}
		checked += len(parts)
		for _, p := range parts {
			if p.Part == "" {
				continue
			}
			if i := slices.IndexFunc(places, func(at place) bool { return at.table == table && at.part == p.Part }); i >= 0 {
				p.Path = places[i].path
			}
			faults = append(faults, p)
		}
	}
	return checked, faults, nil
}
