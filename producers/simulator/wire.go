package simulator

import (
	"encoding/hex"
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"time"
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

func appendTime(b []byte, t int64, layout string) []byte {
	return time.Unix(0, t).UTC().AppendFormat(b, layout)
}

func spellTime(t int64, layout string) string { return string(appendTime(nil, t, layout)) }

// number is a JSON number with no zeros at its end.
func number(d Decimal) json.Number { return json.Number(d.Short()) }

// appendUUID spells the n-th random UUID of a seed, version 4.
func appendUUID(b []byte, s seed, n int64) []byte {
	var id [16]byte
	for half := range 2 {
		bits := s.at(2*n + int64(half))
		for i := range 8 {
			id[8*half+i] = byte(bits >> (8 * i))
		}
	}
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	for i, end := range [...]int{4, 6, 8, 10, 16} {
		if i > 0 {
			b = append(b, '-')
		}
		b = hex.AppendEncode(b, id[[...]int{0, 4, 6, 8, 10}[i]:end])
	}
	return b
}

// newestCandles are at most n that start in [from, to), the newest first. Those of six hours and longer begin by UTC, or
// by the clocks of a place that is ahead of it.
func newestCandles(m *Market, from, to, now time.Time, interval, ahead time.Duration, n int) []Candle {
	step, begin := int64(interval), int64(0)
	if step >= 6*hour {
		begin = -int64(ahead)
	}
	from, to = clamp(from, now), clamp(to, now)
	least, end := from.UnixNano(), now.UnixNano()
	candles := []Candle{}
	for start := floorDiv(to.UnixNano()-1-begin, step)*step + begin; start >= least && len(candles) < n; start -= step {
		candles = append(candles, m.candle(start, min(start+step, end)))
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

// repeated is the trade that some venues tell a new subscriber at once: the newest, of the last minutes.
func repeated(m *Market, now time.Time) (t Trade, ok bool) {
	t = m.lastTrade(now.UnixNano())
	return t, t.Time > now.Add(-repeatedReach).UnixNano()
}

const repeatedReach = 2 * time.Minute

// respond answers with JSON.
func respond(w http.ResponseWriter, status int, body any) {
	b, err := json.Marshal(body)
	if err != nil {
		panic(err) // a venue's side made something that is no JSON
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b)
}

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

// nullable is a number that may be unknown.
type nullable float64

// MarshalJSON spells an unknown number null.
func (n nullable) MarshalJSON() ([]byte, error) {
	x := float64(n)
	format := byte('f')
	switch size := math.Abs(x); {
	case math.IsNaN(x):
		return []byte("null"), nil
	case size != 0 && size < 1e-6, size >= 1e21:
		format = 'e'
	}
	return strconv.AppendFloat(make([]byte, 0, 24), x, format, -1, 64), nil
}
