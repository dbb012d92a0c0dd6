package pages

import (
	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
)

// policy lets a page load scripts, styles, pictures and numbers from this server and from nowhere else, turns no text into a script
// or an element, and lets no other page frame it.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; " +
	"base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// secure writes the headers of everything that pages answer.
func (u *Unit) secure(ctx *fasthttp.RequestCtx) {
	h := &ctx.Response.Header
	h.Set(fiber.HeaderContentSecurityPolicy, policy)
	h.Set(fiber.HeaderXContentTypeOptions, "nosniff")
	h.Set(fiber.HeaderXFrameOptions, "DENY")
	h.Set(fiber.HeaderReferrerPolicy, "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()")
	h.Set(fiber.HeaderCacheControl, "no-store")
}
