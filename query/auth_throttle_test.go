package query

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

func TestAddressesThatTryBadKeysAreSlowed(t *testing.T) {
	s := startServer(t, func(c *Config, _ *Deps) { c.TrustedProxies = []string{"127.0.0.1"} })
	from := func(address, key string) reply {
		return s.do(t, "GET", "/api/v1/hot", key, "X-Forwarded-For", address)
	}
	for i := range failuresFree {
		if r := from("192.0.2.1", "bad"); r.status != 401 {
			t.Fatalf("bad key %d: got %d, want 401", i+1, r.status)
		}
	}
	before := 0
	for i := range 8 {
		r := from("192.0.2.1", "bad")
		if r.status != 429 || r.err.Code != CodeRateLimit || r.err.RetryAfter < before || r.err.RetryAfter > 60 || r.header.Get("Retry-After") == "" {
			t.Errorf("bad key %d beyond: got %d %+v, want 429 with a Retry-After that grows to a minute", i+1, r.status, r.err)
		}
		before = r.err.RetryAfter
	}
	if before < 50 {
		t.Errorf("the last Retry-After is %d, want it to have grown", before)
	}
	if r := from("192.0.2.1", "key-pro"); r.status != 200 {
		t.Errorf("a valid key from there: got %d, want 200", r.status)
	}
	if r := from("192.0.2.2", "bad"); r.status != 401 {
		t.Errorf("a bad key from elsewhere: got %d, want 401", r.status)
	}
}

func TestGuardsForgetAndAreBounded(t *testing.T) {
	g := newGuard()
	now := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	ip := net.ParseIP("2001:db8::1")
	for range failuresFree {
		g.failed(ip, now)
	}
	if wait := g.failed(net.ParseIP("2001:db8::ffff"), now); wait != time.Second {
		t.Errorf("another host of the same /64 is slowed by %s, want 1s", wait)
	}
	if wait := g.failed(ip, now.Add(2*time.Minute)); wait != 0 {
		t.Errorf("after two quiet minutes it is slowed by %s, want not", wait)
	}
	for i := range 2 * guarded {
		g.failed(net.IPv4(10, byte(i>>16), byte(i>>8), byte(i)), now)
	}
	if len(g.slots) != guarded || len(g.byKey) != guarded {
		t.Errorf("%d addresses are remembered under %d keys, want %d", len(g.slots), len(g.byKey), guarded)
	}
}

func TestOnlyTrustedProxiesNameAddresses(t *testing.T) {
	for _, c := range []struct{ peer, forwarded, trusted, want string }{
		{"192.0.2.9", "198.51.100.1", "", "192.0.2.9"},
		{"192.0.2.9", "198.51.100.1", "10.0.0.0/8", "192.0.2.9"},
		{"10.1.2.3", "198.51.100.1", "10.0.0.0/8", "198.51.100.1"},
		{"10.1.2.3", "203.0.113.5, 198.51.100.1, 10.9.9.9", "10.0.0.0/8", "198.51.100.1"},
		{"10.1.2.3", "10.0.0.7,10.9.9.9", "10.0.0.0/8", "10.0.0.7"},
		{"10.1.2.3", "198.51.100.1, nonsense", "10.0.0.0/8", "10.1.2.3"},
		{"10.1.2.3", "", "10.0.0.0/8", "10.1.2.3"},
		{"::1", "2001:db8::5", "::1", "2001:db8::5"},
	} {
		var list []string
		if c.trusted != "" {
			list = strings.Split(c.trusted, ",")
		}
		trusted, err := ParseProxies(list)
		if err != nil {
			t.Fatal(err)
		}
		var ctx fasthttp.RequestCtx
		ctx.Init(&fasthttp.Request{}, &net.TCPAddr{IP: net.ParseIP(c.peer)}, nil)
		if c.forwarded != "" {
			ctx.Request.Header.Set("X-Forwarded-For", c.forwarded)
		}
		if got := (&Server{trusted: trusted}).Address(&ctx).String(); got != c.want {
			t.Errorf("%+v: got %s", c, got)
		}
	}
	for _, bad := range []string{"", "proxy", "10.0.0.0/33", "10.0.0"} {
		if _, err := ParseProxies([]string{bad}); err == nil {
			t.Errorf("%q is taken for a proxy", bad)
		}
	}
}
