package read

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/marketlog/marketlog/stream/history"
)

// HourlyCloses reads the close of each hour of coins, nil for all, that starts in [from, to), both whole hours, by coin id: the first of a list is that of from,
// and an hour without a price is 0. Live and back-filled hours count alike, as IntervalsAsOf has them when live minutes of every coin count up to Closed; coins
// without any are left out. Whether it is known what back-filled candles were is for KnownPast to say.
func (r Reader) HourlyCloses(ctx context.Context, coins []string, from, to time.Time, of CandlesAsOf) (map[string][]float64, error) {
	type hourClose struct {
		coin  string
		start time.Time
		close float64
	}
	upTo := func(closed time.Time) time.Time {
		if closed.After(to) {
			closed = to
		}
		return ceil(closed)
	}
	which, args := "", []any(nil)
	if coins != nil {
		which, args = "coin_id IN (?) AND ", []any{coins}
	}
	live := slices.Concat(args, []any{ceil(from), upTo(of.Closed)})
	where := which + "start >= ? AND (seconds = 60 AND start < ? OR seconds = 3600 AND start < ?)"
	args = append(args, ceil(from), upTo(of.ClosedAll), upTo(of.ClosedAll).Truncate(time.Hour))
	const columns = "coin_id, seconds, start, close, priced"
	backfilled := "SELECT " + columns + " FROM past_candles FINAL WHERE " + where
	if of.Folded != FoldedNow {
		// What is there since then is newer than what was before.
		backfilled = "SELECT " + columns + " FROM (SELECT " + columns + ", since FROM past_candles FINAL WHERE " + where + ` AND since <= ?
			UNION ALL SELECT ` + columns + ", since FROM past_candles_before FINAL WHERE " + where + ` AND since <= ? AND until > ?)
			ORDER BY since DESC LIMIT 1 BY coin_id, seconds, start`
		args = slices.Concat(args, []any{uint64(of.Folded)}, args, []any{uint64(of.Folded), uint64(of.Folded)})
	}
	// The venues' own hour, unless it is folded of 60 minutes of which some are live. Each minute is a bit, since one may be there live and back-filled.
	closes, err := history.Select(ctx, r.store, `SELECT coin_id, toStartOfHour(start) AS hour,
			if(countIf(seconds = 3600) > 0 AND NOT (countIf(live) > 0 AND bitCount(groupBitOrIf(bitShiftLeft(toUInt64(1), toMinute(start)), seconds = 60)) = 60),
				anyIf(close, seconds = 3600), argMaxIf(close, toUnixTimestamp(start) * 2 + live, seconds = 60))
		FROM (
			SELECT coin_id, seconds, start, close, toUInt8(0) AS live FROM (`+backfilled+`) WHERE priced
			UNION ALL SELECT coin_id, toUInt32(60), start, close, toUInt8(1) FROM candles_1m FINAL WHERE `+which+`start >= ? AND start < ?
		) GROUP BY coin_id, hour`, slices.Concat(args, live),
		func(rows driver.Rows) (c hourClose, err error) {
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
		byCoin[c.coin][int(c.start.Sub(from)/time.Hour)] = c.close
	}
	return byCoin, nil
}
