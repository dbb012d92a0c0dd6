package exchanges

import (
	"strings"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/adapter"
)

// cryptocomRecorded also reads candles, which the engine does not ask for.
type cryptocomRecorded struct{}

func (cryptocomRecorded) Decode(f adapter.Frame, out *adapter.Out) error {
	var m struct {
		Method string           `json:"method"`
		Code   producers.Num    `json:"code"`
		Result *cryptocomResult `json:"result"`
	}
	if err := parse(f.Bytes, &m); err != nil {
		return err
	}
	if (m.Code == "" || m.Code == "0") && m.Result != nil && m.Result.Channel == "candlestick" {
		return m.Result.candles(out)
	}
	return cryptocomCodec{}.Decode(f, out)
}

func (r *cryptocomResult) candles(out *adapter.Out) error {
	type candle struct {
		Start  producers.Num `json:"t"`
		Open   producers.Num `json:"o"`
		High   producers.Num `json:"h"`
		Low    producers.Num `json:"l"`
		Close  producers.Num `json:"c"`
		Volume producers.Num `json:"v"`
	}
	return parseAll(r.Data, func(c *candle) adapter.Event {
		return adapter.Event{
			Kind: adapter.Candle, Symbol: r.Instrument, Channel: "candlestick", Interval: cryptocomInterval(r.Interval),
			Start: producers.Unix(c.Start, time.Millisecond), OpenPrice: c.Open, High: c.High, Low: c.Low, ClosePrice: c.Close, Volume: c.Volume,
		}
	}, out)
}

// cryptocomInterval spells an interval: M1, H4, 1D as well as 1m, 4h, 1D are in use.
func cryptocomInterval(s string) string {
	if len(s) > 1 && (s[0] == 'M' || s[0] == 'H' || s[0] == 'D') {
		s = s[1:] + s[:1]
	}
	return strings.ToLower(s)
}

func cryptocomRecordedREST(target string, body []byte, out *adapter.Out) error {
	r, name, err := cryptocomAnswer(target, body)
	if err != nil {
		return err
	}
	switch name {
	case "get-ticker":
		r.Channel = "ticker"
	case "get-trades":
		r.Channel = "trade"
	case "get-candlestick":
		_, query := endpoint(target)
		r.Interval = query.Get("timeframe")
		return r.candles(out)
	default:
		return cryptocomREST(target, body, out)
	}
	return r.decode(false, out)
}
