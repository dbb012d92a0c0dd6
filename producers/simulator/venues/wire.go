package venues

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/marketlog/marketlog/producers/simulator/market"
)

// What more than one venue spells alike.

func side(buy bool) string {
	if buy {
		return "buy"
	}
	return "sell"
}

func bigSide(buy bool) string {
	if buy {
		return "BUY"
	}
	return "SELL"
}

// appendLower spells a symbol, which has no letters beyond ASCII, in small ones.
func appendLower(b []byte, symbol string) []byte {
	for i := range len(symbol) {
		c := symbol[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		b = append(b, c)
	}
	return b
}

// number is a JSON number with no zeros at its end.
func number(d market.Decimal) json.Number { return json.Number(d.Short()) }

// newestCandles are at most n that start in [from, to), the newest first. Those of six hours and longer begin by UTC, or
// by the clocks of a place that is ahead of it.
func newestCandles(m *market.Market, from, to, now time.Time, interval, ahead time.Duration, n int) []market.Candle {
	step, begin := int64(interval), int64(0)
	if step >= 6*market.Hour {
		begin = -int64(ahead)
	}
	from, to = clamp(from, now), clamp(to, now)
	least, end := from.UnixNano(), now.UnixNano()
	candles := []market.Candle{}
	for start := market.FloorDiv(to.UnixNano()-1-begin, step)*step + begin; start >= least && len(candles) < n; start -= step {
		candles = append(candles, m.Candle(start, min(start+step, end)))
	}
	return candles
}

// clamp brings a time that a client gave, which may be any, between 1970 and the first after now.
func clamp(t, now time.Time) time.Time {
	if t.After(now) {
		return now.Add(time.Nanosecond)
	}
	if t.Before(time.Unix(0, 0)) {
		return time.Unix(0, 0)
	}
	return t
}

// hongKong is how far the clocks of several venues are ahead of UTC.
const hongKong = 8 * time.Hour

// repeated is the trade that some venues send a new subscriber at once: the newest, of the last minutes.
func repeated(m *market.Market, now time.Time) (t market.Trade, ok bool) {
	t = m.LastTrade(now.UnixNano())
	return t, t.Time > now.Add(-repeatedReach).UnixNano()
}

const repeatedReach = 2 * time.Minute

// instant reads RFC 3339, with or without a zone, or Unix seconds; an empty text is absent.
func instant(text string, absent time.Time) (t time.Time, ok bool) {
	if text == "" {
		return absent, true
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return time.Unix(n, 0), true
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, true
		}
	}
	return t, false
}

// millis reads Unix milliseconds; an empty text is absent.
func millis(text string, absent time.Time) (t time.Time, ok bool) {
	if text == "" {
		return absent, true
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return time.UnixMilli(n), err == nil
}
