package exchanges

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/adapter"
)

// bybit is Bybit's spot market, by version 5 of its interface.
//
//	feed    https://bybit-exchange.github.io/docs/v5/ws/connect (a ping every 20 s; at most 500
//	        connections in 5 minutes; 10 topics in one request for spot)
//	trades  https://bybit-exchange.github.io/docs/v5/websocket/public/trade
//	ticker  https://bybit-exchange.github.io/docs/v5/websocket/public/ticker (of spot: no bid, no ask)
//	HTTP    https://bybit-exchange.github.io/docs/v5/market/tickers (600 requests in 5 s)
func bybit() adapter.Venue {
	return adapter.Venue{
		Slug: "bybit", Name: "Bybit", Version: 3,
		URLs: adapter.URLs{
			Stream: "wss://stream.bybit.com/v5/public/spot",
			REST:   "https://api.bybit.com",
		},
		Countries: countriesOf["bybit"],
		Evidence:  evidenceOf["bybit"],
		Limits: adapter.Limits{
			Connects: 500, ConnectsPer: 5 * time.Minute,
			MarketsPerSocket: 200, // undocumented for spot; keeps one connection's loss small
			Messages:         10,
			Requests:         20,
		},
		Silence:      60 * time.Second,
		Listing:      []string{"/v5/market/instruments-info?category=spot&limit=1000"},
		Instruments:  markets(bybitList[bybitMarket], (*bybitMarket).instrument),
		Subscribe:    bybitRequest("subscribe"),
		Unsubscribe:  bybitRequest("unsubscribe"),
		Heartbeat:    adapter.Heartbeat{Every: 20 * time.Second, Message: heartbeat(`{"op":"ping"}`)},
		NewCodec:     func() adapter.Codec { return bybitCodec{} },
		NewRecorded:  func() adapter.Codec { return &bybitRecorded{best: map[string]*bybitBest{}} },
		Tickers:      one("/v5/market/tickers?category=spot"),
		DecodeREST:   bybitREST,
		RecordedREST: bybitRecordedREST,
		History:      bybitHistory(),
	}
}

// bybitHistory: https://bybit-exchange.github.io/docs/v5/market/kline
// Both bounds are part of the answer.
func bybitHistory() *adapter.History {
	return &adapter.History{Rows: 1000, Query: func(m adapter.Instrument, interval time.Duration, from, to time.Time) adapter.Query {
		code := map[time.Duration]string{time.Minute: "1", time.Hour: "60", 24 * time.Hour: "D"}[interval]
		return adapter.Query{Symbol: m.Symbol, Path: fmt.Sprintf("/v5/market/kline?category=spot&symbol=%s&interval=%s&start=%d&end=%d&limit=1000",
			url.QueryEscape(m.Symbol), code, from.UnixMilli(), to.UnixMilli()-1)}
	}}
}

// bybitRequest names at most ten topics, which is the limit.
func bybitRequest(op string) requester {
	return requests(10, func(symbol string) []string { return []string{"publicTrade." + symbol, "tickers." + symbol} },
		func(topics []string, _ int) any {
			return struct {
				Op   string   `json:"op"`
				Args []string `json:"args"`
			}{op, topics}
		})
}

// bybitAnswer is the envelope of the HTTP interface; a code other than 0 is an error, also with
// status 200.
type bybitAnswer[T any] struct {
	Code    int    `json:"retCode"`
	Message string `json:"retMsg"`
	Result  struct {
		List []T `json:"list"`
		// Symbol is there where the answer is about one market.
		Symbol string `json:"symbol"`
	} `json:"result"`
	Time producers.Num `json:"time"`
}

func parseBybit[T any](body []byte) (bybitAnswer[T], error) {
	var answer bybitAnswer[T]
	if err := parse(body, &answer); err != nil {
		return answer, err
	}
	if answer.Code != 0 {
		return answer, producers.Unreadable("error %d: %s", answer.Code, answer.Message)
	}
	return answer, nil
}

func bybitList[T any](body []byte) ([]T, error) {
	answer, err := parseBybit[T](body)
	return answer.Result.List, err
}

type bybitMarket struct {
	Symbol string `json:"symbol"`
	Base   string `json:"baseCoin"`
	Quote  string `json:"quoteCoin"`
	Status string `json:"status"`
	// Kind is the zone of a market, "" mostly: of coins innovation and adventure, of tokenized shares those in bybitShares.
	Kind string `json:"symbolType"`
}

// bybitShares are the kinds of markets whose bases are shares in tokens, such as AAPLX: no coins, and their codes may be those of coins.
var bybitShares = []string{"xstocks", "mstocks"}

func (m *bybitMarket) instrument() (adapter.Instrument, bool) {
	coins := !slices.Contains(bybitShares, m.Kind)
	return adapter.Instrument{Symbol: m.Symbol, Base: m.Base, Quote: m.Quote}, m.Status == "Trading" && coins
}

// bybitCodec needs no state: every message names its market.
type bybitCodec struct{}

// bybitTrade is a public trade; "S" is the taker's side.
type bybitTrade struct {
	ID     producers.Num   `json:"i"`
	Time   producers.Num   `json:"T"`
	Price  producers.Num   `json:"p"`
	Size   producers.Num   `json:"v"`
	Side   string          `json:"S"`
	Symbol string          `json:"s"`
	Block  json.RawMessage `json:"BT"`
}

func (t *bybitTrade) event() adapter.Event {
	return adapter.Event{
		Kind: adapter.Trade, Symbol: t.Symbol, Channel: "publicTrade", Time: producers.Unix(t.Time, time.Millisecond),
		ID: t.ID, Price: t.Price, Size: t.Size, Side: adapter.Side(strings.ToLower(t.Side)),
	}
}

// bybitTicker is a ticker of the feed or of the HTTP interface; only the latter has the quote.
type bybitTicker struct {
	Symbol   string        `json:"symbol"`
	Last     producers.Num `json:"lastPrice"`
	Bid      producers.Num `json:"bid1Price"`
	Ask      producers.Num `json:"ask1Price"`
	Volume   producers.Num `json:"volume24h"`
	Turnover producers.Num `json:"turnover24h"`
	Mark     producers.Num `json:"markPrice"` // of a contract
}

func (t *bybitTicker) event(channel string, at producers.Num) adapter.Event {
	return adapter.Event{
		Kind: adapter.Ticker, Symbol: t.Symbol, Channel: channel, Time: producers.Unix(at, time.Millisecond),
		Last: t.Last, Bid: t.Bid, Ask: t.Ask, VolumeBase: t.Volume, VolumeQuote: t.Turnover,
	}
}

func (bybitCodec) Decode(f adapter.Frame, out *adapter.Out) error {
	var m struct {
		Topic   string          `json:"topic"`
		Type    string          `json:"type"`
		Time    producers.Num   `json:"ts"`
		Op      string          `json:"op"`
		Success *bool           `json:"success"`
		Message string          `json:"ret_msg"`
		Params  json.RawMessage `json:"params"`
		Data    json.RawMessage `json:"data"`
	}
	if err := parse(f.Bytes, &m); err != nil {
		return err
	}
	channel, symbol, _ := strings.Cut(m.Topic, ".")
	switch {
	case m.Params != nil:
		return adapter.Retired("topic %q of version 3 or before", m.Topic)
	case channel == "publicTrade":
		return parseAll(m.Data, func(t *bybitTrade) adapter.Event {
			e := t.event()
			e.NotSpot = t.Symbol != symbol // options are subscribed to by their base
			return e
		}, out)
	case channel == "tickers" && strings.HasSuffix(symbol, "_NAV"): // what a leveraged token is worth by its assets
	case channel == "tickers":
		var t bybitTicker
		if err := parse(m.Data, &t); err != nil {
			return err
		}
		e := t.event("tickers", m.Time)
		// A spot ticker is always whole, and has no mark price.
		e.NotSpot = t.Mark != "" || m.Type == "delta"
		out.Add(e)
	case channel == "orderbook", channel == "allLiquidation", channel == "liquidation", channel == "priceLimit",
		channel == "insurance", channel == "adlAlert", channel == "system":
	case channel == "trade", channel == "instrument_info", channel == "orderBookL2_25", channel == "orderBook_200", channel == "klineV2", channel == "candle":
		return adapter.Retired("topic %q of version 2", m.Topic)
	case m.Topic == "" && (m.Op != "" || m.Success != nil):
		if m.Success != nil && !*m.Success {
			out.Notice("%s: %s", m.Op, m.Message)
		}
	default:
		return producers.Unreadable("message of topic %q", m.Topic)
	}
	return nil
}

// bybitInterval spells an interval, which Bybit gives in minutes or as a letter.
func bybitInterval(s string) string {
	switch s {
	case "D":
		return "1d"
	case "W":
		return "1w"
	}
	minutes := producers.Unix(producers.Num(s), time.Minute)
	if minutes == producers.BadTime {
		return s
	}
	return adapter.Interval(time.Duration(minutes))
}

func bybitREST(target string, body []byte, out *adapter.Out) error {
	path, query := endpoint(target)
	switch path[strings.LastIndexByte(path, '/')+1:] {
	case "instruments-info":
	case "tickers":
		if !strings.Contains(path, "/v5/") {
			return adapter.Retired("answer of %s", path)
		}
		answer, err := parseBybit[bybitTicker](body)
		if err != nil {
			return err
		}
		for _, t := range answer.Result.List {
			out.Add(t.event("rest", answer.Time))
		}
	case "kline":
		answer, err := parseBybit[[]producers.Num](body) // start, open, high, low, close, volume, turnover
		if err != nil {
			return err
		}
		return candleColumns{Start: 0, Open: 1, High: 2, Low: 3, Close: 4, Volume: 5, Unit: time.Millisecond}.add(answer.Result.List,
			adapter.Event{Symbol: answer.Result.Symbol, Channel: "rest", Interval: bybitInterval(query.Get("interval"))}, out)
	default:
		return unreadAnswer(path)
	}
	return nil
}
