package history

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
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

// keptSince is the start of the oldest day that a table keeps at a time of the log.
func keptSince(t schemas.Table, at time.Time) time.Time {
	return at.UTC().AddDate(0, 0, -t.KeptDays).Truncate(24 * time.Hour)
}

// KeptSince is since when a table has all rows that it got up to a time of the log: the start of the oldest day that it keeps, or what it was cut
// back to by then for want of room; zero if it keeps all.
func (s *Store) KeptSince(ctx context.Context, table string, at time.Time) (time.Time, error) {
	since, dropped, err := s.Expiry(ctx, table, at)
	if dropped.After(since) {
		since = dropped
	}
	return since, err
}

// Expiry is the start of the oldest day that a table keeps at a time of the log, and up to when its rows had been dropped by then for want of room;
// both are zero where nothing is ever dropped.
func (s *Store) Expiry(ctx context.Context, table string, at time.Time) (since, dropped time.Time, err error) {
	named := func(t schemas.Table) bool { return t.Name == table }
	if kept := s.kept(); slices.ContainsFunc(kept, named) {
		since = keptSince(kept[slices.IndexFunc(kept, named)], at)
	}
	if slices.ContainsFunc(droppable(), named) {
		dropped, err = s.droppedUntil(ctx, table, at)
	}
	return since, dropped, err
}

func (s *Store) droppedUntil(ctx context.Context, table string, at time.Time) (until time.Time, err error) {
	var dropped *time.Time
	row := s.conn.QueryRow(ctx, "SELECT maxOrNull(until) FROM dropped WHERE table = ? AND at <= fromUnixTimestamp64Nano(?, 'UTC')", table, at.UnixNano())
	if err := row.Scan(&dropped); err != nil {
		return time.Time{}, fmt.Errorf("reading up to when rows of %s were dropped: %w", table, Unavailable(err))
	}
	if dropped != nil {
		until = dropped.UTC()
	}
	return until, nil
}

// Undropped is the condition of a statement on those rows of a table, or of one that is to take its place, that were not dropped for want of room.
func (s *Store) Undropped(ctx context.Context, table string) (condition string, err error) {
	for _, t := range droppable() {
		if t.Name == table {
			until, err := s.droppedUntil(ctx, table, time.Unix(0, math.MaxInt64))
			return fmt.Sprintf("%s >= toDateTime(%d, 'UTC')", t.DroppedBy, max(0, until.Unix())), err
		}
	}
	return "true", nil
}

// DropUntil drops the rows of a table up to the end of a partition, at a time of the log, for want of room. That they are dropped is recorded before
// they are: who finds rows missing finds the reason.
func (s *Store) DropUntil(ctx context.Context, table string, until, at time.Time) error {
	if err := s.conn.Exec(ctx, "INSERT INTO dropped (table, until, at) SELECT ?, toDateTime(?, 'UTC'), fromUnixTimestamp64Nano(?, 'UTC')", table, until.Unix(), at.UnixNano()); err != nil {
		return fmt.Errorf("recording that rows of %s are dropped: %w", table, Unavailable(err))
	}
	return s.dropPartitions(ctx, table, until)
}

// Expire drops what need not be kept any more at a log time (Unix nanoseconds), by whole partitions. Suffix names shadow tables.
func (s *Store) Expire(ctx context.Context, suffix string, at int64) error {
	for _, k := range s.kept() {
		if err := s.dropPartitions(ctx, k.Name+suffix, keptSince(k, time.Unix(0, at))); err != nil {
			return err
		}
	}
	return nil
}

// dropPartitions drops the partitions whose rows are all of before a time.
func (s *Store) dropPartitions(ctx context.Context, table string, until time.Time) error {
	type partition struct{ name, id string }
	partitions, err := Select(ctx, s, "SELECT DISTINCT partition, partition_id FROM system.parts WHERE database = ? AND table = ? AND active ORDER BY partition_id",
		[]any{s.cfg.Database, table},
		func(rows driver.Rows) (p partition, err error) { return p, rows.Scan(&p.name, &p.id) })
	if err != nil {
		return fmt.Errorf("listing partitions of %s: %w", table, err)
	}
	for _, p := range partitions {
		if _, to := partitionSpan(p.name); to.After(until) {
			continue
		}
		if err := s.conn.Exec(ctx, "ALTER TABLE "+table+" DROP PARTITION ID '"+p.id+"'"); err != nil {
			return fmt.Errorf("dropping %s of %s: %w", p.name, table, Unavailable(err))
		}
	}
	return nil
}

// ShadowSuffix is what a replay of that generation appends to the names of the tables it rebuilds.
// No two replays share tables: what one has left behind cannot meet another.
func ShadowSuffix(generation uint32) string {
	return "_replay" + strconv.FormatUint(uint64(generation), 10)
}
