package exchanges

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/adapter"
)

// gemini is Gemini's spot market. Recordings may be of Market Data version 2, the feed before, whose documentation is archived.
//
//	feed    https://developer.gemini.com/websocket/streams (times in nanoseconds), and its schema, in which messages may
//	        have more fields than it names: https://github.com/gemini/developer-platform, specs/asyncapi/websocket.yaml
//	before  https://developer.gemini.com/websocket/archived/v2
//	HTTP    https://developer.gemini.com/rest/market-data
//	limits  https://docs.gemini.com/rate-limit (public: 120 requests a minute, one a second is
//	        recommended) and https://docs.gemini.com/websocket-api/ (12 connections a minute)
func gemini() adapter.Venue {
	return adapter.Venue{
		Slug: "gemini", Name: "Gemini", Version: 3,
		URLs: adapter.URLs{
			Stream: "wss://ws.gemini.com",
			REST:   "https://api.gemini.com",
		},
		Limits: adapter.Limits{
			Connects: 12, ConnectsPer: time.Minute,
			MarketsPerSocket: 200, // undocumented; keeps one connection's loss small
			Messages:         2,
			Requests:         1,
		},
		Silence:      60 * time.Second,
		Listing:      []string{"/v1/symbols"},
		Instruments:  geminiInstruments,
		Split:        geminiSplit,
		Subscribe:    geminiRequests("SUBSCRIBE"),
		Unsubscribe:  geminiRequests("UNSUBSCRIBE"),
		Heartbeat:    adapter.Heartbeat{Every: 20 * time.Second, Message: heartbeat(`{"id":"ping","method":"ping"}`)},
		NewCodec:     adapter.Stateless(decodeGemini), // every message names its symbol
		NewRecorded:  adapter.Stateless(decodeGeminiRecorded),
		Tickers:      each(func(symbol string) string { return "/v2/ticker/" + symbol }),
		DecodeREST:   geminiREST,
		RecordedREST: geminiRecordedREST,

		RecordedInstruments: geminiRecordedInstruments,
	}
}

// geminiRequests name at most 100 streams, some 2 kB.
func geminiRequests(verb string) requester {
	return requests{
		Most:     100,
		Topics:   []string{`"<symbol>@trade"`, `"<symbol>@bookTicker"`},
		Messages: []string{`{"id":"` + strings.ToLower(verb) + `","method":"<verb>","params":[<topics>]}`},
	}.with(verb)
}

// geminiQuotes are what Gemini's markets are quoted in; a longer one goes before one that it ends in.
var geminiQuotes = []string{"RLUSD", "GUSD", "USDT", "USDC", "USD", "EUR", "GBP", "SGD", "BTC", "ETH", "BCH", "LTC", "FIL", "DAI"}

// geminiInG are the bases that end in G themselves: PAXGUSD is gold in dollars, not PAX in Gemini
// dollars. The venue's whole list has it for others, see geminiInstruments.
var geminiInG = []string{"PAXG", "MOODENG"}

// geminiSplit reads btcusd or BTCUSD. Perpetuals end in PERP; contracts on events have hyphens.
func geminiSplit(symbol string) (base, quote string, ok bool) {
	symbol = strings.ToUpper(symbol)
	if strings.HasSuffix(symbol, "PERP") || strings.Contains(symbol, "-") {
		return "", "", false
	}
	for _, quote := range geminiQuotes {
		base, found := strings.CutSuffix(symbol, quote)
		if !found || base == "" || quote == "GUSD" && slices.Contains(geminiInG, base+"G") {
			continue
		}
		return base, quote, true
	}
	return "", "", false
}

// geminiInstruments reads a list of bare symbols. The feed echoes them in lower case, HTTP answers have upper case.
func geminiInstruments(_ string, body []byte) ([]adapter.Instrument, error) {
	var symbols []string
	if err := parse(body, &symbols); err != nil {
		return nil, err
	}
	var list []adapter.Instrument
	for i := range symbols {
		symbols[i] = strings.ToUpper(symbols[i])
	}
	for _, s := range symbols {
		base, quote, ok := geminiSplit(s)
		// Who is traded in Gemini dollars is traded in dollars too: else the G is the base's.
		if quote == "GUSD" && !slices.Contains(symbols, base+"USD") {
			base, quote = base+"G", "USD"
		}
		if ok {
			list = append(list, adapter.Instrument{Symbol: strings.ToLower(s), Base: base, Quote: quote, Aliases: []string{s}})
		}
	}
	return list, nil
}

// geminiEvent is a message of a stream. Keys that differ in case only are all declared, so that none
// is taken for another.
type geminiEvent struct {
	Event   string          `json:"e"`
	Time    producers.Num   `json:"E"`
	Symbol  string          `json:"s"`
	Side    json.RawMessage `json:"S"`
	TradeID producers.Num   `json:"t"`
	Updated producers.Num   `json:"T"`
	Price   producers.Num   `json:"p"`
	Stop    producers.Num   `json:"P"`
	Size    producers.Num   `json:"q"`
	Quoted  producers.Num   `json:"Q"`
	// Maker means that the buyer was the maker: the taker sold.
	Maker   producers.Num   `json:"m"`
	Ignored json.RawMessage `json:"M"`
	Update  producers.Num   `json:"u"`
	First   producers.Num   `json:"U"`
	Bid     producers.Num   `json:"b"`
	BidQty  producers.Num   `json:"B"`
	Ask     producers.Num   `json:"a"`
	AskQty  producers.Num   `json:"A"`
	Last    producers.Num   `json:"c"` // left out before the first trade
	LastQty producers.Num   `json:"C"`

	LastUpdate producers.Num   `json:"lastUpdateId"` // of a partial book
	ID         json.RawMessage `json:"id"`           // of an answer to a request
	Error      json.RawMessage `json:"error"`
	Result     json.RawMessage `json:"result"`
}

func decodeGemini(f adapter.Frame, out *adapter.Out) error {
	var e geminiEvent
	if err := parse(f.Bytes, &e); err != nil {
		return err
	}
	// Documented are nanoseconds; the fixtures of Gemini's own clients have milliseconds.
	at := unixByDigits(e.Time)
	switch {
	case e.Error != nil:
		out.Notice("%s", geminiComplaint(e.Error))
	case e.ID != nil, e.Result != nil: // an acknowledgement, or the answer to the heartbeat
	case e.Event == "depthUpdate", e.Event == "markPrice", e.Event == "fundingAmount", e.LastUpdate != "":
	// The documentation shows trades and tickers without their kind, Gemini's own clients take them with it as well.
	case e.Event != "" && e.Event != "trade" && e.Event != "bookTicker":
		return producers.Unreadable("event %q", e.Event)
	case e.Event != "bookTicker" && e.TradeID != "" && e.Price != "":
		out.Add(adapter.Event{
			Kind: adapter.Trade, Symbol: e.Symbol, Channel: "trades", Time: at,
			ID: e.TradeID, Price: e.Price, Size: e.Size, Side: isBuyerMaker(e.Maker),
		})
	case e.Event != "trade" && e.Update != "" && e.Symbol != "":
		out.Add(adapter.Event{
			Kind: adapter.Ticker, Symbol: e.Symbol, Channel: "bookTicker", Time: at,
			Bid: e.Bid, Ask: e.Ask, Last: e.Last, Sequence: e.Update,
		})
	default:
		return producers.Unreadable("message of no known stream")
	}
	return nil
}

// geminiComplaint reads code and message of a refusal, or its bare text.
func geminiComplaint(b []byte) string {
	var coded struct {
		Code    int    `json:"code"`
		Message string `json:"msg"`
	}
	if json.Unmarshal(b, &coded) == nil {
		return fmt.Sprintf("%d %s", coded.Code, coded.Message)
	}
	return strings.Trim(string(b), `"`)
}

func geminiREST(target string, body []byte, out *adapter.Out) error {
	path, name, _ := geminiPath(target)
	switch name {
	case "v1/symbols": // and what it reports about one
		return nil
	case "v2/ticker":
		return geminiTickers.one(body, adapter.Event{}, out)
	}
	return unreadAnswer(path)
}

// geminiTickers have the newest price as that of the end.
var geminiTickers = object{Kind: adapter.Ticker, Channel: "rest", Symbol: "symbol", Last: "close", Bid: "bid", Ask: "ask"}.reader()

// geminiPath is the path of what was asked for, its endpoint and its last part: v1/pubticker and btcusd.
func geminiPath(target string) (path, name, last string) {
	path, _ = endpoint(target)
	parts := strings.Split(strings.Trim(path, "/"), "/")
	return path, strings.Join(parts[:min(len(parts), 2)], "/"), parts[len(parts)-1]
}
