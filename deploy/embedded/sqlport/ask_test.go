//go:build linux || darwin

package sqlport

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/deploy/embedded/engine"
)

// ask runs a statement of somebody known and reads the answer to its end.
func (i *installation) askKnown(t *testing.T, parameters url.Values, statement string) (status int, code, text string, err error) {
	t.Helper()
	response, err := i.reader.Ask(t.Context(), "a", parameters, statement)
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	body, err := io.ReadAll(response.Body)
	if _, again := response.Body.Read(make([]byte, 1)); err == nil && again != io.EOF {
		t.Errorf("%s: after the end a reading gets %v, want EOF", statement, again)
	}
	if closed := response.Body.Close(); closed != nil {
		t.Errorf("%s: closing the answer: %v", statement, closed)
	}
	return response.StatusCode, response.Header.Get("X-ClickHouse-Exception-Code"), string(body), err
}

// Those who have shown a key ask the same tables under limits of their own, receive the place where a statement is wrong as they wrote it, and
// leave no place behind, also where they go in the middle of an answer.
func TestTheKnownAskUnderTheirOwnLimits(t *testing.T) {
	limits := engine.DefaultLimits()
	limits.Time, limits.Memory, limits.Rows = 5*time.Second, 64<<20, 100_000 // those that end in time do so on a busy machine too
	i := install(t, func(o *Options) { o.Known, o.Statements = limits, 2 })
	in := func(format string, more ...string) url.Values {
		v := url.Values{"default_format": {format}}
		for n := 0; n < len(more); n += 2 {
			v.Set(more[n], more[n+1])
		}
		return v
	}
	for _, c := range []struct {
		parameters url.Values
		statement  string
		status     int
		code, want string
	}{
		{in("CSV"), "SELECT count(), max(a) FROM v_t", 200, "", "1000,999\n"},
		{in("CSV", "param_a", "7"), "SELECT a FROM v_t WHERE a = {a:UInt64};\n", 200, "", "7\n"},
		{in("CSV"), "SELECT * FROM v_secret", 403, "164", "kept from this interface"},
		{in("CSV"), "DROP TABLE m.t", 403, "164", "READONLY"},
		{in("CSV"), "SELEC 1", 400, "62", "failed at position 7 (1)"},
		{in("CSV"), "SELECT 1,\n  2 FRM v_t", 400, "62", "failed at position 19 (v_t) (line 2, col 9): v_t. Expected"},
		{in("CSV"), "SELECT b FROM v_t", 404, "47", "Unknown expression identifier `b`"},
		{in("CSV", "max_result_rows", "10"), "SELECT number FROM numbers(100)", 500, "396", "TOO_MANY_ROWS_OR_BYTES"},
		{in("CSV"), "SELECT groupArray(repeat('x', 100000)) FROM numbers(5000)", 500, "241", "MEMORY_LIMIT_EXCEEDED"},
		{in("CSV"), "SELECT count() FROM numbers(1000000000000) WHERE NOT ignore(sipHash64(number))", 408, "159", "TIMEOUT_EXCEEDED"},
		{in("CSV"), "SELECT count() FROM numbers(1000000000000) WHERE NOT ignore(sipHash64(number)) SETTINGS max_execution_time = 60", 403, "164", "Cannot modify 'max_execution_time'"},
	} {
		status, code, text, err := i.askKnown(t, c.parameters, c.statement)
		if err != nil || status != c.status || code != c.code || !strings.Contains(text, c.want) {
			t.Errorf("%s: got %d, code %q, %v: %.300s\nwant %d, code %q: %s", c.statement, status, code, err, text, c.status, c.code, c.want)
		}
	}
	// What is too long is refused, or breaks off where it has begun, and says why; nobody lifts a limit.
	for _, more := range [][]string{nil, {"max_result_rows", "1000000"}} {
		status, _, text, err := i.askKnown(t, in("CSV", more...), "SELECT number FROM numbers(200000)")
		if status == http.StatusOK && err == nil || !strings.Contains(text[max(0, len(text)-500):], "TOO_MANY_ROWS_OR_BYTES") {
			t.Errorf("%v: got %d, %v, which ends with %.500s", more, status, err, text[max(0, len(text)-500):])
		}
	}
	// The two places are free again, whoever has gone.
	for range 6 {
		ctx, leave := context.WithCancel(t.Context())
		response, err := i.reader.Ask(ctx, "a", in("CSV"), "SELECT number, repeat('x', 100) FROM numbers(90000)")
		if err != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("got %v, %v", response, err)
		}
		if _, err := response.Body.Read(make([]byte, 10)); err != nil {
			t.Fatal(err)
		}
		leave()
		if err := response.Body.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if n := i.reader.slots.count(); n != 0 {
		t.Errorf("%d places are taken, and nobody asks", n)
	}
	// The port of those who show no key has the limits it had.
	if status, body := i.ask(t, "SELECT count() FROM (SELECT number FROM numbers(200000)) FORMAT CSV"); status != 200 || body != "200000\n" {
		t.Errorf("the port: got %d %s", status, body)
	}
}
