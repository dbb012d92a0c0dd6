package ws

import (
	"encoding/json"
	"math"
	"strconv"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
)

// Types of the frames that carry prices or what became of them.
const (
	typeInitial = "initial_prices"
	typeUpdate  = "price_update"
	typeStale   = "stale"
	typeFresh   = "fresh"
)

// change is a coin's price as one tick found it. It never changes, so all subscribers share it.
type change struct {
	entry *views.Entry
	stale bool
	// dayAgo is its price 24 hours before, 0 where that is unknown.
	dayAgo float64
	// previous is its price in the frame before.
	previous float64
}

// state means that a coin lost its inputs, or regained them.
type state struct {
	entry  *views.Entry
	stale  bool
	reason string
}

// stamp is what every frame ends with.
type stamp struct {
	epoch string
	seq   uint64
	// at is the log's now, Unix nanoseconds.
	at int64
	// conflated is the number of frames merged into this one, if more than one.
	conflated int
	// cursor is that of the prices sent with it, for those that asked for one, and position what it encodes.
	cursor   string
	position position
}

func (s stamp) close(b []byte) []byte {
	b = append(b, `,"timestamp":"`...)
	b = append(b, query.FormatTime(s.at)...)
	b = append(b, `","seq":`...)
	b = strconv.AppendUint(b, s.seq, 10)
	b = append(b, `,"epoch":"`...)
	b = append(b, s.epoch...)
	b = append(b, '"')
	if s.conflated > 1 {
		b = append(b, `,"conflated":`...)
		b = strconv.AppendInt(b, int64(s.conflated), 10)
	}
	return append(b, '}')
}

func open(b []byte, kind string) []byte {
	b = append(b, `{"type":"`...)
	b = append(b, kind...)
	return append(b, '"')
}

// appendChange writes one element of a frame of prices. From is the subscriber's own previous price.
func appendChange(b []byte, c *change, from float64) []byte {
	p := c.entry.Price
	b = appendElement(appendCoin(b, c.entry.Coin), p.Price, p.Volume24H, p.Time/int64(time.Millisecond), p.Source, from)
	if c.dayAgo > 0 {
		b = append(b, `,"changePercent24h":`...)
		b = appendNumber(b, percent(c.dayAgo, p.Price))
	}
	return append(b, '}')
}

// appendCoin opens an element with what names its coin.
func appendCoin(b []byte, coin schemas.Coin) []byte {
	b = append(b, `{"symbol":`...)
	b = appendText(b, coin.Symbol)
	b = append(b, `,"coinId":`...)
	return appendText(b, coin.ID)
}

// appendElement writes what an element of prices holds of its coin, at a time in Unix milliseconds.
func appendElement(b []byte, price, volume float64, at int64, source string, from float64) []byte {
	b = append(b, `,"price":`...)
	b = appendNumber(b, price)
	b = append(b, `,"volume":`...)
	b = appendNumber(b, volume)
	b = append(b, `,"timestamp":`...)
	b = strconv.AppendInt(b, at, 10)
	b = append(b, `,"source":`...)
	b = appendText(b, source)
	b = append(b, `,"changePercent":`...)
	b = appendNumber(b, percent(from, price))
	b = append(b, `,"previousPrice":`...)
	return appendNumber(b, from)
}

// updateFrame encodes changes for those that got every frame before.
func updateFrame(changes []*change, s stamp) []byte {
	b := append(open(make([]byte, 0, 128+200*len(changes)), typeUpdate), `,"data":[`...)
	for i, c := range changes {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendChange(b, c, c.previous)
	}
	return s.close(append(b, ']'))
}

// snapshotFrame encodes current prices, each as its own previous one. Shadowed are the ids of coins
// left out because their symbol means another.
func snapshotFrame(changes []*change, shadowed []string, s stamp) []byte {
	b := append(open(make([]byte, 0, 128+200*len(changes)), typeInitial), `,"data":[`...)
	for i, c := range changes {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendChange(b, c, c.entry.Price.Price)
		if c.stale {
			b = append(b[:len(b)-1], `,"isStale":true}`...)
		}
	}
	b = append(b, ']')
	if len(shadowed) > 0 {
		b = append(b, `,"meta":{"shadowed":[`...)
		for i, id := range shadowed {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendText(b, id)
		}
		b = append(b, "]}"...)
	}
	return s.close(b)
}

// stateFrame encodes the coins that lost their inputs, or those that regained them.
func stateFrame(kind string, states []*state, s stamp) []byte {
	b := append(open(make([]byte, 0, 128+96*len(states)), kind), `,"data":[`...)
	for i, st := range states {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendCoin(b, st.entry.Coin)
		if st.reason != "" {
			b = append(b, `,"reason":`...)
			b = appendText(b, st.reason)
		}
		b = append(b, `,"lastPriceAt":`...)
		b = strconv.AppendInt(b, st.entry.Price.Time/int64(time.Millisecond), 10)
		b = append(b, '}')
	}
	return s.close(append(b, ']'))
}

func percent(from, to float64) float64 {
	if from == 0 {
		return 0
	}
	return (to - from) / from * 100
}

// appendNumber writes a number as encoding/json does, and never NaN or an infinity, which JSON lacks.
func appendNumber(b []byte, v float64) []byte {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return append(b, '0')
	}
	format := byte('f')
	if abs := math.Abs(v); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	return strconv.AppendFloat(b, v, format, -1, 64)
}

// appendText writes a JSON string; what needs no escape, as symbols and slugs, is copied.
func appendText(b []byte, text string) []byte {
	for i := range len(text) {
		if c := text[i]; c < 0x20 || c >= 0x7f || c == '"' || c == '\\' {
			encoded, err := json.Marshal(text)
			if err != nil {
				panic(err) // a string always encodes
			}
			return append(b, encoded...)
		}
	}
	b = append(b, '"')
	b = append(b, text...)
	return append(b, '"')
}
