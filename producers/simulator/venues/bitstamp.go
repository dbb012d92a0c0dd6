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

// bitstamp is Bitstamp's spot market, version 2. Its feed has no ticker.
//
//	feed    https://www.bitstamp.net/websocket/v2/ (live_trades, heartbeat)
//	http    https://www.bitstamp.net/api/#tag/Tickers, #tag/Market-info, #tag/Transactions-public (8,000
//	        requests in 10 minutes)
func bitstamp() Venue {
	return Venue{
		Slug: "bitstamp", Share: 0.5,
		Quotes: []QuoteAsset{{"USD", 200}, {"EUR", 150}, {"GBP", 20}, {"BTC", 15}, {"USDT", 10}, {"USDC", 10}},
		Fiats:  []string{"EUR", "GBP"},
		Symbol: func(base, quote string) string { return strings.ToLower(base + quote) },
		Limits: Limits{Requests: 8000, RequestsPer: 10 * time.Minute},
		Routes: bitstampRoutes,
		Throttled: func(w http.ResponseWriter, _ *http.Request) {
			provider.Respond(w, http.StatusTooManyRequests, map[string]string{"code": "400.002", "error": "Too many requests"})
		},
		Receive:  bitstampReceive,
		Channels: map[string]Channel{bitstampTrades: {Trade: bitstampTrade}},
	}
}

const bitstampTrades = "live_trades_"

func bitstampReceive(c *Conn, message []byte) {
	send := func(event, channel string, data any) {
		b, _ := json.Marshal(struct {
			Event   string `json:"event"`
			Channel string `json:"channel"`
			Data    any    `json:"data"`
		}{event, channel, data})
		c.Send(b)
	}
	refuse := func(why string) { send("bts:error", "", map[string]any{"code": nil, "message": why}) }
	var request struct {
		Event string `json:"event"`
		Data  struct {
			Channel string `json:"channel"`
		} `json:"data"`
	}
	if err := json.Unmarshal(message, &request); err != nil {
		refuse("Incorrect JSON format.")
		return
	}
	symbol, known := strings.CutPrefix(request.Data.Channel, bitstampTrades)
	m := c.Exchange().Market(symbol)
	switch {
	case request.Event == "bts:heartbeat":
		send("bts:heartbeat", "", map[string]string{"status": "success"})
	case !known || m == nil:
		refuse("Bad subscription string.")
	case request.Event == "bts:subscribe":
		if c.Subscribe(bitstampTrades, m) {
			send("bts:subscription_succeeded", request.Data.Channel, struct{}{})
		}
	case request.Event == "bts:unsubscribe":
		c.Unsubscribe(bitstampTrades, m)
		send("bts:unsubscription_succeeded", request.Data.Channel, struct{}{})
	default:
		refuse("Bad event.")
	}
}

func bitstampTrade(b []byte, m *market.Market, t market.Trade) []byte {
	b = append(b, `{"data":{"id":`...)
	b = strconv.AppendInt(b, t.ID, 10)
	b = append(b, `,"timestamp":"`...)
	b = strconv.AppendInt(b, t.Time/market.Second, 10)
	b = append(b, `","amount":`...)
	b = t.Size.AppendShort(b)
	b = append(b, `,"amount_str":"`...)
	b = t.Size.AppendPadded(b, 8)
	b = append(b, `","price":`...)
	b = t.Price.AppendShort(b)
	b = append(b, `,"price_str":"`...)
	b = t.Price.Append(b)
	b = append(append(b, `","type":`...), bitstampSide(t)...)
	b = append(b, `,"microtimestamp":"`...)
	b = strconv.AppendInt(b, t.Time/1000, 10)
	b = append(b, `","buy_order_id":`...)
	b = strconv.AppendInt(b, bitstampOrder(m, 2*t.ID), 10)
	b = append(b, `,"sell_order_id":`...)
	b = strconv.AppendInt(b, bitstampOrder(m, 2*t.ID+1), 10)
	b = append(append(b, `},"channel":"`...), bitstampTrades...)
	return append(append(b, m.Symbol...), `","event":"trade"}`...)
}

// bitstampSide is 0 for a buying taker, 1 for a selling one.
func bitstampSide(t market.Trade) string {
	if t.Buy {
		return "0"
	}
	return "1"
}

// bitstampOrder is the id of an order, of 16 digits.
func bitstampOrder(m *market.Market, n int64) int64 { return 13e14 + int64(m.Seed.At(n)%1e15) }

func bitstampRoutes(x *Exchange) map[string]http.HandlerFunc {
	// pair answers for the market that the path names.
	pair := func(answer func(w http.ResponseWriter, m *market.Market, r *http.Request)) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if m := x.Market(r.PathValue("pair")); m != nil {
				answer(w, m, r)
				return
			}
			http.Error(w, "Page not found", http.StatusNotFound)
		}
	}
	return map[string]http.HandlerFunc{
		"GET /api/v2/trading-pairs-info/": func(w http.ResponseWriter, _ *http.Request) {
			markets := x.Markets()
			list := make([]any, len(markets))
			for i, m := range markets {
				list[i] = map[string]any{
					"name": m.Base + "/" + m.Quote, "url_symbol": m.Symbol, "base_decimals": m.SizeScale, "counter_decimals": m.PriceScale,
					"minimum_order": "10.0 " + m.Quote, "trading": x.Status(m, "Enabled", "Disabled"), "instant_and_market_orders": "Enabled",
					"description": m.Base + " / " + m.Quote,
				}
			}
			provider.Respond(w, http.StatusOK, list)
		},
		"GET /api/v2/ticker/{$}": func(w http.ResponseWriter, _ *http.Request) {
			markets := x.Quoted(x.Markets())
			list := make([]any, len(markets))
			for i, m := range markets {
				row := bitstampTicker(m, m.State(x.Now()))
				row["pair"] = m.Base + "/" + m.Quote
				list[i] = row
			}
			provider.Respond(w, http.StatusOK, list)
		},
		"GET /api/v2/ticker/{pair}/": pair(func(w http.ResponseWriter, m *market.Market, _ *http.Request) {
			provider.Respond(w, http.StatusOK, bitstampTicker(m, m.State(x.Now())))
		}),
		"GET /api/v2/transactions/{pair}/": pair(func(w http.ResponseWriter, m *market.Market, _ *http.Request) {
			trades := m.Trades(x.Now(), 100)
			rows := make([]any, len(trades))
			for i, t := range trades {
				rows[len(rows)-1-i] = map[string]string{
					"date": strconv.FormatInt(t.Time/market.Second, 10), "tid": strconv.FormatInt(t.ID, 10), "amount": t.Size.Padded(8),
					"price": t.Price.String(), "type": bitstampSide(t),
				}
			}
			provider.Respond(w, http.StatusOK, rows)
		}),
		"GET /api/v2/ohlc/{pair}/": pair(func(w http.ResponseWriter, m *market.Market, r *http.Request) { bitstampCandles(w, x, m, r) }),
	}
}

func bitstampTicker(m *market.Market, s market.State) map[string]string {
	return map[string]string{
		"ask": s.Ask.String(), "bid": s.Bid.String(), "high": s.High.String(), "last": s.Last.Price.String(), "low": s.Low.String(),
		"open": s.Open.String(), "open_24": s.Open.String(), "percent_change_24": market.Round(100*(s.Last.Price.Float()/s.Open.Float()-1), 2).String(),
		"side": bitstampSide(s.Last), "timestamp": strconv.FormatInt(s.Time/market.Second, 10), "volume": s.Volume.Padded(8),
		"vwap": m.Price((s.High.Float() + s.Low.Float() + s.Last.Price.Float()) / 3).String(),
	}
}

// bitstampCandles are at most 1,000, the oldest first: the last before the end, or the first from the start on if
// there is no end.
func bitstampCandles(w http.ResponseWriter, x *Exchange, m *market.Market, r *http.Request) {
	query := r.URL.Query()
	seconds, _ := strconv.Atoi(query.Get("step"))
	limit, _ := strconv.Atoi(query.Get("limit"))
	interval, whole := time.Duration(seconds)*time.Second, 24*time.Hour
	if seconds < 60 || interval > 3*whole || interval < whole && whole%interval != 0 || limit < 1 || limit > 1000 {
		provider.Respond(w, http.StatusBadRequest, map[string]any{"code": "API0004", "errors": []string{"invalid step or limit"}})
		return
	}
	span := time.Duration(limit) * interval
	to, ok := instant(query.Get("end"), time.Time{})
	from, also := instant(query.Get("start"), time.Time{})
	if !ok || !also {
		provider.Respond(w, http.StatusBadRequest, map[string]any{"code": "API0004", "errors": []string{"invalid start or end"}})
		return
	}
	switch {
	case to.IsZero() && !from.IsZero():
		to = from.Add(span - time.Nanosecond)
	case to.IsZero():
		to = x.Now()
		fallthrough
	case from.Before(to.Add(-span)):
		from = to.Add(time.Nanosecond - span)
	}
	rows := []any{}
	for _, c := range m.Candles(from, to.Add(time.Nanosecond), x.Now(), interval) {
		rows = append(rows, map[string]string{
			"timestamp": strconv.FormatInt(c.Start/market.Second, 10), "open": c.Open.String(), "high": c.High.String(), "low": c.Low.String(),
			"close": c.Close.String(), "volume": c.Volume.Padded(8),
		})
	}
	provider.Respond(w, http.StatusOK, map[string]any{"data": map[string]any{"pair": m.Base + "/" + m.Quote, "ohlc": rows}})
}
