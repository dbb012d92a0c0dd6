package read

import (
	"context"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/marketlog/marketlog/stream/history"
)

// HourlyCloses reads the close of each hour that starts in [from, to), both whole hours, by coin id: the first of a
// list is that of from, and an hour without a price is 0. Live and back-filled hours count alike; coins without any
// are left out.
func (r Reader) HourlyCloses(ctx context.Context, from, to time.Time) (map[string][]float64, error) {
	type hourClose struct {
		coin  string
		start time.Time
		close float64
	}
	closes, err := history.Select(ctx, r.store, `SELECT coin_id, start, close FROM default.v_candles_1h WHERE start >= ? AND start < ?`,
		[]any{from, to}, func(rows driver.Rows) (c hourClose, err error) {
			err = rows.Scan(&c.coin, &c.start, &c.close)
			return c, err
		})
	if err != nil {
		return nil, fmt.Errorf("reading the closes of the hours from %s: %w", from.UTC().Format(time.RFC3339), err)
	}
	hours := int(to.Sub(from) / time.Hour)
	byCoin := map[string][]float64{}
	for _, c := range closes {
		if byCoin[c.coin] == nil {
			byCoin[c.coin] = make([]float64, hours)
		}
		if i := int(c.start.Sub(from) / time.Hour); i >= 0 && i < hours {
			byCoin[c.coin][i] = c.close
		}
	}
	return byCoin, nil
}
