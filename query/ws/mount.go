package ws

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fasthttp/websocket"
	fiberws "github.com/gofiber/contrib/websocket"
	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/limits"
)

// Path is where the stream is served.
const Path = "/api/v1/prices/ws"

// Close codes of our own; the rest are RFC 6455's.
const (
	closeKey     = 4001 // no valid key
	closeOrigin  = 4003 // a web origin that may not connect
	closeSlow    = 4008 // does not read
	closeSockets = 4029 // the plan's limit
)

// protocol is the only subprotocol that is ever echoed: the key next to it must not come back in a
// header that proxies log.
const (
	protocol  = "marketlog.v1"
	keyPrefix = "key."
)

// Gate checks who is served, counts, and sends what everybody may read.
type Gate interface {
	Identify(key []byte, from net.IP, now time.Time) (query.Caller, error)
	// Session is the caller of a page's session; false where the request has none.
	Session(ctx *fasthttp.RequestCtx, now time.Time) (query.Caller, bool, error)
	Count(ctx *fasthttp.RequestCtx, c query.Caller, now time.Time) error
	Valid(c query.Caller, now time.Time) bool
	// Address is who sent a request.
	Address(ctx *fasthttp.RequestCtx) net.IP
	// RequirePlan refuses a caller whose plan lacks a feature.
	RequirePlan(ctx *fasthttp.RequestCtx, c query.Caller, needs limits.Feature, now time.Time) error
	SendPublic(ctx *fasthttp.RequestCtx, body *query.Body)
}

// admission is what was settled before the upgrade.
type admission struct {
	gate Gate
	from net.IP
	// caller is set where known is, and then holds a place among its plan's sockets.
	caller query.Caller
	known  bool
	// refused is sent after the upgrade, because a browser cannot see the status of a rejected one; keyless is its error, where a
	// key is why.
	refused *ending
	keyless error
	// stranger means that it counts among the sockets without a key.
	stranger bool
	// deflated is what the handshake settled.
	deflated bool
	// asks is what it asked for in the query of its request; nil: nothing.
	asks *request
}

const admissionLocal = "admission"

// Mount adds the stream's routes. Its error is a fault of a declaration, which cannot be described.
func (h *Hub) Mount(router fiber.Router, gate Gate) error {
	h.mountLines(router, gate)
	upgrade := fiberws.New(h.serve, fiberws.Config{
		Subprotocols: []string{protocol}, EnableCompression: true,
		// Reads are of small messages; what is written is encoded by ourselves and needs no buffer.
		ReadBufferSize: 512, WriteBufferSize: 256, WriteBufferPool: &sync.Pool{},
		RecoverHandler: h.recover,
	})
	router.Get(Path, func(c *fiber.Ctx) error {
		if !fiberws.IsWebSocketUpgrade(c) {
			return upgradeRequired(c)
		}
		if why := h.deps.Waiting(); why != "" {
			return query.Starting(why)
		}
		if h.connections.Add(1) > int64(h.cfg.Connections) {
			h.connections.Add(-1)
			return errTooManyStreams
		}
		asks, err := h.asked(c.Context(), false)
		var a *admission
		if err == nil {
			a, err = h.admit(c.Context(), gate)
		}
		if err == nil {
			a.asks = asks
			err = h.entitled(c.Context(), a)
		}
		if err != nil {
			h.connections.Add(-1)
			return err
		}
		if !a.known && !h.receive(a) {
			h.connections.Add(-1)
			return &query.Error{Status: http.StatusServiceUnavailable, Code: query.CodeOverloaded,
				Message: "too many streams without a key are open; send the key in the handshake, or try again later", RetryAfter: 5}
		}
		c.Locals(admissionLocal, a)
		if err := upgrade(c); err != nil {
			h.connections.Add(-1)
			if a.known {
				h.release(a.caller)
			}
			h.acquaint(a)
			return upgradeRequired(c)
		}
		a.deflated = len(c.Response().Header.Peek("Sec-WebSocket-Extensions")) > 0
		return nil
	})
	return h.mountDocument(router, gate)
}

func upgradeRequired(c *fiber.Ctx) error {
	c.Set(fiber.HeaderUpgrade, "websocket")
	c.Set("Sec-WebSocket-Version", "13")
	return &query.Error{Status: http.StatusUpgradeRequired, Code: query.CodeUpgrade, Message: "this path requires a WebSocket upgrade (RFC 6455, version 13)"}
}

// admit checks origin, key, sockets and limit, in this order.
func (h *Hub) admit(ctx *fasthttp.RequestCtx, gate Gate) (*admission, error) {
	a := &admission{gate: gate, from: slices.Clone(gate.Address(ctx))}
	if !h.mayConnect(ctx) {
		a.refused = &ending{code: closeOrigin, reason: "the origin is not allowed"}
		return a, nil
	}
	now := time.Now()
	key, err := handshakeKey(ctx)
	var caller query.Caller
	signedIn := false
	if err == nil && key == nil && ownOrigin(ctx) {
		caller, signedIn, err = gate.Session(ctx, now)
	}
	if err == nil && !signedIn {
		caller, err = gate.Identify(key, a.from, now)
	}
	var shown *query.Error
	switch {
	case err == nil:
	case errors.As(err, &shown) && shown.Status == http.StatusUnauthorized:
		if key == nil && shown.Code == query.CodeInvalidKey && len(ctx.Request.Header.Peek(fiber.HeaderAuthorization)) == 0 {
			return a, nil // it may still send one
		}
		a.refused, a.keyless = endingOf(err), err
		return a, nil
	default:
		return nil, err
	}
	if !h.reserve(caller) {
		a.refused = tooManySockets
		return a, nil
	}
	if err := gate.Count(ctx, caller, now); err != nil {
		h.release(caller)
		return nil, err
	}
	a.caller, a.known = caller, true
	return a, nil
}

var tooManySockets = &ending{code: closeSockets, reason: "the plan's maximum number of streams is already open"}

// handshakeKey returns the key of the header, else that of the subprotocols, which is where a browser
// can put one.
func handshakeKey(ctx *fasthttp.RequestCtx) ([]byte, error) {
	key, err := query.BearerKey(ctx)
	if key != nil || err != nil {
		return key, err
	}
	for item := range bytes.SplitSeq(ctx.Request.Header.Peek("Sec-WebSocket-Protocol"), []byte(",")) {
		if key, ok := bytes.CutPrefix(bytes.TrimSpace(item), []byte(keyPrefix)); ok {
			return key, nil
		}
	}
	return nil, nil
}

// ownOrigin reports whether a page of this very server opens the stream. Browsers send cookies along whoever opens it, and
// every browser names the origin of a WebSocket: without one that is ours, a session opens nothing.
func ownOrigin(ctx *fasthttp.RequestCtx) bool {
	origins := ctx.Request.Header.PeekAll(fiber.HeaderOrigin)
	if len(origins) != 1 {
		return false
	}
	host, secure := bytes.CutPrefix(origins[0], []byte("https://"))
	if !secure {
		var plain bool
		if host, plain = bytes.CutPrefix(origins[0], []byte("http://")); !plain || ctx.IsTLS() {
			return false
		}
	}
	return len(host) > 0 && bytes.EqualFold(host, ctx.Host())
}

// mayConnect keeps pages of other sites from opening streams with what a browser of ours can reach.
func (h *Hub) mayConnect(ctx *fasthttp.RequestCtx) bool {
	origin := string(ctx.Request.Header.Peek(fiber.HeaderOrigin))
	if origin == "" || slices.Contains(h.cfg.Origins, origin) {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && strings.EqualFold(u.Host, string(ctx.Host()))
}

// reserve takes one of the plan's sockets.
func (h *Hub) reserve(c query.Caller) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.budgets[c.Grant.Budget] >= c.Plan.Sockets {
		return false
	}
	h.budgets[c.Grant.Budget]++
	return true
}

func (h *Hub) release(c query.Caller) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.budgets[c.Grant.Budget]--; h.budgets[c.Grant.Budget] == 0 {
		delete(h.budgets, c.Grant.Budget)
	}
}

// receive takes one of the places of sockets without a key, of all and of its address.
func (h *Hub) receive(a *admission) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	of := address(a.from)
	if h.strangers[of] >= h.cfg.StrangersEach || h.strangersAll >= h.cfg.Strangers {
		return false
	}
	h.strangers[of]++
	h.strangersAll++
	a.stranger = true
	return true
}

// acquaint gives the place back, once its key is known or it is gone.
func (h *Hub) acquaint(a *admission) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !a.stranger {
		return
	}
	a.stranger = false
	h.strangersAll--
	of := address(a.from)
	if h.strangers[of]--; h.strangers[of] == 0 {
		delete(h.strangers, of)
	}
}

// address is what counts as one: an IPv6 host owns at least a /64.
func address(ip net.IP) netip.Addr {
	addr, _ := netip.AddrFromSlice(ip)
	if addr = addr.Unmap(); addr.Is6() {
		if network, err := addr.Prefix(64); err == nil {
			return network.Addr()
		}
	}
	return addr
}

// recover costs a panic one socket only.
func (h *Hub) recover(*fiberws.Conn) {
	if p := recover(); p != nil {
		h.deps.Log.LogAttrs(context.Background(), slog.LevelError, "panic in a stream", panicAttr(p))
	}
}

// endingOf is the close frame for an error after the upgrade.
func endingOf(err error) *ending {
	var shown *query.Error
	if !errors.As(err, &shown) {
		return &ending{code: websocket.CloseInternalServerErr, reason: "internal error"}
	}
	switch shown.Status {
	case http.StatusUnauthorized:
		reason, _, _ := strings.Cut(shown.Message, ";")
		return &ending{code: closeKey, reason: reason}
	case http.StatusTooManyRequests:
		return &ending{code: closeSockets, reason: "the plan's request limit is exhausted"}
	default:
		return &ending{code: websocket.CloseTryAgainLater, reason: shown.Code}
	}
}
