package read

import (
	"context"
	"fmt"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/marketlog/marketlog/schemas"
	"github.com/marketlog/marketlog/stream/history"
)

// BackfilledExtremes finds the highest and the lowest price in the back-filled days and hours of each coin, by coin id.
func (r Reader) BackfilledExtremes(ctx context.Context) (map[string]schemas.Extremes, error) {
	closed, err := r.ClosedUntil(ctx)
	if err != nil {
		return nil, err
	}
	type coinExtremes struct {
		coin string
		schemas.Extremes
	}
	all, err := history.Select(ctx, r.store, `SELECT coin_id, max(high) AS highest, argMin(start, (-high, start)), min(low) AS lowest, argMin(start, (low, start))
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
func (r Reader) BackfillNext(ctx context.Context) (next int64, err error) {
	if err := r.store.Conn().QueryRow(ctx, "SELECT toInt64(bitShiftRight(max(version), 64)) FROM past_folds").Scan(&next); err != nil {
		return 0, fmt.Errorf("finding what was folded last of the past: %w", history.Unavailable(err))
	}
	return next, nil
}
