package ws

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/gofiber/fiber/v2"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/keys"
	"github.com/marketlog/marketlog/query/limits"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// patience bounds every wait of a test: it passes as soon as what it waits for is there.
const patience = time.Minute

// fixture is a server with a stream, and the log that feeds it.
type fixture struct {
	t          testing.TB
	priceCache *views.PriceCache
	hub        *Hub
	table      *keys.Table
	limiter    *limits.Limiter
	base       string
	// now is the log's, and the query's, in Unix seconds.
	now    atomic.Int64
	offset int64
	// ago are the prices of 24 hours ago, by coin id.
	ago    pricesAgo
	pepper []byte
	stop   func() error
	// applyToChannels takes the records of prices.v1 for the channels that are read from it.
	applyToChannels func(views.TailRecord) error
}

// pricesAgo is a history without times.
type pricesAgo struct{ sync.Map }

func (p *pricesAgo) DayAgo(coin schemas.Coin, _ int64) (float64, bool) {
	price, known := p.Load(coin.ID)
	if !known {
		return 0, false
	}
	return price.(float64), true
}

type setup struct {
	stream Config
	auth   query.AuthMode
	plans  map[string]limits.Plan
	coins  *schemas.CoinTable
	// sessions are those of pages; nil: none.
	sessions query.Sessions
	past     Past
	channels []query.Channel
}

func newFixture(t testing.TB, change func(*setup)) *fixture {
	t.Helper()
	set := setup{stream: DefaultConfig(), auth: query.AuthRequired, plans: limits.DefaultPlans(), coins: schemas.Coins()}
	set.stream.Spacing, set.stream.Gather = 0, time.Minute
	if change != nil {
		change(&set)
	}
	w := &fixture{t: t, priceCache: views.NewPriceCache(set.coins), pepper: keys.NewPepper(), limiter: limits.NewLimiter(time.Now, nil)}
	w.now.Store(time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC).Unix())
	now := func() time.Time { return time.Unix(w.now.Load(), 0) }
	ready := func() string { return "" }
	var err error
	if w.table, err = keys.NewTable(w.pepper, ready); err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	log := slog.New(slog.DiscardHandler)
	if w.hub, err = NewHub(set.stream, Deps{Prices: w.priceCache, Catalog: views.NewCatalog(set.coins), DayAgo: &w.ago, Past: set.past, Identity: "a log", Channels: set.channels, Waiting: ready, Version: "test", Now: now, Metrics: registry, Log: log}); err != nil {
		t.Fatal(err)
	}
	w.applyToChannels = w.hub.ApplyTo(schemas.TopicPrices)
	cfg := query.DefaultConfig()
	cfg.Listen, cfg.Auth = "127.0.0.1:0", set.auth
	server, err := query.NewServer(cfg, query.Deps{Keys: w.table, Sessions: set.sessions, Limiter: w.limiter, Plans: set.plans,
		Mount: func(r fiber.Router, s *query.Server) {
			if err := w.hub.Mount(r, s); err != nil {
				t.Error(err)
			}
		},
		Now: now, Metrics: registry, Log: log, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Bind(); err != nil {
		t.Fatal(err)
	}
	w.base = server.Addr()
	ctx, cancel := context.WithCancel(context.Background())
	var g errgroup.Group
	g.Go(func() error { return server.Run(ctx) })
	g.Go(func() error {
		if err := w.hub.Run(ctx); ctx.Err() == nil {
			return err
		}
		return nil
	})
	stopped := false
	w.stop = func() error {
		cancel()
		if stopped {
			return nil
		}
		stopped = true
		return g.Wait()
	}
	t.Cleanup(func() {
		if err := w.stop(); err != nil {
			t.Errorf("stopping: %v", err)
		}
	})
	return w
}

// key makes a key of a plan.
func (w *fixture) key(plan string) string {
	key := keys.Generate()
	hash := keys.Hash(w.pepper, []byte(key))
	w.table.Apply(&eventsv1.KeyRecord{Id: key[len(key)-8:], Plan: plan, Budget: key[len(key)-8:], Hash: hash[:]})
	return key
}

func (w *fixture) revoke(key string) {
	w.table.Follow([]byte(key[len(key)-8:]), nil)
}

// write appends a record of prices.v1 to the log.
func (w *fixture) write(partition int32, record *eventsv1.PriceRecord) {
	w.offset++
	record.Mark = &eventsv1.Mark{Offset: w.offset}
	rec := views.TailRecord{Partition: partition, Offset: w.offset, Marked: record}
	if err := w.priceCache.Apply(rec); err != nil {
		w.t.Fatal(err)
	}
	if err := errors.Join(w.hub.Apply(rec), w.applyToChannels(rec)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *fixture) price(p *eventsv1.Price) {
	p.Time = w.now.Load() * int64(time.Second)
	w.write(0, &eventsv1.PriceRecord{Body: &eventsv1.PriceRecord_Price{Price: p}})
}

// tick ends the second in all partitions, waits until the hub sent it and begins the next one.
func (w *fixture) tick() {
	second := w.now.Load()
	for partition := range w.hub.nows {
		w.pulse(int32(partition))
	}
	w.eventually("the hub sends the second", func() bool { return w.ticked(second) })
	w.now.Store(second + 1)
}

// pulse ends the second in one partition.
func (w *fixture) pulse(partition int32) {
	w.write(partition, &eventsv1.PriceRecord{Body: &eventsv1.PriceRecord_Pulse{Pulse: &eventsv1.Pulse{Now: w.now.Load() * int64(time.Second)}}})
}

// ticked reports whether the hub has sent a second.
func (w *fixture) ticked(second int64) bool {
	w.hub.mu.Lock()
	defer w.hub.mu.Unlock()
	return w.hub.clock.ticked >= second
}

func (w *fixture) eventually(what string, holds func() bool) {
	w.t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Fatalf("waited %s until %s", patience, what)
		}
	}
}

// client is a real one.
type client struct {
	*websocket.Conn
	t testing.TB
}

type dialing struct {
	key, origin string
	cookie      string
	// query follows the path, with its question mark.
	query        string
	protocols    []string
	readBuffer   int
	uncompressed bool
}

func (w *fixture) dial(d dialing) (*client, *http.Response, error) {
	w.t.Helper()
	header := http.Header{}
	if d.key != "" {
		header.Set("Authorization", "Bearer "+d.key)
	}
	if d.origin != "" {
		header.Set("Origin", d.origin)
	}
	if d.cookie != "" {
		header.Set("Cookie", d.cookie)
	}
	dialer := &net.Dialer{}
	transport := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dialer.DialContext(ctx, network, address)
		if err == nil && d.readBuffer > 0 {
			err = conn.(*net.TCPConn).SetReadBuffer(d.readBuffer)
		}
		return conn, err
	}}
	mode := websocket.CompressionNoContextTakeover
	if d.uncompressed {
		mode = websocket.CompressionDisabled
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, answer, err := websocket.Dial(ctx, "ws://"+w.base+Path+d.query, &websocket.DialOptions{HTTPHeader: header, Subprotocols: d.protocols,
		HTTPClient: &http.Client{Transport: transport}, CompressionMode: mode})
	if err != nil {
		return nil, answer, err
	}
	conn.SetReadLimit(1 << 20)
	w.t.Cleanup(func() { conn.CloseNow() })
	return &client{conn, w.t}, answer, nil
}

func (w *fixture) open(d dialing) *client {
	w.t.Helper()
	c, _, err := w.dial(d)
	if err != nil {
		w.t.Fatalf("dialling: %v", err)
	}
	return c
}

func (c *client) send(text string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := c.Write(ctx, websocket.MessageText, []byte(text)); err != nil {
		c.t.Fatalf("sending %s: %v", text, err)
	}
}

func (c *client) next() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, body, err := c.Read(ctx)
	return string(body), err
}

// element is one price of a frame.
type element struct {
	Symbol, CoinID, Source              string
	Price, PreviousPrice, ChangePercent float64
	Timestamp                           int64
}

type received struct {
	Type      string
	ClientID  string
	Data      []element
	Seq       uint64
	Epoch     string
	Conflated int
	Timestamp time.Time
}

func (c *client) frame() received {
	c.t.Helper()
	text, err := c.next()
	if err != nil {
		c.t.Fatalf("reading a frame: %v", err)
	}
	var f received
	if err := json.Unmarshal([]byte(text), &f); err != nil {
		c.t.Fatalf("decoding %s: %v", text, err)
	}
	return f
}

// until reads frames until one has a type.
func (c *client) until(kind string) received {
	c.t.Helper()
	for {
		if f := c.frame(); f.Type == kind {
			return f
		}
	}
}

// closed reads on and returns the code that the server closes with.
func (c *client) closed() websocket.StatusCode {
	c.t.Helper()
	code, _ := c.ending()
	return code
}

// ending is the same with the reason.
func (c *client) ending() (websocket.StatusCode, string) {
	c.t.Helper()
	for {
		if _, err := c.next(); err != nil {
			var end websocket.CloseError
			if errors.As(err, &end) {
				return end.Code, end.Reason
			}
			c.t.Fatalf("closed without a code: %v", err)
		}
	}
}

func body(t testing.TB, answer *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}
