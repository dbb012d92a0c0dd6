//go:build linux || darwin

package sqlport

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/deploy/embedded/engine"
)

// What does a process of its own cost a statement on a view? The same statement is asked there and in the server's process, of a
// million rows that merges have not put together. Anew is without the columns that the process holds of what was asked before. Inside, answers are
// formatted by threads of their own, as they were when statements ran there.
func BenchmarkView(b *testing.B) {
	i := install(b)
	i.millionPrices(b)
	inside, err := engine.Handler(i.owner, engine.DefaultLimits())
	if err != nil {
		b.Fatal(err)
	}
	server := httptest.NewServer(inside)
	b.Cleanup(server.Close)
	const held, anew = "/?use_uncompressed_cache=1", "/?use_uncompressed_cache=0"
	for _, statement := range []struct{ name, sql, params string }{
		{"One", "SELECT 1", held},
		{"Coin", "SELECT price FROM v_prices WHERE coin = '77' ORDER BY at DESC LIMIT 1", held},
		{"All", "SELECT coin, max(price) FROM v_prices GROUP BY coin ORDER BY coin FORMAT Null", held},
		{"CoinAnew", "SELECT price FROM v_prices WHERE coin = '77' ORDER BY at DESC LIMIT 1", anew},
		{"AllAnew", "SELECT coin, max(price) FROM v_prices GROUP BY coin ORDER BY coin FORMAT Null", anew},
		{"Rows", "SELECT * FROM v_prices FORMAT RowBinary", held},
		{"JSON", "SELECT * FROM v_prices FORMAT JSONEachRow", held},
		{"CSV", "SELECT * FROM v_prices FORMAT CSV", held},
	} {
		b.Run(statement.name, func(b *testing.B) {
			var inside, process []float64
			var insideUsed, processUsed time.Duration
			pid := i.pid()
			for b.Loop() { // in turns, so that what else the machine does touches both
				server0 := processorTime(b, 0)
				inside = append(inside, timeOf(b, server.URL+statement.params+"&output_format_parallel_formatting=1", statement.sql))
				server1, child1 := processorTime(b, 0), processorTime(b, pid)
				process = append(process, timeOf(b, i.url+statement.params, statement.sql))
				server2, child2 := processorTime(b, 0), processorTime(b, pid)
				insideUsed += server1 - server0
				processUsed += server2 - server1 + child2 - child1
			}
			b.ReportMetric(middle(inside), "inside-ms")
			b.ReportMetric(middle(process), "process-ms")
			b.ReportMetric(middle(inside)/middle(process), "rate-of-inside")
			// What other work on the machine changes little.
			b.ReportMetric(insideUsed.Seconds()/processUsed.Seconds(), "rate-by-processor-time")
		})
	}
}

// timeOf is how long the answer to a statement takes, read to its end, in milliseconds.
func timeOf(b *testing.B, url, statement string) float64 {
	b.Helper()
	began := time.Now()
	response, err := http.Post(url, "text/plain", strings.NewReader(statement))
	if err != nil {
		b.Fatal(err)
	}
	defer response.Body.Close()
	n, err := io.Copy(io.Discard, response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		b.Fatalf("%s: got %d, %d bytes, %v", statement, response.StatusCode, n, err)
	}
	return time.Since(began).Seconds() * 1000
}

// millionPrices makes v_prices of a million rows in four parts.
func (i *installation) millionPrices(b *testing.B) {
	b.Helper()
	i.do(b, "CREATE TABLE m.prices (coin LowCardinality(String), at DateTime64(3, 'UTC'), price Float64, version UInt64) ENGINE = ReplacingMergeTree(version) ORDER BY (coin, at)",
		"CREATE VIEW default.v_prices AS SELECT coin, at, price FROM m.prices FINAL")
	for part := range 4 {
		i.do(b, fmt.Sprintf("INSERT INTO m.prices SELECT toString(number %% 500), toDateTime64('2026-01-01 00:00:00', 3, 'UTC') + intDiv(number, 500), number, %d FROM numbers(%d, 250000)", part, part*250000))
	}
	i.wait(b, "SELECT count() FROM v_prices", "1000000\n")
}

// How much of the rate of ingest is left while people read? Batches of ticks go into the owner's engine in turns: without a
// process for people's statements, beside one that has nothing to do, and beside one that a reader keeps busy.
func BenchmarkIngestBesideReaders(b *testing.B) {
	i := install(b)
	i.do(b, "CREATE TABLE m.ticks (coin LowCardinality(String), venue LowCardinality(String), at DateTime64(3, 'UTC'), price Float64, size Float64, version UInt64) "+
		"ENGINE = ReplacingMergeTree(version) PARTITION BY toYYYYMM(at) ORDER BY (coin, venue, at)")
	i.millionPrices(b)
	const rows, batches = 10_000, 30
	inserted := 0
	ingest := func() float64 {
		began := time.Now()
		for range batches {
			i.do(b, fmt.Sprintf(`INSERT INTO m.ticks SELECT toString(number %% 500), ['kraken','coinbase','binance'][number %% 3 + 1],
				toDateTime64('2026-01-01 00:00:00', 3, 'UTC') + number / 1000, number, number, number FROM numbers(%d, %d)`, inserted, rows))
			inserted += rows
		}
		return rows * batches / time.Since(began).Seconds()
	}
	ingest() // what the first merges cost belongs to none of them
	var without, idle, busy []float64
	for b.Loop() {
		i.stopProcess()
		without = append(without, ingest())
		i.wait(b, "SELECT 1", "1\n")
		idle = append(idle, ingest())
		stop := i.readOn(b, "SELECT coin, max(price), count() FROM v_prices GROUP BY coin ORDER BY coin")
		busy = append(busy, ingest())
		stop()
	}
	b.ReportMetric(middle(without), "rows/s")
	b.ReportMetric(middle(idle)/middle(without), "idle-of-without")
	b.ReportMetric(middle(busy)/middle(without), "busy-of-without")
}

// stopProcess ends the process of people's statements; the next one starts it.
func (i *installation) stopProcess() {
	i.reader.mu.Lock()
	c := i.reader.child
	i.reader.child = nil
	i.reader.mu.Unlock()
	if c != nil {
		c.stop()
	}
}

// readOn asks a statement again and again until the returned function is called, which waits for the last answer.
func (i *installation) readOn(b *testing.B, statement string) (stop func()) {
	b.Helper()
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-over:
				return
			default:
			}
			if status, body := i.ask(b, statement); status != http.StatusOK {
				b.Errorf("%s: got %d %.200s", statement, status, body)
				return
			}
		}
	}()
	return func() { close(over); <-ended }
}

func middle(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}
