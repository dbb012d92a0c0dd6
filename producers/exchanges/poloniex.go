package exchanges

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/marketlog/marketlog/producers"
)

// poloniex is Poloniex's spot market. Throughout, "quantity" is in the base and "amount" in the quote.
//
//	feed    https://api-docs.poloniex.com/spot/websocket/ (2,000 connections at once, 500 requests a
//	        second on each; a message or ping within 30 s)
//	markets https://api-docs.poloniex.com/spot/websocket/market-data
//	HTTP    https://api-docs.poloniex.com/spot/api/public/market-data
//	limits  https://api-docs.poloniex.com/spot/api/#rate-limits (public: 10 requests a second for all
//	        markets at once, 200 for one)
func poloniex() producers.Venue {
	return producers.Venue{
		Slug: "poloniex", Name: "Poloniex", Version: 1,
		URLs: producers.URLs{
			Stream: "wss://ws.poloniex.com/ws/public",
			REST:   "https://api.poloniex.com",
		},
		Countries: producers.Countries{
			// Section 39 of the agreement of 2026-04-01. It names Crimea, Donetsk and Luhansk too.
			Refused: together([]string{
				"AF", "CD", "CI", "CN", "CU", "GB", "HK", "IQ", "IR", "KP", "LY", "ML", "MM", "PS", "SD", "SG", "SO", "SY", "US", "YE", "ZW",
			}, territoriesOfUS, europeanUnion),
			Terms:  "https://www.poloniex.com/support/terms",
			Quoted: quotedBy(feeProfile("poloniex")), Read: "2026-11-23",
		},
		Evidence: producers.VenueEvidence{
			Markets: producers.Documented("https://api-docs.poloniex.com/spot/api/public/reference-data"),
			Trades:  producers.Documented("https://api-docs.poloniex.com/spot/websocket/market-data"),
			Tickers: producers.Documented("https://api-docs.poloniex.com/spot/websocket/market-data"),
			Polled:  producers.Documented("https://api-docs.poloniex.com/spot/api/public/market-data"),
		},
		Limits: producers.Limits{
			Connects: 5, ConnectsPer: time.Second, // undocumented
			MarketsPerSocket: 300, // undocumented; keeps one connection's loss small
			Messages:         10,
			Requests:         5,
		},
		Silence:     60 * time.Second,
		Listing:     []string{"/markets"},
		Instruments: poloniexInstruments,
		Subscribe:   poloniexRequest("subscribe"),
		Unsubscribe: poloniexRequest("unsubscribe"),
		Heartbeat:   producers.Heartbeat{Every: 15 * time.Second, Message: func() []byte { return []byte(`{"event":"ping"}`) }},
		NewCodec:    func() producers.Codec { return poloniexCodec{} },
		Tickers: func([]producers.Instrument) []producers.Query {
			return []producers.Query{{Path: "/markets/ticker24h"}}
		},
		DecodeREST: poloniexREST,
	}
}

// poloniexBatch is how many markets one message names: some 1 kB.
const poloniexBatch = 100

func poloniexRequest(event string) func([]producers.Instrument) [][]byte {
	return func(markets []producers.Instrument) (messages [][]byte) {
		for names := symbols(markets); len(names) > 0; {
			n := min(poloniexBatch, len(names))
			for _, channel := range []string{"trades", "ticker"} {
				messages = append(messages, message(struct {
					Event   string   `json:"event"`
					Channel []string `json:"channel"`
					Symbols []string `json:"symbols"`
				}{event, []string{channel}, names[:n]}))
			}
			names = names[n:]
		}
		return messages
	}
}

func poloniexInstruments(_ string, body []byte) ([]producers.Instrument, error) {
	var markets []struct {
		Symbol string `json:"symbol"`
		Base   string `json:"baseCurrencyName"`
		Quote  string `json:"quoteCurrencyName"`
		State  string `json:"state"` // NORMAL, PAUSE or POST_ONLY
	}
	if err := parse(body, &markets); err != nil {
		return nil, err
	}
	var list []producers.Instrument
	for _, m := range markets {
		if m.State == "NORMAL" {
			list = append(list, producers.Instrument{Symbol: m.Symbol, Base: m.Base, Quote: m.Quote})
		}
	}
	return list, nil
}

// poloniexCodec needs no state: every row names its market.
type poloniexCodec struct{}

// poloniexRow is a trade, ticker or candle, also of the HTTP interface.
type poloniexRow struct {
	Symbol   string        `json:"symbol"`
	ID       producers.Num `json:"id"`
	Price    producers.Num `json:"price"`
	Quantity producers.Num `json:"quantity"`
	Amount   producers.Num `json:"amount"`
	Side     string        `json:"takerSide"`
	Created  producers.Num `json:"createTime"`
	Recorded producers.Num `json:"time"` // of a price
	Pushed   producers.Num `json:"ts"`
	Start    producers.Num `json:"startTime"`
	Open     producers.Num `json:"open"`
	High     producers.Num `json:"high"`
	Low      producers.Num `json:"low"`
	Close    producers.Num `json:"close"`
	Bid      producers.Num `json:"bid"` // of the HTTP interface alone
	Ask      producers.Num `json:"ask"`
}

func (r *poloniexRow) trade(snapshot bool) producers.Event {
	return producers.Event{
		Kind: producers.Trade, Symbol: r.Symbol, Channel: "trades", Time: producers.Unix(r.Created, time.Millisecond),
		ID: r.ID, Price: r.Price, Size: r.Quantity, Side: producers.Side(strings.ToLower(r.Side)), Snapshot: snapshot,
	}
}

func (r *poloniexRow) ticker(channel string, snapshot bool) producers.Event {
	return producers.Event{
		Kind: producers.Ticker, Symbol: r.Symbol, Channel: channel, Time: producers.Unix(r.Pushed, time.Millisecond),
		Last: r.Close, Bid: r.Bid, Ask: r.Ask, VolumeBase: r.Quantity, VolumeQuote: r.Amount, Snapshot: snapshot,
	}
}

func (poloniexCodec) Decode(f producers.Frame, out *producers.Out) error {
	switch {
	case strings.EqualFold(string(f.Bytes), "pong"):
		return nil
	case len(f.Bytes) > 0 && f.Bytes[0] == '[':
		return producers.Retired("a list, as of api2.poloniex.com")
	}
	var m struct {
		Event   string          `json:"event"`
		Message string          `json:"message"`
		Channel string          `json:"channel"`
		Action  string          `json:"action"`
		Data    json.RawMessage `json:"data"`
	}
	if err := parse(f.Bytes, &m); err != nil {
		return err
	}
	interval, candles := strings.CutPrefix(m.Channel, "candles_")
	switch {
	case m.Event == "error":
		out.Notice("%s", m.Message)
		return nil
	case m.Event != "": // an acknowledgement, or a pong
		return nil
	case m.Channel == "trades", m.Channel == "ticker", candles:
	case strings.HasPrefix(m.Channel, "book"), m.Channel == "symbols", m.Channel == "currencies", m.Channel == "exchange":
		return nil
	default:
		return producers.Unreadable("message of channel %q", m.Channel)
	}
	var rows []poloniexRow
	if err := parse(m.Data, &rows); err != nil {
		return err
	}
	snapshot := m.Action == "snapshot"
	for i := range rows {
		switch r := &rows[i]; m.Channel {
		case "trades":
			out.Add(r.trade(snapshot))
		case "ticker":
			out.Add(r.ticker("ticker", snapshot))
		default:
			out.Add(producers.Event{
				Kind: producers.Candle, Symbol: r.Symbol, Channel: "candles", Time: producers.Unix(r.Pushed, time.Millisecond),
				Start: producers.Unix(r.Start, time.Millisecond), Interval: poloniexInterval(interval),
				OpenPrice: r.Open, High: r.High, Low: r.Low, ClosePrice: r.Close, Volume: r.Quantity, Snapshot: snapshot,
			})
		}
	}
	return nil
}

// poloniexInterval spells minute_5, or HOUR_1.
func poloniexInterval(name string) string {
	unit, count, _ := strings.Cut(strings.ToLower(name), "_")
	n, err := strconv.Atoi(count)
	if err != nil || n < 1 || n > 60 {
		return ""
	}
	switch unit {
	case "minute":
		return producers.Interval(time.Duration(n) * time.Minute)
	case "hour":
		return producers.Interval(time.Duration(n) * time.Hour)
	case "day":
		return producers.Interval(time.Duration(n) * 24 * time.Hour)
	case "week":
		return producers.Interval(time.Duration(n) * 7 * 24 * time.Hour)
	case "month":
		return count + "M"
	}
	return ""
}

func poloniexREST(target string, body []byte, out *producers.Out) error {
	path, _ := endpoint(target)
	name := path[strings.LastIndexByte(path, '/')+1:]
	switch name {
	case "markets":
	case "ticker24h", "trades", "price":
		var rows []poloniexRow
		if err := parseRows(body, &rows); err != nil {
			return err
		}
		for i := range rows {
			switch r := &rows[i]; name {
			case "ticker24h":
				out.Add(r.ticker("rest", false))
			case "trades":
				out.Add(r.trade(false))
			case "price":
				out.Add(producers.Event{
					Kind: producers.Ticker, Symbol: r.Symbol, Channel: "rest", Time: producers.Unix(r.Recorded, time.Millisecond), Last: r.Price,
				})
			}
		}
	case "candles":
		// low, high, open, close, amount, quantity, the same two of takers who bought, count, time of
		// the answer, average, interval, start, end
		var rows [][]producers.Num
		if err := parse(body, &rows); err != nil {
			return err
		}
		for _, c := range rows {
			if len(c) < 14 {
				return producers.Unreadable("a candle of %d fields", len(c))
			}
			out.Add(producers.Event{
				Kind: producers.Candle, Channel: "rest",
				Start: producers.Unix(c[12], time.Millisecond), Interval: poloniexInterval(string(c[11])),
				OpenPrice: c[2], High: c[1], Low: c[0], ClosePrice: c[3], Volume: c[5],
			})
		}
	case "public": // returnTicker and its like
		return producers.Retired("answer of %s", path)
	default:
		return unreadAnswer(path)
	}
	return nil
}
