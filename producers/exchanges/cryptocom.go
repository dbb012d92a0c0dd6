package exchanges

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/adapter"
)

// cryptocom is the Crypto.com Exchange, by version 1 of its interface.
//
//	https://exchange-docs.crypto.com/exchange/v1/rest-ws/index.html
//
// A heartbeat comes every 30 s and must be answered within 5; market data allows 100 messages a
// second; the first message should wait a second after connecting. "vv" of a ticker is in USD
// whatever the quote, and is left out.
func cryptocom() adapter.Venue {
	return adapter.Venue{
		Slug: "cryptocom", Name: "Crypto.com", Version: 2,
		URLs: adapter.URLs{
			Stream: "wss://stream.crypto.com/exchange/v1/market",
			REST:   "https://api.crypto.com/exchange/v1",
		},
		Limits: adapter.Limits{
			Connects: 5, ConnectsPer: time.Second, // undocumented
			MarketsPerSocket: 150, // undocumented; keeps one connection's loss small
			Messages:         5,
			Requests:         10,
		},
		Silence:     90 * time.Second,
		Listing:     []string{"/public/get-instruments"},
		Instruments: cryptocomMarkets.list(cryptocomAnswer), Halted: cryptocomMarkets.halted(cryptocomAnswer),
		Subscribe:    cryptocomRequests.with("subscribe"),
		Unsubscribe:  cryptocomRequests.with("unsubscribe"),
		NewCodec:     adapter.Stateless(decodeCryptocom), // every result names its channel
		NewRecorded:  adapter.Stateless(decodeCryptocomRecorded),
		Tickers:      one("/public/get-tickers"),
		DecodeREST:   cryptocomEndpoints.byName(),
		RecordedREST: cryptocomEndpoints.with(cryptocomRecordedEndpoints).byName(),
	}
}

var cryptocomMarkets = market{
	Symbol: "symbol", Base: "base_ccy", Quote: "quote_ccy", If: []string{"inst_type=CCY_PAIR"}, Trades: []string{"tradable=true"},
}

// cryptocomRequests name at most 100 channels.
var cryptocomRequests = requests{
	Most:     100,
	Topics:   []string{`"trade.<symbol>"`, `"ticker.<symbol>"`},
	Messages: []string{`{"id":<n>,"method":"<verb>","params":{"channels":[<topics>]}}`},
}

var cryptocomAnswer = envelope{Code: "code", OK: "0", Message: "message", Rows: "result.data"}.opener()

var cryptocomEndpoints = endpoints{
	"get-instruments": nil,
	"get-tickers":     cryptocomTickers.in(cryptocomAnswer),
}

var (
	cryptocomTrades = object{
		Kind: adapter.Trade, Channel: "trade", NewestFirst: true, Time: "t", ID: "d", Price: "p", Size: "q", Side: "s",
	}.reader()
	cryptocomTickers = object{
		Kind: adapter.Ticker, Channel: "ticker", Symbol: "i", Time: "t", Last: "a", Bid: "b", Ask: "k", Base: "v",
	}.reader()
)

func decodeCryptocom(f adapter.Frame, out *adapter.Out) error {
	var m struct {
		ID      producers.Num `json:"id"`
		Method  string        `json:"method"`
		Code    producers.Num `json:"code"`
		Message string        `json:"message"`
		Result  *struct {
			Channel    string          `json:"channel"`
			Instrument string          `json:"instrument_name"`
			Data       json.RawMessage `json:"data"`
		} `json:"result"`
	}
	if err := parse(f.Bytes, &m); err != nil {
		return err
	}
	switch {
	case m.Method == "public/heartbeat":
		out.Reply(fmt.Sprintf(`{"id":%s,"method":"public/respond-heartbeat"}`, m.ID))
		return nil
	case m.Code != "" && m.Code != "0":
		out.Notice("error %s: %s", m.Code, m.Message)
		return nil
	case m.Result == nil && m.Method != "":
		return nil
	case m.Result == nil:
		return producers.Unreadable("a message without method and result")
	}
	switch e := (adapter.Event{Symbol: m.Result.Instrument}); m.Result.Channel {
	case "trade":
		// The answer to a subscription has its id and brings history; what follows has the id -1, or none.
		e.Snapshot = m.ID != "" && m.ID != "-1"
		return cryptocomTrades.list(m.Result.Data, e, out)
	case "ticker":
		return cryptocomTickers.list(m.Result.Data, e, out)
	case "book", "book.update", "":
	case "index", "mark", "settlement", "funding", "estimatedfunding": // of contracts, which are not read
	default:
		return producers.Unreadable("message of channel %q", m.Result.Channel)
	}
	return nil
}
