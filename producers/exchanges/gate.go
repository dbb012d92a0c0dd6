package exchanges

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
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
		Countries: countriesOf["gate"],
		Evidence:  evidenceOf["gate"],
		Limits: adapter.Limits{
			Connects: 10, ConnectsPer: 10 * time.Second, // undocumented
			MarketsPerSocket: 200, // undocumented; keeps one connection's loss small
			Messages:         10,  // undocumented
			Requests:         20,
		},
		Silence:     60 * time.Second, // every ping is answered
		Listing:     []string{"/api/v4/spot/currency_pairs"},
		Instruments: markets(list[gateMarket], (*gateMarket).instrument),
		Subscribe:   gateRequests("subscribe"),
		Unsubscribe: gateRequests("unsubscribe"),
		Heartbeat: adapter.Heartbeat{
			Every:   15 * time.Second,
			Message: func() []byte { return gateRequest("spot.ping", "", nil) },
		},
		NewCodec:    func() adapter.Codec { return gateCodec{} },
		NewRecorded: func() adapter.Codec { return gateRecorded{} },
		Tickers:     one("/api/v4/spot/tickers"),
		DecodeREST:  gateEndpoints.below("/v4/spot/"),
		RecordedREST: gateEndpoints.with(endpoints{
			"trades": rows(list[gateTrade], (*gateTrade).event),
		}).below("/v4/spot/"),
		History: gateHistory(),
	}
}

var gateEndpoints = endpoints{
	"currency_pairs": nil,
	"tickers":        rows(list[gateTicker], (*gateTicker).polled),
	// Start, volume in the quote, close, high, low, open, volume in the base, whether it is closed.
	"candlesticks": candleRows(list[[]producers.Num],
		candleColumns{Start: 0, Close: 2, High: 3, Low: 4, Open: 5, Volume: 6, Closed: 7, Least: 6, Unit: time.Second},
		func(q url.Values) string { return gateInterval(q.Get("interval")) }),
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

// gateRequest tells the machine's time, whatever the producer's: it is for the venue's check alone.
func gateRequest(channel, event string, payload []string) []byte {
	return message(struct {
		Time    int64    `json:"time"`
		Channel string   `json:"channel"`
		Event   string   `json:"event,omitempty"`
		Payload []string `json:"payload,omitempty"`
	}{time.Now().Unix(), channel, event, payload})
}

func gateRequests(event string) requester {
	return func(markets []adapter.Instrument) (messages [][]byte) {
		for batch := range slices.Chunk(symbols(markets), 100) {
			messages = append(messages, gateRequest("spot.trades", event, batch), gateRequest("spot.tickers", event, batch))
		}
		return messages
	}
}

type gateMarket struct {
	Symbol string `json:"id"`
	Base   string `json:"base"`
	Quote  string `json:"quote"`
	Status string `json:"trade_status"`
	Type   string `json:"type"`
}

// instrument leaves out what is traded before its launch: that has no price of a coin that exists.
func (m *gateMarket) instrument() (adapter.Instrument, bool) {
	return adapter.Instrument{Symbol: m.Symbol, Base: m.Base, Quote: m.Quote}, m.Status == "tradable" && m.Type != "premarket"
}

// gateCodec needs no state: every row names its pair.
type gateCodec struct{}

type gateTrade struct {
	Symbol string        `json:"currency_pair"`
	ID     producers.Num `json:"id"`
	Price  producers.Num `json:"price"`
	Amount producers.Num `json:"amount"`
	Side   string        `json:"side"`           // the taker's
	Millis producers.Num `json:"create_time_ms"` // with a fraction
}

func (t *gateTrade) event() adapter.Event {
	return adapter.Event{
		Kind: adapter.Trade, Symbol: t.Symbol, Channel: "trades", Time: producers.Unix(t.Millis, time.Millisecond),
		ID: t.ID, Price: t.Price, Size: t.Amount, Side: adapter.Side(t.Side),
	}
}

// gateTicker's volumes are of 24 hours.
type gateTicker struct {
	Symbol string        `json:"currency_pair"`
	Last   producers.Num `json:"last"`
	Bid    producers.Num `json:"highest_bid"`
	Ask    producers.Num `json:"lowest_ask"`
	Base   producers.Num `json:"base_volume"`
	Quote  producers.Num `json:"quote_volume"`
}

// polled has no time: neither the row nor the answer tells one.
func (t *gateTicker) polled() adapter.Event {
	return adapter.Event{
		Kind: adapter.Ticker, Symbol: t.Symbol, Channel: "rest",
		Last: t.Last, Bid: t.Bid, Ask: t.Ask, VolumeBase: t.Base, VolumeQuote: t.Quote,
	}
}

func (gateCodec) Decode(f adapter.Frame, out *adapter.Out) error {
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
		return rows(listOrOne[gateTrade], (*gateTrade).event)(nil, m.Result, out)
	case "spot.tickers":
		return rows(listOrOne[gateTicker], func(t *gateTicker) adapter.Event {
			e := t.polled()
			e.Channel, e.Time = "tickers", producers.Unix(m.Time, time.Second) // the row has none
			return e
		})(nil, m.Result, out)
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
