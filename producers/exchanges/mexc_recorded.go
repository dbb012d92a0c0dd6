package exchanges

import (
	"strings"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/adapter"
)

// mexcRecorded also reads the JSON form of the feed's messages, which recordings and the documentation have.
type mexcRecorded struct{ mexcCodec }

func (c mexcRecorded) Decode(f adapter.Frame, out *adapter.Out) error {
	if text := strings.TrimLeft(string(f.Bytes[:min(8, len(f.Bytes))]), " \t\r\n"); !strings.HasPrefix(text, "{") {
		return c.mexcCodec.Decode(f, out)
	}
	var m struct {
		mexcPush
		Old string `json:"c"` // JSON as it was before protobuf
	}
	if err := parse(f.Bytes, &m); err != nil {
		return err
	}
	switch {
	case m.Old != "", strings.HasPrefix(m.Channel, "push."):
		return adapter.Retired("message of channel %q", m.Old+m.Channel)
	case m.Channel != "":
		return m.add(out)
	}
	return c.mexcCodec.Decode(f, out)
}

// mexcTrade is like Binance's, but its id is null.
type mexcTrade struct {
	ID         producers.Num `json:"id"`
	Price      producers.Num `json:"price"`
	Size       producers.Num `json:"qty"`
	BuyerMakes bool          `json:"isBuyerMaker"`
	Millis     producers.Num `json:"time"`
}

func (t *mexcTrade) event() adapter.Event {
	side := adapter.Buy
	if t.BuyerMakes {
		side = adapter.Sell
	}
	return adapter.Event{
		Kind: adapter.Trade, Channel: "rest", Time: producers.Unix(t.Millis, time.Millisecond),
		ID: t.ID, Price: t.Price, Size: t.Size, Side: side,
	}
}
