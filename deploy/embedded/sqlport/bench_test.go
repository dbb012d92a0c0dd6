//go:build linux || darwin

package sqlport

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/marketlog/marketlog/deploy/embedded/engine"
)

// What does a process of its own cost a statement on a view? The same statement is asked there and in the server's process, of a
// million rows that merges have not put together.
func BenchmarkView(b *testing.B) {
	i := install(b)
	i.do(b, "CREATE TABLE m.prices (coin LowCardinality(String), at DateTime64(3, 'UTC'), price Float64, version UInt64) ENGINE = ReplacingMergeTree(version) ORDER BY (coin, at)",
		"CREATE VIEW default.v_prices AS SELECT coin, at, price FROM m.prices FINAL")
	for part := range 4 {
		i.do(b, fmt.Sprintf("INSERT INTO m.prices SELECT toString(number %% 500), toDateTime64('2026-01-01 00:00:00', 3, 'UTC') + intDiv(number, 500), number, %d FROM numbers(%d, 250000)", part, part*250000))
	}
	i.wait(b, "SELECT count() FROM v_prices", "1000000\n")
	inside, err := engine.Handler(i.owner, engine.DefaultLimits())
	if err != nil {
		b.Fatal(err)
	}
	server := httptest.NewServer(inside)
	b.Cleanup(server.Close)
	for _, statement := range []struct{ name, sql string }{
		{"One", "SELECT 1"},
		{"Coin", "SELECT price FROM v_prices WHERE coin = '77' ORDER BY at DESC LIMIT 1"},
		{"All", "SELECT coin, max(price) FROM v_prices GROUP BY coin ORDER BY coin FORMAT Null"},
		{"Rows", "SELECT * FROM v_prices FORMAT RowBinary"},
	} {
		for _, where := range []struct{ name, url string }{{"Server", server.URL}, {"Child", i.url}} {
			b.Run(statement.name+where.name, func(b *testing.B) {
				for b.Loop() {
					response, err := http.Post(where.url, "text/plain", strings.NewReader(statement.sql))
					if err != nil {
						b.Fatal(err)
					}
					n, err := io.Copy(io.Discard, response.Body)
					response.Body.Close()
					if err != nil || response.StatusCode != http.StatusOK {
						b.Fatalf("%s: got %d, %d bytes, %v", statement.sql, response.StatusCode, n, err)
					}
				}
			})
		}
	}
}
