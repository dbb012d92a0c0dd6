package history

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// retention is a table that does not keep all: how many days, and how the start of a row's time names its ClickHouse
// partition.
type retention struct {
	table  string
	days   int
	format string
}

// kept are the tables that do not keep all. They expire by the log's time and not by a TTL, which would go by the wall
// clock: views of a log of last year would be empty, and differ from one merge to the next.
func (s *Store) kept() []retention {
	return []retention{
		{"ticks", 7, "2006-01-02"},
		// Every second of every coin with all its inputs is the largest table by far; prices_1m keeps the last of each
		// minute.
		{"prices", cmp.Or(s.cfg.PriceDays, DefaultPriceDays), "2006-01-02"},
		{"venue_candles_1m", 90, "200601"},
		{"dead_letters", 90, "200601"},
		{"gaps", 90, "200601"},
		// What goes on being said is written again within a week, so the newest of each thing is always kept.
		{"coin_markets", 90, "200601"},
		{"stablecoins", 90, "200601"},
		{"protocols", 90, "200601"},
		{"chain_tvl", 90, "200601"},
		{"global_figures", 90, "200601"},
		{"fetches", 90, "200601"},
		{"rates", 30, "2006-01-02"},
		{"rates_1h", 1826, "200601"},
		{"rates_1d", 1826, "200601"},
	}
}

// KeptSince is the start of the oldest day whose rows a table has at a time; zero if it keeps all.
func (s *Store) KeptSince(table string, at time.Time) time.Time {
	for _, k := range s.kept() {
		if k.table == table {
			return at.UTC().AddDate(0, 0, -k.days).Truncate(24 * time.Hour)
		}
	}
	return time.Time{}
}

// Expire drops what need not be kept any more at a log time (Unix nanoseconds): whole days of ticks
// and prices, whole months of the others. Suffix names shadow tables.
func (s *Store) Expire(ctx context.Context, suffix string, at int64) error {
	for _, k := range s.kept() {
		oldest := time.Unix(0, at).UTC().AddDate(0, 0, -k.days).Format(k.format)
		partitions, err := readRecords(ctx, s.conn,
			"SELECT DISTINCT partition FROM system.parts WHERE database = ? AND table = ? AND active AND partition < ? ORDER BY partition",
			[]any{s.cfg.Database, k.table + suffix, oldest},
			func(rows driver.Rows) (partition string, err error) { return partition, rows.Scan(&partition) })
		if err != nil {
			return fmt.Errorf("listing partitions of %s: %w", k.table+suffix, err)
		}
		for _, p := range partitions {
			// A date is quoted, a month is a number.
			if strings.Contains(p, "-") {
				p = "'" + p + "'"
			}
			if err := s.conn.Exec(ctx, "ALTER TABLE "+k.table+suffix+" DROP PARTITION "+p); err != nil {
				return fmt.Errorf("dropping %s of %s: %w", p, k.table+suffix, unavailable(err))
			}
		}
	}
	return nil
}
