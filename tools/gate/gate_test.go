package main

import (
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
	"testing"
)

// A module of its own, run by the real go command: every way in which a test or a package can end.
var sample = map[string]string{
	"go.mod": "module sample\n\ngo 1.25\n",
	"ends/ends_test.go": `package ends

import "testing"

func TestPasses(t *testing.T) {}
func TestFails(t *testing.T)  { t.Error("wrong") }
func TestSkips(t *testing.T)  { t.Log("not this"); t.Skip("tier kafka: no java") }
func TestSkipsToo(t *testing.T) { t.Skip("tier recordings: none are set") }
func TestSkipsForItsOwnReason(t *testing.T) { t.Skip("no recordings here") }
func TestParent(t *testing.T) {
	t.Run("kafka", func(t *testing.T) {
		t.Attr("tier", "kafka")
		t.Run("inner/with slash", func(t *testing.T) {})
		t.Run("fails", func(t *testing.T) { t.Error("wrong") })
	})
	t.Run("embedded", func(t *testing.T) {})
}
func TestParentFailsByItself(t *testing.T) {
	t.Run("passes", func(t *testing.T) {})
	t.Error("wrong")
}
`,
	"panics/panics_test.go": "package panics\n\nimport \"testing\"\n\nfunc TestPanics(t *testing.T) { panic(\"boom\") }\n",
	"exits/exits_test.go":   "package exits\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestMain(m *testing.M) { m.Run(); os.Exit(3) }\nfunc TestPasses(t *testing.T) {}\n",
	"broken/broken_test.go": "package broken\n\nfunc broken( {\n",
	"empty/empty.go":        "package empty\n",
}

func TestEveryEndOfATestIsCounted(t *testing.T) {
	folder := t.TempDir()
	for name, text := range sample {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.Command("go", "test", "-json", "./...")
	command.Dir = folder
	events, err := command.Output()
	if err == nil {
		t.Fatal("the sample's tests passed, want failures")
	}
	var out strings.Builder
	results, err := readEvents(strings.NewReader(string(events)), &out, "embedded")
	if err != nil {
		t.Fatal(err)
	}

	want := map[result]bool{
		{tier: "embedded", name: "sample/ends TestPasses"}:                                                                true,
		{tier: "embedded", name: "sample/ends TestFails", outcome: failed}:                                                true,
		{tier: "kafka", name: "sample/ends TestSkips", outcome: skipped, reason: "tier kafka: no java"}:                   true,
		{tier: "recordings", name: "sample/ends TestSkipsToo", outcome: skipped, reason: "tier recordings: none are set"}: true,
		{tier: "embedded", name: "sample/ends TestSkipsForItsOwnReason", outcome: skipped, reason: "no recordings here"}:  true,
		{tier: "kafka", name: "sample/ends TestParent/kafka/inner/with_slash"}:                                            true,
		{tier: "kafka", name: "sample/ends TestParent/kafka/fails", outcome: failed}:                                      true,
		{tier: "embedded", name: "sample/ends TestParent/embedded"}:                                                       true,
		{tier: "embedded", name: "sample/ends TestParentFailsByItself/passes"}:                                            true,
		{tier: "embedded", name: "sample/ends TestParentFailsByItself", outcome: failed}:                                  true,
		{tier: "embedded", name: "sample/panics TestPanics", outcome: failed}:                                             true,
		{tier: "embedded", name: "sample/exits TestPasses"}:                                                               true,
		{tier: "embedded", name: "sample/exits", outcome: failed, reason: "the package failed outside its tests"}:         true,
		{tier: "embedded", name: "sample/broken", outcome: failed, reason: "the package failed outside its tests"}:        true,
	}
	for _, res := range results {
		if res.outcome == failed && res.output == "" {
			t.Errorf("%+v does not say how it failed", res)
		}
		if strings.HasSuffix(res.name, "TestPanics") && !strings.HasPrefix(res.output, "panic: boom") {
			t.Errorf("%+v does not begin with the panic", res)
		}
		res.output, res.packageSeconds = "", 0
		if !want[res] {
			t.Errorf("got %+v, which is too much or twice", res)
		}
		delete(want, res)
	}
	for res := range want {
		t.Errorf("%+v is missing", res)
	}
	for _, output := range []string{"boom", "wrong", "expected ')'"} {
		if !strings.Contains(out.String(), output) {
			t.Errorf("the output lacks %q:\n%s", output, out.String())
		}
	}
}

// C code of the program, as that of the race detector is, ends the first run of one package; what fails for another reason stays failed.
func TestAPackageThatTheDetectorCrashedRunsAgain(t *testing.T) {
	if err := haveCompiler(); err != nil {
		t.Skip(err)
	}
	folder := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":                "module " + modulePrefix[:len(modulePrefix)-1] + "\n\ngo 1.26\n",
		"crashes/crash.go":      "package crashes\n\n// static void fault(void) { *(volatile int *)8 = 1; }\nimport \"C\"\n\nfunc fault() { C.fault() }\n",
		"crashes/crash_test.go": "package crashes\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestOnce(t *testing.T) {\n\tif os.Mkdir(\"crashed\", 0o700) == nil {\n\t\tfault()\n\t}\n}\n",
		"panics/panics_test.go": "package panics\n\nimport \"testing\"\n\nfunc TestFaults(t *testing.T) { var none *int; *none = 1 }\n",
	} {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(folder)
	run := testRun{name: "race", tier: "embedded", folder: ".", race: true, arguments: []string{"-p", "1", "./crashes", "./panics"}}
	first := run.results()
	if len(first) != 2 || first[0].outcome != failed || first[1].outcome != failed {
		t.Fatalf("the first run gave %+v, want two failures", first)
	}
	var out strings.Builder
	outcomes := map[string]outcome{}
	for _, r := range repeated(&out, first, run) {
		outcomes[r.name] = r.outcome
	}
	if want := map[string]outcome{"crashes TestOnce": passed, "panics TestFaults": failed}; !maps.Equal(outcomes, want) {
		t.Errorf("got %v, want %v", outcomes, want)
	}
	if want := "the race detector crashed, its packages run again: crashes\n"; out.String() != want {
		t.Errorf("it printed %q, want %q", out.String(), want)
	}
}

func TestTheGistOfALongFailureEndsWithItsMessages(t *testing.T) {
	var output strings.Builder
	for i := range 100 {
		fmt.Fprintf(&output, "before %d\n", i)
	}
	output.WriteString("    demo_test.go:12: the number is wrong\n")
	for i := range 100 {
		fmt.Fprintf(&output, "after %d\n", i)
	}
	output.WriteString("--- FAIL: TestDemo (1.00s)\n")
	want := "after 95\nafter 96\nafter 97\nafter 98\nafter 99\n--- FAIL: TestDemo (1.00s)\n[…]\n    demo_test.go:12: the number is wrong"
	if got := gist(output.String()); got != want {
		t.Errorf("the gist is %q, want %q", got, want)
	}
}

func TestSkipsAreForgivenByRule(t *testing.T) {
	skip := func(tier, reason string) result {
		return result{tier: tier, name: "x", outcome: skipped, reason: reason}
	}
	kafka := skip("kafka", "tier kafka: no java")
	captured := skip(recordings, "tier recordings: MARKETLOG_RECORDINGS is not set")
	never := result{tier: "embedded", name: "producers/outbox TestServeBenchmarks", outcome: skipped, reason: "only for benchmarks"}
	byWords := skip("embedded", "not applicable: root may write everywhere")
	for _, test := range []struct {
		rules skipRules
		skip  result
		want  outcome
	}{
		{skipRules{}, kafka, skipped},
		{skipRules{ci: true}, kafka, failed},
		{skipRules{recordings: true}, kafka, skipped},
		{skipRules{}, captured, skipped},
		{skipRules{ci: true}, captured, skipped},
		{skipRules{recordings: true}, captured, failed},
		{skipRules{ci: true, recordings: true}, never, skipped},
		{skipRules{ci: true}, byWords, failed},
	} {
		if got := test.rules.apply([]result{test.skip})[0].outcome; got != test.want {
			t.Errorf("%+v of %+v: got outcome %d, want %d", test.rules, test.skip, got, test.want)
		}
	}
}

func TestReportFailsWithoutATest(t *testing.T) {
	if !writeReport(io.Discard, []result{{tier: "kafka", outcome: skipped}}) {
		t.Error("a gate that ran nothing passed")
	}
}

func TestReportClosesWithTheCounts(t *testing.T) {
	var out strings.Builder
	bad := writeReport(&out, []result{
		{tier: "lint", name: "golangci-lint"},
		{tier: "kafka", name: "a", outcome: skipped, reason: "tier kafka: no java"},
		{tier: "kafka", name: "b", outcome: skipped, reason: "tier kafka: no java"},
		{tier: "redis", name: "p c", outcome: failed, output: "one\ntwo", packageSeconds: 3},
		{tier: "redis", name: "q d", packageSeconds: 30},
	})
	want := `
Seconds by package:
     30.0  q
      3.0  p

Failed:
  redis: p c
      | one
      | two

Skipped:
  kafka: a
  kafka: b
    tier kafka: no java

   tier  passed  failed  skipped
   lint       1       0        0
  kafka       0       0        2 the whole tier was skipped
  redis       1       1        0

2 passed, 1 failed, 2 skipped
`
	if !bad || out.String() != want {
		t.Errorf("got %v and\n%s\nwant true and\n%s", bad, out.String(), want)
	}
}

// A database that cannot be reached is neither good news nor bad news; what it knows is a failure.
func TestVulnerabilitiesAreDistinguishedFromANetworkThatIsNotThere(t *testing.T) {
	wrong := errors.New("exit status 1")
	for _, test := range []struct {
		out  string
		err  error
		want outcome
	}{
		{"No vulnerabilities found.\n", nil, passed},
		{"Vulnerability #1: GO-2026-0001\nexit status 3\n", wrong, failed},
		{"govulncheck: fetching vulnerabilities: Get \"https://vuln.go.dev/index/modules.json.gz\": dial tcp: lookup vuln.go.dev: no such host\nexit status 1\n", wrong, skipped},
		{"govulncheck: loading packages: there are errors\nexit status 1\n", wrong, failed},
	} {
		r := judge([]byte(test.out), test.err)
		if r.outcome != test.want {
			t.Errorf("%q: got outcome %d, want %d", test.out, r.outcome, test.want)
		}
		if forgiven := (skipRules{ci: true}).apply([]result{r})[0].outcome; forgiven != test.want {
			t.Errorf("%q: where no skip is allowed: got outcome %d, want %d", test.out, forgiven, test.want)
		}
		if test.want == skipped && !strings.Contains(r.reason, "no such host") {
			t.Errorf("the reason is %q, which does not say what failed", r.reason)
		}
	}
}

// Where goreleaser cannot be had nothing is known of the archive; all else that goes wrong is a failure.
func TestArchivesAreDistinguishedFromANetworkThatIsNotThere(t *testing.T) {
	wrong := errors.New("exit status 1")
	for _, test := range []struct {
		out  string
		err  error
		want outcome
	}{
		{"release: marketlog v0.0.0 abc\n", nil, passed},
		{"release: marketlog_0.0.1_linux_amd64.tar.gz has no LICENSE\n", wrong, failed},
		{"github.com/goreleaser/goreleaser/v2: Get \"https://proxy.golang.org/github.com\": dial tcp: lookup proxy.golang.org: no such host\n", wrong, skipped},
	} {
		r := judgeRelease([]byte(test.out), test.err)
		if forgiven := (skipRules{ci: true}).apply([]result{r})[0].outcome; r.outcome != test.want || forgiven != test.want {
			t.Errorf("%q: got outcome %d, and %d where no skip is allowed, want %d", test.out, r.outcome, forgiven, test.want)
		}
	}
}

// What runs beside other steps is waited for, counts, and does not print between their lines.
func TestStepsBesideOthersAreWaitedFor(t *testing.T) {
	begun, ended := make(chan struct{}), make(chan struct{})
	var out strings.Builder
	results := runSteps(&out, []step{
		{name: "lint", beside: true, run: func(out io.Writer) []result {
			close(begun)
			<-ended
			fmt.Fprintln(out, "a complaint")
			return []result{{tier: "lint", name: "linter", outcome: failed}}
		}},
		{name: "tests", run: func(out io.Writer) []result {
			<-begun
			close(ended)
			fmt.Fprintln(out, "a line")
			return []result{{tier: "embedded", name: "test"}}
		}},
	})
	got := regexp.MustCompile(`[\d.]+ s`).ReplaceAllString(out.String(), "n s")
	if want := "== tests\na line\n== tests took n s\n== lint\na complaint\n== lint took n s\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if want := []result{{tier: "embedded", name: "test"}, {tier: "lint", name: "linter", outcome: failed}}; !slices.Equal(results, want) {
		t.Errorf("got %v, want %v", results, want)
	}
}

// On a new machine the first run of a tool fetches modules, which is not a finding.
func TestFetchedModulesAreNoFindings(t *testing.T) {
	dead := "processors/fold.go:10:6: unreachable func: old\n"
	if got := findings("go: downloading golang.org/x/telemetry v0.0.0\n" + dead + "go: downloading a v1\n"); got != dead {
		t.Errorf("got %q, want %q", got, dead)
	}
	if got := findings("go: downloading golang.org/x/telemetry v0.0.0\n"); got != "" {
		t.Errorf("got %q, want nothing", got)
	}
}
