package venues

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/marketlog/marketlog/producers/simulator/market"
	"github.com/marketlog/marketlog/producers/simulator/provider"
	"github.com/marketlog/marketlog/producers/simulator/simulatortest"
)

// open serves venues in process, of the market of a seed, at noon; without any it serves all.
func open(t testing.TB, seed int64, venues ...Venue) *Server {
	t.Helper()
	return openAt(simulatortest.Fixed(simulatortest.Noon), seed, venues...)
}

func openAt(clock provider.Clock, seed int64, venues ...Venue) *Server {
	return openWith(seed, Config{Clock: clock, Venues: venues, Outlier: outlier})
}

const outlier = "poloniex"

func openWith(seed int64, cfg Config) *Server {
	if cfg.Venues == nil {
		cfg.Venues = List()
	}
	if cfg.Rate == 0 {
		cfg.Rate = 1500
	}
	cfg.World, cfg.Addr = market.NewWorld(market.NewSeed(seed)), "127.0.0.1:1"
	return New(cfg)
}

// serve runs one venue over loopback.
func serve(t *testing.T, v Venue) *Exchange {
	t.Helper()
	server := httptest.NewUnstartedServer(nil)
	s := New(Config{
		World: market.NewWorld(market.NewSeed(1)), Clock: simulatortest.Machine{}, Addr: server.Listener.Addr().String(), Venues: []Venue{v}, Rate: 5000,
	})
	server.Config.Handler = s
	server.Start()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1) // one result
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("running the venue: %v", err)
		}
		server.CloseClientConnections()
		server.Close()
	})
	return s.exchanges[0]
}

const patience = time.Minute

func dial(t *testing.T, x *Exchange) *websocket.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ws, _, err := websocket.Dial(ctx, x.StreamURL(), nil)
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

// client is a connection without a network.
type client struct{ *Conn }

func (x *Exchange) pretend(t testing.TB) client {
	t.Helper()
	x.mu.Lock()
	defer x.mu.Unlock()
	c := &Conn{
		x: x, topics: map[topic]bool{}, queue: newFrames(1 << 20), cut: func() {}, opened: x.clock.Now(),
		Request:  httptest.NewRequest(http.MethodGet, "/"+x.venue.Slug+"/ws?token=t", nil), // KuCoin wants one
		messages: provider.NewBucket(x.venue.Limits.Messages, x.venue.Limits.MessagesPer),
	}
	c.received.Store(c.opened.UnixNano())
	c.lastSent = c.opened
	x.conns[c] = true
	if x.venue.Open != nil {
		x.venue.Open(c)
	}
	return client{c}
}

func (c client) send(text string) {
	c.x.mu.Lock()
	defer c.x.mu.Unlock()
	c.x.venue.Receive(c.Conn, []byte(text))
}

func (c client) receivedSince() (messages []message) {
	messages = c.queue.take(nil)
	for range messages {
		c.queue.sent()
	}
	return messages
}

// passing lets the venue's time go on to at, in the steps in which a venue is run.
func (x *Exchange) passing(from, to time.Time) {
	for at := from; !at.After(to); at = at.Add(time.Second) {
		x.pump(at)
		x.maintain(at)
	}
}

// texts are what a client received since it was asked last.
func (c client) texts() (texts []string) {
	for _, m := range c.receivedSince() {
		if !m.last {
			texts = append(texts, string(m.bytes))
		}
	}
	return texts
}

// ask answers a request to the HTTP interface of a simulator that does not move.
func ask(t *testing.T, s *Server, target string, answer any) (status int) {
	t.Helper()
	w := httptest.NewRecorder()
	s.mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, target, nil))
	if err := json.Unmarshal(w.Body.Bytes(), answer); err != nil {
		t.Fatalf("%s: %v in %s", target, err, w.Body)
	}
	return w.Code
}

// oldestAndNewest reads the start of the first and the last of a list of candles, in milliseconds.
func oldestAndNewest[T any](rows []T, start func(T) int64) (first, last time.Time) {
	if len(rows) == 0 {
		return first, last
	}
	return time.UnixMilli(start(rows[0])), time.UnixMilli(start(rows[len(rows)-1]))
}
