package exchanges

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
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
		Countries: countriesOf["kucoin"],
		Evidence:  evidenceOf["kucoin"],
		Limits: adapter.Limits{
			Connects: 30, ConnectsPer: time.Minute,
			MarketsPerSocket: 100, // each is three topics
			Messages:         9,   // and pings
			Requests:         15,
		},
		Silence:     60 * time.Second, // every ping is answered
		Listing:     []string{"/api/v2/symbols"},
		Instruments: markets(parseKucoin[[]kucoinMarket], (*kucoinMarket).instrument),
		Endpoint:    kucoinEndpoint,
		Subscribe:   kucoinRequest("subscribe"),
		Unsubscribe: kucoinRequest("unsubscribe"),
		Heartbeat: adapter.Heartbeat{
			Every:   15 * time.Second,
			Message: heartbeat(`{"id":"1","type":"ping"}`),
		},
		NewCodec:     func() adapter.Codec { return kucoinCodec{} },
		NewRecorded:  func() adapter.Codec { return kucoinRecorded{} },
		Tickers:      one("/api/v1/market/allTickers"),
		DecodeREST:   kucoinEndpoints.read,
		RecordedREST: kucoinEndpoints.with(endpoints{"histories": rows(parseKucoin[[]kucoinTrade], (*kucoinTrade).event)}).read,
		History:      kucoinHistory(),
	}
}

var kucoinEndpoints = endpoints{
	"symbols":    nil,
	"allTickers": kucoinTickers,
	"candles": candleRows(parseKucoin[[][]producers.Num], kucoinColumns, func(q url.Values) string {
		return kucoinInterval(q.Get("type"))
	}),
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
	grant, err := parseKucoin[struct {
		Token   string `json:"token"`
		Servers []struct {
			Endpoint string `json:"endpoint"`
		} `json:"instanceServers"`
	}](body)
	if err != nil {
		return "", err
	}
	address := urls.Stream
	if len(grant.Servers) > 0 && grant.Servers[0].Endpoint != "" {
		address = grant.Servers[0].Endpoint
	}
	return address + "?token=" + url.QueryEscape(grant.Token), nil
}

// kucoinRequest names up to 100 markets in a topic of trades or tickers, and one in a topic of snapshots, which takes no list.
func kucoinRequest(kind string) func([]adapter.Instrument) [][]byte {
	return func(markets []adapter.Instrument) (messages [][]byte) {
		ask := func(topic string, names []string) {
			messages = append(messages, message(struct {
				ID       string `json:"id"`
				Type     string `json:"type"`
				Topic    string `json:"topic"`
				Response bool   `json:"response"`
			}{"1", kind, topic + strings.Join(names, ","), true}))
		}
		for batch := range slices.Chunk(symbols(markets), 100) {
			ask("/market/match:", batch)
			ask("/market/ticker:", batch)
		}
		for one := range slices.Chunk(symbols(markets), 1) {
			ask("/market/snapshot:", one)
		}
		return messages
	}
}

// parseKucoin reads the envelope of the HTTP interface; a code other than 200000 is an error, also
// with status 200.
func parseKucoin[T any](body []byte) (T, error) {
	var answer struct {
		Code    string `json:"code"`
		Message string `json:"msg"`
		Data    T      `json:"data"`
	}
	if err := parse(body, &answer); err != nil {
		return answer.Data, err
	}
	if answer.Code != "200000" {
		return answer.Data, producers.Unreadable("error %q: %s", answer.Code, answer.Message)
	}
	return answer.Data, nil
}

type kucoinMarket struct {
	Symbol string `json:"symbol"`
	// The symbol stays when an asset is renamed, the others do not: BCHSV-USDT is BSV-USDT.
	Name   string `json:"name"`
	Base   string `json:"baseCurrency"`
	Quote  string `json:"quoteCurrency"`
	Trades bool   `json:"enableTrading"`
}

func (m *kucoinMarket) instrument() (adapter.Instrument, bool) {
	in := adapter.Instrument{Symbol: m.Symbol, Base: m.Base, Quote: m.Quote}
	if m.Name != "" && m.Name != m.Symbol {
		in.Aliases = []string{m.Name}
	}
	return in, m.Trades
}

// kucoinCodec needs no state: the topic or the row names the symbol.
type kucoinCodec struct{}

func (kucoinCodec) Decode(f adapter.Frame, out *adapter.Out) error {
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
		var t kucoinTrade
		if err := parse(data, &t); err != nil {
			return err
		}
		out.Add(t.event())
	case "/market/ticker":
		if symbol == "all" {
			symbol = subject
		}
		var t struct {
			Price    producers.Num `json:"price"`
			Bid      producers.Num `json:"bestBid"`
			Ask      producers.Num `json:"bestAsk"`
			Sequence producers.Num `json:"sequence"`
			Time     producers.Num `json:"time"`
		}
		if err := parse(data, &t); err != nil {
			return err
		}
		out.Add(adapter.Event{
			Kind: adapter.Ticker, Symbol: symbol, Channel: "ticker", Time: producers.Unix(t.Time, time.Millisecond),
			Last: t.Price, Bid: t.Bid, Ask: t.Ask, Sequence: t.Sequence,
		})
	case "/market/snapshot":
		// Its sequence is of the market, or a clock: neither numbers the updates of a symbol.
		var t struct {
			Data struct {
				Symbol string        `json:"symbol"` // the topic may be a whole market
				Last   producers.Num `json:"lastTradedPrice"`
				Bid    producers.Num `json:"buy"`
				Ask    producers.Num `json:"sell"`
				Base   producers.Num `json:"vol"`
				Quote  producers.Num `json:"volValue"`
				Time   producers.Num `json:"datetime"`
			} `json:"data"`
		}
		if err := parse(data, &t); err != nil {
			return err
		}
		out.Add(adapter.Event{
			Kind: adapter.Ticker, Symbol: t.Data.Symbol, Channel: "snapshot", Time: producers.Unix(t.Data.Time, time.Millisecond),
			Last: t.Data.Last, Bid: t.Data.Bid, Ask: t.Data.Ask, VolumeBase: t.Data.Base, VolumeQuote: t.Data.Quote,
		})
	case "/market/level2", "/spotMarket/level2Depth5", "/spotMarket/level2Depth50",
		"/callauction/level2Depth50", "/callauction/callauctionData", "/indicator/index", "/indicator/markPrice":
	default:
		return producers.Unreadable("message of topic %q", topic)
	}
	return nil
}

// kucoinTrade is a trade of the classic feed or of the HTTP interface, whose rows name no symbol. The
// side is the taker's.
type kucoinTrade struct {
	Symbol string        `json:"symbol"`
	ID     producers.Num `json:"tradeId"`
	Price  producers.Num `json:"price"`
	Size   producers.Num `json:"size"`
	Side   string        `json:"side"`
	Time   producers.Num `json:"time"` // nanoseconds
}

func (t *kucoinTrade) event() adapter.Event {
	return adapter.Event{
		Kind: adapter.Trade, Symbol: t.Symbol, Channel: "trades", Time: producers.Unix(t.Time, time.Nanosecond),
		ID: t.ID, Price: t.Price, Size: t.Size, Side: adapter.Side(t.Side),
	}
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

// kucoinTickers reads all markets', which share the time of the answer.
func kucoinTickers(_ url.Values, body []byte, out *adapter.Out) error {
	answer, err := parseKucoin[struct {
		Time    producers.Num `json:"time"`
		Tickers []struct {
			Symbol string        `json:"symbol"`
			Last   producers.Num `json:"last"`
			Bid    producers.Num `json:"buy"`
			Ask    producers.Num `json:"sell"`
			Base   producers.Num `json:"vol"`
			Quote  producers.Num `json:"volValue"`
		} `json:"ticker"`
	}](body)
	if err != nil {
		return err
	}
	for _, t := range answer.Tickers {
		out.Add(adapter.Event{
			Kind: adapter.Ticker, Symbol: t.Symbol, Channel: "rest", Time: producers.Unix(answer.Time, time.Millisecond),
			Last: t.Last, Bid: t.Bid, Ask: t.Ask, VolumeBase: t.Base, VolumeQuote: t.Quote,
		})
	}
	return nil
}
