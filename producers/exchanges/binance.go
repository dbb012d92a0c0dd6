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

// binance is Binance Spot, by its market-data-only hosts. Binance.US and Binance TR speak the same. Times are in milliseconds, or in
// microseconds where a connection asks for them, and in archives since 2025.
//
//	feed    https://developers.binance.com/docs/binance-spot-api-docs/web-socket-streams (5 messages a
//	        second, 1,024 streams a connection, 300 connections in 5 minutes, a ping every 20 s)
//	hosts   https://developers.binance.com/docs/binance-spot-api-docs/faqs/market_data_only
//	HTTP    https://developers.binance.com/docs/binance-spot-api-docs/rest-api (6,000 weight a minute)
func binance() adapter.Venue {
	return adapter.Venue{
		Slug: "binance", Name: "Binance", Version: 2,
		URLs: adapter.URLs{
			Stream: "wss://data-stream.binance.vision/stream",
			REST:   "https://data-api.binance.vision",
		},
		Limits: adapter.Limits{
			Connects: 300, ConnectsPer: 5 * time.Minute,
			MarketsPerSocket: 512, // two streams each
			Messages:         5,
			Requests:         10,
		},
		Silence:     30 * time.Second,
		Listing:     []string{"/api/v3/exchangeInfo?permissions=SPOT"},
		Instruments: binanceMarkets.list(bare), Halted: binanceMarkets.halted(bare),
		Subscribe:   binanceRequests.with("SUBSCRIBE"),
		Unsubscribe: binanceRequests.with("UNSUBSCRIBE"),
		NewCodec:    adapter.Stateless(decodeBinance), // every message names its symbol
		NewRecorded: adapter.Stateless(decodeBinanceRecorded),
		// A hundred symbols have the weight of 40.
		Tickers: some(100, func(symbols []string) string {
			return "/api/v3/ticker/24hr?symbols=" + url.QueryEscape(string(message(symbols)))
		}),
		DecodeREST: binanceEndpoints.byName(),
		RecordedREST: binanceEndpoints.with(endpoints{
			"bookTicker":       binanceRows.orOneIn(bare),
			"price":            binancePrices.orOneIn(bare),
			"trades":           binancePast.in(bare),
			"historicalTrades": binancePast.in(bare),
		}).byName(),
		History: binanceHistory(),
	}
}

var binanceMarkets = market{
	Symbol: "symbol", Base: "baseAsset", Quote: "quoteAsset", Trades: []string{"status=TRADING"}, Within: "symbols",
}

// binanceRequests ask for trades one by one, and for a ticker every second that has bid, ask, last and volumes. At most 200 streams keep
// messages near 4 kB.
var binanceRequests = requests{
	Most:     200,
	Topics:   []string{`"<lower>@trade"`, `"<lower>@ticker"`},
	Messages: []string{`{"method":"<verb>","params":[<topics>],"id":<n>}`},
}

var binanceEndpoints = endpoints{
	"exchangeInfo": nil,
	"24hr":         binanceRows.orOneIn(bare),
	// Open time, open, high, low, close, volume and more.
	"klines": candleColumns{Start: 0, Open: 1, High: 2, Low: 3, Close: 4, Volume: 5}.in(
		bare, func(q url.Values) string { return q.Get("interval") }),
}

// binanceHistory: https://developers.binance.com/docs/binance-spot-api-docs/rest-api/market-data-endpoints
// Both bounds are compared with a candle's start, and are part of the answer.
func binanceHistory() *adapter.History {
	return &adapter.History{Rows: 1000, Query: func(m adapter.Instrument, interval time.Duration, from, to time.Time) adapter.Query {
		return adapter.Query{Symbol: m.Symbol, Path: fmt.Sprintf("/api/v3/klines?symbol=%s&interval=%s&startTime=%d&endTime=%d&limit=1000",
			url.QueryEscape(m.Symbol), adapter.Interval(interval), from.UnixMilli(), to.UnixMilli()-1)}
	}}
}

// The payloads of streams. Whether the buyer was the maker shows the side: the taker sold then.
var (
	binanceTrades = object{
		Kind: adapter.Trade, Channel: "trade", Clock: unixByDigits, Taker: isBuyerMaker, Counted: true,
		Symbol: "s", Time: "T", ID: "t", Price: "p", Size: "q", Side: "m",
	}.reader()
	binanceTickers = object{
		Kind: adapter.Ticker, Channel: "24hrTicker", Clock: unixByDigits,
		Symbol: "s", Time: "E", Last: "c", Bid: "b", Ask: "a", Base: "v", Quote: "q",
	}.reader()
)

// binanceRows are tickers of the HTTP interface; its endpoints have parts of them.
var binanceRows = object{
	Kind: adapter.Ticker, Channel: "rest", Clock: unixByDigits,
	Symbol: "symbol", Time: "closeTime", Last: "lastPrice", Bid: "bidPrice", Ask: "askPrice", Base: "volume", Quote: "quoteVolume",
}.reader()

func decodeBinance(f adapter.Frame, out *adapter.Out) error {
	stream, payload, err := binancePayload(f.Bytes)
	if err != nil {
		return err
	}
	switch _, kind, _ := strings.Cut(stream, "@"); kind {
	case "trade":
		return binanceTrades.one(payload, adapter.Event{}, out)
	case "ticker":
		return binanceTickers.one(payload, adapter.Event{}, out)
	}
	return decodeBinanceAnswer(payload, stream, out)
}

// decodeBinanceAnswer reads what is not an event of a market.
func decodeBinanceAnswer(payload []byte, stream string, out *adapter.Out) error {
	var m struct {
		Type  string        `json:"e"`
		Time  producers.Num `json:"E"` // unused, but e would take it
		Error *struct {
			Message string `json:"msg"`
		} `json:"error"`
		Result json.RawMessage `json:"result"`
		ID     json.RawMessage `json:"id"`
	}
	if err := parse(payload, &m); err != nil {
		return err
	}
	switch {
	case m.Error != nil:
		out.Notice("%s", m.Error.Message)
	case m.Type == "serverShutdown":
	case m.Type == "" && (m.Result != nil || m.ID != nil): // an acknowledgement
	default:
		return producers.Unreadable("event %q of stream %q", m.Type, stream)
	}
	return nil
}

// binancePayload opens the envelope, which an answer to a request lacks, and in recordings also an event.
func binancePayload(b []byte) (stream string, payload []byte, err error) {
	if len(b) == 0 || b[0] != '{' {
		return "", b, nil
	}
	var m struct {
		Stream string          `json:"stream"`
		Data   json.RawMessage `json:"data"`
	}
	if err := parse(b, &m); err != nil {
		return "", nil, err
	}
	if m.Data == nil {
		return "", b, nil
	}
	return m.Stream, m.Data, nil
}
