package exchanges

import (
	"encoding/json"
	"strings"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/adapter"
)

// binanceRecorded also reads what the engine does not ask for: candles, aggregated trades, the smaller tickers, and the tickers of all
// markets at once.
type binanceRecorded struct{}

type binanceRecordedEvent struct {
	binanceEvent
	Update producers.Num `json:"u"`
	First  producers.Num `json:"U"`
	Kline  *binanceKline `json:"k"`
	// LastUpdate is of a partial book, which has neither a type nor a symbol.
	LastUpdate producers.Num `json:"lastUpdateId"`
}

type binanceKline struct {
	Start       producers.Num   `json:"t"`
	End         producers.Num   `json:"T"`
	Symbol      string          `json:"s"`
	Interval    string          `json:"i"`
	FirstID     producers.Num   `json:"f"`
	LastID      producers.Num   `json:"L"`
	Low         producers.Num   `json:"l"`
	Open        producers.Num   `json:"o"`
	Close       producers.Num   `json:"c"`
	High        producers.Num   `json:"h"`
	Volume      producers.Num   `json:"v"`
	TakerVolume producers.Num   `json:"V"`
	Closed      bool            `json:"x"`
	Quote       producers.Num   `json:"q"`
	TakerQuote  producers.Num   `json:"Q"`
	Trades      json.RawMessage `json:"n"`
}

func (binanceRecorded) Decode(f adapter.Frame, out *adapter.Out) error {
	stream, payload, err := binancePayload(f.Bytes)
	if err != nil {
		return err
	}
	events, err := listOrOne[binanceRecordedEvent](payload)
	if err != nil {
		return err
	}
	for i := range events {
		if err := events[i].decode(stream, out); err != nil {
			return err
		}
	}
	return nil
}

func (e *binanceRecordedEvent) decode(stream string, out *adapter.Out) error {
	switch {
	case e.Error != nil:
		return e.binanceEvent.decode(stream, out)
	case e.Type == "aggTrade":
		out.Add(e.trade(e.Ask))
	case e.Type == "24hrMiniTicker":
		out.Add(e.ticker())
	case e.Type == "kline" && e.Kline != nil:
		k := e.Kline
		out.Add(adapter.Event{
			Kind: adapter.Candle, Symbol: e.Symbol, Channel: "kline", Time: unixByDigits(e.Time),
			Start: unixByDigits(k.Start), Interval: k.Interval, State: candleState(k.Closed),
			OpenPrice: k.Open, High: k.High, Low: k.Low, ClosePrice: k.Close, Volume: k.Volume,
		})
	case e.Type == "" && e.Update != "" && e.Symbol != "" && e.First == "":
		// The book ticker has neither a type nor a time.
		out.Add(adapter.Event{
			Kind: adapter.Ticker, Symbol: e.Symbol, Channel: "bookTicker",
			Bid: e.Bid, Ask: e.Ask, Sequence: e.Update,
		})
	case e.Type == "depthUpdate", e.Type == "avgPrice", e.Type == "1hTicker", e.Type == "4hTicker", e.Type == "1dTicker":
	case e.Type == "blockTrade", e.Type == "referencePrice": // agreed beside the market, or computed
	case e.Type == "" && (e.LastUpdate != "" || strings.Contains(stream, "@depth")): // a partial book
	default:
		return e.binanceEvent.decode(stream, out)
	}
	return nil
}
