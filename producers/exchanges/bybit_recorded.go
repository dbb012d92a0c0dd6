package exchanges

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/adapter"
)

// bybitRecorded also reads candles and books of one level, which the engine does not ask for. It knows the best bid and ask of each
// market whose book was sent: a message may hold only the side that changed.
type bybitRecorded struct {
	best map[string]*bybitBest
}

func (c *bybitRecorded) Decode(f adapter.Frame, out *adapter.Out) error {
	var m struct {
		Topic  string          `json:"topic"`
		Type   string          `json:"type"`
		Time   producers.Num   `json:"ts"`
		Params json.RawMessage `json:"params"`
		Data   json.RawMessage `json:"data"`
	}
	if err := parse(f.Bytes, &m); err != nil {
		return err
	}
	switch channel, symbol, _ := strings.Cut(m.Topic, "."); {
	case m.Params != nil: // retired
	case channel == "kline":
		interval, symbol, _ := strings.Cut(symbol, ".")
		e := adapter.Event{Symbol: symbol, Interval: bybitInterval(interval), Time: producers.Unix(m.Time, time.Millisecond)}
		return bybitCandles.list(m.Data, e, out)
	case channel == "orderbook" && strings.HasPrefix(symbol, "1."):
		return c.book(m.Type == "snapshot", m.Time, m.Data, out)
	}
	return decodeBybit(f, out)
}

type bybitBest struct{ bid, ask producers.Num }

// bybitLevel is price and size; a size of zero takes the level away.
type bybitLevel [2]producers.Num

func (n bybitLevel) gone() bool { return strings.Trim(string(n[1]), "0.") == "" }

// bybitSide is the best price of a side after its changes; "" if the side is empty.
func bybitSide(price producers.Num, changes []bybitLevel) producers.Num {
	for _, level := range changes {
		switch {
		case !level.gone():
			price = level[0]
		case level[0] == price:
			price = ""
		}
	}
	return price
}

// book reads the book of one level: the best bid and ask. Deeper books are left out.
func (c *bybitRecorded) book(snapshot bool, at producers.Num, data []byte, out *adapter.Out) error {
	var b struct {
		Symbol   string        `json:"s"`
		Bids     []bybitLevel  `json:"b"`
		Asks     []bybitLevel  `json:"a"`
		Sequence producers.Num `json:"seq"`
	}
	if err := parse(data, &b); err != nil {
		return err
	}
	best := c.best[b.Symbol]
	switch {
	case snapshot && (best != nil || len(c.best) < bybitMemory):
		best = &bybitBest{}
		c.best[b.Symbol] = best
	case best == nil: // a change of what was never sent
		return nil
	}
	best.bid, best.ask = bybitSide(best.bid, b.Bids), bybitSide(best.ask, b.Asks)
	out.Add(adapter.Event{
		Kind: adapter.Ticker, Symbol: b.Symbol, Channel: "orderbook.1", Time: producers.Unix(at, time.Millisecond),
		Bid: best.bid, Ask: best.ask, Sequence: b.Sequence,
	})
	return nil
}

// bybitMemory bounds the markets whose best prices a connection remembers; the venue has some 700.
const bybitMemory = 4096

var bybitCandles = object{
	Kind: adapter.Candle, Channel: "kline",
	Start: "start", Open: "open", High: "high", Low: "low", Close: "close", Volume: "volume", State: "confirm",
}.reader()

// bybitRecent are trades of the HTTP interface.
var bybitRecent = object{
	Kind: adapter.Trade, Channel: "publicTrade",
	Symbol: "symbol", Time: "time", ID: "execId", Price: "price", Size: "size", Side: "side",
}.reader()
