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

// bitstamp is Bitstamp's spot market, by version 2 of its interfaces. Its feed has trades and depth
// but no ticker: bid, ask and volume come over HTTP.
//
//	feed    https://www.bitstamp.net/websocket/v2/ (one channel a message; no limits given)
//	HTTP    https://www.bitstamp.net/api/#tag/Tickers, #tag/Market-info and #tag/Transactions-public
//	        (8,000 requests in 10 minutes)
func bitstamp() adapter.Venue {
	return adapter.Venue{
		Slug: "bitstamp", Name: "Bitstamp", Version: 2,
		URLs: adapter.URLs{
			Stream: "wss://ws.bitstamp.net",
			REST:   "https://www.bitstamp.net",
		},
		Evidence: evidenceOf["bitstamp"],
		Limits: adapter.Limits{
			Connects: 10, ConnectsPer: time.Minute, // undocumented
			MarketsPerSocket: 200, // undocumented; keeps one connection's loss small
			Messages:         10,  // undocumented
			Requests:         13,
		},
		Silence:     60 * time.Second, // the server answers every heartbeat
		Listing:     []string{"/api/v2/trading-pairs-info/"},
		Instruments: markets(list[bitstampMarket], (*bitstampMarket).instrument),
		Split:       bitstampSplit,
		Subscribe:   bitstampRequest("bts:subscribe"),
		Unsubscribe: bitstampRequest("bts:unsubscribe"),
		Heartbeat: adapter.Heartbeat{
			Every:   20 * time.Second,
			Message: heartbeat(`{"event":"bts:heartbeat"}`),
		},
		NewCodec:   func() adapter.Codec { return bitstampCodec{} },
		Tickers:    one("/api/v2/ticker/"),
		Polled:     5 * time.Second,
		DecodeREST: bitstampREST(bitstampEndpoints),
		RecordedREST: bitstampREST(bitstampEndpoints.with(endpoints{
			"transactions": rows(list[bitstampTransaction], (*bitstampTransaction).event),
		})),
		History: bitstampHistory(),
	}
}

// bitstampHistory: https://www.bitstamp.net/api/#tag/Market-info/operation/GetOHLCData
// Where start and end are both given, end and limit decide; so limit is what lies between them.
func bitstampHistory() *adapter.History {
	return &adapter.History{Rows: 1000, Query: func(m adapter.Instrument, interval time.Duration, from, to time.Time) adapter.Query {
		return adapter.Query{Symbol: m.Symbol, Path: fmt.Sprintf("/api/v2/ohlc/%s/?step=%d&limit=%d&start=%d&end=%d",
			url.PathEscape(m.Symbol), interval/time.Second, to.Sub(from)/interval, from.Unix(), to.Add(-interval).Unix())}
	}}
}

const bitstampTrades = "live_trades_"

func bitstampRequest(event string) requester {
	type channel struct {
		Channel string `json:"channel"`
	}
	return channelRequests(1, []string{bitstampTrades}, func(trades string, symbols []string) any {
		return struct {
			Event string  `json:"event"`
			Data  channel `json:"data"`
		}{event, channel{trades + symbols[0]}}
	})
}

type bitstampMarket struct {
	Name    string `json:"name"`
	Symbol  string `json:"url_symbol"`
	Trading string `json:"trading"`
}

// instrument leaves out perpetual contracts, which a dash marks: BTC/USD-PERP.
func (m *bitstampMarket) instrument() (adapter.Instrument, bool) {
	base, quote, ok := strings.Cut(m.Name, "/")
	in := adapter.Instrument{Symbol: m.Symbol, Base: base, Quote: quote, Aliases: []string{m.Name}}
	return in, ok && m.Trading == "Enabled" && !strings.Contains(m.Name, "-")
}

func bitstampSplit(symbol string) (base, quote string, ok bool) {
	if strings.Contains(symbol, "-") {
		return "", "", false
	}
	return adapter.SplitSymbol(symbol)
}

// bitstampCodec needs no state: the channel names the market.
type bitstampCodec struct{}

// bitstampSide reads the taker's side.
func bitstampSide(kind producers.Num) adapter.Side {
	switch kind {
	case "0":
		return adapter.Buy
	case "1":
		return adapter.Sell
	}
	return ""
}

func (bitstampCodec) Decode(f adapter.Frame, out *adapter.Out) error {
	var m struct {
		Event   string          `json:"event"`
		Channel string          `json:"channel"`
		Data    json.RawMessage `json:"data"`
	}
	if err := parse(f.Bytes, &m); err != nil {
		return err
	}
	switch m.Event {
	case "trade":
		symbol, ok := strings.CutPrefix(m.Channel, bitstampTrades)
		if !ok {
			return producers.Unreadable("a trade of channel %q", m.Channel)
		}
		// Price and amount come twice; as JSON numbers they have passed through a float.
		var t struct {
			ID     producers.Num `json:"id"`
			Price  producers.Num `json:"price_str"`
			Amount producers.Num `json:"amount_str"`
			Kind   producers.Num `json:"type"`
			Micros producers.Num `json:"microtimestamp"`
		}
		if err := parse(m.Data, &t); err != nil {
			return err
		}
		out.Add(adapter.Event{
			Kind: adapter.Trade, Symbol: symbol, Channel: "trades", Time: producers.Unix(t.Micros, time.Microsecond),
			ID: t.ID, Price: t.Price, Size: t.Amount, Side: bitstampSide(t.Kind),
		})
	case "bts:error":
		var refusal struct {
			Message string `json:"message"`
		}
		if err := parse(m.Data, &refusal); err != nil {
			return err
		}
		out.Notice("%s", refusal.Message)
	case "bts:request_reconnect":
		// The server closes the connection soon after; the engine then opens another.
		out.Notice("the server asks for a new connection")
	case "bts:subscription_succeeded", "bts:unsubscription_succeeded", "bts:heartbeat",
		"data", "snapshot", "order_created", "order_changed", "order_deleted", "funding_rate", "funding_rate_saved":
	default:
		return producers.Unreadable("message of event %q", m.Event)
	}
	return nil
}

func bitstampREST(all endpoints) func(string, []byte, *adapter.Out) error {
	return func(target string, body []byte, out *adapter.Out) error {
		path, query := endpoint(target)
		_, path, ok := strings.Cut(path, "api/v2/")
		if !ok {
			return adapter.Retired("answer of %s", target)
		}
		name, _, _ := strings.Cut(path, "/") // what follows is the market
		return all.answer(name, target, query, body, out)
	}
}

var bitstampEndpoints = endpoints{
	"trading-pairs-info": nil,
	"ticker":             rows(listOrOne[bitstampTicker], (*bitstampTicker).event),
	"ohlc": func(query url.Values, body []byte, out *adapter.Out) error {
		var answer struct {
			Data struct {
				Candles []candleObject `json:"ohlc"`
			} `json:"data"`
		}
		if err := parse(body, &answer); err != nil {
			return err
		}
		e := adapter.Event{Channel: "rest", Interval: seconds(query.Get("step"))}
		addAll(answer.Data.Candles, func(c *candleObject) adapter.Event { return c.event(e, time.Second) }, out)
		return nil
	},
}

type bitstampTicker struct {
	Pair   string        `json:"pair"` // only among all
	Last   producers.Num `json:"last"`
	Bid    producers.Num `json:"bid"`
	Ask    producers.Num `json:"ask"`
	Volume producers.Num `json:"volume"`
	Time   producers.Num `json:"timestamp"`
}

func (t *bitstampTicker) event() adapter.Event {
	return adapter.Event{
		Kind: adapter.Ticker, Symbol: t.Pair, Channel: "rest", Time: producers.Unix(t.Time, time.Second),
		Last: t.Last, Bid: t.Bid, Ask: t.Ask, VolumeBase: t.Volume,
	}
}
