package venues

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/marketlog/marketlog/producers/simulator/market"
	"github.com/marketlog/marketlog/producers/simulator/provider"
)

// gemini is Gemini's spot market:
//
//	feed    https://developer.gemini.com/websocket/streams (trade and bookTicker; times in nanoseconds)
//	http    https://developer.gemini.com/rest/market-data
//	limits  https://docs.gemini.com/rate-limit (120 public requests a minute), https://docs.gemini.com/websocket-api/
//	        (12 connections a minute)
func gemini() Venue {
	return Venue{
		Slug: "gemini", Share: 0.25,
		Quotes: []QuoteAsset{{"USD", 150}, {"GUSD", 8}, {"USDT", 5}, {"BTC", 12}, {"ETH", 8}, {"EUR", 5}, {"GBP", 5}, {"SGD", 3}},
		// Names have no separator: this coin in dollars would read as dollars in Gemini's dollars.
		Assets:       map[string]string{"USDG": ""},
		Symbol:       func(base, quote string) string { return strings.ToLower(base + quote) },
		ListsTrading: true,
		Limits: Limits{
			Connects: 12, ConnectsPer: time.Minute,
			Requests: 120, RequestsPer: time.Minute,
		},
		Routes: geminiRoutes,
		Throttled: func(w http.ResponseWriter, _ *http.Request) {
			provider.Respond(w, http.StatusTooManyRequests, geminiError("RateLimited", "Requests were made too frequently"))
		},
		Receive: geminiReceive,
		Channels: map[string]Channel{
			"trade":      {Trade: geminiTrade},
			"bookTicker": {State: geminiBookTicker},
		},
	}
}

func geminiReceive(c *Conn, message []byte) {
	var request struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params []string        `json:"params"`
	}
	answer := func(status int, rest string) {
		id := request.ID
		if id == nil {
			id = json.RawMessage("null")
		}
		c.Send([]byte(`{"id":` + string(id) + `,"status":` + strconv.Itoa(status) + rest + "}"))
	}
	refuse := func(why string) {
		answer(http.StatusBadRequest, `,"error":{"code":-1013,"msg":`+strconv.Quote(why)+`}`)
	}
	if err := json.Unmarshal(message, &request); err != nil {
		refuse("Invalid request")
		return
	}
	var subscribe bool
	switch strings.ToUpper(request.Method) {
	case "PING":
		answer(http.StatusOK, `,"result":{}`)
		return
	case "TIME":
		answer(http.StatusOK, `,"result":{"serverTime":`+strconv.FormatInt(c.Exchange().Now().UnixMilli(), 10)+`}`)
		return
	case "SUBSCRIBE":
		subscribe = true
	case "UNSUBSCRIBE":
	default:
		refuse("Invalid method")
		return
	}
	// A request is done whole or not at all.
	topics := make([]topic, len(request.Params))
	for i, name := range request.Params {
		symbol, channel, _ := strings.Cut(name, "@")
		_, known := c.Exchange().venue.Channels[channel]
		topics[i] = topic{channel, c.Exchange().Market(strings.ToLower(symbol))}
		if !known || topics[i].market == nil {
			refuse("Invalid stream")
			return
		}
	}
	for _, t := range topics {
		if !subscribe {
			c.Unsubscribe(t.channel, t.market)
		} else if !c.Subscribe(t.channel, t.market) {
			return
		}
	}
	answer(http.StatusOK, "")
}

// geminiTrade says in "m" whether the buyer was the maker.
func geminiTrade(b []byte, m *market.Market, t market.Trade) []byte {
	b = strconv.AppendInt(append(b, `{"E":`...), t.Time, 10)
	b = append(append(b, `,"s":"`...), m.Symbol...)
	b = strconv.AppendInt(append(b, `","t":`...), geminiNumbers+t.ID, 10)
	b = t.Price.Append(append(b, `,"p":"`...))
	b = t.Size.AppendPadded(append(b, `","q":"`...), 8)
	b = strconv.AppendBool(append(b, `","m":`...), !t.Buy)
	return append(b, '}')
}

// geminiNumbers is where the numbers of trades begin.
const geminiNumbers = 2_840_140_000_000_000

func geminiBookTicker(b []byte, m *market.Market, s market.State) []byte {
	b = strconv.AppendInt(append(b, `{"u":`...), s.Seq, 10)
	b = strconv.AppendInt(append(b, `,"E":`...), s.Time, 10)
	b = append(append(b, `,"s":"`...), m.Symbol...)
	b = s.Bid.Append(append(b, `","b":"`...))
	b = s.BidSize.AppendPadded(append(b, `","B":"`...), 8)
	b = s.Ask.Append(append(b, `","a":"`...))
	b = s.AskSize.AppendPadded(append(b, `","A":"`...), 8)
	b = s.Last.Price.Append(append(b, `","c":"`...)) // the last trade
	b = s.Last.Size.AppendPadded(append(b, `","C":"`...), 8)
	return append(b, `"}`...)
}

func geminiError(reason, why string) any {
	return map[string]string{"result": "error", "reason": reason, "message": why}
}

// geminiIntervals are the kinds of candles.
var geminiIntervals = map[string]time.Duration{
	"1m": time.Minute, "5m": 5 * time.Minute, "15m": 15 * time.Minute, "30m": 30 * time.Minute, "1hr": time.Hour,
	"6hr": 6 * time.Hour, "1day": 24 * time.Hour,
}

func geminiRoutes(x *Exchange) map[string]http.HandlerFunc {
	// market answers for the symbol that the path names.
	ofMarket := func(answer func(m *market.Market, r *http.Request) any) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			m := x.Market(strings.ToLower(r.PathValue("symbol")))
			if m == nil || !x.Quotes(m) {
				provider.Respond(w, http.StatusBadRequest, geminiError("InvalidSymbol", "Received a bad symbol"))
				return
			}
			if body := answer(m, r); body != nil {
				provider.Respond(w, http.StatusOK, body)
				return
			}
			provider.Respond(w, http.StatusBadRequest, geminiError("InvalidTimeFrame", "Received a bad time frame"))
		}
	}
	return map[string]http.HandlerFunc{
		"GET /v1/symbols": func(w http.ResponseWriter, _ *http.Request) {
			markets := x.Markets()
			symbols := make([]string, len(markets))
			for i, m := range markets {
				symbols[i] = m.Symbol
			}
			provider.Respond(w, http.StatusOK, symbols)
		},
		"GET /v1/symbols/details/{symbol}": ofMarket(func(m *market.Market, _ *http.Request) any {
			return map[string]any{
				"symbol": strings.ToUpper(m.Symbol), "base_currency": m.Base, "quote_currency": m.Quote,
				"tick_size": json.Number(market.Exact(1, m.SizeScale).String()), "quote_increment": json.Number(market.Exact(1, m.PriceScale).String()),
				"min_order_size": market.Exact(1, m.SizeScale).String(), "status": "open", "wrap_enabled": false,
				"product_type": "spot", "contract_type": "vanilla", "contract_price_currency": m.Quote,
			}
		}),
		"GET /v1/pubticker/{symbol}": ofMarket(func(m *market.Market, _ *http.Request) any {
			s := m.State(x.Now())
			return map[string]any{
				"bid": s.Bid.String(), "ask": s.Ask.String(), "last": s.Last.Price.String(),
				"volume": map[string]any{m.Base: s.Volume.String(), m.Quote: s.QuoteVolume.String(), "timestamp": s.Time / market.Minute * 60_000},
			}
		}),
		"GET /v2/ticker/{symbol}": ofMarket(func(m *market.Market, _ *http.Request) any {
			s := m.State(x.Now())
			return map[string]any{
				"symbol": strings.ToUpper(m.Symbol), "open": s.Open.String(), "high": s.High.String(), "low": s.Low.String(),
				"close": s.Last.Price.String(), "changes": geminiHours(m, x.Now()), "bid": s.Bid.String(), "ask": s.Ask.String(),
			}
		}),
		"GET /v1/pricefeed": func(w http.ResponseWriter, _ *http.Request) {
			markets := x.Markets()
			rows := make([]any, len(markets))
			for i, m := range markets {
				s := m.State(x.Now())
				rows[i] = map[string]string{
					"pair": strings.ToUpper(m.Symbol), "price": s.Last.Price.String(),
					"percentChange24h": market.Round(s.Last.Price.Float()/s.Open.Float()-1, 4).String(),
				}
			}
			provider.Respond(w, http.StatusOK, rows)
		},
		"GET /v1/trades/{symbol}": ofMarket(func(m *market.Market, r *http.Request) any {
			n, err := strconv.Atoi(r.URL.Query().Get("limit_trades"))
			if err != nil {
				n = 50
			}
			trades := m.Trades(x.Now(), min(max(n, 1), 500))
			rows := make([]any, len(trades))
			for i, t := range trades {
				rows[len(rows)-1-i] = map[string]any{
					"timestamp": t.Time / market.Second, "timestampms": t.Time / 1e6, "tid": geminiNumbers + t.ID, "price": t.Price.String(),
					"amount": t.Size.Short(), "exchange": "gemini", "type": side(t.Buy),
				}
			}
			return rows
		}),
		"GET /v2/candles/{symbol}/{interval}": ofMarket(func(m *market.Market, r *http.Request) any {
			interval := geminiIntervals[r.PathValue("interval")]
			if interval == 0 {
				return nil
			}
			candles := m.Candles(x.Now().Add(-geminiReach(interval)), x.Now(), x.Now(), interval)
			rows := make([][]json.Number, len(candles))
			for i, c := range candles {
				rows[len(rows)-1-i] = []json.Number{
					json.Number(strconv.FormatInt(c.Start/1e6, 10)), number(c.Open), number(c.High), number(c.Low), number(c.Close), number(c.Volume),
				}
			}
			return rows
		}),
	}
}

// geminiReach is how far back candles of an interval are served: minutes for a day, days for a year.
func geminiReach(interval time.Duration) time.Duration {
	return min(max(1440*interval, 24*time.Hour), 365*24*time.Hour)
}

// geminiHours are the prices of the last 24 hours, the newest first.
func geminiHours(m *market.Market, now time.Time) []string {
	prices := []string{}
	for _, c := range m.Candles(now.Add(-24*time.Hour), now, now, time.Hour) {
		prices = append(prices, c.Close.String())
	}
	slices.Reverse(prices)
	return prices
}
