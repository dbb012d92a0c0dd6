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

// bitget is Bitget's spot market, by version 2 of its interface:
//
//	feed    https://www.bitget.com/api-doc/common/websocket-intro (300 connects in 5 minutes; on a connection 10
//	        messages a second of 4,096 bytes, 240 subscriptions an hour, 1,000 channels; two minutes without "ping")
//	trades  https://www.bitget.com/api-doc/spot/websocket/public/Trades-Channel
//	ticker  https://www.bitget.com/api-doc/spot/websocket/public/Tickers-Channel
//	http    https://www.bitget.com/api-doc/spot/market/Get-Symbols, …/Get-Tickers, …/Get-Recent-Trades, …/Get-Candle-Data,
//	        …/Get-History-Candle-Data (20 requests a second each, trades 10)
func bitget() Venue {
	return Venue{
		Slug: "bitget", Share: 0.7,
		Quotes: []QuoteAsset{{"USDT", 280}, {"USDC", 40}, {"BTC", 12}, {"EUR", 10}},
		Symbol: func(base, quote string) string { return base + quote },
		Limits: Limits{
			Connects: 300, ConnectsPer: 5 * time.Minute,
			Messages: 10, MessagesPer: time.Second,
			Topics: 1000,
			Idle:   2 * time.Minute,
		},
		Routes: bitgetRoutes,
		Throttled: func(w http.ResponseWriter, _ *http.Request) {
			provider.Respond(w, http.StatusTooManyRequests, map[string]string{"code": "429", "msg": "Too Many Requests"})
		},
		Open:    func(c *Conn) { c.Session = provider.NewBucket(240, time.Hour) },
		Receive: bitgetReceive,
		Channels: map[string]Channel{
			"trade": {Trade: func(b []byte, m *market.Market, t market.Trade) []byte {
				return bitgetTrades(b, "update", m, t.Time, t)
			}},
			"ticker": {State: bitgetTicker},
		},
	}
}

// bitgetArg names a channel in requests and in all answers.
type bitgetArg struct {
	Type    string `json:"instType"`
	Channel string `json:"channel"`
	Symbol  string `json:"instId"`
}

// bitgetMessage is how many bytes a client may send at once.
const bitgetMessage = 4096

func bitgetReceive(c *Conn, message []byte) {
	if string(message) == "ping" {
		c.Send([]byte("pong"))
		return
	}
	var request struct {
		Op   string      `json:"op"`
		Args []bitgetArg `json:"args"`
	}
	refuse := func(arg *bitgetArg, code int, why string) {
		b, _ := json.Marshal(struct {
			Event   string     `json:"event"`
			Arg     *bitgetArg `json:"arg,omitempty"`
			Code    int        `json:"code"`
			Message string     `json:"msg"`
			Op      string     `json:"op,omitempty"`
		}{"error", arg, code, why, request.Op})
		c.Send(b)
	}
	err := json.Unmarshal(message, &request)
	switch {
	case err != nil || len(message) > bitgetMessage:
		refuse(nil, 30002, "Illegal request")
		return
	case request.Op != "subscribe" && request.Op != "unsubscribe":
		refuse(nil, 30003, "Invalid op")
		return
	case !c.Session.(*provider.Bucket).Allow(c.Exchange().Now()):
		refuse(nil, 30007, "request over limit, connection close")
		c.Close(websocket.StatusPolicyViolation, "request over limit")
		return
	}
	for _, arg := range request.Args {
		m := c.Exchange().Market(arg.Symbol)
		if _, known := c.Exchange().venue.Channels[arg.Channel]; !known || m == nil || !strings.EqualFold(arg.Type, "SPOT") {
			refuse(&arg, 30001, "instType:"+arg.Type+",channel:"+arg.Channel+",instId:"+arg.Symbol+" doesn't exist")
			continue
		}
		if request.Op == "unsubscribe" {
			c.Unsubscribe(arg.Channel, m)
		} else if !c.Subscribe(arg.Channel, m) {
			return
		}
		b, _ := json.Marshal(struct {
			Event string    `json:"event"`
			Arg   bitgetArg `json:"arg"`
		}{request.Op, arg})
		c.Send(b)
		switch {
		case request.Op == "unsubscribe":
		case arg.Channel == "ticker":
			c.Send(bitgetTicker(nil, m, m.State(c.Now())))
		default:
			c.Send(bitgetTrades(nil, "snapshot", m, c.Now().UnixNano(), m.Trades(c.Now(), bitgetSnapshot)...))
		}
	}
}

// bitgetSnapshot is how many trades a new subscriber is sent.
const bitgetSnapshot = 50

// bitgetHead begins a message, up to the bracket of its rows.
func bitgetHead(b []byte, action, channel string, m *market.Market) []byte {
	b = append(append(b, `{"action":"`...), action...)
	b = append(append(b, `","arg":{"instType":"SPOT","channel":"`...), channel...)
	b = append(append(b, `","instId":"`...), m.Symbol...)
	return append(b, `"},"data":[`...)
}

// bitgetEnd comes after the last row: when the message was sent.
func bitgetEnd(b []byte, at int64) []byte {
	b = append(b, `],"ts":`...)
	return append(strconv.AppendInt(b, at/1e6, 10), '}')
}

// bitgetTrades lists the newest first.
func bitgetTrades(b []byte, action string, m *market.Market, at int64, trades ...market.Trade) []byte {
	b = bitgetHead(b, action, "trade", m)
	for i := range trades {
		t := trades[len(trades)-1-i]
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"ts":"`...)
		b = strconv.AppendInt(b, t.Time/1e6, 10)
		b = append(bitgetTrade(append(b, '"'), t), `,"tradeId":"`...)
		b = append(append(b, bitgetID(t)...), `"}`...)
	}
	return bitgetEnd(b, at)
}

// bitgetTrade is what a trade of the feed and of the HTTP interface have in common.
func bitgetTrade(b []byte, t market.Trade) []byte {
	b = bitgetDecimal(b, "price", t.Price)
	b = bitgetDecimal(b, "size", t.Size)
	return append(append(append(b, `,"side":"`...), side(t.Buy)...), '"')
}

// bitgetID is a number of 19 digits.
func bitgetID(t market.Trade) string { return strconv.FormatInt(1_200_000_000_000_000_000+t.ID, 10) }

func bitgetDecimal(b []byte, key string, d market.Decimal) []byte {
	b = append(append(append(b, `,"`...), key...), `":"`...)
	return append(d.AppendShort(b), '"')
}

func bitgetTicker(b []byte, m *market.Market, s market.State) []byte {
	b = append(append(bitgetHead(b, "snapshot", "ticker", m), `{"instId":"`...), m.Symbol...)
	b = bitgetDecimal(append(b, '"'), "open24h", s.Open)
	b = bitgetDay(b, s)
	return bitgetEnd(append(b, '}'), s.Time)
}

// bitgetDay is what the tickers of the feed and of the HTTP interface have in common.
func bitgetDay(b []byte, s market.State) []byte {
	change := market.Round(s.Last.Price.Float()/s.Open.Float()-1, 5)
	b = bitgetDecimal(b, "lastPr", s.Last.Price)
	b = bitgetDecimal(b, "high24h", s.High)
	b = bitgetDecimal(b, "low24h", s.Low)
	b = bitgetDecimal(b, "change24h", change)
	b = bitgetDecimal(b, "bidPr", s.Bid)
	b = bitgetDecimal(b, "askPr", s.Ask)
	b = bitgetDecimal(b, "bidSz", s.BidSize)
	b = bitgetDecimal(b, "askSz", s.AskSize)
	b = bitgetDecimal(b, "baseVolume", s.Volume)
	b = bitgetDecimal(b, "quoteVolume", s.QuoteVolume)
	b = bitgetDecimal(b, "openUtc", s.Open)
	b = bitgetDecimal(b, "changeUtc24h", change)
	b = append(b, `,"ts":"`...)
	return append(strconv.AppendInt(b, s.Time/1e6, 10), '"')
}

// bitgetIntervals are the kinds of candles, but for weeks and months. From six hours on they begin by the time of Hong
// Kong, unless "utc" follows them.
var bitgetIntervals = map[string]time.Duration{
	"1min": time.Minute, "3min": 3 * time.Minute, "5min": 5 * time.Minute, "15min": 15 * time.Minute, "30min": 30 * time.Minute,
	"1h": time.Hour, "4h": 4 * time.Hour, "6h": 6 * time.Hour, "12h": 12 * time.Hour, "1day": 24 * time.Hour, "3day": 3 * 24 * time.Hour,
	"6Hutc": 6 * time.Hour, "12Hutc": 12 * time.Hour, "1Dutc": 24 * time.Hour, "3Dutc": 3 * 24 * time.Hour,
}

func bitgetRoutes(x *Exchange) map[string]http.HandlerFunc {
	answer := func(w http.ResponseWriter, status int, code, why string, rows any) {
		provider.Respond(w, status, struct {
			Code    string `json:"code"`
			Message string `json:"msg"`
			Time    int64  `json:"requestTime"`
			Rows    any    `json:"data"`
		}{code, why, x.Now().UnixMilli(), rows})
	}
	// list answers for the market that the query names, for all if it may and does not.
	list := func(perSecond int, all bool, rows func(markets []*market.Market, r *http.Request) (rows []json.RawMessage, wrong string)) http.HandlerFunc {
		return x.Limited(perSecond, time.Second, func(w http.ResponseWriter, r *http.Request) {
			markets, symbol := x.Markets(), r.URL.Query().Get("symbol")
			if symbol != "" || !all {
				m := x.Market(symbol)
				if m == nil {
					answer(w, http.StatusBadRequest, "40034", "Parameter "+symbol+" does not exist", nil)
					return
				}
				markets = []*market.Market{m}
			}
			list, wrong := rows(markets, r)
			if wrong != "" {
				answer(w, http.StatusBadRequest, "400172", "Parameter "+wrong+" error", nil)
				return
			}
			answer(w, http.StatusOK, "00000", "success", list)
		})
	}
	// each answers with a row of each market that has one.
	each := func(row func(m *market.Market) json.RawMessage) func([]*market.Market, *http.Request) ([]json.RawMessage, string) {
		return func(markets []*market.Market, _ *http.Request) ([]json.RawMessage, string) {
			rows := []json.RawMessage{}
			for _, m := range markets {
				if r := row(m); r != nil {
					rows = append(rows, r)
				}
			}
			return rows, ""
		}
	}
	return map[string]http.HandlerFunc{
		"GET /api/v2/public/time": x.Limited(20, time.Second, func(w http.ResponseWriter, _ *http.Request) {
			answer(w, http.StatusOK, "00000", "success", map[string]string{"serverTime": strconv.FormatInt(x.Now().UnixMilli(), 10)})
		}),
		"GET /api/v2/spot/public/symbols": list(20, true, each(func(m *market.Market) json.RawMessage { return bitgetListing(x, m) })),
		"GET /api/v2/spot/market/tickers": list(20, true, each(func(m *market.Market) json.RawMessage {
			if !x.Quotes(m) {
				return nil
			}
			s := m.State(x.Now())
			b := append(append([]byte(`{"symbol":"`), m.Symbol...), '"')
			b = bitgetDecimal(b, "open", s.Open)
			b = bitgetDecimal(b, "usdtVolume", s.QuoteVolume)
			return append(bitgetDay(b, s), '}')
		})),
		"GET /api/v2/spot/market/fills": list(10, false, func(markets []*market.Market, r *http.Request) ([]json.RawMessage, string) {
			return bitgetFills(x, markets[0], r)
		}),
		"GET /api/v2/spot/market/candles": list(20, false, func(markets []*market.Market, r *http.Request) ([]json.RawMessage, string) {
			return bitgetCandles(x, markets[0], r, 1000)
		}),
		"GET /api/v2/spot/market/history-candles": list(20, false, func(markets []*market.Market, r *http.Request) ([]json.RawMessage, string) {
			if r.URL.Query().Get("endTime") == "" {
				return nil, "endTime"
			}
			return bitgetCandles(x, markets[0], r, 200)
		}),
	}
}

func bitgetListing(x *Exchange, m *market.Market) json.RawMessage {
	b, _ := json.Marshal(map[string]string{
		"symbol": m.Symbol, "baseCoin": m.Base, "quoteCoin": m.Quote, "minTradeAmount": "0", "maxTradeAmount": "10000000000",
		"takerFeeRate": "0.002", "makerFeeRate": "0.002", "pricePrecision": strconv.Itoa(m.PriceScale), "quantityPrecision": strconv.Itoa(m.SizeScale),
		"quotePrecision": strconv.Itoa(min(m.PriceScale+m.SizeScale, 12)), "status": x.Status(m, "online", "halt"), "minTradeUSDT": "1", "buyLimitPriceRatio": "0.05",
		"sellLimitPriceRatio": "0.05", "areaSymbol": "no", "orderQuantity": "200", "openTime": "1532454360000", "offTime": "",
	})
	return b
}

// bitgetLimit is how many rows are requested: 100 by default.
func bitgetLimit(r *http.Request, most int) (n int, ok bool) {
	text := r.URL.Query().Get("limit")
	if text == "" {
		return 100, true
	}
	n, err := strconv.Atoi(text)
	return min(n, most), err == nil && n > 0
}

// bitgetFills are trades, the newest first.
func bitgetFills(x *Exchange, m *market.Market, r *http.Request) (rows []json.RawMessage, wrong string) {
	limit, ok := bitgetLimit(r, 500)
	if !ok {
		return nil, "limit"
	}
	rows = make([]json.RawMessage, limit)
	for i, t := range m.Trades(x.Now(), limit) {
		b := append(append([]byte(`{"symbol":"`), m.Symbol...), `","tradeId":"`...)
		b = bitgetTrade(append(append(b, bitgetID(t)...), '"'), t)
		b = append(b, `,"ts":"`...)
		rows[limit-1-i] = append(strconv.AppendInt(b, t.Time/1e6, 10), `"}`...)
	}
	return rows, ""
}

// bitgetCandles are the newest that start in [startTime, endTime), the oldest first: start, open, high, low, close, volume
// in the base, in USDT, in the quote.
func bitgetCandles(x *Exchange, m *market.Market, r *http.Request, most int) (rows []json.RawMessage, wrong string) {
	query := r.URL.Query()
	granularity := query.Get("granularity")
	interval, known := bitgetIntervals[granularity]
	limit, ok := bitgetLimit(r, most)
	switch {
	case !known:
		return nil, "granularity"
	case !ok:
		return nil, "limit"
	}
	from, ok := millis(query.Get("startTime"), time.Unix(0, 0))
	to, also := millis(query.Get("endTime"), x.Now())
	if !ok || !also {
		return nil, "startTime or endTime"
	}
	ahead := hongKong
	if strings.HasSuffix(granularity, "utc") {
		ahead = 0
	}
	candles := newestCandles(m, from, to, x.Now(), interval, ahead, limit)
	rows = make([]json.RawMessage, len(candles))
	for i, c := range candles {
		b := strconv.AppendInt([]byte(`["`), c.Start/1e6, 10)
		for _, d := range [...]market.Decimal{c.Open, c.High, c.Low, c.Close, c.Volume, c.QuoteVolume, c.QuoteVolume} {
			b = d.AppendShort(append(b, `","`...))
		}
		rows[len(rows)-1-i] = append(b, `"]`...)
	}
	return rows, ""
}
