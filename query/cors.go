package query

import (
	"bytes"
	"net/http"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
)

// Pages of other origins may read the API. They need a key of their own: a script sends it, not the browser by itself, so they learn
// nothing that whoever has the key could not. A session counts only from our own pages, and `*` keeps browsers from sending cookies.
// Where no key is asked for at all, any page that somebody at this machine looks at could read: there nothing is shared.

var (
	headerOrigin    = []byte(fiber.HeaderOrigin)
	sharedPrefix    = []byte("/api/v1/")
	sharedDocument  = []byte("/openapi.json")
	exposedHeaders  = "Content-Disposition, ETag, Retry-After, " + string(headerLimit) + ", " + string(headerRemaining) + ", " + string(headerReset) + ", " + string(headerPosition) + ", " + headerRequestID
	allowedHeaders  = "Authorization, Content-Type, If-None-Match"
	preflightMaxAge = "86400"
)

// crossing reports whether a page of another origin, or one of ours, asks for what is shared with all.
func (s *Server) crossing(ctx *fasthttp.RequestCtx) bool {
	return s.cfg.CORS && s.cfg.Auth != AuthOpen && len(ctx.Request.Header.PeekBytes(headerOrigin)) > 0 &&
		(bytes.HasPrefix(ctx.Path(), sharedPrefix) || bytes.Equal(ctx.Path(), sharedDocument))
}

// share lets the page read the answer.
func share(ctx *fasthttp.RequestCtx) {
	h := &ctx.Response.Header
	h.Set(fiber.HeaderAccessControlAllowOrigin, "*")
	h.Set(fiber.HeaderAccessControlExposeHeaders, exposedHeaders)
}

// preflight answers what a browser asks before it sends a header that a form could not; false where it is not such a question.
func preflight(ctx *fasthttp.RequestCtx) bool {
	if !ctx.IsOptions() || len(ctx.Request.Header.Peek(fiber.HeaderAccessControlRequestMethod)) == 0 {
		return false
	}
	h := &ctx.Response.Header
	h.Set(fiber.HeaderAccessControlAllowOrigin, "*")
	h.Set(fiber.HeaderAccessControlAllowMethods, "GET, HEAD, POST")
	h.Set(fiber.HeaderAccessControlAllowHeaders, allowedHeaders)
	h.Set(fiber.HeaderAccessControlMaxAge, preflightMaxAge)
	ctx.SetStatusCode(http.StatusNoContent)
	return true
}
