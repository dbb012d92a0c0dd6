package exchanges

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/adapter"
)

// htxRecorded also reads candles, the best of the book, the merged ticker of a day and all tickers at once, which the engine does
// not ask for.
type htxRecorded struct{}

// htxRecordedTick is the payload of these. Bid and ask of a merged ticker are lists of price and size.
type htxRecordedTick struct {
	htxTick
	ID     producers.Num   `json:"id"` // of a candle: its start in seconds
	Open   producers.Num   `json:"open"`
	High   producers.Num   `json:"high"`
	Low    producers.Num   `json:"low"`
	Bids   json.RawMessage `json:"bid"`
	Asks   json.RawMessage `json:"ask"`
	Quoted producers.Num   `json:"quoteTime"` // of the best bid and ask
}

func (t *htxRecordedTick) ticker(symbol, channel string, at producers.Num) adapter.Event {
	e := t.htxTick.ticker(symbol, channel, at)
	e.Bid, e.Ask = htxPrice(t.Bids), htxPrice(t.Asks)
	return e
}

func (htxRecorded) Decode(f adapter.Frame, out *adapter.Out) error {
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
		return parseAll(m.Data, func(t *htxRecordedTick) adapter.Event { return t.ticker(t.Symbol, "tickers", m.Time) }, out)
	case !candle && channel != "bbo" && channel != "detail":
		return htxCodec{}.Decode(f, out)
	}
	var tick htxRecordedTick
	if err := parse(m.Tick, &tick); err != nil {
		return err
	}
	switch _, _, spot := htxSplit(symbol); {
	case candle:
		out.Add(tick.candle(symbol, period))
	case channel == "bbo":
		out.Add(tick.ticker(symbol, "bbo", cmp.Or(tick.Quoted, m.Time)))
	case spot: // a contract's has volumes in contracts
		out.Add(tick.ticker(symbol, "detail", m.Time))
	}
	return nil
}

// htxPrice reads the first number of a list, or a number.
func htxPrice(raw json.RawMessage) producers.Num {
	var list []producers.Num
	var n producers.Num
	switch {
	case raw == nil:
	case json.Unmarshal(raw, &list) == nil:
		n = bestPrice([][]producers.Num{list})
	default:
		_ = json.Unmarshal(raw, &n) // fails never: a Num takes whatever it is
	}
	return n
}

func (t *htxRecordedTick) candle(symbol, period string) adapter.Event {
	return adapter.Event{
		Kind: adapter.Candle, Symbol: symbol, Channel: "kline", Interval: htxPeriod(period),
		Start: producers.Unix(t.ID, time.Second), OpenPrice: t.Open, High: t.High, Low: t.Low, ClosePrice: t.Close, Volume: t.Amount,
	}
}

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

func htxRecordedREST(target string, body []byte, out *adapter.Out) error {
	answer, err := parseHTX(body)
	if err != nil {
		return err
	}
	path, query := endpoint(target)
	symbol, _ := htxTopic(answer.Channel)
	switch path {
	case "/market/detail/merged":
		var tick htxRecordedTick
		if err := parse(answer.Tick, &tick); err != nil {
			return err
		}
		out.Add(tick.ticker(symbol, "rest", answer.Time))
	case "/market/history/trade", "/market/trade":
		orders, err := list[htxTick](answer.Data) // each taker's, with the trades that it came to
		if err != nil {
			return err
		}
		for i := range orders {
			addAll(orders[i].Trades, func(t *htxTrade) adapter.Event { return t.event(symbol) }, out)
		}
	case "/market/history/kline":
		return parseAll(answer.Data, func(t *htxRecordedTick) adapter.Event { return t.candle(symbol, query.Get("period")) }, out)
	default:
		return htxREST(target, body, out)
	}
	return nil
}
