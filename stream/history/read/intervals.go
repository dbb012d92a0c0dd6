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

const (
	day = 24 * time.Hour
	// tailMost is how long before the end of its window CandleTail begins at the earliest: a minute
	// is closed within seconds, unless the fold of candles has stopped.
	tailMost = day
)

// Intervals reads the candles of a coin that start in [from, to), oldest first, in intervals of a
// minute, an hour or a day. One whose minutes all had a published price is folded from these. Else
// it is folded from live and back-filled minutes if they are all there and some are live; else it is
// the back-filled candle of its length; else it is folded from the minutes that there are: so the
// interval under way is there as far as its minutes are closed. The views v_candles_… say the same.
func (r Reader) Intervals(ctx context.Context, coinID string, interval time.Duration, from, to time.Time) ([]schemas.Candle, error) {
	if _, ok := history.LiveCandles[interval]; !ok {
		return nil, fmt.Errorf("reading candles of %s: there are none of %s", coinID, interval)
	}
	p, err := r.parts(ctx, coinID, interval, from, to)
	if err != nil {
		return nil, err
	}
	lacking := lackingSpan(p.live, interval, from, to)
	if !lacking.From.Before(lacking.To) || !lacking.From.Before(p.closed) {
		return p.live, nil
	}
	if interval == time.Minute {
		return fillIn(interval, p.live, p.backfilled, nil), nil
	}
	minutes, err := r.foldedMinutes(ctx, coinID, interval, minuteSpans(lacking, interval, p.live, p.backfilled), p)
	if err != nil {
		return nil, err
	}
	return fillIn(interval, p.live, p.backfilled, minutes), nil
}

type (
	// Refolded is a candle of the past as it is folded now, and of what.
	Refolded = past.Refolded
	// RefoldedMarket is a venue's own candle that it is folded of.
	RefoldedMarket = past.RefoldedMarket
)

// RefoldPast folds the back-filled candle of a coin of a length (a minute, an hour or a day) once more, of the candles of venues; false where there is none.
func (r Reader) RefoldPast(ctx context.Context, coinID string, length time.Duration, start time.Time) (Refolded, bool, error) {
	return past.Refold(ctx, r.store, coinID, length, start)
}

// RefoldAllPast folds all back-filled candles of a coin of a length that start in [from, to) once more, oldest first.
func (r Reader) RefoldAllPast(ctx context.Context, coinID string, length time.Duration, from, to time.Time) ([]schemas.Candle, error) {
	return past.RefoldAll(ctx, r.store, coinID, length, past.Span{From: from, To: to})
}

// PastDue counts the parts of the past that are to be folded again, since something came that they are made of.
func (r Reader) PastDue(ctx context.Context) (int, error) { return past.NewFold(r.store).Due(ctx) }

// foldedMinutes folds live and back-filled minutes into the intervals of spans, where there are back-filled ones.
func (r Reader) foldedMinutes(ctx context.Context, coinID string, interval time.Duration, spans []past.Span, p parts) ([]schemas.Candle, error) {
	var backfilled []schemas.Candle
	if earlier := before(spans, p.minutesFrom); len(earlier) > 0 {
		byCoin, err := past.Candles(ctx, r.store, []string{coinID}, time.Minute, earlier, p.closed)
		if err != nil {
			return nil, err
		}
		backfilled = byCoin[coinID]
	}
	for _, c := range p.minutes {
		if slices.ContainsFunc(spans, func(s past.Span) bool { return !c.Start.Before(s.From) && c.Start.Before(s.To) }) {
			backfilled = append(backfilled, c)
		}
	}
	if len(backfilled) == 0 {
		return nil, nil
	}
	live, err := r.liveIntervals(ctx, coinID, time.Minute, backfilled[0].Start.Truncate(interval), backfilled[len(backfilled)-1].Start.Truncate(interval).Add(interval))
	if err != nil {
		return nil, err
	}
	return schemas.JoinCandles(fillIn(time.Minute, live, backfilled, nil), interval), nil
}

// before are the spans as far as they lie before a time.
func before(spans []past.Span, end time.Time) (earlier []past.Span) {
	for _, s := range spans {
		if s.To.After(end) {
			s.To = end
		}
		if s.From.Before(s.To) {
			earlier = append(earlier, s)
		}
	}
	return earlier
}

// lackingSpan is from the first to the last interval that starts in [from, to) and lacks live minutes.
func lackingSpan(live []schemas.Candle, interval time.Duration, from, to time.Time) past.Span {
	up := func(t time.Time) time.Time { return t.UTC().Add(interval - time.Nanosecond).Truncate(interval) }
	s := past.Span{From: up(from), To: up(to)}
	for i := 0; i < len(live) && live[i].Start.Equal(s.From) && whole(live[i], interval); i++ {
		s.From = s.From.Add(interval)
	}
	for i := len(live) - 1; i >= 0 && s.From.Before(s.To) && live[i].Start.Equal(s.To.Add(-interval)) && whole(live[i], interval); i-- {
		s.To = s.To.Add(-interval)
	}
	return s
}

func whole(c schemas.Candle, interval time.Duration) bool {
	return c.Minutes == int(interval/time.Minute)
}

// maxSpans bounds the conditions of one statement.
const maxSpans = 50

// minuteSpans are the intervals that back-filled minutes can say more of than what is there: those that have some
// live minutes, and those without a candle. Neighbours are joined; many become one.
func minuteSpans(within past.Span, interval time.Duration, live, backfilled []schemas.Candle) []past.Span {
	settled := map[int64]bool{}
	for _, c := range backfilled {
		settled[c.Start.Unix()] = true
	}
	for _, c := range live {
		settled[c.Start.Unix()] = whole(c, interval)
	}
	var spans []past.Span
	for at := within.From; at.Before(within.To); at = at.Add(interval) {
		if settled[at.Unix()] {
			continue
		}
		end := at.Add(interval)
		if n := len(spans); n > 0 && (spans[n-1].To.Equal(at) || n == maxSpans) {
			spans[n-1].To = end
			continue
		}
		spans = append(spans, past.Span{From: at, To: end})
	}
	return spans
}

// fillIn chooses the candle of each interval, oldest first: of live and minutes, which is folded from both, the one
// of more minutes if that is whole and has live ones; else the backfilled one; else that one.
func fillIn(interval time.Duration, live, backfilled, minutes []schemas.Candle) []schemas.Candle {
	chosen := map[int64]schemas.Candle{}
	for _, folded := range [][]schemas.Candle{live, minutes} {
		for _, c := range folded {
			if before, ok := chosen[c.Start.Unix()]; !ok || c.Minutes > before.Minutes {
				chosen[c.Start.Unix()] = c
			}
		}
	}
	for _, c := range backfilled {
		if before, ok := chosen[c.Start.Unix()]; !ok || before.Origin.Past() || !whole(before, interval) {
			chosen[c.Start.Unix()] = c
		}
	}
	return slices.SortedFunc(maps.Values(chosen), func(a, b schemas.Candle) int { return a.Start.Compare(b.Start) })
}

// liveIntervals reads the candles folded from closed minutes of published prices.
func (r Reader) liveIntervals(ctx context.Context, coinID string, interval time.Duration, from, to time.Time) ([]schemas.Candle, error) {
	of := history.LiveCandles[interval]
	candles, err := history.Select(ctx, r.store, "SELECT start, open, high, low, close, volume, volume_usd, trades, "+of.Minutes+", "+of.Newest+" FROM "+of.Source+
		" WHERE coin_id = ? AND start >= ? AND start < ? ORDER BY start", []any{coinID, ceil(from), ceil(to)}, scanLive)
	if err != nil {
		return nil, fmt.Errorf("reading candles of %s: %w", coinID, err)
	}
	return candles, nil
}

func scanLive(rows driver.Rows) (c schemas.Candle, err error) {
	var minutes uint16
	err = rows.Scan(&c.Start, &c.Open, &c.High, &c.Low, &c.Close, &c.Volume, &c.VolumeUSD, &c.Trades, &minutes, &c.Newest)
	c.Start, c.Newest, c.Minutes, c.Origin = c.Start.UTC(), c.Newest.UTC(), int(minutes), schemas.OriginLive
	return c, err
}

// CandleTail folds the published prices of a coin whose seconds lie in [from, to) into intervals of a
// step of whole seconds, for what no closed minute holds yet. Such candles have no volume. No more
// than the last day is folded.
func (r Reader) CandleTail(ctx context.Context, coinID string, step time.Duration, from, to time.Time) ([]schemas.Candle, error) {
	return r.candleTail(ctx, coinID, step, from, to, "")
}

// candleTail is CandleTail of the prices for which a condition holds, too.
func (r Reader) candleTail(ctx context.Context, coinID string, step time.Duration, from, to time.Time, where string, args ...any) ([]schemas.Candle, error) {
	if earliest := to.Add(-tailMost); from.Before(earliest) {
		from = earliest
	}
	candles, err := history.Select(ctx, r.store, `SELECT toStartOfInterval(p.time, toIntervalSecond(?), 'UTC') AS start,
		argMin(p.price, p.time), max(p.price), min(p.price), argMax(p.price, p.time), max(p.time)
		FROM prices AS p FINAL WHERE p.coin_id = ? AND p.time >= ? AND p.time < ? AND p.reason = '' `+where+` GROUP BY start ORDER BY start`,
		append([]any{int64(step / time.Second), coinID, ceil(from), ceil(to)}, args...),
		func(rows driver.Rows) (c schemas.Candle, err error) {
			err = rows.Scan(&c.Start, &c.Open, &c.High, &c.Low, &c.Close, &c.Newest)
			c.Start, c.Newest, c.Origin = c.Start.UTC(), c.Newest.UTC(), schemas.OriginLive
			return c, err
		})
	if err != nil {
		return nil, fmt.Errorf("reading the latest prices of %s: %w", coinID, err)
	}
	return candles, nil
}

// ClosedUntil is the time up to which live minutes are closed in all partitions, and in the store: no live candle of an
// interval that ended by then comes any more. It must be read before the live candles are. Where there never was a
// live minute it is far ahead.
func (r Reader) ClosedUntil(ctx context.Context) (until time.Time, err error) {
	if err := r.store.Conn().QueryRow(ctx, "SELECT until FROM live_closed").Scan(&until); err != nil {
		return time.Time{}, fmt.Errorf("reading how far live minutes are closed: %w", history.Unavailable(err))
	}
	return until.UTC(), nil
}
