package exchanges

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/adapter"
)

// okx is OKX's spot market, by version 5 of its interface.
//
//	feed    https://www.okx.com/docs-v5/en/#overview-websocket (3 connections a second; 480 requests an
//	        hour and connection, whatever they name, of at most 64 kB; the text "ping" within 30 s)
//	ticker  https://www.okx.com/docs-v5/en/#order-book-trading-market-data-ws-tickers-channel
//	trades  https://www.okx.com/docs-v5/en/#order-book-trading-market-data-ws-trades-channel
//	HTTP    https://www.okx.com/docs-v5/en/#order-book-trading-market-data-get-tickers (20 in 2 s)
func okx() adapter.Venue {
	return adapter.Venue{
		Slug: "okx", Name: "OKX", Version: 2,
		URLs: adapter.URLs{
			Stream: "wss://ws.okx.com:8443/ws/v5/public",
			REST:   "https://www.okx.com",
		},
		Limits: adapter.Limits{
			Connects: 3, ConnectsPer: time.Second,
			MarketsPerSocket: 300, // undocumented; two channels each stay below 64 kB in two requests
			Messages:         3,
			Requests:         10,
		},
		Silence:     60 * time.Second,
		Listing:     []string{"/api/v5/public/instruments?instType=SPOT"},
		Instruments: okxMarkets.list(okxAnswer), Halted: okxMarkets.halted(okxAnswer),
		Subscribe:   okxRequests.with("subscribe"),
		Unsubscribe: okxRequests.with("unsubscribe"),
		Heartbeat:   adapter.Heartbeat{Every: 20 * time.Second, Message: heartbeat("ping")},
		NewCodec:    adapter.Stateless(decodeOKX), // every row names its instrument
		NewRecorded: adapter.Stateless(decodeOKXRecorded),
		Tickers:     one("/api/v5/market/tickers?instType=SPOT"),
		DecodeREST:  okxEndpoints.ofVersion("/v5/"),
		RecordedREST: okxEndpoints.with(endpoints{
			"ticker":         okxTickers.as("rest").in(okxAnswer),
			"trades":         okxTrades.in(okxAnswer),
			"history-trades": okxTrades.in(okxAnswer),
		}).ofVersion("/v5/"),
		History: okxHistory(),
	}
}

var okxMarkets = market{
	Symbol: "instId", Base: "baseCcy", Quote: "quoteCcy", If: []string{"instType=SPOT"}, Trades: []string{"state=live"},
}

// okxHistory: https://www.okx.com/docs-v5/en/#order-book-trading-market-data-get-candlesticks-history
// "after" asks for what is older than it, "before" for what is newer. Days begin in Hong Kong unless
// the bar says utc.
func okxHistory() *adapter.History {
	return &adapter.History{Rows: 100, Query: func(m adapter.Instrument, interval time.Duration, from, to time.Time) adapter.Query {
		bar := map[time.Duration]string{time.Minute: "1m", time.Hour: "1H", 24 * time.Hour: "1Dutc"}[interval]
		return adapter.Query{Symbol: m.Symbol, Path: fmt.Sprintf("/api/v5/market/history-candles?instId=%s&bar=%s&after=%d&before=%d&limit=100",
			url.QueryEscape(m.Symbol), bar, to.UnixMilli(), from.UnixMilli()-1)}
	}}
}

// okxRequests name at most 200 channels, some 12 kB.
var okxRequests = requests{
	Most:     200,
	Topics:   []string{`{"channel":"trades","instId":"<symbol>"}`, `{"channel":"tickers","instId":"<symbol>"}`},
	Messages: []string{`{"op":"<verb>","args":[<topics>]}`},
}

var okxAnswer = envelope{Code: "code", OK: "0", Message: "msg", Rows: "data"}.opener()

var okxEndpoints = endpoints{
	"instruments":     nil,
	"tickers":         okxTickers.as("rest").in(okxAnswer),
	"candles":         okxCandles.in(okxAnswer, okxInterval),
	"history-candles": okxCandles.in(okxAnswer, okxInterval),
}

var (
	okxTrades = object{
		Kind: adapter.Trade, Channel: "trades", Symbol: "instId", Time: "ts", ID: "tradeId", Price: "px", Size: "sz", Side: "side",
	}.reader()
	okxTickers = object{
		Kind: adapter.Ticker, Channel: "tickers",
		Symbol: "instId", Time: "ts", Last: "last", Bid: "bidPx", Ask: "askPx", Base: "vol24h", Quote: "volCcy24h",
	}.reader()
	// Behind the volume in the base stand those in the quote, and whether the candle is closed.
	okxCandles = candleColumns{Start: 0, Open: 1, High: 2, Low: 3, Close: 4, Volume: 5, Closed: 8, Least: 6, Unit: time.Millisecond}
)

func decodeOKX(f adapter.Frame, out *adapter.Out) error {
	if string(f.Bytes) == "pong" {
		return nil
	}
	var m struct {
		Event   string `json:"event"`
		Message string `json:"msg"`
		Table   string `json:"table"`
		Arg     struct {
			Channel string `json:"channel"`
		} `json:"arg"`
		Data json.RawMessage `json:"data"`
	}
	if err := parse(f.Bytes, &m); err != nil {
		return err
	}
	switch channel := m.Arg.Channel; {
	case m.Table != "":
		return adapter.Retired("table %q of version 3", m.Table)
	case m.Event == "error":
		out.Notice("%s", m.Message)
	case m.Event != "":
	case channel == "trades":
		return okxTrades.list(m.Data, adapter.Event{}, out)
	case channel == "tickers":
		return okxTickers.list(m.Data, adapter.Event{}, out)
	case strings.HasPrefix(channel, "books"):
	case slices.ContainsFunc(okxUnpriced, func(prefix string) bool { return strings.HasPrefix(channel, prefix) }):
	default:
		return producers.Unreadable("message of channel %q", channel)
	}
	return nil
}

// okxUnpriced are how the channels begin that say nothing about what is paid on the spot market: the venue's
// own state, indices and contracts, and blocks, which are agreed beside the book.
var okxUnpriced = []string{
	"instruments", "status", "index-", "mark-price", "price-limit", "funding-rate", "open-interest", "estimated-price",
	"opt-summary", "option-trades", "liquidation-orders", "adl-warning", "economic-calendar", "block-", "public-",
}

// okxInterval spells that of an answer. Without a bar it has minutes.
func okxInterval(query url.Values) string { return cmp.Or(okxBar(query.Get("bar")), "1m") }

// okxBar spells an interval: OKX writes hours and longer in capitals, with "utc" appended for days that begin at midnight UTC instead of
// in Hong Kong.
func okxBar(bar string) string {
	bar = strings.TrimSuffix(bar, "utc")
	if strings.HasPrefix(bar, "1M") || strings.HasPrefix(bar, "3M") { // months, which have no length
		return bar
	}
	return strings.ToLower(bar)
}
