package ws

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/fasthttp/websocket"
	fiberws "github.com/gofiber/contrib/websocket"

	"github.com/marketlog/marketlog/query"
)

// goodbye is how long a client has to answer a close frame.
const goodbye = time.Second

// closeReason is what a close frame has room for.
const closeReasonMax = 120

// bufferPool lends the buffers that own frames are written through.
type writeBuffers struct{}

var bufferPool sync.Pool

func (writeBuffers) Get() any  { return bufferPool.Get() }
func (writeBuffers) Put(b any) { bufferPool.Put(b) }

func panicAttr(p any) slog.Attr { return slog.String("panic", fmt.Sprintf("%v\n%s", p, debug.Stack())) }

// message is what a client sends.
type message struct {
	Type       string   `json:"type"`
	Key        string   `json:"key"`
	Symbols    []string `json:"symbols"`
	Channels   []string `json:"channels"`
	IntervalMs *float64 `json:"intervalMs"`
}

// serve is one socket's life, on the goroutine that the server gives it.
func (h *Hub) serve(c *fiberws.Conn) {
	defer h.connections.Add(-1)
	a := c.Locals(admissionLocal).(*admission)
	conn := c.Conn
	raw := rawConn(conn)
	if a.known {
		defer func() { h.release(a.caller) }()
	}
	if !h.begin(raw) {
		h.sendAway(conn, &ending{websocket.CloseServiceRestart, "the server restarts"})
		return
	}
	defer h.gone(raw)
	if tcp, ok := raw.(*net.TCPConn); ok {
		if err := tcp.SetWriteBuffer(socketBuffer); err != nil {
			return
		}
	}
	conn.SetReadLimit(messageMax)
	if a.refused == nil && !a.known {
		a.refused = h.awaitKey(conn, a)
	}
	if a.refused != nil {
		h.sendAway(conn, a.refused)
		return
	}
	s := &subscriber{id: rand.Text()[:16], caller: a.caller, gate: a.gate, conn: conn, raw: raw, coins: len(h.told),
		wake: make(chan struct{}, 1), interval: 1, pinged: time.Now()}
	h.join(s)
	stop := make(chan struct{})
	written := make(chan struct{})
	go func() {
		defer close(written)
		h.write(s, stop)
	}()
	h.read(s)
	h.leave(s)
	close(stop)
	// It ends a write that is under way; the server closes it once more.
	_ = raw.Close()
	<-written
}

// rawConn is the connection beneath the server's wrapper, whose Close does nothing.
func rawConn(conn *websocket.Conn) net.Conn {
	under := conn.NetConn()
	if w, ok := under.(interface{ UnsafeConn() net.Conn }); ok {
		return w.UnsafeConn()
	}
	return under
}

// begin takes a socket in, unless the hub drains.
func (h *Hub) begin(raw net.Conn) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.draining {
		return false
	}
	h.sessions.Add(1)
	h.sockets[raw] = struct{}{}
	h.metrics.open.Inc()
	return true
}

func (h *Hub) gone(raw net.Conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.sockets, raw)
	h.metrics.open.Dec()
	h.sessions.Done()
}

// sendAway closes a socket that has no writer of its own.
func (h *Hub) sendAway(conn *websocket.Conn, end *ending) {
	h.metrics.close(end.code)
	deadline := time.Now().Add(goodbye)
	if conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(end.code, end.reason), deadline) != nil {
		return
	}
	if conn.SetReadDeadline(deadline) != nil {
		return
	}
	// Closing with bytes unread would reset the connection, and the client would never see the code.
	for range messagesBurst {
		if _, _, err := conn.ReadMessage(); err != nil {
			return
		}
	}
}

// awaitKey reads the first message, which must carry the key.
func (h *Hub) awaitKey(conn *websocket.Conn, a *admission) *ending {
	if conn.SetReadDeadline(time.Now().Add(h.cfg.KeyTimeout)) != nil {
		return &ending{closeKey, "no key came in time"}
	}
	body, err := readMessage(conn)
	var m message
	switch {
	case err != nil:
		return &ending{closeKey, "no key came in time"}
	case json.Unmarshal(body, &m) != nil || m.Type != "auth" || m.Key == "":
		return &ending{closeKey, `the first message must be {"type":"auth","key":…}`}
	}
	now := time.Now()
	caller, err := a.gate.Identify([]byte(m.Key), a.from, now)
	if err != nil {
		return endingOf(err)
	}
	if !h.reserve(caller) {
		return tooManySockets
	}
	if err := a.gate.Count(nil, caller, now); err != nil {
		h.release(caller)
		return endingOf(err)
	}
	a.caller, a.known = caller, true
	return nil
}

var errTooBig = errors.New("message too big")

// readMessage reads one message within its bound also after decompression: the library bounds what
// comes over the wire only.
func readMessage(conn *websocket.Conn) ([]byte, error) {
	kind, r, err := conn.NextReader()
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(r, messageMax+1))
	switch {
	case err != nil:
		return nil, err
	case len(body) > messageMax:
		return nil, errTooBig
	case kind != websocket.TextMessage:
		return nil, errNotText
	}
	return body, nil
}

var errNotText = errors.New("not a text message")

// join greets a subscriber with what all others know by now, and counts it among them.
func (h *Hub) join(s *subscriber) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.seq == 0 {
		// No tick came yet: what the board was filled with is what there is to know.
		h.tell(h.collect(h.dirty))
		clear(h.dirty)
	}
	if h.snapshot == nil {
		h.snapshot = prepare(h.encodeSnapshot(h.all))
	}
	s.seq = h.seq
	welcome := open(nil, "welcome")
	welcome = append(welcome, fmt.Sprintf(`,"clientId":%q,"serverTime":%q,"simulated":%t`, s.id, query.FormatTime(h.deps.Now().UnixNano()), h.simulated)...)
	s.queue = append(s.queue, frame{own: h.stamp(s).close(welcome)}, frame{shared: h.snapshot})
	s.poke()
	h.subs[s] = struct{}{}
	if h.draining {
		s.finish(websocket.CloseServiceRestart, "the server restarts")
	}
}

func (h *Hub) leave(s *subscriber) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.subs, s)
}

func (h *Hub) stamp(s *subscriber) stamp { return stamp{epoch: h.epoch, seq: s.seq, at: h.logTime()} }

// logTime is the log's now, the clock's before the log told any.
func (h *Hub) logTime() int64 {
	if h.at == 0 {
		return h.deps.Now().UnixNano()
	}
	return h.at
}

// encodeSnapshot encodes what is known of a selection.
func (h *Hub) encodeSnapshot(of selection) []byte {
	var known []*change
	var shadowed []string
	for i, c := range h.told {
		switch {
		case c == nil:
		case of.has(i + 1):
			known = append(known, c)
		case !h.all.has(i + 1):
			shadowed = append(shadowed, c.entry.Coin.ID)
		}
	}
	return snapshotFrame(known, shadowed, stamp{epoch: h.epoch, seq: h.seq, at: h.logTime()})
}

// write writes what the hub has for a subscriber until the socket ends.
func (h *Hub) write(s *subscriber, stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-s.wake:
		}
		for {
			frames, ping, end := s.take()
			if end != nil {
				h.writeClose(s, end)
				return
			}
			if ping && s.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(h.cfg.WriteTimeout)) != nil {
				_ = s.raw.Close()
				return
			}
			if len(frames) == 0 {
				break
			}
			for _, f := range frames {
				if err := h.writeFrame(s, f); err != nil {
					_ = s.raw.Close()
					return
				}
			}
		}
	}
}

// writeFrame writes one frame. A reader that takes longer than a write may is told so and closed, if
// it takes the rest of the frame at all: in the middle of one nothing can be told.
func (h *Hub) writeFrame(s *subscriber, f frame) error {
	began := time.Now()
	if err := s.conn.SetWriteDeadline(began.Add(h.cfg.WriteTimeout + h.cfg.Linger)); err != nil {
		return err
	}
	var err error
	if f.shared != nil {
		s.conn.EnableWriteCompression(true)
		err = s.conn.WritePreparedMessage(f.shared)
	} else {
		// Deflating pays where many share the result; for one reader it costs more than the bytes.
		s.conn.EnableWriteCompression(false)
		err = s.conn.WriteMessage(websocket.TextMessage, f.own)
	}
	if err != nil {
		h.metrics.close(closeSlow)
		return err
	}
	if time.Since(began) > h.cfg.WriteTimeout {
		s.finish(closeSlow, "too slow: a frame was not read in time")
	}
	return nil
}

// writeClose tells why and gives the reader a moment to see the client's answer.
func (h *Hub) writeClose(s *subscriber, end *ending) {
	h.metrics.close(end.code)
	deadline := time.Now().Add(goodbye)
	reason := end.reason
	if len(reason) > closeReasonMax {
		reason = reason[:closeReasonMax]
	}
	if s.conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(end.code, reason), deadline) != nil ||
		s.raw.SetReadDeadline(deadline) != nil {
		_ = s.raw.Close()
	}
}

// read answers a client's messages until it goes or is sent away.
func (h *Hub) read(s *subscriber) {
	allowance, refilled := float64(messagesBurst), time.Now()
	spend := func() bool {
		now := time.Now()
		allowance = min(messagesBurst, allowance+now.Sub(refilled).Seconds()*messagesPerSecond)
		refilled = now
		allowance--
		return allowance >= 0
	}
	alive := func() error { return s.alive(h.cfg.Idle) }
	s.conn.SetPongHandler(func(string) error { return alive() })
	s.conn.SetPingHandler(func(payload string) error {
		if !spend() {
			return errTooMany
		}
		if err := s.conn.WriteControl(websocket.PongMessage, []byte(payload), time.Now().Add(goodbye)); err != nil {
			return err
		}
		return alive()
	})
	for {
		if s.closing() || alive() != nil {
			break
		}
		body, err := readMessage(s.conn)
		switch {
		case err == nil && spend():
			if !h.answer(s, body) {
				s.finish(closeSlow, "too many answers wait to be read")
			}
			continue
		case err == nil || errors.Is(err, errTooMany):
			s.finish(websocket.ClosePolicyViolation, "too many messages")
		case errors.Is(err, errTooBig):
			s.finish(websocket.CloseMessageTooBig, "a message may have 4096 bytes")
		case errors.Is(err, errNotText):
			s.finish(websocket.CloseUnsupportedData, "messages are JSON text")
		default:
			return
		}
		break
	}
	// The writer says goodbye; the client's answer or the deadline ends this.
	if s.raw.SetReadDeadline(time.Now().Add(h.cfg.WriteTimeout+h.cfg.Linger+goodbye)) != nil {
		return
	}
	for range 2 * messagesBurst {
		if _, _, err := s.conn.NextReader(); err != nil {
			return
		}
	}
}

var errTooMany = errors.New("too many messages")

// alive gives a client that said something more time, unless it is being sent away.
func (s *subscriber) alive(idle time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end != nil {
		return nil
	}
	return s.raw.SetReadDeadline(time.Now().Add(idle))
}

func (s *subscriber) closing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.end != nil
}

// answer does what a message asks; false if the client does not read the answers.
func (h *Hub) answer(s *subscriber, body []byte) bool {
	var m message
	if err := json.NewDecoder(bytes.NewReader(body)).Decode(&m); err != nil {
		return h.refuse(s, "a message is one JSON object with a type")
	}
	switch m.Type {
	case "ping":
		h.mu.Lock()
		defer h.mu.Unlock()
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.reply(h.stamp(s).close(open(nil, "pong")))
	case "subscribe", "unsubscribe":
		return h.choose(s, &m)
	case "auth":
		return h.refuse(s, "the key is known already")
	default:
		return h.refuse(s, "type must be ping, subscribe or unsubscribe")
	}
}

func (h *Hub) refuse(s *subscriber, why string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	b := append(open(nil, "error"), `,"error":{"code":"`+query.CodeValidation+`","message":`...)
	return s.reply(h.stamp(s).close(append(appendText(b, why), '}')))
}

// choose changes what a subscriber is sent, and how often.
func (h *Hub) choose(s *subscriber, m *message) bool {
	for _, channel := range m.Channels {
		if channel != "prices" {
			return h.refuse(s, "channels may only hold prices")
		}
	}
	interval := int64(0)
	if m.IntervalMs != nil {
		ms := *m.IntervalMs
		if ms != float64(int64(ms)) || time.Duration(ms)*time.Millisecond < minInterval {
			return h.refuse(s, "intervalMs must be an integer from 1000 to 60000")
		}
		// Ticks are whole seconds: an interval between two of them waits for the later one.
		interval = int64((min(time.Duration(min(ms, 1e9))*time.Millisecond, maxInterval) + time.Second - 1) / time.Second)
	}
	ranks, unknown := find(h.deps.Board, m.Symbols)
	if len(unknown) > 0 && !h.refuse(s, "no coin has the symbol or id "+strings.Join(unknown, ", ")) {
		return false
	}
	if len(m.Symbols) > 0 && len(ranks) == 0 {
		return true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.chosen
	if before == nil {
		before = h.all
	}
	after := h.selection(s.chosen, m.Type == "subscribe", m.Symbols != nil, ranks)
	if interval > 0 {
		s.interval = interval
	}
	added := newSelection(s.coins)
	any := false
	for i := range added {
		added[i] = after[i] &^ before[i]
		any = any || added[i] != 0
	}
	if s.chosen = after; after.equal(h.all) && s.interval == 1 {
		s.chosen = nil
	}
	if s.pending != nil {
		s.pending.keep(after)
		s.pending.due = s.pending.due || s.chosen == nil && s.pending.changes > 0
	}
	if !s.reply(h.subscribed(s, after)) {
		return false
	}
	// Coins that it was not sent for a while begin anew, so that each previous price is one it has seen.
	return !any || s.reply(h.encodeSnapshot(added))
}

// selection is what a request makes of the selection before it, nil for everything: the first
// subscription to some narrows everything to them, later ones add.
func (h *Hub) selection(before selection, add, named bool, ranks []int) selection {
	after := newSelection(len(h.told))
	switch {
	case add && !named:
		copy(after, h.all)
		return after
	case !add && !named:
		return after
	case before != nil:
		copy(after, before)
	case !add:
		copy(after, h.all)
	}
	for _, rank := range ranks {
		if add {
			after.add(rank)
		} else {
			after.remove(rank)
		}
	}
	return after
}

// subscribed says what a subscriber is sent from here on.
func (h *Hub) subscribed(s *subscriber, chosen selection) []byte {
	b := append(open(nil, "subscribed"), `,"symbols":[`...)
	first := true
	for _, coin := range h.deps.Board.Coins().All() {
		if !chosen.has(coin.Rank) {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		name := coin.Symbol
		if !h.all.has(coin.Rank) {
			name = coin.ID
		}
		b = appendText(b, name)
	}
	b = append(b, `],"channels":["prices"],"intervalMs":`...)
	b = fmt.Appendf(b, "%d", s.interval*1000)
	return h.stamp(s).close(b)
}
