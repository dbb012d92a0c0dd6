package exchanges

import (
	"slices"
	"strings"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/adapter"
)

// upbit is Upbit's Korean market. Its frames are binary, and come with long names (DEFAULT) or short
// ones (SIMPLE), singly or in lists; symbols have the quote first. A subscription replaces the one
// before.
//
//	feed    https://docs.upbit.com/kr/reference/websocket-guide (5 connections a second; 5 messages
//	        a second, 100 a minute; an idle connection ends after 120 s)
//	ticker  https://global-docs.upbit.com/reference/websocket-ticker
//	trades  https://global-docs.upbit.com/reference/websocket-trade
//	HTTP    https://global-docs.upbit.com/reference/list-tickers (10 requests a second)
func upbit() adapter.Venue {
	return adapter.Venue{
		Slug: "upbit", Name: "Upbit", Version: 3,
		URLs: adapter.URLs{
			Stream: "wss://api.upbit.com/websocket/v1",
			REST:   "https://api.upbit.com",
		},
		Evidence: evidenceOf["upbit"],
		Limits: adapter.Limits{
			Connects: 5, ConnectsPer: time.Second,
			MarketsPerSocket: 300, // undocumented; one message names all
			Messages:         1,
			Requests:         5,
		},
		Silence:      60 * time.Second,
		Listing:      []string{"/v1/market/all"},
		Instruments:  markets(list[upbitMarket], (*upbitMarket).instrument),
		Split:        upbitSplit,
		Subscribe:    upbitSubscribe,
		Replaces:     true,
		Heartbeat:    adapter.Heartbeat{Every: 30 * time.Second, Message: func() []byte { return []byte("PING") }},
		NewCodec:     func() adapter.Codec { return upbitCodec{} },
		NewRecorded:  func() adapter.Codec { return upbitRecorded{} },
		Tickers:      upbitTickers,
		DecodeREST:   upbitREST,
		RecordedREST: upbitRecordedREST,
	}
}

// upbitSplit reads KRW-BTC: the quote comes first.
func upbitSplit(symbol string) (base, quote string, ok bool) {
	quote, base, ok = strings.Cut(symbol, "-")
	return base, quote, ok && base != "" && quote != ""
}

func upbitSubscribe(markets []adapter.Instrument) [][]byte {
	type request struct {
		Ticket string   `json:"ticket,omitempty"`
		Type   string   `json:"type,omitempty"`
		Codes  []string `json:"codes,omitempty"`
		Format string   `json:"format,omitempty"`
	}
	codes := symbols(markets)
	return [][]byte{message([]request{
		{Ticket: "marketlog"},
		{Type: "trade", Codes: codes},
		{Type: "ticker", Codes: codes},
		{Format: "DEFAULT"},
	})}
}

type upbitMarket struct {
	Market string `json:"market"`
}

func (m *upbitMarket) instrument() (adapter.Instrument, bool) {
	base, quote, ok := upbitSplit(m.Market)
	return adapter.Instrument{Symbol: m.Market, Base: base, Quote: quote}, ok
}

// upbitTickersMax keeps the address of a request near 1 kB.
const upbitTickersMax = 100

func upbitTickers(markets []adapter.Instrument) (queries []adapter.Query) {
	for batch := range slices.Chunk(symbols(markets), upbitTickersMax) {
		queries = append(queries, adapter.Query{Path: "/v1/ticker?markets=" + strings.Join(batch, ",")})
	}
	return queries
}

// upbitCodec needs no state: every message names its market.
type upbitCodec struct{}

// upbitEvent is a trade, ticker or candle under its long names, also of the HTTP interface.
type upbitEvent struct {
	Type      string        `json:"type"`
	Code      string        `json:"code"`
	Market    string        `json:"market"` // of the HTTP interface
	Price     producers.Num `json:"trade_price"`
	Size      producers.Num `json:"trade_volume"`
	AskBid    string        `json:"ask_bid"`
	ID        producers.Num `json:"sequential_id"`
	Traded    producers.Num `json:"trade_timestamp"`
	Time      producers.Num `json:"timestamp"`
	Base24h   producers.Num `json:"acc_trade_volume_24h"`
	Quote24h  producers.Num `json:"acc_trade_price_24h"`
	Stream    string        `json:"stream_type"`
	StartUTC  string        `json:"candle_date_time_utc"`
	Open      producers.Num `json:"opening_price"`
	High      producers.Num `json:"high_price"`
	Low       producers.Num `json:"low_price"`
	CandleVol producers.Num `json:"candle_acc_trade_volume"`
}

func (upbitCodec) Decode(f adapter.Frame, out *adapter.Out) error {
	return decodeUpbit(f.Bytes, func(_ int, e upbitEvent) error { return e.decode(out) }, out)
}

// decodeUpbit hands each row that tells an event to visit, with its place.
func decodeUpbit(b []byte, visit func(int, upbitEvent) error, out *adapter.Out) error {
	var rows []struct {
		upbitEvent
		Status string `json:"status"` // the answer to PING
		Method string `json:"method"` // of the answer to a question about the connection
		Error  *struct {
			Name    string `json:"name"`
			Message string `json:"message"`
		} `json:"error"`
	}
	if err := parseRows(b, &rows); err != nil {
		return err
	}
	for i := range rows {
		r := &rows[i]
		if r.Error != nil {
			out.Notice("%s: %s", r.Error.Name, r.Error.Message)
			continue
		}
		if r.Status != "" || r.Method != "" {
			continue
		}
		if err := visit(i, r.upbitEvent); err != nil {
			return err
		}
	}
	return nil
}

func (e *upbitEvent) decode(out *adapter.Out) error {
	switch e.Type {
	case "trade":
		out.Add(e.trade(e.Code, e.Traded))
	case "ticker":
		out.Add(e.ticker(e.Code, "ticker"))
	case "orderbook":
	default:
		return producers.Unreadable("message of type %q", e.Type)
	}
	return nil
}

// upbitSides are the taker's.
var upbitSides = map[string]adapter.Side{"ASK": adapter.Sell, "BID": adapter.Buy}

func (e *upbitEvent) trade(symbol string, at producers.Num) adapter.Event {
	return adapter.Event{
		Kind: adapter.Trade, Symbol: symbol, Channel: "trade", Time: unixByDigits(at),
		ID: e.ID, Price: e.Price, Size: e.Size, Side: upbitSides[e.AskBid], Snapshot: e.Stream == "SNAPSHOT",
	}
}

func (e *upbitEvent) ticker(symbol, channel string) adapter.Event {
	return adapter.Event{
		Kind: adapter.Ticker, Symbol: symbol, Channel: channel, Time: unixByDigits(e.Time),
		Last: e.Price, VolumeBase: e.Base24h, VolumeQuote: e.Quote24h, Snapshot: e.Stream == "SNAPSHOT",
	}
}

func upbitREST(target string, body []byte, out *adapter.Out) error {
	switch path, _ := endpoint(target); {
	case strings.Contains(path, "/crix/"):
		return adapter.Retired("answer of %s", path)
	case strings.HasSuffix(path, "/market/all"):
		return nil
	case strings.HasSuffix(path, "/ticker"):
		return parseAll(body, func(e *upbitEvent) adapter.Event { return e.ticker(e.Market, "rest") }, out)
	default:
		return unreadAnswer(path)
	}
}
