package exchanges

import (
	"encoding/json"
	"net/url"
	"strings"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/adapter"
)

// decodeCryptocomRecorded also reads candles, which the engine does not ask for.
func decodeCryptocomRecorded(f adapter.Frame, out *adapter.Out) error {
	var m struct {
		Code   producers.Num `json:"code"`
		Result *struct {
			Channel    string          `json:"channel"`
			Instrument string          `json:"instrument_name"`
			Interval   string          `json:"interval"`
			Data       json.RawMessage `json:"data"`
		} `json:"result"`
	}
	if err := parse(f.Bytes, &m); err != nil {
		return err
	}
	if r := m.Result; (m.Code == "" || m.Code == "0") && r != nil && r.Channel == "candlestick" {
		return cryptocomCandles.list(r.Data, adapter.Event{Symbol: r.Instrument, Interval: cryptocomInterval(r.Interval)}, out)
	}
	return decodeCryptocom(f, out)
}

var cryptocomCandles = object{
	Kind: adapter.Candle, Channel: "candlestick", Start: "t", Open: "o", High: "h", Low: "l", Close: "c", Volume: "v",
}.reader()

// cryptocomRecordedEndpoints are about one market each.
var cryptocomRecordedEndpoints = endpoints{
	"get-ticker":      cryptocomTickers.in(cryptocomAnswer),
	"get-trades":      cryptocomOfMarket(cryptocomTrades),
	"get-candlestick": cryptocomOfMarket(cryptocomCandles),
}

// cryptocomOfMarket reads an answer about the market asked for.
func cryptocomOfMarket(o *objects) reader {
	return func(query url.Values, body []byte, out *adapter.Out) error {
		rows, e, err := cryptocomAnswer(body)
		if err != nil {
			return err
		}
		e.Symbol, e.Interval = query.Get("instrument_name"), cryptocomInterval(query.Get("timeframe"))
		return o.list(rows, e, out)
	}
}

// cryptocomInterval spells an interval: M1, H4, 1D as well as 1m, 4h, 1D are in use.
func cryptocomInterval(s string) string {
	if len(s) > 1 && (s[0] == 'M' || s[0] == 'H' || s[0] == 'D') {
		s = s[1:] + s[:1]
	}
	return strings.ToLower(s)
}
