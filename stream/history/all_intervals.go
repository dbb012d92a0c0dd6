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
	past, err := s.allBackfilled(ctx, interval, span{from, to}, closed)
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
	past, err := s.allBackfilled(ctx, time.Minute, of, closed)
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

// allBackfilled folds the back-filled candles of all coins of one length that ended by a time.
func (s *Store) allBackfilled(ctx context.Context, length time.Duration, of span, closed time.Time) (map[string][]schemas.Candle, error) {
	markets, err := s.marketCandles(ctx, nil, length, []span{of})
	if err != nil || len(markets) == 0 {
		return nil, err
	}
	rates, err := s.conversion(ctx, length, markets, []span{of})
	if err != nil {
		return nil, err
	}
	byCoin := map[string][]schemas.MarketCandle{}
	for _, m := range markets {
		byCoin[m.CoinID] = append(byCoin[m.CoinID], m)
	}
	folded := map[string][]schemas.Candle{}
	for coin, candles := range byCoin {
		if candles := endedBy(schemas.FoldMarkets(candles, length, rates.Rate), length, closed); len(candles) > 0 {
			folded[coin] = candles
		}
	}
	return folded, nil
}

// extremesStep is how much of the past of all coins is folded at once, by the length of candles.
var extremesStep = map[time.Duration]time.Duration{time.Hour: 3 * day, day: 90 * day}

// BackfilledExtremes finds the highest and the lowest price in the back-filled days and hours of each coin, by coin id.
func (s *Store) BackfilledExtremes(ctx context.Context) (map[string]schemas.Extremes, error) {
	closed, err := s.ClosedUntil(ctx)
	if err != nil {
		return nil, err
	}
	extremes := map[string]schemas.Extremes{}
	for _, length := range []time.Duration{day, time.Hour} {
		var first, last time.Time
		err := s.conn.QueryRow(ctx, "SELECT min(start), max(start) FROM backfill WHERE seconds = ?", uint32(length/time.Second)).Scan(&first, &last)
		if err != nil {
			return nil, fmt.Errorf("finding the extremes of all coins: %w", unavailable(err))
		}
		for from := first.UTC(); !from.After(last); from = from.Add(extremesStep[length]) {
			candles, err := s.allBackfilled(ctx, length, span{from, from.Add(extremesStep[length])}, closed)
			if err != nil {
				return nil, err
			}
			for coin, list := range candles {
				e := extremes[coin]
				for _, c := range list {
					e.Reach(c)
				}
				extremes[coin] = e
			}
		}
	}
	return extremes, nil
}

// BackfillNext is how many records of back-filled candles the store holds: it grows with each.
func (s *Store) BackfillNext(ctx context.Context) (int64, error) {
	progress, err := s.Progress(ctx, schemas.TopicBackfillRaw, 0)
	next := int64(0)
	for _, p := range progress {
		next += p.Next
	}
	return next, err
}
