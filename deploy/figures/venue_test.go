package figures

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// venue is one exchange that sends what it is given, in the format of Coinbase Exchange:
// https://docs.cdp.coinbase.com/exchange/websocket-feed/channels and
// https://docs.cdp.coinbase.com/api-reference/exchange-api/rest-api/products/get-all-known-trading-pairs.
type venue struct {
	address string
	bases   []string
	trades  int
	// asked is closed once a client has subscribed.
	asked chan struct{}

	mu     sync.Mutex
	client *websocket.Conn
	once   sync.Once
}

// newVenue opens one with a market in USD for each base.
func newVenue(b *testing.B, bases []string) *venue {
	b.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatalf("opening a venue: %v", err)
	}
	v := &venue{address: listener.Addr().String(), bases: bases, asked: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("/products", v.products)
	mux.HandleFunc("/feed", v.feed)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: patience}
	served := make(chan struct{})
	go func() { defer close(served); _ = server.Serve(listener) }() // ends with Close
	b.Cleanup(func() {
		_ = server.Close()
		v.mu.Lock()
		if v.client != nil {
			_ = v.client.CloseNow()
		}
		v.mu.Unlock()
		<-served
	})
	return v
}

func (v *venue) settings() []string {
	return []string{"MARKETLOG_VENUES_COINBASE_WS_URL=ws://" + v.address + "/feed", "MARKETLOG_VENUES_COINBASE_REST_URL=http://" + v.address}
}

func (v *venue) products(w http.ResponseWriter, _ *http.Request) {
	var list []map[string]any
	for _, base := range v.bases {
		list = append(list, map[string]any{"id": base + "-USD", "base_currency": base, "quote_currency": "USD",
			"quote_increment": "0.01", "base_increment": "0.00000001", "status": "online", "trading_disabled": false})
	}
	_ = json.NewEncoder(w).Encode(list) // a client that has gone asks again
}

func (v *venue) feed(w http.ResponseWriter, r *http.Request) {
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer conn.CloseNow()
	for {
		_, text, err := conn.Read(r.Context())
		if err != nil {
			return
		}
		var m struct {
			Type     string   `json:"type"`
			Products []string `json:"product_ids"`
		}
		if json.Unmarshal(text, &m) != nil || m.Type != "subscribe" {
			continue
		}
		answer, _ := json.Marshal(map[string]any{"type": "subscriptions", "channels": []map[string]any{{"name": "matches", "product_ids": m.Products}}})
		if conn.Write(r.Context(), websocket.MessageText, answer) != nil {
			return
		}
		v.mu.Lock()
		v.client = conn
		v.mu.Unlock()
		v.once.Do(func() { close(v.asked) })
	}
}

// trade reports that a base was traded at a price, and returns when that was handed to the wire.
func (v *venue) trade(ctx context.Context, base string, price float64) (time.Time, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.trades++
	text := fmt.Sprintf(`{"type":"match","trade_id":%d,"maker_order_id":"ac928c66-ca53-498f-9c13-a110027a60e8","taker_order_id":"132fb6ae-456b-4654-b4e0-d681ac05cea1",`+
		`"side":"sell","size":"0.10000000","price":"%s","product_id":"%s-USD","sequence":%d,"time":"%s"}`,
		v.trades, strconv.FormatFloat(price, 'f', 2, 64), base, v.trades, time.Now().UTC().Format("2006-01-02T15:04:05.000000Z"))
	at := time.Now()
	return at, v.client.Write(ctx, websocket.MessageText, []byte(text))
}
