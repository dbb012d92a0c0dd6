package history

import (
	"context"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// ReplayTables means the tables that replays are building, in sizes.
const ReplayTables = "replay"

// replayPattern is what their names end with.
const replayPattern = "_replay[0-9]+$"

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
	sizes.Tables, err = Select(ctx, s, `SELECT if(match(table, '`+replayPattern+`'), '`+ReplayTables+`', table) AS name,
			sum(bytes_on_disk), sum(rows), count()
		FROM system.parts WHERE database = ? AND active GROUP BY name ORDER BY name`, []any{s.cfg.Database},
		func(rows driver.Rows) (t TableSize, err error) {
			return t, rows.Scan(&t.Table, &t.Bytes, &t.Rows, &t.Parts)
		})
	if err != nil {
		return sizes, fmt.Errorf("measuring the tables: %w", err)
	}
	memory, err := Select(ctx, s, "SELECT value FROM system.metrics WHERE metric = 'MemoryTracking'", nil,
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
		kept[k.Name] = time.Duration(k.KeptDays) * 24 * time.Hour
	}
	return kept
}

// Growth is how fast a table grows that is dropped by the day.
type Growth struct {
	Table string `json:"table"`
	// BytesPerDay is the size on disk of what a day brings, by the rows of the last minutes.
	BytesPerDay float64 `json:"bytesPerDay"`
	// Kept is how many days the table keeps.
	Kept int `json:"keptDays"`
	// Bytes is what it has now.
	Bytes uint64 `json:"bytes"`
}

const (
	// growthSpan is the time whose rows are counted; leastGrowthSpan is less than that in a table that has just begun.
	growthSpan, leastGrowthSpan = 10 * time.Minute, time.Minute
)

// Growth measures the tables that take nearly all of the disk, ticks and prices to the second: the rows of the last ten
// minutes before the newest one, and what a row takes. A table of less than a minute is left out.
func (s *Store) Growth(ctx context.Context) ([]Growth, error) {
	sizes, err := s.Sizes(ctx)
	if err != nil {
		return nil, err
	}
	var all []Growth
	for _, of := range []struct{ table, time string }{{"ticks", "ingest_time"}, {"prices", "time"}} {
		newest := "SELECT max(" + of.time + ") FROM " + of.table
		type window struct {
			rows        uint64
			first, last time.Time
		}
		found, err := Select(ctx, s, "SELECT count(), min("+of.time+"), max("+of.time+") FROM "+of.table+
			" WHERE "+of.time+" > ("+newest+") - toIntervalSecond(?)",
			[]any{int(growthSpan.Seconds())},
			func(rows driver.Rows) (w window, err error) { return w, rows.Scan(&w.rows, &w.first, &w.last) })
		if err != nil {
			return nil, fmt.Errorf("measuring the growth of %s: %w", of.table, err)
		}
		for _, size := range sizes.Tables {
			w := found[0]
			if span := w.last.Sub(w.first); size.Table == of.table && size.Rows > 0 && span >= leastGrowthSpan {
				perDay := float64(w.rows) / span.Hours() * 24 * float64(size.Bytes) / float64(size.Rows)
				all = append(all, Growth{Table: of.table, BytesPerDay: perDay, Kept: int(s.Retention()[of.table].Hours() / 24), Bytes: size.Bytes})
			}
		}
	}
	return all, nil
}

// Droppable is a partition of a table that may be dropped for want of room.
type Droppable struct {
	Table string
	// Until is when the newest row of it may be of.
	Until time.Time
	Bytes uint64
}

// Droppable lists the partitions that may be dropped for want of room, by table, oldest first. While a replay compares tables none may be.
func (s *Store) Droppable(ctx context.Context) ([]Droppable, error) {
	if replaying, err := s.Replaying(ctx); replaying || err != nil {
		return nil, err
	}
	var names []string
	for _, t := range droppable() {
		names = append(names, t.Name)
	}
	found, err := Select(ctx, s, `SELECT table, partition, sum(bytes_on_disk) FROM system.parts WHERE database = ? AND table IN (?) AND active AND rows > 0
		GROUP BY table, partition, partition_id ORDER BY table, partition_id`, []any{s.cfg.Database, names},
		func(rows driver.Rows) (d Droppable, err error) {
			var partition string
			err = rows.Scan(&d.Table, &partition, &d.Bytes)
			_, d.Until = partitionSpan(partition)
			return d, err
		})
	if err != nil {
		return nil, fmt.Errorf("listing the partitions that may be dropped: %w", err)
	}
	return found, nil
}

// Replaying reports whether a replay is building tables, or left some that it will go on with.
func (s *Store) Replaying(ctx context.Context) (bool, error) {
	var tables uint64
	err := s.conn.QueryRow(ctx, "SELECT count() FROM system.tables WHERE database = ? AND match(name, '"+replayPattern+"')", s.cfg.Database).Scan(&tables)
	if err != nil {
		return false, fmt.Errorf("looking for tables of replays: %w", Unavailable(err))
	}
	return tables > 0, nil
}

// ReplayBytes is what the tables that replays are building take on the disk.
func (s *Store) ReplayBytes(ctx context.Context) (bytes int64, err error) {
	err = s.conn.QueryRow(ctx, "SELECT toInt64(sum(bytes_on_disk)) FROM system.parts WHERE database = ? AND match(table, '"+replayPattern+"')", s.cfg.Database).Scan(&bytes)
	if err != nil {
		return 0, fmt.Errorf("measuring the tables of replays: %w", Unavailable(err))
	}
	return bytes, nil
}
