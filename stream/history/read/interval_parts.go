package read

import (
	"context"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"golang.org/x/sync/errgroup"

	"github.com/marketlog/marketlog/schemas"
	"github.com/marketlog/marketlog/stream/history"
)

// parts is what the candles of a coin are chosen from.
type parts struct {
	// closed is the time up to which live minutes are closed, as ClosedUntil has it.
	closed time.Time
	// live and backfilled are candles of the interval, minutes the back-filled ones that start at minutesFrom or later: those of the last two
	// intervals, of which one is under way and the other may have ended lately.
	live, backfilled, minutes []schemas.Candle
	minutesFrom               time.Time
}

// parts reads what the candles of a coin that start in [from, to) are chosen from. Statements that do not wait for each other run side by side: of a
// chart they read a few rows each, and most of their time is the engine's for any statement.
func (r Reader) parts(ctx context.Context, coinID string, interval time.Duration, from, to time.Time) (p parts, err error) {
	p.minutesFrom = to.UTC().Add(interval - time.Nanosecond).Truncate(interval).Add(-2 * interval)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		// Before the live candles: so none is missing of those that it says are there.
		if p.closed, err = r.ClosedUntil(ctx); err != nil {
			return err
		}
		p.live, err = r.liveIntervals(ctx, coinID, interval, from, to)
		return err
	})
	g.Go(func() (err error) {
		p.backfilled, p.minutes, err = r.pastParts(ctx, coinID, interval, from, to, p.minutesFrom)
		return err
	})
	if err := g.Wait(); err != nil {
		return parts{}, err
	}
	p.backfilled, p.minutes = ended(p.backfilled, interval, p.closed), ended(p.minutes, time.Minute, p.closed)
	return p, nil
}

// ended are the first of candles, those that ended by a time.
func ended(candles []schemas.Candle, length time.Duration, by time.Time) []schemas.Candle {
	n := len(candles)
	for n > 0 && candles[n-1].Start.Add(length).After(by) {
		n--
	}
	return candles[:n]
}

// pastParts reads the back-filled candles of a coin that start in [from, to), oldest first, and of an interval of more than a minute those of minutes from
// minutesFrom on, whether live minutes are closed by then or not.
func (r Reader) pastParts(
	ctx context.Context, coinID string, interval time.Duration, from, to, minutesFrom time.Time,
) (backfilled, minutes []schemas.Candle, err error) {
	query, args := `SELECT seconds, start, open, high, low, close, volume, volume_usd, imported FROM past_candles FINAL
		WHERE coin_id = ? AND priced AND (seconds = ? AND start >= ? AND start < ?`, []any{coinID, seconds(interval), ceil(from), ceil(to)}
	if interval > time.Minute {
		query, args = query+" OR seconds = ? AND start >= ? AND start < ?", append(args, seconds(time.Minute), ceil(minutesFrom), ceil(to))
	}
	_, err = history.Select(ctx, r.store, query+") ORDER BY seconds, start", args, func(rows driver.Rows) (none struct{}, err error) {
		c, of, err := scanPast(rows)
		if of == interval {
			backfilled = append(backfilled, c)
		} else {
			minutes = append(minutes, c)
		}
		return none, err
	})
	if err != nil {
		return nil, nil, fmt.Errorf("reading back-filled candles of %s: %w", coinID, err)
	}
	return backfilled, minutes, nil
}

// scanPast scans a back-filled candle, and its length.
func scanPast(rows driver.Rows) (c schemas.Candle, of time.Duration, err error) {
	var length uint32
	var imported bool
	c.Origin = schemas.OriginBackfill
	err = rows.Scan(&length, &c.Start, &c.Open, &c.High, &c.Low, &c.Close, &c.Volume, &c.VolumeUSD, &imported)
	if imported {
		c.Origin = schemas.OriginImport
	}
	of = time.Duration(length) * time.Second
	c.Start, c.Minutes = c.Start.UTC(), int(of/time.Minute)
	c.Newest = c.Start.Add(of - time.Minute)
	return c, of, err
}

func seconds(d time.Duration) uint32 { return uint32(d / time.Second) }
