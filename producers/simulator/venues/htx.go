package venues

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/coder/websocket"
	"github.com/klauspost/compress/gzip"
	"github.com/marketlog/marketlog/producers/simulator/market"
	"github.com/marketlog/marketlog/producers/simulator/provider"
)

// htx is HTX's spot market. Every frame of the feed is gzip:
//
//	feed    https://www.htx.com/en-us/opend/newApiPages/?id=662 (a "ping" every 5 s; the connection ends once two
//	        of them were not answered)
//	trades  https://www.htx.com/en-us/opend/newApiPages/?id=7ec53b69
//	ticker  https://www.htx.com/en-us/opend/newApiPages/?id=7ec5a0a7 (amount is in the base, vol in the quote)
//	http    https://www.htx.com/en-us/opend/newApiPages/?id=404 (market data: 800 requests a second)
func htx() Venue {
	return Venue{
		Slug: "htx", Share: 0.6,
		Quotes: []QuoteAsset{{"USDT", 280}, {"USDC", 15}, {"BTC", 25}, {"ETH", 12}},
		// Topics are separated by dots.
		Symbol:        func(base, quote string) string { return strings.ReplaceAll(strings.ToLower(base+quote), ".", "") },
		PriceDecimals: 10,
		Limits:        Limits{Requests: 800, RequestsPer: time.Second},
		Routes:        htxRoutes,
		Throttled: func(w http.ResponseWriter, _ *http.Request) {
			provider.Respond(w, http.StatusTooManyRequests, htxRefusal{Status: "error", Code: "too-many-requests", Message: "exceeded rate limit"})
		},
		Open:           func(c *Conn) { c.Session = new(htxSession) },
		Receive:        htxReceive,
		HeartbeatEvery: 5 * time.Second,
		Heartbeat:      htxHeartbeat,
		Channels: map[string]Channel{
			"trade.detail": {Trade: htxTrade, Binary: true},
			"ticker":       {State: htxTicker, Binary: true},
		},
	}
}

type htxSession struct {
	// unanswered pings since the last answer.
	unanswered int
}

// htxUnanswered is how many pings a client may leave without an answer.
const htxUnanswered = 2

func htxHeartbeat(c *Conn) {
	session := c.Session.(*htxSession)
	if session.unanswered >= htxUnanswered {
		c.Close(websocket.StatusPolicyViolation, "no pong")
		return
	}
	session.unanswered++
	c.SendBinary(htxPack(nil, append(strconv.AppendInt([]byte(`{"ping":`), c.Exchange().Now().UnixMilli(), 10), '}')))
}

// htxPack appends a frame's gzip, which keeps no state: frames are small, and many.
func htxPack(b, frame []byte) []byte {
	out := bytes.NewBuffer(b)
	w, err := gzip.NewWriterLevel(out, gzip.StatelessCompression)
	if err == nil {
		_, err = w.Write(frame)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		panic(err) // the level is known, and memory does not fail
	}
	return out.Bytes()
}

// htxRefusal is what the feed and the HTTP interface answer to a request that they cannot serve.
type htxRefusal struct {
	Time    int64  `json:"ts"`
	Status  string `json:"status"`
	ID      any    `json:"id,omitempty"`
	Code    string `json:"err-code"`
	Message string `json:"err-msg"`
}

func htxReceive(c *Conn, message []byte) {
	now := c.Exchange().Now().UnixMilli()
	send := func(body any) {
		b, _ := json.Marshal(body)
		c.SendBinary(htxPack(nil, b))
	}
	var request struct {
		Ping  json.Number `json:"ping"`
		Pong  json.Number `json:"pong"`
		Sub   string      `json:"sub"`
		Unsub string      `json:"unsub"`
		ID    any         `json:"id"`
	}
	refuse := func(why string) { send(htxRefusal{now, "error", request.ID, "bad-request", why}) }
	if err := json.Unmarshal(message, &request); err != nil {
		refuse("invalid request")
		return
	}
	switch {
	case request.Pong != "":
		c.Session.(*htxSession).unanswered = 0
		return
	case request.Ping != "":
		send(map[string]json.Number{"pong": request.Ping})
		return
	case request.Sub == "" && request.Unsub == "":
		refuse("invalid request")
		return
	}
	topic := request.Sub + request.Unsub
	rest, ok := strings.CutPrefix(topic, "market.")
	symbol, channel, _ := strings.Cut(rest, ".")
	m := c.Exchange().Market(symbol)
	if _, known := c.Exchange().venue.Channels[channel]; !ok || !known || m == nil {
		refuse("invalid topic " + topic)
		return
	}
	answer := map[string]any{"id": request.ID, "status": "ok", "ts": now}
	if request.Unsub != "" {
		c.Unsubscribe(channel, m)
		answer["unsubbed"] = topic
		send(answer)
		return
	}
	c.Subscribe(channel, m)
	answer["subbed"] = topic
	send(answer)
	if channel == "ticker" {
		c.SendBinary(htxTicker(nil, m, m.State(c.Now())))
	} else if t, ok := repeated(m, c.Now()); ok {
		c.SendBinary(htxTrade(nil, m, t))
	}
}

// appendDouble spells as Java prints a double, and the venue its trades: 0.001 to 10,000,000 with a decimal at least, all
// else with an exponent.
func appendDouble(b []byte, d market.Decimal) []byte {
	d = d.Trim()
	if x := d.Float(); x == 0 || x >= 1e-3 && x < 1e7 || x <= -1e-3 && x > -1e7 {
		return d.AppendNumber(b)
	}
	text := strconv.FormatInt(d.Units, 10)
	digits := strings.TrimPrefix(text, "-")
	exponent := len(digits) - 1 - d.Scale
	b = append(b, text[:len(text)-len(digits)+1]...)
	b = append(b, '.')
	if rest := strings.TrimRight(digits[1:], "0"); rest != "" {
		b = append(b, rest...)
	} else {
		b = append(b, '0')
	}
	return strconv.AppendInt(append(b, 'E'), int64(exponent), 10)
}

// htxHead begins a message, up to what follows the brace of its tick.
func htxHead(b []byte, channel string, m *market.Market, at int64) []byte {
	b = append(append(b, `{"ch":"market.`...), m.Symbol...)
	b = append(append(append(b, '.'), channel...), `","ts":`...)
	b = strconv.AppendInt(b, at/1e6, 10)
	return append(b, `,"tick":{`...)
}

func htxTrade(b []byte, m *market.Market, t market.Trade) []byte {
	tick := append(htxHead(make([]byte, 0, 512), "trade.detail", m, t.Time), `"id":`...)
	tick = strconv.AppendInt(tick, htxTick(t), 10)
	tick = append(tick, `,"ts":`...)
	tick = strconv.AppendInt(tick, t.Time/1e6, 10)
	tick = append(tick, `,"data":[{"id":`...)
	tick = htxID(tick, t)
	tick = append(tick, `,"ts":`...)
	tick = strconv.AppendInt(tick, t.Time/1e6, 10)
	tick = append(tick, `,"tradeId":`...)
	tick = strconv.AppendInt(tick, htxTradeID(t), 10)
	tick = append(tick, `,"amount":`...)
	tick = appendDouble(tick, t.Size)
	tick = append(tick, `,"price":`...)
	tick = appendDouble(tick, t.Price)
	tick = append(append(tick, `,"direction":"`...), side(t.Buy)...)
	return htxPack(b, append(tick, `"}]}}`...))
}

// A match has a number, which a longer one begins with; the trade has one of its own.
func htxTick(t market.Trade) int64 { return 100_000_000_000 + t.ID }

func htxID(b []byte, t market.Trade) []byte {
	b = strconv.AppendInt(b, htxTick(t), 10)
	return strconv.AppendInt(b, 255_757_000_000_000+t.ID, 10)
}

func htxTradeID(t market.Trade) int64 { return 100_000_000 + t.ID }

func htxTicker(b []byte, m *market.Market, s market.State) []byte {
	tick := htxDay(htxHead(make([]byte, 0, 512), "ticker", m, s.Time), m, s)
	for _, field := range [...]struct {
		key   string
		value market.Decimal
	}{{"bid", s.Bid}, {"bidSize", s.BidSize}, {"ask", s.Ask}, {"askSize", s.AskSize}, {"lastPrice", s.Last.Price}, {"lastSize", s.Last.Size}} {
		tick = htxField(tick, field.key, field.value)
	}
	return htxPack(b, append(tick, `}}`...))
}

// htxDay is what the tickers of the feed and of the HTTP interface have in common.
func htxDay(b []byte, m *market.Market, s market.State) []byte {
	b = s.Open.AppendShort(append(b, `"open":`...))
	b = htxField(b, "high", s.High)
	b = htxField(b, "low", s.Low)
	b = htxField(b, "close", s.Last.Price)
	b = htxField(b, "amount", s.Volume)
	b = htxField(b, "vol", s.QuoteVolume)
	b = append(b, `,"count":`...)
	return strconv.AppendInt(b, m.TradesPerDay(), 10)
}

func htxField(b []byte, key string, d market.Decimal) []byte {
	b = append(append(append(b, `,"`...), key...), `":`...)
	return d.AppendShort(b)
}

// htxPeriods are the kinds of candles, but for weeks and longer. Days begin in Singapore.
var htxPeriods = map[string]time.Duration{
	"1min": time.Minute, "5min": 5 * time.Minute, "15min": 15 * time.Minute, "30min": 30 * time.Minute, "60min": time.Hour,
	"4hour": 4 * time.Hour, "1day": 24 * time.Hour,
}

func htxRoutes(x *Exchange) map[string]http.HandlerFunc {
	refuse := func(w http.ResponseWriter, why string) { // with status 200
		provider.Respond(w, http.StatusOK, htxRefusal{Time: x.Now().UnixMilli(), Status: "error", Code: "invalid-parameter", Message: why})
	}
	// market answers for the symbol that the query names, under a channel's name; key holds what it answers.
	ofMarket := func(channel, key string, answer func(m *market.Market, r *http.Request) (body any, wrong string)) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			m := x.Market(r.URL.Query().Get("symbol"))
			if m == nil {
				refuse(w, "invalid symbol")
				return
			}
			body, wrong := answer(m, r)
			if wrong != "" {
				refuse(w, "invalid "+wrong)
				return
			}
			name := "market." + m.Symbol + "." + channel
			if channel == "kline" {
				name += "." + r.URL.Query().Get("period")
			}
			provider.Respond(w, http.StatusOK, map[string]any{"status": "ok", "ch": name, "ts": x.Now().UnixMilli(), key: body})
		}
	}
	return map[string]http.HandlerFunc{
		"GET /v1/common/timestamp": func(w http.ResponseWriter, _ *http.Request) {
			provider.Respond(w, http.StatusOK, map[string]any{"status": "ok", "data": x.Now().UnixMilli()})
		},
		"GET /v1/common/symbols": func(w http.ResponseWriter, _ *http.Request) {
			markets := x.Markets()
			list := make([]any, len(markets))
			for i, m := range markets {
				list[i] = htxListing(x, m)
			}
			provider.Respond(w, http.StatusOK, map[string]any{"status": "ok", "data": list})
		},
		"GET /market/tickers": func(w http.ResponseWriter, _ *http.Request) {
			markets := x.Quoted(x.Markets())
			list := make([]json.RawMessage, len(markets))
			for i, m := range markets {
				s := m.State(x.Now())
				b := htxDay(append(append([]byte(`{"symbol":"`), m.Symbol...), `",`...), m, s)
				b = htxField(htxField(b, "bid", s.Bid), "bidSize", s.BidSize)
				list[i] = append(htxField(htxField(b, "ask", s.Ask), "askSize", s.AskSize), '}')
			}
			provider.Respond(w, http.StatusOK, map[string]any{"status": "ok", "ts": x.Now().UnixMilli(), "data": list})
		},
		"GET /market/detail/merged": ofMarket("detail.merged", "tick", func(m *market.Market, _ *http.Request) (any, string) {
			s := m.State(x.Now())
			b := htxDay([]byte{'{'}, m, s)
			for _, side := range [...]struct {
				key         string
				price, size market.Decimal
			}{{"bid", s.Bid, s.BidSize}, {"ask", s.Ask, s.AskSize}} {
				b = append(append(append(b, `,"`...), side.key...), `":[`...)
				b = side.size.AppendShort(append(side.price.AppendShort(b), ','))
				b = append(b, ']')
			}
			b = strconv.AppendInt(append(b, `,"id":`...), htxTick(s.Last), 10)
			b = strconv.AppendInt(append(b, `,"version":`...), htxTick(s.Last), 10)
			return json.RawMessage(append(b, '}')), ""
		}),
		"GET /market/trade": ofMarket("trade.detail", "tick", func(m *market.Market, _ *http.Request) (any, string) {
			return htxMatch(m.LastTrade(x.Now().UnixNano())), ""
		}),
		"GET /market/history/trade": ofMarket("trade.detail", "data", func(m *market.Market, r *http.Request) (any, string) {
			size, ok := htxSize(r, 1)
			if !ok {
				return nil, "size"
			}
			rows := make([]any, size)
			for i, t := range m.Trades(x.Now(), size) {
				rows[size-1-i] = htxMatch(t)
			}
			return rows, ""
		}),
		"GET /market/history/kline": ofMarket("kline", "data", func(m *market.Market, r *http.Request) (any, string) {
			interval, known := htxPeriods[r.URL.Query().Get("period")]
			size, ok := htxSize(r, 150)
			switch {
			case !known:
				return nil, "period"
			case !ok:
				return nil, "size"
			}
			return htxCandles(x, m, interval, size), ""
		}),
	}
}

// htxSize is how many rows are asked for.
func htxSize(r *http.Request, absent int) (n int, ok bool) {
	text := r.URL.Query().Get("size")
	if text == "" {
		return absent, true
	}
	n, err := strconv.Atoi(text)
	return n, err == nil && n > 0 && n <= 2000
}

func htxListing(x *Exchange, m *market.Market) any {
	least := number(market.Exact(1, m.SizeScale))
	return map[string]any{
		"base-currency": strings.ToLower(m.Base), "quote-currency": strings.ToLower(m.Quote), "price-precision": m.PriceScale,
		"amount-precision": m.SizeScale, "symbol-partition": "main", "symbol": m.Symbol, "state": x.Status(m, "online", "suspend"), "value-precision": 8,
		"min-order-amt": least, "max-order-amt": 1_000_000, "min-order-value": 5, "limit-order-min-order-amt": least,
		"limit-order-max-order-amt": 1_000_000, "limit-order-max-buy-amt": 1_000_000, "limit-order-max-sell-amt": 1_000_000,
		"sell-market-min-order-amt": least, "sell-market-max-order-amt": 100_000, "buy-market-max-order-value": 1_000_000,
		"api-trading": "enabled", "tags": "",
	}
}

// htxMatch is a match of one trade, as the HTTP interface serves it.
func htxMatch(t market.Trade) any {
	return map[string]any{
		"id": htxTick(t), "ts": t.Time / 1e6, "data": []any{map[string]any{
			"id": json.Number(htxID(nil, t)), "ts": t.Time / 1e6, "trade-id": htxTradeID(t), "amount": json.Number(t.Size.String()), "price": json.Number(t.Price.String()),
			"direction": side(t.Buy),
		}},
	}
}

// htxCandles are the newest, the newest first.
func htxCandles(x *Exchange, m *market.Market, interval time.Duration, n int) []json.RawMessage {
	rows := []json.RawMessage{}
	now := x.Now()
	for _, c := range newestCandles(m, time.Unix(0, 0), now.Add(time.Nanosecond), now, interval, hongKong, n) {
		b := strconv.AppendInt([]byte(`{"id":`), c.Start/market.Second, 10)
		b = htxField(b, "open", c.Open)
		b = htxField(b, "close", c.Close)
		b = htxField(b, "low", c.Low)
		b = htxField(b, "high", c.High)
		b = htxField(b, "amount", c.Volume)
		b = htxField(b, "vol", c.QuoteVolume)
		b = strconv.AppendInt(append(b, `,"count":`...), c.Trades, 10)
		rows = append(rows, append(b, '}'))
	}
	return rows
}
