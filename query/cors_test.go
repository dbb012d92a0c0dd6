package query

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// A page of any origin reads with a key, and sees its limits; nothing is shared where no key is asked for, or where it is switched off.
func TestPagesOfOtherOriginsReadWithAKey(t *testing.T) {
	ask := func(s *testServer, method, path string, headers ...string) *http.Response {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), method, s.base+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range headers {
			name, value, _ := strings.Cut(h, ": ")
			request.Header.Set(name, value)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if _, err := io.Copy(io.Discard, response.Body); err != nil {
			t.Fatal(err)
		}
		return response
	}
	const origin, key, wanted = "Origin: https://charts.example", "Authorization: Bearer key-pro", "Access-Control-Request-Method: GET"
	shared := func(r *http.Response) string { return r.Header.Get("Access-Control-Allow-Origin") }
	s := startServer(t, func(c *Config, _ *Deps) { c.CORS = true })
	for path, status := range map[string]int{"/api/v1/hot": 200, "/api/v1/things/nothing": 404, "/openapi.json": 200} {
		if r := ask(s, "GET", path, origin, key); r.StatusCode != status || shared(r) != "*" || !strings.Contains(r.Header.Get("Access-Control-Expose-Headers"), "X-Ratelimit-Remaining") ||
			r.Header.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%s: got %d with %v", path, r.StatusCode, r.Header)
		}
	}
	// What it is refused, it can read too.
	if r := ask(s, "GET", "/api/v1/hot", origin); r.StatusCode != http.StatusUnauthorized || shared(r) != "*" {
		t.Errorf("without a key: got %d with %v", r.StatusCode, r.Header)
	}
	r := ask(s, "OPTIONS", "/api/v1/hot", origin, wanted, "Access-Control-Request-Headers: authorization")
	if r.StatusCode != http.StatusNoContent || shared(r) != "*" || !strings.Contains(r.Header.Get("Access-Control-Allow-Headers"), "Authorization") || r.Header.Get("Access-Control-Max-Age") == "" {
		t.Errorf("a preflight: got %d with %v", r.StatusCode, r.Header)
	}
	for name, r := range map[string]*http.Response{
		"a program":                 ask(s, "GET", "/api/v1/hot", key),
		"a path that is no API":     ask(s, "GET", "/healthz", origin),
		"OPTIONS without a reason":  ask(s, "OPTIONS", "/healthz", origin, wanted),
		"no key is asked for":       ask(startServer(t, func(c *Config, _ *Deps) { c.CORS, c.Auth = true, AuthOpen }), "GET", "/api/v1/hot", origin),
		"switched off":              ask(startServer(t, nil), "GET", "/api/v1/hot", origin, key),
		"a preflight, switched off": ask(startServer(t, nil), "OPTIONS", "/api/v1/hot", origin, wanted),
	} {
		if shared(r) != "" {
			t.Errorf("%s: %v is shared", name, r.Header)
		}
	}
}
