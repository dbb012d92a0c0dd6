package history

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/marketlog/marketlog/schemas"
)

// AllIntervals reads what Intervals does, of every coin, by coin id; coins without any are left out. It holds all minutes of
// the span in memory: ask for an hour or a few at once.
func (s *Store) AllIntervals(ctx context.Context, interval time.Duration, from, to time.Time) (map[string][]schemas.Candle, error) {
	if _, ok := liveCandles[interval]; !ok {
		return nil, fmt.Errorf("reading the candles of all coins: there are none of %s", interval)
	}
	closed, err := s.ClosedUntil(ctx) // before the live candles, see Intervals
	if err != nil {
		return nil, err
	}
	live, err := s.allLive(ctx, interval, from, to)
	if err != nil {
		return nil, err
	}
	if !from.Before(closed) {
		return live, nil
	}
	past, err := s.pastCandles(ctx, nil, interval, []span{{from, to}}, closed)
	if err != nil {
		return nil, err
	}
	folded := map[string][]schemas.Candle{}
	if interval > time.Minute {
		if folded, err = s.allFolded(ctx, interval, span{from.Truncate(interval), to.Add(interval - time.Nanosecond).Truncate(interval)}, closed); err != nil {
			return nil, err
		}
	}
	all := map[string][]schemas.Candle{}
	for _, candles := range []map[string][]schemas.Candle{live, past, folded} {
		for coin := range candles {
			if all[coin] == nil {
				all[coin] = fillIn(interval, live[coin], past[coin], folded[coin])
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
func (s *Store) allFolded(ctx context.Context, interval time.Duration, of span, closed time.Time) (map[string][]schemas.Candle, error) {
	past, err := s.pastCandles(ctx, nil, time.Minute, []span{of}, closed)
	if err != nil || len(past) == 0 {
		return nil, err
	}
	live, err := s.allLive(ctx, time.Minute, of.from, of.to)
	if err != nil {
		return nil, err
	}
	folded := map[string][]schemas.Candle{}
	for coin := range past {
		folded[coin] = schemas.JoinCandles(fillIn(time.Minute, live[coin], past[coin], nil), interval)
	}
	return folded, nil
}

// allLive reads the candles of all coins folded from closed minutes of published prices.
func (s *Store) allLive(ctx context.Context, interval time.Duration, from, to time.Time) (map[string][]schemas.Candle, error) {
	of := liveCandles[interval]
	type coinCandle struct {
		coin string
		schemas.Candle
	}
	candles, err := readRecords(ctx, s.conn, "SELECT coin_id, start, open, high, low, close, volume, volume_usd, trades, "+of.minutes+", "+of.newest+" FROM "+of.source+
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
