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

// upbitSimple is the same under its short names: the fields are those of upbitEvent, in its order.
type upbitSimple struct {
	Type     string        `json:"ty"`
	Code     string        `json:"cd"`
	Price    producers.Num `json:"tp"`
	Size     producers.Num `json:"tv"`
	AskBid   producers.Num `json:"ab"`
	ID       producers.Num `json:"sid"`
	Traded   producers.Num `json:"ttms"`
	Time     producers.Num `json:"tms"`
	Base24h  producers.Num `json:"atv24h"`
	Quote24h producers.Num `json:"atp24h"`
	Stream   string        `json:"st"`
}

// decodeUpbitRecorded also reads candles, and messages under short names, which a request may ask for and the engine does not:
// https://global-docs.upbit.com/reference/websocket-candle
func decodeUpbitRecorded(f adapter.Frame, out *adapter.Out) error {
	all, err := listOrOne[json.RawMessage](f.Bytes)
	if err != nil {
		return err
	}
	for _, b := range all {
		var row struct {
			Type   string `json:"type"`
			Stream string `json:"stream_type"`
			upbitSimple
		}
		if err := parse(b, &row); err != nil {
			return err
		}
		interval, candle := strings.CutPrefix(cmp.Or(row.Type, row.upbitSimple.Type), "candle.")
		short := upbitEvent(row.upbitSimple)
		switch {
		case candle:
			e := adapter.Event{Interval: upbitInterval(interval), Snapshot: cmp.Or(row.Stream, row.upbitSimple.Stream) == "SNAPSHOT"}
			err = upbitCandles.one(b, e, out)
		case row.Type == "" && short.Type != "":
			err = short.decode(out)
		default:
			err = decodeUpbit(adapter.Frame{Bytes: b}, out)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// upbitInterval spells hours as others do: Upbit's longest are 60m and 240m.
func upbitInterval(name string) string {
	if d, err := time.ParseDuration(name); err == nil {
		return adapter.Interval(d)
	}
	return name
}

// upbitCandles are sent under long and short names. Their time is that of the last trade in them.
var upbitCandles = object{
	Kind: adapter.Candle, Channel: "candle", Clock: upbitClock,
	Symbol: "code|cd|market", Time: "timestamp|tms", Start: "candle_date_time_utc|cdttmu",
	Open: "opening_price|op", High: "high_price|hp", Low: "low_price|lp", Close: "trade_price|tp", Volume: "candle_acc_trade_volume|catv",
}.reader()

// upbitClock reads a number of units, or a text that is UTC without saying so.
func upbitClock(n producers.Num) int64 {
	if !strings.Contains(string(n), "T") {
		return unixByDigits(n)
	}
	return producers.RFC3339(strings.TrimSuffix(string(n), "Z") + "Z")
}

var upbitRecordedEndpoints = endpoints{
	"ticker/all": upbitTickers.in(bare),
	"trades/ticks": object{
		Kind: adapter.Trade, Channel: "trade", Clock: unixByDigits, Taker: upbitSide,
		Symbol: "market", Time: "timestamp", ID: "sequential_id", Price: "trade_price", Size: "trade_volume", Side: "ask_bid",
	}.reader().in(bare),
	"candles/seconds": upbitPast("1s"),
	"candles/days":    upbitPast("1d"),
	"candles/weeks":   upbitPast("1w"),
	"candles/months":  upbitPast("1M"),
	"candles/years":   upbitPast("1y"),
}

var upbitRecordedAnswer = upbitREST(upbitEndpoints.with(upbitRecordedEndpoints))

func upbitPast(interval string) reader {
	return upbitCandles.candlesIn(bare, func(url.Values) string { return interval })
}

// upbitRecordedREST also reads candles of minutes, whose path says how many: candles/minutes/60.
func upbitRecordedREST(target string, body []byte, out *adapter.Out) error {
	path, query := endpoint(target)
	if _, minutes, found := strings.Cut(path, "/v1/candles/minutes/"); found {
		return upbitPast(upbitInterval(minutes+"m"))(query, body, out)
	}
	return upbitRecordedAnswer(target, body, out)
}
