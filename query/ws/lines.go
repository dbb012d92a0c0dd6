package ws

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
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
		if asks.over() {
			return c.SendStatus(http.StatusNoContent) // a browser comes no more
		}
		if h.connections.Add(1) > int64(h.cfg.Connections) {
			h.connections.Add(-1)
			return errTooManyStreams
		}
		a, err := h.admit(ctx, gate)
		if err == nil {
			err = a.denied()
		}
		if err == nil {
			a.asks = asks
			err = h.entitled(ctx, a)
		}
		if err != nil {
			h.connections.Add(-1)
			return err
		}
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
	for _, last := range [][]byte{args.Peek(paramLastID), ctx.Request.Header.Peek(headerLastID)} {
		if len(last) > 0 {
			args.SetBytesV("cursor", last) // newer than the one in the address, and than the beginning of a replay
			args.Del("from")
		}
	}
	asks, err := h.asked(ctx, true)
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
	case a.keyless != nil:
		return a.keyless
	case a.refused == nil:
		return query.NoKey
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
	// Such a client sends nothing more: what ends the read is its leaving, or ours.
	_, _ = io.CopyN(io.Discard, raw, messageMax)
	h.leave(s)
	s.retire()
}

// Operation describes the stream over plain HTTP for the OpenAPI document. What comes over a WebSocket has no place in one.
func (h *Hub) Operation() *huma.Operation {
	least, most := 1000.0, 60_000.0
	longest, explode := mixedMax, false
	var channels []any
	sends := "What is sent. `" + channelPrices + "`: the price of each coin as it changes."
	for _, name := range h.channelNames() {
		channels = append(channels, name)
	}
	for _, c := range h.channels {
		sends += " `" + c.name() + "`: " + c.Doc
	}
	text := &huma.Schema{Type: huma.TypeString}
	instant := &huma.Schema{Type: huma.TypeString, Format: "date-time"}
	slowest, fastest := float64(speedLeast), float64(speedMost)
	names := &huma.Schema{Type: huma.TypeArray, Items: text}
	millis := &huma.Schema{Type: huma.TypeInteger, Format: "int64", Minimum: &least, Maximum: &most}
	cursor := &huma.Schema{Type: huma.TypeString, MaxLength: &longest}
	param := func(name, doc string, schema *huma.Schema) *huma.Param {
		p := &huma.Param{Name: name, In: "query", Description: doc, Schema: schema}
		if schema.Type == huma.TypeArray {
			p.Style, p.Explode = "form", &explode
		}
		return p
	}
	op := &huma.Operation{
		Method: http.MethodGet, Path: LinesPath, OperationID: "getStream", Tags: []string{"stream"},
		Summary: "Prices and other channels as they change, as server-sent events or as lines of JSON",
		Description: "The messages of the WebSocket stream, until the client goes. `Accept: application/x-ndjson` makes it lines. With `delivery=all` every price " +
			"comes exactly once over any number of connections, each begun with the last cursor. So does everything in the other channels.",
		Parameters: []*huma.Param{
			param("symbols", "Only these coins, by symbol or id; without it all that have their symbol.", names),
			param("channels", sends, &huma.Schema{Type: huma.TypeArray, Items: &huma.Schema{Type: huma.TypeString, Enum: channels}, Default: []any{channelPrices}}),
			param("delivery", "The newest price of each coin, or every price.", &huma.Schema{Type: huma.TypeString, Enum: []any{deliveryLatest, deliveryAll}, Default: deliveryLatest}),
			param("cursor", "Go on where this cursor was given.", cursor),
			param(paramLastID, "As `cursor`, for clients that cannot set the header `"+headerLastID+"`.", cursor),
			param("snapshot", "Whether the current prices come first.", &huma.Schema{Type: huma.TypeBoolean, Default: true}),
			param("intervalMs", "The least time between two messages of prices; not with `delivery=all`.", millis),
			param("from", "Begin at this instant of the past, with everything since: a replay. It ends in the present and goes on with it, or at `to`.", instant),
			param("to", "The instant up to which a replay goes; the connection ends behind it.", instant),
			param("speed", "How many seconds of the log a replay sends in one; without it as many as are read.", &huma.Schema{Type: huma.TypeNumber, Minimum: &slowest, Maximum: &fastest}),
			param("heartbeatMs", "After how long a silence a heartbeat with a cursor is sent.", millis),
			{Name: headerLastID, In: "header", Description: "As `cursor`; browsers send it when they come back by themselves.", Schema: cursor},
		},
		Responses: map[string]*huma.Response{
			"204": {Description: "The replay that was gone on with has nothing left"},
			"200": {Description: "Messages, for as long as the connection lasts", Content: map[string]*huma.MediaType{
				contentEvents: {Schema: text}, contentLines: {Schema: text},
			}},
			"403": {Description: "The page's origin is not allowed (`" + query.CodeForbidden + "`)", Content: query.ErrorResponseContent()},
		},
	}
	for _, status := range []int{400, 401, 402, 429, 431, 500, 503} {
		op.Responses[strconv.Itoa(status)] = query.ErrorResponse(status)
	}
	return op
}
