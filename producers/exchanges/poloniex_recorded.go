package exchanges

import (
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/adapter"
)

// decodePoloniexRecorded also reads candles, which the engine does not ask for.
func decodePoloniexRecorded(f adapter.Frame, out *adapter.Out) error {
	var m struct {
		Event   string          `json:"event"`
		Channel string          `json:"channel"`
		Action  string          `json:"action"`
		Data    json.RawMessage `json:"data"`
	}
	interval, candles := "", false
	if json.Unmarshal(f.Bytes, &m) == nil && m.Event == "" {
		interval, candles = strings.CutPrefix(m.Channel, "candles_")
	}
	if !candles {
		return decodePoloniex(f, out)
	}
	return poloniexCandle.list(m.Data, adapter.Event{Interval: poloniexInterval(interval), Snapshot: m.Action == "snapshot"}, out)
}

var (
	poloniexCandle = object{
		Kind: adapter.Candle, Channel: "candles", Symbol: "symbol", Time: "ts",
		Start: "startTime", Open: "open", High: "high", Low: "low", Close: "close", Volume: "quantity",
	}.reader()
	poloniexPrices = object{Kind: adapter.Ticker, Channel: "rest", Symbol: "symbol", Time: "time", Last: "price"}.reader()
)

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
