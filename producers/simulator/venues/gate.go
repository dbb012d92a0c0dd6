package venues

import (
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/marketlog/marketlog/producers/simulator/market"
	"github.com/marketlog/marketlog/producers/simulator/provider"
)

// gate is Gate's spot market, version 4:
//
//	feed    https://www.gate.com/docs/developers/apiv4/ws/en/ (spot.trades, spot.tickers, spot.ping)
//	http    https://www.gate.com/docs/developers/apiv4/en/#spot
//	limits  https://www.gate.com/docs/developers/apiv4/en/#frequency-limit-rule (200 requests in 10 s)
func gate() Venue {
	return Venue{
		Slug: "gate", Share: 0.7,
		Quotes: []QuoteAsset{{"USDT", 300}, {"USDC", 20}, {"BTC", 25}, {"ETH", 20}},
		Symbol: func(base, quote string) string { return base + "_" + quote },
		Limits: Limits{Requests: 200, RequestsPer: 10 * time.Second},
		Routes: gateRoutes,
		Throttled: func(w http.ResponseWriter, _ *http.Request) {
			provider.Respond(w, http.StatusTooManyRequests, gateError("TOO_MANY_REQUESTS", "Request Rate limit Exceeded"))
		},
		Receive: gateReceive,
		Channels: map[string]Channel{
			"spot.trades":  {Trade: gateTrade},
			"spot.tickers": {State: gateTicker},
		},
	}
}

func gateReceive(c *Conn, message []byte) {
	var request struct {
		Time    json.Number `json:"time"`
		Channel string      `json:"channel"`
		Event   string      `json:"event"`
		Payload []string    `json:"payload"`
	}
	now := c.Exchange().Now()
	send := func(body map[string]any) {
		body["time"], body["time_ms"] = now.Unix(), now.UnixMilli()
		b, _ := json.Marshal(body)
		c.Send(b)
	}
	refuse := func(code int, why string) {
		send(map[string]any{
			"channel": request.Channel, "event": request.Event, "error": map[string]any{"code": code, "message": why}, "result": nil,
		})
	}
	if err := json.Unmarshal(message, &request); err != nil {
		refuse(1, "invalid request body")
		return
	}
	_, known := c.Exchange().venue.Channels[request.Channel]
	switch {
	case request.Channel == "spot.ping":
		send(map[string]any{"channel": "spot.pong", "event": "", "error": nil, "result": nil})
		return
	case !known:
		refuse(2, "unknown channel "+request.Channel)
		return
	case request.Event != "subscribe" && request.Event != "unsubscribe":
		refuse(2, "unknown event "+request.Event)
		return
	}
	for _, symbol := range request.Payload {
		if c.Exchange().Market(symbol) == nil {
			refuse(2, "unknown currency pair "+symbol)
			return
		}
	}
	for _, symbol := range request.Payload {
		m := c.Exchange().Market(symbol)
		if request.Event == "unsubscribe" {
			c.Unsubscribe(request.Channel, m)
		} else if !c.Subscribe(request.Channel, m) {
			return
		}
	}
	id := hex.EncodeToString(message[:min(16, len(message))])
	send(map[string]any{
		"conn_id": id[:16], "trace_id": id, "requestId": id, "channel": request.Channel, "event": request.Event,
		"payload": request.Payload, "result": map[string]string{"status": "success"},
	})
}

// gateHead begins a message, up to its result.
func gateHead(b []byte, channel string, at int64) []byte {
	b = append(b, `{"time":`...)
	b = strconv.AppendInt(b, at/market.Second, 10)
	b = append(b, `,"time_ms":`...)
	b = strconv.AppendInt(b, at/1e6, 10)
	b = append(append(b, `,"channel":"`...), channel...)
	return append(b, `","event":"update","result":{`...)
}

// gateMillis spells milliseconds with up to six decimals.
func gateMillis(at int64) string { return market.Exact(at/100, 4).Short() }

func gateTrade(b []byte, m *market.Market, t market.Trade) []byte {
	id := strconv.FormatInt(t.ID, 10)
	b = gateHead(b, "spot.trades", t.Time)
	b = append(append(b, `"id":`...), id...)
	b = append(b, `,"create_time":`...)
	b = strconv.AppendInt(b, t.Time/market.Second, 10)
	b = append(append(b, `,"create_time_ms":"`...), gateMillis(t.Time)...)
	b = append(append(b, `","side":"`...), side(t.Buy)...)
	b = append(append(b, `","currency_pair":"`...), m.Symbol...)
	b = append(b, `","amount":"`...)
	b = t.Size.AppendPadded(b, 10)
	b = append(b, `","price":"`...)
	b = t.Price.AppendPadded(b, 10)
	b = append(append(append(append(b, `","range":"`...), id...), '-'), id...)
	return append(append(append(b, `","id_market":`...), id...), "}}"...)
}

func gateTicker(b []byte, m *market.Market, s market.State) []byte {
	b = gateHead(b, "spot.tickers", s.Time)
	row, _ := json.Marshal(gateState(m, s))
	return append(append(b, row[1:]...), '}') // the head has the row's brace
}

// gateState is a ticker's row; fields are in the venue's order.
func gateState(m *market.Market, s market.State) any {
	return struct {
		Symbol string `json:"currency_pair"`
		Last   string `json:"last"`
		Ask    string `json:"lowest_ask"`
		Bid    string `json:"highest_bid"`
		Change string `json:"change_percentage"`
		Base   string `json:"base_volume"`
		Quote  string `json:"quote_volume"`
		High   string `json:"high_24h"`
		Low    string `json:"low_24h"`
	}{
		m.Symbol, s.Last.Price.Short(), s.Ask.Short(), s.Bid.Short(),
		market.Round(100*(s.Last.Price.Float()/s.Open.Float()-1), 4).Short(), s.Volume.Short(), s.QuoteVolume.Short(), s.High.Short(), s.Low.Short(),
	}
}

func gateError(label, why string) any { return map[string]string{"label": label, "message": why} }

func gateRoutes(x *Exchange) map[string]http.HandlerFunc {
	// pair answers for the market that the query names.
	pair := func(answer func(m *market.Market, r *http.Request) (any, int)) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			m := x.Market(r.URL.Query().Get("currency_pair"))
			if m == nil {
				provider.Respond(w, http.StatusBadRequest, gateError("INVALID_CURRENCY_PAIR", "Invalid currency pair"))
				return
			}
			body, status := answer(m, r)
			provider.Respond(w, status, body)
		}
	}
	return map[string]http.HandlerFunc{
		"GET /api/v4/spot/currency_pairs": func(w http.ResponseWriter, _ *http.Request) {
			markets := x.Markets()
			list := make([]any, len(markets))
			for i, m := range markets {
				list[i] = map[string]any{
					"id": m.Symbol, "base": m.Base, "base_name": m.Base, "quote": m.Quote, "quote_name": m.Quote, "fee": "0.2",
					"min_base_amount": market.Exact(1, m.SizeScale).String(), "min_quote_amount": "1", "max_quote_amount": "5000000",
					"amount_precision": m.SizeScale, "precision": m.PriceScale, "trade_status": x.Status(m, "tradable", "untradable"), "sell_start": 0, "buy_start": 0,
					"delisting_time": 0, "type": "normal", "trade_url": "https://www.gate.com/trade/" + m.Symbol, "st_tag": false,
				}
			}
			provider.Respond(w, http.StatusOK, list)
		},
		"GET /api/v4/spot/tickers": func(w http.ResponseWriter, r *http.Request) {
			list := []any{}
			asked := r.URL.Query().Get("currency_pair")
			for _, m := range x.Quoted(x.Markets()) {
				if asked == "" || asked == m.Symbol {
					list = append(list, gateState(m, m.State(x.Now())))
				}
			}
			provider.Respond(w, http.StatusOK, list)
		},
		"GET /api/v4/spot/trades": pair(func(m *market.Market, _ *http.Request) (any, int) {
			trades := m.Trades(x.Now(), 100)
			rows := make([]any, len(trades))
			for i, t := range trades {
				id := strconv.FormatInt(t.ID, 10)
				rows[len(rows)-1-i] = map[string]string{
					"id": id, "create_time": strconv.FormatInt(t.Time/market.Second, 10), "create_time_ms": gateMillis(t.Time), "currency_pair": m.Symbol,
					"side": side(t.Buy), "amount": t.Size.Short(), "price": t.Price.Short(), "sequence_id": id,
				}
			}
			return rows, http.StatusOK
		}),
		"GET /api/v4/spot/candlesticks": pair(func(m *market.Market, r *http.Request) (any, int) { return gateCandles(x, m, r) }),
	}
}

// gateCandles are at most 1,000 of the newest 10,000, both bounds included, the oldest first: start, volume in the quote,
// close, high, low, open, volume in the base, whether it is closed.
func gateCandles(x *Exchange, m *market.Market, r *http.Request) (any, int) {
	refuse := func(why string) (any, int) { return gateError("INVALID_PARAM_VALUE", why), http.StatusBadRequest }
	query := r.URL.Query()
	text := query.Get("interval")
	if text == "" {
		text = "30m"
	}
	unit := time.Hour
	if days, ok := strings.CutSuffix(text, "d"); ok {
		text, unit = days+"h", 24*time.Hour
	}
	interval, err := time.ParseDuration(text)
	interval = interval * unit / time.Hour
	if err != nil || interval < time.Second {
		return refuse("Invalid interval")
	}
	to, ok := instant(query.Get("to"), x.Now())
	limit, err := strconv.Atoi(query.Get("limit"))
	if err != nil {
		limit = 100
	}
	from, also := instant(query.Get("from"), to.Add(-time.Duration(limit)*interval))
	switch {
	case !ok || !also:
		return refuse("Invalid time")
	case to.Sub(from) > 1000*interval:
		return refuse("Candlestick range too broad. Maximum 1000 data points are allowed per request")
	case x.Now().Sub(from) > 10_000*interval:
		return refuse("Candlestick too long ago. Maximum 10000 points ago are allowed")
	}
	rows := [][]string{}
	for _, c := range m.Candles(from, to.Add(time.Nanosecond), x.Now(), interval) {
		closed := c.Start+int64(interval) <= x.Now().UnixNano()
		rows = append(rows, []string{
			strconv.FormatInt(c.Start/market.Second, 10), c.QuoteVolume.String(), c.Close.Short(), c.High.Short(), c.Low.Short(), c.Open.Short(),
			c.Volume.String(), strconv.FormatBool(closed),
		})
	}
	return rows, http.StatusOK
}
