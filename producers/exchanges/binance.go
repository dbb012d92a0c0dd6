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
		Countries: countriesOf["binance"],
		Evidence:  evidenceOf["binance"],
		Limits: adapter.Limits{
			Connects: 300, ConnectsPer: 5 * time.Minute,
			MarketsPerSocket: 1024 / len(binanceStreams),
			Messages:         5,
			Requests:         10,
		},
		Silence:     30 * time.Second,
		Listing:     []string{"/api/v3/exchangeInfo?permissions=SPOT"},
		Instruments: markets(symbolList[binanceMarket], (*binanceMarket).instrument),
		Subscribe:   binanceRequest("SUBSCRIBE"),
		Unsubscribe: binanceRequest("UNSUBSCRIBE"),
		NewCodec:    func() adapter.Codec { return binanceCodec{} },
		NewRecorded: func() adapter.Codec { return binanceRecorded{} },
		Tickers:     binanceTickers,
		DecodeREST:  binanceEndpoints.read,
		RecordedREST: binanceEndpoints.with(endpoints{
			"bookTicker":       rows(listOrOne[binanceRow], (*binanceRow).ticker),
			"price":            rows(listOrOne[binanceRow], (*binanceRow).price),
			"trades":           rows(list[binanceTrade], (*binanceTrade).event),
			"historicalTrades": rows(list[binanceTrade], (*binanceTrade).event),
		}).read,
		History: binanceHistory(),
	}
}

var binanceEndpoints = endpoints{
	"exchangeInfo": nil,
	"24hr":         rows(listOrOne[binanceRow], (*binanceRow).ticker),
	// Open time, open, high, low, close, volume and more.
	"klines": candleRows(list[[]producers.Num], candleColumns{Start: 0, Open: 1, High: 2, Low: 3, Close: 4, Volume: 5},
		func(q url.Values) string { return q.Get("interval") }),
}

// binanceHistory: https://developers.binance.com/docs/binance-spot-api-docs/rest-api/market-data-endpoints
// Both bounds are compared with a candle's start, and are part of the answer.
func binanceHistory() *adapter.History {
	return &adapter.History{Rows: 1000, Query: func(m adapter.Instrument, interval time.Duration, from, to time.Time) adapter.Query {
		return adapter.Query{Symbol: m.Symbol, Path: fmt.Sprintf("/api/v3/klines?symbol=%s&interval=%s&startTime=%d&endTime=%d&limit=1000",
			url.QueryEscape(m.Symbol), adapter.Interval(interval), from.UnixMilli(), to.UnixMilli()-1)}
	}}
}

// binanceStreams are asked for of each market: trades one by one, and a ticker every second that has
// bid, ask, last and volumes.
var binanceStreams = []string{"trade", "ticker"}

// binanceRequest names at most 200 streams, which keeps messages near 4 kB.
func binanceRequest(method string) requester {
	return requests(200, func(symbol string) (streams []string) {
		for _, stream := range binanceStreams {
			streams = append(streams, strings.ToLower(symbol)+"@"+stream)
		}
		return streams
	}, func(streams []string, n int) any {
		return struct {
			Method string   `json:"method"`
			Params []string `json:"params"`
			ID     int      `json:"id"`
		}{method, streams, n + 1}
	})
}

type binanceMarket struct {
	Symbol string `json:"symbol"`
	Status string `json:"status"`
	Base   string `json:"baseAsset"`
	Quote  string `json:"quoteAsset"`
}

func (m *binanceMarket) instrument() (adapter.Instrument, bool) {
	return adapter.Instrument{Symbol: m.Symbol, Base: m.Base, Quote: m.Quote}, m.Status == "TRADING"
}

// binanceTickersMax is how many symbols one request may name at the weight of 40.
const binanceTickersMax = 100

func binanceTickers(markets []adapter.Instrument) (queries []adapter.Query) {
	for batch := range slices.Chunk(symbols(markets), binanceTickersMax) {
		queries = append(queries, adapter.Query{Path: "/api/v3/ticker/24hr?symbols=" + url.QueryEscape(string(message(batch)))})
	}
	return queries
}

// binanceCodec needs no state: every message names its symbol.
type binanceCodec struct{}

// binanceEvent is the payload of every stream. Keys that differ in case only are all declared, so
// that none is taken for another.
type binanceEvent struct {
	Type    string        `json:"e"`
	Time    producers.Num `json:"E"`
	Symbol  string        `json:"s"`
	TradeID producers.Num `json:"t"`
	Traded  producers.Num `json:"T"`
	Price   producers.Num `json:"p"`
	Percent producers.Num `json:"P"`
	Amount  producers.Num `json:"q"` // size of a trade, quote volume of a ticker
	LastQty producers.Num `json:"Q"`
	Ask     producers.Num `json:"a"` // of a trade: an order or the aggregate's id
	AskQty  producers.Num `json:"A"`
	Bid     producers.Num `json:"b"` // of a trade: an order
	BidQty  producers.Num `json:"B"`
	// Maker says that the buyer was the maker: the taker sold.
	Maker   json.RawMessage `json:"m"`
	Ignored json.RawMessage `json:"M"`
	Last    producers.Num   `json:"c"`
	Closed  producers.Num   `json:"C"`
	Volume  producers.Num   `json:"v"`
	Error   *struct {
		Message string `json:"msg"`
	} `json:"error"`
	Result json.RawMessage `json:"result"`
	ID     json.RawMessage `json:"id"`
}

func (binanceCodec) Decode(f adapter.Frame, out *adapter.Out) error {
	stream, payload, err := binancePayload(f.Bytes)
	if err != nil {
		return err
	}
	var e binanceEvent
	if err := parse(payload, &e); err != nil {
		return err
	}
	return e.decode(stream, out)
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

func (e *binanceEvent) decode(stream string, out *adapter.Out) error {
	switch {
	case e.Error != nil:
		out.Notice("%s", e.Error.Message)
	case e.Type == "trade":
		out.Add(e.trade(e.TradeID))
		out.Count(e.Symbol, e.TradeID)
	case e.Type == "24hrTicker":
		ticker := e.ticker()
		ticker.Bid, ticker.Ask = e.Bid, e.Ask
		out.Add(ticker)
	case e.Type == "serverShutdown":
	case e.Type == "" && (e.Result != nil || e.ID != nil): // an acknowledgement
	default:
		return producers.Unreadable("event %q of stream %q", e.Type, stream)
	}
	return nil
}

func (e *binanceEvent) trade(id producers.Num) adapter.Event {
	trade := (&binanceTrade{ID: id, Price: e.Price, Size: e.Amount, Time: e.Traded, Maker: e.Maker}).event()
	trade.Symbol, trade.Channel = e.Symbol, e.Type
	return trade
}

// ticker leaves out bid and ask, which not every ticker has.
func (e *binanceEvent) ticker() adapter.Event {
	return adapter.Event{
		Kind: adapter.Ticker, Symbol: e.Symbol, Channel: e.Type, Time: unixByDigits(e.Time),
		Last: e.Last, VolumeBase: e.Volume, VolumeQuote: e.Amount,
	}
}

// binanceRow is a ticker of the HTTP interface; its three endpoints have parts of it.
type binanceRow struct {
	Symbol      string        `json:"symbol"`
	Last        producers.Num `json:"lastPrice"`
	Price       producers.Num `json:"price"`
	Bid         producers.Num `json:"bidPrice"`
	Ask         producers.Num `json:"askPrice"`
	Volume      producers.Num `json:"volume"`
	QuoteVolume producers.Num `json:"quoteVolume"`
	CloseTime   producers.Num `json:"closeTime"`
}

func (r *binanceRow) ticker() adapter.Event {
	return adapter.Event{
		Kind: adapter.Ticker, Symbol: r.Symbol, Channel: "rest", Time: unixByDigits(r.CloseTime),
		Last: r.Last, Bid: r.Bid, Ask: r.Ask, VolumeBase: r.Volume, VolumeQuote: r.QuoteVolume,
	}
}

func (r *binanceRow) price() adapter.Event {
	e := r.ticker()
	e.Last = r.Price
	return e
}

// binanceTrade is a trade, as the HTTP interface tells it.
type binanceTrade struct {
	ID    producers.Num   `json:"id"`
	Price producers.Num   `json:"price"`
	Size  producers.Num   `json:"qty"`
	Time  producers.Num   `json:"time"`
	Maker json.RawMessage `json:"isBuyerMaker"`
}

func (t *binanceTrade) event() adapter.Event {
	return adapter.Event{
		Kind: adapter.Trade, Channel: "trade", Time: unixByDigits(t.Time),
		ID: t.ID, Price: t.Price, Size: t.Size, Side: buyerMaker(t.Maker),
	}
}
