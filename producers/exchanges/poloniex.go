package exchanges

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/adapter"
)

// poloniex is Poloniex's spot market. Throughout, "quantity" is in the base and "amount" in the quote.
//
//	feed    https://api-docs.poloniex.com/spot/websocket/ (2,000 connections at once, 500 requests a
//	        second on each; a message or ping within 30 s)
//	markets https://api-docs.poloniex.com/spot/websocket/market-data
//	HTTP    https://api-docs.poloniex.com/spot/api/public/market-data
//	limits  https://api-docs.poloniex.com/spot/api/#rate-limits (public: 10 requests a second for all
//	        markets at once, 200 for one)
func poloniex() adapter.Venue {
	return adapter.Venue{
		Slug: "poloniex", Name: "Poloniex", Version: 1,
		URLs: adapter.URLs{
			Stream: "wss://ws.poloniex.com/ws/public",
			REST:   "https://api.poloniex.com",
		},
		Limits: adapter.Limits{
			Connects: 5, ConnectsPer: time.Second, // undocumented
			MarketsPerSocket: 300, // undocumented; keeps one connection's loss small
			Messages:         10,
			Requests:         5,
		},
		Silence:     60 * time.Second,
		Listing:     []string{"/markets"},
		Instruments: poloniexMarkets.list(bare), Halted: poloniexMarkets.halted(bare),
		Subscribe:   poloniexRequests.with("subscribe"),
		Unsubscribe: poloniexRequests.with("unsubscribe"),
		Heartbeat:   adapter.Heartbeat{Every: 15 * time.Second, Message: heartbeat(`{"event":"ping"}`)},
		NewCodec:    adapter.Stateless(decodePoloniex), // every row names its market
		NewRecorded: adapter.Stateless(decodePoloniexRecorded),
		Tickers:     one("/markets/ticker24h"),
		DecodeREST:  poloniexEndpoints.byName(),
		RecordedREST: poloniexEndpoints.with(endpoints{
			"trades":  poloniexTrades.orOneIn(bare),
			"price":   poloniexPrices.orOneIn(bare),
			"candles": poloniexCandles,
			"public":  retired, // returnTicker and its like
		}).byName(),
	}
}

var poloniexMarkets = market{
	Symbol: "symbol", Base: "baseCurrencyName", Quote: "quoteCurrencyName", Trades: []string{"state=NORMAL"},
}

// poloniexRequests name at most 100 markets in a message, some 1 kB.
var poloniexRequests = requests{
	Most: 100,
	Messages: []string{
		`{"event":"<verb>","channel":["trades"],"symbols":[<topics>]}`,
		`{"event":"<verb>","channel":["ticker"],"symbols":[<topics>]}`,
	},
}

var poloniexEndpoints = endpoints{
	"markets":   nil,
	"ticker24h": poloniexTickers.as("rest").orOneIn(bare),
}

// Bid and ask are of the HTTP interface alone.
var (
	poloniexTrades = object{
		Kind: adapter.Trade, Channel: "trades",
		Symbol: "symbol", Time: "createTime", ID: "id", Price: "price", Size: "quantity", Side: "takerSide",
	}.reader()
	poloniexTickers = object{
		Kind: adapter.Ticker, Channel: "ticker",
		Symbol: "symbol", Time: "ts", Last: "close", Bid: "bid", Ask: "ask", Base: "quantity", Quote: "amount",
	}.reader()
)

func decodePoloniex(f adapter.Frame, out *adapter.Out) error {
	switch {
	case strings.EqualFold(string(f.Bytes), "pong"):
		return nil
	case len(f.Bytes) > 0 && f.Bytes[0] == '[':
		return adapter.Retired("a list, as of api2.poloniex.com")
	}
	var m struct {
		Event   string          `json:"event"`
		Message string          `json:"message"`
		Channel string          `json:"channel"`
		Action  string          `json:"action"`
		Data    json.RawMessage `json:"data"`
	}
	if err := parse(f.Bytes, &m); err != nil {
		return err
	}
	switch e := (adapter.Event{Snapshot: m.Action == "snapshot"}); {
	case m.Event == "error":
		out.Notice("%s", m.Message)
	case m.Event != "": // an acknowledgement, or a pong
	case m.Channel == "trades":
		return poloniexTrades.list(m.Data, e, out)
	case m.Channel == "ticker":
		return poloniexTickers.list(m.Data, e, out)
	case strings.HasPrefix(m.Channel, "book"), m.Channel == "symbols", m.Channel == "currencies", m.Channel == "exchange":
	default:
		return producers.Unreadable("message of channel %q", m.Channel)
	}
	return nil
}
