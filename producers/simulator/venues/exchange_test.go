package venues

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/marketlog/marketlog/producers/simulator/market"
	"github.com/marketlog/marketlog/producers/simulator/provider"
	"github.com/marketlog/marketlog/producers/simulator/simulatortest"
)

const subscribeBTC = `{"type":"subscribe","product_ids":["BTC-USD"],"channels":["matches","ticker"]}`

func TestClientGetsWhatItSubscribedToAndNothingElse(t *testing.T) {
	x := serve(t, coinbase())
	ws := dial(t, x)
	send(t, ws, subscribeBTC)
	seen := map[string]bool{}
	lastID := int64(0)
	err := until(t, ws, func(text string) bool {
		var m struct {
			Type    string
			Product string `json:"product_id"`
			ID      int64  `json:"trade_id"`
		}
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		if m.Product != "" && m.Product != "BTC-USD" {
			t.Fatalf("got %s, want BTC-USD only", text)
		}
		// The snapshot and the feed after it leave no gap.
		if m.Type == "match" || m.Type == "last_match" {
			if lastID != 0 && m.ID != lastID+1 {
				t.Fatalf("trade %d comes after %d", m.ID, lastID)
			}
			lastID = m.ID
		}
		seen[m.Type] = true
		return seen["match"] && seen["ticker"] && seen["subscriptions"] && seen["last_match"]
	})
	if err != nil {
		t.Fatalf("%v after %v", err, seen)
	}
}

// steppedClock moves by a second when it is asked to, as a clock that waits for what is delivered.
type steppedClock struct {
	now   time.Time
	timer chan time.Time
}

func (c *steppedClock) Now() time.Time { return c.now }

func (c *steppedClock) After(time.Duration) <-chan time.Time {
	c.timer = make(chan time.Time, 1)
	return c.timer
}

func (c *steppedClock) step() {
	c.now = c.now.Add(time.Second)
	if c.timer != nil {
		c.timer <- c.now
		c.timer = nil
	}
}

// A clock that moves on in the moment in which it gets the time that it waits for does not stop: the next second is delivered too.
func TestATimeThatMovesOnAtOnceIsDelivered(t *testing.T) {
	clock := &steppedClock{now: simulatortest.Noon}
	var times []time.Time
	x := New(Config{World: market.NewWorld(market.NewSeed(1)), Clock: clock, Addr: "127.0.0.1:0", Venues: []Venue{coinbase()}, Rate: 100}).exchanges[0]
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_ = x.run(ctx, func(at time.Time) {
			if times = append(times, at); len(times) == 3 {
				cancel()
			}
			clock.step()
		})
	})
	want := []time.Time{simulatortest.Noon, simulatortest.Noon.Add(time.Second), simulatortest.Noon.Add(2 * time.Second)}
	if !slices.EqualFunc(times, want, time.Time.Equal) {
		t.Errorf("got %v, want %v", times, want)
	}
}

func TestReconnectedClientMeetsTheSameHistory(t *testing.T) {
	x := serve(t, coinbase())
	trades := map[string]string{}
	for range 2 {
		ws := dial(t, x)
		send(t, ws, strings.ReplaceAll(subscribeBTC, `"matches","ticker"`, `"matches"`))
		n := 0
		if err := until(t, ws, func(text string) bool {
			if strings.Contains(text, `match"`) {
				n++
				_, rest, _ := strings.Cut(text, `"trade_id":`)
				id, rest, _ := strings.Cut(rest, ",")
				if was, ok := trades[id]; ok && was != rest {
					t.Fatalf("trade %s is now %s, was %s", id, rest, was)
				}
				trades[id] = rest
			}
			return n == 10
		}); err != nil {
			t.Fatal(err)
		}
		_ = ws.CloseNow()
	}
	// The HTTP interface serves the same.
	answer, err := http.Get(x.RESTURL() + "/products/BTC-USD/trades")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var rows []struct {
		ID   int64 `json:"trade_id"`
		Side string
		Time string
	}
	if err := json.NewDecoder(answer.Body).Decode(&rows); err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, r := range rows {
		if was, ok := trades[fmt.Sprint(r.ID)]; ok {
			found++
			if !strings.Contains(was, `"side":"`+r.Side+`"`) || !strings.Contains(was, r.Time) {
				t.Errorf("trade %d is %+v over HTTP, %s on the feed", r.ID, r, was)
			}
		}
	}
	if found == 0 {
		t.Error("none of the feed's trades is served over HTTP")
	}
}

func TestLimitsAreEnforced(t *testing.T) {
	v := coinbase()
	v.Limits = Limits{
		Connects: 3, ConnectsPer: time.Hour, Messages: 2, MessagesPer: time.Hour, Topics: 3,
		Requests: 2, RequestsPer: time.Hour,
	}
	x := serve(t, v)
	tooManyTopics := dial(t, x)
	send(t, tooManyTopics, `{"type":"subscribe","product_ids":["BTC-USD","ETH-USD"],"channels":["matches","ticker"]}`)
	never := func(string) bool { return false }
	if err := until(t, tooManyTopics, never); websocket.CloseStatus(err) != websocket.StatusPolicyViolation || !strings.Contains(err.Error(), "subscriptions") {
		t.Errorf("after 4 subscriptions with a limit of 3: %v", err)
	}
	tooManyMessages := dial(t, x)
	for range 3 {
		send(t, tooManyMessages, subscribeBTC)
	}
	if err := until(t, tooManyMessages, never); websocket.CloseStatus(err) != websocket.StatusPolicyViolation || !strings.Contains(err.Error(), "messages") {
		t.Errorf("after 3 messages with a limit of 2: %v", err)
	}
	third := dial(t, x)
	send(t, third, subscribeBTC)
	if err := until(t, third, func(string) bool { return true }); err != nil { // it counts once it is answered
		t.Fatal(err)
	}
	if _, answer, err := websocket.Dial(t.Context(), x.StreamURL(), nil); err == nil || answer.StatusCode != http.StatusTooManyRequests {
		t.Errorf("fourth connection with a limit of 3: %v", err)
	}
	for i, want := range []int{200, 200, 429} {
		answer, err := http.Get(x.RESTURL() + "/products/BTC-USD/ticker")
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("request %d: status %d, want %d", i, answer.StatusCode, want)
		}
	}
	if stats := x.Stats(); stats.Throttled != 1 || stats.Requests != 3 || stats.Connects != 3 {
		t.Errorf("got %+v, want 3 requests, 1 throttled, 3 connects", stats)
	}
}

func TestIdleSilentAndOldConnectionsEnd(t *testing.T) {
	for name, limits := range map[string]Limits{
		"idle": {Idle: time.Minute}, "no subscription": {Unsubscribed: time.Minute}, "time is over": {Life: time.Minute},
	} {
		v := coinbase()
		v.Limits = limits
		now := simulatortest.Noon
		x := openAt(simulatortest.Settable{Time: &now}, 1, v).exchanges[0]
		c := x.pretend(t)
		x.maintain(now.Add(time.Minute))
		if c.reason != "" {
			t.Errorf("%s: closed after exactly a minute", c.reason)
		}
		x.maintain(now.Add(time.Minute + time.Second))
		if c.reason != name {
			t.Errorf("got %q, want %q", c.reason, name)
		}
	}
}

func TestHeartbeatsAreSentInTime(t *testing.T) {
	s := open(t, 1, kraken())
	x := s.exchanges[0]
	c := x.pretend(t)
	c.beat = simulatortest.Noon
	c.send(`{"method":"subscribe","params":{"channel":"trade","symbol":["BTC/USD"]}}`)
	c.receivedSince()
	beats := 0
	for i := range 100 {
		x.maintain(simulatortest.Noon.Add(time.Duration(i) * 100 * time.Millisecond))
		for _, m := range c.receivedSince() {
			if string(m.bytes) == `{"channel":"heartbeat"}` {
				beats++
			}
		}
	}
	if beats != 9 {
		t.Errorf("%d heartbeats in 9.9 s, want 9", beats)
	}
}

func TestVenueMisbehavesOnDemand(t *testing.T) {
	s := open(t, 1, coinbase())
	x := s.exchanges[0]
	c := x.pretend(t)
	c.send(subscribeBTC)
	c.receivedSince()
	at := simulatortest.Noon
	frames := func() (n, unreadable int) {
		at = at.Add(5 * time.Second)
		x.pump(at)
		for _, m := range c.receivedSince() {
			n++
			var f struct{ Type string }
			if json.Unmarshal(m.bytes, &f) != nil || f.Type == "" {
				unreadable++
			}
		}
		return n, unreadable
	}
	normal, bad := frames()
	if normal < 10 || bad > 0 {
		t.Fatalf("%d frames in 5 s, %d of them unreadable", normal, bad)
	}
	x.SetFaults(provider.Faults{Silence: true})
	if n, _ := frames(); n != 0 {
		t.Errorf("silent: %d frames", n)
	}
	x.SetFaults(provider.Faults{Flood: 9})
	if n, _ := frames(); n < 5*normal {
		t.Errorf("flood: %d frames, %d without", n, normal)
	}
	x.SetFaults(provider.Faults{Garbage: 0.5})
	if n, bad := frames(); bad < n/5 || bad > n*4/5 {
		t.Errorf("garbage: %d of %d frames are unreadable, want about half", bad, n)
	}
	x.SetFaults(provider.Faults{Refuse: true})
	w := httptest.NewRecorder()
	s.mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/coinbase/products", nil))
	if w.Code != http.StatusServiceUnavailable {
		t.Errorf("refusing: status %d", w.Code)
	}
	x.SetFaults(provider.Faults{})
	if n, bad := frames(); n < normal/3 || bad > 0 {
		t.Errorf("good again: %d frames, %d unreadable", n, bad)
	}
	if x.Disconnect(); c.reason == "" {
		t.Error("disconnecting leaves a connection")
	}
}
