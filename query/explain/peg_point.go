package explain

import (
	"context"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
)

// pegIntervals are the candles that a point of a peg's history may be the close of, the shortest first.
var pegIntervals = []string{"1m", "1h", "1d"}

// pegPoint explains a point of the history of a peg, by the end of its candle: how far the close lay from the peg, or the close itself.
func (w *work) pegPoint(ctx context.Context, coin *views.CatalogCoin, name string, parts []string, depth int) (*Node, error) {
	if len(parts) == 4 && parts[3] != "price" {
		return nil, w.nearField(name, parts, 3, []string{"price"})
	}
	own, ok := w.Prices.Coins().ByID(coin.ID)
	if !ok || own.Peg == "" {
		return nil, query.NotFound("%s has no peg in the coin table, and so no history of one", coin.ID)
	}
	end, ok := instant(parts[2])
	if !ok || !end.Truncate(time.Minute).Equal(end) {
		return nil, query.Invalid("number", "the time of a point must be the end of a minute, as Unix seconds or as 2026-01-31T12:00:00Z")
	}
	if w.past && w.asOf.Before(end) {
		return nil, query.NotFound("the candle had not closed by %s", query.FormatTime(w.asOf.UnixNano()))
	}
	for _, interval := range pegIntervals {
		step := intervals[interval]
		samples, err := w.pegSeries(ctx, own, end.Add(-step), end, step)
		if err != nil {
			return nil, err
		}
		if len(samples) != 1 || !samples[0].Time.Equal(end) || !end.Truncate(step).Equal(end) {
			continue
		}
		price, err := w.candle(ctx, coin, interval, end.Add(-step), "close", max(depth-1, 0))
		if err != nil {
			return nil, err
		}
		if len(parts) == 4 {
			return pegPriceOf(coin.ID, samples[0], price), nil
		}
		target, err := w.targetOf(ctx, own, end.Add(-step), samples[0], depth)
		if err != nil {
			return nil, err
		}
		return pegPointOf(coin.ID, samples[0], price, target), nil
	}
	return nil, query.NotFound("the history of the peg of %s has no point at %s: no candle ended then", coin.ID, end.Format(time.RFC3339))
}

// ratesBefore is the offset of reference.raw.v1 before which rates of the currency of a peg count: as of an instant those that counted then.
func (w *work) ratesBefore(ctx context.Context, coin schemas.Coin) (int64, error) {
	if !w.past || coin.Peg == schemas.USD {
		return views.AllFixings, nil
	}
	of, err := w.Candles.ServedAt(ctx, coin, w.asOf)
	return of.Fixings, query.FaultOfPast(err, w.asOf)
}

// pegSeries is the history of a peg: as of an instant by the rates of its currency that counted then.
func (w *work) pegSeries(ctx context.Context, coin schemas.Coin, from, to time.Time, step time.Duration) ([]views.PegSample, error) {
	before, err := w.ratesBefore(ctx, coin)
	switch {
	case err != nil:
		return nil, err
	case before == views.AllFixings:
		return w.History.PegSeries(ctx, coin.ID, from, to, step)
	}
	return w.History.PegSeriesAsOf(ctx, coin.ID, from, to, step, views.CandlesAsOf{Closed: to, ClosedAll: to, Folded: views.FoldedNow, Fixings: before})
}

// targetOf is what the unit of a peg cost at the start of a candle that ends at a time.
func (w *work) targetOf(ctx context.Context, coin schemas.Coin, start time.Time, sample views.PegSample, depth int) (*Node, error) {
	if coin.Peg == schemas.USD {
		return headline("peg-target", &sample.Target, usd, sample.Time.UnixNano()), nil
	}
	before, err := w.ratesBefore(ctx, coin)
	if err != nil {
		return nil, err
	}
	return w.dayRate(ctx, "peg-target", coin.Peg, start, sample.Target, before, depth)
}

// pegPointNumber names a point of the history of a peg.
func pegPointNumber(coinID string, s views.PegSample) string {
	return "peg-point/" + coinID + "/" + s.Time.UTC().Format(time.RFC3339)
}

// pegPriceOf is the node of the price of a point, the close of a candle.
func pegPriceOf(coinID string, s views.PegSample, price *Node) *Node {
	n := headline(pegPointNumber(coinID, s)+"/price", &s.Price, usd, s.Time.UnixNano())
	n.Method = &Method{Name: "close", Version: 1, Formula: "close of the candle that ends then"}
	n.Inputs = []*Node{price}
	n.compare(price.Value)
	return n
}

// pegPointOf is the node of a point: how far the close of a candle lay from what the unit of the peg cost.
func pegPointOf(coinID string, s views.PegSample, price, target *Node) *Node {
	n := headline(pegPointNumber(coinID, s), &s.DeviationBps, bps, s.Time.UnixNano())
	n.Method = &Method{Name: "peg-deviation", Version: 1, Formula: "(close - target) / target x 10000, the target in USD, for other currencies than the dollar as central banks fixed it for the day"}
	n.Inputs = []*Node{price, target}
	again := schemas.PegDeviationBps(*price.Value, s.Target)
	n.compare(&again)
	return n
}
