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
		Countries: countriesOf["poloniex"],
		Evidence:  evidenceOf["poloniex"],
		Limits: adapter.Limits{
			Connects: 5, ConnectsPer: time.Second, // undocumented
			MarketsPerSocket: 300, // undocumented; keeps one connection's loss small
			Messages:         10,
			Requests:         5,
		},
		Silence:     60 * time.Second,
		Listing:     []string{"/markets"},
		Instruments: markets(list[poloniexMarket], (*poloniexMarket).instrument),
		Subscribe:   poloniexRequest("subscribe"),
		Unsubscribe: poloniexRequest("unsubscribe"),
		Heartbeat:   adapter.Heartbeat{Every: 15 * time.Second, Message: heartbeat(`{"event":"ping"}`)},
		NewCodec:    func() adapter.Codec { return poloniexCodec{} },
		NewRecorded: func() adapter.Codec { return poloniexCodec{other: poloniexCandle} },
		Tickers:     one("/markets/ticker24h"),
		DecodeREST:  poloniexEndpoints.read,
		RecordedREST: poloniexEndpoints.with(endpoints{
			"trades":  rows(listOrOne[poloniexRow], (*poloniexRow).trade),
			"price":   rows(listOrOne[poloniexRow], (*poloniexRow).price),
			"candles": poloniexCandles,
			"public":  retired, // returnTicker and its like
		}).read,
	}
}

// poloniexRequest names at most 100 markets in a message, some 1 kB.
func poloniexRequest(event string) requester {
	return channelRequests(100, []string{"trades", "ticker"}, func(channel string, symbols []string) any {
		return struct {
			Event   string   `json:"event"`
			Channel []string `json:"channel"`
			Symbols []string `json:"symbols"`
		}{event, []string{channel}, symbols}
	})
}

var poloniexEndpoints = endpoints{
	"markets":   nil,
	"ticker24h": rows(listOrOne[poloniexRow], (*poloniexRow).polled),
}

type poloniexMarket struct {
	Symbol string `json:"symbol"`
	Base   string `json:"baseCurrencyName"`
	Quote  string `json:"quoteCurrencyName"`
	State  string `json:"state"` // NORMAL, PAUSE or POST_ONLY
}

func (m *poloniexMarket) instrument() (adapter.Instrument, bool) {
	return adapter.Instrument{Symbol: m.Symbol, Base: m.Base, Quote: m.Quote}, m.State == "NORMAL"
}

// poloniexCodec needs no state: every row names its market. other is the reader of a row of a channel that the engine does not
// subscribe to, nil of one that is not read; without it none of them is.
type poloniexCodec struct {
	other func(channel string) func(*poloniexRow) adapter.Event
}

// poloniexRow is a trade, ticker or candle, also of the HTTP interface.
type poloniexRow struct {
	Symbol   string        `json:"symbol"`
	ID       producers.Num `json:"id"`
	Price    producers.Num `json:"price"`
	Quantity producers.Num `json:"quantity"`
	Amount   producers.Num `json:"amount"`
	Side     string        `json:"takerSide"`
	Created  producers.Num `json:"createTime"`
	Recorded producers.Num `json:"time"` // of a price
	Pushed   producers.Num `json:"ts"`
	Start    producers.Num `json:"startTime"`
	Open     producers.Num `json:"open"`
	High     producers.Num `json:"high"`
	Low      producers.Num `json:"low"`
	Close    producers.Num `json:"close"`
	Bid      producers.Num `json:"bid"` // of the HTTP interface alone
	Ask      producers.Num `json:"ask"`
}

func (r *poloniexRow) trade() adapter.Event {
	return adapter.Event{
		Kind: adapter.Trade, Symbol: r.Symbol, Channel: "trades", Time: producers.Unix(r.Created, time.Millisecond),
		ID: r.ID, Price: r.Price, Size: r.Quantity, Side: adapter.Side(strings.ToLower(r.Side)),
	}
}

func (r *poloniexRow) ticker() adapter.Event {
	return adapter.Event{
		Kind: adapter.Ticker, Symbol: r.Symbol, Channel: "ticker", Time: producers.Unix(r.Pushed, time.Millisecond),
		Last: r.Close, Bid: r.Bid, Ask: r.Ask, VolumeBase: r.Quantity, VolumeQuote: r.Amount,
	}
}

func (r *poloniexRow) polled() adapter.Event {
	e := r.ticker()
	e.Channel = "rest"
	return e
}

func (c poloniexCodec) Decode(f adapter.Frame, out *adapter.Out) error {
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
	var event func(*poloniexRow) adapter.Event
	if c.other != nil {
		event = c.other(m.Channel)
	}
	switch {
	case m.Event == "error":
		out.Notice("%s", m.Message)
		return nil
	case m.Event != "": // an acknowledgement, or a pong
		return nil
	case m.Channel == "trades":
		event = (*poloniexRow).trade
	case m.Channel == "ticker":
		event = (*poloniexRow).ticker
	case event != nil:
	case strings.HasPrefix(m.Channel, "book"), m.Channel == "symbols", m.Channel == "currencies", m.Channel == "exchange":
		return nil
	default:
		return producers.Unreadable("message of channel %q", m.Channel)
	}
	return parseAll(m.Data, func(r *poloniexRow) adapter.Event {
		e := event(r)
		e.Snapshot = m.Action == "snapshot"
		return e
	}, out)
}
