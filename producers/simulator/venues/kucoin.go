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

// kucoin is KuCoin's spot market, by its classic interfaces:
//
//	connect  https://www.kucoin.com/apidoc/project-6000000/websocket-api/base-info/introduction (with a token; a
//	         ping every 18 s, and 10 s more)
//	feed     https://www.kucoin.com/docs-new/3470063w0 (ticker), 3470065w0 (snapshot, of one symbol a topic), 3470072w0
//	         (trades)
//	limits   https://www.kucoin.com/docs-new/rate-limit (30 connects a minute, 100 messages in 10 s, 400
//	         topics a connection; HTTP: 2,000 weight in 30 s, here 3 a request)
func kucoin() Venue {
	return Venue{
		Slug: "kucoin", Share: 0.7,
		Quotes: []QuoteAsset{{"USDT", 300}, {"USDC", 30}, {"BTC", 40}, {"ETH", 20}, {"EUR", 15}},
		Symbol: func(base, quote string) string { return base + "-" + quote },
		Limits: Limits{
			Connects: 30, ConnectsPer: time.Minute,
			Messages: 100, MessagesPer: 10 * time.Second,
			Topics:   400,
			Requests: 666, RequestsPer: 30 * time.Second,
			Idle: 28 * time.Second,
		},
		Routes: kucoinRoutes,
		Throttled: func(w http.ResponseWriter, _ *http.Request) {
			provider.Respond(w, http.StatusTooManyRequests, map[string]string{"code": "429000", "msg": "Too many requests in a short period of time, please retry later"})
		},
		Open: func(c *Conn) {
			if c.Request.URL.Query().Get("token") == "" {
				c.Send([]byte(`{"id":"","type":"error","code":401,"data":"token is invalid"}`))
				c.Close(websocket.StatusPolicyViolation, "token is invalid")
				return
			}
			c.Send([]byte(`{"id":"` + strconv.FormatInt(c.Now().UnixNano(), 36) + `","type":"welcome"}`))
		},
		Receive: kucoinReceive,
		Channels: map[string]Channel{
			"/market/match":    {Trade: kucoinMatch},
			"/market/ticker":   {State: kucoinTicker},
			"/market/snapshot": {State: kucoinSnapshot},
		},
	}
}

func kucoinReceive(c *Conn, message []byte) {
	var request struct {
		ID       any    `json:"id"`
		Type     string `json:"type"`
		Topic    string `json:"topic"`
		Response bool   `json:"response"`
	}
	send := func(body map[string]any) {
		body["id"] = request.ID
		b, _ := json.Marshal(body)
		c.Send(b)
	}
	if err := json.Unmarshal(message, &request); err != nil {
		send(map[string]any{"type": "error", "code": 400, "data": "the message is no JSON"})
		return
	}
	if number, ok := request.ID.(float64); ok {
		request.ID = strconv.FormatFloat(number, 'f', -1, 64) // answered as text, whatever it was
	}
	channel, list, _ := strings.Cut(request.Topic, ":")
	_, known := c.Exchange().venue.Channels[channel]
	names := strings.Split(list, ",")
	switch {
	case request.Type == "ping":
		send(map[string]any{"type": "pong"})
		return
	case request.Type != "subscribe" && request.Type != "unsubscribe":
		send(map[string]any{"type": "error", "code": 404, "data": "type " + request.Type + " is not supported"})
		return
	case !known || len(names) > 100 || channel == "/market/snapshot" && len(names) > 1:
		send(map[string]any{"type": "error", "code": 404, "data": "topic " + request.Topic + " is not found"})
		return
	}
	for _, name := range names {
		m := c.Exchange().Market(name)
		if m == nil {
			send(map[string]any{"type": "error", "code": 404, "data": "topic " + channel + ":" + name + " is not found"})
			return
		}
		if request.Type == "unsubscribe" {
			c.Unsubscribe(channel, m)
		} else if !c.Subscribe(channel, m) {
			return
		}
	}
	if request.Response {
		send(map[string]any{"type": "ack"})
	}
}

// kucoinFrame is a push; the venue's order of keys.
type kucoinFrame struct {
	Topic   string `json:"topic"`
	Type    string `json:"type"`
	Subject string `json:"subject"`
	Data    any    `json:"data"`
}

func kucoinPush(b []byte, channel, subject string, m *market.Market, data any) []byte {
	text, err := json.Marshal(kucoinFrame{channel + ":" + m.Symbol, "message", subject, data})
	if err != nil {
		panic(err) // plain values encode
	}
	return append(b, text...)
}

// kucoinID is an order's, of a seed, in 24 digits to the base 16.
func kucoinID(s market.Seed, n int64) string {
	text := string(provider.AppendUUID(nil, s, n))
	return strings.ReplaceAll(text, "-", "")[:24]
}

// kucoinSequence counts the updates of a symbol, from where such counters began.
func kucoinSequence(n int64) string { return strconv.FormatInt(1_600_000_000_000+n, 10) }

func kucoinMatch(b []byte, m *market.Market, t market.Trade) []byte {
	id := strconv.FormatInt(t.ID, 10)
	return kucoinPush(b, "/market/match", "trade.l3match", m, map[string]string{
		"makerOrderId": kucoinID(m.Seed^1, t.ID), "price": t.Price.Short(), "sequence": kucoinSequence(t.ID), "side": side(t.Buy), "size": t.Size.Short(),
		"symbol": m.Symbol, "takerOrderId": kucoinID(m.Seed^2, t.ID), "time": strconv.FormatInt(t.Time, 10), "tradeId": id, "type": "match",
	})
}

func kucoinTicker(b []byte, m *market.Market, s market.State) []byte {
	return kucoinPush(b, "/market/ticker", "trade.ticker", m, map[string]any{
		"bestAsk": s.Ask.Short(), "bestAskSize": s.AskSize.Short(), "bestBid": s.Bid.Short(), "bestBidSize": s.BidSize.Short(),
		"price": s.Last.Price.Short(), "sequence": kucoinSequence(s.Seq), "size": s.Last.Size.Short(), "time": s.Time / 1e6,
	})
}

func kucoinSnapshot(b []byte, m *market.Market, s market.State) []byte {
	return kucoinPush(b, "/market/snapshot", "trade.snapshot", m, map[string]any{
		"sequence": kucoinSequence(s.Seq),
		"data": map[string]any{
			"askSize": number(s.AskSize), "averagePrice": number(s.Open), "baseCurrency": m.Base, "bidSize": number(s.BidSize), "board": 0,
			"buy": number(s.Bid), "changePrice": number(market.Exact(s.Last.Price.Units-s.Open.Units, m.PriceScale)),
			"changeRate": number(market.Round(s.Last.Price.Float()/s.Open.Float()-1, 4)), "close": number(s.Last.Price), "datetime": s.Time / 1e6,
			"high": number(s.High), "lastTradedPrice": number(s.Last.Price), "low": number(s.Low), "makerCoefficient": 1, "makerFeeRate": 0.001,
			"marginTrade": true, "mark": 0, "market": m.Quote, "markets": []string{m.Quote}, "open": number(s.Open), "quoteCurrency": m.Quote,
			"sell": number(s.Ask), "sort": 100, "symbol": m.Symbol, "symbolCode": m.Symbol, "takerCoefficient": 1, "takerFeeRate": 0.001,
			"trading": true, "vol": number(s.Volume), "volValue": number(s.QuoteVolume),
		},
	})
}

// kucoinIntervals are the kinds of candles, but for months.
var kucoinIntervals = map[string]time.Duration{
	"1min": time.Minute, "3min": 3 * time.Minute, "5min": 5 * time.Minute, "15min": 15 * time.Minute, "30min": 30 * time.Minute,
	"1hour": time.Hour, "2hour": 2 * time.Hour, "4hour": 4 * time.Hour, "6hour": 6 * time.Hour, "8hour": 8 * time.Hour,
	"12hour": 12 * time.Hour, "1day": 24 * time.Hour, "1week": 7 * 24 * time.Hour,
}

func kucoinRoutes(x *Exchange) map[string]http.HandlerFunc {
	answer := func(w http.ResponseWriter, data any) {
		provider.Respond(w, http.StatusOK, map[string]any{"code": "200000", "data": data})
	}
	// market answers for the symbol that the query names.
	ofMarket := func(data func(m *market.Market, r *http.Request) any) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			m := x.Market(r.URL.Query().Get("symbol"))
			if m == nil {
				provider.Respond(w, http.StatusOK, map[string]string{"code": "400100", "msg": "symbol not exists"})
				return
			}
			if body := data(m, r); body != nil {
				answer(w, body)
				return
			}
			provider.Respond(w, http.StatusOK, map[string]string{"code": "400100", "msg": "This type is not supported"})
		}
	}
	listing := func(w http.ResponseWriter, _ *http.Request) {
		markets := x.Markets()
		list := make([]any, len(markets))
		for i, m := range markets {
			step := market.Exact(1, m.PriceScale).String()
			list[i] = map[string]any{
				"symbol": m.Symbol, "name": m.Symbol, "baseCurrency": m.Base, "quoteCurrency": m.Quote, "feeCurrency": m.Quote, "market": m.Quote,
				"baseMinSize": market.Exact(1, m.SizeScale).String(), "quoteMinSize": "0.1", "baseMaxSize": "10000000000", "quoteMaxSize": "99999999",
				"baseIncrement": market.Exact(1, m.SizeScale).String(), "quoteIncrement": step, "priceIncrement": step, "priceLimitRate": "0.1",
				"minFunds": "0.1", "isMarginEnabled": true, "enableTrading": !x.Halted(m), "feeCategory": 1, "makerFeeCoefficient": "1.00",
				"takerFeeCoefficient": "1.00", "st": false,
			}
		}
		answer(w, list)
	}
	return map[string]http.HandlerFunc{
		"POST /api/v1/bullet-public": func(w http.ResponseWriter, _ *http.Request) {
			answer(w, map[string]any{
				"token": strconv.FormatInt(x.Now().UnixNano(), 36),
				"instanceServers": []any{map[string]any{
					"endpoint": x.StreamURL(), "encrypt": false, "protocol": "websocket", "pingInterval": 18000, "pingTimeout": 10000,
				}},
			})
		},
		"GET /api/v1/symbols": listing,
		"GET /api/v2/symbols": listing,
		"GET /api/v1/market/allTickers": func(w http.ResponseWriter, _ *http.Request) {
			markets := x.Quoted(x.Markets())
			list := make([]any, len(markets))
			for i, m := range markets {
				list[i] = kucoinHTTPTicker(m, m.State(x.Now()))
			}
			answer(w, map[string]any{"time": x.Now().UnixMilli(), "ticker": list})
		},
		"GET /api/v1/market/histories": ofMarket(func(m *market.Market, _ *http.Request) any {
			trades := m.Trades(x.Now(), 100)
			rows := make([]any, len(trades))
			for i, t := range trades {
				id := strconv.FormatInt(t.ID, 10)
				rows[len(rows)-1-i] = map[string]any{
					"sequence": kucoinSequence(t.ID), "price": t.Price.Short(), "size": t.Size.Short(), "side": side(t.Buy), "time": t.Time, "tradeId": id,
				}
			}
			return rows
		}),
		"GET /api/v1/market/candles": ofMarket(func(m *market.Market, r *http.Request) any { return kucoinCandles(x, m, r) }),
	}
}

func kucoinHTTPTicker(m *market.Market, s market.State) any {
	return map[string]any{
		"symbol": m.Symbol, "symbolName": m.Symbol, "buy": s.Bid.Short(), "bestBidSize": s.BidSize.Short(), "sell": s.Ask.Short(),
		"bestAskSize": s.AskSize.Short(), "changeRate": market.Round(s.Last.Price.Float()/s.Open.Float()-1, 4).Short(),
		"changePrice": market.Exact(s.Last.Price.Units-s.Open.Units, m.PriceScale).Short(), "high": s.High.Short(), "low": s.Low.Short(),
		"vol": s.Volume.Short(), "volValue": s.QuoteVolume.Short(), "last": s.Last.Price.Short(), "averagePrice": s.Open.Short(),
		"takerFeeRate": "0.001", "makerFeeRate": "0.001", "takerCoefficient": "1", "makerCoefficient": "1",
	}
}

// kucoinCandles are at most 1,500 that start in [startAt, endAt), the newest first: start, open, close, high, low, volume
// in the base and in the quote. nil is an unknown interval.
func kucoinCandles(x *Exchange, m *market.Market, r *http.Request) any {
	const most = 1500
	query := r.URL.Query()
	interval := kucoinIntervals[query.Get("type")]
	to, ok := instant(query.Get("endAt"), x.Now())
	if to.Unix() == 0 {
		to = x.Now()
	}
	from, also := instant(query.Get("startAt"), to.Add(-most*interval))
	if interval == 0 || !ok || !also {
		return nil
	}
	if from.Before(to.Add(-most * interval)) {
		from = to.Add(-most * interval)
	}
	candles := m.Candles(from, to, x.Now(), interval)
	rows := make([][]string, len(candles))
	for i, c := range candles {
		rows[len(rows)-1-i] = []string{
			strconv.FormatInt(c.Start/market.Second, 10), c.Open.Short(), c.Close.Short(), c.High.Short(), c.Low.Short(), c.Volume.Short(), c.QuoteVolume.Short(),
		}
	}
	return rows
}
