package adapter

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
	"github.com/marketlog/marketlog/producers"
	"golang.org/x/sync/errgroup"
)

// Time-outs of the network itself, in wall time.
const (
	dialTimeout  = 15 * time.Second
	writeTimeout = 10 * time.Second
)

var errSilent = errors.New("the feed is silent")

// socket keeps one connection to a venue alive, for its share of the markets.
type socket struct {
	x *Exchange
	// changed means that the markets did; one notice waiting is enough.
	changed chan struct{}

	mu      sync.Mutex
	markets []Instrument

	// Of the connection that was lost, until the next one speaks: its last sign of life, and why.
	lostAt     int64
	lostReason string
}

func newSocket(x *Exchange) *socket { return &socket{x: x, changed: make(chan struct{}, 1)} }

func (s *socket) wanted() []Instrument {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.markets
}

func (s *socket) want(markets []Instrument) {
	s.mu.Lock()
	s.markets = markets
	s.mu.Unlock()
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// run connects again and again until the context ends.
func (s *socket) run(ctx context.Context) error {
	defer func() {
		if s.lostAt != 0 {
			s.found(s.x.clock.Now().UnixNano())
		}
	}()
	for failures := 0; ; failures++ {
		for len(s.wanted()) == 0 {
			select {
			case <-s.changed:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		began := s.x.clock.Now()
		err := s.connect(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if s.x.clock.Now().Sub(began) > maxBackoff {
			failures = 0
		}
		pause := backoff(failures)
		s.x.log.Warn("disconnected", "error", err, "retry_in", pause)
		if err := producers.Sleep(ctx, s.x.clock, pause); err != nil {
			return err
		}
	}
}

// connect opens a connection and reads it to its end, which is always an error.
func (s *socket) connect(ctx context.Context) error {
	conn, err := s.dial(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.CloseNow() }()
	s.x.stats.connects.Add(1)
	s.x.stats.connected.Add(1)
	defer s.x.stats.connected.Add(-1)

	c := &connection{socket: s, conn: conn, codec: s.x.venue.NewCodec(), counts: map[string]count{}}
	c.receivedAt.Store(s.x.clock.Now().UnixNano())
	g, living := errgroup.WithContext(ctx)
	g.Go(func() error { return c.read(living) })
	g.Go(func() error { return c.subscribe(living) })
	g.Go(func() error { return c.beat(living) })
	g.Go(func() error { return c.watch(living) })
	err = g.Wait()
	if c.spoke && ctx.Err() == nil {
		s.lostAt, s.lostReason = c.receivedAt.Load(), GapDisconnect
		if errors.Is(err, errSilent) {
			s.lostReason = GapSilence
		}
		s.x.stats.openGaps.Add(1)
	}
	return err
}

// found ends the gap that the loss of a connection began, in ingest time.
func (s *socket) found(at int64) {
	s.x.gap(s.lostReason, "", s.lostAt, at, 0)
	s.x.stats.openGaps.Add(-1)
	s.lostAt = 0
}

func (s *socket) dial(ctx context.Context) (*websocket.Conn, error) {
	if err := s.x.connects.Wait(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	address := s.x.config.URLs.Stream
	if s.x.venue.Endpoint != nil {
		var err error
		if address, err = s.x.venue.Endpoint(ctx, s.x.fetch, s.x.config.URLs); err != nil {
			return nil, fmt.Errorf("asking where to connect: %w", err)
		}
	}
	// Compression is not offered: the venues' frames are small, and a bomb cannot come that way.
	conn, _, err := websocket.Dial(ctx, address, &websocket.DialOptions{HTTPClient: s.x.dialer})
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", address, err)
	}
	conn.SetReadLimit(MaxFrame)
	return conn, nil
}

// connection is one life of a socket.
type connection struct {
	*socket
	conn  *websocket.Conn
	codec Codec
	// receivedAt is when the last frame was read, Unix nanoseconds; the time of connecting before.
	receivedAt atomic.Int64
	// spoke: a frame was read at all.
	spoke bool
	// counts are the streams' last numbers.
	counts map[string]count
}

type count struct {
	n  uint64
	at int64
}

func (c *connection) read(ctx context.Context) error {
	var out Out
	for {
		kind, b, err := c.conn.Read(ctx)
		if err != nil {
			return fmt.Errorf("reading: %w", err)
		}
		now := c.x.clock.Now().UnixNano()
		c.receivedAt.Store(now)
		c.x.stats.frames.Add(1)
		c.x.stats.receivedAt.Store(now)
		if c.spoke = true; c.lostAt != 0 {
			c.found(now)
		}
		out.Reset()
		frame, err := Unpack(Frame{Bytes: b, Binary: kind == websocket.MessageBinary, Received: now})
		if err == nil {
			err = recoverDecode(func() error { return c.codec.Decode(frame, &out) })
		}
		c.count(out.Counts, now)
		c.x.publish(&out, err, frame.Bytes, nil, now)
		for _, reply := range out.Replies {
			if err := c.write(ctx, reply); err != nil {
				return fmt.Errorf("answering: %w", err)
			}
		}
	}
}

// count looks for gaps in the venue's own numbering.
func (c *connection) count(counts []Count, now int64) {
	for _, k := range counts {
		n, err := strconv.ParseUint(string(k.N), 10, 64)
		if err != nil {
			continue // a codec that counts what is not a number has refused the event already
		}
		last, known := c.counts[k.Stream]
		switch {
		case known && n <= last.n:
			continue
		case known && n > last.n+1:
			c.x.gap(GapSequence, k.Stream, last.at, now, n-last.n-1)
		}
		c.counts[k.Stream] = count{n, now}
	}
}

// subscribe asks for the markets, and for what changes about them.
func (c *connection) subscribe(ctx context.Context) error {
	budget := producers.NewBudget(c.x.clock, 1, time.Duration(float64(time.Second)/c.x.venue.Limits.Messages))
	send := func(messages [][]byte) error {
		for _, m := range messages {
			if err := budget.Wait(ctx); err != nil {
				return err
			}
			if err := c.write(ctx, Frame{Bytes: m}); err != nil {
				return fmt.Errorf("subscribing: %w", err)
			}
		}
		return nil
	}
	var have []Instrument
	for {
		want := c.wanted()
		if gone := without(have, want); len(gone) > 0 && c.x.venue.Unsubscribe != nil {
			if err := send(c.x.venue.Unsubscribe(gone)); err != nil {
				return err
			}
		}
		added := without(want, have)
		if len(added) > 0 && c.x.venue.Replaces {
			added = want
		}
		if len(added) > 0 {
			if err := send(c.x.venue.Subscribe(added)); err != nil {
				return err
			}
		}
		have = want
		select {
		case <-c.changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// without returns the instruments of a whose symbol is not in b.
func without(a, b []Instrument) []Instrument {
	in := make(map[string]bool, len(b))
	for _, i := range b {
		in[i.Symbol] = true
	}
	var rest []Instrument
	for _, i := range a {
		if !in[i.Symbol] {
			rest = append(rest, i)
		}
	}
	return rest
}

// beat sends the venue's heartbeats.
func (c *connection) beat(ctx context.Context) error {
	h := c.x.venue.Heartbeat
	if h.Every == 0 {
		return nil
	}
	for {
		if err := producers.Sleep(ctx, c.x.clock, h.Every); err != nil {
			return err
		}
		var err error
		if h.Message != nil {
			err = c.write(ctx, Frame{Bytes: h.Message()})
		} else {
			err = c.ping(ctx)
		}
		if err != nil {
			return fmt.Errorf("sending a heartbeat: %w", err)
		}
	}
}

// watch closes a connection that stays open and sends nothing.
func (c *connection) watch(ctx context.Context) error {
	for {
		quiet := c.x.clock.Now().Sub(time.Unix(0, c.receivedAt.Load()))
		if quiet >= c.x.venue.Silence {
			return fmt.Errorf("%w for %s", errSilent, quiet)
		}
		if err := producers.Sleep(ctx, c.x.clock, c.x.venue.Silence-quiet); err != nil {
			return err
		}
	}
}

func (c *connection) write(ctx context.Context, f Frame) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	kind := websocket.MessageText
	if f.Binary {
		kind = websocket.MessageBinary
	}
	return c.conn.Write(ctx, kind, f.Bytes)
}

func (c *connection) ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	return c.conn.Ping(ctx)
}
