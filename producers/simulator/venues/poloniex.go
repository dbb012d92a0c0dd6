package venues

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/marketlog/marketlog/producers/simulator/market"
	"github.com/marketlog/marketlog/producers/simulator/provider"
)

// poloniex is Poloniex's spot market. "quantity" is in the base, "amount" in the quote:
//
//	feed    https://api-docs.poloniex.com/spot/websocket/ (subscribe, unsubscribe, unsubscribe_all, ping; 500 requests
//	        a second on a connection, 30 s without one), …/websocket/market-data (trades, ticker)
//	limits  https://api-docs.poloniex.com/spot/api/#rate-limits (200 requests a second, 10 for all markets at once)
//	http    https://api-docs.poloniex.com/spot/api/public/reference-data, …/public/market-data
func poloniex() Venue {
	return Venue{
		Slug: "poloniex", Share: 0.3,
		Quotes: []QuoteAsset{{"USDT", 250}, {"USDC", 20}, {"BTC", 10}},
		Symbol: func(base, quote string) string { return base + "_" + quote },
		Limits: Limits{
			Messages: 500, MessagesPer: time.Second,
			Requests: 200, RequestsPer: time.Second,
			Idle: 30 * time.Second,
		},
		Routes: poloniexRoutes,
		Throttled: func(w http.ResponseWriter, _ *http.Request) {
			provider.Respond(w, http.StatusTooManyRequests, poloniexError(http.StatusTooManyRequests, "Too many requests"))
		},
		Receive: poloniexReceive,
		Channels: map[string]Channel{
			"trades": {Trade: poloniexTrade},
			"ticker": {State: poloniexTicker},
		},
	}
}

func poloniexReceive(c *Conn, message []byte) {
	if strings.EqualFold(string(message), "ping") {
		c.Send([]byte("pong"))
		return
	}
	var request struct {
		Event    string   `json:"event"`
		Channels []string `json:"channel"`
		Symbols  []string `json:"symbols"`
	}
	send := func(body map[string]any) {
		b, _ := json.Marshal(body)
		c.Send(b)
	}
	refuse := func(why string) { send(map[string]any{"event": "error", "message": why}) }
	if err := json.Unmarshal(message, &request); err != nil {
		refuse("Bad request")
		return
	}
	switch request.Event {
	case "ping":
		c.Send([]byte(`{"event":"pong"}`))
		return
	case "unsubscribe_all":
		for channel := range c.Exchange().venue.Channels {
			for _, m := range c.Subscribed(channel) {
				c.Unsubscribe(channel, m)
			}
		}
		send(map[string]any{"channel": "all", "event": "unsubscribe_all"})
		return
	case "subscribe", "unsubscribe":
	default:
		refuse("Bad request")
		return
	}
	var markets []*market.Market
	for _, symbol := range request.Symbols {
		if strings.EqualFold(symbol, "all") {
			markets = c.Exchange().Markets()
			break
		}
		m := c.Exchange().Market(symbol)
		if m == nil {
			refuse("Subscription failed (invalid symbol)")
			return
		}
		markets = append(markets, m)
	}
	for _, channel := range request.Channels {
		switch _, known := c.Exchange().venue.Channels[channel]; {
		case !known:
			refuse("Subscription failed (invalid channel)")
			return
		case len(markets) == 0:
			refuse("Subscription failed (invalid symbol)")
			return
		}
		send(map[string]any{"channel": channel, "event": request.Event, "symbols": request.Symbols})
		for _, m := range markets {
			if request.Event == "unsubscribe" {
				c.Unsubscribe(channel, m)
				continue
			}
			if !c.Subscribe(channel, m) {
				return
			}
			if channel == "ticker" { // the newest state comes at once
				c.Send(poloniexTicker(nil, m, m.State(c.Now())))
			}
		}
	}
}

func poloniexTrade(b []byte, m *market.Market, t market.Trade) []byte {
	b = append(append(b, `{"channel":"trades","data":[{"symbol":"`...), m.Symbol...)
	b = market.Round(t.Price.Float()*t.Size.Float(), 8).AppendShort(append(b, `","amount":"`...))
	b = append(append(b, `","takerSide":"`...), side(t.Buy)...)
	b = t.Size.AppendShort(append(b, `","quantity":"`...))
	b = strconv.AppendInt(append(b, `","createTime":`...), t.Time/1e6, 10)
	b = t.Price.AppendShort(append(b, `,"price":"`...))
	b = strconv.AppendInt(append(b, `","id":`...), t.ID, 10)
	b = strconv.AppendInt(append(b, `,"ts":`...), t.Time/1e6, 10)
	return append(b, "}]}"...)
}

// poloniexState is what tickers of the feed and of HTTP have in common, without the brace at its end.
func poloniexState(b []byte, m *market.Market, s market.State) []byte {
	field := func(name string, d market.Decimal) {
		b = append(append(append(b, `","`...), name...), `":"`...)
		b = d.AppendShort(b)
	}
	b = append(append(b, `{"symbol":"`...), m.Symbol...)
	field("dailyChange", market.Round(s.Last.Price.Float()/s.Open.Float()-1, 4))
	field("high", s.High)
	field("amount", s.QuoteVolume)
	field("quantity", s.Volume)
	field("low", s.Low)
	field("close", s.Last.Price)
	field("open", s.Open)
	field("markPrice", s.Last.Price)
	b = strconv.AppendInt(append(b, `","tradeCount":`...), m.TradesPerDay(), 10)
	b = strconv.AppendInt(append(b, `,"startTime":`...), (s.Time-market.Day)/market.Minute*60_000, 10)
	b = strconv.AppendInt(append(b, `,"closeTime":`...), s.Time/1e6, 10)
	return strconv.AppendInt(append(b, `,"ts":`...), s.Time/1e6, 10)
}

func poloniexTicker(b []byte, m *market.Market, s market.State) []byte {
	b = poloniexState(append(b, `{"channel":"ticker","data":[`...), m, s)
	return append(b, "}]}"...)
}

func poloniexError(code int, why string) any { return map[string]any{"code": code, "message": why} }

// poloniexIntervals are the kinds of candles, but for weeks and months.
var poloniexIntervals = map[string]time.Duration{
	"MINUTE_1": time.Minute, "MINUTE_5": 5 * time.Minute, "MINUTE_10": 10 * time.Minute, "MINUTE_15": 15 * time.Minute,
	"MINUTE_30": 30 * time.Minute, "HOUR_1": time.Hour, "HOUR_2": 2 * time.Hour, "HOUR_4": 4 * time.Hour, "HOUR_6": 6 * time.Hour,
	"HOUR_12": 12 * time.Hour, "DAY_1": 24 * time.Hour, "DAY_3": 3 * 24 * time.Hour,
}

func poloniexRoutes(x *Exchange) map[string]http.HandlerFunc {
	// market answers for the symbol that the path names.
	ofMarket := func(answer func(m *market.Market, r *http.Request) any) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			m := x.Market(r.PathValue("symbol"))
			if m == nil {
				provider.Respond(w, http.StatusBadRequest, poloniexError(21301, "Invalid symbol"))
				return
			}
			if body := answer(m, r); body != nil {
				provider.Respond(w, http.StatusOK, body)
				return
			}
			provider.Respond(w, http.StatusBadRequest, poloniexError(http.StatusBadRequest, "Invalid parameter"))
		}
	}
	// each answers a row for each market.
	each := func(of func() []*market.Market, row func(m *market.Market) any) http.HandlerFunc {
		return x.Limited(10, time.Second, func(w http.ResponseWriter, _ *http.Request) {
			markets := of()
			rows := make([]any, len(markets))
			for i, m := range markets {
				rows[i] = row(m)
			}
			provider.Respond(w, http.StatusOK, rows)
		})
	}
	quoted := func() []*market.Market { return x.Quoted(x.Markets()) }
	ticker := func(m *market.Market) any { return json.RawMessage(poloniexHTTPTicker(m, m.State(x.Now()))) }
	price := func(m *market.Market) any {
		s := m.State(x.Now())
		return map[string]any{
			"symbol": m.Symbol, "price": s.Last.Price.Short(), "time": s.Last.Time / 1e6,
			"dailyChange": market.Round(s.Last.Price.Float()/s.Open.Float()-1, 4).Short(), "ts": x.Now().UnixMilli(),
		}
	}
	listing := func(m *market.Market) any {
		return map[string]any{
			"symbol": m.Symbol, "baseCurrencyName": m.Base, "quoteCurrencyName": m.Quote, "displayName": m.Base + "/" + m.Quote,
			"state": x.Status(m, "NORMAL", "PAUSE"), "visibleStartTime": 1_659_018_819_512, "tradableStartTime": 1_659_018_819_512,
			"symbolTradeLimit": map[string]any{
				"symbol": m.Symbol, "priceScale": m.PriceScale, "quantityScale": m.SizeScale, "amountScale": m.PriceScale,
				"minQuantity": market.Exact(1, m.SizeScale).Short(), "minAmount": "1", "highestBid": "0", "lowestAsk": "0",
			},
			"crossMargin": map[string]any{"supportCrossMargin": false, "maxLeverage": 1},
		}
	}
	return map[string]http.HandlerFunc{
		"GET /markets":                    each(x.Markets, listing),
		"GET /markets/ticker24h":          each(quoted, ticker),
		"GET /markets/price":              each(quoted, price),
		"GET /markets/{symbol}":           ofMarket(func(m *market.Market, _ *http.Request) any { return []any{listing(m)} }),
		"GET /markets/{symbol}/ticker24h": ofMarket(func(m *market.Market, _ *http.Request) any { return ticker(m) }),
		"GET /markets/{symbol}/price":     ofMarket(func(m *market.Market, _ *http.Request) any { return price(m) }),
		"GET /markets/{symbol}/trades": ofMarket(func(m *market.Market, r *http.Request) any {
			n, err := strconv.Atoi(r.URL.Query().Get("limit"))
			if err != nil {
				n = 500
			}
			trades := m.Trades(x.Now(), min(max(n, 1), 1000))
			rows := make([]any, len(trades))
			for i, t := range trades {
				rows[len(rows)-1-i] = map[string]any{
					"id": strconv.FormatInt(t.ID, 10), "price": t.Price.Short(), "quantity": t.Size.Short(),
					"amount": market.Round(t.Price.Float()*t.Size.Float(), 8).Short(), "takerSide": bigSide(t.Buy), "ts": t.Time / 1e6, "createTime": t.Time / 1e6,
				}
			}
			return rows
		}),
		"GET /markets/{symbol}/candles": ofMarket(func(m *market.Market, r *http.Request) any { return poloniexCandles(x, m, r) }),
	}
}

func poloniexHTTPTicker(m *market.Market, s market.State) []byte {
	b := poloniexState(nil, m, s)
	b = append(append(append(append(b, `,"displayName":"`...), m.Base...), '/'), m.Quote...)
	for _, f := range []struct {
		name string
		d    market.Decimal
	}{{"bid", s.Bid}, {"bidQuantity", s.BidSize}, {"ask", s.Ask}, {"askQuantity", s.AskSize}} {
		b = append(append(append(b, `","`...), f.name...), `":"`...)
		b = f.d.AppendShort(b)
	}
	return append(b, `"}`...)
}

// poloniexCandles are at most 500 that start in [startTime, endTime], the oldest first: low, high, open, close, amount,
// quantity, the same two of takers who bought, count, time of the answer, average, interval, start, end. nil is an
// unknown interval.
func poloniexCandles(x *Exchange, m *market.Market, r *http.Request) any {
	query := r.URL.Query()
	name := query.Get("interval")
	interval := poloniexIntervals[name]
	limit, err := strconv.Atoi(query.Get("limit"))
	if err != nil {
		limit = 100
	}
	to, ok := millis(query.Get("endTime"), x.Now())
	if interval == 0 || !ok || limit < 1 || limit > 500 {
		return nil
	}
	longest := time.Duration(limit) * interval
	from, ok := millis(query.Get("startTime"), to.Add(-longest+time.Nanosecond))
	if !ok {
		return nil
	}
	if to.Sub(from) >= longest {
		from = to.Add(-longest + time.Nanosecond)
	}
	candles := m.Candles(from, to.Add(time.Nanosecond), x.Now(), interval)
	rows := make([]any, len(candles))
	for i, c := range candles {
		half := func(d market.Decimal) string { return market.Exact(d.Units/2, d.Scale).String() }
		rows[i] = []any{
			c.Low.String(), c.High.String(), c.Open.String(), c.Close.String(), c.QuoteVolume.String(), c.Volume.String(),
			half(c.QuoteVolume), half(c.Volume), c.Trades, x.Now().UnixMilli(),
			market.Round((c.High.Float()+c.Low.Float()+c.Close.Float())/3, m.PriceScale).String(), name,
			c.Start / 1e6, (c.Start+int64(interval))/1e6 - 1,
		}
	}
	return rows
}
