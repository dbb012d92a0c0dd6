package venues

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/producers/simulator/simulatortest"
)

func TestPoloniexAcknowledgesRequests(t *testing.T) {
	x := open(t, 1, poloniex()).exchanges[0]
	c := x.pretend(t)
	for _, test := range []struct{ message, want string }{
		{`{"event":"ping"}`, `{"event":"pong"}`},
		{`PING`, `pong`},
		{`{"event":"subscribe","channel":["trades"],"symbols":["BTC_USDT"]}`, `{"channel":"trades","event":"subscribe","symbols":["BTC_USDT"]}`},
		{`{"event":"subscribe","channel":["dance"],"symbols":["BTC_USDT"]}`, `{"event":"error","message":"Subscription failed (invalid channel)"}`},
		{`{"event":"subscribe","channel":["trades"],"symbols":["NO_SUCH"]}`, `{"event":"error","message":"Subscription failed (invalid symbol)"}`},
		{`{"event":"subscribe","channel":["trades"]}`, `{"event":"error","message":"Subscription failed (invalid symbol)"}`},
		{`{"event":"dance"}`, `{"event":"error","message":"Bad request"}`},
		{`{`, `{"event":"error","message":"Bad request"}`},
		{`{"event":"unsubscribe","channel":["trades"],"symbols":["BTC_USDT"]}`, `{"channel":"trades","event":"unsubscribe","symbols":["BTC_USDT"]}`},
	} {
		c.send(test.message)
		if got := c.texts(); len(got) != 1 || got[0] != test.want {
			t.Errorf("%s: got %q, want %s", test.message, got, test.want)
		}
	}
	x.passing(simulatortest.Noon, simulatortest.Noon.Add(10*time.Second))
	if got := c.texts(); len(got) > 0 {
		t.Errorf("subscribed to nothing, got %q", got)
	}
	// The newest state of each market comes at once.
	c.send(`{"event":"subscribe","channel":["ticker"],"symbols":["all"]}`)
	if got := c.texts(); len(got) != 1+len(x.Markets()) || !strings.HasPrefix(got[1], `{"channel":"ticker","data":[{"symbol":"`+x.Markets()[0].Symbol) {
		t.Errorf("after subscribing to all: %d messages, want %d", len(got), 1+len(x.Markets()))
	}
	c.send(`{"event":"unsubscribe_all"}`)
	x.passing(simulatortest.Noon.Add(11*time.Second), simulatortest.Noon.Add(29*time.Second))
	if got := c.texts(); len(got) != 1 || c.reason != "" {
		t.Errorf("unsubscribed from all, got %q, closed for %q", got, c.reason)
	}
	x.passing(simulatortest.Noon.Add(30*time.Second), simulatortest.Noon.Add(31*time.Second))
	if c.reason != "idle" {
		t.Errorf("after 31 s without a message: closed for %q, want idle", c.reason)
	}
}

func TestPoloniexCandlesAreBoundedAndOldestFirst(t *testing.T) {
	s := open(t, 1, poloniex())
	hour := simulatortest.Noon.Truncate(time.Hour)
	for query, want := range map[string]struct {
		n           int
		first, last time.Time
	}{
		"interval=HOUR_1":                                               {100, hour.Add(-99 * time.Hour), hour},
		"interval=HOUR_1&limit=3":                                       {3, hour.Add(-2 * time.Hour), hour},
		"interval=MINUTE_1&startTime=0&limit=500":                       {500, simulatortest.Noon.Truncate(time.Minute).Add(-499 * time.Minute), simulatortest.Noon.Truncate(time.Minute)},
		"interval=HOUR_1&startTime=1772582400000&endTime=1772589600000": {3, time.UnixMilli(1772582400000), time.UnixMilli(1772589600000)},
	} {
		var rows [][]any
		status := ask(t, s, "/poloniex/markets/BTC_USDT/candles?"+query, &rows)
		first, last := oldestAndNewest(rows, func(r []any) int64 { return int64(r[12].(float64)) })
		if status != http.StatusOK || len(rows) != want.n || !first.Equal(want.first) || !last.Equal(want.last) {
			t.Errorf("%s: status %d, %d rows from %s to %s, want %d from %s to %s", query, status, len(rows), first, last, want.n, want.first, want.last)
		}
	}
	var refusal struct{ Code int }
	for path, code := range map[string]int{
		"BTC_USDT/candles?interval=HOUR_9": 400, "BTC_USDT/candles?interval=HOUR_1&limit=501": 400, "NO_SUCH/candles?interval=HOUR_1": 21301,
	} {
		if status := ask(t, s, "/poloniex/markets/"+path, &refusal); status != http.StatusBadRequest || refusal.Code != code {
			t.Errorf("%s: status %d, code %d, want %d", path, status, refusal.Code, code)
		}
	}
}
