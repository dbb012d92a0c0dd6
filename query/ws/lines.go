package ws

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/marketlog/marketlog/query"
)

// LinesPath is where the stream is served over plain HTTP: as server-sent events, or as lines of JSON.
const LinesPath = "/api/v1/stream"

const (
	contentEvents = "text/event-stream"
	contentLines  = "application/x-ndjson"
	headerLastID  = "Last-Event-ID"
	paramLastID   = "lastEventId"
)

// retry is how long a browser waits before it opens the stream again.
const retry = "retry: 1500\n\n"

// mountLines adds the route of the stream over plain HTTP. What refuses a client is an answer as of all other operations.
func (h *Hub) mountLines(router fiber.Router, gate Gate) {
	router.Get(LinesPath, func(c *fiber.Ctx) error {
		ctx := c.Context()
		if !ctx.IsGet() {
			return &query.Error{Status: http.StatusMethodNotAllowed, Code: query.CodeMethodNotAllowed, Message: "this path is read with GET"}
		}
		if why := h.deps.Waiting(); why != "" {
			return query.Starting(why)
		}
		asks, err := h.askedByLine(ctx)
		if err != nil {
			return err
		}
		if h.connections.Add(1) > int64(h.cfg.Connections) {
			h.connections.Add(-1)
			return errTooManyStreams
		}
		a, err := h.admit(ctx, gate)
		if err == nil {
			err = a.denied()
		}
		if err != nil {
			h.connections.Add(-1)
			return err
		}
		a.asks = asks
		form := formEvents
		if slices.ContainsFunc(strings.Split(string(ctx.Request.Header.Peek(fiber.HeaderAccept)), ","), func(kind string) bool {
			kind, _, _ = strings.Cut(kind, ";")
			return strings.TrimSpace(kind) == contentLines
		}) {
			form = formLines
		}
		head := lineHead(ctx, form)
		ctx.HijackSetNoResponse(true)
		ctx.Hijack(func(conn net.Conn) { h.serveLines(a, conn, form, head) })
		return nil
	})
}

var errTooManyStreams = &query.Error{Status: http.StatusServiceUnavailable, Code: query.CodeOverloaded, Message: "too many streams are open", RetryAfter: 5}

// askedByLine reads what a client asks for; where a browser comes back by itself, the cursor is in a header.
func (h *Hub) askedByLine(ctx *fasthttp.RequestCtx) (*request, error) {
	args := ctx.QueryArgs()
	for name := range args.All() {
		if !slices.Contains(connectParams, string(name)) && string(name) != paramLastID {
			return nil, query.Invalid(string(name), "is no parameter of this operation; it has %s", strings.Join(connectParams, ", "))
		}
	}
	for _, last := range [][]byte{args.Peek(paramLastID), ctx.Request.Header.Peek(headerLastID)} {
		if len(last) > 0 {
			args.SetBytesV("cursor", last) // newer than the one in the address
		}
	}
	asks, err := h.asked(ctx)
	if asks == nil && err == nil {
		asks = &request{extended: true}
	}
	return asks, err
}

// denied is the answer to a client that is not served; nil for one that is.
func (a *admission) denied() error {
	switch {
	case a.refused == nil && a.known:
		return nil
	case a.refused == nil || a.refused.code == closeKey:
		return query.InvalidKey
	case a.refused.code == closeOrigin:
		return &query.Error{Status: http.StatusForbidden, Code: query.CodeForbidden, Message: "the page's origin is not allowed; `stream.origins` lists those that are"}
	default:
		return &query.Error{Status: http.StatusTooManyRequests, Code: query.CodeRateLimit, Message: a.refused.reason, RetryAfter: 5}
	}
}

// lineHead is what comes before the first message: the status and the headers, with those that were set already.
func lineHead(ctx *fasthttp.RequestCtx, form form) []byte {
	header := &ctx.Response.Header
	header.SetContentLength(-2) // the end is that of the connection
	header.Set(fiber.HeaderCacheControl, "no-store")
	header.Set("X-Accel-Buffering", "no") // nginx would hold back what comes
	if origin := ctx.Request.Header.Peek(fiber.HeaderOrigin); len(origin) > 0 {
		header.SetBytesV(fiber.HeaderAccessControlAllowOrigin, origin) // it was admitted
		header.Add(fiber.HeaderVary, fiber.HeaderOrigin)
	}
	if form == formLines {
		header.SetContentType(contentLines)
		return slices.Clone(header.Header())
	}
	header.SetContentType(contentEvents)
	return append(slices.Clone(header.Header()), retry...)
}

// serveLines is one such connection's life, on the goroutine that the server gives it.
func (h *Hub) serveLines(a *admission, conn net.Conn, form form, head []byte) {
	defer h.connections.Add(-1)
	defer func() { h.release(a.caller) }()
	raw := conn
	if under, ok := conn.(interface{ UnsafeConn() net.Conn }); ok {
		raw = under.UnsafeConn()
	}
	if !h.begin(raw) {
		return
	}
	defer h.gone(raw)
	if buffered, ok := raw.(interface{ SetWriteBuffer(int) error }); ok && buffered.SetWriteBuffer(socketBuffer) != nil {
		return
	}
	if raw.SetDeadline(time.Time{}) != nil {
		return
	}
	s := newSubscriber(a, raw, len(h.known))
	s.form = form
	s.enqueue(frame{own: bytes.Clone(head)})
	h.pass(h.join(s, a.asks))
	// Such a client says nothing more: what ends the read is its leaving, or ours.
	_, _ = io.CopyN(io.Discard, raw, messageMax)
	h.leave(s)
	s.retire()
}
