package read

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/marketlog/marketlog/stream/history"
)

// Restatement is a row of a table that a replay, or another statement of its source, added, removed or changed after it may have been read.
type Restatement struct {
	// Time is when that was, Offset where it lies in the log: together they are a place in the list.
	Time   time.Time
	Offset int64
	// Run names the replay, or the place in the log of the later statement of a source.
	Run, Cause, View, Table, Kind string
	// CoinID is empty where the row is not of one coin.
	CoinID    string
	EventTime time.Time
	// Key, Before and After are the row's columns as exact text.
	Key, Before, After map[string]string
	// Others are columns with lists that differ.
	Others                    []string
	LogicBefore, LogicAfter   uint32
	DigestBefore, DigestAfter string
}

// RestatedTable is how many rows of a table a replay restated that are not listed.
type RestatedTable struct {
	Time             time.Time
	Run, View, Table string
	Rows             int64
}

// RestatementFilter narrows restatements; what is empty does not.
type RestatementFilter struct {
	CoinID, View string
	// Since and Until bound when it was restated; both are included.
	Since, Until time.Time
	// Recorded leaves out what came to be later; a zero time does not.
	Recorded time.Time
	// Behind is the last restatement that was read, by time and offset: those after it are read. A zero time means that none was.
	Behind Restatement
}

// counted are restatements that came to be by a time: those by sources, and of a replay those of the attempt that finished.
const counted = `(attempt = 0 AND time <= (fromUnixTimestamp64Nano(toInt64(?), 'UTC') AS recorded)
				OR attempt > 0 AND (run, attempt, table_name) IN (SELECT run, attempt, table_name FROM restated_tables FINAL WHERE time <= recorded))`

// Restatements reads the newest restatements, at most limit of them: the last run first, within it as they were recorded.
func (r Reader) Restatements(ctx context.Context, filter RestatementFilter, limit int) ([]Restatement, error) {
	behind := orEnd(filter.Behind.Time).UnixNano()
	restatements, err := history.Select(ctx, r.store, `SELECT time, log_offset, run, cause, view_name, table_name, kind, coin_id, event_time, key, before.name, before.value, after.name, after.value,
			others, logic_before, logic_after, digest_before, digest_after
		FROM restatements FINAL
		WHERE time >= fromUnixTimestamp64Nano(toInt64(?), 'UTC') AND time <= fromUnixTimestamp64Nano(toInt64(?), 'UTC') AND (? = '' OR coin_id = ?) AND (? = '' OR view_name = ?)
			AND (time < fromUnixTimestamp64Nano(toInt64(?), 'UTC') OR time = fromUnixTimestamp64Nano(toInt64(?), 'UTC') AND log_offset > ?) AND `+counted+`
		ORDER BY time DESC, log_offset LIMIT ?`,
		[]any{filter.Since.UnixNano(), filter.Until.UnixNano(), filter.CoinID, filter.CoinID, filter.View, filter.View, behind, behind, filter.Behind.Offset, orEnd(filter.Recorded).UnixNano(), limit},
		func(rows driver.Rows) (Restatement, error) {
			var one Restatement
			var key string
			var was, wasValues, is, isValues []string
			err := rows.Scan(&one.Time, &one.Offset, &one.Run, &one.Cause, &one.View, &one.Table, &one.Kind, &one.CoinID, &one.EventTime, &key, &was, &wasValues, &is, &isValues,
				&one.Others, &one.LogicBefore, &one.LogicAfter, &one.DigestBefore, &one.DigestAfter)
			if err == nil {
				err = json.Unmarshal([]byte(key), &one.Key)
			}
			one.Before, one.After = texts(was, wasValues), texts(is, isValues)
			return one, err
		})
	if err != nil {
		return nil, fmt.Errorf("reading restatements: %w", err)
	}
	return restatements, nil
}

var endOfTime = time.Unix(0, 1<<63-1)

// orEnd is a bound; without one, the end of time.
func orEnd(at time.Time) time.Time {
	if at.IsZero() {
		return endOfTime
	}
	return at
}

func texts(names, values []string) map[string]string {
	if len(names) == 0 {
		return nil
	}
	all := make(map[string]string, len(names))
	for i, name := range names {
		all[name] = values[i]
	}
	return all
}

// Restated reads when a replay last changed, after an instant, rows of tables of some coins, nil for any, and a time in [from, to); zero if none did. That is the
// moment before its tables took the place of those that were there: what it would change it had recorded before.
func (r Reader) Restated(ctx context.Context, tables, coins []string, from, to, after time.Time) (time.Time, error) {
	of, args := "", []any{after.UnixNano(), tables, tables, from.UnixNano(), to.UnixNano()}
	if coins != nil {
		of, args = " AND coin_id IN (?)", append(args, coins)
	}
	var last *time.Time
	// Of what is not listed it is not known which coins it is of, or when.
	err := r.store.Conn().QueryRow(ctx, `SELECT maxOrNull(time) FROM restated_tables FINAL
		WHERE time > fromUnixTimestamp64Nano(?, 'UTC') AND table_name IN (?) AND (added + removed + changed > listed OR (run, attempt, table_name) IN (
			SELECT run, attempt, table_name FROM restatements WHERE table_name IN (?)
				AND event_time >= fromUnixTimestamp64Nano(?, 'UTC') AND event_time < fromUnixTimestamp64Nano(?, 'UTC')`+of+"))", args...).Scan(&last)
	if err != nil {
		return time.Time{}, fmt.Errorf("reading what a replay changed: %w", history.Unavailable(err))
	}
	return orZero(last), nil
}

// Unlisted reads of which tables more rows were restated than are listed, the last first, at most limit of them.
func (r Reader) Unlisted(ctx context.Context, filter RestatementFilter, limit int) ([]RestatedTable, error) {
	tables, err := history.Select(ctx, r.store, `SELECT time, run, view_name, table_name, added + removed + changed - listed AS unlisted FROM restated_tables FINAL
		WHERE time >= fromUnixTimestamp64Nano(toInt64(?), 'UTC') AND time <= fromUnixTimestamp64Nano(toInt64(?), 'UTC') AND (? = '' OR view_name = ?) AND unlisted > 0
			AND time <= fromUnixTimestamp64Nano(toInt64(?), 'UTC')
		ORDER BY time DESC, table_name LIMIT ?`,
		[]any{filter.Since.UnixNano(), filter.Until.UnixNano(), filter.View, filter.View, orEnd(filter.Recorded).UnixNano(), limit},
		func(rows driver.Rows) (t RestatedTable, err error) {
			return t, rows.Scan(&t.Time, &t.Run, &t.View, &t.Table, &t.Rows)
		})
	if err != nil {
		return nil, fmt.Errorf("reading restated tables: %w", err)
	}
	return tables, nil
}

// Correction is what an operator excluded of a venue's ticks, or took back.
type Correction struct {
	// Time is when it was written, Offset where it lies in the log: together they are a place in the list.
	Time                    time.Time
	Offset                  int64
	ID, Kind, Venue, Symbol string
	// From and To bound what is excluded; the zero time is not a bound.
	From, To                 time.Time
	Author, Reason, Evidence string
	// Withdraws is the exclusion that a withdrawal takes back, WithdrawnBy the withdrawal of an exclusion.
	Withdraws, WithdrawnBy string
}

// CorrectionFilter narrows corrections; what is empty does not.
type CorrectionFilter struct {
	// Venue is whose exclusions are read, and the withdrawals of these.
	Venue string
	// Recorded leaves out what was written later, as if it had not been.
	Recorded time.Time
	// Behind is the last correction that was read: older ones are read. A zero time means that none was.
	Behind Correction
}

// Corrections reads the newest corrections, at most limit of them, the last one first.
func (r Reader) Corrections(ctx context.Context, filter CorrectionFilter, limit int) ([]Correction, error) {
	behind := orEnd(filter.Behind.Time).UnixNano()
	corrections, err := history.Select(ctx, r.store, `WITH all AS (SELECT * FROM corrections FINAL WHERE time <= fromUnixTimestamp64Nano(toInt64(?), 'UTC'))
		SELECT c.time, c.log_offset, c.id, c.kind, c.venue, c.symbol, c.valid_from, c.valid_to, c.author, c.reason, c.evidence, c.withdraws, w.by
		FROM all AS c LEFT JOIN (SELECT withdraws AS of, argMin(id, (time, id)) AS by FROM all WHERE kind = 'withdraw' GROUP BY withdraws) AS w ON w.of = c.id
		WHERE (? = '' OR c.venue = ? OR c.withdraws IN (SELECT id FROM all WHERE venue = ?))
			AND (c.time < fromUnixTimestamp64Nano(toInt64(?), 'UTC') OR c.time = fromUnixTimestamp64Nano(toInt64(?), 'UTC') AND c.log_offset < ?)
		ORDER BY c.time DESC, c.log_offset DESC LIMIT ?`,
		[]any{orEnd(filter.Recorded).UnixNano(), filter.Venue, filter.Venue, filter.Venue, behind, behind, filter.Behind.Offset, limit},
		func(rows driver.Rows) (c Correction, err error) {
			err = rows.Scan(&c.Time, &c.Offset, &c.ID, &c.Kind, &c.Venue, &c.Symbol, &c.From, &c.To, &c.Author, &c.Reason, &c.Evidence, &c.Withdraws, &c.WithdrawnBy)
			for _, bound := range []*time.Time{&c.From, &c.To} {
				if bound.UnixNano() == 0 {
					*bound = time.Time{}
				}
			}
			return c, err
		})
	if err != nil {
		return nil, fmt.Errorf("reading corrections: %w", err)
	}
	return corrections, nil
}
