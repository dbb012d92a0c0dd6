package read

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/marketlog/marketlog/schemas"
	"github.com/marketlog/marketlog/stream/history"
	"github.com/marketlog/marketlog/stream/history/past"
)

// CandlesAsOf is what of the tables counts in the candles of a coin as of an instant.
type CandlesAsOf struct {
	// Closed is up to when live minutes count of the coin; ClosedAll up to when they do of every coin: only before that do back-filled candles count.
	Closed, ClosedAll time.Time
	// Folded is up to when back-filled candles had been folded, by the clock of the tables, Unix nanoseconds: those count as they were then. With
	// FoldedNow they count as they are.
	Folded int64
	// Fixings is the offset in reference.raw.v1 before which rates of the currency of a peg count.
	Fixings int64
}

// FoldedNow is for back-filled candles as they are now.
const FoldedNow int64 = -1

// UnknownPastError means that it is not known what back-filled candles were at an instant, since they were lost, or an older version kept
// nothing of it.
type UnknownPastError struct {
	// Until is by the clock of the tables, Unix nanoseconds.
	Until int64
}

func (e *UnknownPastError) Error() string { return "it is not known what back-filled candles were" }

// IntervalsAsOf reads what Intervals gave of a coin when no more counted than what is named. It fails with an *UnknownPastError where that is not known.
func (r Reader) IntervalsAsOf(ctx context.Context, coinID string, interval time.Duration, from, to time.Time, of CandlesAsOf) ([]schemas.Candle, error) {
	if _, ok := history.LiveCandles[interval]; !ok {
		return nil, fmt.Errorf("reading candles of %s: there are none of %s", coinID, interval)
	}
	live, err := r.liveAsOf(ctx, coinID, interval, from, to, of.Closed)
	if err != nil {
		return nil, err
	}
	lacking := lackingSpan(live, interval, from, to)
	if !lacking.From.Before(lacking.To) || !lacking.From.Before(of.ClosedAll) {
		return live, nil
	}
	if err := r.KnownPast(ctx, of); err != nil {
		return nil, err
	}
	backfilled, err := r.pastAsOf(ctx, coinID, interval, []past.Span{{From: from, To: to}}, of)
	if err != nil {
		return nil, err
	}
	if interval == time.Minute {
		return fillIn(interval, live, backfilled, nil), nil
	}
	var minutes []schemas.Candle
	if spans := minuteSpans(lacking, interval, live, backfilled); len(spans) > 0 {
		if minutes, err = r.pastAsOf(ctx, coinID, time.Minute, spans, of); err != nil {
			return nil, err
		}
	}
	if len(minutes) > 0 {
		first, last := minutes[0].Start.Truncate(interval), minutes[len(minutes)-1].Start.Truncate(interval).Add(interval)
		liveMinutes, err := r.liveAsOf(ctx, coinID, time.Minute, first, last, of.Closed)
		if err != nil {
			return nil, err
		}
		minutes = schemas.JoinCandles(fillIn(time.Minute, liveMinutes, minutes, nil), interval)
	}
	return fillIn(interval, live, backfilled, minutes), nil
}

// liveAsOf reads the live candles of a coin that start in [from, to), of minutes that had closed.
func (r Reader) liveAsOf(ctx context.Context, coinID string, interval time.Duration, from, to, closed time.Time) ([]schemas.Candle, error) {
	if !closed.Before(to) {
		return r.liveIntervals(ctx, coinID, interval, from, to)
	}
	whole, err := r.liveIntervals(ctx, coinID, interval, from, closed.Truncate(interval))
	if err != nil || interval == time.Minute {
		return whole, err
	}
	// The interval under way, as the views of candles fold whole ones.
	begin := closed.Truncate(interval)
	part, err := history.Select(ctx, r.store, `SELECT toDateTime(?, 'UTC'), argMin(m.open, m.start), max(m.high), min(m.low), argMax(m.close, m.start), sum(m.volume),
			toFloat64(sum(toDecimal256(m.volume_usd, 18))), sum(m.trades), toUInt16(count()), max(m.start)
		FROM candles_1m AS m FINAL WHERE m.coin_id = ? AND m.start >= ? AND m.start < ? HAVING count() > 0`, []any{begin.Unix(), coinID, ceil(begin), ceil(closed)}, scanLive)
	if err != nil {
		return nil, fmt.Errorf("reading candles of %s: %w", coinID, err)
	}
	return append(whole, part...), nil
}

// KnownPast fails with an *UnknownPastError where it is not known what back-filled candles were.
func (r Reader) KnownPast(ctx context.Context, of CandlesAsOf) error {
	if of.Folded == FoldedNow {
		return nil
	}
	var until int64
	if err := r.store.Conn().QueryRow(ctx, "SELECT toInt64(max(until)) FROM past_candles_before WHERE coin_id = '*'").Scan(&until); err != nil {
		return fmt.Errorf("reading since when the past of candles is known: %w", history.Unavailable(err))
	}
	if of.Folded < until {
		return &UnknownPastError{until}
	}
	return nil
}

// PastSince reads since when, by the clock of the tables, all back-filled candles of a coin that start in [from, to) are what they are, those that were
// withdrawn too; 0 where there are none.
func (r Reader) PastSince(ctx context.Context, coinID string, from, to time.Time) (since int64, err error) {
	err = r.store.Conn().QueryRow(ctx, "SELECT toInt64(max(since)) FROM past_candles FINAL WHERE coin_id = ? AND start >= ? AND start < ?", coinID, ceil(from), ceil(to)).Scan(&since)
	if err != nil {
		return 0, fmt.Errorf("reading since when back-filled candles of %s are what they are: %w", coinID, history.Unavailable(err))
	}
	return since, nil
}

// pastAsOf reads the back-filled candles of a coin that start in one of the spans, oldest first, as far as they had ended when all live minutes had closed.
func (r Reader) pastAsOf(ctx context.Context, coinID string, interval time.Duration, spans []past.Span, of CandlesAsOf) ([]schemas.Candle, error) {
	var within []string
	var bounds []any
	for _, s := range spans {
		within = append(within, "start >= ? AND start < ?")
		bounds = append(bounds, ceil(s.From), ceil(s.To))
	}
	where := "coin_id = ? AND seconds = ? AND (" + strings.Join(within, " OR ") + ")"
	args := append([]any{coinID, seconds(interval)}, bounds...)
	const columns = "seconds, start, open, high, low, close, volume, volume_usd, imported"
	query := "SELECT " + columns + " FROM past_candles FINAL WHERE " + where + " AND priced ORDER BY start"
	if of.Folded != FoldedNow {
		// What is there since then is newer than what was before.
		query = "SELECT " + columns + " FROM (SELECT " + columns + ", priced FROM (SELECT " + columns + ", priced, since FROM past_candles FINAL WHERE " + where + ` AND since <= ?
			UNION ALL SELECT ` + columns + ", priced, since FROM past_candles_before FINAL WHERE " + where + ` AND since <= ? AND until > ?)
			ORDER BY start, since DESC LIMIT 1 BY start) WHERE priced ORDER BY start`
		args = slices.Concat(args, []any{uint64(of.Folded)}, args, []any{uint64(of.Folded), uint64(of.Folded)})
	}
	candles, err := history.Select(ctx, r.store, query, args, func(rows driver.Rows) (schemas.Candle, error) {
		c, _, err := scanPast(rows)
		return c, err
	})
	if err != nil {
		return nil, fmt.Errorf("reading what back-filled candles of %s were: %w", coinID, err)
	}
	return ended(candles, interval, of.ClosedAll), nil
}

// CandleTailAsOf is CandleTail of the prices that had been written by an instant, and served, unless that is nil.
func (r Reader) CandleTailAsOf(ctx context.Context, coinID string, step time.Duration, from, at time.Time, served ServedPrices) ([]schemas.Candle, error) {
	where, args := "AND p.published <= ?", []any{at.UnixNano()}
	if len(served) > 0 {
		partitions, offsets := served.columns()
		where, args = where+" AND p.log_offset <= transform(p.log_partition, ?, ?, toInt64(-1))", append(args, partitions, offsets)
	}
	return r.candleTail(ctx, coinID, step, from, at.Truncate(time.Second).Add(time.Second), where, args...)
}

// ServedCandles is what the candles of charts were read from at an instant.
type ServedCandles struct {
	// Closed is up to when live minutes were closed, by partition of candles.v1; empty where there never was one.
	Closed []time.Time
	// Folded is up to when back-filled candles were folded, by the clock of the tables, Unix nanoseconds; where none were, from when on it is known
	// what they were.
	Folded int64
	// Fixings is the offset in reference.raw.v1 before which the tables had all rates of currencies; 0 where they had none, or where that was not recorded.
	Fixings int64
}

// Of is what counts of the candles of a coin whose records are in a partition.
func (s ServedCandles) Of(partition int32) CandlesAsOf {
	of := CandlesAsOf{ClosedAll: past.NeverLive, Folded: s.Folded, Fixings: s.Fixings}
	if len(s.Closed) > 0 {
		of.ClosedAll = slices.MinFunc(s.Closed, time.Time.Compare)
	}
	if int(partition) < len(s.Closed) {
		of.Closed = s.Closed[partition]
	}
	return of
}

// CandlesNow reads what charts that are made now are read from: of live candles at least, and of back-filled ones.
func (r Reader) CandlesNow(ctx context.Context) (now ServedCandles, err error) {
	topic, err := schemas.TopicNamed(schemas.TopicCandles)
	if err != nil {
		return now, err
	}
	var partitions []int32
	var closed []time.Time
	err = r.store.Conn().QueryRow(ctx, `SELECT groupArrayIf(log_partition, sink = ?), groupArrayIf(closed_until, sink = ?),
			toInt64(greatest(ifNull((SELECT max(inserted) FROM past_folds), 0), ifNull((SELECT max(until) FROM past_candles_before WHERE coin_id = '*'), 0))),
			toInt64(maxIf(next_offset, sink = ?))
		FROM ledger FINAL WHERE sink IN (?, ?) AND generation = 0`, topic.Name, topic.Name, schemas.TopicReferenceRaw, topic.Name, schemas.TopicReferenceRaw).Scan(&partitions, &closed, &now.Folded, &now.Fixings)
	if err != nil {
		return now, fmt.Errorf("reading how far candles are closed and folded: %w", history.Unavailable(err))
	}
	if len(partitions) > 0 {
		now.Closed = slices.Repeat([]time.Time{time.Unix(0, 0).UTC()}, int(topic.Partitions))
	}
	for i, partition := range partitions {
		if int(partition) < len(now.Closed) {
			now.Closed[partition] = closed[i].UTC()
		}
	}
	return now, nil
}

// CandlesServed reads what charts were made of at an instant, by any process, or by the context's replica; false where nothing is recorded of the instant or before.
func (r Reader) CandlesServed(ctx context.Context, at time.Time) (served ServedCandles, recorded bool, err error) {
	by, replica := servedBy(ctx)
	found, err := history.Select(ctx, r.store, "SELECT closed, folded, fixings FROM served_candles WHERE time <= fromUnixTimestamp64Nano(?, 'UTC')"+by+" ORDER BY time DESC, replica LIMIT 1",
		append([]any{at.UnixNano()}, replica...), func(rows driver.Rows) (s ServedCandles, err error) {
			return s, rows.Scan(&s.Closed, &s.Folded, &s.Fixings)
		})
	if err != nil || len(found) == 0 {
		return served, false, err
	}
	return found[0], true, nil
}

// CandlesServedByMinute is CandlesServed of when the minute of an instant began, or of the first that a process recorded, where that was later in the minute.
func (r Reader) CandlesServedByMinute(ctx context.Context, at time.Time) (served ServedCandles, recorded bool, err error) {
	by, replica := servedBy(ctx)
	minute := at.Truncate(time.Minute)
	args := slices.Concat([]any{minute.UnixNano(), at.UnixNano()}, replica, replica)
	// A process that answers records something each minute.
	found, err := history.Select(ctx, r.store, `WITH fromUnixTimestamp64Nano(?, 'UTC') AS minute, fromUnixTimestamp64Nano(?, 'UTC') AS until
		SELECT closed, folded FROM (
			SELECT time, replica, closed, folded FROM served_candles WHERE time <= minute`+by+` ORDER BY time DESC, replica LIMIT 1
			UNION ALL SELECT time, replica, closed, folded FROM served_candles WHERE time > minute AND time <= until`+by+`
				AND replica NOT IN (SELECT replica FROM served_candles WHERE time > minute - toIntervalDay(1) AND time <= minute) ORDER BY time LIMIT 1 BY replica
		) ORDER BY time DESC, replica LIMIT 1`, args, func(rows driver.Rows) (s ServedCandles, err error) { return s, rows.Scan(&s.Closed, &s.Folded) })
	if err != nil || len(found) == 0 {
		return served, false, err
	}
	return found[0], true, nil
}

// CandlesServedSince reads from which instant on it is recorded what charts were made of, with back-filled candles of a time of the tables
// (Unix nanoseconds) or later, and rates of currencies up to an offset or a later one; zero where it is not.
func (r Reader) CandlesServedSince(ctx context.Context, folded, fixings int64) (time.Time, error) {
	var since *time.Time
	if err := r.store.Conn().QueryRow(ctx, "SELECT minOrNull(time) FROM served_candles WHERE folded >= ? AND fixings >= ?", folded, fixings).Scan(&since); err != nil {
		return time.Time{}, fmt.Errorf("reading since when it is recorded what charts were made of: %w", history.Unavailable(err))
	}
	return orZero(since), nil
}
