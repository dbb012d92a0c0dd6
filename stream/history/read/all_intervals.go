package read

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/marketlog/marketlog/schemas"
	"github.com/marketlog/marketlog/stream/history"
	"github.com/marketlog/marketlog/stream/history/past"
)

// AllIntervals reads what Intervals does, of every coin, by coin id; coins without any are left out. It holds all minutes of
// the span in memory: ask for an hour or a few at once.
func (r Reader) AllIntervals(ctx context.Context, interval time.Duration, from, to time.Time) (map[string][]schemas.Candle, error) {
	if _, ok := history.LiveCandles[interval]; !ok {
		return nil, fmt.Errorf("reading the candles of all coins: there are none of %s", interval)
	}
	closed, err := r.ClosedUntil(ctx) // before the live candles, see Intervals
	if err != nil {
		return nil, err
	}
	live, err := r.allLive(ctx, interval, from, to)
	if err != nil {
		return nil, err
	}
	if !from.Before(closed) {
		return live, nil
	}
	backfilled, err := past.Candles(ctx, r.store, nil, interval, []past.Span{{From: from, To: to}}, closed)
	if err != nil {
		return nil, err
	}
	folded := map[string][]schemas.Candle{}
	if interval > time.Minute {
		if folded, err = r.allFolded(ctx, interval, past.Span{From: from.Truncate(interval), To: to.Add(interval - time.Nanosecond).Truncate(interval)}, closed); err != nil {
			return nil, err
		}
	}
	all := map[string][]schemas.Candle{}
	for _, candles := range []map[string][]schemas.Candle{live, backfilled, folded} {
		for coin := range candles {
			if all[coin] == nil {
				all[coin] = fillIn(interval, live[coin], backfilled[coin], folded[coin])
			}
		}
	}
	for coin, candles := range all { // of the folded ones, some may begin outside
		all[coin] = slices.DeleteFunc(candles, func(c schemas.Candle) bool { return c.Start.Before(from) || !c.Start.Before(to) })
	}
	maps.DeleteFunc(all, func(_ string, candles []schemas.Candle) bool { return len(candles) == 0 })
	return all, nil
}

// allFolded folds the live and the back-filled minutes of the coins that have back-filled ones.
func (r Reader) allFolded(ctx context.Context, interval time.Duration, of past.Span, closed time.Time) (map[string][]schemas.Candle, error) {
	backfilled, err := past.Candles(ctx, r.store, nil, time.Minute, []past.Span{of}, closed)
	if err != nil || len(backfilled) == 0 {
		return nil, err
	}
	live, err := r.allLive(ctx, time.Minute, of.From, of.To)
	if err != nil {
		return nil, err
	}
	folded := map[string][]schemas.Candle{}
	for coin := range backfilled {
		folded[coin] = schemas.JoinCandles(fillIn(time.Minute, live[coin], backfilled[coin], nil), interval)
	}
	return folded, nil
}

// allLive reads the candles of all coins folded from closed minutes of published prices.
func (r Reader) allLive(ctx context.Context, interval time.Duration, from, to time.Time) (map[string][]schemas.Candle, error) {
	of := history.LiveCandles[interval]
	type coinCandle struct {
		coin string
		schemas.Candle
	}
	candles, err := history.Select(ctx, r.store, "SELECT coin_id, start, open, high, low, close, volume, volume_usd, trades, "+of.Minutes+", "+of.Newest+" FROM "+of.Source+
		" WHERE start >= ? AND start < ? ORDER BY coin_id, start", []any{ceil(from), ceil(to)},
		func(rows driver.Rows) (c coinCandle, err error) {
			var minutes uint16
			err = rows.Scan(&c.coin, &c.Start, &c.Open, &c.High, &c.Low, &c.Close, &c.Volume, &c.VolumeUSD, &c.Trades, &minutes, &c.Newest)
			c.Start, c.Newest, c.Minutes, c.Origin = c.Start.UTC(), c.Newest.UTC(), int(minutes), schemas.OriginLive
			return c, err
		})
	if err != nil {
		return nil, fmt.Errorf("reading the candles of all coins: %w", err)
	}
	byCoin := map[string][]schemas.Candle{}
	for _, c := range candles {
		byCoin[c.coin] = append(byCoin[c.coin], c.Candle)
	}
	return byCoin, nil
}

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
