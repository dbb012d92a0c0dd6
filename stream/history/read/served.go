package read

import (
	"context"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/history"
)

// servedSoon is within what time of an instant most partitions were read on: nearly each second has prices.
const servedSoon = 10 * time.Minute

// replicaKey is that of the replica in a context.
type replicaKey struct{}

// OfReplica returns a context in which what was served at an instant is what one replica served, by its name: else what any of them did.
func OfReplica(ctx context.Context, replica string) context.Context {
	return context.WithValue(ctx, replicaKey{}, replica)
}

// ReplicaOf returns the replica of a context; empty for any.
func ReplicaOf(ctx context.Context) string {
	replica, _ := ctx.Value(replicaKey{}).(string)
	return replica
}

// servedBy is the condition on rows of what was served, with its argument, that they are of the context's replica.
func servedBy(ctx context.Context) (condition string, args []any) {
	if replica := ReplicaOf(ctx); replica != "" {
		return " AND replica = ?", []any{replica}
	}
	return "", nil
}

// ServedPrices is how far prices.v1 had been read at an instant by any process that answered: by partition the offset in ticks.v1 of what
// caused the newest record. A partition from which nothing had been read is not among them. Nil means that nothing is recorded of the
// instant or before.
type ServedPrices map[int32]int64

// Had reports whether what a record of prices.v1 was caused by had been read.
func (s ServedPrices) Had(mark *eventsv1.Mark) bool {
	offset, ok := s[mark.Partition]
	return len(s) == 0 || ok && mark.Offset <= offset
}

// columns are the partitions and their offsets, as arrays of SQL.
func (s ServedPrices) columns() (partitions, offsets clickhouse.ArraySet) {
	for partition, offset := range s {
		partitions, offsets = append(partitions, partition), append(offsets, offset)
	}
	return partitions, offsets
}

// PricesServed reads how far prices had been served at an instant of the clock of those who answer.
func (r Reader) PricesServed(ctx context.Context, at time.Time) (ServedPrices, error) {
	topic, err := schemas.TopicNamed(schemas.TopicPrices)
	if err != nil {
		return nil, err
	}
	since := at.Add(-servedSoon).UnixNano()
	served, err := r.pricesServed(ctx, since, at.UnixNano())
	if err == nil && len(served) < int(topic.Partitions) {
		served, err = r.pricesServed(ctx, 0, at.UnixNano())
	}
	if err != nil {
		return nil, fmt.Errorf("reading how far prices were served by %s: %w", at.UTC().Format(time.RFC3339Nano), err)
	}
	return served, nil
}

func (r Reader) pricesServed(ctx context.Context, from, to int64) (served ServedPrices, err error) {
	type position struct {
		partition int32
		offset    int64
	}
	by, replica := servedBy(ctx)
	positions, err := history.Select(ctx, r.store, `SELECT partition, max(ticks_offset) FROM served_prices
		WHERE time > fromUnixTimestamp64Nano(?, 'UTC') AND time <= fromUnixTimestamp64Nano(?, 'UTC')`+by+` GROUP BY partition`,
		append([]any{from, to}, replica...), func(rows driver.Rows) (p position, err error) {
			err = rows.Scan(&p.partition, &p.offset)
			return p, err
		})
	for _, p := range positions {
		if served == nil {
			served = ServedPrices{}
		}
		served[p.partition] = p.offset
	}
	return served, err
}

// ServedMinute is the end of a minute of the whole market, and the instant from which on a process served it.
type ServedMinute struct{ From, End time.Time }

// MinutesServed reads which minutes of the whole market were served since an instant, in the order of time; of one that several processes
// served only that the first of them did.
func (r Reader) MinutesServed(ctx context.Context, since time.Time) ([]ServedMinute, error) {
	minutes, err := history.Select(ctx, r.store, `SELECT min(time) AS first, minute FROM served_minutes
		WHERE time > fromUnixTimestamp64Nano(?, 'UTC') GROUP BY minute ORDER BY first`,
		[]any{since.UnixNano()}, func(rows driver.Rows) (m ServedMinute, err error) {
			err = rows.Scan(&m.From, &m.End)
			return m, err
		})
	if err != nil {
		return nil, fmt.Errorf("reading which minutes were served: %w", err)
	}
	return minutes, nil
}

// ServedWritten reads up to which log time all is kept that was recorded of what was served; zero for nothing.
func (r Reader) ServedWritten(ctx context.Context) (time.Time, error) {
	progress, err := r.store.Progress(ctx, schemas.TopicServed, 0)
	if err != nil {
		return time.Time{}, err
	}
	if p, ok := progress[0]; ok {
		return time.Unix(0, p.LogTime).UTC(), nil
	}
	return time.Time{}, nil
}

// MinuteServed reads the end of the minute of a topic that is folded by the minute up to which any process served it at an instant, the last
// of all; zero where nothing is recorded of the instant or before.
func (r Reader) MinuteServed(ctx context.Context, topic string, at time.Time) (time.Time, error) {
	// Of the steps of some minutes the last minute counts, since processes read at paces of their own; of a time without steps the last one.
	by, replica := servedBy(ctx)
	for _, since := range []time.Time{at.Add(-servedSoon), {}} {
		query, args := `SELECT maxOrNull(read) FROM (SELECT read FROM served_topics WHERE topic = ? AND time > fromUnixTimestamp64Nano(?, 'UTC')
			AND time <= fromUnixTimestamp64Nano(?, 'UTC')`+by+` ORDER BY time DESC LIMIT ?)`, []any{topic}
		if topic == schemas.TopicMarkets {
			query, args = `SELECT maxOrNull(read) FROM (SELECT toInt64(minute) AS read FROM served_minutes WHERE time > fromUnixTimestamp64Nano(?, 'UTC')
			AND time <= fromUnixTimestamp64Nano(?, 'UTC')`+by+` ORDER BY time DESC LIMIT ?)`, nil
		}
		from, most := since.UnixNano(), 1000
		if since.IsZero() {
			from, most = 0, 1
		}
		var read *int64
		if err := r.store.Conn().QueryRow(ctx, query, append(append(args, from, at.UnixNano()), append(replica, most)...)...).Scan(&read); err != nil {
			return time.Time{}, fmt.Errorf("reading up to which minute %s was served by %s: %w", topic, at.UTC().Format(time.RFC3339Nano), history.Unavailable(err))
		}
		if read != nil {
			return time.Unix(*read, 0).UTC(), nil
		}
	}
	return time.Time{}, nil
}

// MinuteServedSince reads from which instant on it is recorded up to which minute a topic was served; zero where nothing is.
func (r Reader) MinuteServedSince(ctx context.Context, topic string) (time.Time, error) {
	query, args := "SELECT minOrNull(time) FROM served_topics WHERE topic = ?", []any{topic}
	if topic == schemas.TopicMarkets {
		query, args = "SELECT minOrNull(time) FROM served_minutes", nil
	}
	var since *time.Time
	if err := r.store.Conn().QueryRow(ctx, query, args...).Scan(&since); err != nil {
		return time.Time{}, fmt.Errorf("reading since when it is recorded how %s was served: %w", topic, history.Unavailable(err))
	}
	if since == nil {
		return time.Time{}, nil
	}
	return since.UTC(), nil
}

// SourcesServed reads of which records of reference.raw.v1 answers of currencies were made at an instant, by the process that had read most of
// them; nil where nothing is recorded of the instant or before.
func (r Reader) SourcesServed(ctx context.Context, at time.Time) (*eventsv1.ServedSources, error) {
	return r.sourcesServed(ctx, at, "last", -1)
}

// CoinsServed is SourcesServed of answers of coins.
func (r Reader) CoinsServed(ctx context.Context, at time.Time) (*eventsv1.ServedSources, error) {
	return r.sourcesServed(ctx, at, "coins", 1)
}

// sourcesServed reads of which records answers were made by a column, from its least value on that states anything.
func (r Reader) sourcesServed(ctx context.Context, at time.Time, column string, least int64) (*eventsv1.ServedSources, error) {
	by, replica := servedBy(ctx)
	for _, window := range []struct {
		since int64
		order string
	}{
		{at.Add(-servedSoon).UnixNano(), column + " DESC, clock DESC, time DESC"},
		{0, "time DESC, " + column + " DESC"},
	} {
		found, err := history.Select(ctx, r.store, `SELECT first, last, coins, toUnixTimestamp64Nano(clock) FROM served_sources
			WHERE time > fromUnixTimestamp64Nano(?, 'UTC') AND time <= fromUnixTimestamp64Nano(?, 'UTC') AND `+column+" >= ?"+by+" ORDER BY "+window.order+" LIMIT 1",
			append([]any{window.since, at.UnixNano(), least}, replica...), func(rows driver.Rows) (*eventsv1.ServedSources, error) {
				s := &eventsv1.ServedSources{}
				return s, rows.Scan(&s.First, &s.Last, &s.Coins, &s.Clock)
			})
		if err != nil {
			return nil, fmt.Errorf("reading what of the sources was served by %s: %w", at.UTC().Format(time.RFC3339Nano), err)
		}
		if len(found) > 0 {
			return found[0], nil
		}
	}
	return nil, nil
}

// SourcesServedSince reads from which instant on it is recorded of what answers of currencies were made; zero where nothing is.
func (r Reader) SourcesServedSince(ctx context.Context) (time.Time, error) {
	return r.servedSince(ctx, "served_sources")
}

// CoinsServedSince reads from which instant on answers of coins were made of no record before an offset; zero where nothing is recorded of such.
func (r Reader) CoinsServedSince(ctx context.Context, first int64) (time.Time, error) {
	var since *time.Time
	if err := r.store.Conn().QueryRow(ctx, "SELECT minOrNull(time) FROM served_sources WHERE coins > 0 AND first >= ?", first).Scan(&since); err != nil {
		return time.Time{}, fmt.Errorf("reading since when it is recorded what of the coins was served: %w", history.Unavailable(err))
	}
	return orZero(since), nil
}

// PegsServed reads by which statistics stablecoins were scored at an instant, those that were read last; nil where nothing is recorded of the
// instant or before.
func (r Reader) PegsServed(ctx context.Context, at time.Time) (*eventsv1.ServedPegs, error) {
	by, replica := servedBy(ctx)
	found, err := history.Select(ctx, r.store, `SELECT coins.id, coins.mean_bps, coins.p95_bps, coins.samples FROM served_pegs
		WHERE time <= fromUnixTimestamp64Nano(?, 'UTC')`+by+` ORDER BY time DESC, replica LIMIT 1`, append([]any{at.UnixNano()}, replica...),
		func(rows driver.Rows) (*eventsv1.ServedPegs, error) {
			var ids []string
			var means, p95s []float64
			var samples []uint32
			err := rows.Scan(&ids, &means, &p95s, &samples)
			served := &eventsv1.ServedPegs{}
			for i := range ids {
				served.Coins = append(served.Coins, &eventsv1.ServedPeg{CoinId: ids[i], MeanBps: means[i], P95Bps: p95s[i], Samples: samples[i]})
			}
			return served, err
		})
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading by which statistics stablecoins were scored at %s: %w", at.UTC().Format(time.RFC3339Nano), err)
	case len(found) == 0:
		return nil, nil
	}
	return found[0], nil
}

// PegsServedSince reads from which instant on it is recorded by which statistics stablecoins were scored; zero where nothing is.
func (r Reader) PegsServedSince(ctx context.Context) (time.Time, error) {
	return r.servedSince(ctx, "served_pegs")
}

// FiguresServed reads with what of their candles rows of coins were served at an instant, by the process that last had something new: the steps from its
// last whole one on, in the order of time; none where nothing is recorded of the instant or before.
func (r Reader) FiguresServed(ctx context.Context, at time.Time) ([]*eventsv1.ServedFigures, error) {
	by, replica := servedBy(ctx)
	found, err := history.Select(ctx, r.store, `WITH fromUnixTimestamp64Nano(?, 'UTC') AS until,
			(SELECT argMax(replica, (time, replica)) FROM served_figures WHERE time <= until`+by+`) AS newest,
			(SELECT max(time) FROM served_figures WHERE replica = newest AND whole AND time <= until) AS since
		SELECT toUnixTimestamp(minute), whole, coins.id, coins.day_ago, coins.high, coins.low, coins.whole, coins.highest, arrayMap(t -> toUnixTimestamp64Nano(t), coins.highest_at),
			coins.lowest, arrayMap(t -> toUnixTimestamp64Nano(t), coins.lowest_at), coins.days30_ago, coins.days60_ago, coins.days200_ago, coins.year_ago
		FROM served_figures FINAL WHERE replica = newest AND time >= since AND time <= until ORDER BY time`, append([]any{at.UnixNano()}, replica...),
		func(rows driver.Rows) (*eventsv1.ServedFigures, error) {
			var minute uint32
			var ids []string
			var wholes []bool
			var highAt, lowAt []int64
			var of [9][]float64
			served := &eventsv1.ServedFigures{}
			err := rows.Scan(&minute, &served.Whole, &ids, &of[0], &of[1], &of[2], &wholes, &of[3], &highAt, &of[4], &lowAt, &of[5], &of[6], &of[7], &of[8])
			served.Time = int64(minute) * int64(time.Second)
			for i, id := range ids {
				served.Coins = append(served.Coins, &eventsv1.ServedFigure{CoinId: id, DayAgo: of[0][i], High: of[1][i], Low: of[2][i], Whole: wholes[i],
					Highest: of[3][i], HighestAt: highAt[i], Lowest: of[4][i], LowestAt: lowAt[i],
					Days30Ago: of[5][i], Days60Ago: of[6][i], Days200Ago: of[7][i], YearAgo: of[8][i]})
			}
			return served, err
		})
	if err != nil {
		return nil, fmt.Errorf("reading with what of their candles coins were served at %s: %w", at.UTC().Format(time.RFC3339Nano), err)
	}
	return found, nil
}

// FiguresServedSince reads from which instant on it is recorded with what of their candles rows of coins were served; zero where nothing is.
func (r Reader) FiguresServedSince(ctx context.Context) (time.Time, error) {
	return r.servedSince(ctx, "served_figures")
}

// ServedSeries is what series of yields were read from at an instant, besides the minute that was served.
type ServedSeries struct {
	// Written is the end of the last minute of rates.v1 that the tables had whole, Unix nanoseconds; 0 where that was not known.
	Written int64
	// Past is the offset of the last record of rates.raw.v1 of which they had what a source told of the past; -1 for none.
	Past int64
}

// YieldsWritten reads before which offsets of rates.v1 and of rates.raw.v1 the tables have all records; 0 for none.
func (r Reader) YieldsWritten(ctx context.Context) (folded, raw int64, err error) {
	row := r.store.Conn().QueryRow(ctx, `SELECT toInt64(maxIf(next_offset, sink = ?)), toInt64(maxIf(next_offset, sink = ?)) FROM ledger FINAL
		WHERE sink IN (?, ?) AND generation = 0 AND log_partition = 0`, schemas.TopicRates, schemas.TopicRatesRaw, schemas.TopicRates, schemas.TopicRatesRaw)
	if err := row.Scan(&folded, &raw); err != nil {
		return 0, 0, fmt.Errorf("reading how far the tables of yields are: %w", history.Unavailable(err))
	}
	return folded, raw, nil
}

// YieldsTold reads the offset of the last record of rates.raw.v1 before one of which the tables have what a source told of the past; -1 for none.
func (r Reader) YieldsTold(ctx context.Context, before int64) (int64, error) {
	var last *int64
	if err := r.store.Conn().QueryRow(ctx, "SELECT maxOrNull(log_offset) FROM rates_past WHERE log_offset < ?", before).Scan(&last); err != nil {
		return 0, fmt.Errorf("reading up to which record yields of the past are kept: %w", history.Unavailable(err))
	}
	if last == nil {
		return -1, nil
	}
	return *last, nil
}

// SeriesServed reads what series of yields were read from at an instant, by any process; false where nothing is recorded of the instant or before.
func (r Reader) SeriesServed(ctx context.Context, at time.Time) (served ServedSeries, recorded bool, err error) {
	by, replica := servedBy(ctx)
	found, err := history.Select(ctx, r.store, `SELECT toInt64(toUnixTimestamp(written)) * 1000000000, past FROM served_series
		WHERE time <= fromUnixTimestamp64Nano(?, 'UTC')`+by+` ORDER BY time DESC, replica LIMIT 1`,
		append([]any{at.UnixNano()}, replica...), func(rows driver.Rows) (s ServedSeries, err error) { return s, rows.Scan(&s.Written, &s.Past) })
	if err != nil {
		return served, false, fmt.Errorf("reading what series of yields were read from at %s: %w", at.UTC().Format(time.RFC3339Nano), err)
	}
	if len(found) == 0 {
		return served, false, nil
	}
	return found[0], true, nil
}

// SeriesServedSince reads from which instant on, at or after one, it is recorded that series of yields were read from at least so much; zero where nothing is.
func (r Reader) SeriesServedSince(ctx context.Context, from time.Time, least ServedSeries) (time.Time, error) {
	var since *time.Time
	err := r.store.Conn().QueryRow(ctx, "SELECT minOrNull(time) FROM served_series WHERE time >= fromUnixTimestamp64Nano(?, 'UTC') AND toUnixTimestamp(written) >= ? AND past >= ?",
		max(from.UnixNano(), 0), least.Written/int64(time.Second), least.Past).Scan(&since)
	if err != nil {
		return time.Time{}, fmt.Errorf("reading since when it is recorded what series of yields were read from: %w", history.Unavailable(err))
	}
	return orZero(since), nil
}

func (r Reader) servedSince(ctx context.Context, table string) (time.Time, error) {
	var since *time.Time
	if err := r.store.Conn().QueryRow(ctx, "SELECT minOrNull(time) FROM "+table).Scan(&since); err != nil {
		return time.Time{}, fmt.Errorf("reading since when %s has what was served: %w", table, history.Unavailable(err))
	}
	if since == nil {
		return time.Time{}, nil
	}
	return since.UTC(), nil
}
