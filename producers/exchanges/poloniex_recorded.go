package exchanges

import (
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/adapter"
)

// poloniexCandle is the reader of a row of candles, which the engine does not subscribe to.
func poloniexCandle(channel string) func(*poloniexRow) adapter.Event {
	interval, candles := strings.CutPrefix(channel, "candles_")
	if !candles {
		return nil
	}
	return func(r *poloniexRow) adapter.Event { return r.candle(poloniexInterval(interval)) }
}

func (r *poloniexRow) candle(interval string) adapter.Event {
	return adapter.Event{
		Kind: adapter.Candle, Symbol: r.Symbol, Channel: "candles", Time: producers.Unix(r.Pushed, time.Millisecond),
		Start: producers.Unix(r.Start, time.Millisecond), Interval: interval,
		OpenPrice: r.Open, High: r.High, Low: r.Low, ClosePrice: r.Close, Volume: r.Quantity,
	}
}

func (r *poloniexRow) price() adapter.Event {
	return adapter.Event{
		Kind: adapter.Ticker, Symbol: r.Symbol, Channel: "rest", Time: producers.Unix(r.Recorded, time.Millisecond), Last: r.Price,
	}
}

// poloniexInterval spells minute_5, or HOUR_1.
func poloniexInterval(name string) string {
	unit, count, _ := strings.Cut(strings.ToLower(name), "_")
	n, err := strconv.Atoi(count)
	if err != nil || n < 1 || n > 60 {
		return ""
	}
	switch unit {
	case "minute":
		return adapter.Interval(time.Duration(n) * time.Minute)
	case "hour":
		return adapter.Interval(time.Duration(n) * time.Hour)
	case "day":
		return adapter.Interval(time.Duration(n) * 24 * time.Hour)
	case "week":
		return adapter.Interval(time.Duration(n) * 7 * 24 * time.Hour)
	case "month":
		return count + "M"
	}
	return ""
}

// poloniexCandles reads low, high, open, close, amount, quantity, the same two of takers who bought, count, time of the answer,
// average, interval, start, end. Each row names its interval.
func poloniexCandles(_ url.Values, body []byte, out *adapter.Out) error {
	all, err := list[[]producers.Num](body)
	if err != nil {
		return err
	}
	columns := candleColumns{Low: 0, High: 1, Open: 2, Close: 3, Volume: 5, Start: 12, Unit: time.Millisecond}
	for _, row := range all {
		if len(row) < 14 {
			return producers.Unreadable("a candle of %d fields", len(row))
		}
		e := adapter.Event{Channel: "rest", Interval: poloniexInterval(string(row[11]))}
		if err := columns.add([][]producers.Num{row}, e, out); err != nil {
			return err
		}
	}
	return nil
}
