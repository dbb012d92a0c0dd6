package exchanges

import (
	"cmp"
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
		Countries: countriesOf["bitget"],
		Evidence:  evidenceOf["bitget"],
		Limits: adapter.Limits{
			Connects: 300, ConnectsPer: 5 * time.Minute,
			MarketsPerSocket: 250, // half of the channels allowed: the venue advises fewer
			Messages:         5,
			Requests:         10,
		},
		Silence:     60 * time.Second,
		Listing:     []string{"/api/v2/spot/public/symbols"},
		Instruments: markets(parseBitget[bitgetMarket], (*bitgetMarket).instrument),
		Subscribe:   bitgetRequest("subscribe"),
		Unsubscribe: bitgetRequest("unsubscribe"),
		Heartbeat:   adapter.Heartbeat{Every: 25 * time.Second, Message: heartbeat("ping")},
		NewCodec:    func() adapter.Codec { return bitgetCodec{} },
		NewRecorded: func() adapter.Codec { return bitgetRecorded{} },
		Tickers:     one("/api/v2/spot/market/tickers"),
		DecodeREST:  bitgetEndpoints.ofVersion("/v2/"),
		RecordedREST: bitgetEndpoints.with(endpoints{
			"fills":           rows(parseBitget[bitgetTrade], (*bitgetTrade).event),
			"fills-history":   rows(parseBitget[bitgetTrade], (*bitgetTrade).event),
			"candles":         bitgetPast,
			"history-candles": bitgetPast,
		}).ofVersion("/v2/"),
	}
}

// bitgetArg names a channel.
type bitgetArg struct {
	Type    string `json:"instType"`
	Channel string `json:"channel"`
	Symbol  string `json:"instId"`
}

// bitgetRequest names at most 40 channels, which stays below 4,096 bytes.
func bitgetRequest(op string) requester {
	return requests(40, func(symbol string) []bitgetArg {
		return []bitgetArg{{"SPOT", "trade", symbol}, {"SPOT", "ticker", symbol}}
	}, func(args []bitgetArg, _ int) any {
		return struct {
			Op   string      `json:"op"`
			Args []bitgetArg `json:"args"`
		}{op, args}
	})
}

var bitgetEndpoints = endpoints{
	"symbols": nil,
	"tickers": rows(parseBitget[bitgetTicker], (*bitgetTicker).polled),
}

// parseBitget reads the envelope of the HTTP interface.
func parseBitget[T any](body []byte) ([]T, error) {
	var answer struct {
		Code    string `json:"code"`
		Message string `json:"msg"`
		Data    []T    `json:"data"`
	}
	if err := parse(body, &answer); err != nil {
		return nil, err
	}
	if answer.Code != "00000" {
		return nil, producers.Unreadable("error %q: %s", answer.Code, answer.Message)
	}
	return answer.Data, nil
}

type bitgetMarket struct {
	Symbol string `json:"symbol"`
	Base   string `json:"baseCoin"`
	Quote  string `json:"quoteCoin"`
	Status string `json:"status"`
}

func (m *bitgetMarket) instrument() (adapter.Instrument, bool) {
	return adapter.Instrument{Symbol: m.Symbol, Base: m.Base, Quote: m.Quote}, m.Status == "online"
}

// bitgetCodec needs no state: every message names its channel.
type bitgetCodec struct{}

// bitgetTrade is a trade of version 2, also of the HTTP interface, which alone names its symbol.
type bitgetTrade struct {
	ID     producers.Num `json:"tradeId"`
	Symbol string        `json:"symbol"`
	Time   producers.Num `json:"ts"`
	Price  producers.Num `json:"price"`
	Size   producers.Num `json:"size"`
	Side   string        `json:"side"`
}

func (t *bitgetTrade) event() adapter.Event {
	return adapter.Event{
		Kind: adapter.Trade, Symbol: t.Symbol, Channel: "trade", Time: producers.Unix(t.Time, time.Millisecond),
		ID: t.ID, Price: t.Price, Size: t.Size, Side: adapter.Side(strings.ToLower(t.Side)),
	}
}

type bitgetTicker struct {
	Symbol string        `json:"symbol"`
	Last   producers.Num `json:"lastPr"`
	Bid    producers.Num `json:"bidPr"`
	Ask    producers.Num `json:"askPr"`
	Base   producers.Num `json:"baseVolume"`
	Quote  producers.Num `json:"quoteVolume"`
	Time   producers.Num `json:"ts"`
}

func (t *bitgetTicker) event(symbol, channel string, at producers.Num) adapter.Event {
	return adapter.Event{
		Kind: adapter.Ticker, Symbol: symbol, Channel: channel, Time: producers.Unix(at, time.Millisecond),
		Last: t.Last, Bid: t.Bid, Ask: t.Ask, VolumeBase: t.Base, VolumeQuote: t.Quote,
	}
}

func (t *bitgetTicker) polled() adapter.Event { return t.event(t.Symbol, "rest", t.Time) }

func (bitgetCodec) Decode(f adapter.Frame, out *adapter.Out) error {
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
	like := m.Arg.like(m.Action)
	switch channel := m.Arg.Channel; {
	case m.Event == "error":
		out.Notice("%s", m.Message)
	case m.Event != "":
	case m.Arg.Type == "sp" || m.Arg.Type == "mc":
		return adapter.Retired("channel %q of version 1", channel)
	case channel == "trade":
		return parseAll(m.Data, func(t *bitgetTrade) adapter.Event { return like(t.event()) }, out)
	case channel == "ticker":
		return parseAll(m.Data, func(t *bitgetTicker) adapter.Event { return like(t.event("", "ticker", cmp.Or(t.Time, m.Time))) }, out)
	case strings.HasPrefix(channel, "books"), channel == "auction":
	default:
		return producers.Unreadable("message of channel %q", channel)
	}
	return nil
}

// like adds to an event what the whole message says. The newest ticker is one whether it is a snapshot or not.
func (a *bitgetArg) like(action string) func(adapter.Event) adapter.Event {
	return func(e adapter.Event) adapter.Event {
		e.Symbol, e.NotSpot = a.Symbol, !strings.EqualFold(a.Type, "spot")
		e.Snapshot = e.Kind == adapter.Trade && action == "snapshot"
		return e
	}
}
