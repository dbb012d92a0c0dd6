package venues

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
	"github.com/marketlog/marketlog/producers/simulator/market"
	"github.com/marketlog/marketlog/producers/simulator/provider"
)

const (
	// sendQueue is how many frames a client may be behind; one that is further behind is cut off. It
	// holds the snapshots of a few hundred markets, and some seconds of the busiest feed.
	sendQueue = 1 << 14
	// receiveLimit is the largest message that a client may send.
	receiveLimit = 1 << 20
	writeTimeout = 10 * time.Second
)

// Conn is a client's WebSocket connection. Its methods may be called in the venue's Open, Receive,
// Heartbeat and Personal only.
type Conn struct {
	x  *Exchange
	ws *websocket.Conn
	// Request is the handshake: its URL may hold what the client wants.
	Request *http.Request
	// Session is the venue's own.
	Session any

	opened   time.Time
	messages *provider.Bucket
	topics   map[topic]bool
	beat     time.Time
	pinged   time.Time
	// lastSent is when anything was last sent to the client.
	lastSent time.Time
	// received is when the client last sent anything, Unix nanoseconds.
	received atomic.Int64

	queue *frames
	// pings asks for a ping; one waiting is enough.
	pings  chan struct{}
	cut    context.CancelFunc
	code   websocket.StatusCode
	reason string
}

type topic struct {
	channel string
	market  *market.Market
}

type message struct {
	bytes  []byte
	binary bool
	// last closes the connection, after all that was queued before.
	last bool
}

// Exchange is the venue that the client is connected to.
func (c *Conn) Exchange() *Exchange { return c.x }

// Now is the time up to which the feed has sent everything: what snapshots are taken at.
func (c *Conn) Now() time.Time { return c.x.sent }

// Send queues a text frame; b is not used afterwards.
func (c *Conn) Send(b []byte) { c.x.deliver(c, message{bytes: b}) }

// SendBinary queues a binary frame; b is not used afterwards.
func (c *Conn) SendBinary(b []byte) { c.x.deliver(c, message{bytes: b, binary: true}) }

// Subscribe adds a market to a channel from now on; once more has no effect. Beyond the venue's limit of
// topics it closes the connection and returns false.
func (c *Conn) Subscribe(channel string, m *market.Market) bool {
	t := topic{channel, m}
	if c.topics[t] {
		return true
	}
	if limit := c.x.venue.Limits.Topics; limit > 0 && len(c.topics) >= limit {
		c.Close(websocket.StatusPolicyViolation, "too many subscriptions")
		return false
	}
	c.topics[t] = true
	c.x.subscribe(c, channel, m)
	return true
}

// Unsubscribe takes a subscription back; ok is false if there was none.
func (c *Conn) Unsubscribe(channel string, m *market.Market) (ok bool) {
	t := topic{channel, m}
	if !c.topics[t] {
		return false
	}
	delete(c.topics, t)
	c.x.unsubscribe(c, channel, m)
	return true
}

// Subscribed returns the markets of a channel, in the order of their symbols.
func (c *Conn) Subscribed(channel string) []*market.Market {
	var markets []*market.Market
	for _, m := range c.x.markets {
		if c.topics[topic{channel, m}] {
			markets = append(markets, m)
		}
	}
	return markets
}

// Close ends the connection with a status and a reason, after what was sent before.
func (c *Conn) Close(code websocket.StatusCode, reason string) {
	if c.reason != "" {
		return
	}
	c.code, c.reason = code, reason
	if !c.queue.add(message{last: true}) {
		c.cut()
	}
}

// deliver queues a frame as the faults say; x.mu is held.
func (x *Exchange) deliver(c *Conn, m message) {
	if x.faults.Silence || c.reason != "" {
		return
	}
	c.lastSent = x.sent
	x.random = market.Mix(x.random + 1)
	m.bytes, _ = x.faults.Spoil(x.random, m.bytes)
	for range 1 + x.faults.Flood {
		if !c.queue.add(m) {
			c.Close(websocket.StatusPolicyViolation, "too slow")
			return
		}
		x.counter.Frames.Add(1)
	}
}

// serveStream accepts a connection and serves it to its end.
func (x *Exchange) serveStream(w http.ResponseWriter, r *http.Request) {
	if !x.connects.Allow(x.clock.Now()) {
		http.Error(w, "too many connections", http.StatusTooManyRequests)
		return
	}
	ctx, cut := context.WithCancel(r.Context())
	defer cut()
	c := &Conn{x: x, Request: r, topics: map[topic]bool{}, queue: newFrames(sendQueue), pings: make(chan struct{}, 1), cut: cut}
	ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{
		InsecureSkipVerify: true, // browsers may look on: nothing here is worth protecting
		CompressionMode:    websocket.CompressionDisabled,
		OnPingReceived: func(context.Context, []byte) bool {
			c.received.Store(x.clock.Now().UnixNano())
			return true
		},
	})
	if err != nil {
		return // Accept has answered
	}
	defer func() { _ = ws.CloseNow() }()
	ws.SetReadLimit(receiveLimit)
	c.ws = ws
	limits := x.venue.Limits
	c.messages = provider.NewBucket(limits.Messages, limits.MessagesPer)
	c.opened = x.clock.Now()
	c.received.Store(c.opened.UnixNano())

	x.mu.Lock()
	if x.faults.Refuse {
		x.mu.Unlock()
		_ = ws.Close(websocket.StatusTryAgainLater, "unavailable")
		return
	}
	x.conns[c], c.beat, c.pinged, c.lastSent = true, c.opened, c.opened, c.opened
	x.counter.Connects.Add(1)
	if x.venue.Open != nil {
		x.venue.Open(c)
	}
	x.mu.Unlock()

	var sending sync.WaitGroup
	sending.Go(func() { c.write(ctx) })
	sending.Go(func() { c.ping(ctx) })
	c.read(ctx)
	cut()
	sending.Wait()
	x.mu.Lock()
	for t := range c.topics {
		x.unsubscribe(c, t.channel, t.market)
	}
	delete(x.conns, c)
	x.mu.Unlock()
}

func (c *Conn) read(ctx context.Context) {
	for {
		_, b, err := c.ws.Read(ctx)
		if err != nil {
			return
		}
		now := c.x.clock.Now()
		c.received.Store(now.UnixNano())
		c.x.mu.Lock()
		switch {
		case c.x.faults.Silence: // it receives as little as it sends
		case c.messages.Allow(now):
			c.x.venue.Receive(c, b)
		default:
			c.Close(websocket.StatusPolicyViolation, "too many messages")
		}
		c.x.mu.Unlock()
	}
}

// write hands frames to the network until the connection is cut.
func (c *Conn) write(ctx context.Context) {
	defer c.cut()
	var taken []message
	for {
		select {
		case <-c.queue.more:
		case <-ctx.Done():
			return
		}
		taken = c.queue.take(taken)
		for _, m := range taken {
			if m.last {
				c.queue.sent() // nobody waits for what closes the connection
				_ = c.ws.Close(c.code, c.reason)
				return
			}
			kind := websocket.MessageText
			if m.binary {
				kind = websocket.MessageBinary
			}
			writing, cancel := context.WithTimeout(ctx, writeTimeout)
			err := c.ws.Write(writing, kind, m.bytes)
			cancel()
			c.queue.sent()
			if err != nil {
				return
			}
		}
	}
}

// ping asks the client for a sign of life whenever it is due, and cuts off one that gives none.
func (c *Conn) ping(ctx context.Context) {
	for {
		select {
		case <-c.pings:
			waiting, cancel := context.WithTimeout(ctx, c.x.venue.PongWithin)
			err := c.ws.Ping(waiting)
			cancel()
			if err != nil {
				c.cut()
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// maintain sends heartbeats and ends connections whose time is over.
func (x *Exchange) maintain(now time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.setFaults(x.faults.At(now))
	limits := x.venue.Limits
	for c := range x.conns {
		// What a silent venue does not ask, nobody can fail to answer.
		if every := x.venue.HeartbeatEvery; every > 0 && !x.faults.Silence && now.Sub(c.beat) >= every {
			c.beat = now
			x.venue.Heartbeat(c)
		}
		if every := x.venue.PingEvery; every > 0 && now.Sub(c.pinged) >= every && !x.faults.Silence {
			c.pinged = now
			select {
			case c.pings <- struct{}{}:
			default:
			}
		}
		switch age := now.Sub(c.opened); {
		case limits.Idle > 0 && now.Sub(time.Unix(0, c.received.Load())) > limits.Idle:
			c.Close(websocket.StatusPolicyViolation, "idle")
		case limits.Mute > 0 && now.Sub(c.lastSent) > limits.Mute && !x.faults.Silence:
			c.Close(websocket.StatusPolicyViolation, "nothing to say")
		case limits.Unsubscribed > 0 && age > limits.Unsubscribed && len(c.topics) == 0:
			c.Close(websocket.StatusPolicyViolation, "no subscription")
		case limits.Life > 0 && age > limits.Life:
			c.Close(websocket.StatusGoingAway, "time is over")
		}
	}
}

// drained waits until every frame that was queued is handed to the network, or its connection gone.
func (x *Exchange) drained(ctx context.Context) error {
	// Only a clock that waits for this asks, a thousand times a second at most.
	pause := time.NewTicker(200 * time.Microsecond)
	defer pause.Stop()
	for {
		x.mu.Lock()
		waiting := 0
		for c := range x.conns {
			waiting += c.queue.unsent()
		}
		x.mu.Unlock()
		if waiting == 0 {
			return ctx.Err()
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
