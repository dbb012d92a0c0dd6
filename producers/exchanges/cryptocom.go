package exchanges

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
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
		Evidence: evidenceOf["cryptocom"],
		Limits: adapter.Limits{
			Connects: 5, ConnectsPer: time.Second, // undocumented
			MarketsPerSocket: 150, // undocumented; keeps one connection's loss small
			Messages:         5,
			Requests:         10,
		},
		Silence:      90 * time.Second,
		Listing:      []string{"/public/get-instruments"},
		Instruments:  markets(cryptocomMarkets, (*cryptocomMarket).instrument),
		Subscribe:    cryptocomRequest("subscribe"),
		Unsubscribe:  cryptocomRequest("unsubscribe"),
		NewCodec:     func() adapter.Codec { return cryptocomCodec{} },
		NewRecorded:  func() adapter.Codec { return cryptocomRecorded{} },
		Tickers:      one("/public/get-tickers"),
		DecodeREST:   cryptocomREST,
		RecordedREST: cryptocomRecordedREST,
	}
}

// cryptocomRequest names at most 100 channels.
func cryptocomRequest(method string) requester {
	type params struct {
		Channels []string `json:"channels"`
	}
	return requests(100, func(symbol string) []string { return []string{"trade." + symbol, "ticker." + symbol} },
		func(channels []string, n int) any {
			return struct {
				ID     int    `json:"id"`
				Method string `json:"method"`
				Params params `json:"params"`
			}{n + 1, method, params{channels}}
		})
}

type cryptocomMarket struct {
	Symbol   string `json:"symbol"`
	Type     string `json:"inst_type"`
	Base     string `json:"base_ccy"`
	Quote    string `json:"quote_ccy"`
	Tradable bool   `json:"tradable"`
}

func cryptocomMarkets(body []byte) ([]cryptocomMarket, error) {
	var answer struct {
		Code    producers.Num `json:"code"`
		Message string        `json:"message"`
		Result  struct {
			Data []cryptocomMarket `json:"data"`
		} `json:"result"`
	}
	if err := parse(body, &answer); err != nil {
		return nil, err
	}
	if answer.Code != "0" {
		return nil, producers.Unreadable("error %s: %s", answer.Code, answer.Message)
	}
	return answer.Result.Data, nil
}

func (m *cryptocomMarket) instrument() (adapter.Instrument, bool) {
	return adapter.Instrument{Symbol: m.Symbol, Base: m.Base, Quote: m.Quote}, m.Type == "CCY_PAIR" && m.Tradable
}

// cryptocomCodec needs no state: every result names its channel.
type cryptocomCodec struct{}

type cryptocomResult struct {
	Channel    string          `json:"channel"`
	Instrument string          `json:"instrument_name"`
	Interval   string          `json:"interval"`
	Data       json.RawMessage `json:"data"`
}

func (cryptocomCodec) Decode(f adapter.Frame, out *adapter.Out) error {
	var m struct {
		ID      producers.Num    `json:"id"`
		Method  string           `json:"method"`
		Code    producers.Num    `json:"code"`
		Message string           `json:"message"`
		Result  *cryptocomResult `json:"result"`
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
	// The answer to a subscription has its id and brings history; what follows has the id -1, or none.
	return m.Result.decode(m.ID != "" && m.ID != "-1", out)
}

// decode reads the rows of a channel. They come newest first.
func (r *cryptocomResult) decode(snapshot bool, out *adapter.Out) error {
	switch r.Channel {
	case "trade":
		var trades []struct {
			ID         producers.Num `json:"d"`
			Time       producers.Num `json:"t"`
			Price      producers.Num `json:"p"`
			Size       producers.Num `json:"q"`
			Side       string        `json:"s"` // the taker's
			Instrument string        `json:"i"`
		}
		if err := parse(r.Data, &trades); err != nil {
			return err
		}
		for _, t := range slices.Backward(trades) {
			out.Add(adapter.Event{
				Kind: adapter.Trade, Symbol: cmp.Or(r.Instrument, t.Instrument), Channel: "trade", Time: producers.Unix(t.Time, time.Millisecond),
				ID: t.ID, Price: t.Price, Size: t.Size, Side: adapter.Side(strings.ToLower(t.Side)), Snapshot: snapshot,
			})
		}
	case "ticker":
		type ticker struct {
			Instrument string        `json:"i"`
			Last       producers.Num `json:"a"`
			Bid        producers.Num `json:"b"`
			Ask        producers.Num `json:"k"`
			Volume     producers.Num `json:"v"`
			Time       producers.Num `json:"t"`
		}
		return parseAll(r.Data, func(t *ticker) adapter.Event {
			return adapter.Event{
				Kind: adapter.Ticker, Symbol: cmp.Or(t.Instrument, r.Instrument), Channel: "ticker", Time: producers.Unix(t.Time, time.Millisecond),
				Last: t.Last, Bid: t.Bid, Ask: t.Ask, VolumeBase: t.Volume,
			}
		}, out)
	case "book", "book.update", "":
	case "index", "mark", "settlement", "funding", "estimatedfunding": // of contracts, which are not read
	default:
		return producers.Unreadable("message of channel %q", r.Channel)
	}
	return nil
}

func cryptocomREST(target string, body []byte, out *adapter.Out) error {
	r, name, err := cryptocomAnswer(target, body)
	switch {
	case err != nil:
		return err
	case name == "get-instruments":
		return nil
	case name == "get-tickers":
		r.Channel = "ticker"
		return r.decode(false, out)
	}
	return unreadAnswer(target)
}

// cryptocomAnswer opens an answer; name is that of its endpoint.
func cryptocomAnswer(target string, body []byte) (result *cryptocomResult, name string, err error) {
	path, query := endpoint(target)
	var answer struct {
		Code    producers.Num   `json:"code"`
		Message string          `json:"message"`
		Result  cryptocomResult `json:"result"`
	}
	if err := parse(body, &answer); err != nil {
		return nil, "", err
	}
	if answer.Code != "0" {
		return nil, "", producers.Unreadable("error %s: %s", answer.Code, answer.Message)
	}
	answer.Result.Instrument = query.Get("instrument_name")
	return &answer.Result, path[strings.LastIndexByte(path, '/')+1:], nil
}
