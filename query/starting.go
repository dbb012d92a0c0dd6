package query

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"html"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
)

// healthy is the body of /healthz.
const healthy = `{"status":"ok"}`

// notReady is the answer of /readyz while something is missing, by the part that lacks it.
func notReady(missing map[string][]string) *Error {
	return &Error{Status: http.StatusServiceUnavailable, Code: CodeStarting, Fields: missing, RetryAfter: 1,
		Message: "not ready: " + strings.Join(slices.Sorted(maps.Keys(missing)), ", ")}
}

// documentPaths are served before there is data, since nothing in them depends on it.
var documentPaths = []string{"GET /docs", "GET /docs/", "GET /llms.txt", "GET /llms-full.txt", "GET /openapi.json", "GET /asyncapi.json", "GET /schemas", "GET /schemas/",
	"GET /assets/", "GET /favicon.ico", "GET /licences.txt", "GET /mcp/tools.json", "GET /mcp/server-card", "GET /.well-known/mcp.json", "GET /.well-known/ai-catalog.json"}

// StartingHandler answers in the place of a server that is not there yet, or no more: /healthz and documents as the server does,
// and everything else with STARTING and what is missing.
func StartingHandler(missing func() map[string][]string, documents http.Handler) http.Handler {
	mux := http.NewServeMux()
	for _, path := range documentPaths {
		mux.Handle(path, documents)
	}
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(fiber.HeaderContentType, contentJSON)
		w.Header().Set(fiber.HeaderCacheControl, "no-store")
		_, _ = w.Write([]byte(healthy))
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		parts := missing()
		if len(parts) == 0 {
			parts = map[string][]string{"server": {"starting"}}
		}
		shown, id, h := notReady(parts), rand.Text(), w.Header()
		if r.Method == http.MethodGet && strings.Contains(r.Header.Get(fiber.HeaderAccept), "text/html") {
			startingPage(w, shown)
			return
		}
		h.Set(fiber.HeaderContentType, contentJSON)
		h.Set(fiber.HeaderCacheControl, "no-store")
		h.Set("X-Request-Id", id)
		h.Set(fiber.HeaderRetryAfter, strconv.Itoa(shown.RetryAfter))
		w.WriteHeader(shown.Status)
		_, _ = w.Write(shown.body(id))
	})
	return mux
}

// startingPage is what a browser gets meanwhile; it asks again by itself.
func startingPage(w http.ResponseWriter, shown *Error) {
	h := w.Header()
	h.Set(fiber.HeaderContentType, "text/html; charset=utf-8")
	h.Set(fiber.HeaderContentSecurityPolicy, "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	h.Set(fiber.HeaderXContentTypeOptions, "nosniff")
	h.Set(fiber.HeaderCacheControl, "no-store")
	h.Set("Refresh", "1")
	w.WriteHeader(shown.Status)
	fmt.Fprint(w, `<!doctype html><html lang="en"><meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">`+
		`<title>Starting · Marketlog</title><h1>Marketlog is starting</h1><p>This page is loaded again every second until it is there. It waits for:</p><ul>`)
	for _, part := range slices.Sorted(maps.Keys(shown.Fields)) {
		fmt.Fprintf(w, "<li>%s: %s</li>", html.EscapeString(part), html.EscapeString(strings.Join(shown.Fields[part], ", ")))
	}
	fmt.Fprint(w, `</ul><p>Meanwhile: <a href="/docs">guides</a>, <a href="/docs/api">reference of the API</a>.</p>`)
}

// After lets endpoints answer 503 STARTING as long as one of the inputs that they read says what it waits for. A process
// that starts reads the ends of its topics, the oldest records first: answers from among them would be older than those that
// were given before the start.
func After(endpoints []Endpoint, waiting ...func() string) []Endpoint {
	for i := range endpoints {
		handle := endpoints[i].Handle
		endpoints[i].Handle = func(ctx context.Context, r *Request) (Answer, error) {
			for _, wait := range waiting {
				if why := wait(); why != "" {
					return Answer{}, Starting(why)
				}
			}
			return handle(ctx, r)
		}
	}
	return endpoints
}

// Settled is a wait for what is made of topics: until they were read, as waiting reports, and then until what was read is
// visible to every reader. Settle is called at least once, and may be called again.
func Settled(settle func(), waiting ...func() string) func() string {
	var settled atomic.Bool
	return func() string {
		if settled.Load() {
			return ""
		}
		for _, wait := range waiting {
			if why := wait(); why != "" {
				return why
			}
		}
		settle()
		settled.Store(true)
		return ""
	}
}

// Documents answers requests that another server has accepted, as this one answers them. It is for what depends on nothing but declarations,
// of a server that does not run.
func (s *Server) Documents() http.Handler {
	// The application's own handler: what wraps it when it runs is of connections.
	handle := s.app.Handler()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request fasthttp.Request
		request.Header.SetMethod(r.Method)
		request.SetRequestURI(r.URL.RequestURI())
		request.Header.SetHost(r.Host)
		for name, values := range r.Header {
			for _, value := range values {
				request.Header.Add(name, value)
			}
		}
		var ctx fasthttp.RequestCtx
		ctx.Init2(acceptedConn{remote: r.RemoteAddr}.of(r.TLS), nil, false)
		request.CopyTo(&ctx.Request)
		handle(&ctx)
		for name, value := range ctx.Response.Header.All() {
			if string(name) != "Connection" { // which is the accepting server's
				w.Header().Add(string(name), string(value))
			}
		}
		body := ctx.Response.Body()
		w.Header().Set(fiber.HeaderContentLength, strconv.Itoa(len(body)))
		w.WriteHeader(ctx.Response.StatusCode())
		if r.Method != http.MethodHead {
			_, _ = w.Write(body) // a client that has gone
		}
	})
}

// acceptedConn is what a handler may ask of a connection that another server has.
type acceptedConn struct {
	net.Conn
	remote string
}

// of is the connection, encrypted where it is.
func (c acceptedConn) of(state *tls.ConnectionState) net.Conn {
	if state == nil {
		return c
	}
	return encryptedConn{c, *state}
}

// RemoteAddr is who connected; without an address, where that is none of TCP.
func (c acceptedConn) RemoteAddr() net.Addr {
	addr, err := net.ResolveTCPAddr("tcp", c.remote)
	if err != nil {
		return &net.TCPAddr{}
	}
	return addr
}

// LocalAddr is not known.
func (acceptedConn) LocalAddr() net.Addr { return &net.TCPAddr{} }

// Read has nothing: the request was read.
func (acceptedConn) Read([]byte) (int, error) { return 0, io.EOF }

// encryptedConn is one over TLS, by which handlers tell the address of this server.
type encryptedConn struct {
	acceptedConn
	state tls.ConnectionState
}

func (encryptedConn) Handshake() error { return nil }

func (c encryptedConn) ConnectionState() tls.ConnectionState { return c.state }
