//go:build linux || darwin

package sqlport

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/deploy/embedded/engine"
	"github.com/marketlog/marketlog/query/sql"
)

// Other processes of the installation ask for those whom they know as they ask a ClickHouse server, within the limits of the known, and
// leave no place behind.
func TestOtherProcessesAskForThoseTheyKnow(t *testing.T) {
	limits := engine.DefaultLimits()
	limits.Time, limits.Memory, limits.Rows = sql.Time, 64<<20, 100_000
	i := install(t, func(o *Options) { o.Known, o.Statements = limits, 4 })
	server := httptest.NewServer(i.reader.Known())
	t.Cleanup(server.Close)
	s := sql.NewServer(sql.ServerConfig{Addr: strings.TrimPrefix(server.URL, "http://"), User: "reader", Password: "secret", Statements: 2, Log: slog.New(slog.DiscardHandler)})
	for range 3 { // more than the server has places: each is given back
		for _, c := range []struct {
			statement  string
			status     int
			code, want string
		}{
			{"SELECT count(), max(a) FROM v_t", 200, "", "1000,999\n"},
			{"SELECT * FROM v_secret", 403, "164", "kept from this interface"},
			{"DROP TABLE m.t", 403, "164", "READONLY"},
			{"SELECT b FROM v_t", 404, "47", "Unknown expression identifier `b`"},
			{"SELECT groupArray(repeat('x', 100000)) FROM numbers(5000)", 500, "241", "MEMORY_LIMIT_EXCEEDED"},
			{"SELECT 1 SETTINGS readonly = 0", 403, "164", "readonly"},
		} {
			response, err := s.Ask(t.Context(), "a", url.Values{"default_format": {"CSV"}}, c.statement)
			if err != nil {
				t.Fatalf("%s: %v", c.statement, err)
			}
			text, err := io.ReadAll(response.Body)
			if code := response.Header.Get("X-ClickHouse-Exception-Code"); err != nil || response.StatusCode != c.status || code != c.code || !strings.Contains(string(text), c.want) {
				t.Errorf("%s: got %d, code %q, %v: %.300s\nwant %d, code %q: %s", c.statement, response.StatusCode, code, err, text, c.status, c.code, c.want)
			}
			if err := response.Body.Close(); err != nil {
				t.Errorf("%s: closing the answer: %v", c.statement, err)
			}
		}
	}
	// Who has gone in the middle of an answer leaves none either.
	response, err := s.Ask(t.Context(), "a", url.Values{"default_format": {"CSV"}}, "SELECT number, repeat('x', 100) FROM numbers(90000)")
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("got %v, %v", response, err)
	}
	if _, err := response.Body.Read(make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); i.reader.slots.count() > 0; {
		if time.Now().After(deadline) {
			t.Fatalf("%d places are taken, and nobody asks", i.reader.slots.count())
		}
		time.Sleep(10 * time.Millisecond)
	}
}
