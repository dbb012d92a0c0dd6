package history

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/marketlog/marketlog/schemas"
)

// repartitionedSuffix names the table that takes the place of one with longer partitions.
const repartitionedSuffix = "_repartitioned"

// droppable are the tables whose oldest rows are dropped where the disk budget is spent.
func droppable() (tables []schemas.Table) {
	for _, topic := range schemas.Topics {
		for _, t := range topic.Tables {
			if t.DroppedBy != "" {
				tables = append(tables, t)
			}
		}
	}
	return tables
}

// repartition gives the droppable tables partitions as long as what is dropped of them at once, where an earlier version made longer ones. It goes
// by what is there, so that one that was interrupted goes on.
func (s *Store) repartition(ctx context.Context) error {
	type table struct{ name, partition, sorting string }
	there, err := Select(ctx, s, "SELECT name, partition_key, sorting_key FROM system.tables WHERE database = ?", []any{s.cfg.Database},
		func(rows driver.Rows) (t table, err error) { return t, rows.Scan(&t.name, &t.partition, &t.sorting) })
	if err != nil {
		return fmt.Errorf("reading how the tables are partitioned: %w", err)
	}
	for _, t := range droppable() {
		i := slices.IndexFunc(there, func(of table) bool { return of.name == t.Name })
		if i < 0 {
			return fmt.Errorf("table %s is not there", t.Name)
		}
		by := partitionOf(t)
		if slices.Contains(strings.Split(there[i].sorting, ", "), "day") { // statements that name days read no others
			by = "(day, " + by + ")"
		}
		other := t.Name + repartitionedSuffix
		left := slices.ContainsFunc(there, func(of table) bool { return of.name == other })
		if there[i].partition != by {
			left = true
			err = s.repartitionTable(ctx, t, by, there[i].sorting)
		}
		if err == nil && left {
			// Nothing is dropped with rows in it: those that another process wrote until the tables changed names, or all, where two exchanged them.
			if err = s.moveRows(ctx, t, other, t.Name); err == nil {
				err = s.conn.Exec(ctx, "DROP TABLE IF EXISTS "+other+" SYNC")
			}
		}
		if err != nil {
			return fmt.Errorf("giving %s other partitions: %w", t.Name, Unavailable(err))
		}
	}
	return nil
}

// repartitionTable puts a table with other partitions in the place of one, whose rest has the other name then.
func (s *Store) repartitionTable(ctx context.Context, t schemas.Table, by, sorting string) error {
	other := t.Name + repartitionedSuffix
	err := s.conn.Exec(ctx, "CREATE TABLE IF NOT EXISTS "+other+" AS "+t.Name+" ENGINE = ReplacingMergeTree(version) PARTITION BY "+by+" ORDER BY ("+sorting+")")
	if err == nil {
		err = s.moveRows(ctx, t, t.Name, other)
	}
	if err == nil {
		err = s.conn.Exec(ctx, "EXCHANGE TABLES "+t.Name+" AND "+other)
	}
	return err
}

// partitionOf is the expression of the hour or the day that a row of a droppable table is dropped with.
func partitionOf(t schemas.Table) string {
	if t.DroppedIn == schemas.DroppedHourly {
		return "toStartOfHour(" + t.DroppedBy + ")"
	}
	return "toDate(" + t.DroppedBy + ")"
}

// moveRows moves the rows of a table, or of the one that takes its place, into the other, oldest first. Each partition is dropped as soon as all its rows are there, so that never
// more than one of them is on the disk twice.
func (s *Store) moveRows(ctx context.Context, t schemas.Table, from, into string) error {
	partitions, err := Select(ctx, s, "SELECT DISTINCT partition_id FROM system.parts WHERE database = ? AND table = ? AND active ORDER BY partition_id",
		[]any{s.cfg.Database, from},
		func(rows driver.Rows) (id string, err error) { return id, rows.Scan(&id) })
	if err != nil {
		return err
	}
	by := "toUInt32(" + partitionOf(t) + ")"
	for _, id := range partitions {
		within := fmt.Sprintf("FROM %s WHERE _partition_id = '%s'", from, id)
		units, err := Select(ctx, s, "SELECT DISTINCT "+by+" AS unit "+within+" ORDER BY unit", nil,
			func(rows driver.Rows) (unit uint32, err error) { return unit, rows.Scan(&unit) })
		if err != nil {
			return err
		}
		for _, unit := range units { // each block of rows becomes a part of every partition that it has rows of
			if err := s.conn.Exec(ctx, fmt.Sprintf("INSERT INTO %s SELECT * %s AND %s = %d", into, within, by, unit)); err != nil {
				return err
			}
		}
		if err := s.conn.Exec(ctx, "ALTER TABLE "+from+" DROP PARTITION ID '"+id+"'"); err != nil {
			return err
		}
	}
	return nil
}
