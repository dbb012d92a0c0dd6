package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/marketlog/marketlog/tools/machine"
)

// folder holds the files.
var folder = filepath.Join("docs", "proofs")

// recorded is the content of a file.
type recorded struct {
	Shows  string    `json:"shows"`
	Result string    `json:"result"` // passed, failed or skipped
	Date   time.Time `json:"date"`
	// Commit is what was checked out; Changed means that files differed from it.
	Commit  string `json:"commit"`
	Changed bool   `json:"changed,omitempty"`
	Machine string `json:"machine"`
	Command string `json:"command"`
	Seconds int    `json:"seconds"`
	Tests   int    `json:"tests"`
	// Counts are the sums of what the tests reported.
	Counts map[string]float64 `json:"counts,omitempty"`
	Seeds  []string           `json:"seeds,omitempty"`
	Failed []string           `json:"failed,omitempty"`
}

// record runs the tests and writes what they showed. code is that of `go test`.
func record(name string, args []string) (code int, err error) {
	at := slices.IndexFunc(proofs, func(p proof) bool { return p.name == name })
	if at < 0 {
		return 0, fmt.Errorf("there is no proof %q: tools/proofs/table.go lists them", name)
	}
	r := recorded{Shows: proofs[at].shows, Date: time.Now().UTC().Truncate(time.Second), Machine: machine.Describe(), Command: command(args)}
	if r.Commit, r.Changed, err = checkedOut(); err != nil {
		return 0, err
	}
	run := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	run.Stderr = os.Stderr
	events, err := run.StdoutPipe()
	if err != nil {
		return 0, err
	}
	began := time.Now()
	if err := run.Start(); err != nil {
		return 0, err
	}
	if err := r.read(events, os.Stdout); err != nil {
		return 0, err
	}
	var ended *exec.ExitError
	if err := run.Wait(); errors.As(err, &ended) {
		code = ended.ExitCode()
	} else if err != nil {
		return 0, err
	}
	r.Seconds = int(time.Since(began).Seconds())
	switch {
	case code != 0:
		r.Result = "failed"
	case r.Tests == 0:
		r.Result = "skipped"
	default:
		r.Result = "passed"
	}
	return code, r.write(filepath.Join(folder, name+".json"))
}

// command is how the tests were run, with the settings of their long form.
func command(args []string) string {
	var words []string
	for _, setting := range os.Environ() {
		name, value, _ := strings.Cut(setting, "=")
		if strings.HasPrefix(name, "MARKETLOG_") && value != "" && !strings.ContainsRune(value, filepath.Separator) {
			words = append(words, setting)
		}
	}
	slices.Sort(words)
	return strings.Join(append(append(words, "go", "test"), args...), " ")
}

// checkedOut is the commit that git has, and whether files of the source differ from it; what proofs write is not a source.
func checkedOut() (commit string, changed bool, err error) {
	out, err := exec.Command("git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return "", false, fmt.Errorf("asking git for the commit: %w", err)
	}
	status, err := exec.Command("git", "status", "--porcelain", "--", ".", ":!"+folder).Output()
	if err != nil {
		return "", false, fmt.Errorf("asking git for changes: %w", err)
	}
	return strings.TrimSpace(string(out)), len(status) > 0, nil
}

// read follows the events of the run: it prints what the tests print and keeps what they report.
func (r *recorded) read(events io.Reader, out io.Writer) error {
	r.Counts = map[string]float64{}
	parents := map[string]bool{}
	ended := map[string]string{}
	lines := bufio.NewReader(events)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e struct{ Action, Package, Test, Output, Key, Value string }
			if json.Unmarshal(line, &e) != nil {
				fmt.Fprintf(out, "%s", line) // the go command says something itself
			}
			switch e.Action {
			case "output", "build-output":
				fmt.Fprint(out, e.Output)
			case "attr":
				if err := r.report(e.Key, e.Value); err != nil {
					return fmt.Errorf("%s: %w", e.Test, err)
				}
			case "pass", "fail", "skip":
				if e.Test == "" {
					break
				}
				name := e.Package[strings.LastIndexByte(e.Package, '/')+1:] + " " + e.Test
				ended[name] = e.Action
				for i := len(name) - 1; i > 0; i-- {
					if name[i] == '/' {
						parents[name[:i]] = true
					}
				}
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return fmt.Errorf("reading the events of go test: %w", err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(ended)) {
		switch {
		case parents[name]:
		case ended[name] == "fail":
			r.Tests++
			r.Failed = append(r.Failed, name)
		case ended[name] == "pass":
			r.Tests++
		}
	}
	return nil
}

// report takes one attribute of a test; those of others are none of its business.
func (r *recorded) report(key, value string) error {
	what, ok := strings.CutPrefix(key, "proof.")
	switch {
	case !ok:
	case what == "seed":
		r.Seeds = append(r.Seeds, value)
	default:
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return fmt.Errorf("attribute %s is %q, want a number", key, value)
		}
		r.Counts[what] += n
	}
	return nil
}

func (r *recorded) write(path string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}
