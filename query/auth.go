package query

import (
	"bytes"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
)

// Grant is what a key stands for.
type Grant struct {
	KeyID string
	// Plan is its plan's name.
	Plan string
	// Budget names the limits that it shares with the keys it was rotated from.
	Budget string
}

// Keyring tells what keys stand for.
type Keyring interface {
	// Lookup returns what a key stands for at a time; false for one that is malformed, unknown,
	// expired or revoked. It must not keep key.
	Lookup(key []byte, now time.Time) (Grant, bool)
	// Waiting says why keys cannot be told yet; empty when they can.
	Waiting() string
}

// AuthMode says who is served.
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

var errInvalidKey = &Error{Status: fiber.StatusUnauthorized, Code: CodeInvalidKey,
	Message: "missing or invalid API key; send `Authorization: Bearer ck_live_…`, made with `marketlog keys create`"}

var bearer = []byte("bearer ")

// caller is who a request is served for.
type caller struct {
	grant Grant
	plan  *Plan
}

// authenticate finds out who asks.
func (s *Server) authenticate(ctx *fasthttp.RequestCtx, now time.Time) (caller, error) {
	if s.cfg.Auth == AuthOpen {
		return caller{Grant{Plan: PlanPro, Budget: "open"}, s.plans[PlanPro]}, nil
	}
	header := ctx.Request.Header.Peek(fiber.HeaderAuthorization)
	if len(header) == 0 && s.cfg.Auth == AuthOptional {
		return caller{Grant{Plan: PlanFree, Budget: "address:" + network(ctx.RemoteIP())}, s.plans[PlanFree]}, nil
	}
	if len(header) <= len(bearer) || !bytes.EqualFold(header[:len(bearer)], bearer) {
		return caller{}, errInvalidKey
	}
	if why := s.deps.Keys.Waiting(); why != "" {
		return caller{}, Starting(why)
	}
	grant, ok := s.deps.Keys.Lookup(bytes.TrimSpace(header[len(bearer):]), now)
	if !ok {
		return caller{}, errInvalidKey
	}
	plan, ok := s.plans[grant.Plan]
	if !ok {
		return caller{}, fmt.Errorf("key %s has the plan %q, which is not configured", grant.KeyID, grant.Plan)
	}
	return caller{grant, plan}, nil
}

// network is what counts as one address: an IPv6 host owns at least a /64.
func network(ip net.IP) string {
	a, ok := netip.AddrFromSlice(ip)
	if !ok {
		return ip.String()
	}
	if a = a.Unmap(); a.Is6() {
		if p, err := a.Prefix(64); err == nil {
			return p.String()
		}
	}
	return a.String()
}
