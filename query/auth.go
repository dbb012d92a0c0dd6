package query

import (
	"bytes"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/marketlog/marketlog/query/limits"
	"github.com/valyala/fasthttp"
)

// Grant is what a key allows.
type Grant struct {
	KeyID string
	// Plan is its plan's name.
	Plan string
	// Budget names the limits that it shares with the keys it was rotated from.
	Budget string
}

// Keyring looks up keys.
type Keyring interface {
	// Lookup returns the grant of a key at a time; false for one that is malformed, unknown,
	// expired or revoked. It must not keep key.
	Lookup(key []byte, now time.Time) (Grant, bool)
	// Valid reports whether the key with an id is still neither expired nor revoked at a time.
	Valid(id string, now time.Time) bool
	// Waiting is why keys cannot be checked yet; empty when they can.
	Waiting() string
}

// Sessions are sign-ins of the pages, which a browser sends as a cookie instead of a key.
type Sessions interface {
	// Session returns the grant of the session that a request carries. It is false for a request without one, for one that
	// has ended, and for a request that another site may have made; an Error where that cannot be decided yet.
	Session(ctx *fasthttp.RequestCtx, now time.Time) (Grant, bool, error)
}

// AuthMode is who is served.
type AuthMode string

// Modes of authentication.
const (
	// AuthRequired serves those with a valid key.
	AuthRequired AuthMode = "required"
	// AuthOptional serves those without a key as Free, each address for itself; a bad key is refused.
	AuthOptional AuthMode = "optional"
	// AuthOpen serves all as Pro; only where nothing but loopback is listened on.
	AuthOpen AuthMode = "open"
)

// Refusals of requests without a key that is served. Each says what the sender knows of its own request: of a key that is
// not served, whether it was ever issued here is not among that.
var (
	errNoKey = &Error{Status: fiber.StatusUnauthorized, Code: CodeInvalidKey,
		Message: "no API key was sent: send `Authorization: Bearer ck_live_…`; `marketlog keys create` makes a key, `marketlog env` prints one as MARKETLOG_API_KEY"}
	errNoBearer = &Error{Status: fiber.StatusUnauthorized, Code: CodeInvalidKey,
		Message: "the Authorization header has no API key: it must be `Bearer ck_live_…` (is the variable empty?); `marketlog keys create` makes a key, `marketlog env` prints one as MARKETLOG_API_KEY"}
	errUnknownKey = &Error{Status: fiber.StatusUnauthorized, Code: CodeInvalidKey,
		Message: "this API key is not known here: it may be mistyped, expired, revoked or of another instance; `marketlog keys create` makes one here, `marketlog keys list` has those that are"}
)

// NoKey refuses a request without a key.
var NoKey error = errNoKey

// errTwoKeys refuses what a proxy and this server could read differently.
var errTwoKeys = &Error{Status: fiber.StatusBadRequest, Code: CodeValidation, Message: "the request has invalid headers",
	Fields: map[string][]string{fiber.HeaderAuthorization: {"must be sent once; leave out all but one"}}}

var bearer = []byte("bearer ")

// Caller is who something is served for.
type Caller struct {
	Grant Grant
	Plan  *limits.Plan
}

// authenticate identifies the caller by a request's header.
func (s *Server) authenticate(ctx *fasthttp.RequestCtx, now time.Time) (Caller, error) {
	key, err := BearerKey(ctx)
	if err == errTwoKeys {
		return Caller{}, err
	}
	if err != nil && s.cfg.Auth != AuthOpen {
		return Caller{}, s.refuse(err, s.Address(ctx), now)
	}
	// Whose address it is matters to those without a key, or with a bad one.
	var from net.IP
	if key == nil && err == nil {
		if caller, ok, err := s.Session(ctx, now); ok || err != nil {
			return caller, err
		}
	}
	if key == nil {
		from = s.Address(ctx)
	}
	caller, err := s.identify(key, from, now)
	if err == errUnknownKey {
		err = s.refuse(err, s.Address(ctx), now)
	}
	return caller, err
}

// Session returns the caller of the session that a request without a key carries; false where it has none that holds.
func (s *Server) Session(ctx *fasthttp.RequestCtx, now time.Time) (Caller, bool, error) {
	if s.deps.Sessions == nil || s.cfg.Auth == AuthOpen {
		return Caller{}, false, nil
	}
	grant, ok, err := s.deps.Sessions.Session(ctx, now)
	if !ok || err != nil {
		return Caller{}, false, err
	}
	caller, err := s.Granted(grant)
	return caller, err == nil, err
}

// Granted returns the caller that a grant is of.
func (s *Server) Granted(grant Grant) (Caller, error) {
	plan, ok := s.plans[grant.Plan]
	if !ok {
		return Caller{}, fmt.Errorf("key %s has the plan %q, which is not configured", grant.KeyID, grant.Plan)
	}
	return Caller{grant, plan}, nil
}

// BearerKey returns the key of a request's Authorization header, nil where there is none. It is
// valid as long as the request.
func BearerKey(ctx *fasthttp.RequestCtx) ([]byte, error) {
	headers := ctx.Request.Header.PeekAll(fiber.HeaderAuthorization)
	if len(headers) > 1 {
		return nil, errTwoKeys
	}
	if len(headers) == 0 || len(headers[0]) == 0 {
		return nil, nil
	}
	header := headers[0]
	if len(header) <= len(bearer) || !bytes.EqualFold(header[:len(bearer)], bearer) {
		return nil, errNoBearer
	}
	return bytes.TrimSpace(header[len(bearer):]), nil
}

// Identify returns the caller of a key, or of a nil key the caller at an address. An address that tries bad keys
// again and again is slowed.
func (s *Server) Identify(key []byte, from net.IP, now time.Time) (Caller, error) {
	caller, err := s.identify(key, from, now)
	if err == errUnknownKey {
		err = s.refuse(err, from, now)
	}
	return caller, err
}

func (s *Server) identify(key []byte, from net.IP, now time.Time) (Caller, error) {
	if s.cfg.Auth == AuthOpen {
		return Caller{Grant{Plan: limits.PlanPro, Budget: "open"}, s.plans[limits.PlanPro]}, nil
	}
	if key == nil {
		if s.cfg.Auth == AuthOptional {
			return Caller{Grant{Plan: limits.PlanFree, Budget: "address:" + network(from)}, s.plans[limits.PlanFree]}, nil
		}
		return Caller{}, errNoKey
	}
	if why := s.deps.Keys.Waiting(); why != "" {
		return Caller{}, Starting(why)
	}
	grant, ok := s.deps.Keys.Lookup(key, now)
	if !ok {
		return Caller{}, errUnknownKey
	}
	return s.Granted(grant)
}

// Valid reports whether a caller would still be served: its key may have expired or been revoked since.
func (s *Server) Valid(c Caller, now time.Time) bool {
	return c.Grant.KeyID == "" || s.deps.Keys.Valid(c.Grant.KeyID, now)
}

// Count counts one request against a caller's limits, or refuses it. The limits are reported in the
// headers of ctx; it is nil where no answer will carry any.
func (s *Server) Count(ctx *fasthttp.RequestCtx, c Caller, now time.Time) error {
	_, err := s.admit(ctx, c, limits.Plain, now)
	return err
}

func (s *Server) admit(ctx *fasthttp.RequestCtx, c Caller, class limits.Class, now time.Time) (limits.Decision, error) {
	verdict := s.deps.Limiter.Admit(c.Grant.Budget, c.Plan, class, now)
	if ctx != nil {
		s.setLimitHeaders(ctx, verdict)
	}
	if verdict.OK {
		return verdict, nil
	}
	s.metrics.refused.WithLabelValues(verdict.Scope).Inc()
	return verdict, &Error{Status: fiber.StatusTooManyRequests, Code: CodeRateLimit,
		Message:    "the plan's limit of " + strconv.FormatInt(verdict.Limit, 10) + " is exhausted (" + verdict.Scope + ")",
		RetryAfter: verdict.RetryAfter, Scope: verdict.Scope}
}
