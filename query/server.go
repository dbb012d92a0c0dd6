package query

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"
	"github.com/marketlog/marketlog/query/limits"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"
	"golang.org/x/sync/errgroup"
)

const (
	bodyMax = 64 << 10
	// headersMax bounds a request's line and headers. An open stream keeps as much: the library holds on to
	// the buffer of its handshake.
	headersMax = 8 << 10
	// readTimeout bounds the arrival of one request, and so how long a connection that only opens costs anything.
	readTimeout  = 10 * time.Second
	writeTimeout = 30 * time.Second
	idleTimeout  = 60 * time.Second
)

// WriteBuffer is how long an answer with its headers may be, in bytes, to be sent by one call of the system, which costs as
// much as all the rest of a request. The default pages of most lists fit; an open connection keeps the buffer.
const WriteBuffer = 8 << 10

// Config is the server's.
type Config struct {
	// Listen is the host:port of the API.
	Listen string
	// Auth is who is served.
	Auth AuthMode
	// TrustedProxies are addresses and networks whose X-Forwarded-For is believed.
	TrustedProxies []string
	// CORS lets pages of other origins read the API, with keys of their own; never where none is asked for.
	CORS bool
	// Drain is how long requests under way may take once the server stops.
	Drain time.Duration
	// Connections bounds open connections.
	Connections int
	// Waiting bounds the requests that wait for a store at one time; more are refused as overload,
	// since a queue would only make all of them late.
	Waiting int
	// Patience bounds one such request.
	Patience time.Duration
}

// DefaultConfig listens on loopback only.
func DefaultConfig() Config {
	return Config{Listen: "127.0.0.1:8080", Auth: AuthRequired, Drain: 8 * time.Second,
		Connections: 65_536, Waiting: 256, Patience: 10 * time.Second}
}

// Validate names all faults at once.
func (c Config) Validate() error {
	var faults []error
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		faults = append(faults, fmt.Errorf("listen: %q is not host:port", c.Listen))
	}
	if !slices.Contains([]AuthMode{AuthRequired, AuthOptional, AuthOpen}, c.Auth) {
		faults = append(faults, fmt.Errorf("auth: %q must be required, optional or open", c.Auth))
	}
	if c.Auth == AuthOpen && !loopback(c.Listen) {
		faults = append(faults, errors.New("auth: open is allowed on a loopback address only"))
	}
	if _, err := ParseProxies(c.TrustedProxies); err != nil {
		faults = append(faults, fmt.Errorf("trusted_proxies: %w", err))
	}
	if c.Drain <= 0 || c.Patience <= 0 {
		faults = append(faults, errors.New("drain, patience: must be more than 0"))
	}
	if c.Connections < 1 || c.Waiting < 1 {
		faults = append(faults, errors.New("connections, waiting: must be at least 1"))
	}
	return errors.Join(faults...)
}

func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}

// Readiness is one thing that the server waits for before it calls itself ready.
type Readiness struct {
	Name string
	// Waiting names what is missing; empty when nothing is.
	Waiting func() string
}

// Deps is what the server is put together from.
type Deps struct {
	Keys Keyring
	// Sessions are asked about requests without a key; nil: only keys sign in.
	Sessions Sessions
	Limiter  *limits.Limiter
	// Plans by name; DefaultPlans or a changed copy.
	Plans     map[string]limits.Plan
	Endpoints []Endpoint
	// Mount adds routes that are not endpoints (sockets, pages) ahead of all others, which can ask
	// the server who is served; nil for none.
	Mount func(fiber.Router, *Server)
	// Mounted describes those of these routes that belong into the OpenAPI document.
	Mounted []*huma.Operation
	// Ready is all that must be ready in addition to the keys.
	Ready []Readiness
	// Now is the clock by which ages are taken; on an accelerated simulator, its clock.
	Now func() time.Time
	// Refresh is called before the time of a request is taken, and makes what its first reader would make: else the position of the answer would lie before
	// what it was made of. Nil for nothing.
	Refresh func()
	// Replica is the name of the process in positions of its answers, the one that it records under what it served; empty for one that records nothing.
	Replica string
	Metrics *prometheus.Registry
	Log     *slog.Logger
	// Listener is Config.Listen, already open; nil lets the server open it.
	Listener net.Listener
	// TLS encrypts what is served on the listener; nil: in the clear.
	TLS *tls.Config
	// Version of the service, for the OpenAPI document.
	Version string
}

// Server answers the API. Safe for concurrent use.
type Server struct {
	cfg     Config
	deps    Deps
	plans   map[string]*limits.Plan
	app     *fiber.App
	openAPI *Body
	// tools are the endpoints that tools ask, by the tools' names; declared is what they declare.
	tools    map[string]*compiled
	declared []ToolDeclaration
	// operations are all endpoints, by their IDs.
	operations map[string]*compiled
	// paths are those of all operations, sorted.
	paths    []string
	metrics  *metrics
	guard    *authThrottle
	trusted  []netip.Prefix
	waiting  chan struct{}
	draining atomic.Bool
	listener net.Listener
}

// NewServer puts a server together; Run starts it.
func NewServer(cfg Config, deps Deps) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configuring the query server: %w", err)
	}
	m, err := newMetrics(deps.Metrics)
	if err != nil {
		return nil, fmt.Errorf("registering metrics: %w", err)
	}
	s := &Server{cfg: cfg, deps: deps, listener: deps.Listener, plans: map[string]*limits.Plan{}, metrics: m, guard: newGuard(), waiting: make(chan struct{}, cfg.Waiting)}
	if s.trusted, err = ParseProxies(cfg.TrustedProxies); err != nil {
		return nil, fmt.Errorf("configuring the query server: %w", err)
	}
	for name, p := range deps.Plans {
		p.Name = name
		s.plans[name] = &p
	}
	if s.plans[limits.PlanFree] == nil || s.plans[limits.PlanPro] == nil {
		return nil, errors.New("configuring the query server: the plans free and pro are needed")
	}
	endpoints := make([]*compiled, len(deps.Endpoints))
	for i, e := range deps.Endpoints {
		if endpoints[i], err = compile(e); err != nil {
			return nil, err
		}
		endpoints[i].metrics = m.operation(e.ID)
	}
	refuseEssential(endpoints)
	s.operations = byID(endpoints)
	for _, e := range endpoints {
		s.paths = append(s.paths, e.Path)
	}
	for _, op := range deps.Mounted {
		s.paths = append(s.paths, op.Path)
	}
	slices.Sort(s.paths)
	if s.tools, s.declared, err = declareTools(endpoints); err != nil {
		return nil, err
	}
	if s.openAPI, err = describe(endpoints, deps.Mounted, deps.Version); err != nil {
		return nil, err
	}
	s.app = fiber.New(fiber.Config{
		AppName:               "marketlog",
		DisableStartupMessage: true,
		CaseSensitive:         true,
		BodyLimit:             bodyMax,
		ReadBufferSize:        headersMax,
		WriteBufferSize:       WriteBuffer,
		ReadTimeout:           readTimeout,
		WriteTimeout:          writeTimeout,
		IdleTimeout:           idleTimeout,
		Concurrency:           cfg.Connections,
		ErrorHandler: func(c *fiber.Ctx, err error) error {
			if routed := (*fiber.Error)(nil); errors.As(err, &routed) && routed.Code == http.StatusNotFound {
				err = s.noRoute(c.Path())
			}
			status := s.fail(c.Context(), err)
			if conn, ok := c.Context().Conn().(*lazyConn); ok && (status == http.StatusRequestEntityTooLarge || status == http.StatusRequestHeaderFieldsTooLarge) {
				conn.unread.Store(true)
			}
			m.requests.WithLabelValues("none", strconv.Itoa(status)).Inc()
			return nil
		},
	})
	if deps.Mount != nil {
		deps.Mount(s.app, s)
	}
	for _, e := range order(endpoints) {
		s.app.Add(e.Method, e.routePath(), s.handler(e))
	}
	s.app.Get("/healthz", s.healthz)
	s.app.Get("/readyz", s.readyz)
	s.app.Get("/openapi.json", s.document)
	s.wrap()
	return s, nil
}

// wrap answers HEAD as GET without its body, and methods that the router does not know.
func (s *Server) wrap() {
	server := s.app.Server()
	routed := server.Handler
	server.Handler = func(ctx *fasthttp.RequestCtx) {
		ctx.Response.Header.Set(headerRequestID, rand.Text())
		// The library takes any digit for a version.
		if protocol := ctx.Request.Header.Protocol(); !bytes.HasPrefix(protocol, []byte("HTTP/1.")) {
			s.fail(ctx, &Error{Status: http.StatusHTTPVersionNotSupported, Code: "unsupported_version", Message: "only HTTP/1.1 is supported"})
			ctx.SetConnectionClose()
			return
		}
		// With both lengths the message ends where the chunks do, and a proxy may have seen it end elsewhere
		// (RFC 9112, 6.3): what follows on this connection is believed no more.
		if ctx.Request.Header.ContentLength() == -1 && twoLengths(ctx.Request.Header.RawHeaders()) {
			ctx.SetConnectionClose()
		}
		if s.crossing(ctx) {
			if preflight(ctx) {
				return
			}
			defer share(ctx)
		}
		if ctx.IsGet() {
			routed(ctx)
			return
		}
		if ctx.IsHead() {
			ctx.Request.Header.SetMethod(http.MethodGet)
			routed(ctx)
			ctx.Response.SkipBody = true
			return
		}
		if !slices.Contains(fiber.DefaultMethods, string(ctx.Method())) {
			s.fail(ctx, fiber.ErrMethodNotAllowed)
			ctx.Response.Header.Set(fiber.HeaderAllow, "GET, HEAD")
			return
		}
		routed(ctx)
		if allow := ctx.Response.Header.Peek(fiber.HeaderAllow); bytes.HasPrefix(allow, []byte(http.MethodGet)) {
			ctx.Response.Header.Set(fiber.HeaderAllow, "GET, HEAD"+string(allow[len(http.MethodGet):]))
		}
	}
}

// twoLengths reports whether the headers of a chunked message have a Content-Length too.
func twoLengths(headers []byte) bool {
	for line := range bytes.Lines(headers) {
		if name, _, ok := bytes.Cut(line, []byte{':'}); ok && bytes.EqualFold(name, []byte(fiber.HeaderContentLength)) {
			return true
		}
	}
	return false
}

// Bind opens the listener, so that Addr has the port before Run; otherwise Run opens it.
func (s *Server) Bind() error {
	if s.listener != nil {
		return nil
	}
	listener, err := net.Listen("tcp", s.cfg.Listen)
	if err != nil {
		return fmt.Errorf("listening on %s: %w", s.cfg.Listen, err)
	}
	s.listener = listener
	return nil
}

// Addr is where the server listens once Bind succeeded.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Run answers requests until the context ends, then finishes those under way.
func (s *Server) Run(ctx context.Context) error {
	if err := s.Bind(); err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		if err := s.app.Listener(lazyListener{s.listener, s.deps.TLS}); err != nil {
			return fmt.Errorf("serving on %s: %w", s.Addr(), err)
		}
		return nil
	})
	g.Go(func() error {
		<-ctx.Done()
		s.draining.Store(true)
		err := s.app.ShutdownWithTimeout(s.cfg.Drain)
		// A server that is stopped before it serves has no listener yet to close.
		if closed := s.listener.Close(); closed != nil && !errors.Is(closed, net.ErrClosed) {
			err = errors.Join(err, closed)
		}
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("draining: %w", err)
		}
		return nil
	})
	return g.Wait()
}

// Waiting reports what the server is not ready for, by name; empty when it is.
func (s *Server) Waiting() map[string][]string {
	waiting := map[string][]string{}
	if s.draining.Load() {
		waiting["server"] = []string{"draining"}
	}
	if s.cfg.Auth != AuthOpen {
		if why := s.deps.Keys.Waiting(); why != "" {
			waiting["keys"] = []string{why}
		}
	}
	for _, r := range s.deps.Ready {
		if why := r.Waiting(); why != "" {
			waiting[r.Name] = append(waiting[r.Name], why)
		}
	}
	return waiting
}

func (s *Server) healthz(c *fiber.Ctx) error {
	c.Set(fiber.HeaderCacheControl, "no-store")
	c.Context().Response.Header.SetContentType(contentJSON)
	return c.SendString(healthy)
}

func (s *Server) readyz(c *fiber.Ctx) error {
	if waiting := s.Waiting(); len(waiting) > 0 {
		return notReady(waiting)
	}
	c.Set(fiber.HeaderCacheControl, "no-store")
	c.Context().Response.Header.SetContentType(contentJSON)
	return c.SendString(`{"status":"ready"}`)
}

// Document is the OpenAPI document of all that is served.
func (s *Server) Document() *Body { return s.openAPI }

func (s *Server) document(c *fiber.Ctx) error {
	s.SendPublic(c.Context(), s.openAPI)
	return nil
}
