package query

import (
	"strings"
	"testing"
	"time"
)

// Whatever is answered, the answer names the request.
func TestEveryAnswerNamesItsRequest(t *testing.T) {
	s := startServer(t, nil)
	seen := map[string]bool{}
	for _, path := range []string{"/api/v1/hot", "/api/v1/hot", "/healthz", "/openapi.json", "/nothing", "/api/v1/hot?limit=x"} {
		r := s.do(t, "GET", path, "key-pro")
		id := r.header.Get("X-Request-Id")
		if id == "" || seen[id] {
			t.Errorf("%s: got the name %q, want a new one", path, id)
		}
		seen[id] = true
	}
}

// Two keys could be read differently by a proxy in front, so neither is taken.
func TestTwoKeysAreRefused(t *testing.T) {
	s := startServer(t, nil)
	for _, second := range []string{"Bearer key-free", "Bearer key-pro", ""} {
		status, body := s.raw(t, "GET /api/v1/hot HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer key-pro\r\nAuthorization: "+second+"\r\nConnection: close\r\n\r\n")
		if status != 400 || !strings.Contains(body, `"Authorization"`) {
			t.Errorf("%q: got %d %s, want 400 and the header's name", second, status, body)
		}
	}
	if status, body := s.raw(t, "GET /api/v1/hot HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer key-pro\r\nConnection: close\r\n\r\n"); status != 200 {
		t.Errorf("one key: got %d %s", status, body)
	}
}

// A parameter by which an answer would be another one is refused where the operation has none of the name; a date alone is its
// beginning; a number beyond its most is lowered and reported.
func TestWhatIsAskedIsNeverIgnored(t *testing.T) {
	s := startServer(t, nil)
	if r := s.do(t, "GET", "/api/v1/hot?method=mean", "key-pro"); r.status != 400 || !strings.Contains(r.body, `"method"`) {
		t.Errorf("method: got %d %s, want 400", r.status, r.body)
	}
	for given, meant := range map[string]string{"limits": "limit", "symbol": "symbols", "Limit": "limit", "sybmols": "symbols", "kin_d": "kind", "vieww": "view"} {
		if r := s.do(t, "GET", "/api/v1/hot?"+given+"=1", "key-pro"); r.status != 400 || !strings.Contains(r.body, "did you mean "+meant) || !strings.Contains(r.body, `"`+given+`"`) {
			t.Errorf("%s: got %d %s, want 400 and a word on %s", given, r.status, r.body, meant)
		}
	}
	for _, like := range []string{"utm_source=x", "ats=1", "limit=3&limits=4", "flug[x]=1"} {
		if r := s.do(t, "GET", "/api/v1/hot?"+like, "key-pro"); r.status != 200 {
			t.Errorf("%s: got %d %s, want 200: it is like no parameter that is missing", like, r.status, r.body)
		}
	}
	if r := s.do(t, "GET", "/api/v1/hot?at=2026-11-22", "key-pro"); r.status != 200 {
		t.Errorf("a date: got %d %s", r.status, r.body)
	}
	p := Param{Name: "least", Kind: Number, OrZero: true, Most: 1, Doc: "x"}
	if v, clamped, fault := p.parse([]string{"2"}); v.number != 1 || v.n != 1 || !clamped || fault != "" {
		t.Errorf("2 of at most 1: got %v, %t, %q", v, clamped, fault)
	}
	if got := FormatTime(1_000_000_000); got != "1970-01-01T00:00:01.000Z" {
		t.Errorf("a whole second is written %s, want three decimals", got)
	}
}

// An instant that the plan does not reach is refused: the answer of another one would be taken for it.
func TestInstantsBeforeThePlanAreRefused(t *testing.T) {
	now := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	s := startServer(t, func(_ *Config, deps *Deps) { deps.Now = func() time.Time { return now } })
	for _, test := range []struct {
		key, asOf string
		want      int
	}{
		{"key-free", "2026-11-13T10:00:00Z", 200}, {"key-free", "2026-11-13T09:59:59Z", 402}, {"key-free", "", 200},
		{"key-pro", "2026-11-13T09:59:59Z", 200}, {"key-pro", "2021-01-01", 402},
	} {
		r := s.do(t, "GET", "/api/v1/planned?asOf="+test.asOf, test.key)
		if r.status != test.want || r.status == 402 && (r.err.Code != CodePlanRequired || !strings.Contains(r.body, "asOf must be 20")) {
			t.Errorf("%+v: got %d %s", test, r.status, r.body)
		}
	}
}

// A path that nothing is served at names the operation that it may mean.
func TestPathsThatLeadNowhereNameTheNearest(t *testing.T) {
	s := startServer(t, nil)
	for path, meant := range map[string]string{
		"/api/v1/hots": "/api/v1/hot", "/api/v1/hot/": "", "/hot": "/api/v1/hot", "/HTO": "", "/api/v1/completely-different": "", "/nothing/at/all/here": "",
		"/api/v1/" + strings.Repeat("h", 300): "",
	} {
		r := s.do(t, "GET", path, "key-pro")
		if r.status == 200 {
			continue
		}
		if hint := `"hint":"did you mean ` + meant + `?"`; r.status != 404 || strings.Contains(r.body, `"hint"`) != (meant != "") || meant != "" && !strings.Contains(r.body, hint) {
			t.Errorf("%.60s: got %d %s, want a word on %q", path, r.status, r.body, meant)
		}
	}
}
