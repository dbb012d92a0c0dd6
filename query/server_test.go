package query

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/marketlog/marketlog/query/limits"
	"github.com/marketlog/marketlog/query/position"
	"github.com/marketlog/marketlog/stream/archive"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
)

// stubKeys knows one key per plan, named after it.
type stubKeys struct{ waiting string }

func (k stubKeys) Lookup(key []byte, _ time.Time) (Grant, bool) {
	if plan, ok := strings.CutPrefix(string(key), "key-"); ok {
		return Grant{KeyID: "id-" + plan, Plan: plan, Budget: plan}, true
	}
	return Grant{}, false
}

func (k stubKeys) Valid(string, time.Time) bool { return true }

func (k stubKeys) Waiting() string { return k.waiting }

type echoBody struct {
	Data map[string]any `json:"data"`
	Meta Meta           `json:"meta"`
}

var echoParams = []Param{
	{Name: "limit", Kind: Integer, Default: "10", Min: 1, Max: 100, Doc: "Maximum number of mappings."},
	{Name: "symbols", Kind: List, MaxItems: 3, Doc: "Which."},
	{Name: "kind", Kind: Text, Default: "a", Allowed: []string{"a", "b"}, Doc: "What."},
	{Name: "at", Kind: Time, Doc: "When."},
	{Name: "flag", Kind: Flag, Doc: "Whether."},
}

func echo(_ context.Context, r *Request) (Answer, error) {
	body := echoBody{Data: map[string]any{
		"limit": r.Integer("limit"), "symbols": r.List("symbols"), "kind": r.Text("kind"), "flag": r.Flag("flag"), "view": r.View,
	}}
	body.Meta.Clamped = r.Clamped()
	return Encode(body)
}

// testEndpoints echo their parameters, hot and cold, and fail in every way.
func testEndpoints(cold chan struct{}) []Endpoint {
	get := func(path, id string, e Endpoint) Endpoint {
		e.Method, e.Path, e.ID, e.Tag, e.Summary, e.Body = http.MethodGet, path, id, "test", "A test.", echoBody{}
		if e.Handle == nil {
			e.Handle = echo
		}
		return e
	}
	fail := func(err error) func(context.Context, *Request) (Answer, error) {
		return func(context.Context, *Request) (Answer, error) { return Answer{}, err }
	}
	name := Param{Name: "name", In: Path, Kind: Text, Required: true, Doc: "Which one.", MaxLength: 20}
	return []Endpoint{
		get("/api/v1/things/{name}", "getThing", Endpoint{Hot: true, NotFound: true, Params: []Param{name}, Handle: func(_ context.Context, r *Request) (Answer, error) {
			if r.Text("name") == "nothing" {
				return Answer{}, NotFound("no thing %q", r.Text("name"))
			}
			return Encode(echoBody{Data: map[string]any{"name": r.Text("name")}})
		}}),
		get("/api/v1/things/top", "topThings", Endpoint{MaxAge: 5 * time.Minute, Params: echoParams}),
		get("/api/v1/hot", "hot", Endpoint{Hot: true, Params: append([]Param{{Name: "past", Kind: Time, Stored: true, Doc: "When."},
			{Name: "whole", Kind: Flag, Class: limits.Charts, Doc: "More, which costs more."}}, echoParams...)}),
		get("/api/v1/cold", "cold", Endpoint{Params: echoParams}),
		get("/api/v1/charts/x", "charts", Endpoint{Class: limits.Charts, Params: echoParams}),
		get("/api/v1/planned", "planned", Endpoint{Params: []Param{{Name: "asOf", Kind: Time, Planned: true, Doc: "When."}}, Handle: func(context.Context, *Request) (Answer, error) {
			return Encode(echoBody{})
		}}),
		get("/api/v1/bulk", "bulk", Endpoint{Needs: limits.FeatureBulk, Params: echoParams}),
		get("/api/v1/away", "away", Endpoint{Handle: fail(fmt.Errorf("asking 10.0.0.1, a secret: %w", archive.ErrUnavailable))}),
		get("/api/v1/broken", "broken", Endpoint{Handle: fail(errors.New("secret at 10.0.0.1"))}),
		get("/api/v1/panics", "panics", Endpoint{Handle: func(context.Context, *Request) (Answer, error) { panic("secret") }}),
		get("/api/v1/large", "large", Endpoint{Handle: func(context.Context, *Request) (Answer, error) {
			return Encode(echoBody{Data: map[string]any{"text": strings.Repeat("abc", 1000)}})
		}}),
		get("/api/v1/slow", "slow", Endpoint{Handle: func(ctx context.Context, _ *Request) (Answer, error) {
			select {
			case <-cold:
				return Encode(echoBody{})
			case <-ctx.Done():
				return Answer{}, ctx.Err()
			}
		}}),
	}
}

type testServer struct {
	*Server
	base string
	cold chan struct{}
	stop func() error
}

func startServer(t testing.TB, change func(*Config, *Deps)) *testServer {
	t.Helper()
	cold := make(chan struct{})
	cfg := DefaultConfig()
	cfg.Listen = "127.0.0.1:0"
	deps := Deps{
		Keys: stubKeys{}, Limiter: limits.NewLimiter(time.Now, nil), Plans: limits.DefaultPlans(), Endpoints: testEndpoints(cold),
		Now: time.Now, Metrics: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler), Version: "test",
	}
	if change != nil {
		change(&cfg, &deps)
	}
	s, err := NewServer(cfg, deps)
	if err != nil {
		t.Fatalf("making the server: %v", err)
	}
	if err := s.Bind(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	stop := sync.OnceValue(func() error { cancel(); return <-done })
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("running the server: %v", err)
		}
	})
	return &testServer{s, "http://" + s.Addr(), cold, stop}
}

type reply struct {
	status int
	header http.Header
	body   string
	err    ErrorDetail
}

func (s *testServer) do(t testing.TB, method, path, key string, headers ...string) reply {
	t.Helper()
	request, err := http.NewRequest(method, s.base+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if key != "" {
		request.Header.Set("Authorization", "Bearer "+key)
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := (&http.Transport{DisableCompression: true, DisableKeepAlives: true}).RoundTrip(request)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	r := reply{status: response.StatusCode, header: response.Header, body: string(body)}
	if response.StatusCode >= 400 && len(body) > 0 {
		var failed map[string]json.RawMessage
		if err := json.Unmarshal(body, &failed); err != nil || len(failed) != 1 {
			t.Fatalf("%s %s: the error body is %q, want one member", method, path, body)
		}
		if err := json.Unmarshal(failed["error"], &r.err); err != nil {
			t.Fatal(err)
		}
		if r.err.RequestID == "" || r.err.Message == "" || r.header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %s: error %+v of type %q, want a request id, a message and application/json", method, path, r.err, r.header.Get("Content-Type"))
		}
	}
	return r
}

func TestEveryFailureHasOneBody(t *testing.T) {
	s := startServer(t, nil)
	for _, c := range []struct {
		method, path, key string
		status            int
		code              string
	}{
		{"GET", "/nothing/here", "", 404, CodeNotFound},
		{"GET", "/api/v1/things/nothing", "key-pro", 404, CodeNotFound},
		{"POST", "/api/v1/hot", "", 405, CodeMethodNotAllowed},
		{"BREW", "/api/v1/hot", "", 405, CodeMethodNotAllowed},
		{"GET", "/api/v1/hot", "", 401, CodeInvalidKey},
		{"GET", "/api/v1/hot", "nonsense", 401, CodeInvalidKey},
		{"GET", "/api/v1/hot?limit=x", "nonsense", 401, CodeInvalidKey},
		{"GET", "/api/v1/bulk", "key-free", 402, CodePlanRequired},
		{"GET", "/api/v1/hot?limit=x", "key-pro", 400, CodeValidation},
		{"GET", "/api/v1/broken", "key-pro", 500, CodeInternal},
		{"GET", "/api/v1/away", "key-pro", 503, CodeUnavailable},
		{"GET", "/api/v1/panics", "key-pro", 500, CodeInternal},
		{"GET", "/api/v1/hot", "key-unheard-of", 500, CodeInternal},
	} {
		r := s.do(t, c.method, c.path, c.key)
		if r.status != c.status || r.err.Code != c.code {
			t.Errorf("%s %s with %q: got %d %s, want %d %s", c.method, c.path, c.key, r.status, r.err.Code, c.status, c.code)
		}
		if strings.Contains(r.body, "secret") || strings.Contains(r.body, "goroutine") {
			t.Errorf("%s %s reveals internals: %s", c.method, c.path, r.body)
		}
		if cache := r.header.Get("Cache-Control"); cache != "no-store" {
			t.Errorf("%s %s: Cache-Control %q, want no-store", c.method, c.path, cache)
		}
	}
	if allow := s.do(t, "POST", "/api/v1/hot", "").header.Get("Allow"); allow != "GET, HEAD" {
		t.Errorf("Allow is %q, want GET, HEAD", allow)
	}
}

// Who sent no key is told how to send one; whether a key that is not served was ever issued is told to nobody.
func TestARefusalSaysWhichKeyIsMeant(t *testing.T) {
	s := startServer(t, nil)
	for authorization, want := range map[string]string{
		"":                   "no API key was sent: send `Authorization: Bearer",
		"Bearer":             "the Authorization header has no API key",
		"Bearer ":            "the Authorization header has no API key",
		"Basic a2V5LXBybzo=": "the Authorization header has no API key",
		"ck_live_abc":        "the Authorization header has no API key",
		"Bearer ck_live_abc": "this API key is not known here",
		"Bearer nonsense":    "this API key is not known here",
	} {
		header := ""
		if authorization != "" {
			header = "Authorization: " + authorization + "\r\n"
		}
		status, body := s.raw(t, "GET /api/v1/hot HTTP/1.1\r\nHost: x\r\n"+header+"\r\n")
		if status != http.StatusUnauthorized || !strings.Contains(body, want) || !strings.Contains(body, "marketlog keys create") {
			t.Errorf("%q is answered %d %s, want 401 with %q and what makes a key", authorization, status, body, want)
		}
	}
}

// raw sends bytes as they are and returns the whole answer's status and body.
func (s *testServer) raw(t *testing.T, request string) (int, string) {
	t.Helper()
	conn, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	go io.WriteString(conn, request)
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("reading the answer: %v", err)
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body)
	return response.StatusCode, string(body)
}

func TestOversizedAndMalformedRequestsAreRefusedInTheSameBody(t *testing.T) {
	s := startServer(t, nil)
	for name, c := range map[string]struct {
		request string
		status  int
		code    string
	}{
		"body":    {"POST /api/v1/hot HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n" + strings.Repeat("x", 100_000), 413, CodeTooLarge},
		"headers": {"GET /api/v1/hot HTTP/1.1\r\nHost: x\r\nX-Long: " + strings.Repeat("x", 20_000) + "\r\n\r\n", 431, CodeHeadersTooLarge},
		"garbage": {"\x16\x03\x01 nonsense\r\n\r\n", 400, CodeValidation},
	} {
		status, body := s.raw(t, c.request)
		var failed ErrorBody
		if err := json.Unmarshal([]byte(body), &failed); err != nil || status != c.status || failed.Error.Code != c.code {
			t.Errorf("%s: got %d %q, want %d %s", name, status, body, c.status, c.code)
		}
	}
}

// A client that goes on sending when it is refused can read why.
func TestRefusalsOfLargeBodiesOutliveWhatTheClientStillSends(t *testing.T) {
	s := startServer(t, nil)
	conn, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	rest := bytes.Repeat([]byte("x"), 100_000)
	if _, err := fmt.Fprintf(conn, "POST /api/v1/hot HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n%s", rest); err != nil {
		t.Fatal(err)
	}
	var first [1]byte
	if _, err := conn.Read(first[:]); err != nil { // it is refused
		t.Fatal(err)
	}
	for range 9 {
		if _, err := conn.Write(rest); err != nil {
			t.Errorf("sending the rest: %v", err)
			break
		}
	}
	response, err := http.ReadResponse(bufio.NewReader(io.MultiReader(bytes.NewReader(first[:]), conn)), nil)
	if err != nil {
		t.Fatalf("reading the answer: %v", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("got %d, want 413", response.StatusCode)
	}
}

func TestHotAndColdRefuseTheSameInputAlike(t *testing.T) {
	s := startServer(t, nil)
	for _, q := range []string{
		"", "limit=", "limit=5", "limit=100", "limit=101", "limit=99999999999999999999", "limit=9223372036854775807", "limit=0", "limit=-1",
		"limit=1.5", "limit=%31%30", "limit=10abc", "limit=+5", "symbols=a,b&symbols=c", "symbols=a,b,c,d", "symbols=,", "symbols=%20a%20,", "kind=B",
		"kind=c", "kind=%00", "at=2026-01-01T00:00:00Z", "at=2026-01-01", "flag=TRUE", "flag=maybe", "view=tool", "view=both", "limit=x&kind=c&at=y",
		"limit=%zz", "unknown=1", "symbols=" + strings.Repeat("x", 200), "%00=1", "limit=5&limit=7",
	} {
		hot, cold := s.do(t, "GET", "/api/v1/hot?"+q, "key-enterprise"), s.do(t, "GET", "/api/v1/cold?"+q, "key-enterprise")
		hot.err.RequestID, cold.err.RequestID = "", ""
		if hot.status != cold.status || fmt.Sprint(hot.err) != fmt.Sprint(cold.err) || hot.status == 200 && hot.body != cold.body {
			t.Errorf("%q: hot got %d %v %s, cold got %d %v %s", q, hot.status, hot.err, hot.body, cold.status, cold.err, cold.body)
		}
	}
}

func TestParametersAreCheckedAsDeclared(t *testing.T) {
	s := startServer(t, nil)
	for q, want := range map[string]string{
		"":                      `{"data":{"flag":false,"kind":"a","limit":10,"symbols":null,"view":0},"meta":{"count":0}}`,
		"limit=":                `{"data":{"flag":false,"kind":"a","limit":10,"symbols":null,"view":0},"meta":{"count":0}}`,
		"limit=1000":            `{"data":{"flag":false,"kind":"a","limit":100,"symbols":null,"view":0},"meta":{"count":0,"clamped":{"limit":100}}}`,
		"symbols=a,b&symbols=c": `{"data":{"flag":false,"kind":"a","limit":10,"symbols":["a","b","c"],"view":0},"meta":{"count":0}}`,
		"kind=B&flag=1":         `{"data":{"flag":true,"kind":"b","limit":10,"symbols":null,"view":0},"meta":{"count":0}}`,
		"view=Tool":             `{"data":{"flag":false,"kind":"a","limit":10,"symbols":null,"view":1},"meta":{"count":0}}`,
	} {
		if r := s.do(t, "GET", "/api/v1/cold?"+q, "key-enterprise"); r.status != 200 || r.body != want {
			t.Errorf("%q: got %d %s, want %s", q, r.status, r.body, want)
		}
	}
	for q, fields := range map[string][]string{
		"limit=0": {"limit"}, "limit=1e2": {"limit"}, "limit=99999999999999999999": {"limit"}, "symbols=a,b,c,d": {"symbols"},
		"limit=x&kind=c&at=y&flag=z": {"limit", "kind", "at", "flag"},
	} {
		r := s.do(t, "GET", "/api/v1/cold?"+q, "key-enterprise")
		if r.status != 400 || len(r.err.Errors) != len(fields) {
			t.Errorf("%q: got %d %v, want 400 for %v", q, r.status, r.err.Errors, fields)
		}
		for _, f := range fields {
			if len(r.err.Errors[f]) != 1 {
				t.Errorf("%q: got %v, want a fault of %s", q, r.err.Errors, f)
			}
		}
	}
}

func TestFixedPathsWinOverParameters(t *testing.T) {
	s := startServer(t, nil)
	if r := s.do(t, "GET", "/api/v1/things/top", "key-pro"); !strings.Contains(r.body, `"limit"`) {
		t.Errorf("/things/top is answered by the path with a parameter: %s", r.body)
	}
	if r := s.do(t, "GET", "/api/v1/things/a%2Fb%20c", "key-pro"); !strings.Contains(r.body, `"a/b c"`) {
		t.Errorf("an escaped path parameter is answered with %s, want it unescaped", r.body)
	}
	if r := s.do(t, "GET", "/api/v1/things/"+strings.Repeat("x", 21), "key-pro"); r.status != 400 {
		t.Errorf("an overlong path parameter is answered with %d, want 400", r.status)
	}
}

func TestCachedCopiesAreConfirmed(t *testing.T) {
	s := startServer(t, nil)
	first := s.do(t, "GET", "/api/v1/things/top", "key-pro")
	tag := first.header.Get("ETag")
	if tag == "" || strings.HasPrefix(tag, "W/") || first.header.Get("Cache-Control") != "private, max-age=300" ||
		first.header.Get("Vary") != "Accept-Encoding, Authorization" {
		t.Errorf("headers are %v, want a strong ETag, Cache-Control private, max-age=300 and Vary", first.header)
	}
	if cache := s.do(t, "GET", "/api/v1/hot", "key-pro").header.Get("Cache-Control"); cache != "private, max-age=0, must-revalidate" {
		t.Errorf("Cache-Control without a declared age is %q", cache)
	}
	for _, match := range []string{tag, "W/" + tag, `"other", ` + tag, "*"} {
		r := s.do(t, "GET", "/api/v1/things/top", "key-pro", "If-None-Match", match)
		if r.status != 304 || r.body != "" || r.header.Get("ETag") != tag {
			t.Errorf("If-None-Match %s: got %d %q %v, want 304 with the tag and no body", match, r.status, r.body, r.header)
		}
	}
	if r := s.do(t, "GET", "/api/v1/things/top?limit=3", "key-pro", "If-None-Match", tag); r.status != 200 || r.header.Get("ETag") == tag {
		t.Errorf("another answer is confirmed: %d %v", r.status, r.header)
	}
	if r := s.do(t, "GET", "/api/v1/broken", "key-pro", "If-None-Match", "*"); r.status != 500 {
		t.Errorf("an error is confirmed: %d", r.status)
	}
}

func TestLargeAnswersAreCompressedUnderTheirOwnTag(t *testing.T) {
	s := startServer(t, nil)
	plain := s.do(t, "GET", "/api/v1/large", "key-pro")
	packed := s.do(t, "GET", "/api/v1/large", "key-pro", "Accept-Encoding", "gzip")
	if plain.header.Get("Content-Encoding") != "" || packed.header.Get("Content-Encoding") != "gzip" {
		t.Fatalf("encodings are %q and %q", plain.header.Get("Content-Encoding"), packed.header.Get("Content-Encoding"))
	}
	reader, err := gzip.NewReader(strings.NewReader(packed.body))
	if err != nil {
		t.Fatal(err)
	}
	unpacked, err := io.ReadAll(reader)
	if err != nil || !bytes.Equal(unpacked, []byte(plain.body)) {
		t.Errorf("the compressed body is another one (%v)", err)
	}
	if plain.header.Get("ETag") == packed.header.Get("ETag") {
		t.Errorf("both encodings have the tag %s, want two: a strong tag is of the bytes", plain.header.Get("ETag"))
	}
}

func TestHeadIsGetWithoutItsBody(t *testing.T) {
	s := startServer(t, nil)
	get, head := s.do(t, "GET", "/api/v1/large", "key-pro"), s.do(t, "HEAD", "/api/v1/large", "key-pro")
	if head.status != 200 || head.body != "" || head.header.Get("ETag") != get.header.Get("ETag") || head.header.Get("Content-Length") != fmt.Sprint(len(get.body)) {
		t.Errorf("HEAD gives %d %v %q, want GET's headers (length %d) and no body", head.status, head.header, head.body, len(get.body))
	}
}

func TestLimitsAreAnnouncedAndHeld(t *testing.T) {
	s := startServer(t, func(_ *Config, d *Deps) {
		p := d.Plans[limits.PlanFree]
		p.PerMinute, p.ChartsPerMinute = 3, 2
		d.Plans[limits.PlanFree] = p
	})
	for i, path := range []string{"/api/v1/charts/x", "/api/v1/hot?whole=1"} {
		r := s.do(t, "GET", path, "key-free")
		if want := fmt.Sprint(1 - i); r.status != 200 || r.header.Get("X-RateLimit-Limit") != "2" || r.header.Get("X-RateLimit-Remaining") != want {
			t.Errorf("chart %d: got %d, %s of %s left, want %s of 2", i, r.status, r.header.Get("X-RateLimit-Remaining"), r.header.Get("X-RateLimit-Limit"), want)
		}
	}
	r := s.do(t, "GET", "/api/v1/charts/x", "key-free")
	if r.status != 429 || r.err.Scope != limits.ScopeCharts || r.err.Code != CodeRateLimit || r.err.RetryAfter < 55 || r.err.RetryAfter > 60 ||
		r.header.Get("Retry-After") != fmt.Sprint(r.err.RetryAfter) || r.header.Get("X-RateLimit-Remaining") != "0" {
		t.Errorf("the third chart: got %d %+v %v", r.status, r.err, r.header)
	}
	// A fault of ours and a refusal by the key are not counted; what a validation refuses is.
	s.do(t, "GET", "/api/v1/broken", "key-free")
	s.do(t, "GET", "/api/v1/bulk", "key-free")
	if r := s.do(t, "GET", "/api/v1/hot?limit=x", "key-free"); r.status != 400 || r.header.Get("X-RateLimit-Remaining") != "0" {
		t.Errorf("the third request: got %d with %s left, want 400 with 0", r.status, r.header.Get("X-RateLimit-Remaining"))
	}
	if r := s.do(t, "GET", "/api/v1/hot", "key-free"); r.status != 429 || r.err.Scope != limits.ScopeMinute {
		t.Errorf("the fourth request: got %d %+v, want 429 by the minute", r.status, r.err)
	}
	if r := s.do(t, "GET", "/api/v1/hot", "key-pro"); r.status != 200 {
		t.Errorf("another budget is refused: %d", r.status)
	}
}

// A flag may make a request cost more, where it is true.
func TestAParameterMayCostMore(t *testing.T) {
	c, err := compile(Endpoint{Method: http.MethodGet, Path: "/api/v1/x", ID: "x", Summary: "A test.", Body: echoBody{}, Handle: echo,
		Class: limits.Plain, Params: []Param{{Name: "limit", Kind: Integer, Min: 1, Max: 9, Doc: "Rows."}, {Name: "whole", Kind: Flag, Class: limits.Charts, Doc: "More."}}})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]limits.Class{"1": limits.Charts, "true": limits.Charts, "nonsense": limits.Charts, "0": limits.Plain, "False": limits.Plain} {
		if got := c.class(true, text); got != want {
			t.Errorf("whole=%s: got class %v, want %v", text, got, want)
		}
	}
	if got := c.class(false, ""); got != limits.Plain || c.costly != "whole" {
		t.Errorf("without %q: got class %v, want %v", c.costly, got, limits.Plain)
	}
}

// A parameter that is not an argument of tools is refused where a tool gets it.
func TestToolsDoNotHaveEveryParameter(t *testing.T) {
	c, err := compile(Endpoint{Method: http.MethodGet, Path: "/api/v1/x", ID: "x", Tool: "x", Summary: "A test.", Body: echoBody{}, Handle: echo,
		Params: []Param{{Name: "limit", Kind: Integer, Min: 1, Max: 9, Doc: "Rows."}, {Name: "whole", Kind: Flag, NoTool: true, Doc: "More."}}})
	if err != nil {
		t.Fatal(err)
	}
	input, err := c.toolInput()
	if err != nil || strings.Contains(string(input), "whole") || !strings.Contains(string(input), "limit") {
		t.Errorf("the tool is told of %s, %v", input, err)
	}
	_, err = c.toolArguments(map[string]json.RawMessage{"limit": json.RawMessage("2"), "whole": json.RawMessage("true")})
	if fault := (*Error)(nil); !errors.As(err, &fault) || fault.Fields["whole"] == nil || fault.Fields["limit"] != nil {
		t.Errorf("got %v, want a refusal of whole", err)
	}
}

func TestAuthModes(t *testing.T) {
	optional := startServer(t, func(c *Config, _ *Deps) { c.Auth = AuthOptional })
	if r := optional.do(t, "GET", "/api/v1/hot", ""); r.status != 200 || r.header.Get("X-RateLimit-Limit") != "30" {
		t.Errorf("optional, no key: got %d, limit %s, want Free's", r.status, r.header.Get("X-RateLimit-Limit"))
	}
	if r := optional.do(t, "GET", "/api/v1/hot", "bad"); r.status != 401 {
		t.Errorf("optional, bad key: got %d, want 401", r.status)
	}
	open := startServer(t, func(c *Config, _ *Deps) { c.Auth = AuthOpen })
	if r := open.do(t, "GET", "/api/v1/bulk", "bad"); r.status != 200 {
		t.Errorf("open: got %d, want 200", r.status)
	}
	cfg := DefaultConfig()
	cfg.Auth, cfg.Listen = AuthOpen, "0.0.0.0:8080"
	if err := cfg.Validate(); err == nil {
		t.Error("open on all addresses is allowed")
	}
	starting := startServer(t, func(_ *Config, d *Deps) { d.Keys = stubKeys{"reading keys"} })
	if r := starting.do(t, "GET", "/api/v1/hot", "key-pro"); r.status != 503 || r.err.Code != CodeStarting {
		t.Errorf("before the keys are read: got %d %s, want 503 %s", r.status, r.err.Code, CodeStarting)
	}
}

func TestReadinessNamesWhatIsMissing(t *testing.T) {
	var why string
	var mu sync.Mutex
	s := startServer(t, func(_ *Config, d *Deps) {
		d.Ready = []Readiness{{"prices", func() string { mu.Lock(); defer mu.Unlock(); return why }}}
	})
	set := func(text string) { mu.Lock(); why = text; mu.Unlock() }
	set("reading 3 partitions")
	if r := s.do(t, "GET", "/readyz", ""); r.status != 503 || len(r.err.Errors["prices"]) != 1 {
		t.Errorf("not ready: got %d %+v", r.status, r.err)
	}
	if r := s.do(t, "GET", "/healthz", ""); r.status != 200 {
		t.Errorf("healthz: got %d", r.status)
	}
	set("")
	if r := s.do(t, "GET", "/readyz", ""); r.status != 200 {
		t.Errorf("ready: got %d %s", r.status, r.body)
	}
}

func TestTooManyWaitingRequestsAreRefused(t *testing.T) {
	s := startServer(t, func(c *Config, _ *Deps) { c.Waiting = 1 })
	first := make(chan reply, 1)
	go func() { first <- s.do(t, "GET", "/api/v1/slow", "key-pro") }()
	for deadline := time.Now().Add(time.Minute); len(s.waiting) == 0; {
		if time.Now().After(deadline) {
			t.Fatal("the slow request never began")
		}
	}
	if r := s.do(t, "GET", "/api/v1/cold", "key-pro"); r.status != 503 || r.err.Code != CodeOverloaded {
		t.Errorf("beside a waiting one: got %d %s, want 503 %s", r.status, r.err.Code, CodeOverloaded)
	}
	if r := s.do(t, "GET", "/api/v1/hot", "key-pro"); r.status != 200 {
		t.Errorf("a hot request waits behind a cold one: %d", r.status)
	}
	if r := s.do(t, "GET", "/api/v1/hot?past=2026-01-01", "key-pro"); r.status != 503 || r.err.Code != CodeOverloaded {
		t.Errorf("a request for what a store holds, beside a waiting one: got %d %s, want 503 %s", r.status, r.err.Code, CodeOverloaded)
	}
	close(s.cold)
	if r := <-first; r.status != 200 {
		t.Errorf("the slow request: got %d", r.status)
	}
}

func TestDrainFinishesWhatIsUnderWay(t *testing.T) {
	s := startServer(t, nil)
	answered := make(chan reply, 1)
	go func() { answered <- s.do(t, "GET", "/api/v1/slow", "key-pro") }()
	for deadline := time.Now().Add(time.Minute); len(s.waiting) == 0; {
		if time.Now().After(deadline) {
			t.Fatal("the slow request never began")
		}
	}
	stopped := make(chan error, 1)
	go func() { stopped <- s.stop() }()
	for deadline := time.Now().Add(time.Minute); !s.draining.Load(); {
		if time.Now().After(deadline) {
			t.Fatal("the server never began to drain")
		}
	}
	close(s.cold)
	if r := <-answered; r.status != 200 {
		t.Errorf("a request under way got %d, want 200", r.status)
	}
	if err := <-stopped; err != nil {
		t.Errorf("stopping: %v", err)
	}
}

func TestAServerThatIsStoppedBeforeItBeganEnds(t *testing.T) {
	for range 20 {
		if err := startServer(t, nil).stop(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestIdleConnectionsDoNotHoldUpTheEnd(t *testing.T) {
	s := startServer(t, func(c *Config, _ *Deps) { c.Drain = time.Minute })
	response, err := http.Get(s.base + "/healthz") // stays open for the next request
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	start := time.Now()
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took > s.cfg.Drain/2 {
		t.Errorf("stopping took %s with one idle connection", took)
	}
}

func TestMetricsPassTheLinter(t *testing.T) {
	s := startServer(t, nil)
	s.do(t, "GET", "/api/v1/hot", "key-pro")
	s.do(t, "GET", "/nothing", "")
	recorder := httptest.NewRecorder()
	promhttp.HandlerFor(s.deps.Metrics, promhttp.HandlerOpts{}).ServeHTTP(recorder, httptest.NewRequest("GET", "/metrics", nil))
	r := reply{body: recorder.Body.String()}
	if r := s.do(t, "GET", "/metrics", ""); r.status != http.StatusNotFound {
		t.Errorf("/metrics beside the API, which a proxy publishes: got %d, want 404", r.status)
	}
	if !strings.Contains(r.body, `marketlog_http_requests_total{operation="hot",status="200"} 1`) ||
		!strings.Contains(r.body, `marketlog_http_requests_total{operation="none",status="404"} 1`) {
		t.Errorf("the metrics lack the requests made:\n%s", r.body)
	}
	problems, err := promlint.New(strings.NewReader(r.body)).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("linting the metrics: %v %v", problems, err)
	}
}

// exchange sends bytes, and returns all that comes until the server ends the connection.
func exchange(t *testing.T, s *testServer, request string) string {
	t.Helper()
	conn, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil {
		t.Fatalf("the connection is not ended: %v after %q", err, answer)
	}
	return string(answer)
}

func TestOtherVersionsOfHTTPAreRefused(t *testing.T) {
	s := startServer(t, nil)
	for _, version := range []string{"HTTP/9.9", "HTTP/2.0", "HTTP/0.9"} {
		got := exchange(t, s, "GET /healthz "+version+"\r\nHost: x\r\n\r\n")
		if !strings.HasPrefix(got, "HTTP/1.1 505 ") || !strings.Contains(got, "only HTTP/1.1 is supported") {
			t.Errorf("%s: got %q", version, got)
		}
	}
}

// A message with two lengths may have ended elsewhere for a proxy: what follows it is not answered.
func TestAMessageWithTwoLengthsEndsTheConnection(t *testing.T) {
	s := startServer(t, nil)
	const next = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
	for _, method := range []string{"GET", "POST"} {
		for _, lengths := range []string{"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", "Transfer-Encoding: chunked\r\ncontent-length: 4\r\n"} {
			got := exchange(t, s, method+" /healthz HTTP/1.1\r\nHost: x\r\n"+lengths+"\r\n0\r\n\r\n"+next)
			if n := strings.Count(got, "HTTP/1.1 "); n != 1 || !strings.Contains(got, "Connection: close") {
				t.Errorf("%s with %q: %d answers in %q, want one and the end", method, lengths, n, got)
			}
		}
	}
}

func TestServerSpeaksTLS(t *testing.T) {
	donor := httptest.NewTLSServer(nil)
	defer donor.Close()
	s := startServer(t, func(_ *Config, deps *Deps) { deps.TLS = &tls.Config{Certificates: donor.TLS.Certificates} })
	answer, err := donor.Client().Get("https://" + s.Addr() + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Errorf("over TLS: got %s", answer.Status)
	}
	if answer, err := http.Get(s.base + "/healthz"); err == nil {
		answer.Body.Close()
		t.Errorf("in the clear: got %s, want no answer", answer.Status)
	}
}

// A view that its first reader makes is of a time that its position does not lie before.
func TestPositionsAreOfAfterWhatWasMade(t *testing.T) {
	made := time.Unix(0, 0)
	s := startServer(t, func(_ *Config, deps *Deps) {
		deps.Replica, deps.Refresh = "replica", func() { made = time.Now() }
	})
	r := s.do(t, "GET", "/api/v1/hot", "key-free")
	at, err := position.Parse(r.header.Get("X-Position"))
	if err != nil || at.Replica != "replica" || at.At.Before(made) || made.Unix() == 0 {
		t.Errorf("made at %s, the position is %+v, %v", made, at, err)
	}
}
