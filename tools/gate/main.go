// Command gate holds a checkout to everything that the repository promises of itself, step by step, and closes with the
// seconds of each package and a table of tiers, tests and skips. It runs all steps but races and chart, also past a failure, and
// exits 1 if anything failed.
//
//	go -C tools run ./gate [format] [lint] [schemas] [quick] [deadcode] [vulnerabilities] [release] [slow] [races] [chart]
//
// Tests belong to a stage, quick or slow (stages.go); the slow one runs the quick tests too, with
// the race detector; races runs the slow ones with it. A tier is what a test needs: the embedded back ends inside its process,
// a real broker, recordings. Tests say theirs by t.Attr("tier", NAME) or by a skip that begins with "tier NAME: ". With CI set
// a skip is a failure, since a gate that ran without a back end proves nothing about it; skips for want of recordings are
// one where MARKETLOG_RECORDINGS is set. The few skips that are never one are listed by the names of their tests.
package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// step is one part of the gate. It prints its progress and returns what it found.
type step struct {
	name string
	run  func(out io.Writer) []result
	// beside steps take only the processors' time that the steps after them leave: tests wait for half of theirs. What such a step
	// prints comes when all have ended.
	beside bool
}

func main() {
	steps := []step{
		{name: "format", run: format},
		{name: "lint", run: lint, beside: true},
		{name: "schemas", run: schemas, beside: true},
		{name: "quick", run: quick},
		{name: "deadcode", run: deadcode, beside: true},
		{name: "vulnerabilities", run: vulnerabilities, beside: true},
		{name: "release", run: release, beside: true},
		{name: "slow", run: slowTests},
		{name: "races", run: races},
		{name: "chart", run: chart},
	}
	wanted := os.Args[1:]
	for _, name := range wanted {
		if !slices.ContainsFunc(steps, func(s step) bool { return s.name == name }) {
			fmt.Fprintf(os.Stderr, "gate: there is no step %q\n", name)
			os.Exit(2)
		}
	}
	// The program lies in the module of the tools; all it looks at is in the one above.
	if err := os.Chdir(".."); err != nil {
		fmt.Fprintln(os.Stderr, "gate:", err)
		os.Exit(2)
	}
	if _, err := os.Stat(filepath.Join("tools", "gate")); err != nil {
		fmt.Fprintln(os.Stderr, "gate: run it by `make test` or `go -C tools run ./gate`")
		os.Exit(2)
	}

	results := runSteps(os.Stdout, slices.DeleteFunc(steps, func(s step) bool {
		return len(wanted) > 0 && !slices.Contains(wanted, s.name) || len(wanted) == 0 && (s.name == "races" || s.name == "chart")
	}))

	rules := skipRules{ci: os.Getenv("CI") != "", recordings: os.Getenv("MARKETLOG_RECORDINGS") != ""}
	results = rules.apply(results)
	var out strings.Builder
	failed := writeReport(&out, results)
	fmt.Print(out.String())
	if failed {
		os.Exit(1)
	}
}

// runSteps runs the steps in their order, those beside others from their turn on.
func runSteps(out io.Writer, steps []step) (results []result) {
	type ended struct {
		printed bytes.Buffer
		results []result
	}
	var beside []chan *ended
	for _, s := range steps {
		if s.beside {
			done := make(chan *ended, 1)
			beside = append(beside, done)
			go func() {
				e := &ended{}
				e.results = timed(&e.printed, s)
				done <- e
			}()
			continue
		}
		results = append(results, timed(out, s)...)
	}
	for _, done := range beside {
		e := <-done
		_, _ = out.Write(e.printed.Bytes())
		results = append(results, e.results...)
	}
	return results
}

func timed(out io.Writer, s step) []result {
	fmt.Fprintf(out, "== %s\n", s.name)
	begin := time.Now()
	results := s.run(out)
	fmt.Fprintf(out, "== %s took %.1f s\n", s.name, time.Since(begin).Seconds())
	return results
}
