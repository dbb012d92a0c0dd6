package venues

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/marketlog/marketlog/producers/simulator/provider"
	"github.com/marketlog/marketlog/producers/simulator/simulatortest"
)

func TestFaultEndsByItself(t *testing.T) {
	now := simulatortest.Noon
	s := openAt(simulatortest.Settable{Time: &now}, 1, coinbase(), kraken())
	x := s.exchanges[0]
	status := func() int {
		w := httptest.NewRecorder()
		s.mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/coinbase/products", nil))
		return w.Code
	}
	until := simulatortest.Noon.Add(time.Minute)
	x.SetFaults(provider.Faults{Refuse: true, Until: until})
	if got := x.Faults(); got != (provider.Faults{Refuse: true, Until: until}) {
		t.Errorf("in force is %+v", got)
	}
	if got := s.exchanges[1].Faults(); got != (provider.Faults{}) {
		t.Errorf("in force at another venue is %+v", got)
	}
	now = until.Add(-time.Millisecond)
	x.maintain(now)
	if got := status(); got != http.StatusServiceUnavailable {
		t.Errorf("just before its end: status %d", got)
	}
	now = until
	x.maintain(now)
	if got := status(); got != http.StatusOK {
		t.Errorf("at its end: status %d", got)
	}
	if got := x.Faults(); got != (provider.Faults{}) {
		t.Errorf("in force is still %+v", got)
	}
}

// A venue that hangs does not answer later what it was asked meanwhile: it has not received it.
func TestSilentVenueHearsNothing(t *testing.T) {
	x := serve(t, coinbase())
	x.SetFaults(provider.Faults{Silence: true})
	ws := dial(t, x)
	send(t, ws, subscribeBTC)
	// Once the ping is answered the message before it was read.
	if err := ws.Ping(ws.CloseRead(t.Context())); err != nil {
		t.Fatal(err)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.conns) != 1 || len(x.feeds) != 0 || x.counter.Frames.Load() != 0 {
		t.Errorf("%d connections with %d subscriptions and %d frames, want one without any", len(x.conns), len(x.feeds), x.counter.Frames.Load())
	}
}

// A market that was delisted is neither on the list nor in the feed, one that is halted is on the list and reports it; both are back when the fault has ended.
func TestDelistedAndHaltedMarketsAreNotHeard(t *testing.T) {
	s := open(t, 1, coinbase())
	x := s.exchanges[0]
	stays, leaves := x.markets[0].Symbol, x.markets[leaveEvery-1].Symbol
	c := x.pretend(t)
	c.send(`{"type":"subscribe","product_ids":["` + stays + `","` + leaves + `"],"channels":["matches","ticker"]}`)
	c.receivedSince()
	at := simulatortest.Noon
	received := func() (ofStaying, ofLeaving int) {
		at = at.Add(10 * time.Minute)
		x.pump(at)
		for _, text := range c.texts() {
			ofStaying += strings.Count(text, `"`+stays+`"`)
			ofLeaving += strings.Count(text, `"`+leaves+`"`)
		}
		return ofStaying, ofLeaving
	}
	all, some := len(x.markets), len(x.markets)/leaveEvery
	for _, test := range []struct {
		faults         provider.Faults
		listed, halted int
		has            bool // the list has the market that leaves
		ticker         int  // status of the answer with its ticker
	}{
		{provider.Faults{}, all, 0, true, http.StatusOK},
		{provider.Faults{Delisted: true}, all - some, 0, false, http.StatusNotFound},
		{provider.Faults{}, all, 0, true, http.StatusOK},
		{provider.Faults{Halted: true}, all, some, true, http.StatusNotFound},
		{provider.Faults{}, all, 0, true, http.StatusOK},
	} {
		x.SetFaults(test.faults)
		var products []struct {
			ID     string
			Halted bool `json:"trading_disabled"`
		}
		ask(t, s, "/coinbase/products", &products)
		halted, has := 0, false
		for _, p := range products {
			if p.Halted {
				halted++
			}
			has = has || p.ID == leaves && p.Halted == test.faults.Halted
		}
		if len(products) != test.listed || halted != test.halted || has != test.has {
			t.Errorf("%+v: the list has %d markets, %d of them halted, and the one that leaves is %t; want %+v", test.faults, len(products), halted, has, test)
		}
		var ticker struct{}
		if got := ask(t, s, "/coinbase/products/"+leaves+"/ticker", &ticker); got != test.ticker {
			t.Errorf("%+v: asked for the ticker of the one that leaves it answers %d, want %d", test.faults, got, test.ticker)
		}
		if a, b := received(); a == 0 || (b == 0) == (test.ticker == http.StatusOK) {
			t.Errorf("%+v: %d frames of one that stays, %d of one that leaves", test.faults, a, b)
		}
	}
}

// What a silent venue did not ask, nobody can fail to answer.
func TestSilenceIsNotBrokenByHeartbeats(t *testing.T) {
	s := open(t, 1, cryptocom())
	x := s.exchanges[0]
	c := x.pretend(t)
	c.beat = simulatortest.Noon
	x.SetFaults(provider.Faults{Silence: true})
	x.passing(simulatortest.Noon, simulatortest.Noon.Add(2*time.Minute))
	if got := c.texts(); len(got) > 0 || c.reason != "" {
		t.Errorf("got %q, closed for %q", got, c.reason)
	}
}

func TestVenuesThrottleInTheirOwnFormats(t *testing.T) {
	for _, test := range []struct {
		venue Venue
		path  string
		n     int // in a time that allows them all at once
		per   time.Duration
		want  string
	}{
		{cryptocom(), "/public/get-tickers", 100, time.Second, `{"code":42901,"id":-1,"message":"RATE_LIMIT","method":"public/get-tickers"}`},
		{bitfinex(), "/v2/tickers?symbols=ALL", 30, time.Minute, `["error",11010,"ratelimit: error"]`},
		{gemini(), "/v1/symbols", 120, time.Minute, `"reason":"RateLimited","result":"error"`},
		{upbit(), "/v1/market/all", 10, time.Second, `"name":"too_many_requests"`},
		{upbit(), "/v1/candles/days?market=KRW-BTC", 10, time.Second, `"name":"too_many_requests"`},
		{poloniex(), "/markets/BTC_USDT/price", 200, time.Second, `{"code":429,`},
		{poloniex(), "/markets", 10, time.Second, `{"code":429,`},
	} {
		s := open(t, 1, test.venue) // its clock does not advance: all requests come at once
		allowed := 0
		for {
			w := httptest.NewRecorder()
			s.mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/"+test.venue.Slug+test.path, nil))
			if w.Code == http.StatusOK && allowed < 1000 {
				allowed++
				continue
			}
			if w.Code != http.StatusTooManyRequests || !strings.Contains(w.Body.String(), test.want) {
				t.Errorf("%s: status %d, %s, want 429 and %s", test.venue.Slug, w.Code, w.Body, test.want)
			}
			break
		}
		if extra := int(provider.Tolerance * time.Duration(test.n) / test.per); allowed < test.n || allowed > test.n+extra {
			t.Errorf("%s %s: %d requests are allowed at once, want %d", test.venue.Slug, test.path, allowed, test.n)
		}
	}
}

func TestTooManyConnectionsAreRefused(t *testing.T) {
	for _, v := range []Venue{bitfinex(), gemini(), upbit()} {
		v.Limits.ConnectsPer = time.Hour // or more would be allowed meanwhile
		x := serve(t, v)
		for range v.Limits.Connects {
			dial(t, x)
		}
		if _, answer, err := websocket.Dial(t.Context(), x.StreamURL(), nil); err == nil || answer.StatusCode != http.StatusTooManyRequests {
			t.Errorf("%s: connection %d: %v", v.Slug, v.Limits.Connects+1, err)
		}
	}
}
