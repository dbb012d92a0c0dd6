package explain

import (
	"context"
	"slices"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
)

const (
	// mostIntervals bounds a chart: five years of days and the one under way.
	mostIntervals = 5*366 + 1
	// mostTail bounds the prices that are read of the log, where minutes have not closed.
	mostTail = time.Hour
)

// chartLine is what a chart is drawn of: its candles as they are served, which end with the prices of the minutes that had not closed, and made again of
// shorter ones and of the prices that the log has.
type chartLine struct {
	candles, again []schemas.Candle
	// own are the starts of candles that follow from nothing that is there: again has them as they are.
	own map[int64]bool
	// open is when the interval under way starts, tail the prices of the log.
	open time.Time
	tail []loggedPrice
}

// chartLine makes the line of a chart again, as it was when its newest price was that of a second.
func (w *work) chartLine(ctx context.Context, coin *views.CatalogCoin, step time.Duration, from, until time.Time) (*chartLine, error) {
	closed, err := w.closedUntil(ctx)
	if err != nil {
		return nil, err
	}
	line := &chartLine{open: until.Truncate(step), own: map[int64]bool{}}
	// A minute of which all seconds are in is one of the table's.
	minutesEnd := until.Add(time.Second).Truncate(time.Minute)
	tailFrom := minutesEnd
	if closed.Before(tailFrom) {
		tailFrom = closed
	}
	if tailFrom.Before(from) {
		tailFrom = from
	}
	if until.Sub(tailFrom) > mostTail {
		return nil, query.NotFound("minutes of %s have closed up to %s only", coin.ID, closed.Format(time.RFC3339))
	}
	// The interval under way is folded from its minutes: what tables have of it may have grown since.
	last, err := w.History.Intervals(ctx, coin.ID, time.Minute, line.open, minutesEnd)
	if err != nil {
		return nil, err
	}
	if line.candles, line.again, err = w.settled(ctx, coin.ID, step, from, line.open); err != nil {
		return nil, err
	}
	if err := w.ofVenues(ctx, coin, line, step, from); err != nil {
		return nil, err
	}
	joined := schemas.JoinCandles(last, step)
	line.candles, line.again = append(line.candles, joined...), append(line.again, joined...)
	if !tailFrom.After(until) {
		if line.tail, _, err = w.loggedPrices(ctx, coin.ID, tailFrom, until.Add(time.Second)); err != nil {
			return nil, err
		}
	}
	var logged []schemas.Candle
	for _, p := range line.tail {
		at := time.Unix(p.second, 0).UTC()
		logged = withPrice(logged, schemas.Candle{Start: at.Truncate(step), Open: p.price, High: p.price, Low: p.price, Close: p.price, Newest: at, Origin: schemas.OriginLive})
	}
	stored, err := w.storedTail(ctx, coin, step, tailFrom, until, logged)
	if err != nil {
		return nil, err
	}
	for _, c := range logged {
		line.again = withPrice(line.again, c)
	}
	for _, c := range stored {
		line.candles = withPrice(line.candles, c)
	}
	if until.Equal(line.open) { // it carries the price of the one before
		line.candles, line.again = carried(line.candles, line.open), carried(line.again, line.open)
	}
	return line, nil
}

// ofVenues makes candles of a line again that are of venues' own candles of their length.
func (w *work) ofVenues(ctx context.Context, coin *views.CatalogCoin, line *chartLine, step time.Duration, from time.Time) error {
	refolded := map[int64]schemas.Candle{}
	if step >= time.Hour && slices.ContainsFunc(line.candles, func(c schemas.Candle) bool { return c.Origin.Past() }) {
		all, err := w.History.RefoldAllPast(ctx, coin.ID, step, from, line.open)
		if err != nil {
			return err
		}
		for _, c := range all {
			refolded[c.Start.Unix()] = c
		}
	}
	for i, c := range line.candles {
		again := &line.again[i]
		if own, is := refolded[c.Start.Unix()]; is && c.Origin.Past() {
			*again = own
			continue
		}
		// Days are made again of hours, which may be venues' own although they are as many.
		live := c.Origin == schemas.OriginLive && again.Origin == schemas.OriginLive
		if ofMinutes := step < oneDay && again.Minutes == c.Minutes; !live && !ofMinutes {
			*again, line.own[c.Start.Unix()] = c, true
		}
	}
	return nil
}

// storedTail are the last prices as tables have them. A price is in the log a moment before it is there: without the newest one those of the log count.
func (w *work) storedTail(ctx context.Context, coin *views.CatalogCoin, step time.Duration, from, until time.Time, logged []schemas.Candle) ([]schemas.Candle, error) {
	if len(logged) == 0 {
		return nil, nil
	}
	stored, err := w.History.CandleTail(ctx, coin.ID, step, from, until.Add(time.Second))
	if err != nil {
		return nil, err
	}
	if n := len(stored); n == 0 || stored[n-1].Newest.Before(logged[len(logged)-1].Newest) {
		return logged, nil
	}
	return stored, nil
}

// settled are the candles of a step that start in [from, open), and for each the one that follows from shorter ones, which has no origin where there is none.
func (w *work) settled(ctx context.Context, coinID string, step time.Duration, from, open time.Time) (candles, again []schemas.Candle, err error) {
	length, shorter := step, time.Minute
	switch {
	case step == oneDay:
		shorter = time.Hour
	case step < time.Hour:
		length = time.Minute
	}
	if candles, err = w.History.Intervals(ctx, coinID, length, from, open); err != nil {
		return nil, nil, err
	}
	parts := candles
	if length != shorter {
		if parts, err = w.History.Intervals(ctx, coinID, shorter, from, open); err != nil {
			return nil, nil, err
		}
	}
	candles = schemas.JoinCandles(candles, step)
	byStart := map[int64]schemas.Candle{}
	for _, c := range schemas.JoinCandles(parts, step) {
		byStart[c.Start.Unix()] = c
	}
	again = make([]schemas.Candle, len(candles))
	for i, c := range candles {
		again[i] = byStart[c.Start.Unix()]
	}
	return candles, again, nil
}

// withPrice joins prices, which are newer than those before them, into the candle of their interval.
func withPrice(candles []schemas.Candle, c schemas.Candle) []schemas.Candle {
	i, found := slices.BinarySearchFunc(candles, c.Start, func(c schemas.Candle, start time.Time) int { return c.Start.Compare(start) })
	if found {
		candles[i].Join(c)
		return candles
	}
	return slices.Insert(candles, i, c)
}

// carried adds an interval that carries the last price, if it has none of its own.
func carried(candles []schemas.Candle, open time.Time) []schemas.Candle {
	n := len(candles)
	if n == 0 || !candles[n-1].Start.Before(open) {
		return candles
	}
	p := candles[n-1].Close
	return append(candles, schemas.Candle{Start: open, Open: p, High: p, Low: p, Close: p, Newest: candles[n-1].Newest, Origin: schemas.OriginLive})
}
