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

// A venue that hangs does not answer later what it was asked meanwhile: it has not heard it.
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

// A market that was delisted is neither on the list nor in the feed, and is again when the fault has ended.
func TestDelistedMarketsAreNeitherListedNorHeard(t *testing.T) {
	s := open(t, 1, coinbase())
	x := s.exchanges[0]
	stays, leaves := x.markets[0].Symbol, x.markets[delistEvery-1].Symbol
	c := x.pretend(t)
	c.send(`{"type":"subscribe","product_ids":["` + stays + `","` + leaves + `"],"channels":["matches","ticker"]}`)
	c.heardSince()
	at := simulatortest.Noon
	heard := func() (ofStaying, ofLeaving int) {
		at = at.Add(10 * time.Minute)
		x.pump(at)
		for _, text := range c.texts() {
			ofStaying += strings.Count(text, `"`+stays+`"`)
			ofLeaving += strings.Count(text, `"`+leaves+`"`)
		}
		return ofStaying, ofLeaving
	}
	listed := func() (n int, has bool) {
		var products []struct{ ID string }
		ask(t, s, "/coinbase/products", &products)
		for _, p := range products {
			has = has || p.ID == leaves
		}
		return len(products), has
	}
	for _, delists := range []bool{false, true, false} {
		x.SetFaults(provider.Faults{Delisted: delists})
		n, has := listed()
		if want := len(x.markets) - map[bool]int{true: len(x.markets) / delistEvery}[delists]; n != want || has == delists {
			t.Errorf("delisted is %t: the list has %d markets, want %d, and the one that leaves is %t", delists, n, want, has)
		}
		if a, b := heard(); a == 0 || (b == 0) != delists {
			t.Errorf("delisted is %t: %d frames of one that stays, %d of one that leaves", delists, a, b)
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
