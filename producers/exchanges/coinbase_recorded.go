package exchanges

import (
	"encoding/json"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/adapter"
)

// decodeCoinbaseRecorded also reads Advanced Trade, whose messages have a channel and no type.
func decodeCoinbaseRecorded(f adapter.Frame, out *adapter.Out) error {
	var m struct {
		Type    string `json:"type"`
		Channel string `json:"channel"`
	}
	if err := parse(f.Bytes, &m); err != nil {
		return err
	}
	if m.Type == "" && m.Channel != "" {
		return decodeAdvanced(f.Bytes, out)
	}
	return decodeCoinbase(f, out)
}

func decodeAdvanced(b []byte, out *adapter.Out) error {
	var m struct {
		Channel  string        `json:"channel"`
		Time     string        `json:"timestamp"`
		Sequence producers.Num `json:"sequence_num"`
		Events   []struct {
			Type    string          `json:"type"`
			Trades  []coinbaseTrade `json:"trades"`
			Tickers json.RawMessage `json:"tickers"`
			Candles json.RawMessage `json:"candles"`
		} `json:"events"`
	}
	if err := parse(b, &m); err != nil {
		return err
	}
	out.Count("", m.Sequence)
	for _, group := range m.Events {
		like := adapter.Event{Channel: m.Channel, Time: producers.RFC3339(m.Time), Snapshot: group.Type == "snapshot"}
		switch m.Channel {
		case "market_trades":
			for _, t := range group.Trades {
				e := t.event("market_trades")
				e.Snapshot = like.Snapshot
				out.Add(e)
			}
		case "ticker", "ticker_batch":
			if err := advancedTickers.list(group.Tickers, like, out); err != nil {
				return err
			}
		case "candles":
			like.Interval = "5m"
			if err := advancedCandles.list(group.Candles, like, out); err != nil {
				return err
			}
		case "subscriptions", "heartbeats", "status", "l2_data", "level2", "user", "futures_balance_summary":
		default:
			return producers.Unreadable("message of channel %q", m.Channel)
		}
	}
	return nil
}

var (
	advancedTickers = object{
		Kind: adapter.Ticker, Symbol: "product_id", Last: "price", Bid: "best_bid", Ask: "best_ask", Base: "volume_24_h",
	}.reader()
	advancedCandles = object{
		Kind: adapter.Candle, Clock: clock(time.Second),
		Symbol: "product_id", Start: "start", Open: "open", High: "high", Low: "low", Close: "close", Volume: "volume",
	}.reader()
)
