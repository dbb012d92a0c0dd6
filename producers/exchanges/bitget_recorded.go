package exchanges

import (
	"cmp"
	"encoding/json"
	"net/url"
	"strings"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/adapter"
)

// bitgetRecorded also reads candles and the best bid and ask by themselves, which the engine does not ask for, and version 3 of the
// feed, which names channels by topic and symbol:
// https://www.bitget.com/api-doc/uta/websocket/public/New-Trades-Channel
type bitgetRecorded struct{}

func (bitgetRecorded) Decode(f adapter.Frame, out *adapter.Out) error {
	var m struct {
		Event  string `json:"event"`
		Action string `json:"action"`
		Arg    struct {
			bitgetArg
			Topic    string `json:"topic"`
			Market   string `json:"symbol"`
			Interval string `json:"interval"`
		} `json:"arg"`
		Data json.RawMessage `json:"data"`
		Time producers.Num   `json:"ts"`
	}
	if json.Unmarshal(f.Bytes, &m) != nil || m.Event != "" || m.Arg.Type == "sp" || m.Arg.Type == "mc" {
		return bitgetCodec{}.Decode(f, out)
	}
	arg := bitgetArg{m.Arg.Type, m.Arg.Channel + m.Arg.Topic, m.Arg.Symbol + m.Arg.Market}
	like := arg.like(m.Action)
	interval, candles := strings.CutPrefix(arg.Channel, "candle")
	switch {
	case candles:
		all, err := list[[]producers.Num](m.Data)
		if err != nil {
			return err
		}
		return bitgetColumns.add(all, like(adapter.Event{Channel: "candle", Interval: bitgetInterval(interval)}), out)
	case arg.Channel == "books1":
		return bitgetBest(m.Data, like, out)
	case m.Arg.Topic == "":
		return bitgetCodec{}.Decode(f, out)
	case m.Arg.Topic == "publicTrade":
		return parseAll(m.Data, func(t *bitgetTrade3) adapter.Event { return like(t.event()) }, out)
	case m.Arg.Topic == "ticker":
		return parseAll(m.Data, func(t *bitgetTicker3) adapter.Event { return like(t.event(m.Time)) }, out)
	case m.Arg.Topic == "kline":
		e := like(adapter.Event{Channel: "candle", Interval: bitgetInterval(m.Arg.Interval), Time: producers.Unix(m.Time, time.Millisecond)})
		return parseAll(m.Data, func(c *candleObject) adapter.Event { return c.event(e, time.Millisecond) }, out)
	case strings.HasPrefix(m.Arg.Topic, "books"), m.Arg.Topic == "auction":
		return nil
	}
	return producers.Unreadable("message of topic %q", m.Arg.Topic)
}

// bitgetTrade3 is one of version 3.
type bitgetTrade3 struct {
	ID    producers.Num `json:"i"`
	Time  producers.Num `json:"T"`
	Price producers.Num `json:"p"`
	Size  producers.Num `json:"v"`
	Side  string        `json:"S"`
}

func (t *bitgetTrade3) event() adapter.Event {
	return (&bitgetTrade{ID: t.ID, Time: t.Time, Price: t.Price, Size: t.Size, Side: t.Side}).event()
}

// bitgetTicker3 is a ticker of version 3.
type bitgetTicker3 struct {
	Last  producers.Num `json:"lastPrice"`
	Bid   producers.Num `json:"bid1Price"`
	Ask   producers.Num `json:"ask1Price"`
	Base  producers.Num `json:"volume24h"`
	Quote producers.Num `json:"turnover24h"`
	Time  producers.Num `json:"ts"`
}

func (t *bitgetTicker3) event(sent producers.Num) adapter.Event {
	return (&bitgetTicker{Last: t.Last, Bid: t.Bid, Ask: t.Ask, Base: t.Base, Quote: t.Quote}).event("", "ticker", cmp.Or(t.Time, sent))
}

// bitgetBest reads the book of one level, which always comes whole: the best bid and ask. Version 3 has
// shorter names.
func bitgetBest(data []byte, like func(adapter.Event) adapter.Event, out *adapter.Out) error {
	type book struct {
		Bids     [][]producers.Num `json:"bids"`
		Asks     [][]producers.Num `json:"asks"`
		Bids3    [][]producers.Num `json:"b"`
		Asks3    [][]producers.Num `json:"a"`
		Time     producers.Num     `json:"ts"`
		Sequence producers.Num     `json:"seq"`
	}
	return parseAll(data, func(b *book) adapter.Event {
		return like(adapter.Event{
			Kind: adapter.Ticker, Channel: "books1", Time: producers.Unix(b.Time, time.Millisecond),
			Bid: bestPrice(append(b.Bids, b.Bids3...)), Ask: bestPrice(append(b.Asks, b.Asks3...)), Sequence: b.Sequence,
		})
	}, out)
}

// bitgetColumns are those of candles; the places behind have the volumes in other assets.
var bitgetColumns = candleColumns{Start: 0, Open: 1, High: 2, Low: 3, Close: 4, Volume: 5, Unit: time.Millisecond}

// bitgetPast reads the candles of the HTTP interface.
func bitgetPast(query url.Values, body []byte, out *adapter.Out) error {
	all, err := parseBitget[[]producers.Num](body)
	if err != nil {
		return err
	}
	return bitgetColumns.add(all, adapter.Event{Channel: "candle", Interval: bitgetInterval(query.Get("granularity"))}, out)
}

// bitgetInterval spells an interval: 1m, 1H, 1Dutc of the feed, 1min, 1h, 1day of the HTTP interface.
func bitgetInterval(s string) string {
	s = strings.ToLower(strings.TrimSuffix(s, "utc"))
	for _, long := range []string{"in", "ay", "eek"} {
		s = strings.TrimSuffix(s, long)
	}
	return s
}
