package query

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/marketlog/marketlog/query/limits"
	"github.com/valyala/fasthttp"
)

const (
	// failuresFree are how many bad keys of one address within a minute are answered as such.
	failuresFree = 20
	// slowedMost bounds how long an address has to wait; it doubles with each failure.
	slowedMost = time.Minute
	// guarded bounds the addresses that are remembered: of more, the one that failed first is forgotten.
	guarded = 16_384
)

// guard slows addresses that try bad keys. Safe for concurrent use.
type authThrottle struct {
	mu    sync.Mutex
	byKey map[netip.Prefix]int
	slots []slot
	next  int
}

// slot is what is remembered of an address.
type slot struct {
	key      netip.Prefix
	failures int
	since    time.Time
	until    time.Time
}

func newGuard() *authThrottle { return &authThrottle{byKey: map[netip.Prefix]int{}} }

// failed counts a bad key of an address, and says for how long that is slowed; 0 if it is not.
func (g *authThrottle) failed(from net.IP, now time.Time) time.Duration {
	key := addressKey(from)
	g.mu.Lock()
	defer g.mu.Unlock()
	i, known := g.byKey[key]
	if !known {
		i = g.place(key)
	}
	s := &g.slots[i]
	if now.Sub(s.since) >= time.Minute && !now.Before(s.until) {
		s.failures, s.since = 0, now
	}
	s.failures++
	if s.failures <= failuresFree {
		return 0
	}
	wait := slowedMost
	if doublings := s.failures - failuresFree - 1; doublings < 6 {
		wait = min(wait, time.Second<<doublings)
	}
	if until := now.Add(wait); until.After(s.until) {
		s.until = until
	}
	return s.until.Sub(now)
}

// place finds room for an address.
func (g *authThrottle) place(key netip.Prefix) int {
	i := len(g.slots)
	if i < guarded {
		g.slots = append(g.slots, slot{})
	} else {
		i = g.next
		g.next = (g.next + 1) % guarded
		delete(g.byKey, g.slots[i].key)
	}
	g.slots[i] = slot{key: key}
	g.byKey[key] = i
	return i
}

// addressKey is what counts as one address: an IPv6 host owns at least a /64.
func addressKey(ip net.IP) netip.Prefix {
	a, ok := netip.AddrFromSlice(ip)
	if !ok {
		return netip.Prefix{}
	}
	a = a.Unmap()
	bits := 32
	if a.Is6() {
		bits = 64
	}
	p, _ := a.Prefix(bits) // of these two lengths every address has one
	return p
}

// network names what counts as one address.
func network(ip net.IP) string {
	key := addressKey(ip)
	switch {
	case !key.IsValid():
		return ip.String()
	case key.Addr().Is4():
		return key.Addr().String()
	}
	return key.String()
}

// refuse is the answer to a bad key from an address: why, or that it is slowed.
func (s *Server) refuse(why error, from net.IP, now time.Time) error {
	wait := s.guard.failed(from, now)
	if wait == 0 {
		return why
	}
	return &Error{Status: http.StatusTooManyRequests, Code: CodeRateLimit, Message: "too many invalid API keys from this address",
		RetryAfter: limits.WholeSeconds(wait)}
}

// Address is who sent a request: the peer, or whom a proxy that is trusted names. It is valid as long as the request.
func (s *Server) Address(ctx *fasthttp.RequestCtx) net.IP {
	from := ctx.RemoteIP()
	if len(s.trusted) == 0 || !s.trusts(from) {
		return from
	}
	forwarded := bytes.Join(ctx.Request.Header.PeekAll(fiber.HeaderXForwardedFor), []byte(","))
	// Each proxy adds the address that it received the request from: what is before the first that is not ours, anybody can write.
	for s.trusts(from) && len(forwarded) > 0 {
		last := forwarded[bytes.LastIndexByte(forwarded, ',')+1:]
		forwarded = forwarded[:max(0, len(forwarded)-len(last)-1)]
		ip := net.ParseIP(string(bytes.TrimSpace(last)))
		if ip == nil {
			break
		}
		from = ip
	}
	return from
}

func (s *Server) trusts(ip net.IP) bool {
	a, ok := netip.AddrFromSlice(ip)
	if !ok {
		return false
	}
	for _, p := range s.trusted {
		if p.Contains(a.Unmap()) {
			return true
		}
	}
	return false
}

// ParseProxies reads addresses and networks (CIDR) of proxies. The error names the first that is neither.
func ParseProxies(list []string) ([]netip.Prefix, error) {
	var prefixes []netip.Prefix
	for _, text := range list {
		p, err := netip.ParsePrefix(text)
		if !strings.Contains(text, "/") {
			var a netip.Addr
			if a, err = netip.ParseAddr(text); err == nil {
				p = netip.PrefixFrom(a, a.BitLen())
			}
		}
		if err != nil {
			return nil, fmt.Errorf("%q is neither an address nor a network", text)
		}
		prefixes = append(prefixes, p.Masked())
	}
	return prefixes, nil
}
