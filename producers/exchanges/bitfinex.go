package exchanges

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/adapter"
)

// bitfinex is Bitfinex's spot market, by version 2 of its interface. Messages are lists that name
// their channel by a number, which the connection learns when it subscribes.
//
//	feed     https://docs.bitfinex.com/docs/ws-general (a heartbeat every 15 s on a quiet channel;
//	         lists may grow at their end, by a sequence number or a time if they were asked for)
//	limits   https://docs.bitfinex.com/docs/ws-public (20 connections a minute to the public host, 25
//	         channels on each)
//	ticker   https://docs.bitfinex.com/reference/ws-public-ticker
//	trades   https://docs.bitfinex.com/reference/ws-public-trades ("te" comes at once, "tu" again a
//	         little later: one trade)
//	HTTP     https://docs.bitfinex.com/reference/rest-public-tickers (30 requests a minute)
func bitfinex() adapter.Venue {
	return adapter.Venue{
		Slug: "bitfinex", Name: "Bitfinex", Version: 2,
		URLs: adapter.URLs{
			Stream: "wss://api-pub.bitfinex.com/ws/2",
			REST:   "https://api-pub.bitfinex.com",
		},
		Limits: adapter.Limits{
			Connects: 20, ConnectsPer: time.Minute,
			MarketsPerSocket: 12, // two channels each
			Messages:         5,
			Requests:         0.5,
		},
		Silence:      45 * time.Second,
		Listing:      []string{"/v2/conf/pub:list:pair:exchange"},
		Instruments:  bitfinexInstruments,
		Split:        bitfinexSplit,
		Subscribe:    bitfinexSubscribe,
		NewCodec:     func() adapter.Codec { return newBitfinexCodec() },
		NewRecorded:  newBitfinexRecorded,
		Tickers:      one("/v2/tickers?symbols=ALL"),
		DecodeREST:   bitfinexREST,
		RecordedREST: bitfinexRecordedREST,
	}
}

// bitfinexRequests subscribe to one channel each.
var bitfinexRequests = requests{
	Most:     1,
	Topics:   []string{`"channel":"trades","symbol":"<symbol>"`, `"channel":"ticker","symbol":"<symbol>"`},
	Messages: []string{`{"event":"<verb>",<topics>}`},
}

// bitfinexSubscribe asks first for a sequence number of the connection at the end of every list, which is the flag 65536: gaps are not
// seen otherwise. It does not ask for times: they are when a list was sent, which differs by connection, so that of two producers each
// would report the same ticker as another.
func bitfinexSubscribe(markets []adapter.Instrument) [][]byte {
	return append([][]byte{[]byte(`{"event":"conf","flags":65536}`)}, bitfinexRequests.with("subscribe")(markets)...)
}

// bitfinexSplit reads tBTCUSD and tDUSK:USD. Funding ("fUSD") and derivatives (codes that end in
// F0) are no spot markets.
func bitfinexSplit(symbol string) (base, quote string, ok bool) {
	pair, ok := strings.CutPrefix(symbol, "t")
	if !ok {
		return "", "", false
	}
	base, quote, ok = strings.Cut(pair, ":")
	if !ok {
		if len(pair) != 6 {
			return "", "", false
		}
		base, quote = pair[:3], pair[3:]
	}
	if base == "" || quote == "" || strings.HasSuffix(base, "F0") || strings.HasSuffix(quote, "F0") {
		return "", "", false
	}
	return base, quote, true
}

// bitfinexInstruments reads the list of pairs, the first of the lists that the path asks for: others, of
// currencies for example, have codes that look like pairs (BCHABC).
func bitfinexInstruments(path string, body []byte) ([]adapter.Instrument, error) {
	if _, list, asked := strings.Cut(path, "/conf/"); asked && !strings.HasPrefix(list, "pub:list:pair:exchange") {
		return nil, producers.Unreadable("list %q is not of pairs", list)
	}
	var lists [][]string
	if err := parse(body, &lists); err != nil {
		return nil, err
	}
	if len(lists) == 0 {
		return nil, producers.Unreadable("no list of pairs")
	}
	var instruments []adapter.Instrument
	for _, pair := range lists[0] {
		// Names that begin with TEST are paper markets.
		if base, quote, ok := bitfinexSplit("t" + pair); ok && !strings.HasPrefix(base, "TEST") {
			instruments = append(instruments, adapter.Instrument{Symbol: "t" + pair, Base: base, Quote: quote})
		}
	}
	return instruments, nil
}

// bitfinexCodec knows the channels of its connection, and the trades that it has sent: those of the
// history too, since the "tu" of its newest may still come.
type bitfinexCodec struct {
	channels map[string]bitfinexChannel
	seen     map[bitfinexID]bool
	order    []bitfinexID
	// other reads the content of channels that the engine does not subscribe to; nil reads none.
	other func(channel bitfinexChannel, at int64, content []byte, out *adapter.Out) error
}

func newBitfinexCodec() *bitfinexCodec {
	return &bitfinexCodec{channels: map[string]bitfinexChannel{}, seen: map[bitfinexID]bool{}}
}

// bitfinexChannel is what a channel was subscribed to with; some have a key in place of a symbol.
type bitfinexChannel struct{ name, symbol, key string }

type bitfinexID struct {
	symbol string
	id     producers.Num
}

// bitfinexMemory is how many trades lie at most between "te" and "tu". A history has 30 a market.
const bitfinexMemory = 4096

// once reports whether the trade is new, and remembers it.
func (c *bitfinexCodec) once(symbol string, id producers.Num) bool {
	key := bitfinexID{symbol, id}
	if c.seen[key] {
		return false
	}
	c.seen[key] = true
	if c.order = append(c.order, key); len(c.order) > bitfinexMemory {
		delete(c.seen, c.order[0])
		c.order = c.order[1:]
	}
	return true
}

func (c *bitfinexCodec) Decode(f adapter.Frame, out *adapter.Out) error {
	if len(f.Bytes) == 0 || f.Bytes[0] != '[' {
		return c.event(f.Bytes, out)
	}
	var parts []json.RawMessage
	if err := parse(f.Bytes, &parts); err != nil {
		return err
	}
	if len(parts) < 2 {
		return producers.Unreadable("a list of %d parts", len(parts))
	}
	// What a message is called stands before its content; a heartbeat has none, other messages no name.
	kind, rest := string(parts[1]), parts[2:]
	if isTrade := kind == `"te"` || kind == `"tu"`; isTrade || kind == `"cs"` || kind == `"fte"` || kind == `"ftu"` {
		switch {
		case len(rest) == 0:
			return producers.Unreadable("message %s without content", kind)
		case isTrade && rest[0][0] != '[':
			return adapter.Retired("a trade of version 1")
		}
		rest = rest[1:]
	}
	channel, known := c.channels[string(parts[0])]
	at := bitfinexTail(rest, out)
	switch {
	case kind == `"hb"`, kind == `"cs"`, string(parts[0]) == "0":
		return nil
	case !known:
		return producers.Unreadable("channel %s was not subscribed to on this connection", parts[0])
	case strings.HasPrefix(channel.symbol, "f"): // a funding market: its rates are not prices
		return nil
	case kind == `"te"`, kind == `"tu"`:
		row, err := bitfinexRow(parts[2], 4)
		if err != nil {
			return err
		}
		c.trades(channel.symbol, [][]producers.Num{row}, false, out)
		return nil
	case strings.HasPrefix(kind, `"`):
		return producers.Unreadable("message %s", kind)
	}
	switch {
	case channel.name == "trades":
		rows, err := bitfinexRows(parts[1], 4) // newest first
		c.trades(channel.symbol, rows, true, out)
		return err
	case channel.name == "ticker":
		return bitfinexTicker(channel.symbol, at, parts[1], out)
	case c.other != nil:
		return c.other(channel, at, parts[1], out)
	}
	return nil
}

// bitfinexTail reads what comes after a list's content, where the connection asked for it: a sequence number, which it counts, and a time.
func bitfinexTail(parts []json.RawMessage, out *adapter.Out) (at int64) {
	for _, part := range parts {
		switch n := string(part); {
		case strings.Trim(n, "0123456789") != "":
		case len(n) < 13: // the sequence of a connection begins at 1: it never grows as long as a time
			out.Count("", producers.Num(n))
		case len(n) == 13:
			at = producers.Unix(producers.Num(n), time.Millisecond)
		}
	}
	return at
}

func (c *bitfinexCodec) event(b []byte, out *adapter.Out) error {
	var m struct {
		Event   string          `json:"event"`
		Channel string          `json:"channel"`
		ID      json.RawMessage `json:"chanId"`
		Symbol  string          `json:"symbol"`
		Pair    string          `json:"pair"`
		Key     string          `json:"key"`
		Message string          `json:"msg"`
		Code    int             `json:"code"`
	}
	if err := parse(b, &m); err != nil {
		return err
	}
	switch m.Event {
	case "subscribed":
		channel := bitfinexChannel{name: m.Channel, symbol: m.Symbol, key: m.Key}
		if channel.symbol == "" && m.Pair != "" {
			channel.symbol = "t" + m.Pair
		}
		c.channels[string(m.ID)] = channel
	case "unsubscribed":
		delete(c.channels, string(m.ID))
	case "error":
		out.Notice("%d %s: %s", m.Code, m.Message, cmp.Or(m.Symbol, m.Pair, m.Key))
	case "info":
		if m.Code != 0 { // a restart, or the begin or end of maintenance
			out.Notice("%d %s", m.Code, m.Message)
		}
	case "conf", "pong", "auth":
	default:
		return producers.Unreadable("event %q", m.Event)
	}
	return nil
}

// trades adds what "te" or "tu" has, whichever comes first, or what was sent on subscribing.
func (c *bitfinexCodec) trades(symbol string, rows [][]producers.Num, snapshot bool, out *adapter.Out) {
	for _, t := range rows {
		if c.once(symbol, t[0]) {
			out.Add(bitfinexTrade(symbol, t, snapshot))
		}
	}
}

// bitfinexRow reads a list of numbers that has at least n.
func bitfinexRow(b []byte, n int) ([]producers.Num, error) {
	var row []producers.Num
	if err := parse(b, &row); err != nil {
		return nil, err
	}
	if len(row) < n {
		return nil, producers.Unreadable("a row of %d fields", len(row))
	}
	return row, nil
}

// bitfinexRows reads a list of them; the row alone is a list of one.
func bitfinexRows(b []byte, n int) ([][]producers.Num, error) {
	var rows [][]producers.Num
	if json.Unmarshal(b, &rows) != nil {
		row, err := bitfinexRow(b, n)
		if err != nil {
			return nil, err
		}
		return [][]producers.Num{row}, nil
	}
	for _, row := range rows {
		if len(row) < n {
			return nil, producers.Unreadable("a row of %d fields", len(row))
		}
	}
	return rows, nil
}

// bitfinexTrade reads id, time, amount and price; a negative amount was sold by the taker.
func bitfinexTrade(symbol string, t []producers.Num, snapshot bool) adapter.Event {
	side, amount := adapter.Buy, t[2]
	if sold, ok := strings.CutPrefix(string(amount), "-"); ok {
		side, amount = adapter.Sell, producers.Num(sold)
	}
	return adapter.Event{
		Kind: adapter.Trade, Symbol: symbol, Channel: "trades", Time: producers.Unix(t[1], time.Millisecond),
		ID: t[0], Price: t[3], Size: amount, Side: side, Snapshot: snapshot,
	}
}

// bitfinexTicker reads bid, its size, ask, its size, change, relative change, last, volume, high, low.
func bitfinexTicker(symbol string, at int64, b []byte, out *adapter.Out) error {
	t, err := bitfinexRow(b, 10)
	if err != nil {
		return err
	}
	out.Add(adapter.Event{
		Kind: adapter.Ticker, Symbol: symbol, Channel: "ticker", Time: at, Bid: t[0], Ask: t[2], Last: t[6], VolumeBase: t[7],
	})
	return nil
}

func bitfinexREST(target string, body []byte, out *adapter.Out) error {
	switch path, parts := bitfinexPath(target); {
	case strings.Contains(path, "/v1/"):
		return adapter.Retired("answer of %s", path)
	case parts[0] == "conf":
		return nil
	case parts[0] != "tickers":
		return unreadAnswer(path)
	}
	rows, err := list[json.RawMessage](body)
	if err != nil {
		return err
	}
	for _, r := range rows {
		t, err := bitfinexRow(r, 11)
		if err != nil {
			return err
		}
		if strings.HasPrefix(string(t[0]), "t") {
			out.Add(adapter.Event{
				Kind: adapter.Ticker, Symbol: string(t[0]), Channel: "ticker", Bid: t[1], Ask: t[3], Last: t[7], VolumeBase: t[8],
			})
		}
	}
	return nil
}

// bitfinexPath is the path of what was asked for, and its parts below the version.
func bitfinexPath(target string) (path string, parts []string) {
	path, _ = endpoint(target)
	_, after, _ := strings.Cut(path, "/v2/")
	return path, strings.Split(after, "/")
}
