package venues

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/marketlog/marketlog/producers/simulator/market"
	"github.com/marketlog/marketlog/producers/simulator/provider"
	"google.golang.org/protobuf/encoding/protowire"
)

// mexc is MEXC's spot market, version 3, whose feed is protobuf:
//
//	feed      https://www.mexc.com/api-docs/spot-v3/websocket-market-streams (30 subscriptions a connection, 30 s to
//	          subscribe, a minute without a ping, 24 hours), …/trade-streams,
//	          …/individual-symbol-book-ticker-streams, …/miniticker
//	messages  https://github.com/mexcdevelop/websocket-proto
//	limits    https://www.mexc.com/api-docs/spot-v3/general-info (100 messages a second; 500 weight in 10 s)
//	http      https://www.mexc.com/api-docs/spot-v3/market-data-endpoints
func mexc() Venue {
	return Venue{
		Slug: "mexc", Share: 0.6,
		Quotes: []QuoteAsset{{"USDT", 320}, {"USDC", 60}, {"BTC", 10}, {"ETH", 5}},
		Symbol: func(base, quote string) string { return base + quote },
		Limits: Limits{
			Messages: 100, MessagesPer: time.Second,
			Topics:   30,
			Requests: 500, RequestsPer: 10 * time.Second,
			Idle: time.Minute, Unsubscribed: 30 * time.Second, Life: 24 * time.Hour,
		},
		Routes: mexcRoutes,
		Throttled: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "1")
			provider.Respond(w, http.StatusTooManyRequests, map[string]any{"code": 429, "msg": "Too Many Requests"})
		},
		Receive: mexcReceive,
		Channels: map[string]Channel{
			mexcDeals: {Trade: mexcDeal, Binary: true},
			mexcBook:  {State: mexcBookTicker, Binary: true},
			mexcMini:  {State: mexcMiniTicker, Binary: true},
		},
	}
}

// The channels' names; % is the symbol.
const (
	mexcDeals = "spot@public.aggre.deals.v3.api.pb@100ms@%"
	mexcBook  = "spot@public.aggre.bookTicker.v3.api.pb@100ms@%"
	mexcMini  = "spot@public.miniTicker.v3.api.pb@%@24H"
)

// mexcChannel finds the channel and the market of a name.
func mexcChannel(x *Exchange, name string) (channel string, m *market.Market) {
	for _, channel := range []string{mexcDeals, mexcBook, mexcMini} {
		before, after, _ := strings.Cut(channel, "%")
		if symbol, ok := strings.CutPrefix(name, before); ok {
			if symbol, ok = strings.CutSuffix(symbol, after); ok {
				return channel, x.Market(symbol)
			}
		}
	}
	return "", nil
}

func mexcReceive(c *Conn, message []byte) {
	send := func(code int, text string) {
		b, _ := json.Marshal(struct {
			ID      int    `json:"id"`
			Code    int    `json:"code"`
			Message string `json:"msg"`
		}{0, code, text})
		c.Send(b)
	}
	var request struct {
		Method string   `json:"method"`
		Params []string `json:"params"`
	}
	if err := json.Unmarshal(message, &request); err != nil {
		send(1, "msg format invalid")
		return
	}
	switch request.Method {
	case "PING":
		send(0, "PONG")
		return
	case "SUBSCRIPTION", "UNSUBSCRIPTION":
	default:
		send(1, "unknown method")
		return
	}
	var done, refused []string
	for _, name := range request.Params {
		channel, m := mexcChannel(c.Exchange(), name)
		switch {
		case m == nil:
			refused = append(refused, name)
		case request.Method == "UNSUBSCRIPTION":
			c.Unsubscribe(channel, m)
			done = append(done, name)
		case c.Subscribe(channel, m):
			done = append(done, name)
		default:
			return
		}
	}
	if len(refused) > 0 {
		send(0, "Not Subscribed successfully! ["+strings.Join(refused, ",")+"].  Reason： Blocked! ")
	}
	if len(done) > 0 {
		send(0, strings.Join(done, ","))
	}
}

func mexcText(b []byte, field protowire.Number, text string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), text)
}

func mexcNumber(b []byte, field protowire.Number, n int64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), uint64(n))
}

// mexcPush wraps a body: channel 1, symbol 3, time sent 6.
func mexcPush(b []byte, channel string, m *market.Market, at int64, field protowire.Number, body []byte) []byte {
	b = mexcText(b, 1, strings.Replace(channel, "%", m.Symbol, 1))
	b = mexcText(b, 3, m.Symbol)
	b = mexcNumber(b, 6, at/1e6)
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), body)
}

// mexcDeal: price 1, quantity 2, trade type 3 (1 buys, 2 sells), time 4, id of both orders 5.
func mexcDeal(b []byte, m *market.Market, t market.Trade) []byte {
	kind := int64(2)
	if t.Buy {
		kind = 1
	}
	var deal []byte
	deal = mexcText(deal, 1, t.Price.String())
	deal = mexcText(deal, 2, t.Size.String())
	deal = mexcNumber(deal, 3, kind)
	deal = mexcNumber(deal, 4, t.Time/1e6)
	deal = mexcText(deal, 5, strconv.FormatInt(2*t.ID, 10)+"X0_"+strconv.FormatInt(2*t.ID+1, 10)+"X0")
	deals := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), deal)
	return mexcPush(b, mexcDeals, m, t.Time, 314, mexcText(deals, 2, strings.TrimSuffix(mexcDeals, "@%")))
}

// mexcBookTicker: bid 1 and its quantity 2, ask 3 and its quantity 4.
func mexcBookTicker(b []byte, m *market.Market, s market.State) []byte {
	var book []byte
	for i, d := range []market.Decimal{s.Bid, s.BidSize, s.Ask, s.AskSize} {
		book = mexcText(book, protowire.Number(i+1), d.String())
	}
	return mexcPush(b, mexcBook, m, s.Time, 315, book)
}

// mexcMiniTicker: symbol 1, price 2, rates 3 and 4, high 5, low 6, turnover 7, quantity 8, and the
// same of the day before from 9 on.
func mexcMiniTicker(b []byte, m *market.Market, s market.State) []byte {
	rate := market.Round(s.Last.Price.Float()/s.Open.Float()-1, 4).String()
	mini := mexcText(nil, 1, m.Symbol)
	for i, text := range []string{
		s.Last.Price.String(), rate, rate, s.High.String(), s.Low.String(), s.QuoteVolume.String(), s.Volume.String(),
		rate, rate, s.High.String(), s.Low.String(),
	} {
		mini = mexcText(mini, protowire.Number(i+2), text)
	}
	return mexcPush(b, mexcMini, m, s.Time, 309, mini)
}

// mexcIntervals are the kinds of candles, but for months.
var mexcIntervals = map[string]time.Duration{
	"1m": time.Minute, "5m": 5 * time.Minute, "15m": 15 * time.Minute, "30m": 30 * time.Minute, "60m": time.Hour,
	"4h": 4 * time.Hour, "1d": 24 * time.Hour, "1W": 7 * 24 * time.Hour,
}

func mexcRoutes(x *Exchange) map[string]http.HandlerFunc {
	refuse := func(w http.ResponseWriter, code int, why string) {
		provider.Respond(w, http.StatusBadRequest, map[string]any{"msg": why, "code": code, "_extend": nil})
	}
	// market answers for the symbol that the query names.
	ofMarket := func(answer func(w http.ResponseWriter, m *market.Market, r *http.Request)) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if m := x.Market(r.URL.Query().Get("symbol")); m != nil {
				answer(w, m, r)
				return
			}
			refuse(w, -1121, "Invalid symbol.")
		}
	}
	return map[string]http.HandlerFunc{
		"GET /api/v3/exchangeInfo": func(w http.ResponseWriter, _ *http.Request) {
			markets := x.Markets()
			list := make([]any, len(markets))
			for i, m := range markets {
				list[i] = mexcListing(x, m)
			}
			provider.Respond(w, http.StatusOK, map[string]any{
				"timezone": "CST", "serverTime": x.Now().UnixMilli(), "rateLimits": []any{}, "exchangeFilters": []any{}, "symbols": list,
			})
		},
		"GET /api/v3/ticker/24hr": func(w http.ResponseWriter, r *http.Request) {
			if symbol := r.URL.Query().Get("symbol"); symbol != "" {
				ofMarket(func(w http.ResponseWriter, m *market.Market, _ *http.Request) {
					provider.Respond(w, http.StatusOK, mexcHTTPTicker(m, m.State(x.Now())))
				})(w, r)
				return
			}
			markets := x.Quoted(x.Markets())
			list := make([]any, len(markets))
			for i, m := range markets {
				list[i] = mexcHTTPTicker(m, m.State(x.Now()))
			}
			provider.Respond(w, http.StatusOK, list)
		},
		"GET /api/v3/trades": ofMarket(func(w http.ResponseWriter, m *market.Market, _ *http.Request) {
			trades := m.Trades(x.Now(), 500)
			rows := make([]any, len(trades))
			for i, t := range trades {
				rows[len(rows)-1-i] = map[string]any{
					"id": nil, "price": t.Price.String(), "qty": t.Size.String(), "quoteQty": market.Round(t.Price.Float()*t.Size.Float(), 8).Short(),
					"time": t.Time / 1e6, "isBuyerMaker": !t.Buy, "isBestMatch": true,
				}
			}
			provider.Respond(w, http.StatusOK, rows)
		}),
		"GET /api/v3/klines": ofMarket(func(w http.ResponseWriter, m *market.Market, r *http.Request) {
			rows, ok := mexcCandles(x, m, r)
			if !ok {
				refuse(w, -1121, "Invalid interval.")
				return
			}
			provider.Respond(w, http.StatusOK, rows)
		}),
	}
}

func mexcListing(x *Exchange, m *market.Market) any {
	return map[string]any{
		"symbol": m.Symbol, "status": x.Status(m, "1", "2"), "baseAsset": m.Base, "baseAssetPrecision": m.SizeScale, "quoteAsset": m.Quote,
		"quotePrecision": m.PriceScale, "quoteAssetPrecision": m.PriceScale, "baseCommissionPrecision": m.SizeScale,
		"quoteCommissionPrecision": m.PriceScale, "orderTypes": []string{"LIMIT", "MARKET", "LIMIT_MAKER"}, "isSpotTradingAllowed": true,
		"isMarginTradingAllowed": false, "quoteAmountPrecision": "1", "baseSizePrecision": market.Exact(1, m.SizeScale).String(),
		"permissions": []string{"SPOT"}, "filters": []any{}, "maxQuoteAmount": "2000000", "makerCommission": "0", "takerCommission": "0.0005",
		"quoteAmountPrecisionMarket": "1", "maxQuoteAmountMarket": "100000", "fullName": m.Base, "tradeSideType": 1, "st": false,
	}
}

func mexcHTTPTicker(m *market.Market, s market.State) any {
	return map[string]any{
		"symbol": m.Symbol, "priceChange": market.Exact(s.Last.Price.Units-s.Open.Units, m.PriceScale).Short(),
		"priceChangePercent": market.Round(s.Last.Price.Float()/s.Open.Float()-1, 4).Short(), "prevClosePrice": s.Open.String(),
		"lastPrice": s.Last.Price.String(), "bidPrice": s.Bid.String(), "bidQty": s.BidSize.String(), "askPrice": s.Ask.String(),
		"askQty": s.AskSize.String(), "openPrice": s.Open.String(), "highPrice": s.High.String(), "lowPrice": s.Low.String(),
		"volume": s.Volume.String(), "quoteVolume": s.QuoteVolume.String(), "openTime": (s.Time - market.Day) / 1e6, "closeTime": s.Time / 1e6, "count": nil,
	}
}

// mexcCandles are at most 1,000, 500 by default, both bounds included, the oldest first: start, open, high, low, close,
// volume, end, volume in the quote.
func mexcCandles(x *Exchange, m *market.Market, r *http.Request) (rows []any, ok bool) {
	query := r.URL.Query()
	interval := mexcIntervals[query.Get("interval")]
	limit, err := strconv.Atoi(query.Get("limit"))
	if err != nil || limit < 1 {
		limit = 500
	}
	limit = min(limit, 1000)
	millis := func(name string, absent time.Time) time.Time {
		if n, err := strconv.ParseInt(query.Get(name), 10, 64); err == nil {
			return time.UnixMilli(n)
		}
		return absent
	}
	to := millis("endTime", x.Now())
	from := millis("startTime", to.Add(-time.Duration(limit)*interval))
	if interval == 0 {
		return nil, false
	}
	rows = []any{}
	if end := from.Add(time.Duration(limit) * interval); end.Before(to) {
		to = end.Add(-time.Nanosecond)
	}
	for _, c := range m.Candles(from, to.Add(time.Nanosecond), x.Now(), interval) {
		rows = append(rows, []any{
			c.Start / 1e6, c.Open.String(), c.High.String(), c.Low.String(), c.Close.String(), c.Volume.String(),
			(c.Start + int64(interval)) / 1e6, c.QuoteVolume.String(),
		})
	}
	return rows, true
}
