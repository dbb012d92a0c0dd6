package read

import (
	"context"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/marketlog/marketlog/schemas"
	"github.com/marketlog/marketlog/stream/history"
)

// mostPegMinutes bounds the minutes that episodes are found in: almost two years of a coin that never holds its peg.
const mostPegMinutes = 1_000_000

// PegEpisodes reads when a stablecoin had lost its peg in the live minutes that ended in (from, to], oldest first, by
// the rule of schemas.PegEpisodes. One that began before shows from there on.
func (r Reader) PegEpisodes(ctx context.Context, coinID string, from, to time.Time) ([]schemas.PegEpisode, error) {
	// A minute that held the peg, after one that did, changes nothing, and almost all are such.
	points, err := history.Select(ctx, r.store, `SELECT time, deviation_bps
		FROM (
			SELECT time, deviation_bps, lagInFrame(abs(deviation_bps)) OVER (ORDER BY time ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS before
			FROM peg_minutes WHERE coin_id = ? AND time > ? AND time <= ?
		) WHERE abs(deviation_bps) >= ? OR before >= ? ORDER BY time LIMIT ?`,
		[]any{coinID, from, to, schemas.PegHeldBps, schemas.PegHeldBps, mostPegMinutes},
		func(rows driver.Rows) (p schemas.PegPoint, err error) {
			err = rows.Scan(&p.Time, &p.DeviationBps)
			p.Time = p.Time.UTC()
			return p, err
		})
	if err != nil {
		return nil, fmt.Errorf("reading when %s lost its peg: %w", coinID, err)
	}
	return schemas.PegEpisodes(points), nil
}
