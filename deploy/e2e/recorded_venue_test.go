package e2e

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// loopbackVenue is the other end of an adapter's wire: it lists instruments, takes subscriptions,
// answers what the venue answers, and sends the frames that it is given.
type loopbackVenue struct {
	t    *testing.T
	slug string
	// listings are the bodies of HTTP answers by path, without parameters.
	listings map[string]string
	server   *httptest.Server

	mu   sync.Mutex
	conn *websocket.Conn
	// subscribed is closed by the first message of the adapter.
	subscribed chan struct{}
	asked      sync.Once
}

func newLoopbackVenue(t *testing.T, slug string, listings map[string]string) *loopbackVenue {
	v := &loopbackVenue{t: t, slug: slug, listings: listings, subscribed: make(chan struct{})}
	v.server = httptest.NewServer(v)
	return v
}

func (v *loopbackVenue) restURL() string   { return v.server.URL }
func (v *loopbackVenue) streamURL() string { return "ws" + strings.TrimPrefix(v.server.URL, "http") }

func (v *loopbackVenue) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Header.Get("Upgrade") != "":
		v.serveFeed(w, r)
	case r.URL.Path == "/api/v1/bullet-public" && r.Method == http.MethodPost:
		fmt.Fprintf(w, `{"code":"200000","data":{"token":"t","instanceServers":[{"endpoint":%q,"protocol":"websocket","encrypt":false,"pingInterval":18000,"pingTimeout":10000}]}}`, v.streamURL())
	default:
		body, ok := v.listings[strings.TrimSuffix(r.URL.Path, "/")]
		if !ok {
			http.NotFound(w, r) // the recording does not know what the venue would have answered
			return
		}
		_, _ = w.Write([]byte(body))
	}
}

func (v *loopbackVenue) serveFeed(w http.ResponseWriter, r *http.Request) {
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		v.t.Errorf("accepting: %v", err)
		return
	}
	defer conn.CloseNow()
	v.mu.Lock()
	v.conn = conn
	v.mu.Unlock()
	for {
		_, message, err := conn.Read(context.Background())
		if err != nil {
			return
		}
		for _, a := range answers(v.slug, message) {
			kind := websocket.MessageText
			if v.slug == "htx" {
				a, kind = packed(a), websocket.MessageBinary
			}
			if conn.Write(context.Background(), kind, a) != nil {
				return
			}
		}
		v.asked.Do(func() { close(v.subscribed) })
	}
}

// sendAndWait sends a frame and returns when the adapter has read it and asks for the next one: only then does
// it answer the ping after it.
func (v *loopbackVenue) sendAndWait(f recordedFrame) {
	v.t.Helper()
	v.send(f, true)
}

// mumble sends a frame that no tick follows from: when it is read makes no difference.
func (v *loopbackVenue) mumble(f recordedFrame) {
	v.t.Helper()
	v.send(f, false)
}

func (v *loopbackVenue) send(f recordedFrame, wait bool) {
	v.t.Helper()
	v.mu.Lock()
	conn := v.conn
	v.mu.Unlock()
	ctx, cancel := context.WithTimeout(v.t.Context(), time.Minute)
	defer cancel()
	kind := websocket.MessageText
	if f.binary {
		kind = websocket.MessageBinary
	}
	err := conn.Write(ctx, kind, f.bytes)
	if err == nil && wait {
		err = conn.Ping(ctx)
	}
	if err != nil {
		v.t.Fatalf("%s: the adapter is gone at %.200q: %v", v.slug, f.bytes, err)
	}
}

func packed(text []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(text)
	_ = w.Close()
	return b.Bytes()
}

// answers is what a venue sends to a message of a client, as its documentation has it: it acknowledges
// subscriptions and returns heartbeats.
func answers(slug string, message []byte) (list [][]byte) {
	add := func(format string, a ...any) { list = append(list, fmt.Appendf(nil, format, a...)) }
	if string(message) == "ping" { // OKX and Bitget
		add("pong")
		return list
	}
	var m struct {
		ID       json.RawMessage `json:"id"`
		Op       string          `json:"op"`
		Method   string          `json:"method"`
		Type     string          `json:"type"`
		Event    string          `json:"event"`
		Channel  string          `json:"channel"`
		Sub      string          `json:"sub"`
		Channels json.RawMessage `json:"channels"`
		Params   json.RawMessage `json:"params"`
		Payload  json.RawMessage `json:"payload"`
		Args     []json.RawMessage
		Request  string `json:"req_id"`
		Data     struct {
			Channel string `json:"channel"`
		} `json:"data"`
	}
	if json.Unmarshal(message, &m) != nil {
		return nil
	}
	if m.ID == nil {
		m.ID = json.RawMessage("null")
	}
	switch slug {
	case "binance":
		add(`{"result":null,"id":%s}`, m.ID)
	case "coinbase":
		add(`{"type":"subscriptions","channels":[]}`)
	case "kraken":
		if m.Method == "ping" {
			add(`{"method":"pong","time_in":"2023-09-24T14:10:23.799685Z","time_out":"2023-09-24T14:10:23.799703Z"}`)
			break
		}
		var p struct {
			Channel string
			Symbol  []string
		}
		_ = json.Unmarshal(m.Params, &p)
		for _, symbol := range p.Symbol {
			add(`{"method":"subscribe","result":{"channel":%q,"snapshot":true,"symbol":%q},"success":true,"time_in":"2023-09-24T14:10:23.799685Z","time_out":"2023-09-24T14:10:23.799703Z"}`, p.Channel, symbol)
		}
	case "okx", "bitget":
		for _, arg := range m.Args {
			add(`{"event":"subscribe","arg":%s,"connId":"a4d3ae55"}`, arg)
		}
	case "bybit":
		add(`{"success":true,"ret_msg":%q,"conn_id":"cejreassvfrsfvb9v1a0-2m","req_id":%q,"op":%q}`, m.Op, m.Request, m.Op)
	case "bitstamp":
		if m.Event == "bts:heartbeat" {
			add(`{"event":"bts:heartbeat","channel":"","data":{"status":"success"}}`)
			break
		}
		add(`{"event":"bts:subscription_succeeded","channel":%q,"data":{}}`, m.Data.Channel)
	case "kucoin":
		add(`{"id":%s,"type":%q}`, m.ID, map[string]string{"ping": "pong"}[m.Type]+map[string]string{"subscribe": "ack"}[m.Type])
	case "gate":
		if m.Channel == "spot.ping" {
			add(`{"time":1545404023,"time_ms":1545404023123,"channel":"spot.pong","event":"","result":null}`)
			break
		}
		add(`{"time":1611541000,"time_ms":1611541000001,"channel":%q,"event":%q,"payload":%s,"result":{"status":"success"}}`, m.Channel, m.Event, m.Payload)
	case "htx":
		if m.Sub != "" {
			add(`{"id":%s,"status":"ok","subbed":%q,"ts":1489474081631}`, m.ID, m.Sub)
		}
	case "cryptocom":
		if m.Method == "subscribe" {
			add(`{"id":%s,"method":"subscribe","code":0}`, m.ID)
		}
	case "mexc":
		if m.Method == "PING" {
			add(`{"id":0,"code":0,"msg":"PONG"}`)
			break
		}
		add(`{"id":0,"code":0,"msg":%q}`, m.Params)
	}
	return list
}

// pair is a market of a venue's list.
type pair struct{ symbol, base, quote string }

// listing spells a venue's list of instruments, after its documentation.
func listing(t *testing.T, slug string, pairs []pair) string {
	t.Helper()
	var rows []string
	for _, p := range pairs {
		format := map[string]string{
			"binance":   `{"symbol":"%[1]s","status":"TRADING","baseAsset":"%[2]s","baseAssetPrecision":8,"quoteAsset":"%[3]s","isSpotTradingAllowed":true,"permissions":["SPOT"]}`,
			"coinbase":  `{"id":"%[1]s","base_currency":"%[2]s","quote_currency":"%[3]s","display_name":"%[2]s/%[3]s","status":"online","trading_disabled":false}`,
			"kraken":    `"%[2]s%[3]s":{"altname":"%[2]s%[3]s","wsname":"%[2]s/%[3]s","aclass_base":"currency","base":"%[2]s","aclass_quote":"currency","quote":"%[3]s","status":"online"}`,
			"okx":       `{"instType":"SPOT","instId":"%[1]s","baseCcy":"%[2]s","quoteCcy":"%[3]s","state":"live"}`,
			"bybit":     `{"symbol":"%[1]s","baseCoin":"%[2]s","quoteCoin":"%[3]s","innovation":"0","status":"Trading"}`,
			"bitstamp":  `{"name":"%[2]s/%[3]s","url_symbol":"%[1]s","trading":"Enabled","description":"%[2]s / %[3]s"}`,
			"kucoin":    `{"symbol":"%[1]s","name":"%[1]s","baseCurrency":"%[2]s","quoteCurrency":"%[3]s","enableTrading":true}`,
			"gate":      `{"id":"%[1]s","base":"%[2]s","quote":"%[3]s","trade_status":"tradable","type":"normal"}`,
			"htx":       `{"symbol":"%[1]s","base-currency":"%[2]s","quote-currency":"%[3]s","state":"online"}`,
			"cryptocom": `{"symbol":"%[1]s","inst_type":"CCY_PAIR","base_ccy":"%[2]s","quote_ccy":"%[3]s","tradable":true}`,
			"bitget":    `{"symbol":"%[1]s","baseCoin":"%[2]s","quoteCoin":"%[3]s","status":"online"}`,
			"mexc":      `{"symbol":"%[1]s","status":"1","baseAsset":"%[2]s","quoteAsset":"%[3]s","isSpotTradingAllowed":true}`,
		}[slug]
		if format == "" {
			t.Fatalf("nothing says how %s spells its list", slug)
		}
		if slug == "htx" {
			p.base, p.quote = strings.ToLower(p.base), strings.ToLower(p.quote)
		}
		rows = append(rows, fmt.Sprintf(format, p.symbol, p.base, p.quote))
	}
	list := strings.Join(rows, ",")
	switch slug {
	case "binance", "mexc":
		return `{"timezone":"UTC","symbols":[` + list + `]}`
	case "kraken":
		return `{"error":[],"result":{` + list + `}}`
	case "okx":
		return `{"code":"0","msg":"","data":[` + list + `]}`
	case "bybit":
		return `{"retCode":0,"retMsg":"OK","result":{"category":"spot","list":[` + list + `]},"retExtInfo":{},"time":1672712495660}`
	case "kucoin":
		return `{"code":"200000","data":[` + list + `]}`
	case "htx":
		return `{"status":"ok","data":[` + list + `]}`
	case "cryptocom":
		return `{"id":1,"method":"public/get-instruments","code":0,"result":{"data":[` + list + `]}}`
	case "bitget":
		return `{"code":"00000","msg":"success","requestTime":1744276707885,"data":[` + list + `]}`
	}
	return "[" + list + "]"
}
