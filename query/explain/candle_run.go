package explain

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
)

const (
	candlesForm = "candles"
	// mostMerged bounds the intervals of a point of a chart: the longest one has some thousand days, in a thousand points.
	mostMerged = 50
	// emptyBetween is in how many times as many intervals they are looked for: those without a price are left out.
	emptyBetween = 20
)

// candleRun explains a number of a point of a chart that was merged of several intervals: of so many with a price, from the start of the first on.
func (w *work) candleRun(ctx context.Context, coin *views.CatalogCoin, name string, parts []string, depth int) (*Node, error) {
	interval, start, err := w.chartInterval(name, parts)
	if err != nil {
		return nil, err
	}
	count, err := strconv.Atoi(parts[4])
	if err != nil || count < 1 || count > mostMerged {
		return nil, query.Invalid("number", "the number of intervals must be 1 to %d", mostMerged)
	}
	i := slices.Index(candleFieldNames(), parts[5])
	if i < 0 {
		return nil, w.nearField(name, parts, 5, candleFieldNames())
	}
	if count == 1 {
		return w.candleNamed(ctx, coin, name, []string{"candle", parts[1], interval, parts[3], parts[5]}, depth)
	}
	return w.candleRunOf(ctx, coin, interval, start, count, candleFields[i], depth)
}

func (w *work) candleRunOf(ctx context.Context, coin *views.CatalogCoin, interval string, start time.Time, count int, field candleField, depth int) (*Node, error) {
	step := intervals[interval]
	closed, err := w.closedUntil(ctx)
	if err != nil {
		return nil, err
	}
	if w.past && w.asOf.Before(closed) {
		closed = w.asOf
	}
	until := start.Add(time.Duration(count*emptyBetween) * step)
	if closed = closed.Truncate(step); until.After(closed) {
		until = closed
	}
	length := step
	if step != oneDay && step != time.Hour {
		length = time.Minute
	}
	candles, err := w.History.Intervals(ctx, coin.ID, length, start, until)
	if err != nil {
		return nil, err
	}
	if length != step {
		candles = schemas.JoinCandles(candles, step)
	}
	if len(candles) < count || !candles[0].Start.Equal(start) {
		return nil, query.NotFound("%s has no %d candles of %s with a price that have closed from %s on", coin.ID, count, interval, start.Format(time.RFC3339))
	}
	candles = candles[:count]
	value := field.value(joinedRun(candles))
	n := headline(fmt.Sprintf("%s/%s/%s/%s/%d/%s", candlesForm, coin.ID, interval, start.Format(time.RFC3339), count, field.name), &value, field.unit, start.UnixNano())
	n.Method = &Method{Name: "joined-intervals", Version: 1, Formula: fmt.Sprintf("of %d intervals with a price: %s", count, runFormulas[field.name])}
	if !w.expands(depth) {
		return n, nil
	}
	if err := w.candleRunAgain(ctx, n, coin, candles, step, field); err != nil {
		return nil, err
	}
	for _, c := range candles {
		v := field.value(c)
		in := headline(candleNumber(coin.ID, interval, c.Start)+"/"+field.name, &v, field.unit, c.Start.UnixNano())
		if len(n.Inputs) < shown && w.expands(depth-1) {
			if in, err = w.candle(ctx, coin, interval, c.Start, field.name, depth-1); err != nil {
				return nil, err
			}
		}
		n.Inputs = append(n.Inputs, in)
	}
	n.fewer(field.name == "volume" || field.name == fieldVolumeUSD || field.name == "trades")
	return n, nil
}

var runFormulas = map[string]string{
	"open": "open of the first", "high": "greatest high", "low": "smallest low", "close": "close of the last", "volume": "exact sum", fieldVolumeUSD: "sum in the order of time", "trades": "sum",
}

// candleRunAgain makes the number again of the minutes of each interval, as a candle of one interval is.
func (w *work) candleRunAgain(ctx context.Context, n *Node, coin *views.CatalogCoin, candles []schemas.Candle, step time.Duration, field candleField) error {
	again, parts := make([]schemas.Candle, 0, len(candles)), 0
	for _, c := range candles {
		made, minutes, err := w.madeAgain(ctx, coin, c, step)
		if err != nil {
			return err
		}
		if made == nil {
			n.Note = fmt.Sprintf("not computed again: of the interval that starts at %s not all minutes are there", c.Start.Format(time.RFC3339))
			return nil
		}
		again, parts = append(again, *made), parts+minutes
	}
	if field.name == fieldVolumeUSD {
		n.compareSum(field.value(joinedRun(again)), parts)
		return nil
	}
	joined := joinedRun(again)
	return w.comparePast(ctx, n, &joined, field)
}

// madeAgain makes a candle again of so many parts: of venues' own candles of its length, or of its minutes; nil where these are not there.
func (w *work) madeAgain(ctx context.Context, coin *views.CatalogCoin, c schemas.Candle, step time.Duration) (again *schemas.Candle, parts int, err error) {
	if c.Origin.Past() && (step == time.Hour || step == oneDay) {
		if refolded, ok, err := w.History.RefoldPast(ctx, coin.ID, step, c.Start); err != nil || ok {
			return &refolded.Candle, 1, err
		}
	}
	minutes, err := w.History.Intervals(ctx, coin.ID, time.Minute, c.Start, c.Start.Add(step))
	if err != nil {
		return nil, 0, err
	}
	joined := schemas.JoinCandles(minutes, step)
	if len(joined) != 1 || joined[0].Minutes != c.Minutes {
		return nil, 0, nil
	}
	return &joined[0], len(minutes), nil
}

// joinedRun is the candle of at least one, oldest first.
func joinedRun(candles []schemas.Candle) schemas.Candle {
	run := candles[0]
	for _, c := range candles[1:] {
		run.Join(c)
	}
	return run
}
