package main

import (
	"os"
	"path/filepath"
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
	m := measured{commit: "0123456789ab", temporary: "/tmp"}
	if err := m.read(strings.NewReader(runs)); err != nil {
		t.Fatal(err)
	}
	m.date, m.cores, m.memory = time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC), 2, "24 GB"
	var page strings.Builder
	missing, err := write(&page, m)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"2026-01-02 · commit 0123456789ab · Some Processor, 2 cores, 24 GB · linux/amd64 · temporary files in /tmp\n",
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
	// The sink by hand, the requests and all else that the runs lack.
	rows := strings.Count(page.String(), "\n| ") - strings.Count(page.String(), "| figure |")
	if want := rows - 4; len(missing) != want {
		t.Errorf("%d of %d figures are missing, want %d: %v", len(missing), rows, want, missing)
	}
}

// A measurement that was broken off goes on where it stopped, and a benchmark that fails leaves no file.
func TestAMeasurementGoesOn(t *testing.T) {
	t.Chdir(t.TempDir())
	for path, text := range map[string]string{
		"go.mod":           "module sample\n\ngo 1.25\n",
		"fast/all_test.go": "package fast\n\nimport \"testing\"\n\nfunc BenchmarkA(b *testing.B) { b.ReportMetric(1, \"a/s\") }\nfunc BenchmarkB(b *testing.B) { b.Fatal(\"no engine\") }\n",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	list := []job{{"fast", "A", 2}, {"fast", "B", 1}}
	for _, want := range []int{2, 0} {
		var progress strings.Builder
		printed, err := measure(list, "kept", &progress)
		if err == nil || !strings.Contains(err.Error(), "B of fast") || !strings.Contains(err.Error(), "no engine") {
			t.Errorf("got %v, want what failed of B", err)
		}
		if strings.Count(printed, "a/s") != 2 || strings.Count(progress.String(), " A (") != want {
			t.Errorf("got %q and %q, want two runs of A of which %d were run now", printed, progress.String(), want)
		}
	}
}

// Every benchmark of the page is found once, and those that repeat themselves are benchmarks of the page.
func TestJobsAreThoseOfThePage(t *testing.T) {
	list, err := jobs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	for _, j := range list {
		found[j.name] = j.runs
	}
	for _, name := range once {
		if found[name] != 1 {
			t.Errorf("%s is run %d times, want once", name, found[name])
		}
	}
	if found[sink] != enough || found[chain] != enough || len(found) != len(list) {
		t.Errorf("got %+v, want each benchmark once and the sinks %d times", list, enough)
	}
}

func TestARunThatIsNoRunIsRefused(t *testing.T) {
	if err := new(measured).read(strings.NewReader("BenchmarkX-2 1 many ns/op\n")); err == nil || !strings.Contains(err.Error(), `"many"`) {
		t.Errorf("got %v, want an error that names the value", err)
	}
}
