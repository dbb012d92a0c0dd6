package exchanges

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/adapter"
)

// okxRecorded also reads candles, the best bid and ask by themselves and the trades of all levels, which the engine does not ask for.
type okxRecorded struct{}

func (okxRecorded) Decode(f adapter.Frame, out *adapter.Out) error {
	var m struct {
		Event string          `json:"event"`
		Table string          `json:"table"`
		Arg   okxArg          `json:"arg"`
		Data  json.RawMessage `json:"data"`
	}
	if json.Unmarshal(f.Bytes, &m) != nil || m.Event != "" || m.Table != "" {
		return okxCodec{}.Decode(f, out)
	}
	bar, candles := strings.CutPrefix(m.Arg.Channel, "candle")
	switch {
	case candles:
		all, err := list[[]producers.Num](m.Data)
		if err != nil {
			return err
		}
		return okxCandles(m.Arg.Symbol, bar, all, out)
	case m.Arg.Channel == "trades-all":
		return parseAll(m.Data, (*okxTrade).event, out)
	case m.Arg.Channel == "bbo-tbt":
		return okxBest(m.Arg.Symbol, m.Data, out)
	}
	return okxCodec{}.Decode(f, out)
}

// okxBest reads the best bid and ask of a book; a side without orders is left out.
func okxBest(symbol string, data []byte, out *adapter.Out) error {
	type book struct {
		Bids     [][]producers.Num `json:"bids"`
		Asks     [][]producers.Num `json:"asks"`
		Time     producers.Num     `json:"ts"`
		Sequence producers.Num     `json:"seqId"`
	}
	return parseAll(data, func(b *book) adapter.Event {
		return adapter.Event{
			Kind: adapter.Ticker, Symbol: symbol, Channel: "bbo-tbt", Time: producers.Unix(b.Time, time.Millisecond),
			Bid: bestPrice(b.Bids), Ask: bestPrice(b.Asks), Sequence: b.Sequence,
		}
	}, out)
}
