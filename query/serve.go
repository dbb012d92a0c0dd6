package query

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/marketlog/marketlog/query/limits"
	"github.com/marketlog/marketlog/query/views"
	"github.com/valyala/fasthttp"
)

const contentJSON = "application/json"

// Names and values that every hot answer carries, in the form that the server stores them: spelling
// a name canonically costs more than the rest of setting a header.
var (
	headerCache     = []byte(fiber.HeaderCacheControl)
	headerTag       = []byte("Etag")
	headerVary      = []byte(fiber.HeaderVary)
	headerLimit     = []byte("X-Ratelimit-Limit")
	headerRemaining = []byte("X-Ratelimit-Remaining")
	headerReset     = []byte("X-Ratelimit-Reset")
	headerPosition  = []byte("X-Position")
	valueVary       = []byte("Accept-Encoding, Authorization")
)

var errOverloaded = &Error{Status: http.StatusServiceUnavailable, Code: CodeOverloaded,
	Message: "too many requests are waiting for a store; try again", RetryAfter: 1}

var requests = sync.Pool{New: func() any { return new(Request) }}

// handler is an endpoint's route: key, plan, limit, validation, answer.
func (s *Server) handler(e *compiled) fiber.Handler {
	return func(c *fiber.Ctx) error {
		ctx := c.Context()
		started := ctx.Time()
		status := s.serve(c, ctx, e, started)
		e.metrics.observe(status, time.Since(started))
		return nil
	}
}

func (s *Server) serve(c *fiber.Ctx, ctx *fasthttp.RequestCtx, e *compiled, started time.Time) int {
	who, err := s.authenticate(ctx, started)
	if err != nil {
		return s.fail(ctx, err)
	}
	args := fiberArguments{c: c}
	class := e.Class
	if e.costly != "" && !args.bare() {
		class = e.class(args.has(e.costly), args.query(e.costly))
	}
	if !who.Plan.Allows(e.Needs) {
		s.setLimitHeaders(ctx, s.deps.Limiter.Peek(who.Grant.Budget, who.Plan, class, started))
		return s.fail(ctx, s.planRequired(who.Plan, e.Needs))
	}
	var verdict limits.Decision
	if e.Uncounted {
		s.setLimitHeaders(ctx, s.deps.Limiter.Peek(who.Grant.Budget, who.Plan, class, started))
	} else if verdict, err = s.admit(ctx, who, class, started); err != nil {
		return s.fail(ctx, err)
	}
	if e.Method == http.MethodPost {
		if args.fields, err = jsonFields(ctx); err != nil {
			return s.fail(ctx, err)
		}
	}
	answer, err := s.answer(ctx, e, who, args)
	if err != nil {
		status := s.fail(ctx, err)
		if status >= http.StatusInternalServerError && !e.Uncounted {
			s.deps.Limiter.Undo(who.Grant.Budget, who.Plan, class, verdict)
		}
		return status
	}
	return s.send(ctx, answer, e.cache)
}

// planRequired refuses what a plan does not include, and names those that do.
func (s *Server) planRequired(plan *limits.Plan, needs limits.Feature) *Error {
	message := "the plan " + plan.Name + " does not include this operation"
	if others := limits.PlansWith(s.plans, needs); len(others) > 0 {
		message += "; these do: " + strings.Join(others, ", ")
	}
	return &Error{Status: http.StatusPaymentRequired, Code: CodePlanRequired, Message: message}
}

// answer checks the parameters and calls the endpoint. A panic in it costs this request only.
func (s *Server) answer(ctx *fasthttp.RequestCtx, e *compiled, who Caller, args arguments) (a Answer, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in %s: %v\n%s", e.ID, p, debug.Stack())
		}
	}()
	r := requests.Get().(*Request)
	defer requests.Put(r)
	if s.deps.Refresh != nil {
		s.deps.Refresh()
	}
	*r = Request{Now: s.deps.Now(), Plan: who.Plan, Budget: who.Grant.Budget, endpoint: e, values: r.values}
	if err := e.parse(args, r); err != nil {
		return Answer{}, err
	}
	if e.planned {
		if err := r.withinPlan(); err != nil {
			return Answer{}, err
		}
	}
	at, asked := r.position(s.deps.Replica)
	if e.Hot && !(e.stored && r.stored()) {
		a, err = e.Handle(ctx, r)
		return a.of(at), err
	}
	select {
	case s.waiting <- struct{}{}:
	default:
		return Answer{}, errOverloaded
	}
	defer func() { <-s.waiting }()
	// The request's own context ends when the server begins to drain, but what is under way is finished.
	patient, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.Patience)
	defer cancel()
	if asked && at.Replica != "" {
		patient = views.OfReplica(patient, at.Replica)
	}
	a, err = e.Handle(patient, r)
	return a.of(at), err
}

// send writes a success, or says that the client's copy still holds.
func (s *Server) send(ctx *fasthttp.RequestCtx, a Answer, cache []byte) int {
	h := &ctx.Response.Header
	h.SetContentType(contentJSON)
	h.SetCanonical(headerCache, cache)
	h.SetCanonical(headerVary, valueVary)
	var position [128]byte
	h.SetCanonical(headerPosition, a.Position.Append(position[:0]))
	if a.Simulated {
		h.Set("X-Data-Source", "simulated")
	}
	tag, body := a.Body.tag, a.Body.plain
	if len(body) >= gzipFrom && ctx.Request.Header.HasAcceptEncoding("gzip") {
		tag, body = a.Body.gzipTag, a.Body.gzip()
		h.Set(fiber.HeaderContentEncoding, "gzip")
	}
	if ctx.IsPost() {
		// Nobody keeps what answers a body.
		ctx.Response.SetBodyRaw(body)
		return http.StatusOK
	}
	h.SetCanonical(headerTag, tag)
	if match := ctx.Request.Header.Peek(fiber.HeaderIfNoneMatch); len(match) > 0 && matches(match, tag) {
		h.Del(fiber.HeaderContentEncoding)
		ctx.Response.SetStatusCode(http.StatusNotModified)
		ctx.Response.ResetBody()
		return http.StatusNotModified
	}
	ctx.Response.SetBodyRaw(body)
	return http.StatusOK
}

// matches reports whether an If-None-Match names a tag; as RFC 9110 wants, weakly.
func matches(header, tag []byte) bool {
	for item := range bytes.SplitSeq(header, []byte(",")) {
		item = bytes.TrimPrefix(bytes.TrimSpace(item), []byte("W/"))
		if bytes.Equal(item, tag) || string(item) == "*" {
			return true
		}
	}
	return false
}

// setLimitHeaders writes the state of the tightest window.
func (s *Server) setLimitHeaders(ctx *fasthttp.RequestCtx, v limits.Decision) {
	if v.Limit == 0 {
		return
	}
	var digits [20]byte
	h := &ctx.Response.Header
	h.SetCanonical(headerLimit, strconv.AppendInt(digits[:0], v.Limit, 10))
	h.SetCanonical(headerRemaining, strconv.AppendInt(digits[:0], v.Remaining, 10))
	reset := v.Reset.Add(time.Second - 1).Unix()
	h.SetCanonical(headerReset, strconv.AppendInt(digits[:0], reset, 10))
}
