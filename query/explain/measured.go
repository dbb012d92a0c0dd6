package explain

import (
	"context"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/proto"

	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// measured explains a field of a row in which the figures of candles, live and back-filled, takes the place of what the fold made.
func (w *work) measured(ctx context.Context, coin *views.CatalogCoin, row *eventsv1.Market, field marketField, depth int) (*Node, error) {
	n := headline("market/"+coin.ID+"/"+field.name, field.value(coin.Market), field.unit, row.Time)
	n.Method = &Method{Name: "candle-figures", Version: 1, Formula: "what the coin's candles say, back-filled ones too, in the place of the row's own figure; see docs/formulas"}
	if depth <= 0 {
		return n, nil
	}
	folded, err := w.fieldOf(ctx, coin, row, field, depth-1)
	if err != nil {
		return nil, err
	}
	n.Inputs = []*Node{folded}
	figures, used, err := w.figures(ctx, coin.ID, coin.FiguresAt, coin.Figures)
	if err != nil {
		return nil, err
	}
	again := figures.Measure(row)
	n.compare(field.value(again))
	for _, c := range used {
		in := headline(candleNumber(coin.ID, c.interval, c.start)+"/"+c.field, &c.value, usd, c.start.UnixNano())
		if w.expands(depth - 1) {
			if in, err = w.candle(ctx, coin, c.interval, c.start, c.field, depth-1); err != nil {
				return nil, err
			}
		}
		n.Inputs = append(n.Inputs, in)
	}
	return n, nil
}

const (
	// figuresWithin is within what time before an instant all figures of candles are recorded that coins were served with: an hour, and some minutes until they are read.
	figuresWithin = 65 * minute
	noFigures     = "the log does not have the record of what candles showed of the coins"
)

// measuredThen explains a change of 24 hours of a coin's row that follows from the price of a day ago by candles, as of the instant asked for. That price is recorded as it
// was served: candles have gone on, so that it is not made again of them.
func (w *work) measuredThen(ctx context.Context, coin *views.CatalogCoin, field marketField, depth int) (*Node, error) {
	row := coin.FoldedRow
	n := headline("market/"+coin.ID+"/"+field.name, field.value(coin.Market), field.unit, row.Time)
	n.Method = &Method{Name: "candle-figures", Version: 1, Formula: "what the coin's candles showed, back-filled ones too, in the place of the row's own figure; see docs/formulas"}
	if depth <= 0 {
		return n, nil
	}
	folded, err := w.fieldOf(ctx, coin, row, field, depth-1)
	if err != nil {
		return nil, err
	}
	at, err := w.figuresRecord(ctx, coin)
	if err != nil {
		return nil, err
	}
	written, err := w.minute(ctx, row.Time)
	if err != nil {
		return nil, err
	}
	in := headline("figures/"+coin.ID+"/dayAgo", &coin.Figures.DayAgo, usd, coin.FiguresAt.UnixNano())
	n.Inputs = []*Node{folded, in}
	logged := written.rows[coin.ID]
	switch {
	case at == nil:
		in.Note = "its record is not in the log"
		n.notReproduced("not computed again: " + noFigures)
	case logged == nil:
		n.notReproduced("not computed again: the log no longer has the row")
	default:
		in.Records, in.Note = []Place{*at}, "recorded as it was served: candles have gone on, and it is not made again of them"
		n.compare(field.value(coin.Figures.Measure(logged)))
	}
	return n, nil
}

// figuresRecord finds the record of served.v1 with the figures of candles that a coin was served with at the instant asked for; nil where the log does not have it, or
// not yet.
func (w *work) figuresRecord(ctx context.Context, coin *views.CatalogCoin) (*Place, error) {
	if w.figured == nil {
		figured := map[string]map[string]recordedFigure{}
		at := w.asOf.UnixNano()
		_, err := w.scan(ctx, schemas.TopicServed, 0, at-figuresWithin, w.asOf.Add(servedWithin).UnixNano(), func(r *kgo.Record) bool {
			record, err := schemas.DecodeRecord(schemas.TopicServed, r.Value)
			served, ok := record.(*eventsv1.ServedRecord)
			if err != nil || !ok {
				return true
			}
			for _, step := range served.Steps {
				figures := step.GetFigures()
				if figures == nil || step.Time > at {
					continue
				}
				if figures.Whole || figured[served.Replica] == nil {
					figured[served.Replica] = map[string]recordedFigure{}
				}
				for _, c := range figures.Coins {
					figured[served.Replica][c.CoinId] = recordedFigure{c, place(schemas.TopicServed, 0, r.Offset)}
				}
			}
			return true
		})
		if err != nil {
			return nil, err
		}
		w.figured = figured
	}
	figures := views.ServedFigure(coin.ID, coin.Figures)
	for _, replica := range slices.Sorted(maps.Keys(w.figured)) {
		if held := w.figured[replica][coin.ID]; proto.Equal(held.figure, figures) {
			return &held.at, nil
		}
	}
	return nil, nil
}

// recordedFigure is what candles showed of a coin, with its record.
type recordedFigure struct {
	figure *eventsv1.ServedFigure
	at     Place
}

// usedCandle is a candle that a figure comes from.
type usedCandle struct {
	interval string
	start    time.Time
	field    string
	value    float64
}

const (
	oneDay = 24 * time.Hour
	// dayAgoReach is how long before 24 hours ago a candle may end that still has the price of then.
	dayAgoReach = oneDay / 10
)

// figures reads again what the candles of 24 hours show of a coin at the end of a minute. The extremes of all time and the closes of
// long ago are taken over from what was served: they are of all back-filled days.
func (w *work) figures(ctx context.Context, coinID string, at time.Time, served schemas.CandleFigures) (schemas.CandleFigures, []usedCandle, error) {
	f := schemas.CandleFigures{Ever: served.Ever, Ago: served.Ago}
	if served.High == 0 && served.DayAgo == 0 {
		return f, nil, nil
	}
	from := at.Add(-oneDay)
	minutes, err := w.History.Intervals(ctx, coinID, time.Minute, from.Add(-dayAgoReach).Truncate(time.Hour), at)
	if err != nil {
		return f, nil, err
	}
	// Where only hours were back-filled there are no minutes of them.
	hours, err := w.History.Intervals(ctx, coinID, time.Hour, from.Add(-dayAgoReach).Truncate(time.Hour), at.Truncate(time.Hour))
	if err != nil {
		return f, nil, err
	}
	var ago, high, low usedCandle
	f.High, f.Low = math.Inf(-1), math.Inf(1)
	reach := func(interval string, c schemas.Candle) {
		if c.High > f.High {
			f.High, high = c.High, usedCandle{interval, c.Start, "high", c.High}
		}
		if c.Low < f.Low {
			f.Low, low = c.Low, usedCandle{interval, c.Start, "low", c.Low}
		}
	}
	take := func(interval string, length time.Duration, candles []schemas.Candle) {
		for _, c := range candles {
			switch ended := c.Newest.Add(time.Minute); {
			case !c.Start.Before(from):
				reach(interval, c)
			case !ended.After(from) && !ended.Before(from.Add(-dayAgoReach)) && (ago.interval == "" || !ended.Before(ago.start.Add(length))):
				f.DayAgo, ago = c.Close, usedCandle{interval, c.Start, "close", c.Close}
			}
		}
	}
	take("1h", time.Hour, hours)
	take("1m", time.Minute, minutes)
	if f.Whole = f.DayAgo > 0; f.High < f.Low {
		f.High, f.Low = 0, 0
	}
	var used []usedCandle
	for _, c := range []usedCandle{ago, high, low} {
		if c.interval != "" {
			used = append(used, c)
		}
	}
	return f, used, nil
}
