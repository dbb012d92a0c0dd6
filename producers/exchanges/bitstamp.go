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
		Limits: adapter.Limits{
			Connects: 10, ConnectsPer: time.Minute, // undocumented
			MarketsPerSocket: 200, // undocumented; keeps one connection's loss small
			Messages:         10,  // undocumented
			Requests:         13,
		},
		Silence:     60 * time.Second, // the server answers every heartbeat
		Listing:     []string{"/api/v2/trading-pairs-info/"},
		Instruments: bitstampMarkets.list(bare), Halted: bitstampMarkets.halted(bare),
		Split:       bitstampSplit,
		Subscribe:   bitstampRequests.with("bts:subscribe"),
		Unsubscribe: bitstampRequests.with("bts:unsubscribe"),
		Heartbeat: adapter.Heartbeat{
			Every:   20 * time.Second,
			Message: heartbeat(`{"event":"bts:heartbeat"}`),
		},
		NewCodec:   adapter.Stateless(decodeBitstamp), // the channel names the market
		Tickers:    one("/api/v2/ticker/"),
		Polled:     5 * time.Second,
		DecodeREST: bitstampEndpoints.firstBelow("/api/v2/"),
		RecordedREST: bitstampEndpoints.with(endpoints{
			"transactions": bitstampTransactions.in(bare),
		}).firstBelow("/api/v2/"),
		History: bitstampHistory(),
	}
}

var bitstampMarkets = market{
	Symbol: "url_symbol", Pair: "name", Split: bitstampSplit, Alias: "name", Trades: []string{"trading=Enabled"},
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

var bitstampRequests = requests{
	Most:     1,
	Topics:   []string{`"` + bitstampTrades + `<symbol>"`},
	Messages: []string{`{"event":"<verb>","data":{"channel":<topics>}}`},
}

var bitstampEndpoints = endpoints{
	"trading-pairs-info": nil,
	"ticker": object{ // the pair is stated only among all
		Kind: adapter.Ticker, Channel: "rest", Clock: clock(time.Second),
		Symbol: "pair", Time: "timestamp", Last: "last", Bid: "bid", Ask: "ask", Base: "volume",
	}.reader().orOneIn(bare),
	"ohlc": object{
		Kind: adapter.Candle, Channel: "rest", Clock: clock(time.Second),
		Start: "timestamp", Open: "open", High: "high", Low: "low", Close: "close", Volume: "volume",
	}.reader().candlesIn(envelope{Rows: "data.ohlc"}.opener(), seconds("step")),
}

// bitstampSplit leaves out perpetual contracts, which a dash marks: BTC/USD-PERP.
func bitstampSplit(symbol string) (base, quote string, ok bool) {
	if strings.Contains(symbol, "-") {
		return "", "", false
	}
	return adapter.SplitSymbol(symbol)
}

// bitstampFills have price and amount also as JSON numbers, which have passed through a float.
var bitstampFills = object{
	Kind: adapter.Trade, Channel: "trades", Clock: clock(time.Microsecond), Taker: sides("0", "1"),
	Time: "microtimestamp", ID: "id", Price: "price_str", Size: "amount_str", Side: "type",
}.reader()

func decodeBitstamp(f adapter.Frame, out *adapter.Out) error {
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
		return bitstampFills.one(m.Data, adapter.Event{Symbol: symbol}, out)
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
