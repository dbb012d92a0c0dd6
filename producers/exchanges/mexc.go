package exchanges

import (
	"strings"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/adapter"
)

// mexc is MEXC's spot market, by version 3 of its interfaces, whose feed is protobuf.
//
//	feed      https://www.mexc.com/api-docs/spot-v3/websocket-market-streams (30 subscriptions a connection;
//	          closed after a minute without updates or a ping, and after 24 hours)
//	channels  …/trade-streams, …/individual-symbol-book-ticker-streams, …/miniticker, …/k-line-streams
//	messages  https://github.com/mexcdevelop/websocket-proto
//	HTTP      https://www.mexc.com/api-docs/spot-v3/market-data-endpoints
//	limits    https://www.mexc.com/api-docs/spot-v3/general-info (100 messages a second; 500 weight in
//	          10 s for each endpoint and address, all tickers weigh 40)
func mexc() adapter.Venue {
	return adapter.Venue{
		Slug: "mexc", Name: "MEXC", Version: 1,
		URLs: adapter.URLs{
			Stream: "wss://wbs-api.mexc.com/ws",
			REST:   "https://api.mexc.com",
		},
		Limits: adapter.Limits{
			Connects: 5, ConnectsPer: time.Second, // undocumented
			MarketsPerSocket: 10, // three streams each
			Messages:         10,
			Requests:         10,
		},
		Silence: 60 * time.Second, // every ping is answered
		Listing: []string{"/api/v3/exchangeInfo"},
		// Whether orders may come by this interface ("isSpotTradingAllowed") is not whether it trades.
		Instruments: mexcMarkets.list(bare), Halted: mexcMarkets.halted(bare),
		Subscribe:   mexcRequests.with("SUBSCRIPTION"),
		Unsubscribe: mexcRequests.with("UNSUBSCRIPTION"),
		Heartbeat: adapter.Heartbeat{
			Every:   20 * time.Second,
			Message: heartbeat(`{"method":"PING"}`),
		},
		NewCodec:     adapter.Stateless(decodeMEXC), // every push names its symbol
		NewRecorded:  adapter.Stateless(decodeMEXCRecorded),
		Tickers:      one("/api/v3/ticker/24hr"),
		DecodeREST:   mexcEndpoints.below("/api/v3/"),
		RecordedREST: mexcEndpoints.with(mexcRecordedEndpoints).below("/api/v3/"),
	}
}

var mexcMarkets = market{
	Symbol: "symbol", Base: "baseAsset", Quote: "quoteAsset", Trades: []string{"status=1|ENABLED"}, Within: "symbols",
}

// mexcRequests name at most 30 streams, which is all of a connection. The ticker is of the last 24 hours, not a day of some time zone.
var mexcRequests = requests{
	Most: 30,
	Topics: []string{
		`"spot@public.aggre.deals.v3.api.pb@100ms@<symbol>"`,
		`"spot@public.aggre.bookTicker.v3.api.pb@100ms@<symbol>"`,
		`"spot@public.miniTicker.v3.api.pb@<symbol>@24H"`,
	},
	Messages: []string{`{"method":"<verb>","params":[<topics>]}`},
}

var mexcEndpoints = endpoints{
	"exchangeInfo": nil,
	"ticker/24hr":  mexcTickers.in(bare),
}

var mexcTickers = object{
	Kind: adapter.Ticker, Channel: "rest",
	Symbol: "symbol", Time: "closeTime", Last: "lastPrice", Bid: "bidPrice", Ask: "askPrice", Base: "volume", Quote: "quoteVolume",
}.reader()

// Fields of MEXC's PushDataV3ApiWrapper, as https://github.com/mexcdevelop/websocket-proto numbers them. Bodies that are left out here
// are candles, depth and accounts.
const (
	mexcChannel       = 1
	mexcSymbol        = 3
	mexcSendTime      = 6
	mexcPublicDeals   = 301
	mexcBookTicker    = 305
	mexcMiniTicker    = 309
	mexcMiniTickers   = 310
	mexcBookBatch     = 311
	mexcAggreDeals    = 314
	mexcAggreBookTick = 315
)

// Bodies of a push, by the numbers of their fields. The id of a trade is that of both orders, and is not always sent; its side is 1 of
// who buys and 2 of who sells. What a ticker calls its volume, 7, is the turnover.
var (
	mexcDeals = object{
		Kind: adapter.Trade, Channel: "deals", Taker: sides("1", "2"), Price: "1", Size: "2", Side: "3", Time: "4", ID: "5",
	}.reader()
	mexcBooks = object{Kind: adapter.Ticker, Channel: "bookTicker", Bid: "1", Ask: "3"}.reader()
	mexcMinis = object{Kind: adapter.Ticker, Channel: "miniTicker", Symbol: "1", Last: "2", Quote: "7", Base: "8"}.reader()
)

func decodeMEXC(f adapter.Frame, out *adapter.Out) error {
	if mexcIsText(f.Bytes) {
		return decodeMEXCAnswer(f.Bytes, out)
	}
	if !f.Binary {
		return producers.Unreadable("text that is no object")
	}
	push, err := mexcOpen(f.Bytes)
	if err != nil {
		return err
	}
	switch body := push.body; body.id {
	case mexcPublicDeals, mexcAggreDeals:
		return mexcDeals.protoList(body.bytes, push.e, out)
	case mexcBookTicker, mexcAggreBookTick:
		return mexcBooks.proto(body.bytes, push.e, out)
	case mexcBookBatch:
		return mexcBooks.protoList(body.bytes, push.e, out)
	case mexcMiniTicker:
		return mexcMinis.proto(body.bytes, push.e, out)
	case mexcMiniTickers:
		return mexcMinis.protoList(body.bytes, push.e, out)
	}
	return nil
}

// mexcIsText distinguishes JSON from a protobuf message, which cannot begin with a brace: that would be the start of a group.
func mexcIsText(b []byte) bool { return isObject(b[:min(8, len(b))]) }

// mexcPush is a push: what all its rows share, and its body, which is the last of its fields.
type mexcPush struct {
	e    adapter.Event
	body protoField
}

func mexcOpen(b []byte) (push mexcPush, err error) {
	var channel string
	err = protoFields(b, func(f protoField) error {
		switch f.id {
		case mexcChannel:
			channel = f.text()
		case mexcSymbol:
			push.e.Symbol = f.text()
		case mexcSendTime:
			push.e.Time = producers.Unix(f.number, time.Millisecond)
		default:
			push.body = f
		}
		return nil
	})
	if err == nil && !strings.Contains(channel, ".v3.api") {
		err = producers.Unreadable("message of channel %q", channel)
	}
	return push, err
}

// decodeMEXCAnswer reads the answer to a request.
func decodeMEXCAnswer(b []byte, out *adapter.Out) error {
	var m struct {
		Code    *int   `json:"code"`
		Message string `json:"msg"`
	}
	if err := parse(b, &m); err != nil {
		return err
	}
	switch {
	case m.Code == nil:
		return producers.Unreadable("message without channel or code")
	case *m.Code != 0, strings.HasPrefix(m.Message, "Not Subscribed"):
		out.Notice("%s", m.Message)
	}
	return nil
}
