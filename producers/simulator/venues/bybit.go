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

// bybit is Bybit's spot market, by version 5 of its interface:
//
//	feed    https://bybit-exchange.github.io/docs/v5/ws/connect (10 topics a request, 21,000 characters of them a
//	        connection; it ends after ten minutes in which nothing was sent; 500 connects in 5 minutes)
//	trades  https://bybit-exchange.github.io/docs/v5/websocket/public/trade
//	ticker  https://bybit-exchange.github.io/docs/v5/websocket/public/ticker
//	limits  https://bybit-exchange.github.io/docs/v5/rate-limit (600 requests in 5 s, then status 403)
//	http    https://bybit-exchange.github.io/docs/v5/market/instrument, …/tickers, …/recent-trade, …/kline
func bybit() Venue {
	return Venue{
		Slug: "bybit", Share: 0.9,
		Quotes: []QuoteAsset{{"USDT", 280}, {"USDC", 40}, {"BTC", 15}, {"EUR", 12}},
		Symbol: func(base, quote string) string { return base + quote },
		Limits: Limits{
			Connects: 500, ConnectsPer: 5 * time.Minute,
			Requests: 600, RequestsPer: 5 * time.Second,
			Mute: 10 * time.Minute,
		},
		Routes: bybitRoutes,
		Throttled: func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "access too frequent", http.StatusForbidden)
		},
		Open: func(c *Conn) {
			id := provider.AppendUUID(nil, c.Exchange().Markets()[0].Seed, c.Now().UnixNano())
			c.Session = &bybitSession{id: string(id)}
		},
		Receive: bybitReceive,
		Channels: map[string]Channel{
			"publicTrade": {Trade: bybitTrade},
			"tickers":     {State: bybitTicker},
		},
	}
}

type bybitSession struct {
	id string
	// characters of all topics that were asked for.
	characters int
}

const (
	// bybitTopics is how many topics a request may name.
	bybitTopics = 10
	// bybitCharacters is how long the topics of a connection may be together.
	bybitCharacters = 21_000
)

func bybitReceive(c *Conn, message []byte) {
	session := c.Session.(*bybitSession)
	var request struct {
		ID   string   `json:"req_id"`
		Op   string   `json:"op"`
		Args []string `json:"args"`
	}
	answer := func(success bool, text string) {
		b, _ := json.Marshal(struct {
			Success bool   `json:"success"`
			Message string `json:"ret_msg"`
			Conn    string `json:"conn_id"`
			ID      string `json:"req_id"`
			Op      string `json:"op"`
		}{success, text, session.id, request.ID, request.Op})
		c.Send(b)
	}
	if err := json.Unmarshal(message, &request); err != nil {
		answer(false, "Request not authorized")
		return
	}
	switch {
	case request.Op == "ping":
		answer(true, "pong")
		return
	case request.Op != "subscribe" && request.Op != "unsubscribe":
		answer(false, "Invalid op")
		return
	case len(request.Args) > bybitTopics:
		answer(false, "args size >"+strconv.Itoa(bybitTopics))
		return
	}
	type wanted struct {
		channel string
		market  *market.Market
	}
	var topics []wanted
	for _, name := range request.Args {
		channel, symbol, _ := strings.Cut(name, ".")
		m := c.Exchange().Market(symbol)
		if _, known := c.Exchange().venue.Channels[channel]; !known || m == nil {
			answer(false, "Invalid symbol :["+name+"]")
			return
		}
		topics = append(topics, wanted{channel, m})
		if request.Op == "subscribe" {
			session.characters += len(name)
		}
	}
	if session.characters > bybitCharacters {
		c.Close(websocket.StatusPolicyViolation, "args too long")
		return
	}
	answer(true, request.Op)
	for _, t := range topics {
		if request.Op == "unsubscribe" {
			c.Unsubscribe(t.channel, t.market)
			continue
		}
		c.Subscribe(t.channel, t.market)
		if t.channel == "tickers" {
			c.Send(bybitTicker(nil, t.market, t.market.State(c.Now())))
		}
	}
}

func bybitTrade(b []byte, m *market.Market, t market.Trade) []byte {
	b = append(append(append(b, `{"topic":"publicTrade.`...), m.Symbol...), `","ts":`...)
	b = strconv.AppendInt(b, t.Time/1e6, 10)
	b = append(b, `,"type":"snapshot","data":[{"i":"`...)
	b = append(b, bybitID(t)...)
	b = append(b, `","T":`...)
	b = strconv.AppendInt(b, t.Time/1e6, 10)
	b = append(b, `,"p":"`...)
	b = t.Price.AppendShort(b)
	b = append(b, `","v":"`...)
	b = t.Size.AppendShort(b)
	b = append(append(b, `","S":"`...), bybitSide(t.Buy)...)
	b = append(append(b, `","s":"`...), m.Symbol...)
	return append(b, `","BT":false}]}`...)
}

func bybitSide(buy bool) string {
	if buy {
		return "Buy"
	}
	return "Sell"
}

// bybitID is a number of 19 digits.
func bybitID(t market.Trade) string { return strconv.FormatInt(2_290_000_000_000_000_000+t.ID, 10) }

// bybitTicker has neither bid nor ask.
func bybitTicker(b []byte, m *market.Market, s market.State) []byte {
	b = append(append(append(b, `{"topic":"tickers.`...), m.Symbol...), `","ts":`...)
	b = strconv.AppendInt(b, s.Time/1e6, 10)
	b = append(b, `,"type":"snapshot","cs":`...)
	b = strconv.AppendInt(b, 2_000_000_000+s.Seq, 10)
	b = append(append(append(b, `,"data":{"symbol":"`...), m.Symbol...), '"')
	b = bybitDay(b, m, s)
	return append(b, `}}`...)
}

// bybitDay is what the tickers of the feed and of the HTTP interface have in common.
func bybitDay(b []byte, m *market.Market, s market.State) []byte {
	b = bybitDecimal(b, "lastPrice", s.Last.Price)
	b = bybitDecimal(b, "highPrice24h", s.High)
	b = bybitDecimal(b, "lowPrice24h", s.Low)
	b = bybitDecimal(b, "prevPrice24h", s.Open)
	b = bybitDecimal(b, "volume24h", s.Volume)
	b = bybitDecimal(b, "turnover24h", s.QuoteVolume)
	b = bybitDecimal(b, "price24hPcnt", market.Round(s.Last.Price.Float()/s.Open.Float()-1, 4))
	return bybitDecimal(b, "usdIndexPrice", market.Round(m.BaseAsset.At(s.Time), m.PriceScale))
}

func bybitDecimal(b []byte, key string, d market.Decimal) []byte {
	b = append(append(append(b, `,"`...), key...), `":"`...)
	return append(d.AppendShort(b), '"')
}

// bybitIntervals are the kinds of candles, but for weeks and months.
var bybitIntervals = map[string]time.Duration{
	"1": time.Minute, "3": 3 * time.Minute, "5": 5 * time.Minute, "15": 15 * time.Minute, "30": 30 * time.Minute, "60": time.Hour,
	"120": 2 * time.Hour, "240": 4 * time.Hour, "360": 6 * time.Hour, "720": 12 * time.Hour, "D": 24 * time.Hour,
}

func bybitRoutes(x *Exchange) map[string]http.HandlerFunc {
	// answer wraps every result. Refusals come with status 200.
	answer := func(w http.ResponseWriter, code int, text string, result any) {
		provider.Respond(w, http.StatusOK, struct {
			Code    int      `json:"retCode"`
			Message string   `json:"retMsg"`
			Result  any      `json:"result"`
			Further struct{} `json:"retExtInfo"`
			Time    int64    `json:"time"`
		}{code, text, result, struct{}{}, x.Now().UnixMilli()})
	}
	// list answers for the market that the query names, for all if it may and does not.
	list := func(all bool, rows func(markets []*market.Market, r *http.Request) (rows []json.RawMessage, wrong string)) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			query := r.URL.Query()
			markets, symbol := x.Markets(), query.Get("symbol")
			if symbol != "" || !all {
				m := x.Market(symbol)
				if m == nil {
					answer(w, 10001, "Not supported symbols", struct{}{})
					return
				}
				markets = []*market.Market{m}
			}
			if query.Get("category") != "spot" {
				answer(w, 10001, "Illegal category", struct{}{})
				return
			}
			list, wrong := rows(markets, r)
			if wrong != "" {
				answer(w, 10001, wrong, struct{}{})
				return
			}
			result := map[string]any{"category": "spot", "list": list}
			if r.URL.Path == "/v5/market/kline" {
				result["symbol"] = symbol
			}
			answer(w, 0, "OK", result)
		}
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
		"GET /v5/market/time": func(w http.ResponseWriter, _ *http.Request) {
			now := x.Now()
			answer(w, 0, "OK", map[string]string{"timeSecond": strconv.FormatInt(now.Unix(), 10), "timeNano": strconv.FormatInt(now.UnixNano(), 10)})
		},
		"GET /v5/market/instruments-info": list(true, each(func(m *market.Market) json.RawMessage { return bybitListing(x, m) })),
		"GET /v5/market/tickers": list(true, each(func(m *market.Market) json.RawMessage {
			if !x.Quotes(m) {
				return nil
			}
			s := m.State(x.Now())
			b := append(append([]byte(`{"symbol":"`), m.Symbol...), '"')
			b = bybitDecimal(b, "bid1Price", s.Bid)
			b = bybitDecimal(b, "bid1Size", s.BidSize)
			b = bybitDecimal(b, "ask1Price", s.Ask)
			b = bybitDecimal(b, "ask1Size", s.AskSize)
			return append(bybitDay(b, m, s), '}')
		})),
		"GET /v5/market/recent-trade": list(false, func(markets []*market.Market, r *http.Request) ([]json.RawMessage, string) {
			return bybitTrades(x, markets[0], r)
		}),
		"GET /v5/market/kline": list(false, func(markets []*market.Market, r *http.Request) ([]json.RawMessage, string) {
			return bybitCandles(x, markets[0], r)
		}),
	}
}

func bybitListing(x *Exchange, m *market.Market) json.RawMessage {
	step := market.Exact(1, m.SizeScale).String()
	b, _ := json.Marshal(map[string]any{
		"symbol": m.Symbol, "baseCoin": m.Base, "quoteCoin": m.Quote, "innovation": "0", "status": x.Status(m, "Trading", "Closed"), "marginTrading": "utaOnly", "stTag": "0",
		"lotSizeFilter": map[string]string{
			"basePrecision": step, "quotePrecision": "0.0000001", "minOrderQty": step, "maxOrderQty": "17000", "minOrderAmt": "5", "maxOrderAmt": "2000000",
		},
		"priceFilter":    map[string]string{"tickSize": market.Exact(1, m.PriceScale).String()},
		"riskParameters": map[string]string{"priceLimitRatioX": "0.05", "priceLimitRatioY": "0.05"},
	})
	return b
}

// bybitLimit is how many rows are asked for.
func bybitLimit(r *http.Request, absent, most int) int {
	n, err := strconv.Atoi(r.URL.Query().Get("limit"))
	if err != nil || n < 1 {
		return absent
	}
	return min(n, most)
}

// bybitTrades are at most 60, the newest first.
func bybitTrades(x *Exchange, m *market.Market, r *http.Request) (rows []json.RawMessage, wrong string) {
	limit := bybitLimit(r, 60, 60)
	rows = make([]json.RawMessage, limit)
	for i, t := range m.Trades(x.Now(), limit) {
		rows[limit-1-i], _ = json.Marshal(map[string]any{
			"execId": bybitID(t), "symbol": m.Symbol, "price": t.Price.Short(), "size": t.Size.Short(), "side": bybitSide(t.Buy),
			"time": strconv.FormatInt(t.Time/1e6, 10), "isBlockTrade": false,
		})
	}
	return rows, ""
}

// bybitCandles are at most 1,000, 200 by default, that start in [start, end], the newest first: of more those from start
// on if only that is given, else the newest: start, open, high, low, close, volume in the base, in the quote.
func bybitCandles(x *Exchange, m *market.Market, r *http.Request) (rows []json.RawMessage, wrong string) {
	query := r.URL.Query()
	interval, known := bybitIntervals[query.Get("interval")]
	if !known {
		return nil, "Invalid period!"
	}
	limit := bybitLimit(r, 200, 1000)
	from, ok := millis(query.Get("start"), time.Unix(0, 0))
	last := x.Now()
	if query.Has("start") {
		last = from.Add(time.Duration(limit)*interval - time.Nanosecond)
	}
	to, also := millis(query.Get("end"), last)
	if !ok || !also {
		return nil, "Request parameter error."
	}
	rows = []json.RawMessage{}
	for _, c := range newestCandles(m, from, to.Add(time.Nanosecond), x.Now(), interval, 0, limit) {
		b := strconv.AppendInt([]byte(`["`), c.Start/1e6, 10)
		for _, d := range [...]market.Decimal{c.Open, c.High, c.Low, c.Close, c.Volume, c.QuoteVolume} {
			b = d.AppendShort(append(b, `","`...))
		}
		rows = append(rows, append(b, `"]`...))
	}
	return rows, ""
}
