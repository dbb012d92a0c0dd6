package exchanges

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/adapter"
)

// decodeKucoinRecorded also reads candles and the best bid and ask by themselves, which the engine does not ask for, and the unified feed,
// whose pushes name their channel by "T" and whose answers have no type.
func decodeKucoinRecorded(f adapter.Frame, out *adapter.Out) error {
	var m struct {
		Type    string          `json:"type"`
		Topic   string          `json:"topic"`
		Data    json.RawMessage `json:"data"`
		Channel string          `json:"T"` // and kind of market
		Update  string          `json:"t"` // unused, but "T" would take it
		Payload json.RawMessage `json:"d"`
		Result  json.RawMessage `json:"result"` // of a request
		Op      string          `json:"op"`
		Message string          `json:"message"`
		Reason  string          `json:"reason"`
	}
	if err := parse(f.Bytes, &m); err != nil {
		return err
	}
	switch {
	case m.Channel != "":
		return kucoinUnified(m.Channel, m.Payload, out)
	case m.Type == "message":
		return kucoinRecordedTopic(m.Topic, m.Data, f, out)
	case m.Type == "error":
	case strings.Trim(string(m.Result), `"`) == "false":
		out.Notice("%s%s", m.Message, m.Reason)
		return nil
	case len(m.Result) > 0, m.Op == "pong", m.Message == "welcome", string(m.Data) == `"welcome"`:
		return nil
	}
	return decodeKucoin(f, out)
}

var (
	kucoinUnifiedTrades = object{
		Kind: adapter.Trade, Channel: "trades", Clock: clock(time.Nanosecond),
		Symbol: "s", Time: "M", ID: "ti", Price: "p", Size: "q", Side: "S",
	}.reader()
	kucoinUnifiedTickers = object{
		Kind: adapter.Ticker, Channel: "ticker", Clock: clock(time.Nanosecond),
		Symbol: "s", Time: "M", Last: "l", Bid: "b", Ask: "a", Sequence: "E",
	}.reader()
)

// kucoinUnified reads a push of the unified feed. Keys differ by case alone: s is the symbol, S the side
// or whether a candle is closed.
func kucoinUnified(channel string, payload []byte, out *adapter.Out) error {
	name, market, _ := strings.Cut(channel, ".")
	notSpot := market != "SPOT"
	switch name {
	case "trade":
		return kucoinUnifiedTrades.one(payload, adapter.Event{NotSpot: notSpot}, out)
	case "ticker":
		return kucoinUnifiedTickers.one(payload, adapter.Event{NotSpot: notSpot}, out)
	case "kline":
		var c struct {
			Symbol   string        `json:"s"`
			Closed   producers.Num `json:"S"` // true or "true"
			Interval string        `json:"i"`
			Start    producers.Num `json:"O"`
			End      producers.Num `json:"C"`
			Open     producers.Num `json:"o"`
			High     producers.Num `json:"h"`
			Low      producers.Num `json:"l"`
			Close    producers.Num `json:"c"`
			Volume   producers.Num `json:"v"`
		}
		if err := parse(payload, &c); err != nil {
			return err
		}
		out.Add(adapter.Event{
			Kind: adapter.Candle, Symbol: c.Symbol, Channel: "candles", NotSpot: notSpot, State: candleState(c.Closed == "true"),
			Start: producers.Unix(c.Start, time.Second), Interval: kucoinInterval(c.Interval),
			OpenPrice: c.Open, High: c.High, Low: c.Low, ClosePrice: c.Close, Volume: c.Volume,
		})
	case "obu", "callAuctionInfo", "mark-price", "funding-fee", "funding-fee-all-symbols":
	default:
		return producers.Unreadable("message of channel %q", channel)
	}
	return nil
}

func kucoinRecordedTopic(topic string, data []byte, f adapter.Frame, out *adapter.Out) error {
	channel, symbol, _ := strings.Cut(topic, ":")
	switch channel {
	case "/market/candles":
		symbol, interval, _ := strings.Cut(symbol, "_")
		var c struct {
			Row  []producers.Num `json:"candles"`
			Time producers.Num   `json:"time"`
		}
		if err := parse(data, &c); err != nil {
			return err
		}
		e := adapter.Event{Symbol: symbol, Channel: "candles", Interval: kucoinInterval(interval), Time: producers.Unix(c.Time, time.Nanosecond)}
		return kucoinColumns.add([][]producers.Num{c.Row}, e, out)
	case "/spotMarket/level1":
		var t struct {
			Bid  []producers.Num `json:"bids"` // price and size
			Ask  []producers.Num `json:"asks"`
			Time producers.Num   `json:"timestamp"`
		}
		if err := parse(data, &t); err != nil {
			return err
		}
		e := adapter.Event{Kind: adapter.Ticker, Symbol: symbol, Channel: "level1", Time: producers.Unix(t.Time, time.Millisecond)}
		if len(t.Bid) > 0 {
			e.Bid = t.Bid[0]
		}
		if len(t.Ask) > 0 {
			e.Ask = t.Ask[0]
		}
		out.Add(e)
	default:
		return decodeKucoin(f, out)
	}
	return nil
}
