package pages

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/limits"
)

// sessionLife is how long a session lasts after signing in; visiting does not prolong it.
const sessionLife = 12 * time.Hour

// Kinds of sessions, by what is behind them.
const (
	// ofKey ends with its key, too.
	ofKey byte = 'k'
	// ofLink was begun by a link that only the operator can make.
	ofLink byte = 'l'
	// ofNobody holds where nothing is at stake, and as long as that is so.
	ofNobody byte = 'n'
)

// session is what a cookie holds.
type session struct {
	kind byte
	// id is of the key or the link; empty for ofNobody.
	id      string
	expires time.Time
}

// sealed begins what is signed, so that it is neither the hash of a key nor the signature of a record of keys.
const sealed = "marketlog page session v1\x00"

// headLength is the kind and the expiry.
const headLength = 1 + 8

// maxToken bounds what is decoded.
const maxToken = 256

var encoding = base64.RawURLEncoding

func (u *Unit) sign(payload []byte) []byte {
	mac := hmac.New(sha256.New, u.deps.Pepper)
	mac.Write([]byte(sealed))
	mac.Write(payload)
	return mac.Sum(nil)
}

// seal encodes a session with its signature under the pepper: every replica of the installation accepts it.
func (u *Unit) seal(s session) string {
	payload := binary.BigEndian.AppendUint64([]byte{s.kind}, uint64(s.expires.Unix()))
	payload = append(payload, s.id...)
	return encoding.EncodeToString(append(payload, u.sign(payload)...))
}

// unseal decodes a session that was sealed here and has not expired.
func (u *Unit) unseal(token []byte, now time.Time) (session, bool) {
	if len(token) == 0 || len(token) > maxToken {
		return session{}, false
	}
	raw, err := encoding.AppendDecode(nil, token)
	if err != nil || len(raw) < headLength+sha256.Size {
		return session{}, false
	}
	payload, mac := raw[:len(raw)-sha256.Size], raw[len(raw)-sha256.Size:]
	if !hmac.Equal(mac, u.sign(payload)) {
		return session{}, false
	}
	s := session{kind: payload[0], id: string(payload[headLength:]), expires: time.Unix(int64(binary.BigEndian.Uint64(payload[1:headLength])), 0)}
	return s, now.Before(s.expires)
}

// grant returns what a session allows now; false where what is behind it has ended.
func (u *Unit) grant(s session, now time.Time) (query.Grant, bool, error) {
	switch s.kind {
	case ofKey:
		if why := u.deps.Keys.Waiting(); why != "" {
			return query.Grant{}, false, query.Starting(why)
		}
		grant, ok := u.deps.Keys.Grant(s.id, now)
		// A page asks often: it must not use up what programs with the same key need.
		grant.Budget = "session:" + grant.Budget
		return grant, ok, nil
	case ofLink:
		return query.Grant{Plan: limits.PlanPro, Budget: "session:link:" + s.id}, true, nil
	case ofNobody:
		return query.Grant{Plan: limits.PlanPro, Budget: "session:local"}, u.local, nil
	}
	return query.Grant{}, false, nil
}

// Session implements query.Sessions. A cookie counts only from our own pages: a browser sends it along whoever asks, from every
// port of this host too, and a name that somebody points to this address is not a name of ours.
func (u *Unit) Session(ctx *fasthttp.RequestCtx, now time.Time) (query.Grant, bool, error) {
	host := u.hostOf(ctx)
	if host.kind == foreign || !sameSite(ctx) || !sameOrigin(ctx) {
		return query.Grant{}, false, nil
	}
	token := ctx.Request.Header.Cookie(cookieName(host))
	s, ok := u.unseal(token, now)
	if !ok || s.kind == ofNobody && host.kind != loopbackHost {
		return query.Grant{}, false, nil
	}
	return u.grant(s, now)
}

// sameSite reports whether a page of this server, or a person at the browser, made the request. What names no site is not a browser,
// or one that came over an unencrypted connection from another machine.
func sameSite(ctx *fasthttp.RequestCtx) bool {
	switch string(ctx.Request.Header.Peek("Sec-Fetch-Site")) {
	case "", "same-origin", "none":
		return true
	}
	return false
}

// sameOrigin reports whether the origin that a request names is this server. Every browser names one with whatever is no GET.
func sameOrigin(ctx *fasthttp.RequestCtx) bool {
	origins := ctx.Request.Header.PeekAll(fiber.HeaderOrigin)
	if len(origins) == 0 {
		return ctx.IsGet() || ctx.IsHead()
	}
	host, secure := bytes.CutPrefix(origins[0], []byte("https://"))
	if !secure {
		var plain bool
		if host, plain = bytes.CutPrefix(origins[0], []byte("http://")); !plain || ctx.IsTLS() {
			return false
		}
	}
	return len(origins) == 1 && bytes.EqualFold(host, ctx.Host())
}

// cookieName is of the port that the browser sees, since cookies do not distinguish ports: two instances on one host, or behind two
// tunnels, would take each other's.
func cookieName(h host) string { return "marketlog_" + h.port }

// begin gives a visitor a session.
func (u *Unit) begin(ctx *fasthttp.RequestCtx, s session) {
	u.setCookie(ctx, u.seal(s), s.expires)
}

func (u *Unit) setCookie(ctx *fasthttp.RequestCtx, value string, expires time.Time) {
	h := u.hostOf(ctx)
	cookie := fasthttp.AcquireCookie()
	defer fasthttp.ReleaseCookie(cookie)
	cookie.SetKey(cookieName(h))
	cookie.SetValue(value)
	cookie.SetPath("/")
	cookie.SetHTTPOnly(true)
	cookie.SetSameSite(fasthttp.CookieSameSiteStrictMode)
	cookie.SetExpire(expires)
	// Names are published by a proxy, over TLS; addresses are reached without.
	cookie.SetSecure(ctx.IsTLS() || h.kind == namedHost)
	ctx.Response.Header.SetCookie(cookie)
}

// signIn makes a session of a key, POST /session {"key":…}: the key then need not be kept anywhere.
func (u *Unit) signIn(c *fiber.Ctx) error {
	ctx := c.Context()
	u.secure(ctx)
	if err := u.ours(ctx); err != nil {
		return err
	}
	if mediaType, _, _ := strings.Cut(string(ctx.Request.Header.ContentType()), ";"); !strings.EqualFold(strings.TrimSpace(mediaType), fiber.MIMEApplicationJSON) {
		return &query.Error{Status: http.StatusUnsupportedMediaType, Code: query.CodeMediaType, Message: `send JSON: {"key":"ck_live_…"}`}
	}
	var body struct {
		Key string `json:"key"`
	}
	if err := c.App().Config().JSONDecoder(c.Body(), &body); err != nil || body.Key == "" {
		return query.Invalid("key", `is missing; send {"key":"ck_live_…"}, made with marketlog keys create`)
	}
	if u.server.Open() {
		return c.SendStatus(http.StatusNoContent)
	}
	now := ctx.Time()
	who, err := u.server.Identify([]byte(body.Key), u.server.Address(ctx), now)
	if err != nil {
		return err
	}
	u.begin(ctx, session{kind: ofKey, id: who.Grant.KeyID, expires: now.Add(sessionLife)})
	return c.SendStatus(http.StatusNoContent)
}

// signOut ends the session of this browser, DELETE /session.
func (u *Unit) signOut(c *fiber.Ctx) error {
	ctx := c.Context()
	u.secure(ctx)
	if err := u.ours(ctx); err != nil {
		return err
	}
	u.setCookie(ctx, "", time.Unix(1, 0))
	return c.SendStatus(http.StatusNoContent)
}

// ours refuses what no page of ours sent.
func (u *Unit) ours(ctx *fasthttp.RequestCtx) error {
	switch {
	case u.hostOf(ctx).kind == foreign:
		return errForeignHost
	case !sameSite(ctx) || !sameOrigin(ctx):
		return &query.Error{Status: http.StatusForbidden, Code: query.CodeForbidden, Message: "only pages of this server may do this"}
	}
	return nil
}

var errForeignHost = &query.Error{Status: http.StatusMisdirectedRequest, Code: query.CodeForbidden,
	Message: "the Host of the request is not a name of this server; add it to page.hosts, or use the address that it listens on"}

// automatic reports whether a visitor gets a session without asking: the numbers are invented, and whoever asks sits at this
// machine. A proxy before the server would make everybody sit there: it says so in a header, or speaks another version of HTTP than
// browsers do, or the browser says that another site asks. What sends neither is not a browser, and gets no cookie.
func (u *Unit) automatic(ctx *fasthttp.RequestCtx) bool {
	site := ctx.Request.Header.Peek("Sec-Fetch-Site")
	return len(site) > 0 && sameSite(ctx) && u.atThisMachine(ctx)
}

// forwarding are the headers by which proxies name themselves or who asked them.
var forwarding = []string{"Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Port", "X-Forwarded-Server",
	"X-Real-Ip", "X-Client-Ip", "X-Original-Host", "X-Original-Url", "Cf-Connecting-Ip", "True-Client-Ip"}

// atThisMachine reports whether invented numbers are asked for, directly and from this machine.
func (u *Unit) atThisMachine(ctx *fasthttp.RequestCtx) bool {
	h := u.hostOf(ctx)
	if !u.local || h.kind != loopbackHost || h.port != u.port || !ctx.RemoteIP().IsLoopback() {
		return false
	}
	for _, name := range forwarding {
		if len(ctx.Request.Header.Peek(name)) > 0 {
			return false
		}
	}
	return ctx.Request.Header.IsHTTP11() && !ctx.Request.Header.ConnectionClose()
}

// visitor is who a page is for. A visitor that is unknown may be given a session; an Error of 401 remains where none fits.
func (u *Unit) visitor(ctx *fasthttp.RequestCtx, now time.Time) (query.Caller, error) {
	who, err := u.server.Authenticate(ctx, now)
	var shown *query.Error
	if err == nil || !errors.As(err, &shown) || shown.Status != http.StatusUnauthorized || len(ctx.Request.Header.Peek(fiber.HeaderAuthorization)) > 0 {
		return who, err
	}
	s := session{kind: ofNobody, expires: now.Add(sessionLife)}
	browser := u.automatic(ctx)
	if !browser && (wantsPage(ctx) || !sameSite(ctx) || len(ctx.Request.Header.Peek(fiber.HeaderOrigin)) > 0 || !u.atThisMachine(ctx)) {
		return who, err
	}
	grant, ok, failed := u.grant(s, now)
	if failed != nil || !ok {
		return who, err
	}
	if browser {
		u.begin(ctx, s)
	}
	return u.server.Granted(grant)
}
