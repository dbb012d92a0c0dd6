package main

import (
	"strings"
	"testing"
	"time"
)

const runs = `goos: linux
goarch: amd64
pkg: example.com/processors
cpu: Some Processor
BenchmarkSink_20Venues1000Coins/insert-only-2         	       1	 100 ns/op	   1000000 rows/s	   1.5 cpu-µs/row
BenchmarkSink_20Venues1000Coins/sink-2                	       1	 100 ns/op	    500000 rows/s	   2.5 cpu-µs/row
BenchmarkSink_20Venues1000Coins/insert-only-2         	       1	 100 ns/op	   1000000 rows/s	   1.5 cpu-µs/row
BenchmarkSink_20Venues1000Coins/sink-2                	       1	 100 ns/op	    700000 rows/s	   2.5 cpu-µs/row
BenchmarkSink_20Venues1000Coins/insert-only-2         	       1	 100 ns/op	   1000000 rows/s	   1.5 cpu-µs/row
BenchmarkSink_20Venues1000Coins/sink-2                	       1	 100 ns/op	    510000 rows/s	   2.5 cpu-µs/row
BenchmarkFanOut_10kSubscribers200Symbols-2   	       1	26492305963 ns/op	        19.21 kB/conn
BenchmarkStart-2   	       1	26492305963 ns/op	        13776 first-price-ms
PASS
`

func TestFiguresLieBesideTheirLimits(t *testing.T) {
	m, err := read(strings.NewReader(runs))
	if err != nil {
		t.Fatal(err)
	}
	m.date, m.cores, m.memory = time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC), 2, "24 GB"
	var page strings.Builder
	missing, err := write(&page, m)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"2026-01-02 · Some Processor, 2 cores, 24 GB · linux/amd64 · runs: 3\n",
		"| rows of ticks a second | 510,000 | 1,000,000 | 0.51 | ≥ 0.6 **missed** | inserting the same rows and nothing else |\n",
		"| µs of CPU a row of ticks | 2.5 | 1.5 | 1.67 |  | inserting the same rows and nothing else |\n",
		"| kB of memory a connection | 19.2 |  |  | ≤ 22 |  |\n",
		"| ms until the first price of BTC, empty | 13,776 |  |  | ≤ 20,000 |  |\n",
		"| requests a second | not measured |  |  | ≥ 0.75 | a Fiber handler that returns the same bytes |\n",
	} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("got\n%s\nwant in it %s", page.String(), want)
		}
	}
	if strings.Contains(page.String(), "Not to be quoted") {
		t.Errorf("got\n%s\nwant three runs to be enough", page.String())
	}
	// The sink by hand, the requests and all else that the runs lack.
	rows := strings.Count(page.String(), "\n| ") - strings.Count(page.String(), "| figure |")
	if want := rows - 4; len(missing) != want {
		t.Errorf("%d of %d figures are missing, want %d: %v", len(missing), rows, want, missing)
	}
}

func TestTooFewRunsSaySo(t *testing.T) {
	var page strings.Builder
	m, err := read(strings.NewReader("BenchmarkStart-2 1 5 ns/op 13776 first-price-ms\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := write(&page, m); err != nil || !strings.Contains(page.String(), "Not to be quoted: fewer than 3 runs") {
		t.Errorf("got %v and\n%s", err, page.String())
	}
}

func TestARunThatIsNoRunIsRefused(t *testing.T) {
	if _, err := read(strings.NewReader("BenchmarkX-2 1 many ns/op\n")); err == nil || !strings.Contains(err.Error(), `"many"`) {
		t.Errorf("got %v, want an error that names the value", err)
	}
}
