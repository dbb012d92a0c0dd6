package exchanges

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/adapter"
)

// decodeOKXRecorded also reads candles, the best bid and ask by themselves and the trades of all levels, which the engine does not ask
// for, and contracts.
func decodeOKXRecorded(f adapter.Frame, out *adapter.Out) error {
	var m struct {
		Event string `json:"event"`
		Table string `json:"table"`
		Arg   struct {
			Channel string `json:"channel"`
			Symbol  string `json:"instId"`
		} `json:"arg"`
		Data json.RawMessage `json:"data"`
	}
	if json.Unmarshal(f.Bytes, &m) != nil || m.Event != "" || m.Table != "" {
		return decodeOKX(f, out)
	}
	contract := strings.Count(m.Arg.Symbol, "-") > 1
	bar, candles := strings.CutPrefix(m.Arg.Channel, "candle")
	switch {
	case candles:
		all, err := list[[]producers.Num](m.Data)
		if err != nil {
			return err
		}
		columns := okxCandles
		if contract { // the base comes after the contracts
			columns.Volume = 6
		}
		return columns.add(all, adapter.Event{Symbol: m.Arg.Symbol, Channel: "candle", Interval: okxBar(bar)}, out)
	case m.Arg.Channel == "tickers" && contract: // its volumes are in contracts
		return okxContracts.list(m.Data, adapter.Event{}, out)
	case m.Arg.Channel == "trades-all":
		return okxTrades.list(m.Data, adapter.Event{}, out)
	case m.Arg.Channel == "bbo-tbt":
		return okxBest(m.Arg.Symbol, m.Data, out)
	}
	return decodeOKX(f, out)
}

var okxContracts = object{
	Kind: adapter.Ticker, Channel: "tickers", Symbol: "instId", Time: "ts", Last: "last", Bid: "bidPx", Ask: "askPx",
}.reader()

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
