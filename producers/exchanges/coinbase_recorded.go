package exchanges

import (
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/adapter"
)

// coinbaseRecorded also reads Advanced Trade, whose messages have a channel and no type.
type coinbaseRecorded struct{ coinbaseCodec }

func (c coinbaseRecorded) Decode(f adapter.Frame, out *adapter.Out) error {
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
	return c.coinbaseCodec.Decode(f, out)
}

func decodeAdvanced(b []byte, out *adapter.Out) error {
	var m struct {
		Channel  string        `json:"channel"`
		Time     string        `json:"timestamp"`
		Sequence producers.Num `json:"sequence_num"`
		Events   []struct {
			Type    string          `json:"type"`
			Trades  []coinbaseTrade `json:"trades"`
			Tickers []struct {
				Product string        `json:"product_id"`
				Price   producers.Num `json:"price"`
				Bid     producers.Num `json:"best_bid"`
				Ask     producers.Num `json:"best_ask"`
				Volume  producers.Num `json:"volume_24_h"`
			} `json:"tickers"`
			Candles []struct {
				Product string `json:"product_id"`
				candleObject
			} `json:"candles"`
		} `json:"events"`
	}
	if err := parse(b, &m); err != nil {
		return err
	}
	out.Count("", m.Sequence)
	for _, group := range m.Events {
		snapshot := group.Type == "snapshot"
		switch m.Channel {
		case "market_trades":
			for _, t := range group.Trades {
				e := t.event("market_trades")
				e.Snapshot = snapshot
				out.Add(e)
			}
		case "ticker", "ticker_batch":
			for _, t := range group.Tickers {
				out.Add(adapter.Event{
					Kind: adapter.Ticker, Symbol: t.Product, Channel: m.Channel, Time: producers.RFC3339(m.Time),
					Last: t.Price, Bid: t.Bid, Ask: t.Ask, VolumeBase: t.Volume, Snapshot: snapshot,
				})
			}
		case "candles":
			for _, c := range group.Candles {
				out.Add(c.event(adapter.Event{
					Symbol: c.Product, Channel: m.Channel, Time: producers.RFC3339(m.Time), Interval: "5m", Snapshot: snapshot,
				}, time.Second))
			}
		case "subscriptions", "heartbeats", "status", "l2_data", "level2", "user", "futures_balance_summary":
		default:
			return producers.Unreadable("message of channel %q", m.Channel)
		}
	}
	return nil
}
