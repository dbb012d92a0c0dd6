package exchanges

import (
	"encoding/json"
	"fmt"
	"net/url"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/adapter"
)

// gate is Gate's spot market, by version 4 of its interfaces.
//
//	feed    https://www.gate.com/docs/developers/apiv4/ws/en/ (the time of a request must be within 60 s of
//	        the server's; a subscription adds to earlier ones; no limits given)
//	HTTP    https://www.gate.com/docs/developers/apiv4/en/#spot
//	limits  https://www.gate.com/docs/developers/apiv4/en/#frequency-limit-rule (200 requests in 10 s,
//	        for each public endpoint and address)
func gate() adapter.Venue {
	return adapter.Venue{
		Slug: "gate", Name: "Gate", Version: 1,
		URLs: adapter.URLs{
			Stream: "wss://api.gateio.ws/ws/v4/",
			REST:   "https://api.gateio.ws",
		},
		Limits: adapter.Limits{
			Connects: 10, ConnectsPer: 10 * time.Second, // undocumented
			MarketsPerSocket: 200, // undocumented; keeps one connection's loss small
			Messages:         10,  // undocumented
			Requests:         20,
		},
		Silence:     60 * time.Second, // every ping is answered
		Listing:     []string{"/api/v4/spot/currency_pairs"},
		Instruments: gateMarkets.list(bare), Halted: gateMarkets.halted(bare),
		Subscribe:   gateRequests.with("subscribe"),
		Unsubscribe: gateRequests.with("unsubscribe"),
		Heartbeat: adapter.Heartbeat{
			Every:   15 * time.Second,
			Message: func() []byte { return fmt.Appendf(nil, `{"time":%d,"channel":"spot.ping"}`, time.Now().Unix()) },
		},
		NewCodec:     adapter.Stateless(decodeGate), // every row names its pair
		NewRecorded:  adapter.Stateless(decodeGateRecorded),
		Tickers:      one("/api/v4/spot/tickers"),
		DecodeREST:   gateEndpoints.below("/v4/spot/"),
		RecordedREST: gateEndpoints.with(endpoints{"trades": gateTrades.in(bare)}).below("/v4/spot/"),
		History:      gateHistory(),
	}
}

var gateMarkets = market{
	Symbol: "id", Base: "base", Quote: "quote", Trades: []string{"trade_status=tradable"},
	Unless: []string{"type=premarket"}, // traded before its launch: that has no price of a coin that exists
}

// gateRequests send the machine's time, which the venue checks.
var gateRequests = requests{
	Most: 100,
	Messages: []string{
		`{"time":<time>,"channel":"spot.trades","event":"<verb>","payload":[<topics>]}`,
		`{"time":<time>,"channel":"spot.tickers","event":"<verb>","payload":[<topics>]}`,
	},
}

var gateEndpoints = endpoints{
	"currency_pairs": nil,
	"tickers":        gateTickers.as("rest").in(bare), // without a time: neither the row nor the answer has one
	// Start, volume in the quote, close, high, low, open, volume in the base, whether it is closed.
	"candlesticks": candleColumns{
		Start: 0, Close: 2, High: 3, Low: 4, Open: 5, Volume: 6, Closed: 7, Least: 6, Unit: time.Second,
	}.in(bare, func(q url.Values) string { return gateInterval(q.Get("interval")) }),
}

// gateHistory: https://www.gate.com/docs/developers/apiv4/#market-candlesticks
// Both bounds are part of the answer. What begins more than 10,000 candles ago is refused; a few are left
// for the time until the question is there.
func gateHistory() *adapter.History {
	return &adapter.History{Rows: 999, Newest: 9_980, Query: func(m adapter.Instrument, interval time.Duration, from, to time.Time) adapter.Query {
		return adapter.Query{Symbol: m.Symbol, Path: fmt.Sprintf("/api/v4/spot/candlesticks?currency_pair=%s&interval=%s&from=%d&to=%d",
			url.QueryEscape(m.Symbol), adapter.Interval(interval), from.Unix(), to.Add(-interval).Unix())}
	}}
}

// Times of trades have a fraction.
var (
	gateTrades = object{
		Kind: adapter.Trade, Channel: "trades",
		Symbol: "currency_pair", Time: "create_time_ms", ID: "id", Price: "price", Size: "amount", Side: "side",
	}.reader()
	gateTickers = object{
		Kind: adapter.Ticker, Channel: "tickers",
		Symbol: "currency_pair", Last: "last", Bid: "highest_bid", Ask: "lowest_ask", Base: "base_volume", Quote: "quote_volume",
	}.reader()
)

func decodeGate(f adapter.Frame, out *adapter.Out) error {
	var m struct {
		Channel string          `json:"channel"`
		Event   string          `json:"event"`
		Time    producers.Num   `json:"time"`
		Result  json.RawMessage `json:"result"`
		Error   *struct {
			Message string `json:"message"`
		} `json:"error"`
		Type   string `json:"type"` // a notice of the server
		Notice string `json:"msg"`
		Method string `json:"method"` // version 3
	}
	if err := parse(f.Bytes, &m); err != nil {
		return err
	}
	switch {
	case m.Method != "":
		return adapter.Retired("method %q of version 3", m.Method)
	case m.Error != nil:
		out.Notice("%s: %s", m.Channel, m.Error.Message)
		return nil
	case m.Type != "" && m.Channel == "":
		out.Notice("%s", m.Notice)
		return nil
	case m.Event == "subscribe", m.Event == "unsubscribe", m.Channel == "spot.pong":
		return nil
	}
	switch m.Channel {
	case "spot.trades", "spot.trades_v2":
		return gateTrades.listOrOne(m.Result, adapter.Event{}, out)
	case "spot.tickers":
		return gateTickers.listOrOne(m.Result, adapter.Event{Time: producers.Unix(m.Time, time.Second)}, out)
	case "spot.order_book", "spot.order_book_update", "spot.obu":
	default:
		return producers.Unreadable("message of channel %q", m.Channel)
	}
	return nil
}

// gateInterval spells an interval. 30d is a month of the calendar, which has no spelling.
func gateInterval(s string) string {
	switch s {
	case "7d":
		return "1w"
	case "30d":
		return ""
	}
	return s
}
