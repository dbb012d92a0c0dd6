package exchanges

import (
	"encoding/json"
	"net/url"
	"strings"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/adapter"
)

// decodeBitgetRecorded also reads candles and the best bid and ask by themselves, which the engine does not ask for, and version 3 of
// the feed, which names channels by topic and symbol:
// https://www.bitget.com/api-doc/uta/websocket/public/New-Trades-Channel
func decodeBitgetRecorded(f adapter.Frame, out *adapter.Out) error {
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
		return decodeBitget(f, out)
	}
	arg := bitgetArg{m.Arg.Type, m.Arg.Channel + m.Arg.Topic, m.Arg.Symbol + m.Arg.Market}
	interval, candles := strings.CutPrefix(arg.Channel, "candle")
	switch {
	case candles:
		all, err := list[[]producers.Num](m.Data)
		if err != nil {
			return err
		}
		e := arg.row(false, "")
		e.Channel, e.Interval = "candle", bitgetInterval(interval)
		return bitgetColumns.add(all, e, out)
	case arg.Channel == "books1":
		return bitgetBest(m.Data, arg.row(false, ""), out)
	case m.Arg.Topic == "":
		return decodeBitget(f, out)
	case m.Arg.Topic == "publicTrade":
		return bitgetTrades3.list(m.Data, arg.row(m.Action == "snapshot", ""), out)
	case m.Arg.Topic == "ticker":
		return bitgetTickers3.list(m.Data, arg.row(false, m.Time), out)
	case m.Arg.Topic == "kline":
		e := arg.row(false, m.Time)
		e.Interval = bitgetInterval(m.Arg.Interval)
		return bitgetCandles3.list(m.Data, e, out)
	case strings.HasPrefix(m.Arg.Topic, "books"), m.Arg.Topic == "auction":
		return nil
	}
	return producers.Unreadable("message of topic %q", m.Arg.Topic)
}

// Rows of version 3.
var (
	bitgetTrades3 = object{
		Kind: adapter.Trade, Channel: "trade", Time: "T", ID: "i", Price: "p", Size: "v", Side: "S",
	}.reader()
	bitgetTickers3 = object{
		Kind: adapter.Ticker, Channel: "ticker",
		Time: "ts", Last: "lastPrice", Bid: "bid1Price", Ask: "ask1Price", Base: "volume24h", Quote: "turnover24h",
	}.reader()
	bitgetCandles3 = object{
		Kind: adapter.Candle, Channel: "candle",
		Start: "start", Open: "open", High: "high", Low: "low", Close: "close", Volume: "volume",
	}.reader()
)

// bitgetBest reads the book of one level, which always comes whole: the best bid and ask. Version 3 has
// shorter names.
func bitgetBest(data []byte, e adapter.Event, out *adapter.Out) error {
	type book struct {
		Bids     [][]producers.Num `json:"bids"`
		Asks     [][]producers.Num `json:"asks"`
		Bids3    [][]producers.Num `json:"b"`
		Asks3    [][]producers.Num `json:"a"`
		Time     producers.Num     `json:"ts"`
		Sequence producers.Num     `json:"seq"`
	}
	return parseAll(data, func(b *book) adapter.Event {
		e.Kind, e.Channel, e.Time, e.Sequence = adapter.Ticker, "books1", producers.Unix(b.Time, time.Millisecond), b.Sequence
		e.Bid, e.Ask = bestPrice(append(b.Bids, b.Bids3...)), bestPrice(append(b.Asks, b.Asks3...))
		return e
	}, out)
}

// bitgetColumns are those of candles; the places after them have the volumes in other assets.
var bitgetColumns = candleColumns{Start: 0, Open: 1, High: 2, Low: 3, Close: 4, Volume: 5, Unit: time.Millisecond}

// bitgetPast reads the candles of the HTTP interface.
func bitgetPast(query url.Values, body []byte, out *adapter.Out) error {
	rows, _, err := bitgetAnswer(body)
	if err != nil {
		return err
	}
	all, err := list[[]producers.Num](rows)
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
