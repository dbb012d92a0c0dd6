package exchanges

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/adapter"
)

// kucoin is KuCoin's spot market, read by its classic feed; recordings may be of the unified one.
//
//	connect  https://www.kucoin.com/apidoc/project-6000000/websocket-api/base-info/introduction (a token, and
//	         where to use it, is asked for before each connection; a ping every pingInterval, 18 s)
//	feed     https://www.kucoin.com/docs-new/3470063w0 (ticker), 3470065w0 (snapshot of one symbol a topic, with
//	         the volumes), 3470072w0 (trades), 3470071w0 (candles)
//	unified  https://www.kucoin.com/docs-new/3470355w0 (ticker), 3470359w0 (trades), 3470356w0 (candles)
//	limits   https://www.kucoin.com/docs-new/rate-limit (HTTP: 2,000 weight in 30 s, a list of candles
//	         weighs 3, all tickers 15; feed: 100 messages in 10 s, 100 symbols a message, 30
//	         connections a minute, 300 to 400 topics a connection as the editions have it)
func kucoin() adapter.Venue {
	return adapter.Venue{
		Slug: "kucoin", Name: "KuCoin", Version: 2,
		URLs: adapter.URLs{
			Stream: "wss://ws-api-spot.kucoin.com",
			REST:   "https://api.kucoin.com",
		},
		Limits: adapter.Limits{
			Connects: 30, ConnectsPer: time.Minute,
			MarketsPerSocket: 100, // each is three topics
			Messages:         9,   // and pings
			Requests:         15,
		},
		Silence:     60 * time.Second, // every ping is answered
		Listing:     []string{"/api/v2/symbols"},
		Instruments: kucoinMarkets.list(kucoinAnswer), Halted: kucoinMarkets.halted(kucoinAnswer),
		Endpoint:    kucoinEndpoint,
		Subscribe:   kucoinRequests("subscribe"),
		Unsubscribe: kucoinRequests("unsubscribe"),
		Heartbeat: adapter.Heartbeat{
			Every:   15 * time.Second,
			Message: heartbeat(`{"id":"1","type":"ping"}`),
		},
		NewCodec:     adapter.Stateless(decodeKucoin), // the topic or the row names the symbol
		NewRecorded:  adapter.Stateless(decodeKucoinRecorded),
		Tickers:      one("/api/v1/market/allTickers"),
		DecodeREST:   kucoinEndpoints.byName(),
		RecordedREST: kucoinEndpoints.with(endpoints{"histories": kucoinTrades.in(kucoinAnswer)}).byName(),
		History:      kucoinHistory(),
	}
}

var kucoinMarkets = market{
	// The symbol stays when an asset is renamed, the others do not: BCHSV-USDT is BSV-USDT.
	Symbol: "symbol", Alias: "name", Base: "baseCurrency", Quote: "quoteCurrency", Trades: []string{"enableTrading=true"},
}

var kucoinAnswer = envelope{Code: "code", OK: "200000", Message: "msg", Rows: "data"}.opener()

var kucoinEndpoints = endpoints{
	"symbols": nil,
	"allTickers": kucoinPolled.in(envelope{
		Code: "code", OK: "200000", Message: "msg", Rows: "data.ticker", Time: "data.time",
	}.opener()),
	"candles": kucoinColumns.in(kucoinAnswer, func(q url.Values) string { return kucoinInterval(q.Get("type")) }),
}

// kucoinHistory: https://www.kucoin.com/docs-new/rest/spot-trading/market-data/get-klines
// An answer has 1500 candles at most; the bounds stay below, since both may be part of it.
func kucoinHistory() *adapter.History {
	return &adapter.History{Rows: 1440, Query: func(m adapter.Instrument, interval time.Duration, from, to time.Time) adapter.Query {
		kind := map[time.Duration]string{time.Minute: "1min", time.Hour: "1hour", 24 * time.Hour: "1day"}[interval]
		return adapter.Query{Symbol: m.Symbol, Path: fmt.Sprintf("/api/v1/market/candles?symbol=%s&type=%s&startAt=%d&endAt=%d",
			url.QueryEscape(m.Symbol), kind, from.Unix(), to.Unix())}
	}}
}

// kucoinEndpoint asks for a token. The answer also names the server, which replaces urls.Stream.
func kucoinEndpoint(ctx context.Context, f adapter.Fetcher, urls adapter.URLs) (string, error) {
	body, err := f.Fetch(ctx, http.MethodPost, urls.REST+"/api/v1/bullet-public")
	if err != nil {
		return "", err
	}
	data, _, err := kucoinAnswer(body)
	if err != nil {
		return "", err
	}
	var grant struct {
		Token   string `json:"token"`
		Servers []struct {
			Endpoint string `json:"endpoint"`
		} `json:"instanceServers"`
	}
	if err := parse(data, &grant); err != nil {
		return "", err
	}
	address := urls.Stream
	if len(grant.Servers) > 0 && grant.Servers[0].Endpoint != "" {
		address = grant.Servers[0].Endpoint
	}
	return address + "?token=" + url.QueryEscape(grant.Token), nil
}

// kucoinRequests name up to 100 markets in a topic of trades or tickers, and one in a topic of snapshots, which takes no list.
func kucoinRequests(verb string) requester {
	lists := requests{Most: 100, Topics: []string{"<symbol>"}, Messages: []string{
		`{"id":"1","type":"<verb>","topic":"/market/match:<topics>","response":true}`,
		`{"id":"1","type":"<verb>","topic":"/market/ticker:<topics>","response":true}`,
	}}.with(verb)
	single := requests{Most: 1, Topics: []string{"<symbol>"}, Messages: []string{
		`{"id":"1","type":"<verb>","topic":"/market/snapshot:<topics>","response":true}`,
	}}.with(verb)
	return func(markets []adapter.Instrument) [][]byte { return append(lists(markets), single(markets)...) }
}

var (
	// Trades are also those of the HTTP interface, whose rows name no symbol.
	kucoinTrades = object{
		Kind: adapter.Trade, Channel: "trades", Clock: clock(time.Nanosecond),
		Symbol: "symbol", Time: "time", ID: "tradeId", Price: "price", Size: "size", Side: "side",
	}.reader()
	kucoinTickers = object{
		Kind: adapter.Ticker, Channel: "ticker", Time: "time", Last: "price", Bid: "bestBid", Ask: "bestAsk", Sequence: "sequence",
	}.reader()
	// The sequence of a snapshot is of the market, or a clock: neither numbers the updates of a symbol.
	kucoinSnapshots = object{
		Kind: adapter.Ticker, Channel: "snapshot", Within: "data",
		Symbol: "symbol", Time: "datetime", Last: "lastTradedPrice", Bid: "buy", Ask: "sell", Base: "vol", Quote: "volValue",
	}.reader()
	// All markets' share the time of the answer.
	kucoinPolled = object{
		Kind: adapter.Ticker, Channel: "rest",
		Symbol: "symbol", Last: "last", Bid: "buy", Ask: "sell", Base: "vol", Quote: "volValue",
	}.reader()
)

func decodeKucoin(f adapter.Frame, out *adapter.Out) error {
	var m struct {
		Type    string          `json:"type"`
		Topic   string          `json:"topic"`
		Subject string          `json:"subject"`
		Data    json.RawMessage `json:"data"`
	}
	if err := parse(f.Bytes, &m); err != nil {
		return err
	}
	switch m.Type {
	case "message":
		return kucoinTopic(m.Topic, m.Subject, m.Data, out)
	case "error":
		out.Notice("%s", m.Data)
	case "welcome", "ack", "pong", "notice":
	default:
		return producers.Unreadable("message of type %q", m.Type)
	}
	return nil
}

func kucoinTopic(topic, subject string, data []byte, out *adapter.Out) error {
	channel, symbol, _ := strings.Cut(topic, ":")
	switch channel {
	case "/market/match":
		return kucoinTrades.one(data, adapter.Event{}, out)
	case "/market/ticker":
		if symbol == "all" {
			symbol = subject
		}
		return kucoinTickers.one(data, adapter.Event{Symbol: symbol}, out)
	case "/market/snapshot":
		return kucoinSnapshots.one(data, adapter.Event{}, out)
	case "/market/level2", "/spotMarket/level2Depth5", "/spotMarket/level2Depth50",
		"/callauction/level2Depth50", "/callauction/callauctionData", "/indicator/index", "/indicator/markPrice":
	default:
		return producers.Unreadable("message of topic %q", topic)
	}
	return nil
}

// kucoinColumns are those of candles; the last place has the volume in the quote.
var kucoinColumns = candleColumns{Start: 0, Open: 1, Close: 2, High: 3, Low: 4, Volume: 5, Unit: time.Second}

// kucoinInterval spells 1min, 1hour, 1day, 1week. Months differ in length and have no spelling.
func kucoinInterval(s string) string {
	for _, unit := range []string{"min", "hour", "day", "week"} {
		if n, ok := strings.CutSuffix(s, unit); ok {
			return n + unit[:1]
		}
	}
	return ""
}
