package exchanges

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/marketlog/marketlog/producers/adapter"
)

// decodeGateRecorded also reads the best bid and ask, and candles, which the engine does not ask for.
func decodeGateRecorded(f adapter.Frame, out *adapter.Out) error {
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
		return gateBest.one(m.Result, adapter.Event{}, out)
	case m.Channel == "spot.candlesticks":
		return gateAddCandles(m.Result, out)
	}
	return decodeGate(f, out)
}

var gateBest = object{
	Kind: adapter.Ticker, Channel: "book_ticker", Symbol: "s", Time: "t", Bid: "b", Ask: "a", Sequence: "u",
}.reader()

// gateCandles also have "v", the volume in the quote; "a" is in the base, since 2022, and "w" says whether it is closed, since 2024.
// Their name is 1m_BTC_USDT.
var gateCandles = object{
	Kind: adapter.Candle, Channel: "candles", Clock: clock(time.Second),
	Symbol: "n", Start: "t", Open: "o", High: "h", Low: "l", Close: "c", Volume: "a", State: "w",
}.reader()

func gateAddCandles(data []byte, out *adapter.Out) error {
	first := len(out.Events)
	err := gateCandles.listOrOne(data, adapter.Event{}, out)
	for i := range out.Events[first:] {
		e := &out.Events[first+i]
		e.Interval, e.Symbol, _ = strings.Cut(e.Symbol, "_")
		e.Interval = gateInterval(e.Interval)
	}
	return err
}
