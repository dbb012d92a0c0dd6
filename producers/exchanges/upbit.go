package exchanges

import (
	"strings"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/adapter"
)

// upbit is Upbit's Korean market. Its frames are binary, and come with long names (DEFAULT) or short
// ones (SIMPLE), singly or in lists; symbols have the quote first. A subscription replaces the one
// before.
//
//	feed    https://docs.upbit.com/kr/reference/websocket-guide (5 connections a second; 5 messages
//	        a second, 100 a minute; an idle connection ends after 120 s)
//	ticker  https://global-docs.upbit.com/reference/websocket-ticker
//	trades  https://global-docs.upbit.com/reference/websocket-trade
//	HTTP    https://global-docs.upbit.com/reference/list-tickers (10 requests a second)
func upbit() adapter.Venue {
	return adapter.Venue{
		Slug: "upbit", Name: "Upbit", Version: 3,
		URLs: adapter.URLs{
			Stream: "wss://api.upbit.com/websocket/v1",
			REST:   "https://api.upbit.com",
		},
		Limits: adapter.Limits{
			Connects: 5, ConnectsPer: time.Second,
			MarketsPerSocket: 300, // undocumented; one message names all
			Messages:         1,
			Requests:         5,
		},
		Silence:     60 * time.Second,
		Listing:     []string{"/v1/market/all"},
		Instruments: market{Symbol: "market", Pair: "market", Split: upbitSplit}.list(bare),
		Split:       upbitSplit,
		Subscribe:   upbitRequests.with(""),
		Replaces:    true,
		Heartbeat:   adapter.Heartbeat{Every: 30 * time.Second, Message: heartbeat("PING")},
		NewCodec:    adapter.Stateless(decodeUpbit), // every message names its market
		NewRecorded: adapter.Stateless(decodeUpbitRecorded),
		// A hundred symbols keep the address of a request near 1 kB.
		Tickers:      some(100, func(symbols []string) string { return "/v1/ticker?markets=" + strings.Join(symbols, ",") }),
		DecodeREST:   upbitREST(upbitEndpoints),
		RecordedREST: upbitRecordedREST,
	}
}

// upbitSplit reads KRW-BTC: the quote comes first.
func upbitSplit(symbol string) (base, quote string, ok bool) {
	quote, base, ok = strings.Cut(symbol, "-")
	return base, quote, ok && base != "" && quote != ""
}

// upbitRequests name all markets of a connection.
var upbitRequests = requests{
	Most: 300,
	Messages: []string{
		`[{"ticket":"marketlog"},{"type":"trade","codes":[<topics>]},{"type":"ticker","codes":[<topics>]},{"format":"DEFAULT"}]`,
	},
}

// upbitEvent is a trade or a ticker under its long names.
type upbitEvent struct {
	Type     string        `json:"type"`
	Code     string        `json:"code"`
	Price    producers.Num `json:"trade_price"`
	Size     producers.Num `json:"trade_volume"`
	AskBid   producers.Num `json:"ask_bid"`
	ID       producers.Num `json:"sequential_id"`
	Traded   producers.Num `json:"trade_timestamp"`
	Time     producers.Num `json:"timestamp"`
	Base24h  producers.Num `json:"acc_trade_volume_24h"`
	Quote24h producers.Num `json:"acc_trade_price_24h"`
	Stream   string        `json:"stream_type"`
}

func decodeUpbit(f adapter.Frame, out *adapter.Out) error {
	type row struct {
		upbitEvent
		Status string `json:"status"` // the answer to PING
		Method string `json:"method"` // of the answer to a question about the connection
		Error  *struct {
			Name    string `json:"name"`
			Message string `json:"message"`
		} `json:"error"`
	}
	all, err := listOrOne[row](f.Bytes)
	if err != nil {
		return err
	}
	for i := range all {
		switch r := &all[i]; {
		case r.Error != nil:
			out.Notice("%s: %s", r.Error.Name, r.Error.Message)
		case r.Status != "", r.Method != "":
		default:
			if err := r.decode(out); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *upbitEvent) decode(out *adapter.Out) error {
	switch snapshot := e.Stream == "SNAPSHOT"; e.Type {
	case "trade":
		out.Add(adapter.Event{
			Kind: adapter.Trade, Symbol: e.Code, Channel: "trade", Time: unixByDigits(e.Traded),
			ID: e.ID, Price: e.Price, Size: e.Size, Side: upbitSide(e.AskBid), Snapshot: snapshot,
		})
	case "ticker":
		out.Add(adapter.Event{
			Kind: adapter.Ticker, Symbol: e.Code, Channel: "ticker", Time: unixByDigits(e.Time),
			Last: e.Price, VolumeBase: e.Base24h, VolumeQuote: e.Quote24h, Snapshot: snapshot,
		})
	case "orderbook":
	default:
		return producers.Unreadable("message of type %q", e.Type)
	}
	return nil
}

// upbitSide is the taker's.
var upbitSide = sides("BID", "ASK")

var upbitEndpoints = endpoints{"market/all": nil, "ticker": upbitTickers.in(bare)}

var upbitTickers = object{
	Kind: adapter.Ticker, Channel: "rest", Clock: unixByDigits,
	Symbol: "market", Time: "timestamp", Last: "trade_price", Base: "acc_trade_volume_24h", Quote: "acc_trade_price_24h",
}.reader()

// upbitREST refuses the interface of before, whose paths have crix in them.
func upbitREST(all endpoints) decodeREST {
	read := all.below("/v1/")
	return func(target string, body []byte, out *adapter.Out) error {
		if path, _ := endpoint(target); strings.Contains(path, "/crix/") {
			return adapter.Retired("answer of %s", path)
		}
		return read(target, body, out)
	}
}
