package exchanges

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/adapter"
)

// geminiRecorded also reads Market Data version 2, whose messages have a type, and whose refusals are a result.
type geminiRecorded struct{ geminiCodec }

func (c geminiRecorded) Decode(f adapter.Frame, out *adapter.Out) error {
	var m struct {
		Type   string          `json:"type"`
		Result json.RawMessage `json:"result"`
		Reason string          `json:"reason"`
		ID     json.RawMessage `json:"id"`
		Error  json.RawMessage `json:"error"`
	}
	if err := parse(f.Bytes, &m); err != nil {
		return err
	}
	switch {
	case m.Error == nil && string(m.Result) == `"error"`:
		out.Notice("%s", m.Reason)
		return nil
	case m.Error == nil && m.ID == nil && m.Result == nil && m.Type != "":
		return geminiArchived(m.Type, f.Bytes, out)
	}
	return c.geminiCodec.Decode(f, out)
}

// geminiTrade is a trade of Market Data version 2. Its event's number is of that feed alone.
type geminiTrade struct {
	Symbol string        `json:"symbol"`
	Event  producers.Num `json:"event_id"`
	ID     producers.Num `json:"tid"`
	Time   producers.Num `json:"timestamp"`
	Price  producers.Num `json:"price"`
	Size   producers.Num `json:"quantity"`
	Side   string        `json:"side"` // the taker's
}

func (t *geminiTrade) event(snapshot bool) adapter.Event {
	return adapter.Event{
		Kind: adapter.Trade, Symbol: t.Symbol, Channel: "marketdata", Time: producers.Unix(t.Time, time.Millisecond),
		ID: cmp.Or(t.Event, t.ID), Price: t.Price, Size: t.Size, Side: geminiSide(t.Side), Snapshot: snapshot,
	}
}

// geminiArchived reads Market Data version 2. Version 1 names no market: each had a connection.
func geminiArchived(kind string, b []byte, out *adapter.Out) error {
	switch {
	case kind == "trade":
		var t geminiTrade
		if err := parse(b, &t); err != nil {
			return err
		}
		out.Add(t.event(false))
	case kind == "l2_updates": // the first has the newest trades
		var m struct {
			Symbol string        `json:"symbol"`
			Trades []geminiTrade `json:"trades"`
		}
		if err := parse(b, &m); err != nil {
			return err
		}
		for i := range m.Trades {
			t := &m.Trades[i]
			t.Symbol = cmp.Or(t.Symbol, m.Symbol)
			out.Add(t.event(true))
		}
	case strings.HasPrefix(kind, "candles_"):
		var m struct {
			Symbol  string            `json:"symbol"`
			Changes [][]producers.Num `json:"changes"`
		}
		if err := parse(b, &m); err != nil {
			return err
		}
		name := strings.TrimSuffix(strings.TrimPrefix(kind, "candles_"), "_updates")
		return geminiCandles(m.Symbol, "candles", name, m.Changes, out)
	case kind == "update":
		return adapter.Retired("message of version 1")
	case kind == "heartbeat", kind == "subscription_ack", strings.HasPrefix(kind, "auction_"),
		kind == "mark_price_updates", kind == "funding_amount_updates", kind == "block_trade":
	default:
		return producers.Unreadable("message of type %q", kind)
	}
	return nil
}
