package exchanges

import (
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/adapter"
)

// poloniex is Poloniex's spot market. Throughout, "quantity" is in the base and "amount" in the quote.
//
//	feed    https://api-docs.poloniex.com/spot/websocket/ (2,000 connections at once, 500 requests a
//	        second on each; a message or ping within 30 s)
//	markets https://api-docs.poloniex.com/spot/websocket/market-data
//	HTTP    https://api-docs.poloniex.com/spot/api/public/market-data
//	limits  https://api-docs.poloniex.com/spot/api/#rate-limits (public: 10 requests a second for all
//	        markets at once, 200 for one)
func poloniex() adapter.Venue {
	return adapter.Venue{
		Slug: "poloniex", Name: "Poloniex", Version: 1,
		URLs: adapter.URLs{
			Stream: "wss://ws.poloniex.com/ws/public",
			REST:   "https://api.poloniex.com",
		},
		Countries: countriesOf["poloniex"],
		Evidence:  evidenceOf["poloniex"],
		Limits: adapter.Limits{
			Connects: 5, ConnectsPer: time.Second, // undocumented
			MarketsPerSocket: 300, // undocumented; keeps one connection's loss small
			Messages:         10,
			Requests:         5,
		},
		Silence:     60 * time.Second,
		Listing:     []string{"/markets"},
		Instruments: markets(list[poloniexMarket], (*poloniexMarket).instrument),
		Subscribe:   poloniexRequest("subscribe"),
		Unsubscribe: poloniexRequest("unsubscribe"),
		Heartbeat:   adapter.Heartbeat{Every: 15 * time.Second, Message: heartbeat(`{"event":"ping"}`)},
		NewCodec:    func() adapter.Codec { return poloniexCodec{} },
		Tickers:     one("/markets/ticker24h"),
		DecodeREST: endpoints{
			"markets":   nil,
			"ticker24h": rows(listOrOne[poloniexRow], (*poloniexRow).polled),
			"trades":    rows(listOrOne[poloniexRow], (*poloniexRow).trade),
			"price":     rows(listOrOne[poloniexRow], (*poloniexRow).price),
			"candles":   poloniexCandles,
			"public":    retired, // returnTicker and its like
		}.read,
	}
}

// poloniexRequest names at most 100 markets in a message, some 1 kB.
func poloniexRequest(event string) requester {
	return channelRequests(100, []string{"trades", "ticker"}, func(channel string, symbols []string) any {
		return struct {
			Event   string   `json:"event"`
			Channel []string `json:"channel"`
			Symbols []string `json:"symbols"`
		}{event, []string{channel}, symbols}
	})
}

type poloniexMarket struct {
	Symbol string `json:"symbol"`
	Base   string `json:"baseCurrencyName"`
	Quote  string `json:"quoteCurrencyName"`
	State  string `json:"state"` // NORMAL, PAUSE or POST_ONLY
}

func (m *poloniexMarket) instrument() (adapter.Instrument, bool) {
	return adapter.Instrument{Symbol: m.Symbol, Base: m.Base, Quote: m.Quote}, m.State == "NORMAL"
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

func (r *poloniexRow) trade() adapter.Event {
	return adapter.Event{
		Kind: adapter.Trade, Symbol: r.Symbol, Channel: "trades", Time: producers.Unix(r.Created, time.Millisecond),
		ID: r.ID, Price: r.Price, Size: r.Quantity, Side: adapter.Side(strings.ToLower(r.Side)),
	}
}

func (r *poloniexRow) ticker() adapter.Event {
	return adapter.Event{
		Kind: adapter.Ticker, Symbol: r.Symbol, Channel: "ticker", Time: producers.Unix(r.Pushed, time.Millisecond),
		Last: r.Close, Bid: r.Bid, Ask: r.Ask, VolumeBase: r.Quantity, VolumeQuote: r.Amount,
	}
}

func (r *poloniexRow) polled() adapter.Event {
	e := r.ticker()
	e.Channel = "rest"
	return e
}

func (r *poloniexRow) price() adapter.Event {
	return adapter.Event{
		Kind: adapter.Ticker, Symbol: r.Symbol, Channel: "rest", Time: producers.Unix(r.Recorded, time.Millisecond), Last: r.Price,
	}
}

func (r *poloniexRow) candle(interval string) adapter.Event {
	return adapter.Event{
		Kind: adapter.Candle, Symbol: r.Symbol, Channel: "candles", Time: producers.Unix(r.Pushed, time.Millisecond),
		Start: producers.Unix(r.Start, time.Millisecond), Interval: interval,
		OpenPrice: r.Open, High: r.High, Low: r.Low, ClosePrice: r.Close, Volume: r.Quantity,
	}
}

func (poloniexCodec) Decode(f adapter.Frame, out *adapter.Out) error {
	switch {
	case strings.EqualFold(string(f.Bytes), "pong"):
		return nil
	case len(f.Bytes) > 0 && f.Bytes[0] == '[':
		return adapter.Retired("a list, as of api2.poloniex.com")
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
	event := (*poloniexRow).trade
	interval, candles := strings.CutPrefix(m.Channel, "candles_")
	switch {
	case m.Event == "error":
		out.Notice("%s", m.Message)
		return nil
	case m.Event != "": // an acknowledgement, or a pong
		return nil
	case m.Channel == "trades":
	case m.Channel == "ticker":
		event = (*poloniexRow).ticker
	case candles:
		event = func(r *poloniexRow) adapter.Event { return r.candle(poloniexInterval(interval)) }
	case strings.HasPrefix(m.Channel, "book"), m.Channel == "symbols", m.Channel == "currencies", m.Channel == "exchange":
		return nil
	default:
		return producers.Unreadable("message of channel %q", m.Channel)
	}
	return parseAll(m.Data, func(r *poloniexRow) adapter.Event {
		e := event(r)
		e.Snapshot = m.Action == "snapshot"
		return e
	}, out)
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
		return adapter.Interval(time.Duration(n) * time.Minute)
	case "hour":
		return adapter.Interval(time.Duration(n) * time.Hour)
	case "day":
		return adapter.Interval(time.Duration(n) * 24 * time.Hour)
	case "week":
		return adapter.Interval(time.Duration(n) * 7 * 24 * time.Hour)
	case "month":
		return count + "M"
	}
	return ""
}

// poloniexCandles reads low, high, open, close, amount, quantity, the same two of takers who bought, count, time of the answer,
// average, interval, start, end. Each row names its interval.
func poloniexCandles(_ url.Values, body []byte, out *adapter.Out) error {
	all, err := list[[]producers.Num](body)
	if err != nil {
		return err
	}
	columns := candleColumns{Low: 0, High: 1, Open: 2, Close: 3, Volume: 5, Start: 12, Unit: time.Millisecond}
	for _, row := range all {
		if len(row) < 14 {
			return producers.Unreadable("a candle of %d fields", len(row))
		}
		e := adapter.Event{Channel: "rest", Interval: poloniexInterval(string(row[11]))}
		if err := columns.add([][]producers.Num{row}, e, out); err != nil {
			return err
		}
	}
	return nil
}
