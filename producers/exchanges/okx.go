package exchanges

import (
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
		Countries: countriesOf["okx"],
		Evidence:  evidenceOf["okx"],
		Limits: adapter.Limits{
			Connects: 3, ConnectsPer: time.Second,
			MarketsPerSocket: 300, // undocumented; two channels each stay below 64 kB in two requests
			Messages:         3,
			Requests:         10,
		},
		Silence:     60 * time.Second,
		Listing:     []string{"/api/v5/public/instruments?instType=SPOT"},
		Instruments: markets(okxData[okxMarket], (*okxMarket).instrument),
		Subscribe:   okxRequest("subscribe"),
		Unsubscribe: okxRequest("unsubscribe"),
		Heartbeat:   adapter.Heartbeat{Every: 20 * time.Second, Message: heartbeat("ping")},
		NewCodec:    func() adapter.Codec { return okxCodec{} },
		NewRecorded: func() adapter.Codec { return okxRecorded{} },
		Tickers:     one("/api/v5/market/tickers?instType=SPOT"),
		DecodeREST:  okxEndpoints.ofVersion("/v5/"),
		RecordedREST: okxEndpoints.with(endpoints{
			"ticker":         rows(okxData[okxTicker], (*okxTicker).polled),
			"trades":         rows(okxData[okxTrade], (*okxTrade).event),
			"history-trades": rows(okxData[okxTrade], (*okxTrade).event),
		}).ofVersion("/v5/"),
		History: okxHistory(),
	}
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

type okxArg struct {
	Channel string `json:"channel"`
	Symbol  string `json:"instId"`
}

// okxRequest names at most 200 channels, some 12 kB.
func okxRequest(op string) requester {
	return requests(200, func(symbol string) []okxArg { return []okxArg{{"trades", symbol}, {"tickers", symbol}} },
		func(args []okxArg, _ int) any {
			return struct {
				Op   string   `json:"op"`
				Args []okxArg `json:"args"`
			}{op, args}
		})
}

// okxData opens the envelope of the HTTP interface; a code other than 0 is an error, also with status 200.
func okxData[T any](body []byte) ([]T, error) {
	var answer struct {
		Code    string `json:"code"`
		Message string `json:"msg"`
		Data    []T    `json:"data"`
	}
	if err := parse(body, &answer); err != nil {
		return nil, err
	}
	if answer.Code != "0" {
		return nil, producers.Unreadable("error %q: %s", answer.Code, answer.Message)
	}
	return answer.Data, nil
}

var okxEndpoints = endpoints{
	"instruments":     nil,
	"tickers":         rows(okxData[okxTicker], (*okxTicker).polled),
	"candles":         okxPast,
	"history-candles": okxPast,
}

type okxMarket struct {
	Symbol string `json:"instId"`
	Type   string `json:"instType"`
	Base   string `json:"baseCcy"`
	Quote  string `json:"quoteCcy"`
	State  string `json:"state"`
}

func (m *okxMarket) instrument() (adapter.Instrument, bool) {
	return adapter.Instrument{Symbol: m.Symbol, Base: m.Base, Quote: m.Quote}, m.Type == "SPOT" && m.State == "live"
}

// okxCodec needs no state: every row names its instrument.
type okxCodec struct{}

type okxTrade struct {
	Symbol string        `json:"instId"`
	ID     producers.Num `json:"tradeId"`
	Price  producers.Num `json:"px"`
	Size   producers.Num `json:"sz"`
	Side   string        `json:"side"` // the taker's
	Time   producers.Num `json:"ts"`
}

func (t *okxTrade) event() adapter.Event {
	return adapter.Event{
		Kind: adapter.Trade, Symbol: t.Symbol, Channel: "trades", Time: producers.Unix(t.Time, time.Millisecond),
		ID: t.ID, Price: t.Price, Size: t.Size, Side: adapter.Side(t.Side),
	}
}

// okxTicker's volumes are, for spot, in the base ("vol24h") and in the quote ("volCcy24h").
type okxTicker struct {
	Symbol string        `json:"instId"`
	Type   string        `json:"instType"`
	Last   producers.Num `json:"last"`
	Bid    producers.Num `json:"bidPx"`
	Ask    producers.Num `json:"askPx"`
	Base   producers.Num `json:"vol24h"`
	Quote  producers.Num `json:"volCcy24h"`
	Time   producers.Num `json:"ts"`
}

func (t *okxTicker) event() adapter.Event {
	e := adapter.Event{
		Kind: adapter.Ticker, Symbol: t.Symbol, Channel: "tickers", Time: producers.Unix(t.Time, time.Millisecond),
		Last: t.Last, Bid: t.Bid, Ask: t.Ask,
	}
	if t.Type == "SPOT" {
		e.VolumeBase, e.VolumeQuote = t.Base, t.Quote
	}
	return e
}

func (t *okxTicker) polled() adapter.Event {
	e := t.event()
	e.Channel = "rest"
	return e
}

func (okxCodec) Decode(f adapter.Frame, out *adapter.Out) error {
	if string(f.Bytes) == "pong" {
		return nil
	}
	var m struct {
		Event   string          `json:"event"`
		Message string          `json:"msg"`
		Table   string          `json:"table"`
		Arg     okxArg          `json:"arg"`
		Data    json.RawMessage `json:"data"`
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
		return parseAll(m.Data, (*okxTrade).event, out)
	case channel == "tickers":
		return parseAll(m.Data, (*okxTicker).event, out)
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

// okxCandles adds rows of start, open, high, low, close, volume in contracts or base, in base or
// quote, in quote, and whether it is closed.
func okxCandles(symbol, bar string, all [][]producers.Num, out *adapter.Out) error {
	for _, row := range all {
		columns := candleColumns{Start: 0, Open: 1, High: 2, Low: 3, Close: 4, Volume: 5, Closed: len(row) - 1, Unit: time.Millisecond}
		if len(row) < 6 {
			return producers.Unreadable("a candle of %d fields", len(row))
		}
		if strings.Count(symbol, "-") > 1 && len(row) > 6 { // a contract: the base comes after the contracts
			columns.Volume = 6
		}
		e := adapter.Event{Symbol: symbol, Channel: "candle", Interval: okxBar(bar)}
		if err := columns.add([][]producers.Num{row}, e, out); err != nil {
			return err
		}
	}
	return nil
}

// okxPast reads the candles of the HTTP interface.
func okxPast(query url.Values, body []byte, out *adapter.Out) error {
	all, err := okxData[[]producers.Num](body)
	if err != nil {
		return err
	}
	return okxCandles("", query.Get("bar"), all, out)
}

// okxBar spells an interval: OKX writes hours and longer in capitals, with "utc" behind for days
// that begin at midnight UTC instead of in Hong Kong. An answer without a bar has minutes.
func okxBar(bar string) string {
	switch {
	case bar == "":
		return "1m"
	case strings.HasPrefix(bar, "1M"), strings.HasPrefix(bar, "3M"): // months, which have no length
		return strings.TrimSuffix(bar, "utc")
	}
	return strings.ToLower(strings.TrimSuffix(bar, "utc"))
}
