// Command figures reads what `make bench` printed, one or more runs of all benchmarks, and writes the
// page of figures: each the median of the runs, beside what was measured in the same runs as its limit.
//
//	go -C tools run ./figures <bin/bench.txt >bin/figures.md
//
// It exits 1, after writing the page, if a figure is missing from what it read.
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	m, err := read(os.Stdin)
	if err != nil {
		fmt.Fprintln(os.Stderr, "figures:", err)
		os.Exit(1)
	}
	m.date, m.cores, m.memory = time.Now().UTC(), runtime.NumCPU(), memory()
	missing, err := write(os.Stdout, m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "figures:", err)
		os.Exit(1)
	}
	for _, name := range missing {
		fmt.Fprintln(os.Stderr, "figures: not measured:", name)
	}
	if len(missing) > 0 {
		os.Exit(1)
	}
}

// memory is what the machine has, in words; empty where the system does not tell.
func memory() string {
	content, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(content)) {
		if kB, found := strings.CutPrefix(line, "MemTotal:"); found {
			n, _ := strconv.ParseFloat(strings.Fields(kB)[0], 64)
			return fmt.Sprintf("%.0f GB", n/(1<<20))
		}
	}
	return ""
}

// measured is what some runs of the benchmarks printed.
type measured struct {
	system, cpu string
	date        time.Time
	cores       int
	memory      string
	// values are those of each run, by benchmark and unit.
	values map[source][]float64
}

// source is where a figure comes from: a benchmark without the word Benchmark before and the number of
// processors behind it, and the unit it reports.
type source struct{ benchmark, unit string }

func read(r io.Reader) (measured, error) {
	m := measured{values: map[source][]float64{}}
	lines := bufio.NewScanner(r)
	goos := ""
	for lines.Scan() {
		line := lines.Text()
		if v, ok := strings.CutPrefix(line, "goos: "); ok {
			goos = v
		}
		if v, ok := strings.CutPrefix(line, "goarch: "); ok {
			m.system = goos + "/" + v
		}
		if v, ok := strings.CutPrefix(line, "cpu: "); ok {
			m.cpu = v
		}
		words := strings.Fields(line)
		if len(words) < 4 || !strings.HasPrefix(words[0], "Benchmark") {
			continue
		}
		if _, err := strconv.Atoi(words[1]); err != nil {
			continue
		}
		name := strings.TrimPrefix(words[0], "Benchmark")
		if i := strings.LastIndexByte(name, '-'); i > 0 {
			if _, err := strconv.Atoi(name[i+1:]); err == nil {
				name = name[:i]
			}
		}
		for i := 2; i+1 < len(words); i += 2 {
			value, err := strconv.ParseFloat(words[i], 64)
			if err != nil {
				return m, fmt.Errorf("reading %q of %s: %w", words[i], name, err)
			}
			s := source{name, words[i+1]}
			m.values[s] = append(m.values[s], value)
		}
	}
	if err := lines.Err(); err != nil {
		return m, fmt.Errorf("reading the runs: %w", err)
	}
	return m, nil
}

// median is that of the runs; false where there is none.
func (m measured) median(s source) (float64, bool) {
	values := slices.Sorted(slices.Values(m.values[s]))
	if len(values) == 0 {
		return 0, false
	}
	return values[len(values)/2], true
}

func (m measured) runs() int {
	most := 0
	for _, values := range m.values {
		most = max(most, len(values))
	}
	return most
}
