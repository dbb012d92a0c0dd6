package history

import (
	"context"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/marketlog/marketlog/schemas"
)

// pastCandles reads the back-filled candles of coins, of all where none is named, by coin id and oldest first: those of one
// length that start in one of the spans and ended by a time.
func (s *Store) pastCandles(ctx context.Context, coinIDs []string, length time.Duration, spans []span, closed time.Time) (map[string][]schemas.Candle, error) {
	starts, args := startsIn(spans)
	of := ""
	if coinIDs != nil {
		of, args = "coin_id IN (?) AND ", append([]any{coinIDs}, args...)
	}
	args = append(args, uint32(length/time.Second), closed.Add(-length))
	byCoin := map[string][]schemas.Candle{}
	rows, err := s.conn.Query(ctx, `SELECT coin_id, start, open, high, low, close, volume, volume_usd FROM past_candles FINAL
		WHERE `+of+starts+` AND seconds = ? AND start <= ? AND priced ORDER BY coin_id, start`, args...)
	if err != nil {
		return nil, fmt.Errorf("reading back-filled candles of %v: %w", coinIDs, unavailable(err))
	}
	defer rows.Close()
	for rows.Next() {
		var coin string
		c := schemas.Candle{Minutes: int(length / time.Minute), Origin: schemas.OriginBackfill}
		if err := rows.Scan(&coin, &c.Start, &c.Open, &c.High, &c.Low, &c.Close, &c.Volume, &c.VolumeUSD); err != nil {
			return nil, fmt.Errorf("reading back-filled candles of %v: %w", coinIDs, err)
		}
		c.Start = c.Start.UTC()
		c.Newest = c.Start.Add(length - time.Minute)
		byCoin[coin] = append(byCoin[coin], c)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("reading back-filled candles of %v: %w", coinIDs, unavailable(err))
	}
	return byCoin, nil
}

// BackfilledExtremes finds the highest and the lowest price in the back-filled days and hours of each coin, by coin id.
func (s *Store) BackfilledExtremes(ctx context.Context) (map[string]schemas.Extremes, error) {
	closed, err := s.ClosedUntil(ctx)
	if err != nil {
		return nil, err
	}
	type coinExtremes struct {
		coin string
		schemas.Extremes
	}
	all, err := readRecords(ctx, s.conn, `SELECT coin_id, max(high) AS highest, argMin(start, (-high, start)), min(low) AS lowest, argMin(start, (low, start))
		FROM past_candles FINAL WHERE seconds IN (3600, 86400) AND priced AND start <= toDateTime(?) - seconds GROUP BY coin_id`, []any{closed},
		func(rows driver.Rows) (e coinExtremes, err error) {
			err = rows.Scan(&e.coin, &e.High, &e.HighAt, &e.Low, &e.LowAt)
			e.HighAt, e.LowAt = e.HighAt.UTC(), e.LowAt.UTC()
			return e, err
		})
	if err != nil {
		return nil, fmt.Errorf("finding the extremes of all coins: %w", err)
	}
	extremes := make(map[string]schemas.Extremes, len(all))
	for _, e := range all {
		extremes[e.coin] = e.Extremes
	}
	return extremes, nil
}

// BackfillNext is a number that grows whenever back-filled candles were folded.
func (s *Store) BackfillNext(ctx context.Context) (next int64, err error) {
	if err := s.conn.QueryRow(ctx, "SELECT toInt64(bitShiftRight(max(version), 64)) FROM past_folds").Scan(&next); err != nil {
		return 0, fmt.Errorf("finding what was folded last of the past: %w", unavailable(err))
	}
	return next, nil
}
