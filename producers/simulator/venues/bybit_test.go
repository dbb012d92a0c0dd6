package venues

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/producers/simulator/simulatortest"
)

func TestBybitCandlesAreNewestFirst(t *testing.T) {
	s := open(t, 1, bybit())
	today, thisHour := simulatortest.Noon.Truncate(24*time.Hour), simulatortest.Noon.Truncate(time.Hour)
	for _, test := range []struct {
		query         string
		n             int
		newest, least time.Time
	}{
		{"interval=60", 200, thisHour, thisHour.Add(-199 * time.Hour)},
		{"interval=D&limit=5000", 1000, today, today.AddDate(0, 0, -999)},
		// Both bounds belong to the answer.
		{fmt.Sprintf("interval=60&start=%d&end=%d", today.UnixMilli(), today.Add(2*time.Hour).UnixMilli()), 3, today.Add(2 * time.Hour), today},
		{fmt.Sprintf("interval=60&start=%d&end=%d", today.UnixMilli(), today.Add(2*time.Hour).UnixMilli()-1), 2, today.Add(time.Hour), today},
		{fmt.Sprintf("interval=1&start=%d&limit=10", today.UnixMilli()), 10, today.Add(9 * time.Minute), today},
		{fmt.Sprintf("interval=1&end=%d&limit=10", today.UnixMilli()), 10, today, today.Add(-9 * time.Minute)},
	} {
		var answer struct {
			RetCode int
			Result  struct {
				Symbol string
				List   [][]string
			}
		}
		target := "/bybit/v5/market/kline?category=spot&symbol=BTCUSDT&" + test.query
		status := ask(t, s, target, &answer)
		rows := answer.Result.List
		if status != http.StatusOK || answer.RetCode != 0 || answer.Result.Symbol != "BTCUSDT" || len(rows) != test.n {
			t.Errorf("%s: status %d, code %d, %s, %d rows, want %d", target, status, answer.RetCode, answer.Result.Symbol, len(rows), test.n)
			continue
		}
		start := func(row []string) time.Time {
			n, _ := strconv.ParseInt(row[0], 10, 64)
			return time.UnixMilli(n).UTC()
		}
		if start(rows[0]) != test.newest || start(rows[test.n-1]) != test.least {
			t.Errorf("%s: from %s to %s, want %s to %s", target, start(rows[0]), start(rows[test.n-1]), test.newest, test.least)
		}
	}
	for query, why := range map[string]string{
		"category=spot&symbol=BTCUSDT&interval=1h": "Invalid period!", "category=spot&symbol=BTCEUS&interval=60": "Not supported symbols",
		"category=linear&symbol=BTCUSDT&interval=60": "Illegal category",
	} {
		var answer struct {
			RetCode int
			RetMsg  string
		}
		if ask(t, s, "/bybit/v5/market/kline?"+query, &answer); answer.RetCode != 10001 || answer.RetMsg != why {
			t.Errorf("%s: got %d %s, want 10001 %s", query, answer.RetCode, answer.RetMsg, why)
		}
	}
}

func TestBybitRefusesWithStatus403(t *testing.T) {
	s := open(t, 1, bybit())
	for i := range 700 {
		w := httptest.NewRecorder()
		s.mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/bybit/v5/market/time", nil))
		if w.Code == http.StatusForbidden {
			if i < 600 || !strings.Contains(w.Body.String(), "access too frequent") {
				t.Errorf("request %d is refused with %s", i, w.Body)
			}
			return
		}
	}
	t.Error("700 requests at once are answered, 600 in 5 s are allowed")
}

func TestBybitAcknowledgesRequests(t *testing.T) {
	x := open(t, 1, bybit()).exchanges[0]
	c := x.pretend(t)
	for _, test := range []struct {
		send    string
		success bool
		text    string
		further int
	}{
		{`{"op":"ping"}`, true, "pong", 0},
		{`{"req_id":"7","op":"subscribe","args":["publicTrade.BTCUSDT","tickers.BTCUSDT"]}`, true, "subscribe", 1},
		{`{"op":"subscribe","args":["publicTrade.ETHUSDT","publicTrade.BTCEUS"]}`, false, "Invalid symbol :[publicTrade.BTCEUS]", 0},
		{`{"op":"subscribe","args":["a","b","c","d","e","f","g","h","i","j","k"]}`, false, "args size >10", 0},
		{`{"op":"unsubscribe","args":["publicTrade.BTCUSDT"]}`, true, "unsubscribe", 0},
	} {
		c.send(test.send)
		received := c.receivedSince()
		var answer struct {
			Success bool
			Message string `json:"ret_msg"`
			ID      string `json:"req_id"`
		}
		if len(received) != 1+test.further {
			t.Fatalf("%s: %d answers, want %d", test.send, len(received), 1+test.further)
		}
		if err := json.Unmarshal(received[0].bytes, &answer); err != nil || answer.Success != test.success || answer.Message != test.text {
			t.Errorf("%s: got %s, want %t %q", test.send, received[0].bytes, test.success, test.text)
		}
		if strings.Contains(test.send, "req_id") && answer.ID != "7" {
			t.Errorf("%s: answered to %q", test.send, answer.ID)
		}
	}
	if len(c.topics) != 1 {
		t.Errorf("subscribed to %d topics, want 1", len(c.topics))
	}
	for range 1500 {
		c.send(`{"op":"subscribe","args":["tickers.BTCUSDT"]}`)
	}
	if c.reason != "args too long" {
		t.Errorf("after 22,500 characters of topics: %q", c.reason)
	}
}
