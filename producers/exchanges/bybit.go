package exchanges

import (
	"encoding/json"
	"fmt"
	"net/url"
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
		Limits: adapter.Limits{
			Connects: 500, ConnectsPer: 5 * time.Minute,
			MarketsPerSocket: 200, // undocumented for spot; keeps one connection's loss small
			Messages:         10,
			Requests:         20,
		},
		Silence:     60 * time.Second,
		Listing:     []string{"/v5/market/instruments-info?category=spot&limit=1000"},
		Instruments: bybitMarkets.list(bybitAnswer), Halted: bybitMarkets.halted(bybitAnswer),
		Subscribe:    bybitRequests.with("subscribe"),
		Unsubscribe:  bybitRequests.with("unsubscribe"),
		Heartbeat:    adapter.Heartbeat{Every: 20 * time.Second, Message: heartbeat(`{"op":"ping"}`)},
		NewCodec:     adapter.Stateless(decodeBybit), // every message names its market
		NewRecorded:  func() adapter.Codec { return &bybitRecorded{best: map[string]*bybitBest{}} },
		Tickers:      one("/v5/market/tickers?category=spot"),
		DecodeREST:   bybitEndpoints.ofVersion("/v5/"),
		RecordedREST: bybitEndpoints.with(endpoints{"recent-trade": bybitRecent.in(bybitAnswer)}).ofVersion("/v5/"),
		History:      bybitHistory(),
	}
}

var bybitMarkets = market{
	Symbol: "symbol", Base: "baseCoin", Quote: "quoteCoin", Trades: []string{"status=Trading"},
	// The zones of shares in tokens, such as AAPLX: no coins, and their codes may be those of coins.
	Unless: []string{"symbolType=xstocks|mstocks"},
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

// bybitRequests name at most ten topics, which is the limit.
var bybitRequests = requests{
	Most:     10,
	Topics:   []string{`"publicTrade.<symbol>"`, `"tickers.<symbol>"`},
	Messages: []string{`{"op":"<verb>","args":[<topics>]}`},
}

var bybitEndpoints = endpoints{
	"instruments-info": nil,
	"tickers":          bybitTickers.as("rest").in(bybitAnswer),
	// Behind the volume stands that in the quote.
	"kline": candleColumns{Start: 0, Open: 1, High: 2, Low: 3, Close: 4, Volume: 5, Unit: time.Millisecond}.in(bybitAnswer,
		func(q url.Values) string { return bybitInterval(q.Get("interval")) }),
}

// bybitAnswer names the market where the answer is about one.
var bybitAnswer = envelope{Code: "retCode", OK: "0", Message: "retMsg", Rows: "result.list", Time: "time", Symbol: "result.symbol"}.opener()

// bybitTickers are of the feed or of the HTTP interface; only the latter have the quote.
var (
	bybitTrades = object{
		Kind: adapter.Trade, Channel: "publicTrade", Symbol: "s", Time: "T", ID: "i", Price: "p", Size: "v", Side: "S",
	}.reader()
	bybitTickers = object{
		Kind: adapter.Ticker, Channel: "tickers",
		Symbol: "symbol", Last: "lastPrice", Bid: "bid1Price", Ask: "ask1Price", Base: "volume24h", Quote: "turnover24h",
		NotSpot: "markPrice",
	}.reader()
)

func decodeBybit(f adapter.Frame, out *adapter.Out) error {
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
		first := len(out.Events)
		err := bybitTrades.list(m.Data, adapter.Event{}, out)
		for i := range out.Events[first:] {
			e := &out.Events[first+i]
			e.NotSpot = e.Symbol != symbol // options are subscribed to by their base
		}
		return err
	case channel == "tickers" && strings.HasSuffix(symbol, "_NAV"): // what a leveraged token is worth by its assets
	case channel == "tickers":
		// A spot ticker is always whole.
		return bybitTickers.one(m.Data, adapter.Event{Time: producers.Unix(m.Time, time.Millisecond), NotSpot: m.Type == "delta"}, out)
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
