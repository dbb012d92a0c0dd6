package shadow

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/marketlog/marketlog/stream/history"
)

// Kinds of differences between a live table and its rebuilt shadow.
const (
	DiffMissing   = "missing"   // the live table lacks the row
	DiffExtra     = "extra"     // only the live table has it
	DiffDifferent = "different" // both have it, with other values
)

// Difference is one key under which the tables do not hold the same row.
type Difference struct {
	Table string `json:"table"`
	Kind  string `json:"kind"`
	// Key gives the columns of the key as ClickHouse prints them.
	Key map[string]string `json:"key"`
	// Columns names the values that differ where both have a row.
	Columns []string `json:"columns,omitempty"`
}

// Comparison is what a comparison found.
type Comparison struct {
	// Compared counts keys, Differing those of them under which the rows differ.
	Compared, Differing int64
	// Outside counts rows that the replay does not make for want of log, or that are too old to be
	// kept; Beyond those caused later than it went.
	Outside, Beyond int64
	// Differences are the first ones, in the order of day and key.
	Differences []Difference
}

// sliceRows is about how many rows of either table are compared at once: it bounds the memory.
const sliceRows = 100_000

// Compare compares a live table with its rebuilt shadow, row by row, the newest of each key, and by all columns.
// It goes slice by slice, and before each calls progress with the rows compared so far and in all.
func (t Tables) Compare(ctx context.Context, table string, generation uint32, bounds []Bounds, most int, progress func(done, all int64)) (Comparison, error) {
	var found Comparison
	c, err := t.comparer(ctx, table, generation, bounds)
	if err != nil {
		return found, err
	}
	slices, old, err := c.slices(ctx)
	if err != nil {
		return found, fmt.Errorf("comparing %s: %w", table, err)
	}
	found.Outside = old
	var done, all int64
	for _, sl := range slices {
		all += sl.rows
	}
	for _, sl := range slices {
		progress(done, all)
		if err := c.compare(ctx, sl, most, &found); err != nil {
			return found, fmt.Errorf("comparing %s: %w", table, err)
		}
		done += sl.rows
	}
	progress(done, all)
	return found, nil
}

type comparer struct {
	store           *history.Store
	table, shadow   string
	shape           shape
	keptFrom        time.Time
	outside, beyond string
}

func (t Tables) comparer(ctx context.Context, table string, generation uint32, bounds []Bounds) (comparer, error) {
	c := comparer{store: t.store, table: table, shadow: table + history.ShadowSuffix(generation)}
	var err error
	if c.shape, err = t.shape(ctx, table); err != nil {
		return c, err
	}
	var newest time.Time
	// The rebuilt table shows how old a row is: a stray one of the live table may be of any time.
	if err := t.store.Conn().QueryRow(ctx, "SELECT toDateTime64(max("+c.shape.timeColumn()+"), 0, 'UTC') FROM "+c.shadow).Scan(&newest); err != nil {
		return c, fmt.Errorf("reading the newest rebuilt row of %s: %w", table, history.Unavailable(err))
	}
	c.keptFrom = c.shape.keptFrom(newest)
	c.outside, c.beyond = boundsSQL(bounds)
	return c, nil
}

// slice is a day and a range of the first column of the key.
type slice struct {
	day         time.Time
	first, last string
	rows        int64
}

// slices parts the rows of both tables, and counts those of the live one that are too old.
func (c *comparer) slices(ctx context.Context) (list []slice, old int64, err error) {
	first := c.shape.key[0]
	part := func(table string, live int) string {
		return fmt.Sprintf("SELECT %s AS slice_day, toString(%s) AS slice_first, countIf(%s) AS n, count() - n AS dropped, %d AS live FROM %s GROUP BY slice_day, slice_first",
			c.shape.sliceSQL(), first, c.shape.there, live, table)
	}
	rows, err := c.store.Conn().Query(ctx, "SELECT slice_day, slice_first, toInt64(sum(n)), toInt64(sumIf(n, live = 1)), toInt64(sumIf(dropped, live = 1)) FROM ("+
		part(c.table, 1)+" UNION ALL "+part(c.shadow, 0)+") GROUP BY slice_day, slice_first ORDER BY slice_day, slice_first")
	if err != nil {
		return nil, 0, history.Unavailable(err)
	}
	defer rows.Close()
	for rows.Next() {
		var day time.Time
		var name string
		var both, live, dropped int64
		if err := rows.Scan(&day, &name, &both, &live, &dropped); err != nil {
			return nil, 0, err
		}
		if old += dropped; both == 0 {
			continue
		}
		if day.Before(c.keptFrom) {
			old += live
			continue
		}
		if n := len(list); n > 0 && list[n-1].day.Equal(day) && list[n-1].rows+both <= 2*sliceRows {
			list[n-1].last = name
			list[n-1].rows += both
			continue
		}
		list = append(list, slice{day, name, name, both})
	}
	return list, old, history.Unavailable(rows.Err())
}

// rowsSQL selects one row for each key of a slice: how the tables differ there, and by an expression
// over the columns the values of both. Of the rows of a key the one of the greatest version counts, and of those the one that was inserted last, as
// under FINAL. That would put whole rows together in the order of the key first: several times the work where a row is a price with
// all its inputs.
func (c *comparer) rowsSQL(sl slice, values string) string {
	key := strings.Join(c.shape.key, ", ")
	side := func(table string, live int) string {
		return fmt.Sprintf("SELECT %s, (version, _block_number) AS v, tuple(%s) AS place, %s AS h, %d AS live FROM %s WHERE %s", key, c.shape.rowSQL(), values, live, table, c.withinSQL(sl))
	}
	return fmt.Sprintf(`SELECT %s, hl, hs, t, multiIf(%s, 'beyond', %s, 'outside', nl = 0, '%s', ns = 0, '%s', hl != hs, '%s', 'same') AS verdict FROM (
		SELECT %s, nl, ns, hl, hs, if(ns > 0, ps, pl).1 AS p, multiIf(nl = 0, ps.2, ns = 0, pl.2, greatest(pl.2, ps.2)) AS o,
			multiIf(nl = 0, ps.3, ns = 0, pl.3, greatest(pl.3, ps.3)) AS t
		FROM (
			SELECT %s, countIf(live = 1) AS nl, countIf(live = 0) AS ns, argMaxIf(h, v, live = 1) AS hl, argMaxIf(h, v, live = 0) AS hs,
				argMaxIf(place, v, live = 1) AS pl, argMaxIf(place, v, live = 0) AS ps
			FROM (%s UNION ALL %s) GROUP BY %s))`,
		key, c.beyond, c.outside, DiffMissing, DiffExtra, DiffDifferent, key, key, side(c.table, 1), side(c.shadow, 0), key)
}

// hashSQL is by what values are compared: 128 bits of two hashes that share nothing. Of the arrays of a price's inputs each takes a
// tenth of the time of sipHash128, which is for those who want to be deceived by nobody; here both sides are our own.
func hashSQL(values []string) string {
	list := strings.Join(values, ", ")
	return "(cityHash64(" + list + "), xxh3(" + list + "))"
}

// withinSQL is the condition on the rows of a slice.
func (c *comparer) withinSQL(sl slice) string {
	first := c.shape.key[0]
	return fmt.Sprintf("%s = '%s' AND %s >= %s AND %s <= %s AND %s", c.shape.sliceSQL(), sl.day.Format(time.DateOnly), first, history.Literal(sl.first), first,
		history.Literal(sl.last), c.shape.there)
}

// keySQL is a column of the key as people read it.
func (c *comparer) keySQL(name string) string {
	if name == "event_id" {
		return "lower(hex(event_id))"
	}
	return "toString(" + name + ")"
}

func (c *comparer) compare(ctx context.Context, sl slice, most int, found *Comparison) error {
	rows, err := c.store.Conn().Query(ctx, "SELECT verdict, toInt64(count()) FROM ("+c.rowsSQL(sl, hashSQL(c.shape.values))+") GROUP BY verdict")
	if err != nil {
		return history.Unavailable(err)
	}
	defer rows.Close()
	differing := int64(0)
	for rows.Next() {
		var kind string
		var n int64
		if err := rows.Scan(&kind, &n); err != nil {
			return err
		}
		switch kind {
		case "beyond":
			found.Beyond += n
		case "outside":
			found.Outside += n
		case "same":
			found.Compared += n
		default:
			found.Compared += n
			differing += n
		}
	}
	if err := rows.Err(); err != nil {
		return history.Unavailable(err)
	}
	found.Differing += differing
	if left := most - len(found.Differences); differing > 0 && left > 0 {
		return c.describe(ctx, sl, left, found)
	}
	return nil
}

// describe reads the keys of the first differences of a slice.
func (c *comparer) describe(ctx context.Context, sl slice, most int, found *Comparison) error {
	hashes := make([]string, len(c.shape.values))
	for i, value := range c.shape.values {
		hashes[i] = "cityHash64(" + value + ")"
	}
	keys := make([]string, len(c.shape.key))
	for i, name := range c.shape.key {
		keys[i] = c.keySQL(name)
	}
	rows, err := c.store.Conn().Query(ctx, fmt.Sprintf("SELECT verdict, [%s], hl, hs FROM (%s) WHERE verdict IN ('%s', '%s', '%s') ORDER BY %s LIMIT %d",
		strings.Join(keys, ", "), c.rowsSQL(sl, "["+strings.Join(hashes, ", ")+"]"),
		DiffMissing, DiffExtra, DiffDifferent, strings.Join(c.shape.key, ", "), most))
	if err != nil {
		return history.Unavailable(err)
	}
	defer rows.Close()
	for rows.Next() {
		d := Difference{Table: c.table, Key: map[string]string{}}
		var key []string
		var live, shadow []uint64
		if err := rows.Scan(&d.Kind, &key, &live, &shadow); err != nil {
			return err
		}
		for i, name := range c.shape.key {
			d.Key[name] = key[i]
		}
		if d.Kind == DiffDifferent {
			for i, name := range c.shape.columns {
				if live[i] != shadow[i] {
					d.Columns = append(d.Columns, name)
				}
			}
		}
		found.Differences = append(found.Differences, d)
	}
	return history.Unavailable(rows.Err())
}
