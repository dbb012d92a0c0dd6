package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/marketlog/marketlog/schemas"
)

// resumer receives every price through every kill: it cuts its own connections too, comes back to any of the replicas with the
// last cursor that it has, and keeps what it received.
type resumer struct {
	addrs  []string
	header http.Header
	random *rand.Rand

	mu      sync.Mutex
	cursor  string
	sockets int
	// since is the second from which on it must have received everything.
	since    int64
	received map[priceKey]float64
	gaps     []missed
	resumed  map[string]int // by where from
	wrong    []string
}

// missed is a span that was announced as a gap.
type missed struct {
	since, until time.Time
	reason       string
}

// resume listens until the context ends; key may be empty where none is asked for.
func resume(ctx context.Context, seed uint64, key string, addrs ...string) *resumer {
	r := &resumer{addrs: addrs, header: http.Header{}, random: rand.New(rand.NewPCG(seed, 16)), received: map[priceKey]float64{}, resumed: map[string]int{}}
	if key != "" {
		r.header.Set("Authorization", "Bearer "+key)
	}
	go func() {
		for ctx.Err() == nil {
			r.socket(ctx)
			select {
			case <-ctx.Done():
			case <-time.After(redial):
			}
		}
	}()
	return r
}

// socket is one connection, cut in the middle of anything.
func (r *resumer) socket(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 200*time.Millisecond+time.Duration(r.random.Int64N(int64(6*time.Second))))
	defer cancel()
	query := "?delivery=all&snapshot=0&heartbeatMs=1000"
	r.mu.Lock()
	if r.cursor != "" {
		query += "&cursor=" + r.cursor
	}
	r.mu.Unlock()
	conn, _, err := websocket.Dial(ctx, "ws://"+r.addrs[r.random.IntN(len(r.addrs))]+"/api/v1/prices/ws"+query, &websocket.DialOptions{HTTPHeader: r.header})
	if err != nil {
		return
	}
	defer func() { _ = conn.CloseNow() }()
	conn.SetReadLimit(1 << 22)
	r.mu.Lock()
	r.sockets++
	r.mu.Unlock()
	for {
		_, frame, err := conn.Read(ctx)
		if err != nil {
			return
		}
		r.hear(frame)
	}
}

func (r *resumer) hear(frame []byte) {
	var f struct {
		Type, Cursor, Source, Reason string
		Timestamp, Since, Until      time.Time
		Data                         []struct {
			Coin      string `json:"coinId"`
			Price     float64
			Timestamp int64
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := json.Unmarshal(frame, &f); err != nil {
		r.wrong = append(r.wrong, fmt.Sprintf("a frame that cannot be read: %v: %.200s", err, frame))
		return
	}
	switch f.Type {
	case "resumed":
		r.resumed[f.Source]++
	case "gap":
		r.gaps = append(r.gaps, missed{f.Since, f.Until, f.Reason})
	case "price_update":
		for _, p := range f.Data {
			key := priceKey{p.Coin, p.Timestamp / 1000}
			if before, twice := r.received[key]; twice {
				r.wrong = append(r.wrong, fmt.Sprintf("%s at %d is sent twice, as %v and as %v", key.coin, key.second, before, p.Price))
			}
			r.received[key] = p.Price
		}
	}
	if f.Cursor != "" {
		if r.cursor == "" {
			r.since = f.Timestamp.Unix() + 1
		}
		r.cursor = f.Cursor
	}
}

// check reports what was sent that the view of prices does not hold, and what the view holds that was never sent. The log must
// not grow.
func (r *resumer) check(t *testing.T, published map[priceKey]float64) {
	t.Helper()
	coins := schemas.Coins()
	missing := func() (keys []string) {
		r.mu.Lock()
		defer r.mu.Unlock()
		for key, price := range published {
			coin, known := coins.ByID(key.coin)
			if !known || coins.BySymbol(coin.Symbol)[0].ID != coin.ID || key.second < r.since {
				continue // who names no coins receives those that have their symbol
			}
			if _, seen := r.received[key]; !seen && !r.excused(key.second) {
				keys = append(keys, fmt.Sprintf("%s at %d, %v, was never sent", key.coin, key.second, price))
			}
		}
		return keys
	}
	deadline := time.Now().Add(time.Minute)
	lacking := missing()
	for len(lacking) > 0 && time.Now().Before(deadline) {
		time.Sleep(time.Second) // it may just be cut off
		lacking = missing()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	wrong := append(r.wrong, lacking...)
	for key, price := range r.received {
		if want, ok := published[key]; !ok || want != price {
			wrong = append(wrong, fmt.Sprintf("%s at %d is sent as %v, and v_prices holds %v (%t)", key.coin, key.second, price, want, ok))
		}
	}
	for _, gap := range r.gaps {
		if gap.reason != "other_log" {
			wrong = append(wrong, fmt.Sprintf("a gap of %s from %v to %v", gap.reason, gap.since, gap.until))
		}
	}
	for _, w := range first(wrong) {
		t.Errorf("of one that goes on where it was: %s", w)
	}
	if len(r.received) == 0 {
		t.Error("one that goes on where it was receives no price")
	}
	t.Logf("one that goes on where it was received %d prices on %d sockets, resumed %v, with %d gaps", len(r.received), r.sockets, r.resumed, len(r.gaps))
}

// excused means that a gap covers a second.
func (r *resumer) excused(second int64) bool {
	for _, gap := range r.gaps {
		if second >= gap.since.Unix() && second <= gap.until.Unix()+1 {
			return true
		}
	}
	return false
}
