package venues

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coder/websocket"
	"github.com/marketlog/marketlog/producers/simulator/market"
	"github.com/marketlog/marketlog/producers/simulator/provider"
)

// upbit is Upbit's Korean market. Its symbols have the quote first; all its frames are binary and hold JSON, with long
// names or short ones, singly or in lists, as each connection asks:
//
//	feed    https://docs.upbit.com/kr/reference/websocket-guide (a subscription replaces the one before; PING;
//	        120 s without a message), …/websocket-trade, …/websocket-ticker, …/websocket-error
//	limits  https://docs.upbit.com/kr/reference/rate-limits (5 connects a second; 5 messages a second and 100 a
//	        minute on a connection; 10 requests a second of each group)
//	http    https://docs.upbit.com/kr/reference/list-trading-pairs, …/list-tickers, …/list-pair-trades,
//	        …/list-candles-minutes
func upbit() Venue {
	channels := map[string]Channel{}
	for _, f := range upbitFormats {
		channels["trade "+f] = Channel{Binary: true, Trade: func(b []byte, m *market.Market, t market.Trade) []byte {
			return upbitTrade(b, f, "REALTIME", m, t)
		}}
		channels["ticker "+f] = Channel{Binary: true, State: func(b []byte, m *market.Market, s market.State) []byte {
			return upbitTicker(b, f, "REALTIME", m, s)
		}}
	}
	return Venue{
		Slug: "upbit", Share: 0.6,
		Quotes:        []QuoteAsset{{"KRW", 200}, {"BTC", 40}, {"USDT", 25}},
		Symbol:        func(base, quote string) string { return quote + "-" + base },
		PriceDecimals: 8, ListsTrading: true,
		Limits: Limits{
			Connects: 5, ConnectsPer: time.Second,
			Messages: 5, MessagesPer: time.Second,
			Idle: 120 * time.Second,
		},
		Routes: upbitRoutes,
		Throttled: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Remaining-Req", "group=default; min=1800; sec=0")
			provider.Respond(w, http.StatusTooManyRequests, upbitError("too_many_requests", "Too many API requests."))
		},
		Open:     func(c *Conn) { c.Session = &upbitSession{minute: provider.NewBucket(100, time.Minute)} },
		Receive:  upbitReceive,
		Channels: channels,
	}
}

// upbitFormats are the spellings that a connection may choose.
var upbitFormats = []string{"DEFAULT", "SIMPLE", "JSON_LIST", "SIMPLE_LIST"}

// upbitSession bounds the messages of a minute; the engine bounds those of a second.
type upbitSession struct{ minute *provider.Bucket }

func upbitError(name, why string) any {
	return map[string]any{"error": map[string]string{"name": name, "message": why}}
}

func upbitReceive(c *Conn, message []byte) {
	if !c.Session.(*upbitSession).minute.Allow(c.Exchange().Now()) {
		c.Close(websocket.StatusPolicyViolation, "too many messages")
		return
	}
	if string(message) == "PING" {
		c.SendBinary([]byte(`{"status":"UP"}`))
		return
	}
	refuse := func(name, why string) {
		b, _ := json.Marshal(upbitError(name, why))
		c.SendBinary(b)
	}
	var parts []struct {
		Ticket   string   `json:"ticket"`
		Type     string   `json:"type"`
		Codes    []string `json:"codes"`
		Snapshot bool     `json:"is_only_snapshot"`
		Realtime bool     `json:"is_only_realtime"`
		Format   string   `json:"format"`
	}
	if err := json.Unmarshal(message, &parts); err != nil {
		refuse("WRONG_FORMAT", "the format is wrong")
		return
	}
	ticket, format, wanted := "", "DEFAULT", 0
	for _, p := range parts {
		ticket += p.Ticket
		if p.Format != "" {
			format = p.Format
		}
		switch {
		case p.Type == "":
			continue
		case p.Type != "trade" && p.Type != "ticker":
			refuse("INVALID_PARAM", "type "+p.Type+" is not supported")
			return
		case p.Codes == nil:
			refuse("NO_CODES", "codes is required")
			return
		case len(p.Codes) == 0:
			refuse("INVALID_PARAM", "codes is empty")
			return
		}
		wanted++
	}
	switch {
	case ticket == "":
		refuse("NO_TICKET", "the ticket is missing")
		return
	case wanted == 0:
		refuse("NO_TYPE", "type is required")
		return
	case !slices.Contains(upbitFormats, format):
		refuse("WRONG_FORMAT", "the format is wrong")
		return
	}
	for channel := range c.Exchange().venue.Channels {
		for _, m := range c.Subscribed(channel) {
			c.Unsubscribe(channel, m)
		}
	}
	for _, p := range parts {
		for _, code := range p.Codes {
			m := c.Exchange().Market(code)
			if m == nil {
				continue // codes that are not listed are passed over
			}
			if !p.Snapshot && !c.Subscribe(p.Type+" "+format, m) {
				return
			}
			switch {
			case p.Realtime:
			case p.Type == "trade":
				c.SendBinary(upbitTrade(nil, format, "SNAPSHOT", m, m.Trades(c.Now(), 1)[0]))
			default:
				c.SendBinary(upbitTicker(nil, format, "SNAPSHOT", m, m.State(c.Now())))
			}
		}
	}
}

// upbitWriter appends the fields of an object by their long names or their short ones.
type upbitWriter struct {
	b     []byte
	short bool
	list  bool
}

func upbitObject(b []byte, format string) *upbitWriter {
	w := &upbitWriter{b, strings.HasPrefix(format, "SIMPLE"), strings.HasSuffix(format, "_LIST")}
	if w.list {
		w.b = append(w.b, '[')
	}
	w.b = append(w.b, '{')
	return w
}

func (w *upbitWriter) end() []byte {
	w.b[len(w.b)-1] = '}' // instead of the last comma
	if w.list {
		w.b = append(w.b, ']')
	}
	return w.b
}

func (w *upbitWriter) name(long, short string) {
	if w.short {
		long = short
	}
	w.b = append(append(append(w.b, '"'), long...), `":`...)
}

func (w *upbitWriter) text(long, short, value string) {
	w.name(long, short)
	w.b = append(append(append(w.b, '"'), value...), `",`...)
}

// bare appends a value that JSON spells without quotes.
func (w *upbitWriter) bare(long, short, value string) {
	w.name(long, short)
	w.b = append(append(w.b, value...), ',')
}

func (w *upbitWriter) integer(long, short string, n int64) {
	w.name(long, short)
	w.b = append(strconv.AppendInt(w.b, n, 10), ',')
}

// number fills up to eight decimals, plain drops zeros at the end.
func (w *upbitWriter) number(long, short string, d market.Decimal) {
	w.name(long, short)
	w.b = append(d.AppendPadded(w.b, 8), ',')
}

func (w *upbitWriter) plain(long, short string, d market.Decimal) {
	w.name(long, short)
	w.b = append(d.AppendShort(w.b), ',')
}

func (w *upbitWriter) time(long, short string, t int64, layout string) {
	w.name(long, short)
	w.b = append(provider.AppendTime(append(w.b, '"'), t, layout), `",`...)
}

// upbitChange compares a price with that at the end of the day before.
func upbitChange(m *market.Market, price, before market.Decimal) (word string, signed, change market.Decimal) {
	signed = market.Exact(price.Units-before.Units, m.PriceScale)
	switch {
	case signed.Units > 0:
		return "RISE", signed, signed
	case signed.Units < 0:
		return "FALL", signed, market.Exact(-signed.Units, m.PriceScale)
	}
	return "EVEN", signed, signed
}

// upbitSide is the taker's: ASK sold.
func upbitSide(buy bool) string {
	if buy {
		return "BID"
	}
	return "ASK"
}

// upbitNumber grows with time and is a market's own.
func upbitNumber(t market.Trade) int64 { return t.Time/1e6*10_000 + t.ID%10_000 }

func upbitTrade(b []byte, format, stream string, m *market.Market, t market.Trade) []byte {
	s := m.After(t)
	word, _, change := upbitChange(m, t.Price, s.Open)
	w := upbitObject(b, format)
	w.text("type", "ty", "trade")
	w.text("code", "cd", m.Symbol)
	w.integer("timestamp", "tms", t.Time/1e6)
	w.time("trade_date", "td", t.Time, time.DateOnly)
	w.time("trade_time", "ttm", t.Time, time.TimeOnly)
	w.integer("trade_timestamp", "ttms", t.Time/1e6)
	w.number("trade_price", "tp", t.Price)
	w.number("trade_volume", "tv", t.Size)
	w.text("ask_bid", "ab", upbitSide(t.Buy))
	w.number("prev_closing_price", "pcp", s.Open)
	w.text("change", "c", word)
	w.number("change_price", "cp", change)
	w.integer("sequential_id", "sid", upbitNumber(t))
	w.plain("best_ask_price", "bap", s.Ask)
	w.plain("best_ask_size", "bas", s.AskSize)
	w.plain("best_bid_price", "bbp", s.Bid)
	w.plain("best_bid_size", "bbs", s.BidSize)
	w.text("stream_type", "st", stream)
	return w.end()
}

func upbitTicker(b []byte, format, stream string, m *market.Market, s market.State) []byte {
	word, signed, change := upbitChange(m, s.Last.Price, s.Open)
	rate := market.Round(s.Last.Price.Float()/s.Open.Float()-1, 10)
	w := upbitObject(b, format)
	w.text("type", "ty", "ticker")
	w.text("code", "cd", m.Symbol)
	w.number("opening_price", "op", s.Open)
	w.number("high_price", "hp", s.High)
	w.number("low_price", "lp", s.Low)
	w.number("trade_price", "tp", s.Last.Price)
	w.number("prev_closing_price", "pcp", s.Open)
	w.number("acc_trade_price", "atp", s.QuoteVolume)
	w.text("change", "c", word)
	w.number("change_price", "cp", change)
	w.number("signed_change_price", "scp", signed)
	w.plain("change_rate", "cr", market.Exact(max(rate.Units, -rate.Units), rate.Scale))
	w.plain("signed_change_rate", "scr", rate)
	w.text("ask_bid", "ab", upbitSide(s.Last.Buy))
	w.number("trade_volume", "tv", s.Last.Size)
	w.number("acc_trade_volume", "atv", s.Volume)
	w.time("trade_date", "tdt", s.Last.Time, "20060102")
	w.time("trade_time", "ttm", s.Last.Time, "150405")
	w.integer("trade_timestamp", "ttms", s.Last.Time/1e6)
	half := market.Exact(s.Volume.Units/2, s.Volume.Scale)
	w.number("acc_ask_volume", "aav", market.Exact(s.Volume.Units-half.Units, half.Scale))
	w.number("acc_bid_volume", "abv", half)
	w.number("highest_52_week_price", "h52wp", s.High)
	w.time("highest_52_week_date", "h52wdt", s.Time, time.DateOnly)
	w.number("lowest_52_week_price", "l52wp", s.Low)
	w.time("lowest_52_week_date", "l52wdt", s.Time, time.DateOnly)
	w.text("market_state", "ms", "ACTIVE")
	w.bare("is_trading_suspended", "its", "false")
	w.bare("delisting_date", "dd", "null")
	w.text("market_warning", "mw", "NONE")
	w.integer("timestamp", "tms", s.Time/1e6)
	w.number("acc_trade_price_24h", "atp24h", s.QuoteVolume)
	w.number("acc_trade_volume_24h", "atv24h", s.Volume)
	w.text("stream_type", "st", stream)
	return w.end()
}

// upbitSeoul is ahead of UTC by this much, all year.
const upbitSeoul = 9 * market.Hour

// upbitDateTime has no zone.
const upbitDateTime = "2006-01-02T15:04:05"

func upbitRoutes(x *Exchange) map[string]http.HandlerFunc {
	unknown := func(w http.ResponseWriter) {
		provider.Respond(w, http.StatusNotFound, map[string]any{"error": map[string]any{"name": 404, "message": "Code not found"}})
	}
	// market answers for the market that the query names, with at most most rows of count.
	ofMarket := func(most int, answer func(m *market.Market, n int, r *http.Request) any) http.HandlerFunc {
		return x.Limited(10, time.Second, func(w http.ResponseWriter, r *http.Request) {
			m := x.Market(r.URL.Query().Get("market"))
			if m == nil {
				unknown(w)
				return
			}
			n := 1
			if text := r.URL.Query().Get("count"); text != "" {
				n, _ = strconv.Atoi(text)
			}
			if body := answer(m, n, r); body != nil && n > 0 && n <= most {
				provider.Respond(w, http.StatusOK, body)
				return
			}
			provider.Respond(w, http.StatusBadRequest, upbitError("validation_error", "Invalid parameter. Check the given value!"))
		})
	}
	return map[string]http.HandlerFunc{
		"GET /v1/market/all": x.Limited(10, time.Second, func(w http.ResponseWriter, _ *http.Request) {
			markets := x.Markets()
			rows := make([]any, len(markets))
			for i, m := range markets {
				rows[i] = map[string]string{"market": m.Symbol, "korean_name": m.Base, "english_name": m.Base}
			}
			provider.Respond(w, http.StatusOK, rows)
		}),
		"GET /v1/ticker": x.Limited(10, time.Second, func(w http.ResponseWriter, r *http.Request) {
			rows := []json.RawMessage{}
			for _, code := range strings.Split(r.URL.Query().Get("markets"), ",") {
				m := x.Market(code)
				if m == nil {
					unknown(w)
					return
				}
				if x.Quotes(m) {
					rows = append(rows, upbitHTTPTicker(m, m.State(x.Now())))
				}
			}
			provider.Respond(w, http.StatusOK, rows)
		}),
		"GET /v1/ticker/all": x.Limited(10, time.Second, func(w http.ResponseWriter, r *http.Request) {
			quotes := strings.Split(r.URL.Query().Get("quote_currencies"), ",")
			rows := []json.RawMessage{}
			for _, m := range x.Markets() {
				if slices.Contains(quotes, m.Quote) {
					rows = append(rows, upbitHTTPTicker(m, m.State(x.Now())))
				}
			}
			provider.Respond(w, http.StatusOK, rows)
		}),
		"GET /v1/trades/ticks": ofMarket(500, func(m *market.Market, n int, _ *http.Request) any {
			trades := m.Trades(x.Now(), min(max(n, 1), 500))
			rows := make([]any, len(trades))
			for i, t := range trades {
				before := m.After(t).Open
				rows[len(rows)-1-i] = map[string]any{
					"market": m.Symbol, "trade_date_utc": provider.SpellTime(t.Time, time.DateOnly), "trade_time_utc": provider.SpellTime(t.Time, time.TimeOnly),
					"timestamp": t.Time / 1e6, "trade_price": number(t.Price), "trade_volume": number(t.Size), "prev_closing_price": number(before),
					"change_price": number(market.Exact(t.Price.Units-before.Units, m.PriceScale)), "ask_bid": upbitSide(t.Buy), "sequential_id": upbitNumber(t),
				}
			}
			return rows
		}),
		"GET /v1/candles/minutes/{unit}": ofMarket(200, func(m *market.Market, n int, r *http.Request) any {
			unit, _ := strconv.Atoi(r.PathValue("unit"))
			if !slices.Contains([]int{1, 3, 5, 10, 15, 30, 60, 240}, unit) {
				return nil
			}
			return upbitCandles(x, m, n, r, time.Duration(unit)*time.Minute, map[string]any{"unit": unit})
		}),
		"GET /v1/candles/days": ofMarket(200, func(m *market.Market, n int, r *http.Request) any {
			return upbitCandles(x, m, n, r, 24*time.Hour, nil)
		}),
	}
}

// upbitHTTPTicker is the feed's but for how it names the market and what the feed alone has.
func upbitHTTPTicker(m *market.Market, s market.State) []byte {
	word, signed, change := upbitChange(m, s.Last.Price, s.Open)
	rate := market.Round(s.Last.Price.Float()/s.Open.Float()-1, 10)
	w := upbitObject(nil, "DEFAULT")
	w.text("market", "", m.Symbol)
	w.time("trade_date", "", s.Last.Time, "20060102")
	w.time("trade_time", "", s.Last.Time, "150405")
	w.time("trade_date_kst", "", s.Last.Time+upbitSeoul, "20060102")
	w.time("trade_time_kst", "", s.Last.Time+upbitSeoul, "150405")
	w.integer("trade_timestamp", "", s.Last.Time/1e6)
	w.plain("opening_price", "", s.Open)
	w.plain("high_price", "", s.High)
	w.plain("low_price", "", s.Low)
	w.plain("trade_price", "", s.Last.Price)
	w.plain("prev_closing_price", "", s.Open)
	w.text("change", "", word)
	w.plain("change_price", "", change)
	w.plain("change_rate", "", market.Exact(max(rate.Units, -rate.Units), rate.Scale))
	w.plain("signed_change_price", "", signed)
	w.plain("signed_change_rate", "", rate)
	w.plain("trade_volume", "", s.Last.Size)
	w.plain("acc_trade_price", "", s.QuoteVolume)
	w.plain("acc_trade_price_24h", "", s.QuoteVolume)
	w.plain("acc_trade_volume", "", s.Volume)
	w.plain("acc_trade_volume_24h", "", s.Volume)
	w.plain("highest_52_week_price", "", s.High)
	w.time("highest_52_week_date", "", s.Time, time.DateOnly)
	w.plain("lowest_52_week_price", "", s.Low)
	w.time("lowest_52_week_date", "", s.Time, time.DateOnly)
	w.integer("timestamp", "", s.Time/1e6)
	return w.end()
}

// upbitCandles are the n that start before "to", the newest first. nil is a time that cannot be read.
func upbitCandles(x *Exchange, m *market.Market, n int, r *http.Request, interval time.Duration, more map[string]any) any {
	to, ok := instant(strings.Replace(r.URL.Query().Get("to"), " ", "T", 1), x.Now())
	if !ok || n < 1 || n > 200 {
		return nil
	}
	rows := []any{}
	for _, c := range m.Candles(to.Add(-time.Duration(n)*interval), to, x.Now(), interval) {
		row := map[string]any{
			"market": m.Symbol, "candle_date_time_utc": provider.SpellTime(c.Start, upbitDateTime), "candle_date_time_kst": provider.SpellTime(c.Start+upbitSeoul, upbitDateTime),
			"opening_price": number(c.Open), "high_price": number(c.High), "low_price": number(c.Low), "trade_price": number(c.Close),
			"timestamp":              min(c.Start+int64(interval), x.Now().UnixNano()) / 1e6,
			"candle_acc_trade_price": number(c.QuoteVolume), "candle_acc_trade_volume": number(c.Volume),
		}
		for name, value := range more {
			row[name] = value
		}
		rows = append(rows, row)
	}
	slices.Reverse(rows)
	return rows
}
