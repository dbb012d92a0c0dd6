package exchanges

import (
	"strings"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/adapter"
)

// upbitSimple is the same under its short names: the fields are those of upbitEvent, in its order.
type upbitSimple struct {
	Type      string        `json:"ty"`
	Code      string        `json:"cd"`
	Market    string        `json:"-"`
	Price     producers.Num `json:"tp"`
	Size      producers.Num `json:"tv"`
	AskBid    string        `json:"ab"`
	ID        producers.Num `json:"sid"`
	Traded    producers.Num `json:"ttms"`
	Time      producers.Num `json:"tms"`
	Base24h   producers.Num `json:"atv24h"`
	Quote24h  producers.Num `json:"atp24h"`
	Stream    string        `json:"st"`
	StartUTC  string        `json:"cdttmu"`
	Open      producers.Num `json:"op"`
	High      producers.Num `json:"hp"`
	Low       producers.Num `json:"lp"`
	CandleVol producers.Num `json:"catv"`
}

// upbitRecorded also reads candles, and messages under short names, which a request may ask for and the engine does not:
// https://global-docs.upbit.com/reference/websocket-candle
type upbitRecorded struct{}

func (upbitRecorded) Decode(f adapter.Frame, out *adapter.Out) error {
	var short []upbitSimple
	if err := parseRows(f.Bytes, &short); err != nil {
		return err
	}
	return decodeUpbit(f.Bytes, func(i int, e upbitEvent) error {
		if e.Type == "" && i < len(short) {
			e = upbitEvent(short[i])
		}
		interval, candle := strings.CutPrefix(e.Type, "candle.")
		if !candle {
			return e.decode(out)
		}
		out.Add(e.candle(e.Code, upbitInterval(interval)))
		return nil
	}, out)
}

// upbitInterval spells hours as others do: Upbit's longest are 60m and 240m.
func upbitInterval(name string) string {
	if d, err := time.ParseDuration(name); err == nil {
		return adapter.Interval(d)
	}
	return name
}

// candle reads a start that is UTC without saying so. Its time is that of the last trade in it.
func (e *upbitEvent) candle(symbol, interval string) adapter.Event {
	return adapter.Event{
		Kind: adapter.Candle, Symbol: symbol, Channel: "candle", Interval: interval,
		Start: upbitStart(e.StartUTC), Time: unixByDigits(e.Time), Snapshot: e.Stream == "SNAPSHOT",
		OpenPrice: e.Open, High: e.High, Low: e.Low, ClosePrice: e.Price, Volume: e.CandleVol,
	}
}

// upbitCandles are the intervals of /v1/candles/… but the minutes, which name theirs.
var upbitCandles = map[string]string{"seconds": "1s", "days": "1d", "weeks": "1w", "months": "1M", "years": "1y"}

func upbitStart(text string) int64 {
	if text == "" {
		return 0
	}
	return producers.RFC3339(strings.TrimSuffix(text, "Z") + "Z")
}

func upbitRecordedREST(target string, body []byte, out *adapter.Out) error {
	path, _ := endpoint(target)
	parts := strings.Split(strings.Trim(path, "/"), "/")
	last := parts[len(parts)-1]
	var event func(*upbitEvent) adapter.Event
	switch {
	case strings.Contains(path, "/crix/"):
		return upbitREST(target, body, out)
	case strings.HasSuffix(path, "/ticker/all"):
		event = func(e *upbitEvent) adapter.Event { return e.ticker(e.Market, "rest") }
	case last == "ticks":
		event = func(e *upbitEvent) adapter.Event { return e.trade(e.Market, e.Time) }
	case len(parts) > 1 && parts[len(parts)-2] == "minutes":
		event = func(e *upbitEvent) adapter.Event { return e.candle(e.Market, upbitInterval(last+"m")) }
	case upbitCandles[last] != "":
		event = func(e *upbitEvent) adapter.Event { return e.candle(e.Market, upbitCandles[last]) }
	default:
		return upbitREST(target, body, out)
	}
	return parseAll(body, event, out)
}
