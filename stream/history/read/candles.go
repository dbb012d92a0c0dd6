package read

import (
	"context"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/shopspring/decimal"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"

	"github.com/marketlog/marketlog/stream/history"
)

// Candles reads the closed minutes of a coin that start in [from, to), oldest first.
func (r Reader) Candles(ctx context.Context, coinID string, from, to time.Time) ([]*eventsv1.Candle, error) {
	// The comparisons are by whole seconds, so a bound within one is rounded up.
	candles, err := history.Select(ctx, r.store, `SELECT coin_id, start, open, high, low, close, volume, volume_usd, trades
		FROM candles_1m FINAL WHERE coin_id = ? AND start >= ? AND start < ? ORDER BY start`,
		[]any{coinID, ceil(from), ceil(to)},
		func(rows driver.Rows) (*eventsv1.Candle, error) {
			c := &eventsv1.Candle{}
			var start time.Time
			var volume decimal.Decimal
			if err := rows.Scan(&c.CoinId, &start, &c.Open, &c.High, &c.Low, &c.Close, &volume, &c.VolumeUsd, &c.Trades); err != nil {
				return nil, err
			}
			c.Start, c.Volume = start.UnixNano(), volume.String()
			return c, nil
		})
	if err != nil {
		return nil, fmt.Errorf("reading candles of %s: %w", coinID, err)
	}
	return candles, nil
}

// ClosedCandles hands over the candles of an interval, folded from published prices, that end after one second and by another
// (Unix), of the coins with these ids or of all, by end and coin, at most so many, with the partition of candles.v1 of each. The
// interval divides a day. Whoever asks knows that all minutes up to the end are in the store.
func (r Reader) ClosedCandles(ctx context.Context, interval time.Duration, after, until int64, coins []string, most int, visit func(coinID string, partition int32, c schemas.Candle)) error {
	step := int64(interval / time.Second)
	usd := "toFloat64(sum(toDecimal256(volume_usd, 18)))" // a sum of floats depends on its order
	if interval == time.Minute {
		usd = "any(volume_usd)"
	}
	query, args := `SELECT coin_id, toStartOfInterval(m.start, toIntervalSecond(?), 'UTC') AS began, argMin(open, m.start), max(high), min(low), argMax(close, m.start),
		sum(volume), `+usd+`, sum(trades), toUInt16(count()), max(m.start), any(log_partition)
		FROM candles_1m AS m FINAL WHERE m.start >= toDateTime(?, 'UTC') AND m.start < toDateTime(?, 'UTC')`, []any{step, max(0, after-after%step), max(0, until-until%step)}
	if coins != nil {
		query, args = query+" AND coin_id IN (?)", append(args, coins)
	}
	rows, err := r.store.Conn().Query(ctx, query+" GROUP BY coin_id, began ORDER BY began, coin_id LIMIT ?", append(args, most)...)
	if err != nil {
		return fmt.Errorf("reading candles from %d to %d: %w", after, until, history.Unavailable(err))
	}
	defer rows.Close()
	for rows.Next() {
		c := schemas.Candle{Origin: schemas.OriginLive}
		var coinID string
		var minutes uint16
		var partition int32
		if err := rows.Scan(&coinID, &c.Start, &c.Open, &c.High, &c.Low, &c.Close, &c.Volume, &c.VolumeUSD, &c.Trades, &minutes, &c.Newest, &partition); err != nil {
			return fmt.Errorf("reading candles from %d to %d: %w", after, until, err)
		}
		c.Start, c.Newest, c.Minutes = c.Start.UTC(), c.Newest.UTC(), int(minutes)
		visit(coinID, partition, c)
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("reading candles from %d to %d: %w", after, until, history.Unavailable(err))
	}
	return nil
}

// CandlesView names the table of minutes that is live: another one since a replay has put another in its place.
func (r Reader) CandlesView(ctx context.Context) (string, error) {
	return r.store.TableID(ctx, "candles_1m")
}

func ceil(t time.Time) time.Time {
	return t.Add(time.Second - time.Nanosecond).Truncate(time.Second)
}
