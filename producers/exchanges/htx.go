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
		Silence:      30 * time.Second,
		Listing:      []string{"/v1/common/symbols"},
		Instruments:  markets(htxMarkets, (*htxMarket).instrument),
		Split:        htxSplit,
		Subscribe:    htxRequest("sub"),
		Unsubscribe:  htxRequest("unsub"),
		NewCodec:     func() adapter.Codec { return htxCodec{} },
		NewRecorded:  func() adapter.Codec { return htxRecorded{} },
		Tickers:      one("/market/tickers"),
		DecodeREST:   htxREST,
		RecordedREST: htxRecordedREST,
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
	answer, err := parseHTX(body)
	if err != nil {
		return nil, err
	}
	return list[htxMarket](answer.Data)
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

// htxTick is the payload of a topic, or a row of the HTTP interface; each has some of the fields.
type htxTick struct {
	Symbol string        `json:"symbol"` // of the HTTP interface alone
	Close  producers.Num `json:"close"`
	Last   producers.Num `json:"lastPrice"`
	Amount producers.Num `json:"amount"`
	Vol    producers.Num `json:"vol"`
	Bid    producers.Num `json:"bid"`
	Ask    producers.Num `json:"ask"`
	Trades []htxTrade    `json:"data"`
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

func (t *htxTick) ticker(symbol, channel string, at producers.Num) adapter.Event {
	return adapter.Event{
		Kind: adapter.Ticker, Symbol: symbol, Channel: channel, Time: producers.Unix(at, time.Millisecond),
		Last: cmp.Or(t.Last, t.Close), Bid: t.Bid, Ask: t.Ask, VolumeBase: t.Amount, VolumeQuote: t.Vol,
	}
}

func (htxCodec) Decode(f adapter.Frame, out *adapter.Out) error {
	var m struct {
		Ping    producers.Num   `json:"ping"`
		Channel string          `json:"ch"`
		Time    producers.Num   `json:"ts"`
		Status  string          `json:"status"`
		Message string          `json:"err-msg"`
		Tick    json.RawMessage `json:"tick"`
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
	symbol, channel := htxTopic(m.Channel)
	switch {
	case channel == "trade.detail", channel == "ticker":
	case strings.HasPrefix(channel, "depth"), strings.HasPrefix(channel, "mbp"), channel == "etp":
		return nil
	default:
		return producers.Unreadable("message of channel %q", m.Channel)
	}
	var tick htxTick
	if err := parse(m.Tick, &tick); err != nil {
		return err
	}
	if channel == "ticker" {
		out.Add(tick.ticker(symbol, "ticker", m.Time))
	} else {
		addAll(tick.Trades, func(t *htxTrade) adapter.Event { return t.event(symbol) }, out)
	}
	return nil
}

// htxTopic reads market.btcusdt.trade.detail.
func htxTopic(topic string) (symbol, channel string) {
	symbol, channel, _ = strings.Cut(strings.TrimPrefix(topic, "market."), ".")
	return symbol, channel
}

// htxAnswer is the envelope of the HTTP interface; a status other than ok is an error, also with HTTP's status 200.
type htxAnswer struct {
	Status  string          `json:"status"`
	Message string          `json:"err-msg"`
	Channel string          `json:"ch"`
	Time    producers.Num   `json:"ts"`
	Tick    json.RawMessage `json:"tick"`
	Data    json.RawMessage `json:"data"`
}

func parseHTX(body []byte) (answer htxAnswer, err error) {
	if err := parse(body, &answer); err != nil {
		return answer, err
	}
	if answer.Status != "ok" {
		return answer, producers.Unreadable("status %q: %s", answer.Status, answer.Message)
	}
	return answer, nil
}

func htxREST(target string, body []byte, out *adapter.Out) error {
	answer, err := parseHTX(body)
	if err != nil {
		return err
	}
	switch path, _ := endpoint(target); path {
	case "/v1/common/symbols":
		return nil
	case "/market/tickers":
		return parseAll(answer.Data, func(t *htxTick) adapter.Event { return t.ticker(t.Symbol, "rest", answer.Time) }, out)
	default:
		return unreadAnswer(path)
	}
}
