package venues

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/coder/websocket"
	"github.com/marketlog/marketlog/producers/simulator/market"
	"github.com/marketlog/marketlog/producers/simulator/provider"
)

// coinbase is Coinbase Exchange:
//
//	feed      https://docs.cdp.coinbase.com/exchange/websocket-feed/channels
//	limits    https://docs.cdp.coinbase.com/exchange/websocket-feed/rate-limits (8 connects a second, 100
//	          messages a second), https://docs.cdp.coinbase.com/exchange/websocket-feed/overview (a client
//	          has 5 seconds to subscribe), https://docs.cdp.coinbase.com/exchange/rest-api/rate-limits
//	          (10 requests a second, in bursts 15)
//	http      https://docs.cdp.coinbase.com/api-reference/exchange-api/rest-api/products
func coinbase() Venue {
	return Venue{
		Slug: "coinbase", Share: 1.5,
		Quotes: []QuoteAsset{{"USD", 300}, {"USDT", 30}, {"EUR", 80}, {"GBP", 60}, {"BTC", 50}, {"ETH", 15}},
		Symbol: func(base, quote string) string { return base + "-" + quote },
		Limits: Limits{
			Connects: 8, ConnectsPer: time.Second,
			Messages: 100, MessagesPer: time.Second,
			Requests: 15, RequestsPer: 1500 * time.Millisecond,
			Unsubscribed: 5 * time.Second,
		},
		Routes: coinbaseRoutes,
		Throttled: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "1")
			provider.Respond(w, http.StatusTooManyRequests, map[string]string{"message": "Public rate limit exceeded"})
		},
		Receive: coinbaseReceive,
		Channels: map[string]Channel{
			"matches": {Trade: func(b []byte, m *market.Market, t market.Trade) []byte { return coinbaseMatch(b, "match", m, t) }},
			// The ticker is sent for every match.
			"ticker": {Trade: func(b []byte, m *market.Market, t market.Trade) []byte { return coinbaseTicker(b, m, m.After(t)) }},
		},
	}
}

const microseconds = "2006-01-02T15:04:05.000000Z"

func coinbaseReceive(c *Conn, message []byte) {
	var request struct {
		Type     string            `json:"type"`
		Products []string          `json:"product_ids"`
		Channels []json.RawMessage `json:"channels"`
	}
	if err := json.Unmarshal(message, &request); err != nil || request.Type != "subscribe" && request.Type != "unsubscribe" {
		c.Send([]byte(`{"type":"error","message":"Failed to subscribe","reason":"malformed request"}`))
		return
	}
	for _, raw := range request.Channels {
		// A channel is its name, or its name and products of its own.
		channel := struct {
			Name     string   `json:"name"`
			Products []string `json:"product_ids"`
		}{Products: request.Products}
		if json.Unmarshal(raw, &channel.Name) != nil && json.Unmarshal(raw, &channel) != nil {
			c.Close(websocket.StatusPolicyViolation, "malformed channel")
			return
		}
		for _, product := range channel.Products {
			m := c.Exchange().Market(product)
			_, known := c.Exchange().venue.Channels[channel.Name]
			switch {
			case m == nil || !known:
				c.Send([]byte(`{"type":"error","message":"Failed to subscribe","reason":` + strconv.Quote(product+" is not a valid product") + `}`))
			case request.Type == "unsubscribe":
				c.Unsubscribe(channel.Name, m)
			case c.Subscribe(channel.Name, m):
				last := m.Trades(c.Now(), 1)[0]
				if channel.Name == "matches" {
					c.Send(coinbaseMatch(nil, "last_match", m, last))
				} else {
					c.Send(coinbaseTicker(nil, m, m.After(last)))
				}
			}
		}
	}
	type subscription struct {
		Name     string    `json:"name"`
		Products []string  `json:"product_ids"`
		Accounts *struct{} `json:"account_ids"`
	}
	var all []subscription
	for _, name := range []string{"matches", "ticker"} {
		if markets := c.Subscribed(name); len(markets) > 0 {
			all = append(all, subscription{Name: name, Products: symbols(markets)})
		}
	}
	answer, _ := json.Marshal(map[string]any{"type": "subscriptions", "channels": all})
	c.Send(answer)
}

func symbols(markets []*market.Market) []string {
	names := make([]string, len(markets))
	for i, m := range markets {
		names[i] = m.Symbol
	}
	return names
}

// coinbaseMatch carries the maker's side.
func coinbaseMatch(b []byte, kind string, m *market.Market, t market.Trade) []byte {
	b = append(b, `{"type":"`...)
	b = append(b, kind...)
	b = append(b, `","trade_id":`...)
	b = strconv.AppendInt(b, t.ID, 10)
	b = append(b, `,"maker_order_id":"`...)
	b = provider.AppendUUID(b, m.Seed^1, t.ID)
	b = append(b, `","taker_order_id":"`...)
	b = provider.AppendUUID(b, m.Seed^2, t.ID)
	b = append(b, `","side":"`...)
	b = append(b, side(!t.Buy)...)
	b = append(b, `","size":"`...)
	b = t.Size.AppendShort(b)
	b = append(b, `","price":"`...)
	b = t.Price.AppendShort(b)
	b = append(b, `","product_id":"`...)
	b = append(b, m.Symbol...)
	b = append(b, `","sequence":`...)
	b = strconv.AppendInt(b, coinbaseSequence(t.ID), 10)
	b = append(b, `,"time":"`...)
	b = provider.AppendTime(b, t.Time, microseconds)
	return append(b, `"}`...)
}

// coinbaseSequence counts all messages of a product, also those of channels that are not simulated.
func coinbaseSequence(trade int64) int64 { return 17*trade + 5 }

func coinbaseTicker(b []byte, m *market.Market, s market.State) []byte {
	b = append(b, `{"type":"ticker","sequence":`...)
	b = strconv.AppendInt(b, coinbaseSequence(s.Seq), 10)
	b = append(b, `,"product_id":"`...)
	b = append(b, m.Symbol...)
	b = append(b, `","price":"`...)
	b = s.Last.Price.AppendShort(b)
	b = append(b, `","open_24h":"`...)
	b = s.Open.AppendShort(b)
	b = append(b, `","volume_24h":"`...)
	b = s.Volume.AppendPadded(b, 8)
	b = append(b, `","low_24h":"`...)
	b = s.Low.AppendShort(b)
	b = append(b, `","high_24h":"`...)
	b = s.High.AppendShort(b)
	b = append(b, `","volume_30d":"`...)
	b = market.Exact(s.Volume.Units*30, s.Volume.Scale).AppendPadded(b, 8)
	b = append(b, `","best_bid":"`...)
	b = s.Bid.Append(b)
	b = append(b, `","best_bid_size":"`...)
	b = s.BidSize.AppendPadded(b, 8)
	b = append(b, `","best_ask":"`...)
	b = s.Ask.Append(b)
	b = append(b, `","best_ask_size":"`...)
	b = s.AskSize.AppendPadded(b, 8)
	b = append(b, `","side":"`...)
	b = append(b, side(s.Last.Buy)...)
	b = append(b, `","time":"`...)
	b = provider.AppendTime(b, s.Time, microseconds)
	b = append(b, `","trade_id":`...)
	b = strconv.AppendInt(b, s.Last.ID, 10)
	b = append(b, `,"last_size":"`...)
	b = s.Last.Size.AppendShort(b)
	return append(b, `"}`...)
}

func coinbaseRoutes(x *Exchange) map[string]http.HandlerFunc {
	// product answers for the market that the path names.
	product := func(answer func(m *market.Market, r *http.Request) (any, int)) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			m := x.Market(r.PathValue("id"))
			if m == nil {
				provider.Respond(w, http.StatusNotFound, map[string]string{"message": "NotFound"})
				return
			}
			body, status := answer(m, r)
			provider.Respond(w, status, body)
		}
	}
	return map[string]http.HandlerFunc{
		"GET /products": func(w http.ResponseWriter, _ *http.Request) {
			markets := x.Markets()
			list := make([]any, len(markets))
			for i, m := range markets {
				list[i] = coinbaseProduct(x, m)
			}
			provider.Respond(w, http.StatusOK, list)
		},
		"GET /products/{id}": product(func(m *market.Market, _ *http.Request) (any, int) {
			return coinbaseProduct(x, m), http.StatusOK
		}),
		"GET /products/{id}/ticker": product(func(m *market.Market, _ *http.Request) (any, int) {
			if !x.Quotes(m) {
				return map[string]string{"message": "NotFound"}, http.StatusNotFound
			}
			s := m.State(x.Now())
			return map[string]any{
				"trade_id": s.Last.ID, "price": s.Last.Price.String(), "size": s.Last.Size.Padded(8), "bid": s.Bid.Short(), "ask": s.Ask.Short(),
				"volume": s.Volume.Padded(8), "time": provider.SpellTime(s.Time, microseconds),
			}, http.StatusOK
		}),
		"GET /products/{id}/trades": product(func(m *market.Market, _ *http.Request) (any, int) {
			trades := m.Trades(x.Now(), 100)
			rows := make([]any, len(trades))
			for i, t := range trades {
				rows[len(rows)-1-i] = map[string]any{
					"trade_id": t.ID, "side": side(!t.Buy), "size": t.Size.Padded(8), "price": t.Price.Padded(8), "time": provider.SpellTime(t.Time, microseconds),
				}
			}
			return rows, http.StatusOK
		}),
		"GET /products/{id}/candles": product(func(m *market.Market, r *http.Request) (any, int) { return coinbaseCandles(x, m, r) }),
	}
}

func coinbaseProduct(x *Exchange, m *market.Market) any {
	return map[string]any{
		"id": m.Symbol, "base_currency": m.Base, "quote_currency": m.Quote,
		"quote_increment": market.Exact(1, m.PriceScale).String(), "base_increment": market.Exact(1, m.SizeScale).String(),
		"display_name": m.Base + "/" + m.Quote, "min_market_funds": "1", "margin_enabled": false, "post_only": false,
		"limit_only": false, "cancel_only": false, "status": "online", "status_message": "", "trading_disabled": x.Halted(m),
		"fx_stablecoin": m.BaseAsset.Stable, "max_slippage_percentage": "0.02000000", "auction_mode": false,
		"high_bid_limit_percentage": "",
	}
}

// coinbaseCandles are at most 300, the newest first: time, low, high, open, close, volume.
func coinbaseCandles(x *Exchange, m *market.Market, r *http.Request) (any, int) {
	const most = 300
	refuse := func(why string) (any, int) {
		return map[string]string{"message": why}, http.StatusBadRequest
	}
	query := r.URL.Query()
	seconds, _ := strconv.Atoi(query.Get("granularity"))
	switch seconds {
	case 60, 300, 900, 3600, 21600, 86400:
	case 0:
		seconds = 60
	default:
		return refuse("Unsupported granularity")
	}
	interval := time.Duration(seconds) * time.Second
	end, ok := instant(query.Get("end"), x.Now())
	start, also := instant(query.Get("start"), end.Add(-most*interval))
	switch {
	case !ok || !also:
		return refuse("start and end must be ISO 8601 or Unix seconds")
	case end.Sub(start) > most*interval:
		return refuse("granularity too small for the requested time range. Count of aggregations requested exceeds 300")
	}
	// Both ends belong to the range.
	candles := m.Candles(start, end.Add(time.Nanosecond), x.Now(), interval)
	rows := make([]any, len(candles))
	for i, c := range candles {
		rows[len(rows)-1-i] = []any{c.Start / market.Second, number(c.Low), number(c.High), number(c.Open), number(c.Close), number(c.Volume)}
	}
	return rows, http.StatusOK
}
