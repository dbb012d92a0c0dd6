package exchanges

import (
	"encoding/json"
	"net/url"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/adapter"
)

// krakenRecorded also reads candles, which the engine does not ask for.
type krakenRecorded struct{}

func (krakenRecorded) Decode(f adapter.Frame, out *adapter.Out) error {
	var m struct {
		Channel string          `json:"channel"`
		Type    string          `json:"type"`
		Data    json.RawMessage `json:"data"`
	}
	if len(f.Bytes) == 0 || f.Bytes[0] != '{' || json.Unmarshal(f.Bytes, &m) != nil || m.Channel != "ohlc" {
		return krakenCodec{}.Decode(f, out)
	}
	type candle struct {
		Symbol   string        `json:"symbol"`
		Time     string        `json:"timestamp"`
		Begin    string        `json:"interval_begin"`
		Interval int           `json:"interval"` // minutes
		Open     producers.Num `json:"open"`
		High     producers.Num `json:"high"`
		Low      producers.Num `json:"low"`
		Close    producers.Num `json:"close"`
		Volume   producers.Num `json:"volume"`
	}
	return parseAll(m.Data, func(c *candle) adapter.Event {
		return adapter.Event{
			Kind: adapter.Candle, Symbol: c.Symbol, Channel: m.Channel, Time: producers.RFC3339(c.Time), Snapshot: m.Type == "snapshot",
			Start: producers.RFC3339(c.Begin), Interval: adapter.Interval(time.Duration(c.Interval) * time.Minute),
			OpenPrice: c.Open, High: c.High, Low: c.Low, ClosePrice: c.Close, Volume: c.Volume,
		}
	}, out)
}

// krakenSides are the sides of trades of the HTTP interface.
var krakenSides = map[producers.Num]adapter.Side{"b": adapter.Buy, "s": adapter.Sell}

// krakenTrades reads price, size, seconds, side, order type, remark and, of late, the id.
func krakenTrades(_ url.Values, body []byte, out *adapter.Out) error {
	return krakenRows(body, func(symbol string, trades [][]producers.Num) error {
		for _, t := range trades {
			if len(t) < 6 {
				return producers.Unreadable("trade of %d elements", len(t))
			}
			e := adapter.Event{
				Kind: adapter.Trade, Symbol: symbol, Channel: "trade",
				Price: t[0], Size: t[1], Time: producers.Unix(t[2], time.Second), Side: krakenSides[t[3]],
			}
			if len(t) > 6 {
				e.ID = t[6]
			}
			out.Add(e)
		}
		return nil
	})
}
