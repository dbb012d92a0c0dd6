package scripted

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// format is how a venue encodes its messages.
type format interface {
	// rest answers the HTTP interface.
	rest(address *url.URL, now time.Time, markets []*market) (body any, ok bool)
	// hello is what a new connection hears.
	hello() []string
	// request reads a client's message: which markets it asks for, what to answer, and whether the
	// answer is preceded by each market's last trade.
	request(message []byte, markets []*market) (asked []*market, answers []string, history bool, err error)
	symbol(m *market) string
	spell(s quoted) string
	// heartbeat is sent every second; empty for none.
	heartbeat() string
	// unknown is a message of no documented type.
	unknown() string
}

const (
	// badEvery is how many messages there are to one bad one.
	badEvery = 300
	// sendQueue is how many messages a client may be behind; one that is further behind is cut off.
	sendQueue = 1 << 15
	// beat is how often messages are sent; their number follows from the rate.
	beat = 10 * time.Millisecond
)

// Venue is one scripted exchange. It listens from New on and speaks while Run runs.
type Venue struct {
	format   format
	rate     int
	listener net.Listener
	server   *http.Server

	mu      sync.Mutex
	random  *rand.Rand
	markets []*market
	clients map[*client]bool
	paused  bool
	shift   time.Duration
	sent    map[Bad]int
	total   int
}

type client struct {
	queue  chan string
	wanted map[*market]bool
	cut    context.CancelFunc
}

// NewCoinbase opens an exchange that speaks Coinbase Exchange's feed, on a free port of loopback. The
// rate is messages a second.
func NewCoinbase(seed uint64, rate int) (*Venue, error) { return open(coinbase{}, seed, rate) }

// NewKraken opens an exchange that speaks version 2 of Kraken's feed.
func NewKraken(seed uint64, rate int) (*Venue, error) { return open(kraken{}, seed, rate) }

func open(f format, seed uint64, rate int) (*Venue, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("opening a scripted venue: %w", err)
	}
	v := &Venue{
		format: f, rate: rate, listener: listener, markets: markets(),
		random: rand.New(rand.NewPCG(seed, 0)), clients: map[*client]bool{}, sent: map[Bad]int{},
	}
	v.server = &http.Server{Handler: v, ReadHeaderTimeout: 5 * time.Second}
	return v, nil
}

// StreamURL is where clients open WebSocket connections.
func (v *Venue) StreamURL() string { return "ws://" + v.listener.Addr().String() + "/feed" }

// RESTURL is the base of the HTTP interface.
func (v *Venue) RESTURL() string { return "http://" + v.listener.Addr().String() }

// Run serves clients and speaks to them until the context ends.
func (v *Venue) Run(ctx context.Context) error {
	served := make(chan error, 1) // one result
	go func() { served <- v.server.Serve(v.listener) }()
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	due, heart := 0.0, time.Now()
	for {
		select {
		case <-ctx.Done():
			_ = v.server.Close()
			if err := <-served; !errors.Is(err, http.ErrServerClosed) {
				return fmt.Errorf("closing a scripted venue: %w", err)
			}
			return nil
		case err := <-served:
			return fmt.Errorf("serving a scripted venue: %w", err)
		case now := <-ticker.C:
			v.mu.Lock()
			if !v.paused {
				for due += float64(v.rate) * beat.Seconds(); due >= 1; due-- {
					v.send(now.Add(v.shift))
				}
			}
			if h := v.format.heartbeat(); h != "" && now.Sub(heart) >= time.Second {
				heart = now
				v.broadcast(nil, h)
			}
			v.mu.Unlock()
		}
	}
}

// Pause stops everything but heartbeats, or goes on.
func (v *Venue) Pause(paused bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.paused = paused
}

// Shift puts the venue's clock ahead of the machine's.
func (v *Venue) Shift(by time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.shift = by
}

// Listened reports whether a client has subscribed to every market.
func (v *Venue) Listened() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	for c := range v.clients {
		if len(c.wanted) == len(v.markets) {
			return true
		}
	}
	return false
}

// Sent counts what was sent to a client that listened, and the bad messages of each kind among it. A
// kind that is two messages counts once.
func (v *Venue) Sent() (total int, bad map[Bad]int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.total, maps.Clone(v.sent)
}

// Parade sends n bad messages of each kind.
func (v *Venue) Parade(n int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, kind := range Bads {
		for range n {
			v.sendBad(kind, v.pick(), time.Now().Add(v.shift))
		}
	}
}

// Silence stops all that the venue sends of a base's markets, also to those who ask; or ends that.
func (v *Venue) Silence(base string, silent bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, m := range v.markets {
		if m.base == base {
			m.silent = silent
		}
	}
}

// pick draws a market. The first ones speak more often, as in life.
func (v *Venue) pick() *market {
	for {
		i := int(float64(len(v.markets)) * v.random.Float64() * v.random.Float64())
		if m := v.markets[i]; !m.silent {
			return m
		}
	}
}

func (v *Venue) send(now time.Time) {
	m := v.pick()
	if v.random.IntN(badEvery) == 0 {
		v.sendBad(Bads[v.random.IntN(len(Bads))], m, now)
		return
	}
	v.broadcast(m, v.format.spell(m.walk(v.random, now)))
}

func (v *Venue) sendBad(kind Bad, m *market, now time.Time) {
	before := m.last
	s := m.walk(v.random, now)
	m.last = before
	if !s.trade { // all but one kind are trades
		m.trade++
		s.number = m.trade
	}
	if kind == RepeatedBad {
		s.number = m.sequence
	}
	s = s.spoil(kind)
	text := v.format.spell(s)
	var received bool
	switch kind {
	case Garbage:
		received = v.broadcast(m, text[:len(text)/2])
	case Unknown:
		received = v.broadcast(m, v.format.unknown())
	case Duplicate, RepeatedBad:
		received = v.broadcast(m, text)
		v.broadcast(m, text)
	default:
		received = v.broadcast(m, text)
	}
	if received {
		v.sent[kind]++
	}
}

// broadcast queues a message for all that want the market, and reports whether there was anyone.
func (v *Venue) broadcast(m *market, text string) (received bool) {
	for c := range v.clients {
		if m != nil && !c.wanted[m] {
			continue
		}
		select {
		case c.queue <- text:
			received = true
		default:
			c.cut()
		}
	}
	if received && m != nil {
		v.total++
	}
	return received
}

// ServeHTTP answers the HTTP interface and takes WebSocket connections.
func (v *Venue) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/feed" {
		v.feed(w, r)
		return
	}
	v.mu.Lock()
	body, ok := v.format.rest(r.URL, time.Now().Add(v.shift).UTC(), v.markets)
	v.mu.Unlock()
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body)
}

func (v *Venue) feed(w http.ResponseWriter, r *http.Request) {
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer func() { _ = conn.CloseNow() }()
	ctx, cut := context.WithCancel(r.Context())
	defer cut()
	c := &client{queue: make(chan string, sendQueue), wanted: map[*market]bool{}, cut: cut}
	for _, text := range v.format.hello() {
		c.queue <- text
	}
	v.mu.Lock()
	v.clients[c] = true
	v.mu.Unlock()
	defer func() {
		v.mu.Lock()
		delete(v.clients, c)
		v.mu.Unlock()
	}()
	go func() {
		defer cut()
		for {
			select {
			case <-ctx.Done():
				return
			case text := <-c.queue:
				if conn.Write(ctx, websocket.MessageText, []byte(text)) != nil {
					return
				}
			}
		}
	}()
	for {
		_, message, err := conn.Read(ctx)
		if err != nil {
			return
		}
		if err := v.answer(c, message); err != nil {
			return
		}
	}
}

// answer subscribes a client. Its answer, and the last trades, come before anything newer.
func (v *Venue) answer(c *client, message []byte) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	asked, answers, history, err := v.format.request(message, v.markets)
	if err != nil {
		return err
	}
	texts := answers
	for _, m := range asked {
		if history && m.last.trade && !m.silent {
			last := m.last
			last.history = true
			texts = append(texts, v.format.spell(last))
		}
		c.wanted[m] = true
	}
	for _, text := range texts {
		select {
		case c.queue <- text:
		default:
			return fmt.Errorf("answering: the client is %d messages behind", sendQueue)
		}
	}
	return nil
}
