package history

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// ShadowSuffix is what a replay of that generation appends to the names of the tables it rebuilds.
// No two replays share tables: what one has left behind cannot meet another.
func ShadowSuffix(generation uint32) string {
	return "_replay" + strconv.FormatUint(uint64(generation), 10)
}

// CreateShadow makes the empty twin of a table for a replay, unless it is there, and returns its
// UUID, by which it is known after it has changed names with the table.
func (s *Store) CreateShadow(ctx context.Context, table string, generation uint32) (uuid string, err error) {
	shadow := table + ShadowSuffix(generation)
	if err := s.conn.Exec(ctx, "CREATE TABLE IF NOT EXISTS "+shadow+" AS "+table); err != nil {
		return "", fmt.Errorf("creating %s: %w", shadow, unavailable(err))
	}
	return s.tableUUID(ctx, shadow)
}

// DropShadow drops whichever table bears the shadow's name: the rebuilt one if the replay was
// given up, after the exchange the old one.
func (s *Store) DropShadow(ctx context.Context, table string, generation uint32) error {
	shadow := table + ShadowSuffix(generation)
	if err := s.conn.Exec(ctx, "DROP TABLE IF EXISTS "+shadow+" SYNC"); err != nil {
		return fmt.Errorf("dropping %s: %w", shadow, unavailable(err))
	}
	return nil
}

// Exchange gives the rebuilt table, known by its UUID, the name of the live one and the other way
// round, in one step; if it has the name already, nothing is done.
func (s *Store) Exchange(ctx context.Context, table string, generation uint32, uuid string) error {
	current, err := s.tableUUID(ctx, table)
	if err != nil || current == uuid {
		return err
	}
	if err := s.conn.Exec(ctx, "EXCHANGE TABLES "+table+" AND "+table+ShadowSuffix(generation)); err != nil {
		return fmt.Errorf("exchanging %s for its rebuilt twin: %w", table, unavailable(err))
	}
	return nil
}

func (s *Store) tableUUID(ctx context.Context, table string) (uuid string, err error) {
	row := s.conn.QueryRow(ctx, "SELECT toString(uuid) FROM system.tables WHERE database = ? AND name = ?", s.cfg.Database, table)
	if err := row.Scan(&uuid); err != nil {
		return "", fmt.Errorf("finding table %s: %w", table, unavailable(err))
	}
	return uuid, nil
}

// Codes of ClickHouse for a table that is not there (any more).
const (
	codeUnknownTable = 60
	codeTableDropped = 218
)

// InsertShadow writes the rows into the tables of a replay. Those that are not there are passed over:
// the replay has ended or was given up, and the log has yet to say so.
//
// Who writes rows to both must write the shadow first: if the two change names in between, the
// rebuilt table gets the rows twice, which is once, and the other order would leave it without.
func (s *Store) InsertShadow(ctx context.Context, b *Batch, generation uint32) error {
	for _, r := range b.all() {
		err := s.insert(ctx, r, ShadowSuffix(generation))
		var refused *clickhouse.Exception
		if errors.As(err, &refused) && (refused.Code == codeUnknownTable || refused.Code == codeTableDropped) {
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// shape is what a table's definition says.
type shape struct {
	// key is what a row is known by.
	key, columns []string
	// at is the column that rows are kept by, and that says when they were caused; slice the one of the key that is a time.
	// A table of the newest rows has no such one.
	at, slice string
	// values are expressions of the columns that are never NULL.
	values []string
	// kept is how long rows are kept by their time, 0 for ever.
	kept time.Duration
}

// times finds the columns that tell a time.
func (s *shape) times(types []string) {
	for _, name := range s.key {
		if i := slices.Index(s.columns, name); i >= 0 && strings.HasPrefix(types[i], "Date") {
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

func (s *Store) shape(ctx context.Context, table string) (shape, error) {
	var key string
	var types []string
	var sh shape
	err := s.conn.QueryRow(ctx, `SELECT sorting_key,
			(SELECT groupArray(name) FROM (SELECT name FROM system.columns WHERE database = ? AND table = ? ORDER BY position)),
			(SELECT groupArray(type) FROM (SELECT type FROM system.columns WHERE database = ? AND table = ? ORDER BY position))
		FROM system.tables WHERE database = ? AND name = ?`,
		s.cfg.Database, table, s.cfg.Database, table, s.cfg.Database, table).Scan(&key, &sh.columns, &types)
	if err != nil {
		return sh, fmt.Errorf("reading the definition of %s: %w", table, unavailable(err))
	}
	for i, name := range sh.columns {
		value := "`" + name + "`" // there may be dots in it
		if strings.HasPrefix(types[i], "Nullable(") {
			value = "ifNull(toString(" + value + "), 'NULL')" // a hash of NULL is NULL, and equals nothing
		}
		sh.values = append(sh.values, value)
	}
	sh.key = strings.Split(key, ", ")
	sh.times(types)
	if table == "ticks" { // which coin an event is of is what a replay may see otherwise
		sh.key = slices.DeleteFunc(sh.key, func(name string) bool { return name == "coin_id" })
	}
	for _, k := range s.kept() {
		if k.Name == table {
			sh.kept = time.Duration(k.KeptDays) * 24 * time.Hour
		}
	}
	return sh, nil
}

// Bounds say which rows of a table a replay makes, of those that one input partition causes.
// A time is that of the key, in Unix seconds.
type Bounds struct {
	// Rows that were caused below offset From have a time below FromTime. They lie outside: what
	// causes them is no longer in the log, or was left out.
	From, FromTime int64
	// Rows that are caused at or behind offset Until have a time at or behind UntilTime.
	Until, UntilTime int64
}

// boundsSQL are two conditions on a row's log_partition p, log_offset o and time t.
func boundsSQL(bounds []Bounds) (outside, beyond string) {
	// One more stands for partitions that do not exist, to which all offsets belong.
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

// CarryOver copies the rows that a replay does not make from the live table to its rebuilt twin. Made
// twice it is the same.
func (s *Store) CarryOver(ctx context.Context, table string, generation uint32, bounds []Bounds) error {
	sh, err := s.shape(ctx, table)
	if err != nil {
		return err
	}
	at := sh.timeColumn()
	outside, beyond := boundsSQL(bounds)
	rows := func(what string) string {
		return fmt.Sprintf("WITH %s SELECT %s FROM %s FINAL WHERE (%s OR %s)", sh.rowSQL(), what, table, outside, beyond)
	}
	days, err := s.days(ctx, rows("DISTINCT toDate("+at+") AS slice_day")+" ORDER BY slice_day")
	if err != nil {
		return fmt.Errorf("looking for rows of %s to carry over: %w", table, err)
	}
	for _, day := range days { // one insert must not touch a hundred partitions
		err := s.conn.Exec(ctx, "INSERT INTO "+table+ShadowSuffix(generation)+" "+
			rows("*")+fmt.Sprintf(" AND toDate(%s) = '%s'", at, day.Format(time.DateOnly)))
		if err != nil {
			return fmt.Errorf("carrying over rows of %s: %w", table, unavailable(err))
		}
	}
	return nil
}

func (s *Store) days(ctx context.Context, query string) ([]time.Time, error) {
	rows, err := s.conn.Query(ctx, query)
	if err != nil {
		return nil, unavailable(err)
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
	return days, unavailable(rows.Err())
}
