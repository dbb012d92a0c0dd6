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

// binance is Binance Spot, by its market-data-only hosts. Binance.US and Binance TR speak the same.
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
		Tickers:     binanceTickers,
		DecodeREST: endpoints{
			"exchangeInfo":     nil,
			"24hr":             rows(listOrOne[binanceRow], (*binanceRow).ticker),
			"bookTicker":       rows(listOrOne[binanceRow], (*binanceRow).ticker),
			"price":            rows(listOrOne[binanceRow], (*binanceRow).price),
			"trades":           rows(list[binanceTrade], (*binanceTrade).event),
			"historicalTrades": rows(list[binanceTrade], (*binanceTrade).event),
			"klines":           binanceKlines,
		}.read,
		History: binanceHistory(),
	}
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
	Update  producers.Num   `json:"u"`
	First   producers.Num   `json:"U"`
	Kline   *binanceKline   `json:"k"`
	Error   *struct {
		Message string `json:"msg"`
	} `json:"error"`
	Result json.RawMessage `json:"result"`
	ID     json.RawMessage `json:"id"`
	// LastUpdate is of a partial book, which has neither a type nor a symbol.
	LastUpdate producers.Num `json:"lastUpdateId"`
}

type binanceKline struct {
	Start       producers.Num   `json:"t"`
	End         producers.Num   `json:"T"`
	Symbol      string          `json:"s"`
	Interval    string          `json:"i"`
	FirstID     producers.Num   `json:"f"`
	LastID      producers.Num   `json:"L"`
	Low         producers.Num   `json:"l"`
	Open        producers.Num   `json:"o"`
	Close       producers.Num   `json:"c"`
	High        producers.Num   `json:"h"`
	Volume      producers.Num   `json:"v"`
	TakerVolume producers.Num   `json:"V"`
	Closed      bool            `json:"x"`
	Quote       producers.Num   `json:"q"`
	TakerQuote  producers.Num   `json:"Q"`
	Trades      json.RawMessage `json:"n"`
}

func (binanceCodec) Decode(f adapter.Frame, out *adapter.Out) error {
	var wrapped struct {
		Stream string          `json:"stream"`
		Data   json.RawMessage `json:"data"`
	}
	payload := f.Bytes
	if len(payload) > 0 && payload[0] == '{' {
		if err := parse(payload, &wrapped); err != nil {
			return err
		}
		if wrapped.Data != nil {
			payload = wrapped.Data
		}
	}
	if len(payload) > 0 && payload[0] == '[' { // all tickers at once
		var events []binanceEvent
		if err := parse(payload, &events); err != nil {
			return err
		}
		for i := range events {
			if err := events[i].decode(wrapped.Stream, f.Received, out); err != nil {
				return err
			}
		}
		return nil
	}
	var e binanceEvent
	if err := parse(payload, &e); err != nil {
		return err
	}
	return e.decode(wrapped.Stream, f.Received, out)
}

func (e *binanceEvent) decode(stream string, received int64, out *adapter.Out) error {
	at := producers.Unix(e.Time, binanceUnit(e.Time))
	switch {
	case e.Error != nil:
		out.Notice("%s", e.Error.Message)
	case e.Type == "trade":
		e.trade(e.TradeID, "trade", out)
		out.Count(e.Symbol, e.TradeID)
	case e.Type == "aggTrade":
		e.trade(e.Ask, "aggTrade", out)
	case e.Type == "24hrTicker" || e.Type == "24hrMiniTicker":
		ticker := adapter.Event{
			Kind: adapter.Ticker, Symbol: e.Symbol, Channel: e.Type, Time: at,
			Last: e.Last, VolumeBase: e.Volume, VolumeQuote: e.Amount,
		}
		if e.Type == "24hrTicker" {
			ticker.Bid, ticker.Ask = e.Bid, e.Ask
		}
		out.Add(ticker)
	case e.Type == "kline" && e.Kline != nil:
		k := e.Kline
		out.Add(adapter.Event{
			Kind: adapter.Candle, Symbol: e.Symbol, Channel: "kline", Time: at,
			Start: producers.Unix(k.Start, binanceUnit(k.Start)), Interval: k.Interval, State: candleState(k.Closed),
			OpenPrice: k.Open, High: k.High, Low: k.Low, ClosePrice: k.Close, Volume: k.Volume,
		})
	case e.Type == "" && e.Update != "" && e.Symbol != "" && e.First == "":
		// The book ticker has neither a type nor a time.
		out.Add(adapter.Event{
			Kind: adapter.Ticker, Symbol: e.Symbol, Channel: "bookTicker",
			Bid: e.Bid, Ask: e.Ask, Sequence: e.Update,
		})
	case e.Type == "depthUpdate", e.Type == "serverShutdown", e.Type == "avgPrice", e.Type == "1hTicker", e.Type == "4hTicker", e.Type == "1dTicker":
	case e.Type == "blockTrade", e.Type == "referencePrice": // agreed beside the market, or computed
	case e.Type == "" && (e.Result != nil || e.ID != nil): // an acknowledgement
	case e.Type == "" && (e.LastUpdate != "" || strings.Contains(stream, "@depth")): // a partial book
	default:
		return producers.Unreadable("event %q of stream %q", e.Type, stream)
	}
	return nil
}

func (e *binanceEvent) trade(id producers.Num, channel string, out *adapter.Out) {
	t := binanceTrade{ID: id, Price: e.Price, Size: e.Amount, Time: e.Traded, Maker: e.Maker}
	trade := t.event()
	trade.Symbol, trade.Channel = e.Symbol, channel
	out.Add(trade)
}

// binanceUnit tells milliseconds from microseconds, which a connection may ask for and archives have
// since 2025: sixteen digits are microseconds until the year 2286.
func binanceUnit(n producers.Num) time.Duration {
	if len(n) >= 16 {
		return time.Microsecond
	}
	return time.Millisecond
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
		Kind: adapter.Ticker, Symbol: r.Symbol, Channel: "rest", Time: producers.Unix(r.CloseTime, binanceUnit(r.CloseTime)),
		Last: r.Last, Bid: r.Bid, Ask: r.Ask, VolumeBase: r.Volume, VolumeQuote: r.QuoteVolume,
	}
}

func (r *binanceRow) price() adapter.Event {
	e := r.ticker()
	e.Last = r.Price
	return e
}

// binanceTrade is a trade of the HTTP interface.
type binanceTrade struct {
	ID    producers.Num   `json:"id"`
	Price producers.Num   `json:"price"`
	Size  producers.Num   `json:"qty"`
	Time  producers.Num   `json:"time"`
	Maker json.RawMessage `json:"isBuyerMaker"`
}

func (t *binanceTrade) event() adapter.Event {
	return adapter.Event{
		Kind: adapter.Trade, Channel: "trade", Time: producers.Unix(t.Time, binanceUnit(t.Time)),
		ID: t.ID, Price: t.Price, Size: t.Size, Side: buyerMaker(t.Maker),
	}
}

// binanceKlines reads open time, open, high, low, close, volume and more; archives may have microseconds.
func binanceKlines(query url.Values, body []byte, out *adapter.Out) error {
	all, err := list[[]producers.Num](body)
	if err != nil {
		return err
	}
	for _, row := range all {
		columns := candleColumns{Start: 0, Open: 1, High: 2, Low: 3, Close: 4, Volume: 5, Unit: time.Millisecond}
		if len(row) > 0 {
			columns.Unit = binanceUnit(row[0])
		}
		if err := columns.add([][]producers.Num{row}, adapter.Event{Channel: "rest", Interval: query.Get("interval")}, out); err != nil {
			return err
		}
	}
	return nil
}
