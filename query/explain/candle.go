package explain

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
)

// intervals are the lengths of candles, by name.
var intervals = map[string]time.Duration{
	"1m": time.Minute, "5m": 5 * time.Minute, "15m": 15 * time.Minute, "1h": time.Hour, "4h": 4 * time.Hour, "1d": oneDay,
}

var intervalNames = []string{"1m", "5m", "15m", "1h", "4h", "1d"}

// candleField is a number of a candle.
type candleField struct {
	name, unit string
	// minute and longer state how it is made of the prices and trades of a minute, and of minutes.
	minute, longer string
	value          func(schemas.Candle) float64
}

const fieldVolumeUSD = "volumeUsd"

var candleFields = []candleField{
	{"open", usd, "the first published price of the minute", "open of the first minute", func(c schemas.Candle) float64 { return c.Open }},
	{"high", usd, "the highest published price of the minute", "greatest high of the minutes", func(c schemas.Candle) float64 { return c.High }},
	{"low", usd, "the lowest published price of the minute", "smallest low of the minutes", func(c schemas.Candle) float64 { return c.Low }},
	{"close", usd, "the last published price of the minute", "close of the last minute", func(c schemas.Candle) float64 { return c.Close }},
	{"volume", "", "exact sum of what the venues traded that are accepted in the last price of the minute", "exact sum over the minutes", func(c schemas.Candle) float64 { return c.Volume.InexactFloat64() }},
	{fieldVolumeUSD, usd, "sum of price x size x exchange rate over the trades of these venues", "sum over the minutes", func(c schemas.Candle) float64 { return c.VolumeUSD }},
	{"trades", "", "number of trades of the venues that are accepted in the last price of the minute", "sum over the minutes", func(c schemas.Candle) float64 { return float64(c.Trades) }},
}

func candleFieldNames() []string {
	return namesOf(candleFields, func(f candleField) string { return f.name })
}

func candleNumber(coinID, interval string, start time.Time) string {
	return "candle/" + coinID + "/" + interval + "/" + start.UTC().Format(time.RFC3339)
}

// candleNamed explains the number of a candle that a name means.
func (w *work) candleNamed(ctx context.Context, coin *views.CatalogCoin, name string, parts []string, depth int) (*Node, error) {
	step, ok := intervals[parts[2]]
	if !ok {
		return nil, w.nearField(name, parts, 2, intervalNames)
	}
	start, ok := instant(strings.ToUpper(parts[3]))
	if !ok || !start.Truncate(step).Equal(start) {
		return nil, w.notABeginning(parts[2], step)
	}
	field := "close"
	if len(parts) == 5 {
		if field = parts[4]; !slices.Contains(candleFieldNames(), field) {
			return nil, w.nearField(name, parts, 4, candleFieldNames())
		}
	}
	if w.past && w.asOf.Before(start.Add(step)) {
		return nil, query.NotFound("the candle had not closed by %s", query.FormatTime(w.asOf.UnixNano()))
	}
	return w.candle(ctx, coin, parts[2], start, field, depth)
}

// notABeginning refuses the start of an interval.
func (w *work) notABeginning(interval string, step time.Duration) error {
	return query.Invalid("number", "the start of a candle of %s must be the beginning of one, as in %s", interval, w.now.UTC().Truncate(step).Add(-step).Format(time.RFC3339))
}

// candle explains a number of a closed candle.
func (w *work) candle(ctx context.Context, coin *views.CatalogCoin, interval string, start time.Time, field string, depth int) (*Node, error) {
	step := intervals[interval]
	if err := w.unchanged(ctx, coin, step, start); err != nil {
		return nil, err
	}
	c, ok, err := w.storedCandle(ctx, coin.ID, step, start)
	if err != nil {
		return nil, err
	}
	// A live minute is written when it closes, a moment before it is known that those of all coins have.
	if closedMinute := ok && step == time.Minute && c.Origin == schemas.OriginLive; !closedMinute {
		closed, err := w.History.ClosedUntil(ctx)
		if err != nil {
			return nil, err
		}
		if end := start.Add(step); end.After(closed) {
			return nil, query.NotFound("the candle of %s that starts at %s has not closed: live minutes are there up to %s", coin.ID, start.Format(time.RFC3339), closed.Format(time.RFC3339))
		}
	}
	if !ok {
		return nil, query.NotFound("there is no candle of %s that starts at %s: it had no price then", coin.ID, start.Format(time.RFC3339))
	}
	of := candleFields[slices.IndexFunc(candleFields, func(f candleField) bool { return f.name == field })]
	value := of.value(c)
	n := headline(candleNumber(coin.ID, interval, start)+"/"+field, &value, of.unit, start.UnixNano())
	n.Method = &Method{Name: "joined-candles", Version: 1, Formula: of.longer}
	if interval == "1m" {
		n.Method = &Method{Name: "candle", Version: logic(schemas.TopicCandles), Formula: of.minute}
	}
	if c.Origin != schemas.OriginLive {
		n.Method.Name += "-" + string(c.Origin)
	}
	ofVenues := c.Origin.Past() && (step == time.Minute || step == time.Hour || step == oneDay)
	switch {
	case interval == "1m" && c.Origin == schemas.OriginLive:
		return n, w.liveMinute(ctx, n, coin, c, of, depth)
	case depth <= 0 && ofVenues:
		n.Method.Formula = pastFormula
		return n, nil
	case depth <= 0:
		return n, nil
	case ofVenues:
		if is, err := w.candleOfVenues(ctx, n, coin, c, of, interval, depth); err != nil || is {
			return n, err
		}
	}
	if interval == "1m" {
		n.Note = "not computed again: the candles of venues that it was made of are not there any more"
		return n, nil
	}
	return n, w.longerCandle(ctx, n, coin, c, of, step, depth)
}

// storedCandle is the candle that charts show.
func (w *work) storedCandle(ctx context.Context, coinID string, step time.Duration, start time.Time) (c schemas.Candle, ok bool, err error) {
	length := storedLength(step)
	candles, err := w.History.Intervals(ctx, coinID, length, start, start.Add(step))
	if err != nil {
		return c, false, err
	}
	if length != step {
		candles = schemas.JoinCandles(candles, step)
	}
	if len(candles) == 0 {
		return c, false, nil
	}
	return candles[0], true, nil
}

// storedLength is that of the candles in the tables which one of a step is made of.
func storedLength(step time.Duration) time.Duration {
	if step == oneDay || step == time.Hour {
		return step
	}
	return time.Minute
}

// unchanged refuses a candle of now that was another one as of the instant: how it was made then is not known.
func (w *work) unchanged(ctx context.Context, coin *views.CatalogCoin, step time.Duration, start time.Time) error {
	if !w.past {
		return nil
	}
	length := storedLength(step)
	candles, err := w.History.Intervals(ctx, coin.ID, length, start, start.Add(step))
	if err == nil {
		err = w.Candles.Unchanged(ctx, coin.Own, length, start, start.Add(step), w.asOf, candles)
	}
	return query.FaultOfPast(err, w.asOf)
}

// decidesFirst orders two inputs of a number: one that equals it comes before one that does not.
func decidesFirst(a, b, number float64) int {
	switch {
	case (a == number) == (b == number):
		return 0
	case a == number:
		return -1
	}
	return 1
}

// longerCandle folds the minutes of a longer candle again.
func (w *work) longerCandle(ctx context.Context, n *Node, coin *views.CatalogCoin, c schemas.Candle, field candleField, step time.Duration, depth int) error {
	minutes, err := w.History.Intervals(ctx, coin.ID, time.Minute, c.Start, c.Start.Add(step))
	if err != nil {
		return err
	}
	joined := schemas.JoinCandles(minutes, step)
	switch {
	case len(joined) != 1 || joined[0].Minutes != c.Minutes:
		n.Note = fmt.Sprintf("not computed again: it is of %d minutes, of which %d are there", c.Minutes, len(minutes))
		return nil
	case field.name == fieldVolumeUSD && (step == time.Hour || step == oneDay):
		n.compareSum(field.value(joined[0]), len(minutes))
	default:
		recomputed := field.value(joined[0])
		n.compare(&recomputed)
	}
	value, sums := field.value(c), field.name == "volume" || field.name == fieldVolumeUSD || field.name == "trades"
	slices.SortStableFunc(minutes, func(a, b schemas.Candle) int { // the minute that decides comes first
		if sums {
			return 0
		}
		return decidesFirst(field.value(a), field.value(b), value)
	})
	for i, m := range minutes {
		v := field.value(m)
		if i >= shown {
			n.Inputs = append(n.Inputs, &Node{Value: &v})
			continue
		}
		in := headline(candleNumber(coin.ID, "1m", m.Start)+"/"+field.name, &v, field.unit, m.Start.UnixNano())
		if w.expands(depth - 1) {
			if in, err = w.candle(ctx, coin, "1m", m.Start, field.name, depth-1); err != nil {
				return err
			}
		}
		n.Inputs = append(n.Inputs, in)
	}
	n.fewer(sums)
	return nil
}
