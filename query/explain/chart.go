package explain

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
)

// chartField is a number of a whole chart. Of are the candles that are shown as its inputs, and the field of each: of the least or the greatest the one that it is of.
type chartField struct {
	name, unit, formula string
	value               func(views.CandleStats) *float64
	of                  func([]schemas.Candle) []chartInput
}

// chartInput is a number of a candle that a number of a chart is made of.
type chartInput struct {
	candle schemas.Candle
	field  string
}

// changePct follows from the first and the last candle alone, all other numbers from each.
const changePct = "changePct"

var chartFields = []chartField{
	{"minPrice", usd, "lowest low of the candles", func(s views.CandleStats) *float64 { return &s.Min }, func(candles []schemas.Candle) []chartInput {
		return []chartInput{{slices.MinFunc(candles, func(a, b schemas.Candle) int { return cmp.Compare(a.Low, b.Low) }), "low"}}
	}},
	{"maxPrice", usd, "highest high of the candles", func(s views.CandleStats) *float64 { return &s.Max }, func(candles []schemas.Candle) []chartInput {
		return []chartInput{{slices.MaxFunc(candles, func(a, b schemas.Candle) int { return cmp.Compare(a.High, b.High) }), "high"}}
	}},
	{"avgPrice", usd, "mean of the closes of the candles, from the oldest on", func(s views.CandleStats) *float64 { return &s.Mean }, func(candles []schemas.Candle) []chartInput {
		inputs := make([]chartInput, len(candles))
		for i, c := range candles {
			inputs[i] = chartInput{c, "close"}
		}
		return inputs
	}},
	{changePct, percent, "100 x (close of the last candle - open of the first) / open of the first", func(s views.CandleStats) *float64 { return s.ChangePct }, func(candles []schemas.Candle) []chartInput {
		return []chartInput{{candles[0], "open"}, {candles[len(candles)-1], "close"}}
	}},
}

func chartFieldNames() []string {
	return namesOf(chartFields, func(f chartField) string { return f.name })
}

// chart explains what the price of a coin did in the intervals of a chart. Its candles are made again of shorter ones, days of hours and others of minutes, and its
// end of the prices that the log has.
func (w *work) chart(ctx context.Context, coin *views.CatalogCoin, name string, parts []string, depth int) (*Node, error) {
	interval, ok := chartIntervals[parts[2]]
	if !ok {
		return nil, w.nearField(name, parts, 2, chartIntervalNames)
	}
	at := slices.Index(chartFieldNames(), parts[5])
	if at < 0 {
		return nil, w.nearField(name, parts, 5, chartFieldNames())
	}
	field, step := chartFields[at], intervals[interval]
	from, ok := instant(parts[3])
	if !ok || !from.Truncate(step).Equal(from) {
		return nil, w.notABeginning(interval, step)
	}
	until, ok := instant(parts[4])
	if !ok || !until.Truncate(time.Second).Equal(until) || until.Before(from) || until.Sub(from) > mostIntervals*step {
		return nil, query.Invalid("number", "the end of a chart must be a second, as in 2026-01-31T12:34:56Z, at most %d intervals after its start", mostIntervals)
	}
	// The second of the newest price may have only just begun by the clock of its fold.
	if now := w.asked(); until.After(now.Add(time.Second)) || w.past && until.After(now) {
		return nil, query.NotFound("the chart ends after %s", query.FormatTime(now.UnixNano()))
	}
	line, err := w.chartLine(ctx, coin, step, from, until)
	if err != nil {
		return nil, err
	}
	served, ok := views.StatsOf(line.candles)
	if !ok {
		return nil, query.NotFound("%s had no price from %s to %s", coin.ID, from.Format(time.RFC3339), until.Format(time.RFC3339))
	}
	again, _ := views.StatsOf(line.again)
	n := headline("chart/"+coin.ID+"/"+interval+"/"+from.Format(time.RFC3339)+"/"+until.Format(time.RFC3339)+"/"+field.name, field.value(served), field.unit, until.UnixNano())
	n.Method = &Method{Name: "chart", Version: 1, Formula: field.formula}
	inputs := field.of(line.candles)
	own := len(line.own)
	if field.name == changePct {
		own = 0
		for _, of := range inputs {
			if line.own[of.candle.Start.Unix()] {
				own++
			}
		}
	}
	if own == 0 {
		n.compare(field.value(again))
		if err := w.unlessDue(ctx, n); err != nil {
			return nil, err
		}
	} else {
		n.Note = fmt.Sprintf("not computed again: what %d of the candles that it follows from are made of is not there any more", own)
	}
	for _, of := range inputs {
		in, err := w.chartInput(ctx, coin, interval, line, of, len(n.Inputs), depth-1)
		if err != nil {
			return nil, err
		}
		n.Inputs = append(n.Inputs, in)
	}
	n.fewer(field.name == "avgPrice")
	return n, nil
}

// chartInput is a number of a candle of a chart, the nth that is shown.
func (w *work) chartInput(ctx context.Context, coin *views.CatalogCoin, interval string, line *chartLine, of chartInput, nth, depth int) (*Node, error) {
	field := candleFields[slices.Index(candleFieldNames(), of.field)]
	value := field.value(of.candle)
	in := headline(candleNumber(coin.ID, interval, of.candle.Start)+"/"+field.name, &value, usd, of.candle.Start.UnixNano())
	switch {
	case of.candle.Start.Equal(line.open):
		in.Note = "the interval had not closed: it is as it was then"
		if n := len(line.tail); n > 0 {
			in.Records = []Place{line.tail[n-1].at}
		}
	case nth < shown && w.expands(depth):
		expanded, err := w.candle(ctx, coin, interval, of.candle.Start, field.name, depth)
		if err != nil && !missing(err) {
			return nil, err
		}
		if err == nil {
			in = expanded
		}
	}
	return in, nil
}

// asked is the instant that is asked for.
func (w *work) asked() time.Time {
	if w.past {
		return w.asOf
	}
	return w.now
}
