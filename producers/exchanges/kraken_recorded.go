package exchanges

import (
	"encoding/json"
	"net/url"
	"strings"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/adapter"
)

// decodeKrakenRecorded also reads candles, which the engine does not ask for, and knows the feed's first version.
func decodeKrakenRecorded(f adapter.Frame, out *adapter.Out) error {
	if len(f.Bytes) > 0 && f.Bytes[0] == '[' {
		return krakenVersion1(f.Bytes)
	}
	var m struct {
		Channel string          `json:"channel"`
		Type    string          `json:"type"`
		Data    json.RawMessage `json:"data"`
		Error   string          `json:"error"`
		Event   string          `json:"event"` // version 1
	}
	switch err := json.Unmarshal(f.Bytes, &m); {
	case err == nil && m.Channel == "" && m.Error == "" && m.Event != "":
		return nil
	case err != nil || m.Channel != "ohlc":
		return decodeKraken(f, out)
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

// krakenVersion1 refuses the feed's first version, [channel, payload…, name, pair], except for
// its depth, which is not read in any version.
func krakenVersion1(b []byte) error {
	var parts []json.RawMessage
	if err := parse(b, &parts); err != nil {
		return err
	}
	var name string
	if len(parts) < 4 || json.Unmarshal(parts[len(parts)-2], &name) != nil {
		return producers.Unreadable("array of %d elements", len(parts))
	}
	if strings.HasPrefix(name, "book-") {
		return nil
	}
	return adapter.Retired("channel %q of version 1", name)
}

// krakenSide is of trades of the HTTP interface.
var krakenSide = sides("b", "s")

// krakenPast reads price, size, seconds, side, order type, remark and, of late, the id.
func krakenPast(_ url.Values, body []byte, out *adapter.Out) error {
	return krakenRows(body, func(symbol string, trades [][]producers.Num) error {
		for _, t := range trades {
			if len(t) < 6 {
				return producers.Unreadable("trade of %d elements", len(t))
			}
			e := adapter.Event{
				Kind: adapter.Trade, Symbol: symbol, Channel: "trade",
				Price: t[0], Size: t[1], Time: producers.Unix(t[2], time.Second), Side: krakenSide(t[3]),
			}
			if len(t) > 6 {
				e.ID = t[6]
			}
			out.Add(e)
		}
		return nil
	})
}
