package explain

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
)

// sparklineHours is how far a sparkline looks back.
const sparklineHours = 7 * 24

// sparkline explains a number of the sparkline of a coin's row, by how many follow it: the last one is the price of the row, and those before are the closes of hours.
func (w *work) sparkline(ctx context.Context, coin *views.CatalogCoin, parts []string, depth int) (*Node, error) {
	until, ok := instant(parts[2])
	left, err := strconv.Atoi(parts[3])
	if !ok || err != nil || !until.Truncate(time.Hour).Equal(until) || left < 0 || left >= sparklineHours {
		return nil, query.Invalid("number", "a number of a sparkline is named by sparklineUntil, the beginning of an hour, and by how many follow it, less than %d", sparklineHours)
	}
	number := "sparkline/" + coin.ID + "/" + until.Format(time.RFC3339) + "/" + strconv.Itoa(left)
	if left == 0 {
		price, _ := marketFieldNamed(fieldPrice)
		n, err := w.market(ctx, coin, price, depth)
		if err == nil {
			n.Number = number
		}
		return n, err
	}
	start := until.Add(-time.Duration(left) * time.Hour)
	if end := start.Add(time.Hour); w.past && w.asOf.Before(end) {
		return nil, query.NotFound("the hour had not ended by %s", query.FormatTime(w.asOf.UnixNano()))
	}
	from, to := until.Add(-(sparklineHours-1)*time.Hour), start.Add(time.Hour)
	hours, err := w.History.Intervals(ctx, coin.ID, time.Hour, from, to)
	if err != nil {
		return nil, err
	}
	priced := slices.DeleteFunc(slices.Clone(hours), func(c schemas.Candle) bool { return c.Close <= 0 })
	last := schemas.Candle{Start: from}
	if len(priced) > 0 {
		last = priced[len(priced)-1]
	}
	if w.past && last.Start.Before(start) { // an hour after it may have had a price then
		hours = slices.DeleteFunc(hours, func(c schemas.Candle) bool { return c.Start.Before(last.Start) })
		if err := w.Candles.Unchanged(ctx, coin.Own, time.Hour, last.Start, to, w.asOf, hours); err != nil {
			return nil, query.FaultOfPast(err, w.asOf)
		}
	}
	if len(priced) == 0 {
		return nil, query.NotFound("%s had no price by the hour that starts at %s", coin.ID, start.Format(time.RFC3339))
	}
	n, err := w.candle(ctx, coin, "1h", last.Start, "close", depth)
	if err != nil {
		return nil, err
	}
	if n.Number = number; last.Start.Before(start) {
		n.Note = "the hour that starts at " + start.Format(time.RFC3339) + " has no price: the one before is repeated"
	}
	return n, nil
}
