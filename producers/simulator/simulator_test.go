package simulator

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// machine is the machine's clock.
type machine struct{}

func (machine) Now() time.Time                         { return time.Now() }
func (machine) After(d time.Duration) <-chan time.Time { return time.After(d) }

// serve runs a simulator with one venue over loopback.
func serve(t *testing.T, v Venue) *Simulator {
	t.Helper()
	cfg := DefaultConfig()
	cfg.Clock, cfg.Rate, cfg.Venues = machine{}, 5000, []Venue{v}
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1) // one result
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("running the simulator: %v", err)
		}
	})
	return s
}

const patience = 20 * time.Second

func dial(t *testing.T, s *Simulator, slug string) *websocket.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ws, _, err := websocket.Dial(ctx, s.URLs()[slug].Stream, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ws.CloseNow() })
	return ws
}

func send(t *testing.T, ws *websocket.Conn, text string) {
	t.Helper()
	if err := ws.Write(t.Context(), websocket.MessageText, []byte(text)); err != nil {
		t.Fatal(err)
	}
}

// until reads frames until one satisfies, or the connection or the patience ends.
func until(t *testing.T, ws *websocket.Conn, satisfies func(text string) bool) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		_, b, err := ws.Read(ctx)
		if err != nil {
			return err
		}
		if satisfies(string(b)) {
			return nil
		}
	}
}

const subscribeBTC = `{"type":"subscribe","product_ids":["BTC-USD"],"channels":["matches","ticker"]}`

func TestClientGetsWhatItSubscribedToAndNothingElse(t *testing.T) {
	s := serve(t, coinbase())
	ws := dial(t, s, "coinbase")
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
		// The snapshot and the feed after it leave no hole.
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

func TestReconnectedClientMeetsTheSameHistory(t *testing.T) {
	s := serve(t, coinbase())
	trades := map[string]string{}
	for range 2 {
		ws := dial(t, s, "coinbase")
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
	// The HTTP interface tells the same.
	answer, err := http.Get(s.URLs()["coinbase"].REST + "/products/BTC-USD/trades")
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
		t.Error("none of the feed's trades is told over HTTP")
	}
}

func TestLimitsAreEnforced(t *testing.T) {
	v := coinbase()
	v.Limits = Limits{
		Connects: 3, ConnectsPer: time.Hour, Messages: 2, MessagesPer: time.Hour, Topics: 3,
		Requests: 2, RequestsPer: time.Hour,
	}
	s := serve(t, v)
	tooManyTopics := dial(t, s, "coinbase")
	send(t, tooManyTopics, `{"type":"subscribe","product_ids":["BTC-USD","ETH-USD"],"channels":["matches","ticker"]}`)
	never := func(string) bool { return false }
	if err := until(t, tooManyTopics, never); websocket.CloseStatus(err) != websocket.StatusPolicyViolation || !strings.Contains(err.Error(), "subscriptions") {
		t.Errorf("after 4 subscriptions with a limit of 3: %v", err)
	}
	tooManyMessages := dial(t, s, "coinbase")
	for range 3 {
		send(t, tooManyMessages, subscribeBTC)
	}
	if err := until(t, tooManyMessages, never); websocket.CloseStatus(err) != websocket.StatusPolicyViolation || !strings.Contains(err.Error(), "messages") {
		t.Errorf("after 3 messages with a limit of 2: %v", err)
	}
	third := dial(t, s, "coinbase")
	send(t, third, subscribeBTC)
	if err := until(t, third, func(string) bool { return true }); err != nil { // it counts once it is answered
		t.Fatal(err)
	}
	if _, answer, err := websocket.Dial(t.Context(), s.URLs()["coinbase"].Stream, nil); err == nil || answer.StatusCode != http.StatusTooManyRequests {
		t.Errorf("fourth connection with a limit of 3: %v", err)
	}
	for i, want := range []int{200, 200, 429} {
		answer, err := http.Get(s.URLs()["coinbase"].REST + "/products/BTC-USD/ticker")
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("request %d: status %d, want %d", i, answer.StatusCode, want)
		}
	}
	if stats := s.Stats("coinbase"); stats.Throttled != 1 || stats.Requests != 3 || stats.Connects != 3 {
		t.Errorf("got %+v, want 3 requests, 1 throttled, 3 connects", stats)
	}
}

// walking is a clock that a test sets.
type walking struct{ now *time.Time }

func (w walking) Now() time.Time                     { return *w.now }
func (walking) After(time.Duration) <-chan time.Time { return nil }

func TestIdleSilentAndOldConnectionsEnd(t *testing.T) {
	for name, limits := range map[string]Limits{
		"idle": {Idle: time.Minute}, "no subscription": {Unsubscribed: time.Minute}, "time is over": {Life: time.Minute},
	} {
		v := coinbase()
		v.Limits = limits
		now := noon
		cfg := DefaultConfig()
		cfg.Clock, cfg.Venues = walking{&now}, []Venue{v}
		s, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer s.listener.Close()
		x := s.exchanges[0]
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
	c.beat = noon
	c.say(`{"method":"subscribe","params":{"channel":"trade","symbol":["BTC/USD"]}}`)
	c.heardSince()
	beats := 0
	for i := range 100 {
		x.maintain(noon.Add(time.Duration(i) * 100 * time.Millisecond))
		for _, m := range c.heardSince() {
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
	c.say(subscribeBTC)
	c.heardSince()
	at := noon
	frames := func() (n, unreadable int) {
		at = at.Add(5 * time.Second)
		x.pump(at)
		for _, m := range c.heardSince() {
			n++
			var f struct{ Type string }
			if json.Unmarshal(m.bytes, &f) != nil || f.Type == "" {
				unreadable++
			}
		}
		return n, unreadable
	}
	set := func(f Faults) {
		t.Helper()
		if err := s.SetFaults("coinbase", f); err != nil {
			t.Fatal(err)
		}
	}
	normal, bad := frames()
	if normal < 10 || bad > 0 {
		t.Fatalf("%d frames in 5 s, %d of them unreadable", normal, bad)
	}
	set(Faults{Silence: true})
	if n, _ := frames(); n != 0 {
		t.Errorf("silent: %d frames", n)
	}
	set(Faults{Flood: 9})
	if n, _ := frames(); n < 5*normal {
		t.Errorf("flood: %d frames, %d without", n, normal)
	}
	set(Faults{Garbage: 0.5})
	if n, bad := frames(); bad < n/5 || bad > n*4/5 {
		t.Errorf("garbage: %d of %d frames are unreadable, want about half", bad, n)
	}
	set(Faults{Refuse: true})
	w := httptest.NewRecorder()
	s.mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/coinbase/products", nil))
	if w.Code != http.StatusServiceUnavailable {
		t.Errorf("refusing: status %d", w.Code)
	}
	set(Faults{})
	if n, bad := frames(); n < normal/3 || bad > 0 {
		t.Errorf("good again: %d frames, %d unreadable", n, bad)
	}
	if err := s.SetFaults("mtgox", Faults{}); err == nil {
		t.Error("an unknown venue is accepted")
	}
	if err := s.Disconnect("coinbase"); err != nil || c.reason == "" {
		t.Errorf("disconnecting: %v, connection %q", err, c.reason)
	}
}

func TestOutlierVenueIsFarOffInAFewMarketsSometimes(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Clock, cfg.Outlier = standing{noon}, "kraken"
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer s.listener.Close()
	markets := 0
	for _, x := range s.exchanges {
		for _, m := range x.markets {
			off, spells := 0, 200
			for i := range int64(spells) {
				at := noon.UnixNano() + i*spell
				switch ratio := m.mid(at) / (m.base.at(at-m.lag) / m.quote.at(at-m.lag)); {
				case ratio > 2:
					off++
				case ratio < 0.99 || ratio > 1.01:
					t.Fatalf("%s %s: %g of the world's price", x.venue.Slug, m.Symbol, ratio)
				}
			}
			if off == 0 {
				continue
			}
			markets++
			if x.venue.Slug != "kraken" || m.base.rank > outlierRank {
				t.Errorf("%s %s of rank %d is off", x.venue.Slug, m.Symbol, m.base.rank)
			}
			if off < spells/4 || off > spells*3/4 {
				t.Errorf("%s is off in %d of %d spells, want about half", m.Symbol, off, spells)
			}
			// Its history tells the same, piece by piece and whole.
			from := noon.Truncate(time.Hour).Add(-time.Hour)
			whole := m.Candles(from, from.Add(time.Hour), noon, time.Hour)[0]
			parts := m.Candles(from, from.Add(time.Hour), noon, time.Minute)
			high, low := whole.Low.Units, whole.High.Units
			for _, p := range parts {
				high, low = max(high, p.High.Units), min(low, p.Low.Units)
			}
			if high != whole.High.Units || low != whole.Low.Units || parts[0].Open != whole.Open || parts[59].Close != whole.Close {
				t.Errorf("%s: an hour is %+v, its minutes span %d to %d", m.Symbol, whole, low, high)
			}
		}
	}
	if markets != outliers {
		t.Errorf("%d markets are off, want %d", markets, outliers)
	}
}

func TestCentralBankFixesOnWorkingDays(t *testing.T) {
	w := newWorld(1)
	file := struct {
		Days []struct {
			Time  string `xml:"time,attr"`
			Rates []struct {
				Currency string  `xml:"currency,attr"`
				Rate     float64 `xml:"rate,attr"`
			} `xml:"Cube"`
		} `xml:"Cube>Cube"`
	}{}
	if err := xml.Unmarshal(w.fixings(noon, 90), &file); err != nil {
		t.Fatal(err)
	}
	if n := len(file.Days); n < 60 || n > 65 {
		t.Errorf("%d working days in 90", n)
	}
	// At half past twelve the day's own rates are not out yet.
	if got := file.Days[0].Time; got != "2026-03-03" {
		t.Errorf("newest is %s, want 2026-03-03", got)
	}
	for _, d := range file.Days {
		if day, err := time.Parse(time.DateOnly, d.Time); err != nil || day.Weekday() == time.Saturday || day.Weekday() == time.Sunday {
			t.Errorf("fixed on %s, %v", d.Time, err)
		}
		if len(d.Rates) != len(fixed) {
			t.Errorf("%d rates on %s, want %d", len(d.Rates), d.Time, len(fixed))
		}
		for _, r := range d.Rates {
			if r.Rate <= 0 {
				t.Errorf("%s at %g on %s", r.Currency, r.Rate, d.Time)
			}
		}
	}
	var daily = file
	daily.Days = nil
	if err := xml.Unmarshal(w.fixings(noon, 1), &daily); err != nil || len(daily.Days) != 1 {
		t.Errorf("the daily file has %d days, %v", len(daily.Days), err)
	}
}

func TestCoinbaseCandlesAreBoundedAndNewestFirst(t *testing.T) {
	s := open(t, 1, coinbase())
	get := func(query string) (int, [][]float64) {
		w := httptest.NewRecorder()
		s.mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/coinbase/products/BTC-USD/candles?"+query, nil))
		var rows [][]float64
		body, _ := io.ReadAll(w.Body)
		_ = json.Unmarshal(body, &rows)
		return w.Code, rows
	}
	status, rows := get("granularity=3600&start=2026-03-01T00:00:00Z&end=2026-03-02T00:00:00Z")
	if status != 200 || len(rows) != 25 || rows[0][0] != 1772409600 || rows[24][0] != 1772323200 {
		t.Errorf("status %d, %d rows: %v", status, len(rows), rows)
	}
	if status, _ := get("granularity=60&start=2026-03-01T00:00:00Z&end=2026-03-02T00:00:00Z"); status != 400 {
		t.Errorf("1440 candles asked for: status %d, want 400", status)
	}
	if status, rows := get("granularity=86400"); status != 200 || len(rows) != 300 {
		t.Errorf("the newest days: status %d, %d rows, want 300", status, len(rows))
	}
}

func TestKrakenKeepsTheNewest720Candles(t *testing.T) {
	s := open(t, 1, kraken())
	w := httptest.NewRecorder()
	s.mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/kraken/0/public/OHLC?pair=XBTUSD&interval=60&since=1000000000", nil))
	var answer struct {
		Result struct {
			Rows [][]any `json:"XXBTZUSD"`
			Last int64
		}
	}
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		t.Fatal(err)
	}
	rows := answer.Result.Rows
	if len(rows) != 720 || int64(rows[719][0].(float64)) != noon.Truncate(time.Hour).Unix() || answer.Result.Last != noon.Truncate(time.Hour).Unix()-3600 {
		t.Errorf("%d rows, the last %v, last %d", len(rows), rows[len(rows)-1], answer.Result.Last)
	}
}
