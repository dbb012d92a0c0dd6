package history

import (
	"context"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// closesWithin is how long before an instant a candle may end that still tells its price. A minute is
// there where a coin has one; a back-filled day of minutes may end just short of it, and an hour tells.
const closesWithin = time.Hour

// ClosesAt reads what each coin cost at an instant, by coin id: the close of its last candle of a minute
// or an hour that ended by then and no more than an hour before. Coins without one are left out.
func (s *Store) ClosesAt(ctx context.Context, at time.Time) (map[string]float64, error) {
	to := at.Truncate(time.Minute)
	from := to.Add(-closesWithin)
	type coinClose struct {
		coin  string
		close float64
	}
	// The views of analysts hold live and back-filled candles alike.
	closes, err := readRecords(ctx, s.conn, `SELECT coin_id, argMax(close, ended) FROM (
			SELECT coin_id, close, start + toIntervalMinute(1) AS ended FROM default.v_candles_1m WHERE start > ? AND start <= ?
			UNION ALL
			SELECT coin_id, close, start + toIntervalHour(1) AS ended FROM default.v_candles_1h WHERE start > ? AND start <= ?
		) GROUP BY coin_id`,
		[]any{from.Add(-time.Minute), to.Add(-time.Minute), from.Add(-time.Hour), to.Add(-time.Hour)},
		func(rows driver.Rows) (c coinClose, err error) {
			err = rows.Scan(&c.coin, &c.close)
			return c, err
		})
	if err != nil {
		return nil, fmt.Errorf("reading the closes at %s: %w", at.UTC().Format(time.RFC3339), err)
	}
	byCoin := make(map[string]float64, len(closes))
	for _, c := range closes {
		byCoin[c.coin] = c.close
	}
	return byCoin, nil
}
