package explain

import (
	"context"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
)

// chartIntervals are the intervals of charts and histories, by the names that answers have of them, as candles are named.
var chartIntervals = map[string]string{"5m": "5m", "1h": "1h", "1d": "1d", "hourly": "1h", "daily": "1d"}

var chartIntervalNames = []string{"5m", "1h", "1d", "hourly", "daily"}

// mostUnclosed bounds how many intervals back one is looked for that has not closed: as many as a day of the shortest has.
const mostUnclosed = 288

// chartInterval reads the interval of a chart and the start of one of them, the third and the fourth part of a name.
func (w *work) chartInterval(name string, parts []string) (interval string, start time.Time, err error) {
	interval, ok := chartIntervals[parts[2]]
	if !ok {
		return "", start, w.nearField(name, parts, 2, chartIntervalNames)
	}
	step := intervals[interval]
	if start, ok = instant(parts[3]); !ok || !start.Truncate(step).Equal(start) {
		return "", start, w.notABeginning(interval, step)
	}
	return interval, start, nil
}

// chartPoint explains a point of a chart: the close of a candle, and of an interval that has not closed the newest price in it.
func (w *work) chartPoint(ctx context.Context, coin *views.CatalogCoin, name string, parts []string, depth int) (*Node, error) {
	interval, start, err := w.chartInterval(name, parts)
	if err != nil {
		return nil, err
	}
	step := intervals[interval]
	end := start.Add(step)
	if w.past && w.asOf.Before(end) {
		return nil, query.NotFound("the candle had not closed by %s, and what an interval was before it closed is explained as it is now only", query.FormatTime(w.asOf.UnixNano()))
	}
	closed, err := w.closedUntil(ctx)
	if err != nil {
		return nil, err
	}
	n := (*Node)(nil)
	if end.After(closed) && !w.past {
		n, err = w.unclosed(ctx, coin, step, start)
	} else {
		n, err = w.candle(ctx, coin, interval, start, "close", depth)
	}
	if err != nil {
		return nil, err
	}
	n.Number = chartPointNumber(coin.ID, interval, start)
	return n, nil
}

// closedUntil is the time up to which minutes have closed: now at the latest.
func (w *work) closedUntil(ctx context.Context) (time.Time, error) {
	closed, err := w.History.ClosedUntil(ctx)
	if closed.After(w.now) {
		closed = w.now.UTC().Truncate(time.Minute)
	}
	return closed, err
}

func chartPointNumber(coinID, interval string, start time.Time) string {
	return "chart-point/" + coinID + "/" + interval + "/" + start.Format(time.RFC3339)
}

// unclosed explains the last price of an interval that has not closed, as charts have it now: it is the newest one that the log has.
func (w *work) unclosed(ctx context.Context, coin *views.CatalogCoin, step time.Duration, start time.Time) (*Node, error) {
	back := int(w.now.UTC().Truncate(step).Sub(start) / step)
	if coin.Own.Rank == 0 || back < 0 || back > mostUnclosed {
		return nil, query.NotFound("charts have no point of %s at %s", coin.ID, start.Format(time.RFC3339))
	}
	candles, err := w.Candles.Read(ctx, coin.Own, step, max(back, 1), w.now)
	if err != nil {
		return nil, err
	}
	for i, c := range candles {
		if !c.Start.Equal(start) {
			continue
		}
		until := views.PricedUntil(c, w.now)
		if c.Newest.Before(c.Start) && i > 0 { // it carries the price of the one before
			until = views.PricedUntil(candles[i-1], w.now)
		}
		n := headline("", &c.Close, usd, start.UnixNano())
		n.Method = &Method{Name: "newest-price", Version: 1, Formula: "the newest published price: the interval has not closed"}
		prices, _, err := w.loggedPrices(ctx, coin.ID, until.Truncate(time.Minute), until.Add(time.Second))
		switch {
		case err != nil:
			return nil, err
		case len(prices) == 0:
			n.notReproduced("the log has no price of that minute")
			return n, nil
		}
		last := prices[len(prices)-1]
		n.Records = []Place{last.at}
		n.compare(&last.price)
		n.Inputs = []*Node{stated("price/"+coin.ID, &last.price, usd, last.second*int64(time.Second), last.at)}
		return n, nil
	}
	return nil, query.NotFound("%s has no price in the interval that starts at %s", coin.ID, start.Format(time.RFC3339))
}
