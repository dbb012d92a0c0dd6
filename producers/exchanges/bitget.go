package exchanges

import (
	"cmp"
	"encoding/json"
	"net/url"
	"strings"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/adapter"
)

// bitget is Bitget's spot market, by version 2 of its interface; its codec also reads version 3, the
// unified account's.
//
//	feed      https://www.bitget.com/api-doc/common/websocket-intro (300 connections in 5 minutes; 240
//	          subscriptions an hour; 1,000 channels; 10 messages a second of at most 4,096 bytes; the
//	          text "ping" every 30 s)
//	channels  https://www.bitget.com/api-doc/spot/websocket/public/Tickers-Channel, …/Trades-Channel
//	version 3 https://www.bitget.com/api-doc/uta/websocket/public/New-Trades-Channel
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
		Tickers:     one("/api/v2/spot/market/tickers"),
		DecodeREST: func(target string, body []byte, out *adapter.Out) error {
			if path, _ := endpoint(target); !strings.Contains(path, "/v2/") {
				return adapter.Retired("answer of %s", path)
			}
			return bitgetEndpoints.read(target, body, out)
		},
	}
}

// bitgetArg names a channel: version 2 by channel and instId, version 3 by topic and symbol.
type bitgetArg struct {
	Type     string `json:"instType"`
	Channel  string `json:"channel,omitempty"`
	Topic    string `json:"topic,omitempty"`
	ID       string `json:"instId,omitempty"`
	Symbol   string `json:"symbol,omitempty"`
	Interval string `json:"interval,omitempty"`
}

// bitgetRequest names at most 40 channels, which stays below 4,096 bytes.
func bitgetRequest(op string) requester {
	return requests(40, func(symbol string) []bitgetArg {
		return []bitgetArg{{Type: "SPOT", Channel: "trade", ID: symbol}, {Type: "SPOT", Channel: "ticker", ID: symbol}}
	}, func(args []bitgetArg, _ int) any {
		return struct {
			Op   string      `json:"op"`
			Args []bitgetArg `json:"args"`
		}{op, args}
	})
}

var bitgetEndpoints = endpoints{
	"symbols":         nil,
	"tickers":         rows(parseBitget[bitgetTicker], (*bitgetTicker).polled),
	"fills":           rows(parseBitget[bitgetTrade], (*bitgetTrade).event),
	"fills-history":   rows(parseBitget[bitgetTrade], (*bitgetTrade).event),
	"candles":         bitgetPast,
	"history-candles": bitgetPast,
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

// bitgetTrade3 is one of version 3.
type bitgetTrade3 struct {
	ID    producers.Num `json:"i"`
	Time  producers.Num `json:"T"`
	Price producers.Num `json:"p"`
	Size  producers.Num `json:"v"`
	Side  string        `json:"S"`
}

func (t *bitgetTrade3) event() adapter.Event {
	return (&bitgetTrade{ID: t.ID, Time: t.Time, Price: t.Price, Size: t.Size, Side: t.Side}).event()
}

// bitgetTicker has the fields of both versions.
type bitgetTicker struct {
	Symbol string        `json:"symbol"`
	Last   producers.Num `json:"lastPr"`
	Bid    producers.Num `json:"bidPr"`
	Ask    producers.Num `json:"askPr"`
	Base   producers.Num `json:"baseVolume"`
	Quote  producers.Num `json:"quoteVolume"`
	Time   producers.Num `json:"ts"`
	Last3  producers.Num `json:"lastPrice"`
	Bid3   producers.Num `json:"bid1Price"`
	Ask3   producers.Num `json:"ask1Price"`
	Base3  producers.Num `json:"volume24h"`
	Quote3 producers.Num `json:"turnover24h"`
}

func (t *bitgetTicker) event(symbol, channel string, at producers.Num) adapter.Event {
	e := adapter.Event{
		Kind: adapter.Ticker, Symbol: symbol, Channel: channel, Time: producers.Unix(at, time.Millisecond),
		Last: t.Last, Bid: t.Bid, Ask: t.Ask, VolumeBase: t.Base, VolumeQuote: t.Quote,
	}
	if t.Last3 != "" {
		e.Last, e.Bid, e.Ask, e.VolumeBase, e.VolumeQuote = t.Last3, t.Bid3, t.Ask3, t.Base3, t.Quote3
	}
	return e
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
	symbol, notSpot := m.Arg.ID+m.Arg.Symbol, !strings.EqualFold(m.Arg.Type, "spot")
	// like adds what the whole message tells of its trades.
	like := func(e adapter.Event) adapter.Event {
		e.Symbol, e.NotSpot, e.Snapshot = symbol, notSpot, m.Action == "snapshot"
		return e
	}
	switch channel := m.Arg.Channel + m.Arg.Topic; {
	case m.Event == "error":
		out.Notice("%s", m.Message)
	case m.Event != "":
	case m.Arg.Type == "sp" || m.Arg.Type == "mc":
		return adapter.Retired("channel %q of version 1", channel)
	case channel == "trade":
		return parseAll(m.Data, func(t *bitgetTrade) adapter.Event { return like(t.event()) }, out)
	case channel == "publicTrade":
		return parseAll(m.Data, func(t *bitgetTrade3) adapter.Event { return like(t.event()) }, out)
	case channel == "ticker":
		return parseAll(m.Data, func(t *bitgetTicker) adapter.Event {
			e := t.event(symbol, "ticker", cmp.Or(t.Time, m.Time))
			e.NotSpot = notSpot
			return e
		}, out)
	case strings.HasPrefix(channel, "candle"):
		return bitgetCandles(symbol, strings.TrimPrefix(channel, "candle"), notSpot, m.Data, out)
	case channel == "kline":
		return parseAll(m.Data, func(c *candleObject) adapter.Event {
			return c.event(adapter.Event{
				Symbol: symbol, Channel: "candle", Interval: bitgetInterval(m.Arg.Interval), NotSpot: notSpot,
				Time: producers.Unix(m.Time, time.Millisecond),
			}, time.Millisecond)
		}, out)
	case channel == "books1":
		return bitgetBest(symbol, notSpot, m.Data, out)
	case strings.HasPrefix(channel, "books"), channel == "auction":
	default:
		return producers.Unreadable("message of channel %q", channel)
	}
	return nil
}

// bitgetBest reads the book of one level, which always comes whole: the best bid and ask. Version 3 has
// shorter names.
func bitgetBest(symbol string, notSpot bool, data []byte, out *adapter.Out) error {
	type book struct {
		Bids     [][]producers.Num `json:"bids"`
		Asks     [][]producers.Num `json:"asks"`
		Bids3    [][]producers.Num `json:"b"`
		Asks3    [][]producers.Num `json:"a"`
		Time     producers.Num     `json:"ts"`
		Sequence producers.Num     `json:"seq"`
	}
	return parseAll(data, func(b *book) adapter.Event {
		return adapter.Event{
			Kind: adapter.Ticker, Symbol: symbol, Channel: "books1", Time: producers.Unix(b.Time, time.Millisecond), NotSpot: notSpot,
			Bid: bestPrice(append(b.Bids, b.Bids3...)), Ask: bestPrice(append(b.Asks, b.Asks3...)), Sequence: b.Sequence,
		}
	}, out)
}

// bitgetColumns are those of candles; the places behind have the volumes in other assets.
var bitgetColumns = candleColumns{Start: 0, Open: 1, High: 2, Low: 3, Close: 4, Volume: 5, Unit: time.Millisecond}

func bitgetCandles(symbol, interval string, notSpot bool, data []byte, out *adapter.Out) error {
	all, err := list[[]producers.Num](data)
	if err != nil {
		return err
	}
	e := adapter.Event{Symbol: symbol, Channel: "candle", Interval: bitgetInterval(interval), NotSpot: notSpot}
	return bitgetColumns.add(all, e, out)
}

// bitgetPast reads the candles of the HTTP interface.
func bitgetPast(query url.Values, body []byte, out *adapter.Out) error {
	all, err := parseBitget[[]producers.Num](body)
	if err != nil {
		return err
	}
	return bitgetColumns.add(all, adapter.Event{Channel: "candle", Interval: bitgetInterval(query.Get("granularity"))}, out)
}

// bitgetInterval spells an interval: 1m, 1H, 1Dutc of the feed, 1min, 1h, 1day of the HTTP interface.
func bitgetInterval(s string) string {
	s = strings.ToLower(strings.TrimSuffix(s, "utc"))
	for _, long := range []string{"in", "ay", "eek"} {
		s = strings.TrimSuffix(s, long)
	}
	return s
}
