package exchanges

import (
	"strings"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/adapter"
)

// newBitfinexRecorded also reads candles, which the engine does not ask for:
// https://docs.bitfinex.com/reference/ws-public-candles
func newBitfinexRecorded() adapter.Codec {
	c := newBitfinexCodec()
	c.other = func(channel bitfinexChannel, at int64, content []byte, out *adapter.Out) error {
		if channel.name != "candles" {
			return nil
		}
		_, symbol, _ := bitfinexKey(channel.key)
		return bitfinexCandles(channel.key, adapter.Event{Symbol: symbol, Channel: "candles", Time: at}, content, out)
	}
	return c
}

// bitfinexKey reads trade:1m:tBTCUSD; a key of funding, trade:1m:fUSD:p30, has rates in place of prices.
func bitfinexKey(key string) (interval, symbol string, prices bool) {
	parts := strings.SplitN(key, ":", 3)
	if len(parts) < 3 {
		return "", "", false
	}
	return bitfinexInterval(parts[1]), parts[2], !strings.HasPrefix(parts[2], "f")
}

// bitfinexCandles reads one candle or a list of them: start, open, close, high, low, volume.
func bitfinexCandles(key string, e adapter.Event, b []byte, out *adapter.Out) error {
	interval, _, prices := bitfinexKey(key)
	if !prices {
		return nil
	}
	rows, err := bitfinexRows(b, 6)
	if err != nil {
		return err
	}
	e.Interval = interval
	return candleColumns{Start: 0, Open: 1, Close: 2, High: 3, Low: 4, Volume: 5, Unit: time.Millisecond}.add(rows, e, out)
}

// bitfinexInterval spells 1D, 7D and 14D as others do; 1M is a month, unlike 1m.
func bitfinexInterval(name string) string {
	switch name {
	case "1D":
		return "1d"
	case "7D", "1W":
		return "1w"
	case "14D":
		return "2w"
	}
	return name
}

func bitfinexRecordedREST(target string, body []byte, out *adapter.Out) error {
	_, parts := bitfinexPath(target)
	if len(parts) < 2 {
		return bitfinexREST(target, body, out)
	}
	funding := strings.HasPrefix(parts[1], "f") // ticker/fUSD
	switch {
	case parts[0] == "ticker" && !funding:
		return bitfinexTicker("", 0, body, out)
	case parts[0] == "trades" && !funding:
		rows, err := bitfinexRows(body, 4)
		addAll(rows, func(t *[]producers.Num) adapter.Event { return bitfinexTrade("", *t, false) }, out)
		return err
	case parts[0] == "candles": // candles/trade:1h:tBTCUSD/hist
		return bitfinexCandles(parts[1], adapter.Event{Channel: "candles"}, body, out)
	case parts[0] == "ticker", parts[0] == "trades":
		return nil
	}
	return bitfinexREST(target, body, out)
}
