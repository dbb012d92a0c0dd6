package venues

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/coder/websocket"
	"github.com/marketlog/marketlog/producers/simulator/market"
	"github.com/marketlog/marketlog/producers/simulator/provider"
)

// cryptocom is the Crypto.com Exchange, version 1 of its interface:
//
//	feed    https://exchange-docs.crypto.com/exchange/v1/rest-ws/index.html#websocket-subscriptions (trade, ticker),
//	        …#websocket-heartbeats (every 30 s; to be answered within 5)
//	http    …#reference-and-market-data-api
//	limits  …#rate-limits (market data: 100 messages a second on a connection; 100 requests a second)
func cryptocom() Venue {
	return Venue{
		Slug: "cryptocom", Share: 0.5,
		Quotes: []QuoteAsset{{"USD", 250}, {"USDT", 50}, {"BTC", 10}},
		Symbol: func(base, quote string) string { return base + "_" + quote },
		Limits: Limits{
			Messages: 100, MessagesPer: time.Second,
			Requests: 100, RequestsPer: time.Second,
		},
		Routes: cryptocomRoutes,
		Throttled: func(w http.ResponseWriter, r *http.Request) {
			provider.Respond(w, http.StatusTooManyRequests, cryptocomError(r, 42901, "RATE_LIMIT"))
		},
		Open:           func(c *Conn) { c.Session = &cryptocomSession{} },
		Receive:        cryptocomReceive,
		HeartbeatEvery: cryptocomPatience,
		Heartbeat:      cryptocomHeartbeat,
		Channels: map[string]Channel{
			"trade": {Trade: func(b []byte, m *market.Market, t market.Trade) []byte { return cryptocomTrades(b, -1, m, t) }},
			"ticker": {State: func(b []byte, m *market.Market, s market.State) []byte {
				b = cryptocomHead(b, -1, "ticker", m)
				return append(cryptocomTicker(b, m, s), "]}}"...)
			}},
		},
	}
}

// cryptocomSession is what a connection was asked last. A client that does not answer is gone.
type cryptocomSession struct {
	// asked is the id of the heartbeat without an answer, 0 if there is none; beats counts patiences.
	asked int64
	beats int
}

// cryptocomPatience is how long an answer may take; each sixth of them asks.
const cryptocomPatience = 5 * time.Second

func cryptocomHeartbeat(c *Conn) {
	s := c.Session.(*cryptocomSession)
	if s.asked != 0 {
		c.Close(websocket.StatusPolicyViolation, "no answer to a heartbeat")
		return
	}
	if s.beats++; s.beats%6 == 0 {
		s.asked = c.Now().UnixMilli()
		c.Send([]byte(`{"id":` + strconv.FormatInt(s.asked, 10) + `,"method":"public/heartbeat","code":0}`))
	}
}

func cryptocomReceive(c *Conn, message []byte) {
	var request struct {
		ID     json.Number `json:"id"`
		Method string      `json:"method"`
		Params struct {
			Channels []string `json:"channels"`
		} `json:"params"`
	}
	refuse := func(code int, why string) {
		id := request.ID
		if id == "" {
			id = "-1"
		}
		b, _ := json.Marshal(map[string]any{"id": id, "method": request.Method, "code": code, "message": why})
		c.Send(b)
	}
	if err := json.Unmarshal(message, &request); err != nil {
		refuse(40001, "BAD_REQUEST")
		return
	}
	id, _ := request.ID.Int64()
	switch request.Method {
	case "public/respond-heartbeat":
		if s := c.Session.(*cryptocomSession); id == s.asked {
			s.asked = 0
		}
		return
	case "subscribe", "unsubscribe":
	default:
		refuse(40002, "METHOD_NOT_FOUND")
		return
	}
	type wish struct {
		channel string
		market  *market.Market
	}
	var wishes []wish
	for _, name := range request.Params.Channels {
		channel, symbol, _ := strings.Cut(name, ".")
		m := c.Exchange().Market(symbol)
		if _, known := c.Exchange().venue.Channels[channel]; !known || m == nil {
			refuse(40003, "Unknown channel "+name)
			return
		}
		wishes = append(wishes, wish{channel, m})
	}
	c.Send([]byte(`{"id":` + strconv.FormatInt(id, 10) + `,"method":"` + request.Method + `","code":0}`))
	for _, w := range wishes {
		if request.Method == "unsubscribe" {
			c.Unsubscribe(w.channel, w.market)
			continue
		}
		if !c.Subscribe(w.channel, w.market) {
			return
		}
		if w.channel == "trade" {
			c.Send(cryptocomTrades(nil, id, w.market, w.market.Trades(c.Now(), 25)...))
			continue
		}
		b := cryptocomHead(nil, id, "ticker", w.market)
		c.Send(append(cryptocomTicker(b, w.market, w.market.State(c.Now())), "]}}"...))
	}
}

// cryptocomHead begins a message, up to its rows. The id is that of the request that the message answers, else -1.
func cryptocomHead(b []byte, id int64, channel string, m *market.Market) []byte {
	b = append(b, `{"id":`...)
	b = strconv.AppendInt(b, id, 10)
	b = append(append(b, `,"method":"subscribe","code":0,"result":{"instrument_name":"`...), m.Symbol...)
	b = append(append(append(append(b, `","subscription":"`...), channel...), '.'), m.Symbol...)
	return append(append(b, `","channel":"`...), channel+`","data":[`...)
}

// cryptocomIDs is where the numbers of trades and matches begin: they have 19 digits.
const cryptocomIDs = 1 << 62

// cryptocomTrades lists trades in the order of time, newest first.
func cryptocomTrades(b []byte, id int64, m *market.Market, trades ...market.Trade) []byte {
	b = cryptocomHead(b, id, "trade", m)
	for i := range trades {
		if i > 0 {
			b = append(b, ',')
		}
		b = cryptocomTrade(b, m, trades[len(trades)-1-i])
	}
	return append(b, "]}}"...)
}

func cryptocomTrade(b []byte, m *market.Market, t market.Trade) []byte {
	b = append(b, `{"d":"`...)
	b = strconv.AppendInt(b, cryptocomIDs+t.ID, 10)
	b = append(b, `","t":`...)
	b = strconv.AppendInt(b, t.Time/1e6, 10)
	b = append(b, `,"p":"`...)
	b = t.Price.Append(b)
	b = append(b, `","q":"`...)
	b = t.Size.Append(b)
	b = append(append(b, `","s":"`...), bigSide(t.Buy)...)
	b = append(append(b, `","i":"`...), m.Symbol...)
	b = append(b, `","m":"`...)
	b = strconv.AppendInt(b, cryptocomIDs+t.ID/2, 10)
	return append(b, `"}`...)
}

// cryptocomTicker is a ticker's row. Its volume "vv" is in USD whatever the quote.
func cryptocomTicker(b []byte, m *market.Market, s market.State) []byte {
	field := func(name string, d market.Decimal) {
		b = append(append(append(b, name...), `":"`...), d.String()...)
		b = append(b, `","`...)
	}
	b = append(b, `{"`...)
	field("h", s.High)
	field("l", s.Low)
	field("a", s.Last.Price)
	field("c", market.Round(s.Last.Price.Float()/s.Open.Float()-1, 4))
	field("b", s.Bid)
	field("bs", s.BidSize)
	field("k", s.Ask)
	field("ks", s.AskSize)
	b = append(append(b, `i":"`...), m.Symbol...)
	b = append(b, `","`...)
	field("v", s.Volume)
	field("vv", market.Round(s.QuoteVolume.Float()*m.QuoteAsset.At(s.Time), 2))
	b = append(b, `oi":"0","t":`...)
	b = strconv.AppendInt(b, s.Time/1e6, 10)
	return append(b, '}')
}

// cryptocomAnswer is the answer of the HTTP interface, whose method is named like its path.
func cryptocomAnswer(r *http.Request, result any) any {
	return map[string]any{"id": -1, "method": strings.TrimPrefix(r.URL.Path, "/"), "code": 0, "result": result}
}

func cryptocomError(r *http.Request, code int, why string) any {
	return map[string]any{"id": -1, "method": strings.TrimPrefix(r.URL.Path, "/"), "code": code, "message": why}
}

// cryptocomIntervals are the kinds of candles, but for weeks and months, in both spellings.
var cryptocomIntervals = map[string]time.Duration{
	"1m": time.Minute, "5m": 5 * time.Minute, "15m": 15 * time.Minute, "30m": 30 * time.Minute, "1h": time.Hour,
	"2h": 2 * time.Hour, "4h": 4 * time.Hour, "12h": 12 * time.Hour, "1D": 24 * time.Hour,
	"M1": time.Minute, "M5": 5 * time.Minute, "M15": 15 * time.Minute, "M30": 30 * time.Minute, "H1": time.Hour,
	"H2": 2 * time.Hour, "H4": 4 * time.Hour, "H12": 12 * time.Hour, "D1": 24 * time.Hour,
}

func cryptocomRoutes(x *Exchange) map[string]http.HandlerFunc {
	// market answers for the instrument that the query names.
	ofMarket := func(result func(m *market.Market, r *http.Request) any) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			m := x.Market(r.URL.Query().Get("instrument_name"))
			if m == nil {
				provider.Respond(w, http.StatusBadRequest, cryptocomError(r, 40004, "Invalid instrument_name"))
				return
			}
			body := result(m, r)
			if body == nil {
				provider.Respond(w, http.StatusBadRequest, cryptocomError(r, 40003, "Invalid request"))
				return
			}
			provider.Respond(w, http.StatusOK, cryptocomAnswer(r, body))
		}
	}
	return map[string]http.HandlerFunc{
		"GET /public/get-instruments": func(w http.ResponseWriter, r *http.Request) {
			markets := x.Markets()
			list := make([]any, len(markets))
			for i, m := range markets {
				list[i] = map[string]any{
					"symbol": m.Symbol, "inst_type": "CCY_PAIR", "display_name": m.Base + "/" + m.Quote, "base_ccy": m.Base, "quote_ccy": m.Quote,
					"quote_decimals": m.PriceScale, "quantity_decimals": m.SizeScale, "price_tick_size": market.Exact(1, m.PriceScale).String(),
					"qty_tick_size": market.Exact(1, m.SizeScale).String(), "max_leverage": "50", "tradable": !x.Halted(m), "expiry_timestamp_ms": 0,
					"beta_product": false, "margin_buy_enabled": false, "margin_sell_enabled": false,
				}
			}
			provider.Respond(w, http.StatusOK, cryptocomAnswer(r, map[string]any{"data": list}))
		},
		"GET /public/get-tickers": func(w http.ResponseWriter, r *http.Request) {
			rows := []json.RawMessage{}
			asked := r.URL.Query().Get("instrument_name")
			for _, m := range x.Quoted(x.Markets()) {
				if asked == "" || asked == m.Symbol {
					rows = append(rows, cryptocomTicker(nil, m, m.State(x.Now())))
				}
			}
			provider.Respond(w, http.StatusOK, cryptocomAnswer(r, map[string]any{"data": rows}))
		},
		"GET /public/get-trades": ofMarket(func(m *market.Market, r *http.Request) any {
			n, err := strconv.Atoi(r.URL.Query().Get("count"))
			if err != nil {
				n = 25
			}
			trades := m.Trades(x.Now(), min(max(n, 1), 150))
			rows := make([]json.RawMessage, len(trades))
			for i, t := range trades {
				rows[len(rows)-1-i] = cryptocomTrade(nil, m, t)
			}
			return map[string]any{"data": rows}
		}),
		"GET /public/get-candlestick": ofMarket(func(m *market.Market, r *http.Request) any { return cryptocomCandles(x, m, r) }),
	}
}

// cryptocomCandles are at most 300 that start in [start_ts, end_ts), the oldest first. nil is an unknown timeframe.
func cryptocomCandles(x *Exchange, m *market.Market, r *http.Request) any {
	query := r.URL.Query()
	name := query.Get("timeframe")
	if name == "" {
		name = "M1"
	}
	interval := cryptocomIntervals[name]
	n, err := strconv.Atoi(query.Get("count"))
	if err != nil {
		n = 25
	}
	n = min(max(n, 1), 300)
	to, ok := millis(query.Get("end_ts"), x.Now())
	from, also := millis(query.Get("start_ts"), to.Add(-time.Duration(n)*interval))
	if interval == 0 || !ok || !also {
		return nil
	}
	if oldest := to.Add(-time.Duration(n) * interval); from.Before(oldest) {
		from = oldest
	}
	rows := []any{}
	for _, c := range m.Candles(from, to, x.Now(), interval) {
		rows = append(rows, map[string]any{
			"o": c.Open.String(), "h": c.High.String(), "l": c.Low.String(), "c": c.Close.String(), "v": c.Volume.String(), "t": c.Start / 1e6,
		})
	}
	return map[string]any{"interval": name, "data": rows, "instrument_name": m.Symbol}
}
