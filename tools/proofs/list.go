package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// list prints every proof: its result and counts, when and at which commit it was made, and whether the code that it covers
// has changed since.
func list(w io.Writer, now time.Time) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "proof\tresult\tcounts\tage\tcommit\tits code since\tby")
	for _, p := range proofs {
		r, err := readRecorded(p.name)
		if errors.Is(err, os.ErrNotExist) {
			fmt.Fprintf(table, "%s\tnever run\t\t\t\t\tmake %s\n", p.name, p.target)
			continue
		}
		if err != nil {
			return err
		}
		commit := r.Commit
		if r.Changed {
			commit += " and changes"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\tmake %s\n", p.name, r.Result, r.counts(), age(now.Sub(r.Date)), commit, since(r.Commit, p.covers), p.target)
	}
	figures(table, now)
	return table.Flush()
}

// written is the line of docs/figures.md that says when the figures were measured, and of which commit.
var written = regexp.MustCompile(`(?m)^(\d{4}-\d\d-\d\d) · commit (\w+) · `)

// figures adds the row of the page of figures, which says itself what it is of.
func figures(w io.Writer, now time.Time) {
	text, err := os.ReadFile(filepath.Join("docs", "figures.md"))
	match := written.FindStringSubmatch(string(text))
	if err != nil || match == nil {
		fmt.Fprint(w, "figures\tnever run\t\t\t\t\tmake figures\n")
		return
	}
	result, counts := "passed", fmt.Sprintf("figures %d", strings.Count(string(text), "\n| ")-strings.Count(string(text), "\n| figure |"))
	if missed := strings.Count(string(text), "**missed**"); missed > 0 {
		result = fmt.Sprintf("%d goals missed", missed)
	}
	at, err := time.Parse(time.DateOnly, match[1])
	if err != nil {
		at = now
	}
	fmt.Fprintf(w, "figures\t%s\t%s\t%s\t%s\t%s\tmake figures\n", result, counts, age(now.Sub(at)), match[2], since(match[2], measured))
}

// measured are the folders whose code the figures are of.
var measured = []string{"deploy", "processors", "producers", "query", "schemas", "stream"}

func readRecorded(name string) (r recorded, err error) {
	path := filepath.Join(folder, name+".json")
	text, err := os.ReadFile(path)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("reading %s: %w", path, err)
	}
	return r, nil
}

// counts are the numbers in a line, in the order of their names.
func (r recorded) counts() string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(r.Counts)) {
		words = append(words, fmt.Sprintf("%s %.0f", strings.ReplaceAll(name, "_", " "), r.Counts[name]))
	}
	if len(words) == 0 {
		return fmt.Sprintf("tests %d", r.Tests)
	}
	return strings.Join(words, ", ")
}

func age(d time.Duration) string {
	if days := int(d.Hours() / 24); days > 0 {
		return fmt.Sprintf("%d d", days)
	}
	return fmt.Sprintf("%d h", int(d.Hours()))
}

// since reports how many commits changed the code beneath some folders, tests aside, and whether files of it differ from the last.
func since(commit string, folders []string) string {
	paths := append([]string{"--"}, folders...)
	paths = append(paths, ":!*_test.go", ":!*/testdata/*", ":!*.md")
	if exec.Command("git", "merge-base", "--is-ancestor", commit, "HEAD").Run() != nil {
		return "unknown: the commit is not in this history"
	}
	out, err := exec.Command("git", append([]string{"log", "--format=%h", commit + "..HEAD"}, paths...)...).Output()
	if err != nil {
		return "unknown: " + err.Error()
	}
	status, err := exec.Command("git", append([]string{"status", "--porcelain"}, paths...)...).Output()
	if err != nil {
		return "unknown: " + err.Error()
	}
	state := "unchanged"
	if n := len(strings.Fields(string(out))); n > 0 {
		state = fmt.Sprintf("%d commits", n)
	}
	if len(status) > 0 {
		state += ", and changes that are not committed"
	}
	return state
}
