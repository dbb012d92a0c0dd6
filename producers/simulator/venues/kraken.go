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

// kraken is Kraken's spot market, feed version 2:
//
//	feed      https://docs.kraken.com/exchange/api-reference/spot-websocket-v2/ticker, …/trade,
//	          https://docs.kraken.com/api/docs/websocket-v2/heartbeat (every second), …/status, …/ping
//	limits    https://support.kraken.com/articles/206548367-what-are-the-api-rate-limits (public calls:
//	          one a second by address), about 150 connects in 10 minutes
//	http      https://docs.kraken.com/api/docs/rest-api/get-tradable-asset-pairs, …/get-ticker-information,
//	          …/get-ohlc-data (the newest 720 only), …/get-recent-trades
func kraken() Venue {
	return Venue{
		Slug: "kraken", Share: 0.8,
		Quotes: []QuoteAsset{{"USD", 300}, {"EUR", 250}, {"USDT", 30}, {"USDC", 25}, {"BTC", 50}, {"ETH", 20}, {"GBP", 40}},
		Fiats:  []string{"EUR", "GBP", "AUD"},
		Symbol: func(base, quote string) string { return base + "/" + quote },
		Limits: Limits{
			Connects: 150, ConnectsPer: 10 * time.Minute,
			Requests: 15, RequestsPer: 15 * time.Second,
		},
		Routes: krakenRoutes,
		Throttled: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "1")
			provider.Respond(w, http.StatusTooManyRequests, krakenError("EGeneral:Too many requests"))
		},
		Open: func(c *Conn) {
			c.Send([]byte(`{"channel":"status","type":"update","data":[{"version":"2.0.10","system":"online","api_version":"v2","connection_id":` +
				strconv.FormatInt(c.Now().UnixNano(), 10) + `}]}`))
		},
		Receive:        krakenReceive,
		HeartbeatEvery: time.Second,
		Heartbeat: func(c *Conn) {
			if len(c.topics) > 0 {
				c.Send([]byte(`{"channel":"heartbeat"}`))
			}
		},
		Channels: map[string]Channel{
			"trade":      {Trade: func(b []byte, m *market.Market, t market.Trade) []byte { return krakenTrades(b, "update", m, t) }},
			"ticker bbo": {State: func(b []byte, m *market.Market, s market.State) []byte { return krakenTicker(b, "update", m, s) }},
			"ticker trade": {Trade: func(b []byte, m *market.Market, t market.Trade) []byte {
				return krakenTicker(b, "update", m, m.After(t))
			}},
		},
	}
}

func krakenReceive(c *Conn, message []byte) {
	now := c.Exchange().Now().UnixNano()
	var request struct {
		Method string `json:"method"`
		ReqID  *int64 `json:"req_id"`
		Params struct {
			Channel  string   `json:"channel"`
			Symbols  []string `json:"symbol"`
			Trigger  string   `json:"event_trigger"`
			Snapshot *bool    `json:"snapshot"`
		} `json:"params"`
	}
	answer := func(b []byte) {
		if request.ReqID != nil {
			b = append(b, `,"req_id":`...)
			b = strconv.AppendInt(b, *request.ReqID, 10)
		}
		b = append(b, `,"time_in":"`...)
		b = provider.AppendTime(b, now, microseconds)
		b = append(b, `","time_out":"`...)
		b = provider.AppendTime(b, now, microseconds)
		c.Send(append(b, `"}`...))
	}
	refuse := func(method, symbol, why string) {
		b := append([]byte(`{"error":"`), why...)
		b = append(append(b, `","method":"`...), method...)
		b = append(b, `","success":false,"symbol":`...)
		answer(strconv.AppendQuote(b, symbol))
	}
	if err := json.Unmarshal(message, &request); err != nil {
		refuse("", "", "Malformed request")
		return
	}
	p := request.Params
	channel, snapshot := p.Channel, p.Snapshot == nil || *p.Snapshot
	switch {
	case request.Method == "ping":
		answer([]byte(`{"method":"pong"`))
		return
	case request.Method != "subscribe" && request.Method != "unsubscribe":
		refuse("", "", "Unsupported method")
		return
	case channel == "ticker" && p.Trigger == "bbo":
		channel = "ticker bbo"
	case channel == "ticker":
		channel = "ticker trade"
	case channel != "trade":
		refuse(request.Method, "", "Channel not supported")
		return
	}
	for _, symbol := range p.Symbols {
		m := c.Exchange().Market(symbol)
		if m == nil {
			refuse(request.Method, symbol, "Currency pair not supported "+symbol)
			continue
		}
		if request.Method == "unsubscribe" {
			c.Unsubscribe(channel, m)
		} else if !c.Subscribe(channel, m) {
			return
		}
		b := append([]byte(`{"method":"`), request.Method...)
		b = append(append(b, `","result":{"channel":"`...), p.Channel...)
		b = append(b, `","snapshot":`...)
		b = strconv.AppendBool(b, snapshot)
		b = append(append(b, `,"symbol":"`...), m.Symbol...)
		answer(append(b, `"},"success":true`...))
		switch {
		case request.Method != "subscribe" || !snapshot:
		case p.Channel == "trade":
			c.Send(krakenTrades(nil, "snapshot", m, m.Trades(c.Now(), 50)...))
		default:
			c.Send(krakenTicker(nil, "snapshot", m, m.State(c.Now())))
		}
	}
}

func krakenTrades(b []byte, kind string, m *market.Market, trades ...market.Trade) []byte {
	b = append(append(b, `{"channel":"trade","type":"`...), kind...)
	b = append(b, `","data":[`...)
	for i, t := range trades {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(b, `{"symbol":"`...), m.Symbol...)
		b = append(append(b, `","side":"`...), side(t.Buy)...)
		b = append(b, `","price":`...)
		b = t.Price.AppendNumber(b)
		b = append(b, `,"qty":`...)
		b = t.Size.AppendNumber(b)
		b = append(b, `,"ord_type":"`...)
		b = append(b, [...]string{"market", "limit"}[t.ID&1]...)
		b = append(b, `","trade_id":`...)
		b = strconv.AppendInt(b, t.ID, 10)
		b = append(b, `,"timestamp":"`...)
		b = provider.AppendTime(b, t.Time, microseconds)
		b = append(b, `"}`...)
	}
	return append(b, "]}"...)
}

func krakenTicker(b []byte, kind string, m *market.Market, s market.State) []byte {
	field := func(name string, d market.Decimal) {
		b = append(append(append(b, `,"`...), name...), `":`...)
		b = d.AppendNumber(b)
	}
	b = append(append(b, `{"channel":"ticker","type":"`...), kind...)
	b = append(append(b, `","data":[{"symbol":"`...), m.Symbol...)
	b = append(b, '"')
	field("bid", s.Bid)
	field("bid_qty", s.BidSize)
	field("ask", s.Ask)
	field("ask_qty", s.AskSize)
	field("last", s.Last.Price)
	field("volume", s.Volume)
	field("vwap", m.Price((s.High.Float()+s.Low.Float()+s.Last.Price.Float())/3))
	field("low", s.Low)
	field("high", s.High)
	field("change", market.Exact(s.Last.Price.Units-s.Open.Units, m.PriceScale))
	field("change_pct", market.Round(100*(s.Last.Price.Float()/s.Open.Float()-1), 2))
	b = append(b, `,"timestamp":"`...)
	b = provider.AppendTime(b, s.Time, microseconds)
	return append(b, `"}]}`...)
}

// krakenAlt is an asset's newer name in the HTTP interface, krakenClassed its oldest, with a class letter.
func krakenAlt(asset string) string {
	switch asset {
	case "BTC":
		return "XBT"
	case "DOGE":
		return "XDG"
	}
	return asset
}

func krakenClassed(asset string) string {
	alt := krakenAlt(asset)
	switch alt {
	case "XBT", "ETH", "ETC", "LTC", "MLN", "REP", "XDG", "XLM", "XMR", "XRP", "ZEC":
		return "X" + alt
	case "USD", "EUR", "GBP", "CAD", "JPY", "AUD":
		return "Z" + alt
	}
	return alt
}

// krakenKey is what the HTTP interface calls a pair: by the oldest names only if both assets have one.
func krakenKey(m *market.Market) string {
	base, quote := krakenClassed(m.Base), krakenClassed(m.Quote)
	if base[1:] != krakenAlt(m.Base) || quote[1:] != krakenAlt(m.Quote) {
		return krakenAlt(m.Base) + krakenAlt(m.Quote)
	}
	return base + quote
}

func krakenError(text string) any {
	return map[string]any{"error": []string{text}}
}

func krakenRoutes(x *Exchange) map[string]http.HandlerFunc {
	byName := map[string]*market.Market{}
	for _, m := range x.Markets() {
		for _, name := range []string{krakenKey(m), krakenAlt(m.Base) + krakenAlt(m.Quote), m.Symbol, krakenAlt(m.Base) + "/" + krakenAlt(m.Quote)} {
			byName[name] = m
		}
	}
	// result answers for the pairs asked for, all if none is.
	result := func(answer func(result map[string]any, m *market.Market, r *http.Request), all bool) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			body := map[string]any{}
			pairs := r.URL.Query().Get("pair")
			if pairs == "" && all {
				for _, m := range x.Markets() {
					answer(body, m, r)
				}
			} else {
				for _, pair := range strings.Split(pairs, ",") {
					m := byName[pair]
					if m == nil {
						provider.Respond(w, http.StatusOK, krakenError("EQuery:Unknown asset pair"))
						return
					}
					answer(body, m, r)
				}
			}
			provider.Respond(w, http.StatusOK, map[string]any{"error": []string{}, "result": body})
		}
	}
	return map[string]http.HandlerFunc{
		"GET /0/public/AssetPairs": result(func(result map[string]any, m *market.Market, _ *http.Request) {
			result[krakenKey(m)] = krakenPair(x, m)
		}, true),
		"GET /0/public/Ticker": result(func(result map[string]any, m *market.Market, _ *http.Request) {
			if x.Quotes(m) {
				result[krakenKey(m)] = krakenHTTPTicker(m, m.State(x.Now()))
			}
		}, true),
		"GET /0/public/Trades": result(func(result map[string]any, m *market.Market, _ *http.Request) {
			trades := m.Trades(x.Now(), 200)
			rows := make([]any, len(trades))
			for i, t := range trades {
				rows[i] = []any{
					t.Price.String(), t.Size.Padded(8), json.Number(market.Exact(t.Time/100, 7).Short()),
					side(t.Buy)[:1], [...]string{"m", "l"}[t.ID&1], "", t.ID,
				}
			}
			result[krakenKey(m)] = rows
			result["last"] = strconv.FormatInt(trades[len(trades)-1].Time, 10)
		}, false),
		"GET /0/public/OHLC": result(func(result map[string]any, m *market.Market, r *http.Request) {
			minutes, err := strconv.Atoi(r.URL.Query().Get("interval"))
			if err != nil || minutes < 1 {
				minutes = 1
			}
			interval := time.Duration(minutes) * time.Minute
			from := x.Now().Add(-720 * interval)
			if since, ok := instant(r.URL.Query().Get("since"), from); ok && since.After(from) {
				from = since
			}
			candles := m.Candles(from, x.Now(), x.Now(), interval)
			rows := make([]any, len(candles))
			for i, c := range candles {
				average := m.Price((c.High.Float() + c.Low.Float() + c.Close.Float()) / 3)
				rows[i] = []any{
					c.Start / market.Second, c.Open.String(), c.High.String(), c.Low.String(), c.Close.String(), average.String(),
					c.Volume.Padded(8), c.Trades,
				}
			}
			result[krakenKey(m)] = rows
			if len(candles) > 1 {
				result["last"] = candles[len(candles)-2].Start / market.Second // the newest that is closed
			}
		}, false),
	}
}

func krakenPair(x *Exchange, m *market.Market) any {
	fees := [][]float64{{0, 0.4}, {10000, 0.35}, {50000, 0.24}}
	return map[string]any{
		"altname": krakenAlt(m.Base) + krakenAlt(m.Quote), "wsname": krakenAlt(m.Base) + "/" + krakenAlt(m.Quote),
		"aclass_base": "currency", "base": krakenClassed(m.Base), "aclass_quote": "currency", "quote": krakenClassed(m.Quote),
		"lot": "unit", "cost_decimals": 5, "pair_decimals": m.PriceScale, "lot_decimals": 8, "lot_multiplier": 1,
		"leverage_buy": []int{}, "leverage_sell": []int{}, "fees": fees, "fees_maker": fees, "fee_volume_currency": "ZUSD",
		"margin_call": 80, "margin_stop": 40, "ordermin": market.Exact(5, m.SizeScale).String(), "costmin": "0.5",
		"tick_size": market.Exact(1, m.PriceScale).String(), "status": x.Status(m, "online", "cancel_only"),
	}
}

func krakenHTTPTicker(m *market.Market, s market.State) any {
	volume, average := s.Volume.Padded(8), m.Price((s.High.Float()+s.Low.Float()+s.Last.Price.Float())/3).String()
	trades := m.TradesPerDay()
	lots := func(d market.Decimal) []string {
		whole := strconv.FormatInt(max(1, int64(d.Float())), 10)
		return []string{whole, whole + ".000"}
	}
	return map[string]any{
		"a": append([]string{s.Ask.String()}, lots(s.AskSize)...), "b": append([]string{s.Bid.String()}, lots(s.BidSize)...),
		"c": []string{s.Last.Price.String(), s.Last.Size.Padded(8)}, "v": []string{volume, volume}, "p": []string{average, average},
		"t": []int64{trades, trades}, "l": []string{s.Low.String(), s.Low.String()}, "h": []string{s.High.String(), s.High.String()},
		"o": s.Open.String(),
	}
}
