package sql

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/marketlog/marketlog/query"
)

// answering is a Server on what answers by a handler.
func answering(t *testing.T, handler http.HandlerFunc) *Server {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return NewServer(ServerConfig{Addr: strings.TrimPrefix(server.URL, "http://"), User: "reader", Password: "hunter2", Statements: 1, Log: slog.New(slog.DiscardHandler)})
}

// A statement is sent with the limits that it has, as a user that reads only; the password is no part of its address.
func TestAStatementIsSentWithItsLimits(t *testing.T) {
	var got *http.Request
	var body string
	s := answering(t, func(w http.ResponseWriter, r *http.Request) {
		content, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got, body = r, string(content)
	})
	response, err := s.Ask(t.Context(), "budget", url.Values{"default_format": {"Parquet"}, "param_a": {"1&2"}, "max_result_rows": {"7"}}, "SELECT 'é'")
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("got %v, %v", response, err)
	}
	_ = response.Body.Close()
	want := url.Values{"default_format": {"Parquet"}, "param_a": {"1&2"}, "max_result_rows": {"7"}, "database": {"default"}, "quota_key": {"budget"}, "readonly": {"2"},
		"max_execution_time": {"10"}, "max_memory_usage": {"536870912"}, "result_overflow_mode": {"throw"}, "timeout_overflow_mode": {"throw"},
		"cancel_http_readonly_queries_on_client_close": {"1"}}
	if query := got.URL.Query(); got.Method != http.MethodPost || query.Encode() != want.Encode() || body != "SELECT 'é'" {
		t.Errorf("got %s %v %q, want POST %v", got.Method, query, body, want)
	}
	if got.Header.Get("X-ClickHouse-User") != "reader" || got.Header.Get("X-ClickHouse-Key") != "hunter2" {
		t.Errorf("got the headers %v", got.Header)
	}
}

// A server that is away, that does not know the user, or that is not a server is the operator's to mend: callers are asked to come again, and
// the log says why.
func TestAServerThatCannotBeAskedIsNoFaultOfTheStatement(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	away := listener.Addr().String()
	_ = listener.Close()
	for name, c := range map[string]struct {
		addr   string
		answer http.HandlerFunc
		want   string
	}{
		"away": {addr: away, want: "connection refused"},
		"an unknown user": {want: "does not know the user of sql.user", answer: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-ClickHouse-Exception-Code", "516")
			w.WriteHeader(http.StatusForbidden)
		}},
		"something else": {want: "status 404 is not a ClickHouse server", answer: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }},
		"a redirection": {want: "status 307 is not a ClickHouse server", answer: func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://203.0.113.1/", http.StatusTemporaryRedirect)
		}},
	} {
		var log strings.Builder
		cfg := ServerConfig{Addr: c.addr, User: "reader", Password: "hunter2", Statements: 1, Log: slog.New(slog.NewTextHandler(&log, nil))}
		if c.answer != nil {
			server := httptest.NewServer(c.answer)
			t.Cleanup(server.Close)
			cfg.Addr = strings.TrimPrefix(server.URL, "http://")
		}
		s := NewServer(cfg)
		for range 2 { // there is one place
			response, err := s.Ask(t.Context(), "budget", url.Values{"default_format": {"CSV"}}, "SELECT 1")
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			text, err := io.ReadAll(response.Body)
			var shown *query.Error
			if !errors.As(refusal("SELECT 1", string(text), response.StatusCode, response.Header.Get("X-ClickHouse-Exception-Code")), &shown) || err != nil ||
				shown.Status != http.StatusServiceUnavailable || shown.RetryAfter == 0 || strings.Contains(string(text), cfg.Addr) {
				t.Errorf("%s: got %v (%s), %v, want 503 and nothing of the server", name, shown, text, err)
			}
		}
		if got := log.String(); !strings.Contains(got, c.want) || strings.Contains(got, "hunter2") || strings.Contains(got, "SELECT") || strings.Contains(got, "max_execution_time") {
			t.Errorf("%s: logged %s, want %q and nothing secret", name, got, c.want)
		}
	}
}

// Who gives up while others run does not wait on, and a place is free once its answer is closed.
func TestPlacesAreGivenBack(t *testing.T) {
	s := answering(t, func(http.ResponseWriter, *http.Request) {})
	first, err := s.Ask(t.Context(), "a", nil, "SELECT 1")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Ask(ctx, "b", nil, "SELECT 1"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that it waits no longer", err)
	}
	for range 2 {
		_ = first.Body.Close() // as the server does, at the answer's end and when its reader is gone
	}
	second, err := s.Ask(t.Context(), "b", nil, "SELECT 1")
	if err != nil || second.StatusCode != http.StatusOK {
		t.Fatalf("got %v, %v", second, err)
	}
	_ = second.Body.Close()
}
