package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// listener listens to the price stream of one address through every kill: it connects again and again,
// and keeps what it received.
type listener struct {
	url    string
	header http.Header

	mu       sync.Mutex
	sockets  int
	received map[priceKey]float64
	times    map[string]int64 // by coin, milliseconds
	last     time.Time        // the newest timestamp of a frame
	wrong    []string
}

// priceKey is a price's place in the view.
type priceKey struct {
	coin   string
	second int64
}

// redial is how long to wait before a lost socket is opened again.
const redial = 100 * time.Millisecond

// listen listens until the context ends; key may be empty where none is asked for.
func listen(ctx context.Context, addr, key string) *listener {
	l := &listener{
		url: "ws://" + addr + "/api/v1/prices/ws", header: http.Header{},
		received: map[priceKey]float64{}, times: map[string]int64{},
	}
	if key != "" {
		l.header.Set("Authorization", "Bearer "+key)
	}
	go func() {
		for ctx.Err() == nil {
			l.socket(ctx)
			select {
			case <-ctx.Done():
			case <-time.After(redial):
			}
		}
	}()
	return l
}

// silence is how long a socket may be silent before another is opened: the process may be stopped.
const silence = 15 * time.Second

func (l *listener) socket(ctx context.Context) {
	dial, cancel := context.WithTimeout(ctx, silence)
	conn, _, err := websocket.Dial(dial, l.url, &websocket.DialOptions{HTTPHeader: l.header})
	cancel()
	if err != nil {
		return
	}
	defer func() { _ = conn.CloseNow() }()
	conn.SetReadLimit(1 << 22)
	l.mu.Lock()
	l.sockets++
	l.mu.Unlock()
	for {
		reading, cancel := context.WithTimeout(ctx, silence)
		_, frame, err := conn.Read(reading)
		cancel()
		if err != nil {
			return
		}
		l.hear(frame)
	}
}

// hear notes one frame, and complains if time went back in it.
func (l *listener) hear(frame []byte) {
	var f struct {
		Type      string    `json:"type"`
		Timestamp time.Time `json:"timestamp"`
		Data      json.RawMessage
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := json.Unmarshal(frame, &f); err != nil {
		l.wrong = append(l.wrong, fmt.Sprintf("a frame that cannot be read: %v: %.200s", err, frame))
		return
	}
	if f.Type != "initial_prices" && f.Type != "price_update" {
		return
	}
	var prices []struct {
		Coin      string `json:"coinId"`
		Price     float64
		Timestamp int64
	}
	if err := json.Unmarshal(f.Data, &prices); err != nil {
		l.wrong = append(l.wrong, fmt.Sprintf("a frame that cannot be read: %v: %.200s", err, frame))
		return
	}
	if len(prices) == 0 {
		return // before the log has delivered anything, a frame has the time of the process
	}
	// Milliseconds only distinguish frames of one second, and begin again with a process; the second is the log's.
	if f.Timestamp.Truncate(time.Second).Before(l.last.Truncate(time.Second)) {
		l.wrong = append(l.wrong, fmt.Sprintf("a frame %s of %v after one of %v", f.Type, f.Timestamp, l.last))
	}
	l.last = f.Timestamp
	for _, p := range prices {
		if before := l.times[p.Coin]; p.Timestamp < before {
			l.wrong = append(l.wrong, fmt.Sprintf("%s in a frame %s: %v after %v", p.Coin, f.Type, time.UnixMilli(p.Timestamp).UTC(), time.UnixMilli(before).UTC()))
		}
		l.times[p.Coin] = p.Timestamp
		key := priceKey{p.Coin, p.Timestamp / 1000}
		if before, known := l.received[key]; known && before != p.Price {
			l.wrong = append(l.wrong, fmt.Sprintf("%s at %d is sent as %v and as %v", key.coin, key.second, before, p.Price))
		}
		l.received[key] = p.Price
	}
}

// await waits until the listener received a price of at least this second of a coin.
func (l *listener) await(t *testing.T, coin string, second int64) {
	t.Helper()
	eventually(t, fmt.Sprintf("the stream of %s sending %s at %d", l.url, coin, second), time.Minute, func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		if at := l.times[coin] / 1000; at < second {
			return fmt.Errorf("it has received %d", at)
		}
		return nil
	})
}

// check reports where time went back, and what was sent that the view of prices does not hold.
func (l *listener) check(t *testing.T, published map[priceKey]float64) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	wrong := l.wrong
	for key, price := range l.received {
		if want, ok := published[key]; !ok || want != price {
			wrong = append(wrong, fmt.Sprintf("%s at %d is sent as %v, and v_prices holds %v (%t)", key.coin, key.second, price, want, ok))
		}
	}
	for _, w := range first(wrong) {
		t.Errorf("on the stream of %s: %s", l.url, w)
	}
	if len(l.received) == 0 {
		t.Errorf("the stream of %s sent no price", l.url)
	}
	t.Logf("the stream of %s sent %d prices on %d sockets", l.url, len(l.received), l.sockets)
}
