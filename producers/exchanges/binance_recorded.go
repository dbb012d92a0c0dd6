package exchanges

import (
	"encoding/json"
	"strings"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/adapter"
)

// decodeBinanceRecorded also reads what the engine does not ask for: candles, aggregated trades, the smaller tickers, the tickers of
// all markets at once, and events without an envelope.
func decodeBinanceRecorded(f adapter.Frame, out *adapter.Out) error {
	stream, payload, err := binancePayload(f.Bytes)
	if err != nil {
		return err
	}
	events, err := listOrOne[json.RawMessage](payload)
	if err != nil {
		return err
	}
	for _, b := range events {
		if err := decodeBinanceEvent(b, stream, out); err != nil {
			return err
		}
	}
	return nil
}

func decodeBinanceEvent(b []byte, stream string, out *adapter.Out) error {
	var e struct {
		Type   string          `json:"e"`
		Time   producers.Num   `json:"E"`
		Symbol string          `json:"s"`
		Update producers.Num   `json:"u"`
		First  producers.Num   `json:"U"`
		Kline  *binanceKline   `json:"k"`
		Error  json.RawMessage `json:"error"`
		// LastUpdate is of a partial book, which has neither a type nor a symbol.
		LastUpdate producers.Num `json:"lastUpdateId"`
	}
	if err := parse(b, &e); err != nil {
		return err
	}
	switch {
	case e.Error != nil:
	case e.Type == "trade":
		return binanceTrades.one(b, adapter.Event{}, out)
	case e.Type == "24hrTicker":
		return binanceTickers.one(b, adapter.Event{}, out)
	case e.Type == "aggTrade":
		return binanceAggregates.one(b, adapter.Event{}, out)
	case e.Type == "24hrMiniTicker":
		return binanceMinis.one(b, adapter.Event{}, out)
	case e.Type == "kline" && e.Kline != nil:
		k := e.Kline
		out.Add(adapter.Event{
			Kind: adapter.Candle, Symbol: e.Symbol, Channel: "kline", Time: unixByDigits(e.Time),
			Start: unixByDigits(k.Start), Interval: k.Interval, State: candleState(k.Closed),
			OpenPrice: k.Open, High: k.High, Low: k.Low, ClosePrice: k.Close, Volume: k.Volume,
		})
		return nil
	case e.Type == "" && e.Update != "" && e.Symbol != "" && e.First == "":
		return binanceBooks.one(b, adapter.Event{}, out)
	case e.Type == "depthUpdate", e.Type == "avgPrice", e.Type == "1hTicker", e.Type == "4hTicker", e.Type == "1dTicker",
		e.Type == "blockTrade", e.Type == "referencePrice", // agreed beside the market, or computed
		e.Type == "" && (e.LastUpdate != "" || strings.Contains(stream, "@depth")): // a partial book
		return nil
	}
	return decodeBinanceAnswer(b, stream, out)
}

var (
	binanceAggregates = object{
		Kind: adapter.Trade, Channel: "aggTrade", Clock: unixByDigits, Taker: isBuyerMaker,
		Symbol: "s", Time: "T", ID: "a", Price: "p", Size: "q", Side: "m",
	}.reader()
	binanceMinis = object{
		Kind: adapter.Ticker, Channel: "24hrMiniTicker", Clock: unixByDigits,
		Symbol: "s", Time: "E", Last: "c", Base: "v", Quote: "q",
	}.reader()
	// The book ticker has neither a type nor a time.
	binanceBooks = object{Kind: adapter.Ticker, Channel: "bookTicker", Symbol: "s", Bid: "b", Ask: "a", Sequence: "u"}.reader()
)

var (
	binancePrices = object{
		Kind: adapter.Ticker, Channel: "rest", Clock: unixByDigits, Symbol: "symbol", Time: "closeTime", Last: "price",
	}.reader()
	binancePast = object{
		Kind: adapter.Trade, Channel: "trade", Clock: unixByDigits, Taker: isBuyerMaker,
		Time: "time", ID: "id", Price: "price", Size: "qty", Side: "isBuyerMaker",
	}.reader()
)

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
