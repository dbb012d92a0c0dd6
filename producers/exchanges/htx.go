package exchanges

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/adapter"
)

// htx is HTX (formerly Huobi), spot. Every frame is gzip.
//
//	feed    https://www.htx.com/en-us/opend/newApiPages/?id=662 ("ping" every 5 s, to be answered; two
//	        unanswered ones end the connection)
//	ticker  https://www.htx.com/en-us/opend/newApiPages/?id=7ec5a0a7 (amount is in the base, vol in the quote)
//	HTTP    https://www.htx.com/en-us/opend/newApiPages/?id=404 (market data: 800 requests a second and
//	        address; far less is used)
func htx() adapter.Venue {
	return adapter.Venue{
		Slug: "htx", Name: "HTX", Version: 2,
		URLs: adapter.URLs{
			Stream: "wss://api.huobi.pro/ws",
			REST:   "https://api.huobi.pro",
		},
		Limits: adapter.Limits{
			Connects: 10, ConnectsPer: time.Second, // undocumented
			MarketsPerSocket: 150, // undocumented; keeps one connection's loss small
			Messages:         20,  // undocumented; each message subscribes to one topic
			Requests:         7,
		},
		Silence:     30 * time.Second,
		Listing:     []string{"/v1/common/symbols"},
		Instruments: htxMarkets.list(htxAnswer), Halted: htxMarkets.halted(htxAnswer),
		Split:        htxSplit,
		Subscribe:    htxRequests.with("sub"),
		Unsubscribe:  htxRequests.with("unsub"),
		NewCodec:     adapter.Stateless(decodeHTX), // the topic names the symbol
		NewRecorded:  adapter.Stateless(decodeHTXRecorded),
		Tickers:      one("/market/tickers"),
		DecodeREST:   htxEndpoints.byName(),
		RecordedREST: htxEndpoints.with(htxRecordedEndpoints).byName(),
	}
}

var htxMarkets = market{
	Symbol: "symbol", Base: "base-currency", Quote: "quote-currency", Trades: []string{"state=online"},
}

// htxRequests name one topic in a message.
var htxRequests = requests{
	Most:     1,
	Topics:   []string{`"market.<symbol>.trade.detail"`, `"market.<symbol>.ticker"`},
	Messages: []string{`{"id":<topics>,"<verb>":<topics>}`},
}

var htxEndpoints = endpoints{
	"symbols": nil,
	"tickers": htxTickers.in(htxAnswer),
}

var htxAnswer = envelope{Code: "status", OK: "ok", Message: "err-msg", Rows: "data", Time: "ts"}.opener()

// htxSplit reads ethbtc: spot markets have no separator, contracts do (BTC-USDT, BTC_CW).
func htxSplit(symbol string) (base, quote string, ok bool) {
	if strings.ContainsAny(symbol, "-_") {
		return "", "", false
	}
	return adapter.SplitSymbol(symbol)
}

// A trade has an id of its own since 2019, which HTTP spells otherwise; before, and in history, the long id is all there is.
var (
	htxTrades = object{
		Kind: adapter.Trade, Channel: "trade.detail", Within: "data",
		Time: "ts", ID: "tradeId|trade-id|id", Price: "price", Size: "amount", Side: "direction",
	}.reader()
	htxTickers = object{
		Kind: adapter.Ticker, Channel: "rest",
		Symbol: "symbol", Last: "lastPrice|close", Bid: "bid", Ask: "ask", Base: "amount", Quote: "vol",
	}.reader()
)

func decodeHTX(f adapter.Frame, out *adapter.Out) error {
	var m struct {
		Ping    producers.Num   `json:"ping"`
		Channel string          `json:"ch"`
		Time    producers.Num   `json:"ts"`
		Status  string          `json:"status"`
		Message string          `json:"err-msg"`
		Tick    json.RawMessage `json:"tick"`
	}
	if err := parse(f.Bytes, &m); err != nil {
		return err
	}
	switch {
	case m.Ping != "":
		out.Reply(fmt.Sprintf(`{"pong":%s}`, m.Ping))
		return nil
	case m.Status == "error":
		out.Notice("%s", m.Message)
		return nil
	case m.Channel == "" && m.Status != "": // an acknowledgement
		return nil
	}
	symbol, channel := htxTopic(m.Channel)
	switch {
	case channel == "ticker":
		e := adapter.Event{Symbol: symbol, Channel: channel, Time: producers.Unix(m.Time, time.Millisecond)}
		return htxTickers.one(m.Tick, e, out)
	case channel == "trade.detail":
		return htxTrades.list(m.Tick, adapter.Event{Symbol: symbol}, out)
	case strings.HasPrefix(channel, "depth"), strings.HasPrefix(channel, "mbp"), channel == "etp":
	default:
		return producers.Unreadable("message of channel %q", m.Channel)
	}
	return nil
}

// htxTopic reads market.btcusdt.trade.detail.
func htxTopic(topic string) (symbol, channel string) {
	symbol, channel, _ = strings.Cut(strings.TrimPrefix(topic, "market."), ".")
	return symbol, channel
}
