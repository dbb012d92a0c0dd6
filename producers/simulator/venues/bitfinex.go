package venues

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/marketlog/marketlog/producers/simulator/market"
	"github.com/marketlog/marketlog/producers/simulator/provider"
)

// bitfinex is Bitfinex's spot market, version 2. Messages are lists that name their channel by a number, which a
// connection learns when it subscribes:
//
//	feed     https://docs.bitfinex.com/docs/ws-general (a heartbeat on each channel that was quiet for 15 s; codes of
//	         errors; lists with a time and a sequence number at their end, if a connection asks for them)
//	         https://docs.bitfinex.com/reference/ws-public-trades (each trade as "te", then as "tu"), …/ws-public-ticker
//	limits   https://docs.bitfinex.com/docs/ws-public (20 connections a minute, 25 channels on each)
//	         https://docs.bitfinex.com/docs/requirements-and-limitations (of this interface 30 requests a minute)
//	http     https://docs.bitfinex.com/reference/rest-public-tickers, …/rest-public-trades, …/rest-public-candles
func bitfinex() Venue {
	return Venue{
		Slug: "bitfinex", Share: 0.3,
		Quotes: []QuoteAsset{{"USD", 120}, {"UST", 40}, {"BTC", 15}, {"EUR", 4}},
		// The pair CNHT:USD of the stablecoin of the offshore yuan, which no other venue lists and no central bank fixes.
		Beyond: []string{"CNHT"},
		// The venue's codes had three letters for long.
		Assets: map[string]string{
			"USDT": "UST", "USDC": "UDC", "WBTC": "WBT", "ATOM": "ATO", "ALGO": "ALG", "DASH": "DSH", "IOTA": "IOT", "TUSD": "TSD",
			"QTUM": "QTM", "MANA": "MNA", "GT": "GTX", "BCH": "BCHN", "WAXP": "WAX",
		},
		Symbol:       func(base, quote string) string { return "t" + bitfinexPair(base, quote) },
		ListsTrading: true,
		Limits: Limits{
			Connects: 20, ConnectsPer: time.Minute,
			Topics:   25,
			Requests: 30, RequestsPer: time.Minute,
		},
		Routes: bitfinexRoutes,
		Throttled: func(w http.ResponseWriter, _ *http.Request) {
			provider.Respond(w, http.StatusTooManyRequests, bitfinexError{"error", 11010, "ratelimit: error"})
		},
		Open: func(c *Conn) {
			c.Session = &bitfinexSession{channels: map[topic]*bitfinexChannel{}}
			id := string(provider.AppendUUID(nil, c.x.markets[0].Seed, c.Now().UnixNano()))
			c.Send([]byte(`{"event":"info","version":2,"serverId":"` + id + `","platform":{"status":1}}`))
		},
		Receive:        bitfinexReceive,
		HeartbeatEvery: 5 * time.Second,
		Heartbeat:      bitfinexHeartbeat,
		Channels: map[string]Channel{
			"trades": {Trade: bitfinexTrade, Personal: bitfinexExecuted},
			"ticker": {State: bitfinexTicker, Personal: func(c *Conn, m *market.Market, frame []byte) []byte {
				return c.Session.(*bitfinexSession).frame(c, topic{"ticker", m}, frame)
			}},
		},
	}
}

// bitfinexPair has a colon unless both codes have three letters: BTCUSD, DUSK:USD.
func bitfinexPair(base, quote string) string {
	if len(base) == 3 && len(quote) == 3 {
		return base + quote
	}
	return base + ":" + quote
}

// bitfinexSession is what a connection subscribed to, and what it wants at the end of each list.
type bitfinexSession struct {
	channels map[topic]*bitfinexChannel
	// last is the newest channel's number, sequence that of the newest list.
	last, sequence int64
	flags          int
}

type bitfinexChannel struct {
	id int64
	// lastSent is when the newest list was sent.
	lastSent time.Time
}

// Flags of a conf event.
const (
	bitfinexTimes     = 32768
	bitfinexSequences = 65536
)

const bitfinexQuiet = 15 * time.Second

// frame puts a channel's number before a list's parts, and at its end what the connection asked for.
func (s *bitfinexSession) frame(c *Conn, t topic, parts []byte) []byte {
	channel := s.channels[t]
	if channel == nil {
		return nil
	}
	channel.lastSent = c.Now()
	b := append(make([]byte, 0, len(parts)+48), '[')
	b = strconv.AppendInt(b, channel.id, 10)
	b = append(append(b, ','), parts...)
	if s.flags&bitfinexSequences != 0 {
		s.sequence++
		b = strconv.AppendInt(append(b, ','), s.sequence, 10)
	}
	if s.flags&bitfinexTimes != 0 {
		b = strconv.AppendInt(append(b, ','), c.Now().UnixMilli(), 10)
	}
	return append(b, ']')
}

// bitfinexExecuted makes a trade a connection's own: "te", and the same again as "tu".
func bitfinexExecuted(c *Conn, m *market.Market, trade []byte) []byte {
	s, t := c.Session.(*bitfinexSession), topic{"trades", m}
	c.Send(s.frame(c, t, append([]byte(`"te",`), trade...)))
	return s.frame(c, t, append([]byte(`"tu",`), trade...))
}

func bitfinexHeartbeat(c *Conn) {
	s := c.Session.(*bitfinexSession)
	quiet := []topic{}
	for t, channel := range s.channels {
		if c.Now().Sub(channel.lastSent) >= bitfinexQuiet {
			quiet = append(quiet, t)
		}
	}
	slices.SortFunc(quiet, func(a, b topic) int { return cmp.Compare(s.channels[a].id, s.channels[b].id) })
	for _, t := range quiet {
		c.Send(s.frame(c, t, []byte(`"hb"`)))
	}
}

func bitfinexReceive(c *Conn, message []byte) {
	var request struct {
		Event   string      `json:"event"`
		Channel string      `json:"channel"`
		Symbol  string      `json:"symbol"`
		ID      int64       `json:"chanId"`
		Flags   int         `json:"flags"`
		CID     json.Number `json:"cid"`
	}
	s := c.Session.(*bitfinexSession)
	send := func(body map[string]any) {
		b, _ := json.Marshal(body)
		c.Send(b)
	}
	refuse := func(code int, why string) {
		body := map[string]any{"event": "error", "msg": why, "code": code}
		if request.Symbol != "" {
			body["channel"], body["symbol"], body["pair"] = request.Channel, request.Symbol, strings.TrimPrefix(request.Symbol, "t")
		}
		send(body)
	}
	if err := json.Unmarshal(message, &request); err != nil {
		refuse(10000, "Unknown event")
		return
	}
	switch request.Event {
	case "ping":
		body := map[string]any{"event": "pong", "ts": c.Now().UnixMilli()}
		if request.CID != "" {
			body["cid"] = request.CID
		}
		send(body)
	case "conf":
		s.flags = request.Flags
		send(map[string]any{"event": "conf", "status": "OK", "flags": s.flags})
	case "unsubscribe":
		for t, channel := range s.channels {
			if channel.id == request.ID {
				delete(s.channels, t)
				c.Unsubscribe(t.channel, t.market)
				send(map[string]any{"event": "unsubscribed", "status": "OK", "chanId": channel.id})
				return
			}
		}
		refuse(10400, "unsubscribe: invalid")
	case "subscribe":
		m := c.Exchange().Market(request.Symbol)
		_, known := c.Exchange().venue.Channels[request.Channel]
		t := topic{request.Channel, m}
		switch {
		case !known:
			refuse(10302, "channel: unknown")
			return
		case m == nil:
			refuse(10300, "symbol: invalid")
			return
		case s.channels[t] != nil:
			refuse(10301, "subscribe: dup")
			return
		case len(s.channels) == c.Exchange().venue.Limits.Topics:
			refuse(10305, "subscribe: limit")
		}
		if !c.Subscribe(request.Channel, m) {
			return
		}
		s.last++
		s.channels[t] = &bitfinexChannel{id: s.last}
		send(map[string]any{"event": "subscribed", "channel": request.Channel, "chanId": s.last, "symbol": m.Symbol, "pair": m.Symbol[1:]})
		if request.Channel == "ticker" {
			c.Send(s.frame(c, t, bitfinexTicker(nil, m, m.State(c.Now()))))
			return
		}
		c.Send(s.frame(c, t, bitfinexTrades(m.Trades(c.Now(), 30))))
	default:
		refuse(10000, "Unknown event")
	}
}

// bitfinexNumber is a JSON number as JavaScript prints it: one below a millionth has an exponent.
func bitfinexNumber(b []byte, d market.Decimal) []byte {
	d = d.Trim()
	units := d.Units
	if units < 0 {
		b, units = append(b, '-'), -units
	}
	digits := strconv.FormatInt(units, 10)
	exponent := len(digits) - 1 - d.Scale
	if units == 0 || exponent >= -6 {
		return market.Exact(units, d.Scale).Append(b)
	}
	b = append(b, digits[0])
	if len(digits) > 1 {
		b = append(append(b, '.'), digits[1:]...)
	}
	return strconv.AppendInt(append(b, 'e'), int64(exponent), 10)
}

// bitfinexTrade: number, time, amount (negative if the taker sold), price.
func bitfinexTrade(b []byte, _ *market.Market, t market.Trade) []byte {
	amount := t.Size
	if !t.Buy {
		amount.Units = -amount.Units
	}
	b = strconv.AppendInt(append(b, '['), t.ID, 10)
	b = strconv.AppendInt(append(b, ','), t.Time/1e6, 10)
	b = bitfinexNumber(append(b, ','), amount)
	return append(bitfinexNumber(append(b, ','), t.Price), ']')
}

// bitfinexTrades lists trades in the order of time, newest first.
func bitfinexTrades(trades []market.Trade) []byte {
	b := []byte{'['}
	for i := range trades {
		if i > 0 {
			b = append(b, ',')
		}
		b = bitfinexTrade(b, nil, trades[len(trades)-1-i])
	}
	return append(b, ']')
}

// bitfinexTicker: bid and its size, ask and its size, change, relative change, last, volume, high, low.
func bitfinexTicker(b []byte, m *market.Market, s market.State) []byte {
	b = bitfinexNumber(append(b, '['), s.Bid)
	for _, d := range []market.Decimal{
		s.BidSize, s.Ask, s.AskSize,
		market.Exact(s.Last.Price.Units-s.Open.Units, m.PriceScale), market.Round(s.Last.Price.Float()/s.Open.Float()-1, 8),
		s.Last.Price, s.Volume, s.High, s.Low,
	} {
		b = bitfinexNumber(append(b, ','), d)
	}
	return append(b, ']')
}

// bitfinexError is a refusal: "error", a code, a text.
type bitfinexError [3]any

// bitfinexIntervals are the kinds of candles, but for months.
var bitfinexIntervals = map[string]time.Duration{
	"1m": time.Minute, "5m": 5 * time.Minute, "15m": 15 * time.Minute, "30m": 30 * time.Minute, "1h": time.Hour, "3h": 3 * time.Hour,
	"6h": 6 * time.Hour, "12h": 12 * time.Hour, "1D": 24 * time.Hour, "1W": 7 * 24 * time.Hour, "14D": 14 * 24 * time.Hour,
}

func bitfinexRoutes(x *Exchange) map[string]http.HandlerFunc {
	refuse := func(w http.ResponseWriter, why string) {
		provider.Respond(w, http.StatusInternalServerError, bitfinexError{"error", 10020, why})
	}
	return map[string]http.HandlerFunc{
		"GET /v2/conf/pub:list:pair:exchange": func(w http.ResponseWriter, _ *http.Request) {
			markets := x.Markets()
			pairs := make([]string, len(markets))
			for i, m := range markets {
				pairs[i] = bitfinexPair(m.Base, m.Quote)
			}
			provider.Respond(w, http.StatusOK, [][]string{pairs})
		},
		"GET /v2/tickers": func(w http.ResponseWriter, r *http.Request) {
			names := strings.Split(r.URL.Query().Get("symbols"), ",")
			rows := []json.RawMessage{}
			for _, m := range x.Markets() {
				if names[0] == "ALL" || slices.Contains(names, m.Symbol) {
					ticker := bitfinexTicker(nil, m, m.State(x.Now()))
					rows = append(rows, append([]byte(`["`+m.Symbol+`",`), ticker[1:]...))
				}
			}
			provider.Respond(w, http.StatusOK, rows)
		},
		"GET /v2/ticker/{symbol}": func(w http.ResponseWriter, r *http.Request) {
			if m := x.Market(r.PathValue("symbol")); m != nil {
				provider.Respond(w, http.StatusOK, json.RawMessage(bitfinexTicker(nil, m, m.State(x.Now()))))
				return
			}
			refuse(w, "symbol: invalid")
		},
		"GET /v2/trades/{symbol}/hist": func(w http.ResponseWriter, r *http.Request) {
			m := x.Market(r.PathValue("symbol"))
			n, err := strconv.Atoi(r.URL.Query().Get("limit"))
			if err != nil {
				n = 125
			}
			if m == nil || n < 1 || n > 10_000 {
				refuse(w, "symbol: invalid")
				return
			}
			provider.Respond(w, http.StatusOK, json.RawMessage(bitfinexTrades(m.Trades(x.Now(), n))))
		},
		"GET /v2/candles/{key}/{section}": func(w http.ResponseWriter, r *http.Request) {
			rows, ok := bitfinexCandles(x, r)
			switch {
			case !ok:
				refuse(w, "key: invalid")
			case r.PathValue("section") == "last":
				provider.Respond(w, http.StatusOK, rows[0])
			default:
				provider.Respond(w, http.StatusOK, rows)
			}
		},
	}
}

// bitfinexCandles are those of trade:1m:tBTCUSD that start in [start, end], at most 10,000, the newest first unless sort
// is 1: start, open, close, high, low, volume.
func bitfinexCandles(x *Exchange, r *http.Request) (rows []json.RawMessage, ok bool) {
	key := strings.SplitN(r.PathValue("key"), ":", 3)
	if len(key) < 3 || key[0] != "trade" {
		return nil, false
	}
	m, interval := x.Market(key[2]), bitfinexIntervals[key[1]]
	query := r.URL.Query()
	limit, err := strconv.Atoi(query.Get("limit"))
	if err != nil {
		limit = 100
	}
	to, ok := millis(query.Get("end"), x.Now())
	if m == nil || interval == 0 || !ok || limit < 1 || limit > 10_000 {
		return nil, false
	}
	from, ok := millis(query.Get("start"), to.Add(-time.Duration(limit)*interval))
	if !ok {
		return nil, false
	}
	oldestFirst := query.Get("sort") == "1"
	if longest := time.Duration(limit) * interval; to.Sub(from) >= longest && oldestFirst {
		to = from.Add(longest - time.Nanosecond)
	} else if to.Sub(from) >= longest {
		from = to.Add(-longest + time.Nanosecond)
	}
	rows = []json.RawMessage{}
	for _, c := range m.Candles(from, to.Add(time.Nanosecond), x.Now(), interval) {
		b := strconv.AppendInt([]byte{'['}, c.Start/1e6, 10)
		for _, d := range []market.Decimal{c.Open, c.Close, c.High, c.Low, c.Volume} {
			b = bitfinexNumber(append(b, ','), d)
		}
		rows = append(rows, append(b, ']'))
	}
	if !oldestFirst {
		slices.Reverse(rows)
	}
	if r.PathValue("section") == "last" && len(rows) == 0 {
		return nil, false
	}
	return rows, true
}
