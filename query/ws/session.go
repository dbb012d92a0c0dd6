package ws

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"runtime/debug"
	"time"
	"unicode/utf8"

	"github.com/fasthttp/websocket"
	fiberws "github.com/gofiber/contrib/websocket"

	"github.com/marketlog/marketlog/query"
)

// goodbye is how long a client has to answer a close frame.
const goodbye = time.Second

func panicAttr(p any) slog.Attr { return slog.String("panic", fmt.Sprintf("%v\n%s", p, debug.Stack())) }

// serve is one socket's life, on the goroutine that the server gives it.
func (h *Hub) serve(c *fiberws.Conn) {
	defer h.connections.Add(-1)
	a := c.Locals(admissionLocal).(*admission)
	conn := c.Conn
	raw := rawConn(conn)
	if a.known {
		defer func() { h.release(a.caller) }()
	} else {
		defer h.acquaint(a)
	}
	if !h.begin(raw) {
		h.sendAway(conn, &ending{code: websocket.CloseServiceRestart, reason: "the server is restarting"})
		return
	}
	defer h.gone(raw)
	if tcp, ok := raw.(interface{ SetWriteBuffer(int) error }); ok {
		if err := tcp.SetWriteBuffer(socketBuffer); err != nil {
			return
		}
	}
	conn.SetReadLimit(messageMax)
	if a.refused == nil && !a.known {
		if a.refused = h.awaitKey(conn, a); a.known {
			h.acquaint(a)
		}
	}
	if a.refused != nil {
		h.sendAway(conn, a.refused)
		return
	}
	s := newSubscriber(a, raw, len(h.known))
	h.pass(h.join(s, a.asks))
	h.read(s, conn)
	h.leave(s)
	s.retire()
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

// sendAway closes a socket that is not a subscriber's.
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
		// What comes is skipped as it is on the wire: to read a message would inflate it without bound.
		if _, _, err := conn.NextReader(); err != nil {
			return
		}
	}
}

// keyLate is why a socket without a key is closed.
const keyLate = `no API key was received in time: send Authorization: Bearer ck_live_…, or {"type":"auth","key":"ck_live_…"}`

// awaitKey reads the first message, which must carry the key.
func (h *Hub) awaitKey(conn *websocket.Conn, a *admission) *ending {
	if conn.SetReadDeadline(time.Now().Add(h.cfg.KeyTimeout)) != nil {
		return &ending{code: closeKey, reason: keyLate}
	}
	body, err := readMessage(conn)
	var m message
	switch {
	case errors.Is(err, errNotUTF8):
		return endingOfRead(err)
	case err != nil:
		return &ending{code: closeKey, reason: keyLate}
	case json.Unmarshal(body, &m) != nil || m.Type != "auth" || m.Key == "":
		return &ending{code: closeKey, reason: `the first message must be {"type":"auth","key":…}`}
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
	case !utf8.Valid(body):
		return nil, errNotUTF8
	}
	return body, nil
}

var (
	errNotText = errors.New("not a text message")
	errNotUTF8 = errors.New("not UTF-8")
)

// join sends a subscriber what all others have, or what it asked for when it connected, adds it to them and returns whom
// its caller must flush.
func (h *Hub) join(s *subscriber, asks *request) (due []*subscriber) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.seq == 0 {
		// There was no tick yet: what the price cache was filled with is all there is.
		due = h.broadcast(h.collect(h.dirty), nil)
		clear(h.dirty)
	}
	s.mu.Lock()
	s.seq, s.reached = h.seq, h.position
	s.extended = asks != nil
	welcome := open(nil, "welcome")
	welcome = append(welcome, fmt.Sprintf(`,"clientId":%q,"serverTime":%q,"simulated":%t`, s.id, query.FormatTime(h.deps.Now().UnixNano()), h.simulated)...)
	if asks != nil {
		welcome = appendNames(append(welcome, `,"channels":`...), h.channelNames())
	}
	cursor := h.cursor(h.position)
	if asks != nil && (asks.given() || len(asks.channels) > 0) {
		cursor = "" // whoever is cut off here has what it came with
	}
	s.enqueue(frame{own: s.render(h.stamp(s).close(welcome), cursor)})
	if asks == nil {
		if h.snapshot == nil {
			h.snapshot = encode(h.encodeSnapshot(h.all))
		}
		s.enqueue(frame{shared: h.snapshot})
	} else if !h.welcome(s, asks) {
		s.conclude(&ending{code: websocket.CloseInternalServerErr, reason: "internal error"})
	}
	s.mu.Unlock()
	s.place = len(h.subs)
	h.subs = append(h.subs, s)
	if h.draining {
		s.finish(websocket.CloseServiceRestart, "the server is restarting")
	}
	if s.claim() {
		due = append(due, s)
	}
	return due
}

func (h *Hub) leave(s *subscriber) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.followers, s)
	last := h.subs[len(h.subs)-1]
	h.subs[s.place], last.place = last, s.place
	h.subs[len(h.subs)-1] = nil
	h.subs = h.subs[:len(h.subs)-1]
}

func (h *Hub) stamp(s *subscriber) stamp { return stamp{epoch: h.epoch, seq: s.seq, at: h.logTime()} }

// logTime is the log's now; before the log has one, the clock's.
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
	for i, c := range h.known {
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

// read answers a client's messages until it goes or is sent away.
func (h *Hub) read(s *subscriber, conn *websocket.Conn) {
	allowance, refilled := float64(messagesBurst), time.Now()
	spend := func() bool {
		now := time.Now()
		allowance = min(messagesBurst, allowance+now.Sub(refilled).Seconds()*messagesPerSecond)
		refilled = now
		allowance--
		return allowance >= 0
	}
	alive := func() error { return s.alive(h.cfg.Idle) }
	conn.SetPongHandler(func(string) error { return alive() })
	// All writes go through the subscriber: those of the library would interleave with it.
	conn.SetCloseHandler(func(code int, _ string) error {
		s.answerClose(code)
		h.send(s)
		return nil
	})
	conn.SetPingHandler(func(payload string) error {
		if !spend() {
			return errTooMany
		}
		if !h.pong(s, payload) {
			return errUnread
		}
		return alive()
	})
	for {
		if s.closing() || alive() != nil {
			break
		}
		body, err := readMessage(conn)
		switch {
		case err == nil && spend():
			answered := h.answer(s, body)
			h.send(s)
			if answered {
				continue
			}
			err = errUnread
		case err == nil:
			err = errTooMany
		}
		end := endingOfRead(err)
		if end == nil {
			return
		}
		h.sendOff(s, end)
		break
	}
	// The client's answer to the goodbye or the deadline ends this.
	for range 2 * messagesBurst {
		if _, _, err := conn.NextReader(); err != nil {
			return
		}
	}
}

// send writes what waits for a subscriber, unless someone does already.
func (h *Hub) send(s *subscriber) {
	if s.claim() {
		h.flush(s)
	}
}

// sendOff closes a subscriber's socket from its reader.
func (h *Hub) sendOff(s *subscriber, end *ending) {
	s.finish(end.code, end.reason)
	// A full socket may take as long for the close frame as for a frame; one that is closed sooner gets a
	// shorter deadline.
	if s.raw.SetReadDeadline(time.Now().Add(h.cfg.WriteTimeout+h.cfg.Linger+goodbye)) == nil {
		h.send(s)
	}
}

// pong answers a ping; false if the client does not read the answers.
func (h *Hub) pong(s *subscriber, payload string) bool {
	s.mu.Lock()
	ok := s.respond(controlFrame(websocket.PongMessage, []byte(payload)))
	s.mu.Unlock()
	h.send(s)
	return ok
}

// endingOfRead is why a socket is closed whose reading failed; nil where the client went.
func endingOfRead(err error) *ending {
	switch {
	case errors.Is(err, errTooMany):
		return &ending{code: websocket.ClosePolicyViolation, reason: "too many messages"}
	case errors.Is(err, errUnread):
		return &ending{code: closeSlow, reason: "too many responses are waiting to be read"}
	case errors.Is(err, errTooBig):
		return &ending{code: websocket.CloseMessageTooBig, reason: "a message may have at most 4096 bytes"}
	case errors.Is(err, errNotText):
		return &ending{code: websocket.CloseUnsupportedData, reason: "messages must be JSON text"}
	case errors.Is(err, errNotUTF8):
		return &ending{code: websocket.CloseInvalidFramePayloadData, reason: "text messages must be UTF-8"}
	}
	return nil
}

var (
	errTooMany = errors.New("too many messages")
	errUnread  = errors.New("too many responses are waiting to be read")
)

// alive extends the deadline of a client that sent something, unless it is being closed.
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
		return h.refuse(s, "", "a message is one JSON object with a type")
	}
	switch m.Type {
	case "ping":
		h.mu.Lock()
		defer h.mu.Unlock()
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.reply(h.stamp(s).close(appendID(open(nil, "pong"), m.ID)))
	case "subscribe", "unsubscribe":
		return h.choose(s, &m)
	case "resume":
		return h.resume(s, &m)
	case typeReplay:
		return h.steer(s, &m)
	case "auth":
		return h.refuse(s, m.ID, "the key is known already")
	default:
		return h.refuseFaults(s, m.ID, faults{faulty("type", "must be ping, subscribe, unsubscribe, resume or replay")})
	}
}

func (h *Hub) refuse(s *subscriber, id, why string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	return h.refuseLocked(s, id, why)
}

// refuseLocked is refuse for one who holds h.mu and s.mu.
func (h *Hub) refuseLocked(s *subscriber, id, why string) bool {
	return h.refuseWith(s, id, query.CodeValidation, why)
}

func (h *Hub) refuseWith(s *subscriber, id, code, why string) bool {
	b := append(appendID(open(nil, typeError), id), `,"error":{"code":"`+code+`","message":`...)
	return s.reply(h.stamp(s).close(append(appendText(b, why), '}')))
}

// selection is what a request makes of the selection before it, nil for everything: the first
// subscription to some narrows everything to them, later ones add.
func (h *Hub) selection(before selection, add, named bool, ranks []int) selection {
	after := newSelection(len(h.known))
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

// subscribed lists what a subscriber is sent from here on. If that is everything, it lists all coins with a price.
func (h *Hub) subscribed(s *subscriber, id string, chosen selection) []byte {
	everything := chosen.equal(h.all)
	b := append(appendID(open(nil, "subscribed"), id), `,"symbols":[`...)
	first := true
	for _, coin := range h.deps.Prices.Coins().All() {
		if !chosen.has(coin.Rank) || everything && h.known[coin.Rank-1] == nil {
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
	b = appendNames(append(b, `],"channels":`...), s.channelNames())
	b = fmt.Appendf(b, `,"intervalMs":%d`, s.interval*1000)
	switch {
	case s.feed != nil:
		b = append(b, `,"delivery":"`+deliveryAll+`"`...)
	case s.extended:
		b = append(b, `,"delivery":"`+deliveryLatest+`"`...)
	}
	return h.stamp(s).close(b)
}
