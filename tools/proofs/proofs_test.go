package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// repository makes a repository with a module of which the tests report numbers, and goes there.
func repository(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	for _, setting := range os.Environ() { // those of the run that this test is part of
		if name, _, _ := strings.Cut(setting, "="); strings.HasPrefix(name, "MARKETLOG_") {
			t.Setenv(name, "")
		}
	}
	put(t, "go.mod", "module sample\n\ngo 1.25\n")
	put(t, "query/limits/limits.go", "package limits\n")
	put(t, "query/limits/limits_test.go", `package limits

import (
	"os"
	"testing"
)

func TestRounds(t *testing.T) {
	for _, round := range []string{"1", "2"} {
		t.Run(round, func(t *testing.T) {
			t.Attr("proof.kills", "15")
			t.Attr("proof.seed", round)
		})
	}
	if os.Getenv("BREAK_A_TEST") != "" {
		t.Run("broken", func(t *testing.T) { t.Error("lost") })
	}
}

func TestSkipped(t *testing.T) { t.Skip("not here") }
`)
	git(t, "init", "-q")
	commit(t)
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func git(t *testing.T, args ...string) {
	t.Helper()
	args = append([]string{"-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false"}, args...)
	if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

func commit(t *testing.T) {
	t.Helper()
	git(t, "add", "-A")
	git(t, "commit", "-q", "-m", "change")
}

// row is the line of a proof.
func row(t *testing.T, name string) string {
	t.Helper()
	var out strings.Builder
	if err := list(&out, time.Now().Add(72*time.Hour)); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		if strings.HasPrefix(line, name+" ") {
			return regexp.MustCompile(`  +`).ReplaceAllString(strings.TrimSpace(line), " | ")
		}
	}
	t.Fatalf("no row of %s in\n%s", name, out.String())
	return ""
}

func TestAProofIsKeptAndGrowsOld(t *testing.T) {
	repository(t)
	if got := row(t, "admission"); got != "admission | never run | make admission" {
		t.Errorf("got %q", got)
	}
	t.Setenv("MARKETLOG_KILLS", "2")
	if code, err := record("admission", []string{"-count=1", "./query/limits"}); code != 0 || err != nil {
		t.Fatalf("got %d, %v", code, err)
	}
	r, err := readRecorded("admission")
	if err != nil {
		t.Fatal(err)
	}
	if r.Result != "passed" || r.Tests != 2 || r.Counts["kills"] != 30 || !slices.Equal(r.Seeds, []string{"1", "2"}) || r.Changed || r.Machine == "" ||
		r.Command != "MARKETLOG_KILLS=2 go test -count=1 ./query/limits" {
		t.Errorf("got %+v", r)
	}
	head := r.Commit
	for _, test := range []struct{ path, want string }{
		{"docs/page.md", "unchanged"},                                                  // of another folder
		{"query/limits/more_test.go", "unchanged"},                                     // a test
		{"query/limits/more.go", "1 commits"},                                          // what it covers
		{"query/limits/again.go", "2 commits"},                                         //
		{"query/limits/open.go", "2 commits, and changes that are not committed"},      // not committed below
		{"query/limits/open_test.go", "2 commits, and changes that are not committed"}, //
	} {
		put(t, test.path, "package limits\n")
		if !strings.Contains(test.path, "open") {
			commit(t)
		}
		want := "admission | passed | kills 30 | 3 d | " + head + " | " + test.want + " | make admission"
		if got := row(t, "admission"); got != want {
			t.Errorf("after a change of %s: got %q, want %q", test.path, got, want)
		}
	}
	if _, err := record("admission", []string{"-count=1", "./query/limits"}); err != nil {
		t.Fatal(err)
	}
	if got := row(t, "admission"); !strings.Contains(got, " and changes | unchanged") {
		t.Errorf("got %q, want a proof that says files were not committed", got)
	}
}

func TestAFailedRunIsKeptToo(t *testing.T) {
	repository(t)
	t.Setenv("BREAK_A_TEST", "1")
	code, err := record("admission", []string{"-count=1", "./query/limits"})
	if code == 0 || err != nil {
		t.Fatalf("got %d, %v; want the code of a failure", code, err)
	}
	if r, err := readRecorded("admission"); err != nil || r.Result != "failed" || !slices.Equal(r.Failed, []string{"limits TestRounds/broken"}) {
		t.Errorf("got %+v, %v", r, err)
	}
}

func TestARunWithoutATestProvesNothing(t *testing.T) {
	repository(t)
	if _, err := record("admission", []string{"-count=1", "-run", "TestSkipped", "./query/limits"}); err != nil {
		t.Fatal(err)
	}
	if r, err := readRecorded("admission"); err != nil || r.Result != "skipped" {
		t.Errorf("got %+v, %v", r, err)
	}
}

func TestAnotherHistoryIsNamed(t *testing.T) {
	repository(t)
	put(t, "docs/proofs/admission.json", `{"commit":"0123456789ab","result":"passed","tests":1}`)
	if got := row(t, "admission"); !strings.Contains(got, "unknown: the commit is not in this history") {
		t.Errorf("got %q", got)
	}
}

func TestThePageOfFiguresIsARow(t *testing.T) {
	repository(t)
	if got := row(t, "figures"); got != "figures | never run | make figures" {
		t.Errorf("got %q", got)
	}
	put(t, "docs/figures.md", "# Figures\n\n2026-01-02 · commit 0123456789ab · 2 cores\n\n| figure | goal |\n|---|---|\n| a | ≥ 1 **missed** |\n| b | ≥ 1 |\n")
	got := row(t, "figures")
	if !strings.HasPrefix(got, "figures | 1 goals missed | figures 2 | ") || !strings.Contains(got, "| 0123456789ab | unknown") {
		t.Errorf("got %q", got)
	}
}

func TestUnknownProofsAreRefused(t *testing.T) {
	if _, err := record("luck", []string{"./..."}); err == nil || !strings.Contains(err.Error(), `"luck"`) {
		t.Errorf("got %v, want an error that names it", err)
	}
}

// What a proof covers is there, its target makes it, and the page of proofs names both.
func TestTheTableIsTrueOfTheRepository(t *testing.T) {
	root := filepath.Join("..", "..")
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, folder, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range proofs {
		if !strings.Contains(string(page), "\n| `"+p.name+"` | "+p.shows+" | `make "+p.target+"` |\n") {
			t.Errorf("docs/proofs/README.md has no row of %s as the table has it", p.name)
		}
		if !regexp.MustCompile(`(?m)\$\(PROVE\) `+p.name+` `).Match(makefile) || !regexp.MustCompile(`(?m)^`+p.target+`:`).Match(makefile) {
			t.Errorf("the Makefile does not record %s, or has no target %s", p.name, p.target)
		}
		for _, covered := range p.covers {
			if _, err := os.Stat(filepath.Join(root, covered)); err != nil {
				t.Errorf("%s covers %s: %v", p.name, covered, err)
			}
		}
	}
	files, err := filepath.Glob(filepath.Join(root, folder, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		if !slices.ContainsFunc(proofs, func(p proof) bool { return p.name == name }) {
			t.Errorf("docs/proofs/%s.json is of no proof in the table", name)
		}
	}
}
