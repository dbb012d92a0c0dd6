package sql

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/limits"
)

// Path is where statements are answered.
const Path = "/api/v1/sql"

// What one statement may use. Time and Memory are for whoever makes the Engine.
const (
	Time   = 10 * time.Second
	Memory = 512 << 20
	// Rows are those of an answer that is passed on as it comes.
	Rows = 5_000_000
	// jsonRows and jsonBytes bound an answer in JSON, which is held until it is whole: a fault in its middle then has its status.
	jsonRows  = 100_000
	jsonBytes = 16 << 20
	// atOnce are the statements of one budget that may run at the same time.
	atOnce = 2
)

// Engine runs statements as ClickHouse's HTTP interface does, each to its end: see sqlport.Reader.Ask.
type Engine interface {
	Ask(ctx context.Context, client string, parameters url.Values, statement string) (*http.Response, error)
}

// Gate checks who is served, and counts.
type Gate interface {
	Authenticate(ctx *fasthttp.RequestCtx, now time.Time) (query.Caller, error)
	RequirePlan(ctx *fasthttp.RequestCtx, who query.Caller, needs limits.Feature, now time.Time) error
	Count(ctx *fasthttp.RequestCtx, who query.Caller, now time.Time) error
}

// Unit answers statements. Safe for concurrent use.
type Unit struct {
	engine func() Engine

	mu      sync.Mutex
	running map[string]int // statements, by budget
}

// New makes the unit. engine is asked at each statement; it returns nil where this process runs none.
func New(engine func() Engine) *Unit { return &Unit{engine: engine, running: map[string]int{}} }

// Served reports whether this process runs statements.
func (u *Unit) Served() bool { return u.engine() != nil }

// Mount adds the route.
func (u *Unit) Mount(router fiber.Router, gate Gate) {
	router.Post(Path, func(c *fiber.Ctx) error { return u.serve(c, gate) })
}

func (u *Unit) serve(c *fiber.Ctx, gate Gate) error {
	ctx := c.Context()
	now := ctx.Time()
	if foreign(ctx) {
		return &query.Error{Status: http.StatusForbidden, Code: query.CodeForbidden, Message: "web pages of other sites need a key: send it as Authorization: Bearer KEY"}
	}
	who, err := gate.Authenticate(ctx, now)
	if err != nil {
		return err
	}
	if err := gate.RequirePlan(ctx, who, limits.FeatureSQL, now); err != nil {
		return err
	}
	if err := gate.Count(ctx, who, now); err != nil {
		return err
	}
	asks, err := read(ctx)
	if err != nil {
		return err
	}
	engine := u.engine()
	if engine == nil {
		return query.NotFound("this process runs no SQL: it holds no tables, and has no sql.user by which to ask the server that does")
	}
	if !u.enter(who.Grant.Budget) {
		return &query.Error{Status: http.StatusTooManyRequests, Code: query.CodeRateLimit, RetryAfter: 1,
			Message: strconv.Itoa(atOnce) + " statements of this key run already; ask again when one has ended"}
	}
	streamed := false
	defer func() {
		if !streamed {
			u.leave(who.Grant.Budget)
		}
	}()
	// The library notifies nobody that a client has gone, until it writes: the statement's own time is the bound.
	response, err := engine.Ask(context.Background(), who.Grant.Budget, asks.settings(), asks.statement)
	if err != nil {
		return fmt.Errorf("asking the engine: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		defer response.Body.Close()
		text, err := io.ReadAll(io.LimitReader(response.Body, maxFault))
		if err != nil {
			return fmt.Errorf("reading why a statement was refused: %w", err)
		}
		return refusal(asks.statement, string(text), response.StatusCode, response.Header.Get("X-ClickHouse-Exception-Code"))
	}
	if got := response.Header.Get("X-ClickHouse-Format"); got != "" && got != asks.format.name {
		_ = response.Body.Close()
		return query.Invalid("query", "names the format %s; leave FORMAT out and name it in format: %s", got, formatNames)
	}
	h := &ctx.Response.Header
	h.Set(fiber.HeaderCacheControl, "no-store")
	h.Set(fiber.HeaderXContentTypeOptions, "nosniff")
	h.SetContentType(asks.format.contentType)
	if asks.form || asks.format.name != formatJSON {
		h.Set(fiber.HeaderContentDisposition, `attachment; filename="marketlog.`+asks.format.ending+`"`)
	}
	if asks.format.name != formatJSON {
		ctx.SetBodyStream(&streamedBody{ReadCloser: response.Body, left: func() { u.leave(who.Grant.Budget) }}, -1)
		streamed = true
		return nil
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, jsonBytes+1))
	switch {
	case len(body) > jsonBytes:
		return tooLong()
	case err != nil:
		return brokenOff(asks.statement, body, response.Header.Get("X-ClickHouse-Exception-Tag"), err)
	}
	ctx.SetBody(body)
	return nil
}

// foreign reports whether a web page of another site sent a request without a key. A statement is a text, or comes from a form, which
// browsers send anywhere without asking: where no key is asked for, any page could have this machine work.
func foreign(ctx *fasthttp.RequestCtx) bool {
	h := &ctx.Request.Header
	if len(h.Peek(fiber.HeaderAuthorization)) > 0 {
		return false
	}
	if site := string(h.Peek("Sec-Fetch-Site")); site != "" && site != "same-origin" && site != "none" {
		return true
	}
	origin := h.Peek(fiber.HeaderOrigin)
	if len(origin) == 0 {
		return false
	}
	_, host, _ := bytes.Cut(origin, []byte("://"))
	return !bytes.EqualFold(host, ctx.Host())
}

func (u *Unit) enter(budget string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.running[budget] >= atOnce {
		return false
	}
	u.running[budget]++
	return true
}

func (u *Unit) leave(budget string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.running[budget]--; u.running[budget] == 0 {
		delete(u.running, budget)
	}
}

// streamedBody is an answer that is passed on as it comes. The server closes it at its end, or when its reader has gone.
type streamedBody struct {
	io.ReadCloser
	left func()
	once sync.Once
}

// Close ends the statement.
func (b *streamedBody) Close() error {
	defer b.once.Do(b.left)
	return b.ReadCloser.Close()
}

// brokenOff is for an answer that began and failed: what the engine wrote about it is at its end.
func brokenOff(statement string, body []byte, tag string, err error) error {
	const mark = "__exception__"
	at := bytes.LastIndex(body, []byte("\r\n"+mark+"\r\n"+tag+"\r\n"))
	if tag == "" || at < 0 {
		return errors.Join(errors.New("an answer of the engine broke off"), err)
	}
	text := string(body[at+len(mark)+len(tag)+6:])
	return refusal(statement, text, http.StatusInternalServerError, codeIn(text))
}
