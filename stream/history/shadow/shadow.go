package shadow

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/marketlog/marketlog/stream/history"
)

// Create makes the empty shadow of a table for a replay, unless it is there, and returns its
// UUID, by which it is known after it has changed names with the table.
func (t Tables) Create(ctx context.Context, table string, generation uint32) (uuid string, err error) {
	shadow := table + history.ShadowSuffix(generation)
	if err := t.store.Conn().Exec(ctx, "CREATE TABLE IF NOT EXISTS "+shadow+" AS "+table); err != nil {
		return "", fmt.Errorf("creating %s: %w", shadow, history.Unavailable(err))
	}
	return t.store.TableID(ctx, shadow)
}

// Drop drops whichever table has the shadow's name: the rebuilt one if the replay was
// given up, after the exchange the old one.
func (t Tables) Drop(ctx context.Context, table string, generation uint32) error {
	shadow := table + history.ShadowSuffix(generation)
	if err := t.store.Conn().Exec(ctx, "DROP TABLE IF EXISTS "+shadow+" SYNC"); err != nil {
		return fmt.Errorf("dropping %s: %w", shadow, history.Unavailable(err))
	}
	return nil
}

// Exchange gives the rebuilt table, known by its UUID, the name of the live one and the other way
// round, in one step; if it has the name already, nothing is done.
func (t Tables) Exchange(ctx context.Context, table string, generation uint32, uuid string) error {
	current, err := t.store.TableID(ctx, table)
	if err != nil || current == uuid {
		return err
	}
	if err := t.store.Conn().Exec(ctx, "EXCHANGE TABLES "+table+" AND "+table+history.ShadowSuffix(generation)); err != nil {
		return fmt.Errorf("exchanging %s for its rebuilt shadow table: %w", table, history.Unavailable(err))
	}
	return nil
}

// shape is what a table's definition has.
type shape struct {
	// key is what a row is known by.
	key, columns []string
	// types are those of the columns.
	types []string
	// at is the column that rows are kept by, and that says when they were caused; slice the one of the key that is a time.
	// A table of the newest rows has no such one.
	at, slice string
	// values are expressions of the columns that are never NULL.
	values []string
	// kept is how long rows are kept by their time, 0 for ever.
	kept time.Duration
	// there is the condition on rows that were not dropped for want of room.
	there string
}

// times finds the columns that hold a time.
func (s *shape) times() {
	for _, name := range s.key {
		if i := slices.Index(s.columns, name); i >= 0 && strings.HasPrefix(s.types[i], "Date") {
			s.slice = name
			break
		}
	}
	switch {
	case slices.Contains(s.columns, "time"):
		s.at = "time"
	case s.slice != "":
		s.at = s.slice
	default:
		s.at = "ingest_time"
	}
}

// timeColumn is what rows are kept by.
func (s shape) timeColumn() string { return s.at }

// sliceSQL is the day that a row is compared in: the same for all rows of a key. Where a table has few rows a day for many
// years, it is the first of its month: slices cost a query each.
func (s shape) sliceSQL() string {
	switch {
	case s.slice == "":
		return "toDate('1970-01-01')"
	case s.slice == "day" && s.kept == 0:
		return "toStartOfMonth(day)"
	default:
		return "toDate(" + s.slice + ")"
	}
}

// rowSQL names what bounds look at.
func (s shape) rowSQL() string {
	return "log_partition AS p, log_offset AS o, toInt64(toUnixTimestamp(toDateTime(" + s.timeColumn() + ", 'UTC'))) AS t"
}

// keptFrom is the first time whose rows are certain to be kept for another hour of log time.
func (s shape) keptFrom(now time.Time) time.Time {
	if s.kept == 0 {
		return time.Unix(0, 0)
	}
	const day = 24 * time.Hour
	return now.Add(time.Hour - s.kept).Truncate(day) // whole days expire
}

func (t Tables) shape(ctx context.Context, table string) (shape, error) {
	var key string
	var sh shape
	err := t.store.Conn().QueryRow(ctx, `SELECT sorting_key,
			(SELECT groupArray(name) FROM (SELECT name FROM system.columns WHERE database = ? AND table = ? ORDER BY position)),
			(SELECT groupArray(type) FROM (SELECT type FROM system.columns WHERE database = ? AND table = ? ORDER BY position))
		FROM system.tables WHERE database = ? AND name = ?`,
		t.store.Database(), table, t.store.Database(), table, t.store.Database(), table).Scan(&key, &sh.columns, &sh.types)
	if err != nil {
		return sh, fmt.Errorf("reading the definition of %s: %w", table, history.Unavailable(err))
	}
	for i, name := range sh.columns {
		value := "`" + name + "`" // there may be dots in it
		if strings.HasPrefix(sh.types[i], "Nullable(") {
			value = "ifNull(concat('=', toString(" + value + ")), '')" // a hash of NULL is NULL, and equals nothing
		}
		sh.values = append(sh.values, value)
	}
	sh.key = strings.Split(key, ", ")
	sh.times()
	if table == "ticks" { // which coin an event is of is what a replay may see otherwise
		sh.key = slices.DeleteFunc(sh.key, func(name string) bool { return name == "coin_id" })
	}
	sh.kept = t.store.Retention()[table]
	sh.there, err = t.store.Undropped(ctx, table)
	return sh, err
}

// Bounds state which rows of a table a replay makes, of those that one input partition causes.
// A time is that of the key, in Unix seconds.
type Bounds struct {
	// Rows that were caused below offset From have a time below FromTime. They lie outside: what
	// causes them is no longer in the log, or was left out.
	From, FromTime int64
	// Rows that are caused at or after offset Until have a time at or after UntilTime.
	Until, UntilTime int64
}

// boundsSQL are two conditions on a row's log_partition p, log_offset o and time t.
func boundsSQL(bounds []Bounds) (outside, beyond string) {
	// One more is for partitions that do not exist, to which all offsets belong.
	bounds = append(slices.Clone(bounds), Bounds{Until: 1<<63 - 1})
	of := func(pick func(Bounds) int64) string {
		values := make([]string, len(bounds))
		for i, b := range bounds {
			values[i] = fmt.Sprintf("toInt64(%d)", pick(b))
		}
		last := len(bounds) - 1
		return fmt.Sprintf("[%s][if(p >= 0 AND p < %d, p, %d) + 1]", strings.Join(values, ", "), last, last)
	}
	outside = fmt.Sprintf("(o < %s AND t < %s)",
		of(func(b Bounds) int64 { return b.From }), of(func(b Bounds) int64 { return b.FromTime }))
	beyond = fmt.Sprintf("(o >= %s AND t >= %s)",
		of(func(b Bounds) int64 { return b.Until }), of(func(b Bounds) int64 { return b.UntilTime }))
	return outside, beyond
}

// CarryOver copies the rows that a replay does not make from the live table to its rebuilt shadow. Made
// twice it is the same.
func (t Tables) CarryOver(ctx context.Context, table string, generation uint32, bounds []Bounds) error {
	sh, err := t.shape(ctx, table)
	if err != nil {
		return err
	}
	at := sh.timeColumn()
	outside, beyond := boundsSQL(bounds)
	rows := func(what string) string {
		return fmt.Sprintf("WITH %s SELECT %s FROM %s FINAL WHERE (%s OR %s)", sh.rowSQL(), what, table, outside, beyond)
	}
	days, err := t.days(ctx, rows("DISTINCT toDate("+at+") AS slice_day")+" ORDER BY slice_day")
	if err != nil {
		return fmt.Errorf("looking for rows of %s to carry over: %w", table, err)
	}
	for _, day := range days { // one insert must not touch a hundred partitions
		err := t.store.Conn().Exec(ctx, "INSERT INTO "+table+history.ShadowSuffix(generation)+" "+
			rows("*")+fmt.Sprintf(" AND toDate(%s) = '%s'", at, day.Format(time.DateOnly)))
		if err != nil {
			return fmt.Errorf("carrying over rows of %s: %w", table, history.Unavailable(err))
		}
	}
	return nil
}

func (t Tables) days(ctx context.Context, query string) ([]time.Time, error) {
	rows, err := t.store.Conn().Query(ctx, query)
	if err != nil {
		return nil, history.Unavailable(err)
	}
	defer rows.Close()
	var days []time.Time
	for rows.Next() {
		var day time.Time
		if err := rows.Scan(&day); err != nil {
			return nil, err
		}
		days = append(days, day)
	}
	return days, history.Unavailable(rows.Err())
}
