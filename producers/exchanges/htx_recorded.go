package exchanges

import (
	"cmp"
	"encoding/json"
	"net/url"
	"strings"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/adapter"
)

// decodeHTXRecorded also reads candles, the best of the book, the merged ticker of a day and all tickers at once, which the engine
// does not ask for.
func decodeHTXRecorded(f adapter.Frame, out *adapter.Out) error {
	var m struct {
		Channel string          `json:"ch"`
		Time    producers.Num   `json:"ts"`
		Tick    json.RawMessage `json:"tick"`
		Data    json.RawMessage `json:"data"` // of all tickers at once
	}
	if err := parse(f.Bytes, &m); err != nil {
		return err
	}
	symbol, channel := htxTopic(m.Channel)
	period, candle := strings.CutPrefix(channel, "kline.")
	switch {
	case symbol == "tickers" && channel == "":
		return htxTickers.list(m.Data, adapter.Event{Channel: "tickers", Time: producers.Unix(m.Time, time.Millisecond)}, out)
	case !candle && channel != "bbo" && channel != "detail":
		return decodeHTX(f, out)
	case candle:
		return htxCandles.one(m.Tick, adapter.Event{Symbol: symbol, Interval: htxPeriod(period)}, out)
	}
	var tick htxMerged
	if err := parse(m.Tick, &tick); err != nil {
		return err
	}
	switch _, _, spot := htxSplit(symbol); {
	case channel == "bbo":
		out.Add(tick.ticker(symbol, "bbo", cmp.Or(tick.Quoted, m.Time)))
	case spot: // a contract's has volumes in contracts
		out.Add(tick.ticker(symbol, "detail", m.Time))
	}
	return nil
}

// htxMerged is a ticker of a day, or the best of the book. Bid and ask may be lists of price and size.
type htxMerged struct {
	Close  producers.Num   `json:"close"`
	Last   producers.Num   `json:"lastPrice"`
	Amount producers.Num   `json:"amount"`
	Vol    producers.Num   `json:"vol"`
	Bids   json.RawMessage `json:"bid"`
	Asks   json.RawMessage `json:"ask"`
	Quoted producers.Num   `json:"quoteTime"` // of the best bid and ask
}

func (t *htxMerged) ticker(symbol, channel string, at producers.Num) adapter.Event {
	return adapter.Event{
		Kind: adapter.Ticker, Symbol: symbol, Channel: channel, Time: producers.Unix(at, time.Millisecond),
		Last: cmp.Or(t.Last, t.Close), Bid: htxPrice(t.Bids), Ask: htxPrice(t.Asks), VolumeBase: t.Amount, VolumeQuote: t.Vol,
	}
}

// htxPrice reads the first number of a list, or a number.
func htxPrice(raw json.RawMessage) producers.Num {
	var list []producers.Num
	switch {
	case raw == nil:
		return ""
	case json.Unmarshal(raw, &list) == nil:
		return bestPrice([][]producers.Num{list})
	}
	return text(raw)
}

// htxCandles are known by the seconds of their start.
var htxCandles = object{
	Kind: adapter.Candle, Channel: "kline", Clock: clock(time.Second),
	Start: "id", Open: "open", High: "high", Low: "low", Close: "close", Volume: "amount",
}.reader()

// htxPeriod spells an interval: 1min, 60min, 4hour, 1day, 1week.
func htxPeriod(period string) string {
	for _, unit := range []struct {
		name   string
		length time.Duration
	}{{"min", time.Minute}, {"hour", time.Hour}, {"day", 24 * time.Hour}, {"week", 7 * 24 * time.Hour}} {
		if n, ok := strings.CutSuffix(period, unit.name); ok {
			if length := producers.Unix(producers.Num(n), unit.length); length != producers.BadTime {
				return adapter.Interval(time.Duration(length))
			}
		}
	}
	return period
}

// htxRecordedEndpoints are about one market, which the answer names by its topic.
var htxRecordedEndpoints = endpoints{
	"merged": htxOfTopic("tick", func(row []byte, e adapter.Event, _ url.Values, out *adapter.Out) error {
		var tick htxMerged
		if err := parse(row, &tick); err != nil {
			return err
		}
		ticker := tick.ticker(e.Symbol, "rest", "")
		ticker.Time = e.Time
		out.Add(ticker)
		return nil
	}),
	"trade": htxOfTopic("data", func(rows []byte, e adapter.Event, _ url.Values, out *adapter.Out) error {
		orders, err := list[json.RawMessage](rows) // each taker's, with the trades that it came to
		for _, order := range orders {
			if err := htxTrades.list(order, e, out); err != nil {
				return err
			}
		}
		return err
	}),
	"kline": htxOfTopic("data", func(rows []byte, e adapter.Event, query url.Values, out *adapter.Out) error {
		e.Time, e.Interval = 0, htxPeriod(query.Get("period"))
		return htxCandles.list(rows, e, out)
	}),
}

func htxOfTopic(path string, read func(rows []byte, e adapter.Event, query url.Values, out *adapter.Out) error) reader {
	open := envelope{Code: "status", OK: "ok", Message: "err-msg", Rows: path, Time: "ts", Symbol: "ch"}.opener()
	return func(query url.Values, body []byte, out *adapter.Out) error {
		rows, e, err := open(body)
		if err != nil {
			return err
		}
		e.Symbol, _ = htxTopic(e.Symbol)
		return read(rows, e, query, out)
	}
}
