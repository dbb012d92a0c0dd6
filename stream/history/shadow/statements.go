package shadow

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/history"
	"github.com/marketlog/marketlog/stream/history/native"
)

// Statements finds what sources state otherwise than before. Before the rows of a batch are inserted it puts them into a table in the
// memory of the database, and compares them there with what the table has under the same keys: by the same functions, so that equal is
// what the table holds as equal. It is used by one goroutine; Close drops what it has made.
type Statements struct {
	tables Tables
	suffix string
	shapes map[string]shape
}

// stagedInfix is in the names of tables of statements, before what no other process has.
const stagedInfix = "_stated_"

// NewStatements makes one whose tables no other process writes to.
func (t Tables) NewStatements() *Statements {
	return &Statements{t, stagedInfix + strings.ToLower(rand.Text()[:12]), map[string]shape{}}
}

// RestatedRow is a row of which a source stated something else before.
type RestatedRow struct {
	*eventsv1.Restatement
	// Source names the source or the venue, File the imported file, if it is of one.
	Source, File string
	// Partition and Offset are where the later statement lies in the log, Received is when it was received, Unix nanoseconds.
	Partition        int32
	Offset, Received int64
}

// Restated compares rows that are not inserted yet, by the columns that a source states. It returns a restatement for each that follows
// another statement under its key, of the table or of the rows themselves, in the order of the log. Asked again after some or all of the
// rows are inserted it returns the same of those that are not, and none that it did not return before. An error that is not
// stream.ErrUnavailable will come again.
func (s *Statements) Restated(ctx context.Context, rows native.Rows, stated []string) ([]RestatedRow, error) {
	sh, err := s.shapeOf(ctx, rows.Table())
	if err != nil {
		return nil, err
	}
	staged := rows.Table() + s.suffix
	if err := s.exec(ctx, "CREATE TABLE IF NOT EXISTS "+staged+" AS "+rows.Table()+" ENGINE = Memory"); err != nil {
		return nil, err
	}
	// What is left of a try that failed is the same rows.
	if err := s.tables.store.Insert(ctx, rows, s.suffix); err != nil {
		return nil, err
	}
	differ, err := s.differ(ctx, sh, rows.Table(), staged, stated)
	if err != nil {
		return nil, err
	}
	var found []RestatedRow
	if differ {
		if found, err = s.compare(ctx, sh, rows.Table(), staged, stated); err != nil {
			return nil, err
		}
	}
	return found, s.exec(ctx, "TRUNCATE TABLE "+staged)
}

func (s *Statements) exec(ctx context.Context, statement string) error {
	if err := s.tables.store.Conn().Exec(ctx, statement); err != nil {
		return fmt.Errorf("%s: %w", statement, history.Unavailable(err))
	}
	return nil
}

// differ reports whether rows under one key may differ. It is all that is done for nearly every batch, so it makes no texts and does not
// ask which rows have replaced each other. A row that was replaced, or two keys of one hash, are a reason to look closer and no restatement.
func (s *Statements) differ(ctx context.Context, sh shape, table, staged string, stated []string) (differ bool, err error) {
	key := strings.Join(sh.key, ", ")
	values := make([]string, len(stated))
	for i, name := range stated {
		values[i] = sh.values[slices.Index(sh.columns, name)]
	}
	side := func(from string) string {
		return fmt.Sprintf("SELECT cityHash64(%s) AS r_key, cityHash64(%s) AS r_hash FROM %s", key, strings.Join(values, ", "), from)
	}
	err = s.tables.store.Conn().QueryRow(ctx, fmt.Sprintf("SELECT count() > 0 FROM (SELECT 1 FROM (%s UNION ALL %s) GROUP BY r_key HAVING min(r_hash) != max(r_hash) LIMIT 1)",
		side(fmt.Sprintf("%s WHERE (%s) IN (SELECT %s FROM %s)", table, key, key, staged)), side(staged))).Scan(&differ)
	if err != nil {
		return false, fmt.Errorf("looking for other statements in %s: %w", table, history.Unavailable(err))
	}
	return differ, nil
}

func (s *Statements) shapeOf(ctx context.Context, table string) (shape, error) {
	if sh, ok := s.shapes[table]; ok {
		return sh, nil
	}
	sh, err := s.tables.shape(ctx, table)
	if err == nil {
		s.shapes[table] = sh
	}
	return sh, err
}

// Close drops the tables in memory. Those of a process that was killed stay, empty after a restart of the database, until DropAbandoned.
func (s *Statements) Close(ctx context.Context) error {
	for table := range s.shapes {
		if err := s.exec(ctx, "DROP TABLE IF EXISTS "+table+s.suffix+" SYNC"); err != nil {
			return err
		}
	}
	return nil
}

// DropAbandoned drops the tables in memory of at least an age: those of processes that were killed, and of others, which make
// theirs again.
func (t Tables) DropAbandoned(ctx context.Context, age time.Duration) error {
	names, err := history.Select(ctx, t.store, "SELECT name FROM system.tables WHERE database = ? AND engine = 'Memory' AND position(name, ?) > 0 AND metadata_modification_time <= now() - toIntervalSecond(?)",
		[]any{t.store.Database(), stagedInfix, int64(age / time.Second)}, func(rows driver.Rows) (name string, err error) { return name, rows.Scan(&name) })
	for _, name := range names {
		if err == nil {
			err = t.store.Conn().Exec(ctx, "DROP TABLE IF EXISTS "+name+" SYNC")
		}
	}
	if err != nil {
		return fmt.Errorf("dropping what processes that were killed have left: %w", history.Unavailable(err))
	}
	return nil
}

// compare puts the statements under each key in the order of the log, and makes a restatement of each staged one that differs from the one
// before it. A row that the table has already is not staged any more.
func (s *Statements) compare(ctx context.Context, sh shape, table, staged string, stated []string) ([]RestatedRow, error) {
	r := restater{comparer: comparer{store: s.tables.store, table: table, shape: sh}}
	texts := make([]string, len(stated))
	for i, name := range stated {
		texts[i] = r.textSQL(slices.Index(sh.columns, name))
	}
	keys := make([]string, len(sh.key))
	for i, name := range sh.key {
		keys[i] = r.keySQL(name)
	}
	textOf := func(names ...string) string {
		for _, name := range names {
			if slices.Contains(sh.columns, name) {
				return "toString(" + name + ")"
			}
		}
		return "''"
	}
	key := r.key()
	side := func(from string, staged int) string {
		return fmt.Sprintf(`SELECT %s, version, %d AS r_staged, log_partition, log_offset, toUnixTimestamp64Nano(ingest_time) AS r_received, [%s] AS r_key,
			%s AS r_coin, toUnixTimestamp64Nano(toDateTime64(%s, 9, 'UTC')) AS r_time, %s AS r_source, %s AS r_file, [%s] AS r_texts, lower(hex(sipHash128(r_texts))) AS r_digest FROM %s`,
			key, staged, strings.Join(keys, ", "), textOf("coin_id"), sh.timeColumn(), textOf("source", "venue"), textOf("file"), strings.Join(texts, ", "), from)
	}
	found, err := history.Select(ctx, s.tables.store, fmt.Sprintf(`SELECT log_partition, log_offset, r_received, r_key, r_coin, r_time, r_source, r_file, was_texts, r_texts, was_digest, r_digest
		FROM (
			SELECT *, lagInFrame(r_texts) OVER earlier AS was_texts, lagInFrame(r_digest) OVER earlier AS was_digest
			FROM (SELECT * FROM (%s UNION ALL %s) ORDER BY version, r_staged LIMIT 1 BY %s, version)
			WINDOW earlier AS (PARTITION BY %s ORDER BY version ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)
		) WHERE r_staged = 1 AND was_digest != '' AND was_digest != r_digest ORDER BY log_partition, log_offset, r_key`,
		side(fmt.Sprintf("%s FINAL WHERE (%s) IN (SELECT %s FROM %s)", table, key, key, staged), 0), side(staged, 1), key, key),
		nil, func(rows driver.Rows) (RestatedRow, error) {
			one := RestatedRow{Restatement: &eventsv1.Restatement{Table: table, Kind: KindChanged}}
			var values, was, is []string
			err := rows.Scan(&one.Partition, &one.Offset, &one.Received, &values, &one.CoinId, &one.EventTime, &one.Source, &one.File, &was, &is, &one.DigestBefore, &one.DigestAfter)
			for i, name := range sh.key {
				one.Key = append(one.Key, &eventsv1.RestatedValue{Name: name, Value: values[i]})
			}
			one.state(saidOf(stated, was), saidOf(stated, is))
			return one, err
		})
	if err != nil {
		return nil, fmt.Errorf("comparing statements with %s: %w", table, err)
	}
	// What was taken back twice has no values, before or after.
	return slices.DeleteFunc(found, func(r RestatedRow) bool { return r.DigestBefore == "" && r.DigestAfter == "" }), nil
}

// saidOf are the values of columns by their texts: '=' and the text, or nothing for NULL.
func saidOf(columns, texts []string) []said {
	values := make([]said, len(columns))
	for i, name := range columns {
		text, known := strings.CutPrefix(texts[i], "=")
		values[i] = said{name: name, text: text, null: !known}
	}
	return values
}

// withdrawn is the column of a table that says whether a row is not a statement any more: its source took back what it had stated.
const withdrawn = "withdrawn"

// state sets the kind and the values: of a row that was taken back those before, of one that was stated again those after.
func (r *RestatedRow) state(was, is []said) {
	standing := func(values []said) (list []said) {
		for _, v := range values {
			switch {
			case v.name != withdrawn:
				list = append(list, v)
			case v.text == "true":
				return nil
			}
		}
		return list
	}
	was, is = standing(was), standing(is)
	if is == nil {
		r.Kind, r.DigestAfter = KindRemoved, ""
	}
	if was == nil {
		r.Kind, r.DigestBefore = KindAdded, ""
	}
	r.Before, r.After, _ = differing(was, is)
}
