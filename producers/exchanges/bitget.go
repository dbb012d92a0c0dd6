package exchanges

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/adapter"
)

// bitget is Bitget's spot market, by version 2 of its interface.
//
//	feed      https://www.bitget.com/api-doc/common/websocket-intro (300 connections in 5 minutes; 240
//	          subscriptions an hour; 1,000 channels; 10 messages a second of at most 4,096 bytes; the
//	          text "ping" every 30 s)
//	channels  https://www.bitget.com/api-doc/spot/websocket/public/Tickers-Channel, …/Trades-Channel
//	HTTP      https://www.bitget.com/api-doc/spot/market/Get-Tickers (20 requests a second)
func bitget() adapter.Venue {
	return adapter.Venue{
		Slug: "bitget", Name: "Bitget", Version: 2,
		URLs: adapter.URLs{
			Stream: "wss://ws.bitget.com/v2/ws/public",
			REST:   "https://api.bitget.com",
		},
		Limits: adapter.Limits{
			Connects: 300, ConnectsPer: 5 * time.Minute,
			MarketsPerSocket: 250, // half of the channels allowed: the venue advises fewer
			Messages:         5,
			Requests:         10,
		},
		Silence:     60 * time.Second,
		Listing:     []string{"/api/v2/spot/public/symbols"},
		Instruments: bitgetMarkets.list(bitgetAnswer), Halted: bitgetMarkets.halted(bitgetAnswer),
		Subscribe:   bitgetRequests.with("subscribe"),
		Unsubscribe: bitgetRequests.with("unsubscribe"),
		Heartbeat:   adapter.Heartbeat{Every: 25 * time.Second, Message: heartbeat("ping")},
		NewCodec:    adapter.Stateless(decodeBitget), // every message names its channel
		NewRecorded: adapter.Stateless(decodeBitgetRecorded),
		Tickers:     one("/api/v2/spot/market/tickers"),
		DecodeREST:  bitgetEndpoints.below("/api/v2/spot/"),
		RecordedREST: bitgetEndpoints.with(endpoints{
			"market/fills":           bitgetTrades.in(bitgetAnswer),
			"market/fills-history":   bitgetTrades.in(bitgetAnswer),
			"market/candles":         bitgetPast,
			"market/history-candles": bitgetPast,
		}).below("/api/v2/spot/"),
	}
}

var bitgetMarkets = market{
	Symbol: "symbol", Base: "baseCoin", Quote: "quoteCoin", Trades: []string{"status=online"},
}

// bitgetRequests name at most 40 channels, which stays below 4,096 bytes.
var bitgetRequests = requests{
	Most: 40,
	Topics: []string{
		`{"instType":"SPOT","channel":"trade","instId":"<symbol>"}`,
		`{"instType":"SPOT","channel":"ticker","instId":"<symbol>"}`,
	},
	Messages: []string{`{"op":"<verb>","args":[<topics>]}`},
}

var bitgetEndpoints = endpoints{
	"public/symbols": nil,
	"market/tickers": bitgetTickers.as("rest").in(bitgetAnswer),
}

var bitgetAnswer = envelope{Code: "code", OK: "00000", Message: "msg", Rows: "data"}.opener()

// bitgetTrades and bitgetTickers are also those of the HTTP interface, whose rows alone name their symbol.
var (
	bitgetTrades = object{
		Kind: adapter.Trade, Channel: "trade",
		Symbol: "symbol", Time: "ts", ID: "tradeId", Price: "price", Size: "size", Side: "side",
	}.reader()
	bitgetTickers = object{
		Kind: adapter.Ticker, Channel: "ticker",
		Symbol: "symbol", Time: "ts", Last: "lastPr", Bid: "bidPr", Ask: "askPr", Base: "baseVolume", Quote: "quoteVolume",
	}.reader()
)

func decodeBitget(f adapter.Frame, out *adapter.Out) error {
	if string(f.Bytes) == "pong" {
		return nil
	}
	var m struct {
		Event   string          `json:"event"`
		Message string          `json:"msg"`
		Action  string          `json:"action"`
		Arg     bitgetArg       `json:"arg"`
		Data    json.RawMessage `json:"data"`
		Time    producers.Num   `json:"ts"`
	}
	if err := parse(f.Bytes, &m); err != nil {
		return err
	}
	switch channel := m.Arg.Channel; {
	case m.Event == "error":
		out.Notice("%s", m.Message)
	case m.Event != "":
	case m.Arg.Type == "sp" || m.Arg.Type == "mc":
		return adapter.Retired("channel %q of version 1", channel)
	case channel == "trade":
		return bitgetTrades.list(m.Data, m.Arg.row(m.Action == "snapshot", ""), out)
	case channel == "ticker": // the newest is one whether it is a snapshot or not
		return bitgetTickers.list(m.Data, m.Arg.row(false, m.Time), out)
	case strings.HasPrefix(channel, "books"), channel == "auction":
	default:
		return producers.Unreadable("message of channel %q", channel)
	}
	return nil
}

// bitgetArg names a channel.
type bitgetArg struct {
	Type    string `json:"instType"`
	Channel string `json:"channel"`
	Symbol  string `json:"instId"`
}

// row is what the whole message says about each row.
func (a *bitgetArg) row(snapshot bool, at producers.Num) adapter.Event {
	return adapter.Event{
		Symbol: a.Symbol, NotSpot: !strings.EqualFold(a.Type, "spot"), Snapshot: snapshot, Time: producers.Unix(at, time.Millisecond),
	}
}
