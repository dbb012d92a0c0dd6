package history

import (
	"context"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/marketlog/marketlog/schemas"
)

const (
	day = 24 * time.Hour
	// tailMost is how long before the end of its window CandleTail begins at the earliest: a minute
	// is closed within seconds, unless the fold of candles stands still.
	tailMost = day
)

// intervals are the sources of candles, by their length.
var intervals = map[time.Duration]string{
	time.Minute: "SELECT start, open, high, low, close, volume, volume_usd, trades, toUInt16(1), start FROM candles_1m FINAL",
	time.Hour:   "SELECT start, open, high, low, close, volume, volume_usd, trades, minutes, newest FROM candles_1h",
	day:         "SELECT start, open, high, low, close, volume, volume_usd, trades, minutes, newest FROM candles_1d",
}

// Intervals reads the candles of a coin that start in [from, to), oldest first, in intervals of a
// minute, an hour or a day. They are folded from closed minutes: the interval under way is there as
// far as its minutes are closed.
func (s *Store) Intervals(ctx context.Context, coinID string, interval time.Duration, from, to time.Time) ([]schemas.Candle, error) {
	source, ok := intervals[interval]
	if !ok {
		return nil, fmt.Errorf("reading candles of %s: there are none of %s", coinID, interval)
	}
	candles, err := readRecords(ctx, s.conn, source+" WHERE coin_id = ? AND start >= ? AND start < ? ORDER BY start",
		[]any{coinID, ceil(from), ceil(to)},
		func(rows driver.Rows) (c schemas.Candle, err error) {
			var minutes uint16
			err = rows.Scan(&c.Start, &c.Open, &c.High, &c.Low, &c.Close, &c.Volume, &c.VolumeUSD, &c.Trades, &minutes, &c.Newest)
			c.Start, c.Newest, c.Minutes = c.Start.UTC(), c.Newest.UTC(), int(minutes)
			return c, err
		})
	if err != nil {
		return nil, fmt.Errorf("reading candles of %s: %w", coinID, err)
	}
	return candles, nil
}

// CandleTail folds the published prices of a coin whose seconds lie in [from, to) into intervals of a
// step of whole seconds, for what no closed minute holds yet. Such candles have no volume. No more
// than the last day is folded.
func (s *Store) CandleTail(ctx context.Context, coinID string, step time.Duration, from, to time.Time) ([]schemas.Candle, error) {
	if earliest := to.Add(-tailMost); from.Before(earliest) {
		from = earliest
	}
	candles, err := readRecords(ctx, s.conn, `SELECT toStartOfInterval(p.time, toIntervalSecond(?), 'UTC') AS start,
		argMin(p.price, p.time), max(p.price), min(p.price), argMax(p.price, p.time), max(p.time)
		FROM prices AS p FINAL WHERE p.coin_id = ? AND p.time >= ? AND p.time < ? AND p.reason = '' GROUP BY start ORDER BY start`,
		[]any{int64(step / time.Second), coinID, ceil(from), ceil(to)},
		func(rows driver.Rows) (c schemas.Candle, err error) {
			err = rows.Scan(&c.Start, &c.Open, &c.High, &c.Low, &c.Close, &c.Newest)
			c.Start, c.Newest = c.Start.UTC(), c.Newest.UTC()
			return c, err
		})
	if err != nil {
		return nil, fmt.Errorf("reading the latest prices of %s: %w", coinID, err)
	}
	return candles, nil
}
