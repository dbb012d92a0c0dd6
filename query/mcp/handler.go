package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/valyala/fasthttp"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/limits"
)

const (
	contentJSON   = "application/json"
	contentEvents = "text/event-stream"
)

// Config reports who answers.
type Config struct {
	// Version of the service.
	Version string
	// Simulated means that the numbers are invented, which every handshake says.
	Simulated bool
}

// Handler answers the protocol over HTTP. Safe for concurrent use.
type Handler struct {
	who    identity
	server *query.Server
	sets   map[query.ToolSet]*toolset
	stamps stamps
}

// New makes the handler of the tools of a server.
func New(cfg Config, s *query.Server) (*Handler, error) {
	d := &Handler{who: identity{cfg.Version, cfg.Simulated}, server: s, sets: map[query.ToolSet]*toolset{}}
	for _, set := range sets {
		made, err := newToolset(d.who, s.Tools(), set)
		if err != nil {
			return nil, err
		}
		d.sets[set] = made
	}
	var err error
	d.stamps, err = newStamps(d.who)
	return d, err
}

// Mount adds the handler and its documents.
func (d *Handler) Mount(router fiber.Router) {
	router.Post("/mcp", d.post)
	d.MountDocuments(router)
}

// MountDocuments adds the documents that describe the handler, which need no key.
func (d *Handler) MountDocuments(router fiber.Router) {
	router.Get("/mcp/tools.json", d.catalog)
	router.Get("/mcp/server-card", d.serverCard)
	router.Get("/.well-known/mcp.json", d.wellKnown)
	router.Get("/.well-known/ai-catalog.json", d.aiCatalog)
}

// request is one request under way.
type request struct {
	handler *Handler
	ctx     *fasthttp.RequestCtx
	now     time.Time
	set     *toolset
	message
	// modern means that it is of the newer era.
	modern bool
}

// post answers one message: address, key, plan, form and, for a call, limit and arguments.
func (d *Handler) post(c *fiber.Ctx) error {
	ctx := c.Context()
	r := &request{handler: d, ctx: ctx, now: ctx.Time()}
	if d.server.Open() && !local(ctx) {
		r.fail(http.StatusForbidden, invalidRequest("a page of another site may not ask a server on this machine that asks for no key"))
		return nil
	}
	body := ctx.Request.Body()
	who, err := d.server.Authenticate(ctx, r.now)
	if err == nil {
		err = d.server.RequirePlan(ctx, who, limits.FeatureMCP, r.now)
	}
	if err != nil {
		r.ID = idOf(body[:min(len(body), maxRefused)])
		shown, id := d.server.Fault(ctx, err)
		r.fail(shown.Status, translate(shown, id))
		return nil
	}
	if !isJSON(&ctx.Request.Header) {
		r.fail(http.StatusUnsupportedMediaType, invalidRequest("send the request as application/json, uncompressed"))
		return nil
	}
	set, known := sets[strings.ToLower(c.Query("toolset", "default"))]
	m, fault := read(body)
	r.message = m
	switch {
	case fault != nil:
		r.fail(http.StatusBadRequest, fault)
	case !known:
		r.fail(http.StatusBadRequest, invalidParams("toolset must be default or full"))
	case m.notification():
		// Nothing is under way that one could report on, cancel or wait for.
		ctx.Response.SetStatusCode(http.StatusAccepted)
	default:
		r.set = d.sets[set]
		r.modern = mcp.IsModernProtocol(versionOf(m.Params)) || mcp.IsModernProtocol(string(ctx.Request.Header.Peek(mcp.HeaderProtocolVersion)))
		r.answer(who)
	}
	return nil
}

// maxRefused is how much of a refused request is looked at for its id, so that refusing stays cheap.
const maxRefused = 2 << 10

func (r *request) answer(who query.Caller) {
	if r.Method != string(mcp.MethodToolsCall) {
		r.ask()
		return
	}
	var params callParams
	if json.Unmarshal(r.Params, &params) != nil || params.Name == "" {
		r.failCall(invalidParams("params must have a name and, as arguments, an object"))
		return
	}
	if !r.accepted() {
		return
	}
	if !r.set.tools[params.Name] {
		r.failCall(invalidParams("there is no tool %.64q; tools/list names them", params.Name))
		return
	}
	answer, err := r.handler.server.CallTool(r.ctx, who, params.Name, params.Arguments, r.now)
	if err != nil {
		shown, id := r.handler.server.Fault(r.ctx, err)
		r.failCall(translate(shown, id))
		return
	}
	r.ctx.Response.Header.Set("X-Position", answer.Position.String())
	if answer.Simulated {
		r.ctx.Response.Header.Set("X-Data-Source", "simulated")
	}
	r.send(http.StatusOK, resultFrame(r.ID, answer.Body.JSON(), r.handler.stamps.of(r.modern, answer.Simulated)))
}

// accepted reports whether a call is made as its era wants, and answers it where it is not. The older era
// wants nothing but a revision that exists.
func (r *request) accepted() bool {
	version := string(r.ctx.Request.Header.Peek(mcp.HeaderProtocolVersion))
	if !r.modern && (version == "" || mcp.IsValidProtocolVersion(version)) {
		return true
	}
	accepted := false
	answer := r.library(context.WithValue(context.Background(), acceptedKey{}, &accepted))
	if !accepted {
		r.forward(answer)
	}
	return accepted
}

// ask lets the library answer what is not a call.
func (r *request) ask() { r.forward(r.library(context.Background())) }

// library hands the request to the library and returns its answer.
func (r *request) library(ctx context.Context) *recorder {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	header := http.Header{}
	for name, value := range r.ctx.Request.Header.All() {
		header.Add(string(name), strings.TrimSpace(string(value)))
	}
	answer := &recorder{header: http.Header{}, status: http.StatusOK, events: r.Method == string(mcp.MethodSubscriptionsListen)}
	r.set.server.Handle(answer, &server.HTTPRequest{Method: http.MethodPost, URL: &url.URL{Path: "/mcp"}, Header: header,
		// The library may still look at it when the request's own buffer is used again.
		Body: append([]byte(nil), r.ctx.Request.Body()...), Context: ctx})
	return answer
}

// patience bounds what the library does; all of it is in memory.
const patience = 10 * time.Second

// forward sends the library's answer on. Errors get the word that names them.
func (r *request) forward(answer *recorder) {
	var failed struct {
		Error *struct {
			Code    int             `json:"code"`
			Message string          `json:"message"`
			Data    json.RawMessage `json:"data"`
		} `json:"error"`
	}
	switch kind := answer.header.Get(fiber.HeaderContentType); {
	case strings.HasPrefix(kind, contentEvents):
		r.send(answer.status, r.acknowledged(answer.body.Bytes()))
		r.ctx.Response.Header.SetContentType(contentEvents)
		return
	case !strings.HasPrefix(kind, contentJSON):
		r.fail(answer.status, invalidRequest("%s", strings.TrimSpace(answer.body.String())))
		return
	}
	if json.Unmarshal(answer.body.Bytes(), &failed) != nil || failed.Error == nil || failed.Error.Data != nil {
		r.send(answer.status, bytes.TrimSpace(answer.body.Bytes()))
		return
	}
	r.fail(answer.status, named(failed.Error.Code, failed.Error.Message))
}

// acknowledged is the answer to subscriptions/listen, which is all that comes as events: first that nothing was subscribed,
// since nothing ever changes, then the result. The library writes the first beside the second, and drops it where the
// second is faster.
func (r *request) acknowledged(events []byte) []byte {
	if bytes.Count(events, []byte("\n\n")) > 1 {
		return events
	}
	return append(fmt.Appendf(nil, "event: message\ndata: {\"jsonrpc\":%q,\"method\":%q,\"params\":{\"_meta\":{%q:%s},\"notifications\":{}}}\n\n",
		mcp.JSONRPC_VERSION, mcp.MethodNotificationSubscriptionsAcknowledged, mcp.MetaKeySubscriptionID, r.ID), events...)
}

func (r *request) failCall(fault *frameError) { r.fail(fault.status(r.modern), fault) }

func (r *request) fail(status int, fault *frameError) { r.send(status, fault.frame(r.ID)) }

func (r *request) send(status int, frame []byte) {
	h := &r.ctx.Response.Header
	h.SetContentType(contentJSON)
	h.Set(fiber.HeaderCacheControl, "no-store")
	r.ctx.Response.SetStatusCode(status)
	r.ctx.Response.SetBodyRaw(frame)
}

// isJSON means that a body is JSON as it is: what is compressed can be a thousand times as large.
func isJSON(h *fasthttp.RequestHeader) bool {
	kind, params, err := mime.ParseMediaType(string(h.ContentType()))
	if charset := params["charset"]; err != nil || kind != contentJSON || charset != "" && !strings.EqualFold(charset, "utf-8") {
		return false
	}
	encoding := h.Peek(fiber.HeaderContentEncoding)
	return len(encoding) == 0 || string(encoding) == "identity"
}

// local means that a request was meant for this machine. Where no key is asked for, any page that a browser
// shows could otherwise ask through a name that leads here.
func local(ctx *fasthttp.RequestCtx) bool {
	if !loopback(string(ctx.Host())) {
		return false
	}
	origin := string(ctx.Request.Header.Peek(fiber.HeaderOrigin))
	if origin == "" {
		return true
	}
	from, err := url.Parse(origin)
	return err == nil && loopback(from.Host)
}

func loopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return strings.EqualFold(host, "localhost") || err == nil && ip.IsLoopback()
}
