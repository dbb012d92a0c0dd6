package adapter_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/adapter"
	"github.com/marketlog/marketlog/producers/exchanges"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// venueServer is the other end of the wire: a real WebSocket server over in-memory connections,
// so that a test can run hours of it in no time.
type venueServer struct {
	x       *adapter.Exchange // that reads it
	log     *slog.Logger      // of what reads it; nil for none
	t       *testing.T
	pending chan net.Conn
	closing sync.Once
	playing sync.WaitGroup
	// serve plays one connection; n counts them from 1.
	serve func(n int, c *serverConn)

	mu    sync.Mutex
	conns int
	// listing and tickers are what the HTTP interface answers.
	listing string
	tickers map[string]string
	fetched []string
	// moved leads connections to another address, by the path that they ask for.
	moved map[string]string
	// hosts are who was asked for a connection.
	hosts []string
}

type serverConn struct {
	*websocket.Conn
	ctx context.Context
}

func (c *serverConn) send(text string) { _ = c.Write(c.ctx, websocket.MessageText, []byte(text)) }

// receive returns the client's next message, "" after the end.
func (c *serverConn) receive() string {
	_, b, err := c.Read(c.ctx)
	if err != nil {
		return ""
	}
	return string(b)
}

// linger keeps the connection open until the client ends it.
func (c *serverConn) linger() {
	for c.receive() != "" {
	}
}

func (s *venueServer) Accept() (net.Conn, error) {
	c, ok := <-s.pending
	if !ok {
		return nil, io.EOF
	}
	return c, nil
}

func (s *venueServer) Close() error {
	s.closing.Do(func() { close(s.pending) })
	return nil
}
func (s *venueServer) Addr() net.Addr { return &net.TCPAddr{} }

func (s *venueServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.playing.Add(1)
	defer s.playing.Done()
	s.mu.Lock()
	s.hosts = append(s.hosts, r.Host)
	to, moved := s.moved[r.URL.Path]
	s.mu.Unlock()
	if moved {
		http.Redirect(w, r, to, http.StatusTemporaryRedirect)
		return
	}
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		s.t.Errorf("accepting: %v", err)
		return
	}
	defer conn.CloseNow()
	s.mu.Lock()
	s.conns++
	n := s.conns
	s.mu.Unlock()
	s.serve(n, &serverConn{conn, context.Background()})
}

func (s *venueServer) Fetch(_ context.Context, _, url string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	path := strings.TrimPrefix(url, "http://venue")
	s.fetched = append(s.fetched, path)
	if path == "/products" {
		return []byte(s.listing), nil
	}
	if body, ok := s.tickers[path]; ok {
		return []byte(body), nil
	}
	return nil, errors.New("status 404")
}

func products(symbols ...string) string {
	type product struct {
		ID     string `json:"id"`
		Base   string `json:"base_currency"`
		Quote  string `json:"quote_currency"`
		Status string `json:"status"`
	}
	var list []product
	for _, s := range symbols {
		base, quote, _ := strings.Cut(s, "-")
		list = append(list, product{s, base, quote, "online"})
	}
	b, _ := json.Marshal(list)
	return string(b)
}

// outbox records.
type outbox struct {
	mu    sync.Mutex
	ticks []*eventsv1.Tick
	dead  []*eventsv1.DeadLetter
	gaps  []*eventsv1.Gap
}

func (o *outbox) Tick(t *eventsv1.Tick)       { o.mu.Lock(); o.ticks = append(o.ticks, t); o.mu.Unlock() }
func (o *outbox) Dead(d *eventsv1.DeadLetter) { o.mu.Lock(); o.dead = append(o.dead, d); o.mu.Unlock() }
func (o *outbox) Gap(g *eventsv1.Gap)         { o.mu.Lock(); o.gaps = append(o.gaps, g); o.mu.Unlock() }

func (o *outbox) tradeIDs() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var ids []string
	for _, t := range o.ticks {
		if t.Kind == eventsv1.TickKind_TICK_KIND_TRADE {
			ids = append(ids, t.TradeId)
		}
	}
	return strings.Join(ids, " ")
}

func match(kind, symbol string, id int, at time.Time) string {
	return fmt.Sprintf(`{"type":%q,"trade_id":%d,"product_id":%q,"price":"100.0","size":"2","side":"sell","time":%q}`,
		kind, id, symbol, at.UTC().Format(time.RFC3339Nano))
}

// run plays a venue, which change may alter, against the engine for a while of fake time.
func run(t *testing.T, s *venueServer, while time.Duration, change func(*adapter.Venue)) (*outbox, *adapter.Exchange) {
	t.Helper()
	s.t, s.pending = t, make(chan net.Conn)
	server := &http.Server{Handler: s}
	go func() { _ = server.Serve(s) }()
	dialer := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			client, far := net.Pipe()
			select {
			case s.pending <- far:
				return client, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		},
	}}
	venue, _ := exchanges.Find("coinbase")
	if change != nil {
		change(&venue)
	}
	out := &outbox{}
	config := adapter.ExchangeConfig{
		URLs:   adapter.URLs{Stream: "ws://venue", REST: "http://venue"},
		Select: func(in adapter.Instrument) bool { return in.Quote == "USD" },
	}
	x := adapter.NewExchange(venue, config, s, out, producers.WallClock{}, dialer, cmp.Or(s.log, slog.New(slog.DiscardHandler)))
	s.x = x
	ctx, cancel := context.WithTimeout(t.Context(), while)
	defer cancel()
	if err := x.Run(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Run: %v", err)
	}
	_ = server.Close()
	s.playing.Wait()
	synctest.Wait()
	return out, x
}

func TestMessagesOfTheVenueReachTheOutbox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := ""
		s := &venueServer{listing: products("BTC-USD", "ETH-USD", "ETH-EUR")}
		s.serve = func(_ int, c *serverConn) {
			asked = c.receive()
			c.send(match("match", "BTC-USD", 7, time.Now()))
			c.send(match("match", "ETH-EUR", 8, time.Now()))
			c.send(`{"type":"ticker","sequence":5,"product_id":"ETH-USD","price":"9","best_bid":"8.50","best_ask":"9.5","volume_24h":"1e2","time":"2024-01-01T00:00:00Z"}`)
			c.linger()
		}
		out, _ := run(t, s, 10*time.Second, nil)
		if want := `{"type":"subscribe","product_ids":["BTC-USD","ETH-USD"],"channels":["matches","ticker"]}`; asked != want {
			t.Errorf("subscription: got %s, want %s", asked, want)
		}
		if len(out.ticks) != 2 {
			t.Fatalf("got %d ticks, want 2: ETH-EUR is not selected", len(out.ticks))
		}
		trade, ticker := out.ticks[0], out.ticks[1]
		if trade.Base != "BTC" || trade.Quote != "USD" || trade.Price != "100" || trade.Size != "2" || trade.TradeId != "7" ||
			trade.Side != eventsv1.Side_SIDE_BUY || trade.IngestTime == 0 || trade.EventTime == 0 || len(trade.EventId) != 16 {
			t.Errorf("trade: got %v", trade)
		}
		if ticker.Kind != eventsv1.TickKind_TICK_KIND_TICKER || ticker.Bid != "8.5" || ticker.Ask != "9.5" || ticker.Last != "9" || ticker.VolumeBase != "100" {
			t.Errorf("ticker: got %v", ticker)
		}
	})
}

func TestASilentFeedIsReplacedAndTheGapRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &venueServer{listing: products("BTC-USD")}
		var spoke, again time.Time
		s.serve = func(n int, c *serverConn) {
			c.receive()
			if n == 1 {
				spoke = time.Now()
			} else if again.IsZero() {
				again = time.Now()
			}
			c.send(match("match", "BTC-USD", n, time.Now()))
			c.linger()
		}
		out, x := run(t, s, 45*time.Second, nil)
		if len(out.gaps) != 1 {
			t.Fatalf("got %d gaps, want 1", len(out.gaps))
		}
		g := out.gaps[0]
		if g.Reason != adapter.GapSilence || g.Venue != "coinbase" || g.FromTime != spoke.UnixNano() || g.ToTime != again.UnixNano() {
			t.Errorf("got %v, want silence from %d to %d", g, spoke.UnixNano(), again.UnixNano())
		}
		if silent := again.Sub(spoke); silent < 30*time.Second || silent > 32*time.Second {
			t.Errorf("the feed was replaced after %s, want 30s and a pause of at most 1s", silent)
		}
		stats := x.Stats()
		if stats.Connects != 2 {
			t.Errorf("got %d connections, want 2", stats.Connects)
		}
		if stats.Gaps[adapter.GapSilence] != 1 || stats.Gaps[adapter.GapDisconnect] != 0 || stats.OpenGaps != 0 {
			t.Errorf("gaps %v, %d open; want one of silence that has ended", stats.Gaps, stats.OpenGaps)
		}
	})
}

func TestALossThatLastsIsRecordedAtShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &venueServer{listing: products("BTC-USD")}
		open := int64(0)
		s.serve = func(n int, c *serverConn) {
			if n == 1 {
				c.receive()
				c.send(match("match", "BTC-USD", 1, time.Now()))
				return
			}
			open = s.x.Stats().OpenGaps
		}
		out, x := run(t, s, time.Minute, nil)
		if stats := x.Stats(); open != 1 || stats.OpenGaps != 0 || stats.Gaps[adapter.GapDisconnect] != 1 {
			t.Errorf("%d gaps were open before the second connection spoke and %d at the end, want 1 and 0; by reason %v", open, stats.OpenGaps, stats.Gaps)
		}
		if len(out.gaps) != 1 || out.gaps[0].Reason != "disconnect" || out.gaps[0].ToTime-out.gaps[0].FromTime < int64(50*time.Second) {
			t.Errorf("got %v, want one disconnect of a minute", out.gaps)
		}
	})
}

func TestOfASnapshotOnlyNewsIsPublished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		s := &venueServer{listing: products("BTC-USD", "ETH-USD")}
		s.serve = func(n int, c *serverConn) {
			c.receive()
			switch n {
			case 1:
				// Nothing seen yet: what is recent is news, what is old is not.
				c.send(match("last_match", "BTC-USD", 10, start.Add(-time.Minute)))
				c.send(match("last_match", "ETH-USD", 5, start.Add(-time.Hour)))
				c.send(match("match", "BTC-USD", 11, start))
			default:
				c.send(match("last_match", "BTC-USD", 11, start)) // seen
				c.send(match("last_match", "BTC-USD", 12, start)) // of the same instant, but not seen
				c.send(match("last_match", "BTC-USD", 9, start.Add(-time.Second)))
				c.send(match("last_match", "ETH-USD", 6, start.Add(-time.Minute)))
				c.linger()
			}
		}
		out, _ := run(t, s, 10*time.Second, nil)
		if got, want := out.tradeIDs(), "10 11 12 6"; got != want {
			t.Errorf("published trades %q, want %q", got, want)
		}
	})
}

func TestHolesInTheVenuesNumberingAreRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &venueServer{listing: products("BTC-USD", "ETH-USD")}
		s.serve = func(_ int, c *serverConn) {
			c.receive()
			for _, id := range []int{3, 4, 4, 2, 8} {
				c.send(match("match", "BTC-USD", id, time.Now()))
			}
			c.send(match("match", "ETH-USD", 100, time.Now()))
			c.linger()
		}
		out, x := run(t, s, 10*time.Second, nil)
		if stats := x.Stats(); stats.Gaps[adapter.GapSequence] != 1 || stats.Missed != 3 {
			t.Errorf("gaps %v with %d messages, want one of 3", stats.Gaps, stats.Missed)
		}
		if len(out.gaps) != 1 || out.gaps[0].Symbol != "BTC-USD" || out.gaps[0].Missed != 3 || out.gaps[0].Reason != adapter.GapSequence {
			t.Errorf("got gaps %v, want one of 3 trades of BTC-USD", out.gaps)
		}
	})
}

func TestMarketsSpreadOverConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		asked := map[string]bool{}
		s := &venueServer{listing: products("A-USD", "B-USD", "C-USD", "D-USD", "E-USD")}
		s.serve = func(_ int, c *serverConn) {
			m := c.receive()
			mu.Lock()
			asked[m] = true
			mu.Unlock()
			c.linger()
		}
		_, x := run(t, s, 10*time.Second, func(v *adapter.Venue) { v.Limits.MarketsPerSocket = 2 })
		if len(asked) != 3 || x.Stats().Markets != 5 {
			t.Errorf("got %d connections for %d markets, want 3 for 5: %v", len(asked), x.Stats().Markets, asked)
		}
	})
}

func TestAnUnknownMarketIsLookedUpAndSubscribed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &venueServer{listing: products("BTC-USD", "OLD-USD")}
		var asked []string
		s.serve = func(_ int, c *serverConn) {
			asked = append(asked, c.receive())
			s.mu.Lock()
			s.listing = products("BTC-USD", "NEW-USD")
			s.mu.Unlock()
			c.send(match("match", "NEW-USD", 1, time.Now()))
			for range 2 {
				asked = append(asked, c.receive())
			}
			c.send(match("match", "NEW-USD", 2, time.Now()))
			c.linger()
		}
		out, _ := run(t, s, 80*time.Second, func(v *adapter.Venue) { v.Silence, v.Tickers = time.Hour, nil })
		want := []string{
			`{"type":"subscribe","product_ids":["BTC-USD","OLD-USD"],"channels":["matches","ticker"]}`,
			`{"type":"unsubscribe","product_ids":["OLD-USD"],"channels":["matches","ticker"]}`,
			`{"type":"subscribe","product_ids":["NEW-USD"],"channels":["matches","ticker"]}`,
		}
		if fmt.Sprint(asked) != fmt.Sprint(want) {
			t.Errorf("asked\n%q, want\n%q", asked, want)
		}
		if len(s.fetched) != 2 {
			t.Errorf("the list was read %d times, want 2", len(s.fetched))
		}
		// Nothing is lost meanwhile: the first trade is kept, without base and quote.
		if len(out.ticks) != 2 || out.ticks[0].Base != "" || out.ticks[1].Base != "NEW" {
			t.Errorf("got ticks %v", out.ticks)
		}
	})
}

func TestAQuietMarketIsAskedForByHTTP(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &venueServer{listing: products("BTC-USD", "ETH-USD")}
		s.tickers = map[string]string{"/products/ETH-USD/ticker": `{"price":"7","bid":"6","ask":"8","volume":"1","time":"2020-01-01T00:00:00Z"}`}
		s.serve = func(_ int, c *serverConn) {
			c.receive()
			for i := 1; ; i++ {
				if err := c.Write(c.ctx, websocket.MessageText, []byte(match("match", "BTC-USD", i, time.Now()))); err != nil {
					return
				}
				time.Sleep(5 * time.Second)
			}
		}
		out, _ := run(t, s, 110*time.Second, nil)
		var asked []string
		for _, tick := range out.ticks {
			if tick.Symbol == "ETH-USD" {
				asked = append(asked, tick.Last)
			}
		}
		// Quiet for 60 s at the first look, at 30 s; received then, and quiet again at 120 s.
		if fmt.Sprint(asked) != "[7]" && fmt.Sprint(asked) != "[7 7]" {
			t.Errorf("got tickers %v of the quiet market, want one or two", asked)
		}
		for _, path := range s.fetched {
			if path == "/products/BTC-USD/ticker" {
				t.Error("a market that is heard of was asked for")
			}
		}
	})
}

// A market whose ticker cannot be had is warned of once, and again when it could be had in between.
func TestATickerThatKeepsFailingIsWarnedOfOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		s := &venueServer{listing: products("BTC-USD", "ETH-USD"), log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))}
		const ticker = `{"price":"7","bid":"6","ask":"8","volume":"1","time":"2020-01-01T00:00:00Z"}`
		s.tickers = map[string]string{"/products/BTC-USD/ticker": ticker}
		change := func() {
			for _, has := range []bool{true, false} {
				time.Sleep(5 * time.Minute)
				s.mu.Lock()
				if delete(s.tickers, "/products/ETH-USD/ticker"); has {
					s.tickers["/products/ETH-USD/ticker"] = ticker
				}
				s.mu.Unlock()
			}
		}
		var once sync.Once
		s.serve = func(_ int, c *serverConn) {
			once.Do(func() { go change() })
			c.linger()
		}
		run(t, s, 15*time.Minute, func(v *adapter.Venue) { v.Silence = time.Hour })
		asked := 0
		for _, path := range s.fetched {
			if path == "/products/ETH-USD/ticker" {
				asked++
			}
		}
		if got := strings.Count(log.String(), "requesting a ticker failed"); got != 2 || asked < 10 {
			t.Errorf("asked %d times, got %d warnings, want two:\n%s", asked, got, log.String())
		}
	})
}

// What answers a question of ours means nothing without it.
func TestGarbageInAnAnswerIsKeptWithItsQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &venueServer{listing: products("BTC-USD")}
		s.tickers = map[string]string{"/products/BTC-USD/ticker": `{"price":"7`}
		s.serve = func(_ int, c *serverConn) { c.linger() }
		out, x := run(t, s, 70*time.Second, nil)
		if len(out.dead) == 0 {
			t.Fatalf("no dead letter, %+v", x.Stats())
		}
		if got := string(out.dead[0].Context); got != `{"path":"/products/BTC-USD/ticker","symbol":"BTC-USD"}` {
			t.Errorf("the letter's context is %q, want what was asked", got)
		}
	})
}

func TestGarbageIsKeptAndHarmsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &venueServer{listing: products("BTC-USD")}
		s.serve = func(_ int, c *serverConn) {
			c.receive()
			c.send(`{"type":"match","trade`)
			c.send(`{"type":"match","product_id":"BTC-USD","trade_id":1,"price":"NaN","size":"1","time":"2024-01-01T00:00:00Z"}`)
			_ = c.Write(c.ctx, websocket.MessageBinary, []byte{0x1f, 0x8b, 8, 0, 1, 2, 3})
			c.send(match("match", "BTC-USD", 2, time.Now()))
			c.linger()
		}
		out, x := run(t, s, 10*time.Second, nil)
		stats := x.Stats()
		if stats.Refused[schemas.Undecodable] != 2 || stats.Refused[schemas.NotANumber] != 1 || stats.Refused[schemas.Absurd] != 0 {
			t.Errorf("refused %v, want 2 undecodable and 1 not_a_number", stats.Refused)
		}
		if stats.Events != 1 || stats.LastEvent.IsZero() || stats.LastEvent.After(stats.Heard) {
			t.Errorf("%d events, the last at %s, heard at %s; want 1 no later than the last frame", stats.Events, stats.LastEvent, stats.Heard)
		}
		var reasons []string
		for _, d := range out.dead {
			reasons = append(reasons, d.Reason)
			if len(d.Payload) == 0 || d.Source != "coinbase" || d.AdapterVersion == 0 || d.IngestTime == 0 {
				t.Errorf("incomplete dead letter: %v", d)
			}
		}
		if got, want := strings.Join(reasons, " "), "undecodable not_a_number undecodable"; got != want {
			t.Errorf("dead letters: got %q, want %q", got, want)
		}
		if got := out.tradeIDs(); got != "2" {
			t.Errorf("published trades %q, want the good one", got)
		}
	})
}

func TestAPanickingCodecIsABadFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &venueServer{listing: products("BTC-USD")}
		s.serve = func(_ int, c *serverConn) {
			c.receive()
			c.send("boom")
			c.linger()
		}
		out, x := run(t, s, 10*time.Second, func(v *adapter.Venue) {
			v.NewCodec = func() adapter.Codec { return codecFunc(func(adapter.Frame, *adapter.Out) error { panic("oh") }) }
		})
		if len(out.dead) != 1 || x.Stats().Connects != 1 {
			t.Errorf("got %d dead letters over %d connections, want 1 over 1", len(out.dead), x.Stats().Connects)
		}
	})
}

type codecFunc func(adapter.Frame, *adapter.Out) error

func (f codecFunc) Decode(frame adapter.Frame, out *adapter.Out) error { return f(frame, out) }

func TestHeartbeatsAreSentAndAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &venueServer{listing: products("BTC-USD")}
		var got []string
		s.serve = func(_ int, c *serverConn) {
			c.receive()
			c.send("ping?")
			for range 3 {
				got = append(got, c.receive())
			}
			c.linger()
		}
		run(t, s, 25*time.Second, func(v *adapter.Venue) {
			v.Heartbeat = adapter.Heartbeat{Every: 10 * time.Second, Message: func() []byte { return []byte("alive") }}
			v.NewCodec = func() adapter.Codec {
				return codecFunc(func(_ adapter.Frame, out *adapter.Out) error { out.Reply("pong!"); return nil })
			}
		})
		if fmt.Sprint(got) != "[pong! alive alive]" {
			t.Errorf("got %v, want an answer at once and a heartbeat every 10 s", got)
		}
	})
}

func TestReconnectingKeepsWithinTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Time
		s := &venueServer{listing: products("BTC-USD")}
		s.serve = func(int, *serverConn) { at = append(at, time.Now()) } // hangs up at once
		run(t, s, 30*time.Minute, func(v *adapter.Venue) {
			v.Limits.Connects, v.Limits.ConnectsPer, v.Tickers = 5, time.Minute, nil
		})
		// A bucket of 5 that refills in a minute admits 10 at most in any minute.
		for i := range at {
			if i >= 10 && at[i].Sub(at[i-10]) < time.Minute {
				t.Fatalf("11 connections within %s", at[i].Sub(at[i-10]))
			}
		}
		if len(at) < 30 || len(at) > 200 {
			t.Errorf("%d connections in 30 minutes, want one about every 30 s after the first few", len(at))
		}
	})
}

// A feed may lead a connection to another path of its host, and to no other host.
func TestAFeedLeadsToItsOwnHostOnly(t *testing.T) {
	for to, want := range map[string]int{"/feed": 1, "http://elsewhere/feed": 0} {
		synctest.Test(t, func(t *testing.T) {
			s := &venueServer{listing: products("BTC-USD"), moved: map[string]string{"/": to}}
			s.serve = func(_ int, c *serverConn) { c.linger() }
			run(t, s, 20*time.Second, func(v *adapter.Venue) { v.Tickers = nil })
			if s.conns != want {
				t.Errorf("led to %s: %d connections, want %d", to, s.conns, want)
			}
			if len(s.hosts) == 0 || slices.ContainsFunc(s.hosts, func(h string) bool { return h != "venue" }) {
				t.Errorf("led to %s: asked %q, want venue alone", to, s.hosts)
			}
		})
	}
}

func TestAHugeFrameEndsTheConnectionOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &venueServer{listing: products("BTC-USD")}
		s.serve = func(n int, c *serverConn) {
			c.receive()
			if n == 1 {
				c.send(strings.Repeat("x", adapter.MaxFrame+1))
			}
			c.send(match("match", "BTC-USD", n, time.Now()))
			c.linger()
		}
		out, _ := run(t, s, 10*time.Second, nil)
		if got := out.tradeIDs(); got != "2" {
			t.Errorf("published trades %q, want that of the second connection", got)
		}
	})
}
