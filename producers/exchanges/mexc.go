package exchanges

import (
	"net/url"
	"slices"
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
		Countries: countriesOf["mexc"],
		Evidence:  evidenceOf["mexc"],
		Limits: adapter.Limits{
			Connects: 5, ConnectsPer: time.Second, // undocumented
			MarketsPerSocket: 30 / len(mexcStreams),
			Messages:         10,
			Requests:         10,
		},
		Silence:     60 * time.Second, // every ping is answered
		Listing:     []string{"/api/v3/exchangeInfo"},
		Instruments: markets(symbolList[binanceMarket], mexcInstrument),
		Subscribe:   mexcRequest("SUBSCRIPTION"),
		Unsubscribe: mexcRequest("UNSUBSCRIPTION"),
		Heartbeat: adapter.Heartbeat{
			Every:   20 * time.Second,
			Message: heartbeat(`{"method":"PING"}`),
		},
		NewCodec:    func() adapter.Codec { return mexcCodec{} },
		NewRecorded: func() adapter.Codec { return mexcRecorded{} },
		Tickers:     one("/api/v3/ticker/24hr"),
		DecodeREST:  mexcEndpoints.below("/api/v3/"),
		RecordedREST: mexcEndpoints.with(endpoints{
			"trades": rows(list[mexcTrade], (*mexcTrade).event),
			// Start, open, high, low, close, volume in the base, end, volume in the quote.
			"klines": candleRows(list[[]producers.Num],
				candleColumns{Start: 0, Open: 1, High: 2, Low: 3, Close: 4, Volume: 5, Unit: time.Millisecond},
				func(q url.Values) string { return mexcInterval(q.Get("interval")) }),
		}).below("/api/v3/"),
	}
}

var mexcEndpoints = endpoints{
	"exchangeInfo": nil,
	"ticker/24hr":  mexcTickers,
}

// mexcStreams are what a market is subscribed to; % is its symbol.
var mexcStreams = [...]string{
	"spot@public.aggre.deals.v3.api.pb@100ms@%",
	"spot@public.aggre.bookTicker.v3.api.pb@100ms@%",
	"spot@public.miniTicker.v3.api.pb@%@24H", // the last 24 hours, not a day of some time zone
}

func mexcRequest(method string) requester {
	return requests(30, func(symbol string) (streams []string) {
		for _, stream := range mexcStreams {
			streams = append(streams, strings.Replace(stream, "%", symbol, 1))
		}
		return streams
	}, func(streams []string, _ int) any {
		return struct {
			Method string   `json:"method"`
			Params []string `json:"params"`
		}{method, streams}
	})
}

// mexcInstrument reads a row that is like Binance's. Whether orders may come by this interface ("isSpotTradingAllowed") is not
// whether it trades.
func mexcInstrument(m *binanceMarket) (adapter.Instrument, bool) {
	in, _ := m.instrument()
	return in, m.Status == "1" || m.Status == "ENABLED"
}

// mexcCodec needs no state: every push names its symbol.
type mexcCodec struct{}

// mexcPush is a push of any channel, in the JSON form of its protobuf message. The documentation's
// examples spell some names in lower case, which makes no difference here.
type mexcPush struct {
	Channel        string        `json:"channel"`
	Symbol         string        `json:"symbol"`
	Created        producers.Num `json:"createTime"`
	Sent           producers.Num `json:"sendTime"`
	Deals          mexcDeals     `json:"publicDeals"`
	AggregateDeals mexcDeals     `json:"publicAggreDeals"`
	Book           *mexcBook     `json:"publicBookTicker"`
	AggregateBook  *mexcBook     `json:"publicAggreBookTicker"`
	Books          struct {
		Items []mexcBook `json:"items"`
	} `json:"publicBookTickerBatch"`
	Candle *mexcCandle `json:"publicSpotKline"`
	Mini   *mexcMini   `json:"publicMiniTicker"`
	Minis  struct {
		Items []mexcMini `json:"items"`
	} `json:"publicMiniTickers"`
}

type mexcDeals struct {
	Deals []mexcDeal `json:"deals"`
	List  []mexcDeal `json:"dealsList"` // as the documentation has it
}

type mexcDeal struct {
	Price  producers.Num `json:"price"`
	Size   producers.Num `json:"quantity"`
	Side   producers.Num `json:"tradeType"` // 1 buys, 2 sells
	Millis producers.Num `json:"time"`
	ID     producers.Num `json:"tradeId"` // of both orders; not always sent
}

type mexcBook struct {
	Bid producers.Num `json:"bidPrice"`
	Ask producers.Num `json:"askPrice"`
}

type mexcMini struct {
	Symbol string        `json:"symbol"`
	Last   producers.Num `json:"price"`
	Quote  producers.Num `json:"volume"` // the turnover
	Base   producers.Num `json:"quantity"`
}

type mexcCandle struct {
	Interval string        `json:"interval"`
	Start    producers.Num `json:"windowStart"` // seconds
	Open     producers.Num `json:"openingPrice"`
	Close    producers.Num `json:"closingPrice"`
	High     producers.Num `json:"highestPrice"`
	Low      producers.Num `json:"lowestPrice"`
	Volume   producers.Num `json:"volume"`
}

func (mexcCodec) Decode(f adapter.Frame, out *adapter.Out) error {
	// A protobuf message cannot begin with a brace: that would be the start of a group.
	if text := strings.TrimLeft(string(f.Bytes[:min(8, len(f.Bytes))]), " \t\r\n"); !strings.HasPrefix(text, "{") {
		if !f.Binary {
			return producers.Unreadable("text that is no object")
		}
		var push mexcPush
		if err := push.unmarshal(f.Bytes); err != nil {
			return err
		}
		return push.add(out)
	}
	var m struct { // the answer to a request
		Code    *int   `json:"code"`
		Message string `json:"msg"`
	}
	if err := parse(f.Bytes, &m); err != nil {
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

func (p *mexcPush) add(out *adapter.Out) error {
	if !strings.Contains(p.Channel, ".v3.api") {
		return producers.Unreadable("message of channel %q", p.Channel)
	}
	sent := producers.Unix(p.Sent, time.Millisecond)
	for _, d := range slices.Concat(p.AggregateDeals.Deals, p.AggregateDeals.List, p.Deals.Deals, p.Deals.List) {
		e := adapter.Event{
			Kind: adapter.Trade, Symbol: p.Symbol, Channel: "deals", Time: producers.Unix(d.Millis, time.Millisecond),
			ID: d.ID, Price: d.Price, Size: d.Size,
		}
		switch d.Side {
		case "1":
			e.Side = adapter.Buy
		case "2":
			e.Side = adapter.Sell
		}
		out.Add(e)
	}
	books := p.Books.Items
	for _, b := range []*mexcBook{p.AggregateBook, p.Book} {
		if b != nil {
			books = append(books, *b)
		}
	}
	for _, b := range books {
		out.Add(adapter.Event{Kind: adapter.Ticker, Symbol: p.Symbol, Channel: "bookTicker", Time: sent, Bid: b.Bid, Ask: b.Ask})
	}
	minis := p.Minis.Items
	if p.Mini != nil {
		minis = append(minis, *p.Mini)
	}
	for _, t := range minis {
		out.Add(adapter.Event{
			Kind: adapter.Ticker, Symbol: t.Symbol, Channel: "miniTicker", Time: sent,
			Last: t.Last, VolumeBase: t.Base, VolumeQuote: t.Quote,
		})
	}
	if c := p.Candle; c != nil {
		out.Add(adapter.Event{
			Kind: adapter.Candle, Symbol: p.Symbol, Channel: "kline", Time: producers.Unix(p.Created, time.Millisecond),
			Start: producers.Unix(c.Start, time.Second), Interval: mexcInterval(c.Interval),
			OpenPrice: c.Open, High: c.High, Low: c.Low, ClosePrice: c.Close, Volume: c.Volume,
		})
	}
	return nil
}

// mexcInterval spells an interval: Min1, Hour4, Day1, Week1 of the feed, 1m, 60m, 1d, 1W of the HTTP
// interface. A month has no spelling.
func mexcInterval(s string) string {
	switch s {
	case "Min60", "60m":
		return "1h"
	case "1W":
		return "1w"
	case "1M":
		return ""
	}
	for _, unit := range []string{"Min", "Hour", "Day", "Week"} {
		if n, ok := strings.CutPrefix(s, unit); ok {
			return n + strings.ToLower(unit[:1])
		}
	}
	if strings.HasPrefix(s, "Month") {
		return ""
	}
	return s
}

// mexcTickers reads rows that are like Binance's.
func mexcTickers(_ url.Values, body []byte, out *adapter.Out) error {
	all, err := listOrOne[binanceRow](body)
	if err != nil {
		return err
	}
	for i := range all {
		if all[i].Symbol == "" {
			return producers.Unreadable("a ticker without symbol")
		}
		e := all[i].ticker()
		e.Time = producers.Unix(all[i].CloseTime, time.Millisecond)
		out.Add(e)
	}
	return nil
}
