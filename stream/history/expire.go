package history

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/marketlog/marketlog/schemas"
)

// kept are the tables that do not keep all. They expire by the log's time and not by a TTL, which would go by the wall
// clock: views of a log of last year would be empty, and differ from one merge to the next.
func (s *Store) kept() (tables []schemas.Table) {
	for _, topic := range schemas.Topics {
		for _, t := range topic.Tables {
			if t.KeptDays == 0 || slices.ContainsFunc(tables, func(of schemas.Table) bool { return of.Name == t.Name }) {
				continue
			}
			if t.Name == "prices" {
				t.KeptDays = cmp.Or(s.cfg.PriceDays, t.KeptDays)
			}
			tables = append(tables, t)
		}
	}
	return tables
}

// KeptSince is the start of the oldest day whose rows a table has at a time; zero if it keeps all.
func (s *Store) KeptSince(table string, at time.Time) time.Time {
	for _, k := range s.kept() {
		if k.Name == table {
			return at.UTC().AddDate(0, 0, -k.KeptDays).Truncate(24 * time.Hour)
		}
	}
	return time.Time{}
}

// Expire drops what need not be kept any more at a log time (Unix nanoseconds): whole days of ticks
// and prices, whole months of the others. Suffix names shadow tables.
func (s *Store) Expire(ctx context.Context, suffix string, at int64) error {
	for _, k := range s.kept() {
		oldest := time.Unix(0, at).UTC().AddDate(0, 0, -k.KeptDays).Format(k.PartitionFormat)
		partitions, err := Select(ctx, s,
			"SELECT DISTINCT partition FROM system.parts WHERE database = ? AND table = ? AND active AND partition < ? ORDER BY partition",
			[]any{s.cfg.Database, k.Name + suffix, oldest},
			func(rows driver.Rows) (partition string, err error) { return partition, rows.Scan(&partition) })
		if err != nil {
			return fmt.Errorf("listing partitions of %s: %w", k.Name+suffix, err)
		}
		for _, p := range partitions {
			// A date is quoted, a month is a number.
			if strings.Contains(p, "-") {
				p = "'" + p + "'"
			}
			if err := s.conn.Exec(ctx, "ALTER TABLE "+k.Name+suffix+" DROP PARTITION "+p); err != nil {
				return fmt.Errorf("dropping %s of %s: %w", p, k.Name+suffix, Unavailable(err))
			}
		}
	}
	return nil
}

// ShadowSuffix is what a replay of that generation appends to the names of the tables it rebuilds.
// No two replays share tables: what one has left behind cannot meet another.
func ShadowSuffix(generation uint32) string {
	return "_replay" + strconv.FormatUint(uint64(generation), 10)
}
