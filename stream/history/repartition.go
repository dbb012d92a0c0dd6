package history

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/marketlog/marketlog/schemas"
)

// repartitionedSuffix begins the end of the names of tables that took, or take, the place of one with longer partitions.
const repartitionedSuffix = "_repartitioned"

// repartitionPasses bounds how often repartition looks whether other processes have left something to do.
const repartitionPasses = 20

// Codes that ClickHouse refuses a statement with: of a table that is not there, or not any more, of one that has rows, and of one that changed names meanwhile.
const (
	codeUnknownTable = 60
	codeTableDropped = 218
	codeNotEmpty     = 705
	codeOtherTable   = 741
)

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

// repartition gives the droppable tables partitions as long as what is dropped of them at once, where an earlier version made longer ones: an
// empty table takes the name of the old one, whose rows are moved into it. Until then they are not read. It goes by what is there, so that one that was
// interrupted goes on, and any number of processes may do it at once: each names a table of its own, which only it puts in the place of the
// old one, and only once; what others have left, each moves.
func (s *Store) repartition(ctx context.Context) error {
	for range repartitionPasses {
		done, err := s.repartitionPass(ctx)
		if done || err != nil {
			return err
		}
	}
	return fmt.Errorf("after %d passes tables still have other partitions or names: others change them", repartitionPasses)
}

// repartitionPass does what there is to do; done where there was nothing.
func (s *Store) repartitionPass(ctx context.Context) (done bool, err error) {
	type table struct{ name, partition, sorting string }
	there, err := Select(ctx, s, "SELECT name, partition_key, sorting_key FROM system.tables WHERE database = ?", []any{s.cfg.Database},
		func(rows driver.Rows) (t table, err error) { return t, rows.Scan(&t.name, &t.partition, &t.sorting) })
	if err != nil {
		return false, fmt.Errorf("reading how the tables are partitioned: %w", err)
	}
	done = true
	for _, t := range droppable() {
		i := slices.IndexFunc(there, func(of table) bool { return of.name == t.Name })
		if i < 0 {
			return false, fmt.Errorf("table %s is not there", t.Name)
		}
		by := partitionOf(t)
		if slices.Contains(strings.Split(there[i].sorting, ", "), "day") { // statements that name days read no others
			by = "(day, " + by + ")"
		}
		var left []string
		for _, of := range there {
			if strings.HasPrefix(of.name, t.Name+repartitionedSuffix) {
				left = append(left, of.name)
			}
		}
		if there[i].partition != by {
			own := t.Name + repartitionedSuffix + "_" + strings.ToLower(rand.Text())
			if err := s.replace(ctx, t.Name, own, by, there[i].sorting); err != nil {
				return false, fmt.Errorf("giving %s other partitions: %w", t.Name, err)
			}
			left = append(left, own)
		}
		for _, from := range left {
			done = false
			if err := s.moveTable(ctx, t, from); err != nil {
				return false, fmt.Errorf("moving rows into %s, which has other partitions: %w", t.Name, err)
			}
		}
	}
	return done, nil
}

// replace puts an empty table with other partitions in the place of one, which has the other name then. It does nothing where another process found
// the empty table and dropped it.
func (s *Store) replace(ctx context.Context, table, own, by, sorting string) error {
	if err := s.conn.Exec(ctx, "CREATE TABLE "+own+" AS "+table+" ENGINE = ReplacingMergeTree(version) PARTITION BY "+by+" ORDER BY ("+sorting+")"); err != nil {
		return Unavailable(err)
	}
	return unlessLeft(s.conn.Exec(ctx, "EXCHANGE TABLES "+table+" AND "+own))
}

// moveTable moves all rows of a table that another one took the place of, and drops it. Each row is in the other before it is dropped, and the
// table only as an empty one; an error leaves the rest to the next start.
func (s *Store) moveTable(ctx context.Context, t schemas.Table, from string) error {
	if err := s.inserted(ctx, t.Name); err != nil {
		return err
	}
	if err := s.moveRows(ctx, t, from, t.Name); err != nil {
		return unlessLeft(err)
	}
	return unlessLeft(s.conn.Exec(ctx, "DROP TABLE IF EMPTY "+from+" SYNC"))
}

// inserted waits until the inserts into a table have ended that run now: they may go into the one that had the name before.
func (s *Store) inserted(ctx context.Context, table string) error {
	running := func() ([]string, error) {
		return Select(ctx, s, "SELECT query_id FROM system.processes WHERE query_kind = 'Insert' AND position(query, ?) > 0", []any{table},
			func(rows driver.Rows) (id string, err error) { return id, rows.Scan(&id) })
	}
	first, err := running()
	for now := first; len(now) > 0 && err == nil; now, err = running() {
		if !slices.ContainsFunc(now, func(id string) bool { return slices.Contains(first, id) }) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
	return err
}

// unlessLeft is the error of a statement of a table with the rest of another, unless that says only that another process dropped it meanwhile, when there
// was nothing in it any more, that there is, or that tables changed names: the next pass looks again.
func unlessLeft(err error) error {
	var refused *clickhouse.Exception
	if errors.As(err, &refused) && slices.Contains([]int32{codeUnknownTable, codeTableDropped, codeNotEmpty, codeOtherTable}, refused.Code) {
		return nil
	}
	return Unavailable(err)
}

// partitionOf is the expression of the hour or the day that a row of a droppable table is dropped with.
func partitionOf(t schemas.Table) string {
	if t.DroppedIn == schemas.DroppedHourly {
		return "toStartOfHour(" + t.DroppedBy + ")"
	}
	return "toDate(" + t.DroppedBy + ")"
}

// moveRows moves the rows of a table into the one that took its place, oldest first. Each partition is dropped as soon as all its rows are there, so that never
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
