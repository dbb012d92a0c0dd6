package exchanges

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/adapter"
)

// gateRecorded also reads the best bid and ask, and candles, which the engine does not ask for.
type gateRecorded struct{ gateCodec }

func (c gateRecorded) Decode(f adapter.Frame, out *adapter.Out) error {
	var m struct {
		Channel string          `json:"channel"`
		Event   string          `json:"event"`
		Result  json.RawMessage `json:"result"`
		Error   json.RawMessage `json:"error"`
		Method  string          `json:"method"` // version 3
	}
	if err := parse(f.Bytes, &m); err != nil {
		return err
	}
	switch {
	case m.Method != "", m.Error != nil, m.Event == "subscribe", m.Event == "unsubscribe":
	case m.Channel == "spot.book_ticker":
		return gateBest(m.Result, out)
	case m.Channel == "spot.candlesticks":
		return rows(listOrOne[gateCandle], (*gateCandle).event)(nil, m.Result, out)
	}
	return c.gateCodec.Decode(f, out)
}

func gateBest(data []byte, out *adapter.Out) error {
	var t struct {
		Symbol  string        `json:"s"`
		Bid     producers.Num `json:"b"`
		BidSize producers.Num `json:"B"` // unused, but b and a would take the sizes
		Ask     producers.Num `json:"a"`
		AskSize producers.Num `json:"A"`
		Update  producers.Num `json:"u"`
		Millis  producers.Num `json:"t"`
	}
	if err := parse(data, &t); err != nil {
		return err
	}
	out.Add(adapter.Event{
		Kind: adapter.Ticker, Symbol: t.Symbol, Channel: "book_ticker", Time: producers.Unix(t.Millis, time.Millisecond),
		Bid: t.Bid, Ask: t.Ask, Sequence: t.Update,
	})
	return nil
}

// gateCandle also has "v", the volume in the quote.
type gateCandle struct {
	Start  producers.Num `json:"t"`
	Name   string        `json:"n"` // 1m_BTC_USDT
	Open   producers.Num `json:"o"`
	High   producers.Num `json:"h"`
	Low    producers.Num `json:"l"`
	Close  producers.Num `json:"c"`
	Volume producers.Num `json:"a"` // in the base; since 2022
	Closed *bool         `json:"w"` // since 2024
}

func (c *gateCandle) event() adapter.Event {
	interval, symbol, _ := strings.Cut(c.Name, "_")
	e := adapter.Event{
		Kind: adapter.Candle, Symbol: symbol, Channel: "candles",
		Start: producers.Unix(c.Start, time.Second), Interval: gateInterval(interval),
		OpenPrice: c.Open, High: c.High, Low: c.Low, ClosePrice: c.Close, Volume: c.Volume,
	}
	if c.Closed != nil {
		e.State = candleState(*c.Closed)
	}
	return e
}
