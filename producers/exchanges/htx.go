package exchanges

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/adapter"
)

// htx is HTX (formerly Huobi), spot. Every frame is gzip.
//
//	feed    https://www.htx.com/en-us/opend/newApiPages/?id=662 ("ping" every 5 s, to be answered; two
//	        unanswered ones end the connection)
//	ticker  https://www.htx.com/en-us/opend/newApiPages/?id=7ec5a0a7 (amount is in the base, vol in the quote)
//	HTTP    https://www.htx.com/en-us/opend/newApiPages/?id=404 (market data: 800 requests a second and
//	        address; far less is used)
func htx() adapter.Venue {
	return adapter.Venue{
		Slug: "htx", Name: "HTX", Version: 2,
		URLs: adapter.URLs{
			Stream: "wss://api.huobi.pro/ws",
			REST:   "https://api.huobi.pro",
		},
		Countries: countriesOf["htx"],
		Evidence:  evidenceOf["htx"],
		Limits: adapter.Limits{
			Connects: 10, ConnectsPer: time.Second, // undocumented
			MarketsPerSocket: 150, // undocumented; keeps one connection's loss small
			Messages:         20,  // undocumented; each message subscribes to one topic
			Requests:         7,
		},
		Silence:     30 * time.Second,
		Listing:     []string{"/v1/common/symbols"},
		Instruments: markets(htxMarkets, (*htxMarket).instrument),
		Split:       htxSplit,
		Subscribe:   htxRequest("sub"),
		Unsubscribe: htxRequest("unsub"),
		NewCodec:    func() adapter.Codec { return htxCodec{} },
		Tickers:     one("/market/tickers"),
		DecodeREST:  htxREST,
	}
}

// htxRequest names one topic in a message.
func htxRequest(op string) requester {
	return requests(1, func(symbol string) []string {
		return []string{"market." + symbol + ".trade.detail", "market." + symbol + ".ticker"}
	}, func(topics []string, _ int) any { return map[string]string{op: topics[0], "id": topics[0]} })
}

type htxMarket struct {
	Symbol string `json:"symbol"`
	Base   string `json:"base-currency"`
	Quote  string `json:"quote-currency"`
	State  string `json:"state"`
}

func htxMarkets(body []byte) ([]htxMarket, error) {
	var answer struct {
		Status  string      `json:"status"`
		Message string      `json:"err-msg"`
		Data    []htxMarket `json:"data"`
	}
	if err := parse(body, &answer); err != nil {
		return nil, err
	}
	if answer.Status != "ok" {
		return nil, producers.Unreadable("status %q: %s", answer.Status, answer.Message)
	}
	return answer.Data, nil
}

func (m *htxMarket) instrument() (adapter.Instrument, bool) {
	return adapter.Instrument{Symbol: m.Symbol, Base: strings.ToUpper(m.Base), Quote: strings.ToUpper(m.Quote)}, m.State == "online"
}

// htxSplit reads ethbtc: spot markets have no separator, contracts do (BTC-USDT, BTC_CW).
func htxSplit(symbol string) (base, quote string, ok bool) {
	if strings.ContainsAny(symbol, "-_") {
		return "", "", false
	}
	return adapter.SplitSymbol(symbol)
}

// htxCodec needs no state: the topic names the symbol.
type htxCodec struct{}

// htxTick is the payload of a topic; each has some of the fields. Of a merged ticker bid and ask
// are lists of price and size.
type htxTick struct {
	Symbol string          `json:"symbol"`
	Time   producers.Num   `json:"ts"`
	ID     producers.Num   `json:"id"` // of a candle: its start in seconds
	Open   producers.Num   `json:"open"`
	High   producers.Num   `json:"high"`
	Low    producers.Num   `json:"low"`
	Close  producers.Num   `json:"close"`
	Last   producers.Num   `json:"lastPrice"`
	Amount producers.Num   `json:"amount"`
	Vol    producers.Num   `json:"vol"`
	Bid    json.RawMessage `json:"bid"`
	Ask    json.RawMessage `json:"ask"`
	Quoted producers.Num   `json:"quoteTime"` // of the best bid and ask
	Trades []htxTrade      `json:"data"`
}

// htxTrade has a trade id of its own since 2019; before, and in history, the long id is all there is.
type htxTrade struct {
	ID        producers.Num `json:"id"`
	TradeID   producers.Num `json:"tradeId"`
	AltID     producers.Num `json:"trade-id"` // of the HTTP interface
	Time      producers.Num `json:"ts"`
	Price     producers.Num `json:"price"`
	Amount    producers.Num `json:"amount"`
	Direction string        `json:"direction"` // the taker's
}

func (t *htxTrade) event(symbol string) adapter.Event {
	return adapter.Event{
		Kind: adapter.Trade, Symbol: symbol, Channel: "trade.detail", Time: producers.Unix(t.Time, time.Millisecond),
		ID: cmp.Or(t.TradeID, t.AltID, t.ID), Price: t.Price, Size: t.Amount, Side: adapter.Side(t.Direction),
	}
}

// htxPrice reads the first number of a list, or a number.
func htxPrice(raw json.RawMessage) producers.Num {
	var list []producers.Num
	var n producers.Num
	switch {
	case raw == nil:
	case json.Unmarshal(raw, &list) == nil:
		n = bestPrice([][]producers.Num{list})
	default:
		_ = json.Unmarshal(raw, &n) // fails never: a Num takes whatever it is
	}
	return n
}

func (t *htxTick) ticker(symbol, channel string, at producers.Num) adapter.Event {
	return adapter.Event{
		Kind: adapter.Ticker, Symbol: symbol, Channel: channel, Time: producers.Unix(at, time.Millisecond),
		Last: cmp.Or(t.Last, t.Close), Bid: htxPrice(t.Bid), Ask: htxPrice(t.Ask), VolumeBase: t.Amount, VolumeQuote: t.Vol,
	}
}

func (t *htxTick) candle(symbol, period string) adapter.Event {
	return adapter.Event{
		Kind: adapter.Candle, Symbol: symbol, Channel: "kline", Interval: htxPeriod(period),
		Start: producers.Unix(t.ID, time.Second), OpenPrice: t.Open, High: t.High, Low: t.Low, ClosePrice: t.Close, Volume: t.Amount,
	}
}

// htxPeriod spells an interval: 1min, 60min, 4hour, 1day, 1week.
func htxPeriod(period string) string {
	for _, unit := range []struct {
		name   string
		length time.Duration
	}{{"min", time.Minute}, {"hour", time.Hour}, {"day", 24 * time.Hour}, {"week", 7 * 24 * time.Hour}} {
		if n, ok := strings.CutSuffix(period, unit.name); ok {
			if length := producers.Unix(producers.Num(n), unit.length); length != producers.BadTime {
				return adapter.Interval(time.Duration(length))
			}
		}
	}
	return period
}

func (htxCodec) Decode(f adapter.Frame, out *adapter.Out) error {
	var m struct {
		Ping    producers.Num   `json:"ping"`
		Channel string          `json:"ch"`
		Time    producers.Num   `json:"ts"`
		Status  string          `json:"status"`
		Message string          `json:"err-msg"`
		Tick    json.RawMessage `json:"tick"`
		Data    json.RawMessage `json:"data"` // of all tickers at once
	}
	if err := parse(f.Bytes, &m); err != nil {
		return err
	}
	switch {
	case m.Ping != "":
		out.Reply(fmt.Sprintf(`{"pong":%s}`, m.Ping))
		return nil
	case m.Status == "error":
		out.Notice("%s", m.Message)
		return nil
	case m.Channel == "" && m.Status != "": // an acknowledgement
		return nil
	}
	symbol, channel, _ := strings.Cut(strings.TrimPrefix(m.Channel, "market."), ".")
	var tick htxTick
	if channel == "trade.detail" || channel == "ticker" || channel == "bbo" || channel == "detail" || strings.HasPrefix(channel, "kline.") {
		if err := parse(m.Tick, &tick); err != nil {
			return err
		}
	}
	switch {
	case channel == "trade.detail":
		addAll(tick.Trades, func(t *htxTrade) adapter.Event { return t.event(symbol) }, out)
	case channel == "ticker":
		out.Add(tick.ticker(symbol, "ticker", m.Time))
	case strings.HasPrefix(channel, "kline."):
		out.Add(tick.candle(symbol, strings.TrimPrefix(channel, "kline.")))
	case channel == "bbo":
		out.Add(tick.ticker(symbol, "bbo", cmp.Or(tick.Quoted, m.Time)))
	case channel == "detail":
		if _, _, spot := htxSplit(symbol); spot { // a contract's has volumes in contracts
			out.Add(tick.ticker(symbol, "detail", m.Time))
		}
	case symbol == "tickers" && channel == "":
		return parseAll(m.Data, func(t *htxTick) adapter.Event { return t.ticker(t.Symbol, "tickers", m.Time) }, out)
	case strings.HasPrefix(channel, "depth"), strings.HasPrefix(channel, "mbp"), channel == "etp":
	default:
		return producers.Unreadable("message of channel %q", m.Channel)
	}
	return nil
}

func htxREST(target string, body []byte, out *adapter.Out) error {
	path, query := endpoint(target)
	var answer struct {
		Status  string          `json:"status"`
		Message string          `json:"err-msg"`
		Channel string          `json:"ch"`
		Time    producers.Num   `json:"ts"`
		Tick    htxTick         `json:"tick"`
		Data    json.RawMessage `json:"data"`
	}
	if err := parse(body, &answer); err != nil {
		return err
	}
	if answer.Status != "ok" {
		return producers.Unreadable("status %q: %s", answer.Status, answer.Message)
	}
	symbol, _, _ := strings.Cut(strings.TrimPrefix(answer.Channel, "market."), ".")
	switch path {
	case "/v1/common/symbols":
	case "/market/tickers":
		return parseAll(answer.Data, func(t *htxTick) adapter.Event { return t.ticker(t.Symbol, "rest", answer.Time) }, out)
	case "/market/detail/merged":
		out.Add(answer.Tick.ticker(symbol, "rest", answer.Time))
	case "/market/history/trade", "/market/trade":
		orders, err := list[htxTick](answer.Data) // each taker's, with the trades that it came to
		if err != nil {
			return err
		}
		for i := range orders {
			addAll(orders[i].Trades, func(t *htxTrade) adapter.Event { return t.event(symbol) }, out)
		}
	case "/market/history/kline":
		return parseAll(answer.Data, func(t *htxTick) adapter.Event { return t.candle(symbol, query.Get("period")) }, out)
	default:
		return unreadAnswer(path)
	}
	return nil
}
