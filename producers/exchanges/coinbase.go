package exchanges

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/adapter"
)

// coinbase is Coinbase Exchange; recordings may be of Advanced Trade, the same market's other feed.
//
//	feed      https://docs.cdp.coinbase.com/exchange/websocket-feed/channels
//	advanced  https://docs.cdp.coinbase.com/coinbase-app/advanced-trade-apis/websocket/websocket-channels
//	limits    https://docs.cdp.coinbase.com/exchange/websocket-feed/rate-limits (8 requests a second
//	          and address; 10 messages a second) and https://docs.cdp.coinbase.com/exchange/rest-api/rate-limits
func coinbase() adapter.Venue {
	return adapter.Venue{
		Slug: "coinbase", Name: "Coinbase", Version: 2,
		URLs: adapter.URLs{
			Stream: "wss://ws-feed.exchange.coinbase.com",
			REST:   "https://api.exchange.coinbase.com",
		},
		Limits: adapter.Limits{
			Connects: 8, ConnectsPer: time.Second,
			MarketsPerSocket: 200, // undocumented; keeps one connection's loss small
			Messages:         10,
			Requests:         10,
		},
		Silence:     30 * time.Second,
		Listing:     []string{"/products"},
		Instruments: coinbaseMarkets.list(bare), Halted: coinbaseMarkets.halted(bare),
		Subscribe:   coinbaseRequests.with("subscribe"),
		Unsubscribe: coinbaseRequests.with("unsubscribe"),
		NewCodec:    adapter.Stateless(decodeCoinbase), // every message names its product
		NewRecorded: adapter.Stateless(decodeCoinbaseRecorded),
		Tickers:     each(func(symbol string) string { return "/products/" + symbol + "/ticker" }),
		DecodeREST:  coinbaseEndpoints.byName(),
		RecordedREST: coinbaseEndpoints.with(endpoints{
			"trades": rows(bare, func(t *coinbaseTrade) adapter.Event { return t.event("matches") }),
		}).byName(),
		History: coinbaseHistory(),
	}
}

var coinbaseMarkets = market{
	Symbol: "id", Base: "base_currency", Quote: "quote_currency", Trades: []string{"status=online", "trading_disabled=false|"}, Unless: []string{"status=delisted"},
}

// coinbaseRequests name all markets of a connection.
var coinbaseRequests = requests{
	Most:     200,
	Messages: []string{`{"type":"<verb>","product_ids":[<topics>],"channels":["matches","ticker"]}`},
}

var coinbaseEndpoints = endpoints{
	"products": nil,
	"ticker":   coinbasePolled.orOneIn(bare),
	"candles": candleColumns{Start: 0, Low: 1, High: 2, Open: 3, Close: 4, Volume: 5, Unit: time.Second}.in(
		bare, seconds("granularity")),
}

// coinbaseHistory: https://docs.cdp.coinbase.com/api-reference/exchange-api/rest-api/products/get-product-candles
// The candle that starts at end is part of the answer.
func coinbaseHistory() *adapter.History {
	return &adapter.History{Rows: 300, Query: func(m adapter.Instrument, interval time.Duration, from, to time.Time) adapter.Query {
		return adapter.Query{Symbol: m.Symbol, Path: fmt.Sprintf("/products/%s/candles?granularity=%d&start=%s&end=%s",
			url.PathEscape(m.Symbol), interval/time.Second, from.UTC().Format(time.RFC3339), to.Add(-interval).UTC().Format(time.RFC3339))}
	}}
}

// coinbasePolled is a ticker of the HTTP interface.
var coinbasePolled = object{
	Kind: adapter.Ticker, Channel: "rest", Clock: rfc3339,
	Time: "time", Last: "price", Bid: "bid", Ask: "ask", Base: "volume",
}.reader()

// coinbaseTrade is a match, also as a row of Advanced Trade and of the HTTP interface.
type coinbaseTrade struct {
	Product string        `json:"product_id"`
	ID      producers.Num `json:"trade_id"`
	Price   producers.Num `json:"price"`
	Size    producers.Num `json:"size"`
	Side    string        `json:"side"`
	Time    string        `json:"time"`
}

func (t *coinbaseTrade) event(channel string) adapter.Event {
	return adapter.Event{
		Kind: adapter.Trade, Symbol: t.Product, Channel: channel,
		ID: t.ID, Price: t.Price, Size: t.Size, Time: producers.RFC3339(t.Time),
		// All of Coinbase's feeds report the maker's side.
		Side: adapter.Side(strings.ToLower(t.Side)).Opposite(),
	}
}

func decodeCoinbase(f adapter.Frame, out *adapter.Out) error {
	var m struct {
		Type     string        `json:"type"`
		Sequence producers.Num `json:"sequence"`
		Bid      producers.Num `json:"best_bid"`
		Ask      producers.Num `json:"best_ask"`
		Volume   producers.Num `json:"volume_24h"`
		Message  string        `json:"message"`
		Reason   string        `json:"reason"`
		coinbaseTrade
	}
	if err := parse(f.Bytes, &m); err != nil {
		return err
	}
	switch m.Type {
	case "match", "last_match":
		e := m.event("matches")
		e.Snapshot = m.Type == "last_match"
		out.Add(e)
		// Trades of a product are numbered without gaps; "sequence" counts messages of channels
		// that are not subscribed to.
		out.Count(m.Product, m.ID)
	case "ticker":
		out.Add(adapter.Event{
			Kind: adapter.Ticker, Symbol: m.Product, Channel: "ticker", Time: producers.RFC3339(m.Time),
			Last: m.Price, Bid: m.Bid, Ask: m.Ask, VolumeBase: m.Volume, Sequence: m.Sequence,
		})
	case "error":
		out.Notice("%s: %s", m.Message, m.Reason)
	case "subscriptions", "heartbeat", "status", "snapshot", "l2update",
		"received", "open", "done", "change", "activate", "auction",
		"rfq_match": // a price that was asked for beside the book
	default:
		return producers.Unreadable("message of type %q", m.Type)
	}
	return nil
}
