package pages

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/marketlog/marketlog/query"
)

// Config is what the pages know of where they are served.
type Config struct {
	// Listen is the host:port of the server.
	Listen string
	// Simulated means that the numbers are invented; the pages say so.
	Simulated bool
	// Automatic means that there is nothing to keep from anybody at this machine: visitors from it get a session without asking,
	// if Listen is a loopback address.
	Automatic bool
	// Hosts are names, without a port, under which a proxy publishes the server over TLS.
	Hosts []string
	// Version of the service.
	Version string
}

// Keys looks up what is behind a session.
type Keys interface {
	// Grant reports what the key with an id grants; false for one that is unknown, expired or revoked.
	Grant(id string, now time.Time) (query.Grant, bool)
	// Waiting is why keys cannot be checked yet; empty when they can.
	Waiting() string
}

// Deps is what the pages are made with.
type Deps struct {
	// Pepper is the secret of the installation, which sessions are signed with.
	Pepper []byte
	Keys   Keys
	Links  *Links
	// Docs are the guides, as NAME.md; nil: none.
	Docs fs.FS
	// SQL reports whether this process answers statements; nil: it does not.
	SQL func() bool
}

// Unit serves the pages. Safe for concurrent use.
type Unit struct {
	cfg   Config
	deps  Deps
	names map[string]bool
	// port is the server's own; local means that it is reached from this machine only, whose people need not sign in.
	port  string
	local bool

	assets        map[string]*asset
	manifest      manifest
	server        *query.Server
	table         tableCache
	guides        *guides
	samples       []sample
	parameterized []parameterizedView
	// reference lists all operations, made at the first look.
	reference func() []operationGroup
}

// New makes the pages; Mount serves them.
func New(cfg Config, deps Deps) (*Unit, error) {
	hostname, port, err := net.SplitHostPort(cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("configuring the pages: listen: %q is not host:port", cfg.Listen)
	}
	u := &Unit{cfg: cfg, deps: deps, names: map[string]bool{}, port: port}
	for _, name := range cfg.Hosts {
		u.names[strings.ToLower(name)] = true
	}
	ip := net.ParseIP(hostname)
	u.local = cfg.Automatic && (hostname == "localhost" || ip != nil && ip.IsLoopback())
	if u.assets, u.manifest, err = readAssets(); err != nil {
		return nil, err
	}
	if u.guides, err = readGuides(deps.Docs); err != nil {
		return nil, err
	}
	if u.samples, err = readSamples(deps.Docs); err != nil {
		return nil, err
	}
	u.parameterized, err = readParameterized()
	return u, err
}

// openPath is where links lead.
const openPath = "/open/"

// Mount adds the routes of the pages, whose numbers the server answers.
func (u *Unit) Mount(router fiber.Router, server *query.Server) {
	u.server = server
	u.reference = sync.OnceValue(func() []operationGroup { return readReference(server.Document().JSON()) })
	router.Get("/", u.sendPrices)
	router.Get("/coins/:id", u.sendCoin)
	router.Get("/rates", u.sendRates)
	router.Get("/rates/:symbol", u.sendRate)
	router.Get("/stablecoins", u.sendStablecoins)
	router.Get("/market", u.sendMarket)
	router.Get("/sql", u.sendSQL)
	router.Get("/system", u.sendSystem)
	router.Get(docsPath, u.sendDocs)
	router.Get(docsPath+"/api", u.sendReference)
	router.Get(docsPath+"/*", u.sendGuideByName)
	router.Get("/llms.txt", u.sendLLMs)
	router.Get("/llms-full.txt", u.sendLLMsFull)
	router.Get("/assets/:name", u.sendAsset)
	router.Get("/favicon.ico", u.sendIcon)
	router.Get("/licences.txt", u.sendLicences)
	router.Get(openPath+":code", u.open)
	router.Post("/session", u.signIn)
	router.Delete("/session", u.signOut)
}

// open begins a session by a one-time link and leads to the prices.
func (u *Unit) open(c *fiber.Ctx) error {
	ctx := c.Context()
	u.secure(ctx)
	if u.hostOf(ctx).kind == foreign {
		return errForeignHost
	}
	if !u.deps.Links.take(strings.ToUpper(c.Params("code"))) {
		return u.show(ctx, http.StatusGone, view{Page: pageSignIn, Title: "Link used up", Notice: "This link was used already, or is older than ten minutes. `marketlog open` makes another."})
	}
	id := encoding.EncodeToString(u.sign([]byte(c.Params("code")))[:9])
	u.begin(ctx, session{kind: ofLink, id: id, expires: ctx.Time().Add(sessionLife)})
	return c.Redirect("/", http.StatusSeeOther)
}

// wantsPage reports whether a browser asks, rather than a program that prints what it is answered.
func wantsPage(ctx *fasthttp.RequestCtx) bool {
	return bytes.Contains(ctx.Request.Header.Peek(fiber.HeaderAccept), []byte("text/html"))
}

// begun is a request for a page by a visitor who may see it.
type begun struct {
	ctx *fasthttp.RequestCtx
	who query.Caller
	now time.Time
}

// route begins the answer to a request for a page; it answers by itself, with ok false, where the visitor has to sign in first.
func (u *Unit) route(c *fiber.Ctx, title string) (r begun, ok bool, err error) {
	ctx := c.Context()
	u.secure(ctx)
	ctx.Response.Header.Set(fiber.HeaderVary, "Accept, Accept-Encoding, Authorization, Cookie")
	r = begun{ctx: ctx, now: ctx.Time()}
	r.who, err = u.visitor(ctx, r.now)
	var shown *query.Error
	switch {
	case err == nil:
		return r, true, nil
	case !errors.As(err, &shown):
		return r, false, err
	case !wantsPage(ctx):
		return r, false, u.sendRefusalText(ctx, shown)
	case shown.Status == http.StatusUnauthorized:
		return r, false, u.show(ctx, http.StatusUnauthorized, view{Page: pageSignIn, Title: title})
	}
	return r, false, u.showError(ctx, shown)
}

// ask asks for an answer of the API and decodes it into shape; body is the answer as it is.
func (u *Unit) ask(r begun, operation string, params map[string]string, shape any) (body json.RawMessage, err error) {
	answer, err := u.server.Ask(r.ctx, r.who, operation, params, r.now)
	if err != nil {
		return nil, err
	}
	body = answer.Body.JSON()
	if err := json.Unmarshal(body, shape); err != nil {
		return nil, fmt.Errorf("reading the answer of %s: %w", operation, err)
	}
	return body, nil
}

// optional passes over what a page can be without: an answer that is not there (yet), or that the plan does not allow.
func optional(err error) error {
	var shown *query.Error
	if errors.As(err, &shown) {
		return nil
	}
	return err
}

// fail answers for a page whose numbers cannot be had.
func (u *Unit) fail(ctx *fasthttp.RequestCtx, err error) error {
	var shown *query.Error
	if !errors.As(err, &shown) {
		return err
	}
	if !wantsPage(ctx) {
		return u.sendRefusalText(ctx, shown)
	}
	return u.showError(ctx, shown)
}

func (u *Unit) showError(ctx *fasthttp.RequestCtx, shown *query.Error) error {
	v := view{Page: pageNotice, Title: http.StatusText(shown.Status), Notice: shown.Message}
	if shown.RetryAfter > 0 {
		ctx.Response.Header.Set(fiber.HeaderRetryAfter, strconv.Itoa(shown.RetryAfter))
	}
	if shown.Status == http.StatusServiceUnavailable {
		v.Title = "Starting"
		ctx.Response.Header.Set("Refresh", strconv.Itoa(max(2, shown.RetryAfter)))
	}
	return u.show(ctx, shown.Status, v)
}

// param returns a parameter of the path, decoded.
func param(c *fiber.Ctx, name string) string {
	text := strings.Clone(c.Params(name))
	if decoded, err := url.PathUnescape(text); err == nil {
		return decoded
	}
	return text
}
