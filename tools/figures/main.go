// Command figures measures every figure of the page in one go and writes docs/figures.md: each the median of its runs, beside
// what was measured in the same runs as its limit.
//
//	go -C tools run ./figures
//
// What it measured of a commit is kept in bin/figures, so that a measurement that was broken off goes on where it stopped. It
// exits 1 and leaves the page as it was if a figure is missing.
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/marketlog/marketlog/tools/machine"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "figures:", err)
		os.Exit(1)
	}
}

func run() error {
	// The program lies in the module of the tools; all it looks at is in the one above.
	if err := os.Chdir(".."); err != nil {
		return err
	}
	list, err := jobs(".")
	if err != nil {
		return err
	}
	commit, err := exec.Command("git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return fmt.Errorf("asking git for the commit: %w", err)
	}
	m := measured{commit: strings.TrimSpace(string(commit))}
	printed, err := measure(list, filepath.Join("bin", "figures", m.commit), os.Stdout)
	if err != nil {
		return err
	}
	if err := m.read(strings.NewReader(printed)); err != nil {
		return err
	}
	m.date, m.cores, m.memory = time.Now().UTC(), runtime.NumCPU(), machine.Memory()
	m.temporary = os.TempDir()
	var page strings.Builder
	missing, err := write(&page, m)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		return fmt.Errorf("not measured: %s", strings.Join(missing, "; "))
	}
	return os.WriteFile(filepath.Join("docs", "figures.md"), []byte(page.String()), 0o644)
}

// measured is what some runs of the benchmarks printed.
type measured struct {
	system, cpu string
	commit      string
	// temporary is where tables and logs lay: on a disk, inserts of runs that follow one another may slow down.
	temporary string
	date      time.Time
	cores     int
	memory    string
	// values are those of each run, by benchmark and unit.
	values map[source][]float64
}

// source is where a figure comes from: a benchmark without the word Benchmark before and the number of
// processors after it, and the unit it reports.
type source struct{ benchmark, unit string }

func (m *measured) read(r io.Reader) error {
	m.values = map[source][]float64{}
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
				return fmt.Errorf("reading %q of %s: %w", words[i], name, err)
			}
			s := source{name, words[i+1]}
			m.values[s] = append(m.values[s], value)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("reading the runs: %w", err)
	}
	return nil
}

// median is that of the runs; false where there is none.
func (m measured) median(s source) (float64, bool) {
	values := slices.Sorted(slices.Values(m.values[s]))
	if len(values) == 0 {
		return 0, false
	}
	return values[len(values)/2], true
}
