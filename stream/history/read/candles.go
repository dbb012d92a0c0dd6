package read

import (
	"context"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/shopspring/decimal"

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

func ceil(t time.Time) time.Time {
	return t.Add(time.Second - time.Nanosecond).Truncate(time.Second)
}
