package exchanges

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/marketlog/marketlog/producers"
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
func bitget() producers.Venue {
	return producers.Venue{
		Slug: "bitget", Name: "Bitget", Version: 2,
		URLs: producers.URLs{
			Stream: "wss://ws.bitget.com/v2/ws/public",
			REST:   "https://api.bitget.com",
		},
		Countries: producers.Countries{
			// The terms of 2026-09-15, which name Crimea, Donetsk and Luhansk too.
			Refused: []string{
				"AF", "AS", "AT", "CA", "CD", "CF", "CU", "DE", "FR", "GU", "GW", "HK", "HT", "IQ", "IR", "JP",
				"KP", "KZ", "LB", "LY", "MP", "MY", "PR", "SD", "SG", "SO", "SS", "TH", "UM", "US", "VI", "YE",
			},
			Terms:  "https://www.bitget.com/support/articles/360014944032",
			Quoted: quotedBy(eligibility), Read: "2026-11-23",
		},
		Evidence: producers.VenueEvidence{
			Markets: producers.Documented("https://www.bitget.com/api-doc/spot/market/Get-Symbols"),
			Trades:  producers.Recorded("tardis-node/bitget.jsonl"),
			Tickers: producers.Documented("https://www.bitget.com/api-doc/spot/websocket/public/Tickers-Channel"),
			Polled:  producers.Documented("https://www.bitget.com/api-doc/spot/market/Get-Tickers"),
		},
		Limits: producers.Limits{
			Connects: 300, ConnectsPer: 5 * time.Minute,
			MarketsPerSocket: 250, // half of the channels allowed: the venue advises fewer
			Messages:         5,
			Requests:         10,
		},
		Silence:     60 * time.Second,
		Listing:     []string{"/api/v2/spot/public/symbols"},
		Instruments: bitgetInstruments,
		Subscribe:   bitgetRequest("subscribe"),
		Unsubscribe: bitgetRequest("unsubscribe"),
		Heartbeat:   producers.Heartbeat{Every: 25 * time.Second, Message: func() []byte { return []byte("ping") }},
		NewCodec:    func() producers.Codec { return bitgetCodec{} },
		Tickers: func([]producers.Instrument) []producers.Query {
			return []producers.Query{{Path: "/api/v2/spot/market/tickers"}}
		},
		DecodeREST: bitgetREST,
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

// bitgetBatch is how many channels one message names: it stays below 4,096 bytes.
const bitgetBatch = 40

func bitgetRequest(op string) func([]producers.Instrument) [][]byte {
	return func(markets []producers.Instrument) (messages [][]byte) {
		var args []bitgetArg
		for _, m := range markets {
			args = append(args, bitgetArg{Type: "SPOT", Channel: "trade", ID: m.Symbol}, bitgetArg{Type: "SPOT", Channel: "ticker", ID: m.Symbol})
		}
		for len(args) > 0 {
			n := min(bitgetBatch, len(args))
			messages = append(messages, message(struct {
				Op   string      `json:"op"`
				Args []bitgetArg `json:"args"`
			}{op, args[:n]}))
			args = args[n:]
		}
		return messages
	}
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

func bitgetInstruments(_ string, body []byte) ([]producers.Instrument, error) {
	rows, err := parseBitget[struct {
		Symbol string `json:"symbol"`
		Base   string `json:"baseCoin"`
		Quote  string `json:"quoteCoin"`
		Status string `json:"status"`
	}](body)
	if err != nil {
		return nil, err
	}
	var list []producers.Instrument
	for _, s := range rows {
		if s.Status == "online" {
			list = append(list, producers.Instrument{Symbol: s.Symbol, Base: s.Base, Quote: s.Quote})
		}
	}
	return list, nil
}

// bitgetCodec needs no state: every message names its channel.
type bitgetCodec struct{}

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

func (t *bitgetTicker) event(symbol, channel string, at producers.Num) producers.Event {
	e := producers.Event{
		Kind: producers.Ticker, Symbol: symbol, Channel: channel, Time: producers.Unix(at, time.Millisecond),
		Last: t.Last, Bid: t.Bid, Ask: t.Ask, VolumeBase: t.Base, VolumeQuote: t.Quote,
	}
	if t.Last3 != "" {
		e.Last, e.Bid, e.Ask, e.VolumeBase, e.VolumeQuote = t.Last3, t.Bid3, t.Ask3, t.Base3, t.Quote3
	}
	return e
}

func (bitgetCodec) Decode(f producers.Frame, out *producers.Out) error {
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
	symbol, snapshot := m.Arg.ID+m.Arg.Symbol, m.Action == "snapshot"
	notSpot := !strings.EqualFold(m.Arg.Type, "spot")
	switch channel := m.Arg.Channel + m.Arg.Topic; {
	case m.Event == "error":
		out.Notice("%s", m.Message)
	case m.Event != "":
	case m.Arg.Type == "sp" || m.Arg.Type == "mc":
		return producers.Retired("channel %q of version 1", channel)
	case channel == "trade":
		var trades []struct {
			ID    producers.Num `json:"tradeId"`
			Time  producers.Num `json:"ts"`
			Price producers.Num `json:"price"`
			Size  producers.Num `json:"size"`
			Side  string        `json:"side"`
		}
		if err := parse(m.Data, &trades); err != nil {
			return err
		}
		for _, t := range trades {
			out.Add(producers.Event{
				Kind: producers.Trade, Symbol: symbol, Channel: "trade", Time: producers.Unix(t.Time, time.Millisecond),
				ID: t.ID, Price: t.Price, Size: t.Size, Side: producers.Side(t.Side), Snapshot: snapshot, NotSpot: notSpot,
			})
		}
	case channel == "publicTrade":
		var trades []struct {
			ID    producers.Num `json:"i"`
			Time  producers.Num `json:"T"`
			Price producers.Num `json:"p"`
			Size  producers.Num `json:"v"`
			Side  string        `json:"S"`
		}
		if err := parse(m.Data, &trades); err != nil {
			return err
		}
		for _, t := range trades {
			out.Add(producers.Event{
				Kind: producers.Trade, Symbol: symbol, Channel: "trade", Time: producers.Unix(t.Time, time.Millisecond),
				ID: t.ID, Price: t.Price, Size: t.Size, Side: producers.Side(strings.ToLower(t.Side)), Snapshot: snapshot, NotSpot: notSpot,
			})
		}
	case channel == "ticker":
		var tickers []bitgetTicker
		if err := parse(m.Data, &tickers); err != nil {
			return err
		}
		for i := range tickers {
			at := tickers[i].Time
			if at == "" {
				at = m.Time
			}
			e := tickers[i].event(symbol, "ticker", at)
			e.NotSpot = notSpot
			out.Add(e)
		}
	case strings.HasPrefix(channel, "candle"):
		return bitgetCandles(symbol, strings.TrimPrefix(channel, "candle"), notSpot, m.Data, out)
	case channel == "kline":
		var candles []struct {
			Start  producers.Num `json:"start"`
			Open   producers.Num `json:"open"`
			High   producers.Num `json:"high"`
			Low    producers.Num `json:"low"`
			Close  producers.Num `json:"close"`
			Volume producers.Num `json:"volume"`
		}
		if err := parse(m.Data, &candles); err != nil {
			return err
		}
		for _, c := range candles {
			out.Add(producers.Event{
				Kind: producers.Candle, Symbol: symbol, Channel: "candle", Interval: bitgetInterval(m.Arg.Interval), NotSpot: notSpot,
				Time: producers.Unix(m.Time, time.Millisecond), Start: producers.Unix(c.Start, time.Millisecond),
				OpenPrice: c.Open, High: c.High, Low: c.Low, ClosePrice: c.Close, Volume: c.Volume,
			})
		}
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
func bitgetBest(symbol string, notSpot bool, data []byte, out *producers.Out) error {
	var books []struct {
		Bids     [][]producers.Num `json:"bids"`
		Asks     [][]producers.Num `json:"asks"`
		Bids3    [][]producers.Num `json:"b"`
		Asks3    [][]producers.Num `json:"a"`
		Time     producers.Num     `json:"ts"`
		Sequence producers.Num     `json:"seq"`
	}
	if err := parse(data, &books); err != nil {
		return err
	}
	for _, b := range books {
		out.Add(producers.Event{
			Kind: producers.Ticker, Symbol: symbol, Channel: "books1", Time: producers.Unix(b.Time, time.Millisecond), NotSpot: notSpot,
			Bid: bestPrice(append(b.Bids, b.Bids3...)), Ask: bestPrice(append(b.Asks, b.Asks3...)), Sequence: b.Sequence,
		})
	}
	return nil
}

// bitgetCandles adds rows of start, open, high, low, close, volume in the base, and in others.
func bitgetCandles(symbol, interval string, notSpot bool, data []byte, out *producers.Out) error {
	var rows [][]producers.Num
	if err := parse(data, &rows); err != nil {
		return err
	}
	for _, c := range rows {
		if len(c) < 6 {
			return producers.Unreadable("a candle of %d fields", len(c))
		}
		out.Add(producers.Event{
			Kind: producers.Candle, Symbol: symbol, Channel: "candle", Interval: bitgetInterval(interval), NotSpot: notSpot,
			Start: producers.Unix(c[0], time.Millisecond), OpenPrice: c[1], High: c[2], Low: c[3], ClosePrice: c[4], Volume: c[5],
		})
	}
	return nil
}

// bitgetInterval spells an interval: 1m, 1H, 1Dutc of the feed, 1min, 1h, 1day of the HTTP interface.
func bitgetInterval(s string) string {
	s = strings.ToLower(strings.TrimSuffix(s, "utc"))
	for _, long := range []string{"in", "ay", "eek"} {
		s = strings.TrimSuffix(s, long)
	}
	return s
}

func bitgetREST(target string, body []byte, out *producers.Out) error {
	path, query := endpoint(target)
	if !strings.Contains(path, "/v2/") {
		return producers.Retired("answer of %s", path)
	}
	switch path[strings.LastIndexByte(path, '/')+1:] {
	case "symbols":
	case "tickers":
		rows, err := parseBitget[bitgetTicker](body)
		if err != nil {
			return err
		}
		for i := range rows {
			out.Add(rows[i].event(rows[i].Symbol, "rest", rows[i].Time))
		}
	case "fills", "fills-history":
		rows, err := parseBitget[struct {
			ID     producers.Num `json:"tradeId"`
			Symbol string        `json:"symbol"`
			Time   producers.Num `json:"ts"`
			Price  producers.Num `json:"price"`
			Size   producers.Num `json:"size"`
			Side   string        `json:"side"`
		}](body)
		if err != nil {
			return err
		}
		for _, t := range rows {
			out.Add(producers.Event{
				Kind: producers.Trade, Symbol: t.Symbol, Channel: "trade", Time: producers.Unix(t.Time, time.Millisecond),
				ID: t.ID, Price: t.Price, Size: t.Size, Side: producers.Side(strings.ToLower(t.Side)),
			})
		}
	case "candles", "history-candles":
		var answer struct {
			Code    string          `json:"code"`
			Message string          `json:"msg"`
			Data    json.RawMessage `json:"data"`
		}
		if err := parse(body, &answer); err != nil {
			return err
		}
		if answer.Code != "00000" {
			return producers.Unreadable("error %q: %s", answer.Code, answer.Message)
		}
		return bitgetCandles("", query.Get("granularity"), false, answer.Data, out)
	default:
		return unreadAnswer(path)
	}
	return nil
}
