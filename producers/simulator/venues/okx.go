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

// okx is OKX's spot market, by version 5 of its interface:
//
//	feed    https://www.okx.com/docs-v5/en/#overview-websocket (3 connects a second; 480 requests an hour on a
//	        connection, of 64 kB each; it ends after 30 s in which nothing was sent, for which there is "ping")
//	trades  https://www.okx.com/docs-v5/en/#order-book-trading-market-data-ws-trades-channel
//	ticker  https://www.okx.com/docs-v5/en/#order-book-trading-market-data-ws-tickers-channel
//	http    https://www.okx.com/docs-v5/en/#order-book-trading-market-data (most endpoints: 20 requests in 2 s)
func okx() Venue {
	return Venue{
		Slug: "okx", Share: 1,
		Quotes: []QuoteAsset{{"USDT", 280}, {"USDC", 60}, {"BTC", 25}, {"ETH", 15}, {"EUR", 25}},
		Symbol: func(base, quote string) string { return base + "-" + quote },
		Limits: Limits{
			Connects: 3, ConnectsPer: time.Second,
			Mute: 30 * time.Second, Unsubscribed: 30 * time.Second,
		},
		Routes: okxRoutes,
		Throttled: func(w http.ResponseWriter, _ *http.Request) {
			provider.Respond(w, http.StatusTooManyRequests, map[string]string{"code": "50011", "msg": "Too Many Requests"})
		},
		Open: func(c *Conn) {
			id := strconv.FormatUint(market.Mix(uint64(c.Now().UnixNano())), 16)
			c.Session = &okxSession{id: id[:min(8, len(id))], requests: provider.NewBucket(480, time.Hour)}
		},
		Receive: okxReceive,
		Channels: map[string]Channel{
			"trades":  {Trade: okxTrade},
			"tickers": {State: okxTicker},
		},
	}
}

type okxSession struct {
	id       string
	requests *provider.Bucket
}

// okxArg names a channel in requests and in all answers.
type okxArg struct {
	Channel string `json:"channel"`
	Symbol  string `json:"instId"`
}

func okxReceive(c *Conn, message []byte) {
	if string(message) == "ping" {
		c.Send([]byte("pong"))
		return
	}
	session := c.Session.(*okxSession)
	refuse := func(code, why string) {
		b, _ := json.Marshal(struct {
			Event   string `json:"event"`
			Code    string `json:"code"`
			Message string `json:"msg"`
			ID      string `json:"connId"`
		}{"error", code, why, session.id})
		c.Send(b)
	}
	var request struct {
		Op   string   `json:"op"`
		Args []okxArg `json:"args"`
	}
	err := json.Unmarshal(message, &request)
	if err != nil || len(message) > 64<<10 || request.Op != "subscribe" && request.Op != "unsubscribe" {
		refuse("60012", "Invalid request: "+string(message[:min(len(message), 200)]))
		return
	}
	if !session.requests.Allow(c.Exchange().Now()) {
		refuse("60014", "Requests too frequent")
		c.Close(websocket.StatusPolicyViolation, "Requests too frequent")
		return
	}
	for _, arg := range request.Args {
		m := c.Exchange().Market(arg.Symbol)
		if _, known := c.Exchange().venue.Channels[arg.Channel]; !known || m == nil {
			refuse("60018", "Wrong URL or channel:"+arg.Channel+",instId:"+arg.Symbol+
				" doesn't exist. Please use the correct URL, channel and parameters referring to API document.")
			continue
		}
		if request.Op == "unsubscribe" {
			c.Unsubscribe(arg.Channel, m)
		} else {
			c.Subscribe(arg.Channel, m)
		}
		b, _ := json.Marshal(struct {
			Event string `json:"event"`
			Arg   okxArg `json:"arg"`
			ID    string `json:"connId"`
		}{request.Op, arg, session.id})
		c.Send(b)
		switch {
		case request.Op == "unsubscribe":
		case arg.Channel == "tickers":
			c.Send(okxTicker(nil, m, m.State(c.Now())))
		default:
			if t, ok := repeated(m, c.Now()); ok {
				c.Send(okxTrade(nil, m, t))
			}
		}
	}
}

// okxHead begins a message with one row, up to what follows the row's brace.
func okxHead(b []byte, channel string, m *market.Market) []byte {
	b = append(append(b, `{"arg":{"channel":"`...), channel...)
	b = append(append(b, `","instId":"`...), m.Symbol...)
	return append(b, `"},"data":[{`...)
}

func okxTrade(b []byte, m *market.Market, t market.Trade) []byte {
	return append(okxTradeRow(okxHead(b, "trades", m), m, t), `,"count":"1"}]}`...)
}

// okxTradeRow is a trade's fields, without braces, as the feed and the HTTP interface have them.
func okxTradeRow(b []byte, m *market.Market, t market.Trade) []byte {
	b = append(append(b, `"instId":"`...), m.Symbol...)
	b = append(b, `","tradeId":"`...)
	b = strconv.AppendInt(b, t.ID, 10)
	b = append(b, `","px":"`...)
	b = t.Price.AppendShort(b)
	b = append(b, `","sz":"`...)
	b = t.Size.AppendShort(b)
	b = append(append(b, `","side":"`...), side(t.Buy)...)
	b = append(b, `","ts":"`...)
	b = strconv.AppendInt(b, t.Time/1e6, 10)
	return append(b, '"')
}

func okxTicker(b []byte, m *market.Market, s market.State) []byte {
	return append(okxTickerRow(okxHead(b, "tickers", m), m, s), `}]}`...)
}

// okxTickerRow is a ticker's fields, without braces. Of the volumes "vol24h" is in the base, "volCcy24h" in the quote.
func okxTickerRow(b []byte, m *market.Market, s market.State) []byte {
	b = append(append(append(b, `"instType":"SPOT","instId":"`...), m.Symbol...), '"')
	for _, field := range [...]struct {
		key   string
		value market.Decimal
	}{
		{"last", s.Last.Price},
		{"lastSz", s.Last.Size},
		{"askPx", s.Ask},
		{"askSz", s.AskSize},
		{"bidPx", s.Bid},
		{"bidSz", s.BidSize},
		{"open24h", s.Open},
		{"high24h", s.High},
		{"low24h", s.Low},
		{"sodUtc0", s.Open},
		{"sodUtc8", s.Open},
		{"volCcy24h", s.QuoteVolume},
		{"vol24h", s.Volume},
	} {
		b = append(append(append(b, `,"`...), field.key...), `":"`...)
		b = append(field.value.AppendShort(b), '"')
	}
	b = append(b, `,"ts":"`...)
	b = strconv.AppendInt(b, s.Time/1e6, 10)
	return append(b, '"')
}

// okxBars are the kinds of candles, but for weeks and months. From six hours on they begin by the time of Hong Kong,
// unless "utc" follows them.
var okxBars = map[string]time.Duration{
	"1m": time.Minute, "3m": 3 * time.Minute, "5m": 5 * time.Minute, "15m": 15 * time.Minute, "30m": 30 * time.Minute,
	"1H": time.Hour, "2H": 2 * time.Hour, "4H": 4 * time.Hour, "6H": 6 * time.Hour, "12H": 12 * time.Hour, "1D": 24 * time.Hour,
	"2D": 2 * 24 * time.Hour, "3D": 3 * 24 * time.Hour,
}

// okxAnswer wraps the rows of every answer. Refusals come with status 200.
func okxAnswer(w http.ResponseWriter, code, why string, rows any) {
	provider.Respond(w, http.StatusOK, struct {
		Code    string `json:"code"`
		Message string `json:"msg"`
		Rows    any    `json:"data"`
	}{code, why, rows})
}

func okxRoutes(x *Exchange) map[string]http.HandlerFunc {
	// market answers with the rows of the instrument that the query names.
	ofMarket := func(rows func(m *market.Market, r *http.Request) (rows []json.RawMessage, wrong string)) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			m := x.Market(r.URL.Query().Get("instId"))
			if m == nil {
				okxAnswer(w, "51001", "Instrument ID, Instrument ID code, or Spread ID doesn't exist.", []any{})
				return
			}
			list, wrong := rows(m, r)
			if wrong != "" {
				okxAnswer(w, "51000", "Parameter "+wrong+" error", []any{})
				return
			}
			okxAnswer(w, "0", "", list)
		}
	}
	// all answers with a row of each instrument; there is none of another type than SPOT.
	all := func(of func() []*market.Market, row func(m *market.Market) any) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			kind := r.URL.Query().Get("instType")
			if kind == "" {
				okxAnswer(w, "50014", "Parameter instType cannot be empty.", []any{})
				return
			}
			rows := []any{}
			for _, m := range of() {
				if kind == "SPOT" {
					rows = append(rows, row(m))
				}
			}
			okxAnswer(w, "0", "", rows)
		}
	}
	quoted := func() []*market.Market { return x.Quoted(x.Markets()) }
	ticker := func(m *market.Market) json.RawMessage {
		return append(okxTickerRow([]byte{'{'}, m, m.State(x.Now())), '}')
	}
	often := func(n int, handle http.HandlerFunc) http.HandlerFunc { return x.Limited(n, 2*time.Second, handle) }
	return map[string]http.HandlerFunc{
		"GET /api/v5/public/time": often(10, func(w http.ResponseWriter, _ *http.Request) {
			okxAnswer(w, "0", "", []any{map[string]string{"ts": strconv.FormatInt(x.Now().UnixMilli(), 10)}})
		}),
		"GET /api/v5/public/instruments": often(20, all(x.Markets, func(m *market.Market) any { return okxListing(x, m) })),
		"GET /api/v5/market/tickers":     often(20, all(quoted, func(m *market.Market) any { return ticker(m) })),
		"GET /api/v5/market/ticker": often(20, ofMarket(func(m *market.Market, _ *http.Request) ([]json.RawMessage, string) {
			return []json.RawMessage{ticker(m)}, ""
		})),
		"GET /api/v5/market/trades": often(100, ofMarket(func(m *market.Market, r *http.Request) ([]json.RawMessage, string) {
			limit, ok := okxLimit(r, 500)
			if !ok {
				return nil, "limit"
			}
			rows := make([]json.RawMessage, limit)
			for i, t := range m.Trades(x.Now(), limit) {
				rows[limit-1-i] = append(okxTradeRow([]byte{'{'}, m, t), '}')
			}
			return rows, ""
		})),
		"GET /api/v5/market/candles": often(40, ofMarket(func(m *market.Market, r *http.Request) ([]json.RawMessage, string) {
			return okxCandles(x, m, r, 300)
		})),
		"GET /api/v5/market/history-candles": often(20, ofMarket(func(m *market.Market, r *http.Request) ([]json.RawMessage, string) {
			return okxCandles(x, m, r, 100)
		})),
	}
}

// okxLimit is how many rows are requested: 100 by default.
func okxLimit(r *http.Request, most int) (n int, ok bool) {
	text := r.URL.Query().Get("limit")
	if text == "" {
		return 100, true
	}
	n, err := strconv.Atoi(text)
	return min(n, most), err == nil && n > 0
}

func okxListing(x *Exchange, m *market.Market) any {
	return map[string]string{
		"alias": "", "baseCcy": m.Base, "category": "1", "ctMult": "", "ctType": "", "ctVal": "", "ctValCcy": "", "expTime": "",
		"instId": m.Symbol, "instType": "SPOT", "lever": "10", "listTime": "1548133413000", "lotSz": market.Exact(1, m.SizeScale).String(),
		"maxIcebergSz": "9999999999", "maxLmtSz": "9999999999", "maxMktSz": "1000000", "maxStopSz": "1000000", "maxTriggerSz": "9999999999",
		"maxTwapSz": "9999999999", "minSz": market.Exact(1, m.SizeScale).String(), "optType": "", "quoteCcy": m.Quote, "settleCcy": "",
		"state": x.Status(m, "live", "suspend"), "stk": "", "tickSz": market.Exact(1, m.PriceScale).String(), "uly": "",
	}
}

// okxCandles are the newest that start after "before" and before "after", the newest first: start, open, high, low, close,
// volume in the base twice, in the quote, whether it is closed. wrong names a parameter that cannot be read.
func okxCandles(x *Exchange, m *market.Market, r *http.Request, most int) (rows []json.RawMessage, wrong string) {
	query := r.URL.Query()
	bar := query.Get("bar")
	if bar == "" {
		bar = "1m"
	}
	name, utc := strings.CutSuffix(bar, "utc")
	interval := okxBars[name]
	limit, ok := okxLimit(r, most)
	switch {
	case interval == 0 || utc && interval < 6*time.Hour:
		return nil, "bar"
	case !ok:
		return nil, "limit"
	}
	now := x.Now()
	after, ok := millis(query.Get("after"), now.Add(time.Nanosecond))
	before, also := millis(query.Get("before"), time.Unix(0, 0))
	switch {
	case !ok:
		return nil, "after"
	case !also:
		return nil, "before"
	}
	ahead := hongKong
	if utc {
		ahead = 0
	}
	rows = []json.RawMessage{}
	for _, c := range newestCandles(m, before.Add(time.Nanosecond), after, now, interval, ahead, limit) {
		closed := "0"
		if c.Start+int64(interval) <= now.UnixNano() {
			closed = "1"
		}
		b := strconv.AppendInt([]byte(`["`), c.Start/1e6, 10)
		for _, d := range [...]market.Decimal{c.Open, c.High, c.Low, c.Close, c.Volume, c.Volume, c.QuoteVolume} {
			b = d.AppendShort(append(b, `","`...))
		}
		rows = append(rows, append(append(append(b, `","`...), closed...), `"]`...))
	}
	return rows, ""
}
