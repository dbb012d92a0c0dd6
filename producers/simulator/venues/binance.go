package venues

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/marketlog/marketlog/producers/simulator/market"
	"github.com/marketlog/marketlog/producers/simulator/provider"
)

// binance is Binance's spot market:
//
//	feed    https://developers.binance.com/docs/binance-spot-api-docs/web-socket-streams (streams by the URL and by
//	        SUBSCRIBE; a ping every 20 s, a minute for the pong; 5 messages a second, 1,024 streams a connection,
//	        300 connects in 5 minutes, 24 hours)
//	limits  https://developers.binance.com/docs/binance-spot-api-docs/rest-api/limits (6,000 weight a minute)
//	http    https://developers.binance.com/docs/binance-spot-api-docs/rest-api/market-data-endpoints
func binance() Venue {
	return Venue{
		Slug: "binance", Share: 2,
		Quotes:        []QuoteAsset{{"USDT", 320}, {"USDC", 60}, {"FDUSD", 15}, {"BTC", 60}, {"ETH", 20}, {"EUR", 25}, {"TRY", 20}},
		Fiats:         []string{"EUR"},
		Symbol:        func(base, quote string) string { return base + quote },
		PriceDecimals: 8,
		Limits: Limits{
			Connects: 300, ConnectsPer: 5 * time.Minute,
			Messages: 5, MessagesPer: time.Second,
			Topics:   1024,
			Requests: 6000, RequestsPer: time.Minute,
			Life: 24 * time.Hour,
		},
		Routes: binanceRoutes,
		Weight: binanceWeight,
		Throttled: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "1")
			provider.Respond(w, http.StatusTooManyRequests, binanceError{-1003, "Too much request weight used; current limit is 6000 request weight " +
				"per 1 MINUTE. Please use WebSocket Streams for live updates to avoid polling the API."})
		},
		Feed:      "/stream",
		Open:      binanceOpen,
		Receive:   binanceReceive,
		PingEvery: 20 * time.Second, PongWithin: time.Minute,
		Channels: map[string]Channel{
			"trade":      {Trade: binanceTrade, Personal: binanceRaw},
			"aggTrade":   {Trade: binanceAggregate, Personal: binanceRaw},
			"ticker":     {State: binanceTicker, Personal: binanceRaw},
			"miniTicker": {State: binanceMiniTicker, Personal: binanceRaw},
			"bookTicker": {State: binanceBookTicker, Personal: binanceRaw},
		},
	}
}

// binanceError is what the HTTP interface answers, and a part of what the feed does.
type binanceError struct {
	Code    int    `json:"code"`
	Message string `json:"msg"`
}

// binanceSession is what a connection may set.
type binanceSession struct {
	// combined events name their stream.
	combined bool
}

// binanceOpen subscribes to the streams that the URL names: /ws/<stream>/<stream>, /stream?streams=<stream>/<stream>.
func binanceOpen(c *Conn) {
	path := strings.TrimPrefix(c.Request.URL.Path, "/"+c.Exchange().venue.Slug)
	session := &binanceSession{combined: strings.HasPrefix(path, "/stream")}
	c.Session = session
	list := strings.Trim(strings.TrimPrefix(path, "/ws"), "/")
	if session.combined {
		list = c.Request.URL.Query().Get("streams")
	}
	for _, name := range strings.Split(list, "/") {
		if channel, m, ok := binanceStream(c.Exchange(), name); ok && m != nil && !c.Subscribe(channel, m) {
			return
		}
	}
}

// binanceStream finds what a stream is about. The venue takes any symbol, and ignores those it does not have: m is nil.
func binanceStream(x *Exchange, name string) (channel string, m *market.Market, ok bool) {
	symbol, channel, _ := strings.Cut(name, "@")
	_, ok = x.venue.Channels[channel]
	if symbol == strings.ToLower(symbol) {
		m = x.Market(strings.ToUpper(symbol))
	}
	return channel, m, ok
}

func binanceReceive(c *Conn, message []byte) {
	var request struct {
		Method string            `json:"method"`
		Params []json.RawMessage `json:"params"`
		ID     json.RawMessage   `json:"id"`
	}
	refuse := func(code int, why string) {
		b, _ := json.Marshal(struct {
			Error binanceError    `json:"error"`
			ID    json.RawMessage `json:"id,omitempty"`
		}{binanceError{code, why}, request.ID})
		c.Send(b)
	}
	answer := func(result any) {
		b, _ := json.Marshal(struct {
			Result any             `json:"result"`
			ID     json.RawMessage `json:"id"`
		}{result, request.ID})
		c.Send(b)
	}
	if err := json.Unmarshal(message, &request); err != nil {
		refuse(3, "Invalid JSON: expected value at line 1 column 1")
		return
	}
	if len(request.ID) == 0 || request.ID[0] == '{' || request.ID[0] == '[' {
		request.ID = nil
		refuse(2, "Invalid request: request ID must be an unsigned integer")
		return
	}
	session := c.Session.(*binanceSession)
	switch request.Method {
	case "SUBSCRIBE", "UNSUBSCRIBE":
		binanceSubscribe(c, request.Method == "SUBSCRIBE", request.Params, func() { answer(nil) }, refuse)
	case "LIST_SUBSCRIPTIONS":
		streams := []string{}
		for channel := range c.Exchange().venue.Channels {
			for _, m := range c.Subscribed(channel) {
				streams = append(streams, strings.ToLower(m.Symbol)+"@"+channel)
			}
		}
		slices.Sort(streams)
		answer(streams)
	case "SET_PROPERTY", "GET_PROPERTY":
		var name string
		switch set := request.Method == "SET_PROPERTY"; {
		case len(request.Params) == 0 || json.Unmarshal(request.Params[0], &name) != nil:
			refuse(2, "Invalid request: property name must be a string")
		case name != "combined":
			refuse(0, "Unknown property")
		case !set:
			answer(session.combined)
		case len(request.Params) != 2 || json.Unmarshal(request.Params[1], &session.combined) != nil:
			refuse(1, "Invalid value type: expected Boolean")
		default:
			answer(nil)
		}
	default:
		refuse(2, "Invalid request: unknown variant `"+request.Method+"`, expected one of `SUBSCRIBE`, `UNSUBSCRIBE`, "+
			"`LIST_SUBSCRIPTIONS`, `SET_PROPERTY`, `GET_PROPERTY` at line 1 column 28")
	}
}

// binanceSubscribe takes or drops all streams of a request, or none if one has no meaning.
func binanceSubscribe(c *Conn, subscribe bool, params []json.RawMessage, done func(), refuse func(int, string)) {
	type stream struct {
		channel string
		market  *market.Market
	}
	var streams []stream
	for _, p := range params {
		var name string
		_ = json.Unmarshal(p, &name)
		channel, m, ok := binanceStream(c.Exchange(), name)
		if !ok {
			refuse(2, "Invalid request: invalid stream")
			return
		}
		if m != nil {
			streams = append(streams, stream{channel, m})
		}
	}
	for _, s := range streams {
		if !subscribe {
			c.Unsubscribe(s.channel, s.market)
		} else if !c.Subscribe(s.channel, s.market) {
			return
		}
	}
	done()
}

// binanceHead begins a combined event, up to what follows the brace of its payload.
func binanceHead(b []byte, m *market.Market, channel string) []byte {
	b = append(b, `{"stream":"`...)
	b = appendLower(b, m.Symbol)
	b = append(append(b, '@'), channel...)
	return append(b, `","data":{`...)
}

// binanceRaw is the payload of a combined event, for a connection that did not ask for more.
func binanceRaw(c *Conn, _ *market.Market, frame []byte) []byte {
	if c.Session.(*binanceSession).combined {
		return frame
	}
	_, payload, _ := bytes.Cut(frame, []byte(`","data":`))
	return payload[:len(payload)-1]
}

// binanceDecimal spells eight decimals, as the venue does with every price and size.
func binanceDecimal(b []byte, key string, d market.Decimal) []byte {
	b = append(append(append(b, `,"`...), key...), `":"`...)
	return append(d.AppendPadded(b, 8), '"')
}

func binanceNumber(b []byte, key string, n int64) []byte {
	b = append(append(append(b, `,"`...), key...), `":`...)
	return strconv.AppendInt(b, n, 10)
}

// binanceEvent begins a payload: its type, when it was sent, the symbol.
func binanceEvent(b []byte, kind string, m *market.Market, at int64) []byte {
	b = append(append(append(b, `"e":"`...), kind...), '"')
	b = binanceNumber(b, "E", at/1e6)
	return append(append(append(b, `,"s":"`...), m.Symbol...), '"')
}

func binanceTrade(b []byte, m *market.Market, t market.Trade) []byte {
	b = binanceEvent(binanceHead(b, m, "trade"), "trade", m, t.Time)
	b = binanceNumber(b, "t", t.ID)
	b = binanceDecimal(b, "p", t.Price)
	b = binanceDecimal(b, "q", t.Size)
	b = binanceNumber(b, "b", 2*t.ID)
	b = binanceNumber(b, "a", 2*t.ID+1)
	return binanceTaker(b, t)
}

func binanceAggregate(b []byte, m *market.Market, t market.Trade) []byte {
	b = binanceEvent(binanceHead(b, m, "aggTrade"), "aggTrade", m, t.Time)
	b = binanceNumber(b, "a", t.ID)
	b = binanceDecimal(b, "p", t.Price)
	b = binanceDecimal(b, "q", t.Size)
	b = binanceNumber(b, "f", t.ID)
	b = binanceNumber(b, "l", t.ID)
	return binanceTaker(b, t)
}

// binanceTaker ends a trade: when it was made, and whether the buyer had waited for it.
func binanceTaker(b []byte, t market.Trade) []byte {
	b = binanceNumber(b, "T", t.Time/1e6)
	b = append(b, `,"m":`...)
	b = strconv.AppendBool(b, !t.Buy)
	return append(b, `,"M":true}}`...)
}

func binanceTicker(b []byte, m *market.Market, s market.State) []byte {
	b = binanceEvent(binanceHead(b, m, "ticker"), "24hrTicker", m, s.Time)
	b = binanceDecimal(b, "p", binanceChange(s))
	b = append(b, `,"P":"`...)
	b = append(binancePercent(s).Append(b), '"')
	b = binanceDecimal(b, "w", binanceAverage(m, s))
	b = binanceDecimal(b, "x", s.Open)
	b = binanceDecimal(b, "c", s.Last.Price)
	b = binanceDecimal(b, "Q", s.Last.Size)
	b = binanceDecimal(b, "b", s.Bid)
	b = binanceDecimal(b, "B", s.BidSize)
	b = binanceDecimal(b, "a", s.Ask)
	b = binanceDecimal(b, "A", s.AskSize)
	b = binanceDay(b, s)
	b = binanceNumber(b, "O", (s.Time-market.Day)/1e6)
	b = binanceNumber(b, "C", s.Time/1e6)
	trades := binanceTrades(m)
	b = binanceNumber(b, "F", s.Last.ID-trades+1)
	b = binanceNumber(b, "L", s.Last.ID)
	b = binanceNumber(b, "n", trades)
	return append(b, "}}"...)
}

func binanceMiniTicker(b []byte, m *market.Market, s market.State) []byte {
	b = binanceEvent(binanceHead(b, m, "miniTicker"), "24hrMiniTicker", m, s.Time)
	b = binanceDecimal(b, "c", s.Last.Price)
	return append(binanceDay(b, s), "}}"...)
}

// binanceBookTicker has neither a type nor a time.
func binanceBookTicker(b []byte, m *market.Market, s market.State) []byte {
	b = append(binanceHead(b, m, "bookTicker"), `"u":`...)
	b = strconv.AppendInt(b, s.Seq, 10)
	b = append(append(append(b, `,"s":"`...), m.Symbol...), '"')
	b = binanceDecimal(b, "b", s.Bid)
	b = binanceDecimal(b, "B", s.BidSize)
	b = binanceDecimal(b, "a", s.Ask)
	b = binanceDecimal(b, "A", s.AskSize)
	return append(b, "}}"...)
}

// binanceDay is what was traded in 24 hours: open, high, low, volume in the base and in the quote.
func binanceDay(b []byte, s market.State) []byte {
	b = binanceDecimal(b, "o", s.Open)
	b = binanceDecimal(b, "h", s.High)
	b = binanceDecimal(b, "l", s.Low)
	b = binanceDecimal(b, "v", s.Volume)
	return binanceDecimal(b, "q", s.QuoteVolume)
}

func binanceChange(s market.State) market.Decimal {
	return market.Exact(s.Last.Price.Units-s.Open.Units, s.Open.Scale)
}

func binancePercent(s market.State) market.Decimal {
	return market.Round(100*(s.Last.Price.Float()/s.Open.Float()-1), 3)
}

func binanceAverage(m *market.Market, s market.State) market.Decimal {
	return m.Price((s.High.Float() + s.Low.Float() + s.Last.Price.Float()) / 3)
}

// binanceTrades is how many are made in a day.
func binanceTrades(m *market.Market) int64 { return m.TradesPerDay() }

// binanceIntervals are the kinds of candles, but for months; weeks begin on Mondays.
var binanceIntervals = map[string]time.Duration{
	"1m": time.Minute, "3m": 3 * time.Minute, "5m": 5 * time.Minute, "15m": 15 * time.Minute, "30m": 30 * time.Minute,
	"1h": time.Hour, "2h": 2 * time.Hour, "4h": 4 * time.Hour, "6h": 6 * time.Hour, "8h": 8 * time.Hour, "12h": 12 * time.Hour,
	"1d": 24 * time.Hour, "3d": 3 * 24 * time.Hour,
}

// binanceWeight is what the documentation says that a request takes.
func binanceWeight(r *http.Request) int {
	query := r.URL.Query()
	named := 0
	if query.Get("symbol") != "" {
		named = 1
	} else if list := query.Get("symbols"); list != "" {
		named = strings.Count(list, ",") + 1
	}
	switch r.URL.Path {
	case "/api/v3/exchangeInfo":
		return 20
	case "/api/v3/trades":
		return 25
	case "/api/v3/klines":
		return 2
	case "/api/v3/ticker/24hr":
		switch {
		case named == 0 || named > 100:
			return 80
		case named > 20:
			return 40
		}
		return 2
	case "/api/v3/ticker/price", "/api/v3/ticker/bookTicker":
		if named == 1 {
			return 2
		}
		return 4
	}
	return 1
}

func binanceRoutes(x *Exchange) map[string]http.HandlerFunc {
	refuse := func(w http.ResponseWriter, code int, why string) {
		provider.Respond(w, http.StatusBadRequest, binanceError{code, why})
	}
	// market answers for the symbol that the query names.
	ofMarket := func(answer func(w http.ResponseWriter, m *market.Market, r *http.Request)) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			symbol := r.URL.Query().Get("symbol")
			switch m := x.Market(symbol); {
			case m != nil:
				answer(w, m, r)
			case symbol == "":
				refuse(w, -1102, "Mandatory parameter 'symbol' was not sent, was empty/null, or malformed.")
			default:
				refuse(w, -1121, "Invalid symbol.")
			}
		}
	}
	// rows answers with one row for a symbol, with a list for several and for none, which means all.
	rows := func(row func(m *market.Market) any) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			query := r.URL.Query()
			if query.Get("symbol") != "" {
				ofMarket(func(w http.ResponseWriter, m *market.Market, _ *http.Request) {
					provider.Respond(w, http.StatusOK, row(m))
				})(w, r)
				return
			}
			markets, ok := binanceNamed(x, query.Get("symbols"))
			if !ok {
				refuse(w, -1121, "Invalid symbol.")
				return
			}
			markets = x.Quoted(markets)
			list := make([]any, len(markets))
			for i, m := range markets {
				list[i] = row(m)
			}
			provider.Respond(w, http.StatusOK, list)
		}
	}
	return map[string]http.HandlerFunc{
		"GET /api/v3/ping": func(w http.ResponseWriter, _ *http.Request) { provider.Respond(w, http.StatusOK, struct{}{}) },
		"GET /api/v3/time": func(w http.ResponseWriter, _ *http.Request) {
			provider.Respond(w, http.StatusOK, map[string]int64{"serverTime": x.Now().UnixMilli()})
		},
		"GET /api/v3/exchangeInfo": func(w http.ResponseWriter, r *http.Request) {
			list := r.URL.Query().Get("symbols")
			if symbol := r.URL.Query().Get("symbol"); symbol != "" {
				list = "[" + strconv.Quote(symbol) + "]"
			}
			markets, ok := binanceNamed(x, list)
			if !ok {
				refuse(w, -1121, "Invalid symbol.")
				return
			}
			provider.Respond(w, http.StatusOK, binanceListings(x, markets))
		},
		"GET /api/v3/ticker/24hr": rows(func(m *market.Market) any { return binanceHTTPTicker(m, m.State(x.Now())) }),
		"GET /api/v3/ticker/price": rows(func(m *market.Market) any {
			return map[string]string{"symbol": m.Symbol, "price": m.State(x.Now()).Last.Price.Padded(8)}
		}),
		"GET /api/v3/ticker/bookTicker": rows(func(m *market.Market) any {
			s := m.State(x.Now())
			return map[string]string{
				"symbol": m.Symbol, "bidPrice": s.Bid.Padded(8), "bidQty": s.BidSize.Padded(8), "askPrice": s.Ask.Padded(8), "askQty": s.AskSize.Padded(8),
			}
		}),
		"GET /api/v3/trades": ofMarket(func(w http.ResponseWriter, m *market.Market, r *http.Request) {
			limit, ok := binanceLimit(r)
			if !ok {
				refuse(w, -1130, "Data sent for parameter 'limit' is not valid.")
				return
			}
			list := make([]any, limit)
			for i, t := range m.Trades(x.Now(), limit) {
				list[i] = map[string]any{
					"id": t.ID, "price": t.Price.Padded(8), "qty": t.Size.Padded(8), "quoteQty": market.Round(t.Price.Float()*t.Size.Float(), 8).String(),
					"time": t.Time / 1e6, "isBuyerMaker": !t.Buy, "isBestMatch": true,
				}
			}
			provider.Respond(w, http.StatusOK, list)
		}),
		"GET /api/v3/klines": ofMarket(func(w http.ResponseWriter, m *market.Market, r *http.Request) { binanceCandles(x, w, m, r, refuse) }),
	}
}

// binanceNamed finds the markets of a JSON list of symbols; an empty text is all.
func binanceNamed(x *Exchange, list string) (markets []*market.Market, ok bool) {
	if list == "" {
		return x.Markets(), true
	}
	var symbols []string
	if err := json.Unmarshal([]byte(list), &symbols); err != nil || len(symbols) == 0 {
		return nil, false
	}
	for _, symbol := range symbols {
		m := x.Market(symbol)
		if m == nil {
			return nil, false
		}
		markets = append(markets, m)
	}
	return markets, true
}

// binanceLimit is how many rows are requested: 500 by default, 1,000 at most.
func binanceLimit(r *http.Request) (n int, ok bool) {
	text := r.URL.Query().Get("limit")
	if text == "" {
		return 500, true
	}
	n, err := strconv.Atoi(text)
	return min(n, 1000), err == nil && n > 0
}

func binanceListings(x *Exchange, markets []*market.Market) any {
	limit := func(kind, interval string, number, limit int) any {
		return map[string]any{"rateLimitType": kind, "interval": interval, "intervalNum": number, "limit": limit}
	}
	list := make([]any, len(markets))
	for i, m := range markets {
		tick, step := market.Exact(1, m.PriceScale).Padded(8), market.Exact(1, m.SizeScale).Padded(8)
		list[i] = map[string]any{
			"symbol": m.Symbol, "status": x.Status(m, "TRADING", "BREAK"), "baseAsset": m.Base, "baseAssetPrecision": 8, "quoteAsset": m.Quote, "quotePrecision": 8,
			"quoteAssetPrecision": 8, "baseCommissionPrecision": 8, "quoteCommissionPrecision": 8,
			"orderTypes":     []string{"LIMIT", "LIMIT_MAKER", "MARKET", "STOP_LOSS", "STOP_LOSS_LIMIT", "TAKE_PROFIT", "TAKE_PROFIT_LIMIT"},
			"icebergAllowed": true, "ocoAllowed": true, "otoAllowed": true, "quoteOrderQtyMarketAllowed": true, "allowTrailingStop": true,
			"cancelReplaceAllowed": true, "isSpotTradingAllowed": true, "isMarginTradingAllowed": true,
			"filters": []any{
				map[string]any{"filterType": "PRICE_FILTER", "minPrice": tick, "maxPrice": "922327.00000000", "tickSize": tick},
				map[string]any{"filterType": "LOT_SIZE", "minQty": step, "maxQty": "100000.00000000", "stepSize": step},
				map[string]any{"filterType": "ICEBERG_PARTS", "limit": 10},
				map[string]any{"filterType": "MARKET_LOT_SIZE", "minQty": "0.00000000", "maxQty": "873.90727776", "stepSize": "0.00000000"},
				map[string]any{
					"filterType": "NOTIONAL", "minNotional": "5.00000000", "applyMinToMarket": true, "maxNotional": "9000000.00000000",
					"applyMaxToMarket": false, "avgPriceMins": 5,
				},
				map[string]any{"filterType": "MAX_NUM_ORDERS", "maxNumOrders": 200},
				map[string]any{"filterType": "MAX_NUM_ALGO_ORDERS", "maxNumAlgoOrders": 5},
			},
			"permissions": []string{}, "permissionSets": [][]string{{"SPOT", "MARGIN"}}, "defaultSelfTradePreventionMode": "EXPIRE_MAKER",
			"allowedSelfTradePreventionModes": []string{"EXPIRE_TAKER", "EXPIRE_MAKER", "EXPIRE_BOTH"},
		}
	}
	return map[string]any{
		"timezone": "UTC", "serverTime": x.Now().UnixMilli(), "exchangeFilters": []any{}, "symbols": list,
		"rateLimits": []any{
			limit("REQUEST_WEIGHT", "MINUTE", 1, 6000), limit("ORDERS", "SECOND", 10, 100), limit("ORDERS", "DAY", 1, 200_000),
			limit("RAW_REQUESTS", "MINUTE", 5, 61_000),
		},
	}
}

func binanceHTTPTicker(m *market.Market, s market.State) any {
	trades := binanceTrades(m)
	return map[string]any{
		"symbol": m.Symbol, "priceChange": binanceChange(s).Padded(8), "priceChangePercent": binancePercent(s).String(),
		"weightedAvgPrice": binanceAverage(m, s).Padded(8), "prevClosePrice": s.Open.Padded(8), "lastPrice": s.Last.Price.Padded(8),
		"lastQty": s.Last.Size.Padded(8), "bidPrice": s.Bid.Padded(8), "bidQty": s.BidSize.Padded(8), "askPrice": s.Ask.Padded(8),
		"askQty": s.AskSize.Padded(8), "openPrice": s.Open.Padded(8), "highPrice": s.High.Padded(8), "lowPrice": s.Low.Padded(8),
		"volume": s.Volume.Padded(8), "quoteVolume": s.QuoteVolume.Padded(8), "openTime": (s.Time - market.Day) / 1e6, "closeTime": s.Time / 1e6,
		"firstId": s.Last.ID - trades + 1, "lastId": s.Last.ID, "count": trades,
	}
}

// binanceCandles are at most 1,000, 500 by default, that start in [startTime, endTime], the oldest first: from startTime on
// if it is given, else the newest: start, open, high, low, close, volume, end, volume in the quote, trades, what takers
// bought in the base and in the quote, and a number without meaning.
func binanceCandles(x *Exchange, w http.ResponseWriter, m *market.Market, r *http.Request, refuse func(http.ResponseWriter, int, string)) {
	query := r.URL.Query()
	interval, known := binanceIntervals[query.Get("interval")]
	limit, ok := binanceLimit(r)
	switch {
	case !known:
		refuse(w, -1120, "Invalid interval.")
		return
	case !ok:
		refuse(w, -1130, "Data sent for parameter 'limit' is not valid.")
		return
	}
	now := x.Now()
	to, ok := millis(query.Get("endTime"), now)
	to = clamp(to, now)
	length := time.Duration(limit) * interval
	// The newest start is at or before the end, and the oldest limit-1 before that.
	newest := time.Unix(0, market.FloorDiv(to.UnixNano(), int64(interval))*int64(interval))
	from, also := millis(query.Get("startTime"), newest.Add(interval-length))
	if !ok || !also {
		refuse(w, -1100, "Illegal characters found in a parameter.")
		return
	}
	if from = clamp(from, now); to.Sub(from) > length {
		to = from.Add(length - time.Nanosecond)
	}
	b := []byte{'['}
	text := func(d market.Decimal) { b = append(d.AppendPadded(append(b, `,"`...), 8), '"') }
	for _, c := range m.Candles(from, to.Add(time.Nanosecond), x.Now(), interval) {
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(append(b, '['), c.Start/1e6, 10)
		for _, d := range [...]market.Decimal{c.Open, c.High, c.Low, c.Close, c.Volume} {
			text(d)
		}
		b = strconv.AppendInt(append(b, ','), (c.Start+int64(interval))/1e6-1, 10)
		text(c.QuoteVolume)
		b = strconv.AppendInt(append(b, ','), c.Trades, 10)
		// Takers buy about half.
		share := int64(400 + m.Seed.At(c.Start)%200)
		text(market.Exact(c.Volume.Units/1000*share, c.Volume.Scale))
		text(market.Exact(c.QuoteVolume.Units/1000*share, c.QuoteVolume.Scale))
		b = append(b, `,"0"]`...)
	}
	provider.Respond(w, http.StatusOK, json.RawMessage(append(b, ']')))
}
