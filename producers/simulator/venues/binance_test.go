package venues

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/marketlog/marketlog/producers/simulator/simulatortest"
)

func TestBinanceCandlesAreBoundedAndOldestFirst(t *testing.T) {
	s := open(t, 1, binance())
	today := simulatortest.Noon.Truncate(24 * time.Hour)
	for _, test := range []struct {
		query       string
		n           int
		first, last time.Time
	}{
		{"interval=1d&limit=1000", 1000, today.AddDate(0, 0, -999), today},
		{"interval=1h", 500, simulatortest.Noon.Truncate(time.Hour).Add(-499 * time.Hour), simulatortest.Noon.Truncate(time.Hour)},
		{"interval=1m&limit=2000", 1000, simulatortest.Noon.Truncate(time.Minute).Add(-999 * time.Minute), simulatortest.Noon.Truncate(time.Minute)},
		// Both bounds belong to the answer.
		{fmt.Sprintf("interval=1h&startTime=%d&endTime=%d", today.UnixMilli(), today.Add(2*time.Hour).UnixMilli()), 3, today, today.Add(2 * time.Hour)},
		{fmt.Sprintf("interval=1h&startTime=%d&endTime=%d", today.UnixMilli(), today.Add(2*time.Hour).UnixMilli()-1), 2, today, today.Add(time.Hour)},
		// From the start on, if there are more.
		{fmt.Sprintf("interval=1m&startTime=%d&limit=10", today.UnixMilli()), 10, today, today.Add(9 * time.Minute)},
		{fmt.Sprintf("interval=1d&endTime=%d&limit=3", today.UnixMilli()-1), 3, today.AddDate(0, 0, -3), today.AddDate(0, 0, -1)},
	} {
		var rows [][]any
		if status := ask(t, s, "/binance/api/v3/klines?symbol=BTCUSDT&"+test.query, &rows); status != http.StatusOK || len(rows) != test.n {
			t.Errorf("%s: status %d, %d rows, want %d", test.query, status, len(rows), test.n)
			continue
		}
		first, last := int64(rows[0][0].(float64)), int64(rows[len(rows)-1][0].(float64))
		if first != test.first.UnixMilli() || last != test.last.UnixMilli() {
			t.Errorf("%s: from %s to %s, want %s to %s", test.query, time.UnixMilli(first), time.UnixMilli(last), test.first, test.last)
		}
	}
	for query, code := range map[string]int{
		"symbol=BTCUSDT&interval=1D": -1120, "symbol=BTCEUS&interval=1d": -1121, "interval=1d": -1102, "symbol=BTCUSDT&interval=1d&limit=0": -1130,
	} {
		var refusal struct{ Code int }
		if status := ask(t, s, "/binance/api/v3/klines?"+query, &refusal); status != http.StatusBadRequest || refusal.Code != code {
			t.Errorf("%s: status %d, code %d, want 400 and %d", query, status, refusal.Code, code)
		}
	}
}

func TestBinanceWeighsRequests(t *testing.T) {
	s := open(t, 1, binance())
	for path, want := range map[string]int{
		"/api/v3/ticker/24hr":                                                             80,
		"/api/v3/ticker/24hr?symbol=BTCUSDT":                                              2,
		"/api/v3/ticker/24hr?symbols=[\"BTCUSDT\",\"ETHUSDT\"]":                           2,
		"/api/v3/ticker/24hr?symbols=[" + strings.Repeat(`"BTCUSDT",`, 49) + `"ETHUSDT"]`: 40,
		"/api/v3/klines?symbol=BTCUSDT&interval=1d":                                       2,
		"/api/v3/exchangeInfo?permissions=SPOT":                                           20,
	} {
		if got := binanceWeight(httptest.NewRequest(http.MethodGet, path, nil)); got != want {
			t.Errorf("%s: weighs %d, want %d", path, got, want)
		}
	}
	// The first 75 take all of a minute's 6,000, and the tolerance ten more.
	var list, refusal json.RawMessage
	for i := range 75 {
		if status := ask(t, s, "/binance/api/v3/ticker/24hr", &list); status != http.StatusOK {
			t.Fatalf("request %d: status %d", i, status)
		}
	}
	if status := ask(t, s, "/binance/api/v3/ticker/24hr", &refusal); status != http.StatusTooManyRequests || !strings.Contains(string(refusal), "-1003") {
		t.Errorf("beyond the limit: status %d, %s", status, refusal)
	}
	if status := ask(t, s, "/binance/api/v3/ping", &list); status != http.StatusOK {
		t.Errorf("a light request: status %d", status)
	}
}

func TestBinanceStreamsAreChosenByURLAndByMessage(t *testing.T) {
	x := serve(t, binance())
	base := strings.TrimSuffix(x.StreamURL(), "/stream")
	for _, test := range []struct {
		path, subscribe, want string
	}{
		{"/ws/btcusdt@trade", "", `{"e":"trade"`},
		{"/ws/btcusdt@trade/ethusdt@ticker", "", `{"e":"24hrTicker"`},
		{"/ws", `{"method":"SUBSCRIBE","params":["btcusdt@trade"],"id":7}`, `{"e":"trade"`},
		{"/ws", `{"method":"SUBSCRIBE","params":["btcusdt@trade"],"id":7}`, `{"result":null,"id":7}`},
		{"/stream?streams=btcusdt@trade/ethusdt@ticker", "", `{"stream":"ethusdt@ticker","data":{"e":"24hrTicker"`},
		{"/stream", `{"method":"SUBSCRIBE","params":["btcusdt@bookTicker","nosuch@trade"],"id":"x"}`, `{"stream":"btcusdt@bookTicker","data":{"u":`},
		{"/stream?streams=btcusdt@trade", `{"method":"LIST_SUBSCRIPTIONS","id":3}`, `{"result":["btcusdt@trade"],"id":3}`},
		{"/stream", `{"method":"GET_PROPERTY","params":["combined"],"id":3}`, `{"result":true,"id":3}`},
		{"/stream", `{"method":"SUBSCRIBE","params":["btcusdt@depth"],"id":3}`, `{"error":{"code":2,"msg":"Invalid request: invalid stream"},"id":3}`},
		{"/stream", `{"method":"SUBSCRIBE","params":["btcusdt@trade"]}`, `{"error":{"code":2,`},
		{"/stream", `{"method":"subscribe","id":1}`, `{"error":{"code":2,`},
		{"/stream", `no JSON`, `{"error":{"code":3,`},
	} {
		ws, _, err := websocket.Dial(t.Context(), base+test.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if test.subscribe != "" {
			send(t, ws, test.subscribe)
		}
		if err := until(t, ws, func(text string) bool { return strings.HasPrefix(text, test.want) }); err != nil {
			t.Errorf("%s %s: no %s: %v", test.path, test.subscribe, test.want, err)
		}
		_ = ws.CloseNow()
	}
}

func TestClientWithoutPongIsCutOff(t *testing.T) {
	v := binance()
	v.PingEvery, v.PongWithin = 50*time.Millisecond, time.Second
	x := serve(t, v)
	pings := 0
	connect := func(answers bool) *websocket.Conn {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		pings = 0
		ws, _, err := websocket.Dial(ctx, x.StreamURL()+"?streams=btcusdt@trade", &websocket.DialOptions{
			// Called from within a read.
			OnPingReceived: func(context.Context, []byte) bool {
				pings++
				return answers
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = ws.CloseNow() })
		return ws
	}
	if err := until(t, connect(false), func(string) bool { return false }); pings == 0 || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the client that gives no pong: %v after %d pings, want an end", err, pings)
	}
	// More pings than there is time for, if none was answered.
	if err := until(t, connect(true), func(string) bool { return pings >= 30 }); err != nil {
		t.Errorf("the client that gives pongs: %v after %d pings", err, pings)
	}
}
