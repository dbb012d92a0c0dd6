package exchanges

import (
	"encoding/json"
	"net/url"
	"strings"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/adapter"
)

// decodeMEXCRecorded also reads candles, which the engine does not ask for, and the feed's messages in their JSON form, which recordings
// and the documentation have.
func decodeMEXCRecorded(f adapter.Frame, out *adapter.Out) error {
	if !mexcIsText(f.Bytes) {
		return decodeMEXCCandle(f, out)
	}
	var m mexcRecordedPush
	if err := parse(f.Bytes, &m); err != nil {
		return err
	}
	switch {
	case m.Old != "", strings.HasPrefix(m.Channel, "push."):
		return adapter.Retired("message of channel %q", m.Old+m.Channel)
	case m.Channel == "":
		return decodeMEXCAnswer(f.Bytes, out)
	case !strings.Contains(m.Channel, ".v3.api"):
		return producers.Unreadable("message of channel %q", m.Channel)
	}
	return m.add(out)
}

// mexcRecordedPush is a push in the JSON form of its protobuf message. The documentation's examples spell some names in lower case,
// which makes no difference here.
type mexcRecordedPush struct {
	Channel        string            `json:"channel"`
	Symbol         string            `json:"symbol"`
	Created        producers.Num     `json:"createTime"`
	Sent           producers.Num     `json:"sendTime"`
	Deals          mexcRecordedDeals `json:"publicDeals"`
	AggregateDeals mexcRecordedDeals `json:"publicAggreDeals"`
	Book           json.RawMessage   `json:"publicBookTicker"`
	AggregateBook  json.RawMessage   `json:"publicAggreBookTicker"`
	Books          struct {
		Items json.RawMessage `json:"items"`
	} `json:"publicBookTickerBatch"`
	Candle json.RawMessage `json:"publicSpotKline"`
	Mini   json.RawMessage `json:"publicMiniTicker"`
	Minis  struct {
		Items json.RawMessage `json:"items"`
	} `json:"publicMiniTickers"`
	Old string `json:"c"` // JSON as it was before protobuf
}

type mexcRecordedDeals struct {
	Deals json.RawMessage `json:"deals"`
	List  json.RawMessage `json:"dealsList"` // as the documentation has it
}

var (
	mexcJSONDeals = object{
		Kind: adapter.Trade, Channel: "deals", Taker: sides("1", "2"),
		Price: "price", Size: "quantity", Side: "tradeType", Time: "time", ID: "tradeId",
	}.reader()
	mexcJSONBooks = object{Kind: adapter.Ticker, Channel: "bookTicker", Bid: "bidPrice", Ask: "askPrice"}.reader()
	mexcJSONMinis = object{
		Kind: adapter.Ticker, Channel: "miniTicker", Symbol: "symbol", Last: "price", Quote: "volume", Base: "quantity",
	}.reader()
	mexcJSONCandles = object{
		Kind: adapter.Candle, Channel: "kline", Clock: clock(time.Second), Start: "windowStart",
		Open: "openingPrice", Close: "closingPrice", High: "highestPrice", Low: "lowestPrice", Volume: "volume",
	}.reader()
)

func (m *mexcRecordedPush) add(out *adapter.Out) error {
	e := adapter.Event{Symbol: m.Symbol, Time: producers.Unix(m.Sent, time.Millisecond)}
	for _, body := range []struct {
		rows json.RawMessage
		read func([]byte, adapter.Event, *adapter.Out) error
	}{
		{m.AggregateDeals.Deals, mexcJSONDeals.list},
		{m.AggregateDeals.List, mexcJSONDeals.list},
		{m.Deals.Deals, mexcJSONDeals.list},
		{m.Deals.List, mexcJSONDeals.list},
		{m.Books.Items, mexcJSONBooks.list},
		{m.AggregateBook, mexcJSONBooks.one},
		{m.Book, mexcJSONBooks.one},
		{m.Minis.Items, mexcJSONMinis.list},
		{m.Mini, mexcJSONMinis.one},
	} {
		if len(body.rows) > 0 && string(body.rows) != "null" {
			if err := body.read(body.rows, e, out); err != nil {
				return err
			}
		}
	}
	if len(m.Candle) == 0 || string(m.Candle) == "null" {
		return nil
	}
	var candle struct {
		Interval string `json:"interval"`
	}
	if err := parse(m.Candle, &candle); err != nil {
		return err
	}
	e.Time, e.Interval = producers.Unix(m.Created, time.Millisecond), mexcInterval(candle.Interval)
	return mexcJSONCandles.one(m.Candle, e, out)
}

// Fields of a push that is a candle, and of the candle.
const (
	mexcCreateTime     = 5
	mexcSpotKline      = 308
	mexcCandleInterval = 1
)

var mexcCandles = object{
	Kind: adapter.Candle, Channel: "kline", Clock: clock(time.Second), Start: "2", Open: "3", Close: "4", High: "5", Low: "6", Volume: "7",
}.reader()

func decodeMEXCCandle(f adapter.Frame, out *adapter.Out) error {
	push, err := mexcOpen(f.Bytes)
	if !f.Binary || err != nil || push.body.id != mexcSpotKline {
		return decodeMEXC(f, out)
	}
	push.e.Time = 0
	err = protoFields(f.Bytes, func(f protoField) error {
		if f.id == mexcCreateTime {
			push.e.Time = producers.Unix(f.number, time.Millisecond)
		}
		return nil
	})
	if err != nil {
		return err
	}
	err = protoFields(push.body.bytes, func(f protoField) error {
		if f.id == mexcCandleInterval {
			push.e.Interval = mexcInterval(f.text())
		}
		return nil
	})
	if err != nil {
		return err
	}
	return mexcCandles.proto(push.body.bytes, push.e, out)
}

var mexcRecordedEndpoints = endpoints{
	// Asked of one market, it is a row; so is an error, which names no market.
	"ticker/24hr": func(query url.Values, body []byte, out *adapter.Out) error {
		var row struct {
			Symbol string `json:"symbol"`
		}
		if isObject(body) {
			if err := parse(body, &row); err != nil {
				return err
			}
			if row.Symbol == "" {
				return producers.Unreadable("a ticker without symbol")
			}
		}
		return mexcTickers.orOneIn(bare)(query, body, out)
	},
	// Trades are like Binance's, but their id is null.
	"trades": object{
		Kind: adapter.Trade, Channel: "rest", Taker: sides("false", "true"),
		Time: "time", ID: "id", Price: "price", Size: "qty", Side: "isBuyerMaker",
	}.reader().in(bare),
	// Start, open, high, low, close, volume in the base, end, volume in the quote.
	"klines": candleColumns{Start: 0, Open: 1, High: 2, Low: 3, Close: 4, Volume: 5, Unit: time.Millisecond}.in(
		bare, func(q url.Values) string { return mexcInterval(q.Get("interval")) }),
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
