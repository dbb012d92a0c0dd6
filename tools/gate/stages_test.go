package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// testsOf lists the tests of the checkout, by package.
func testsOf(t *testing.T, root string) map[string][]string {
	t.Helper()
	tests := map[string][]string{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains([]string{"node_modules", ".git", "bin", "data"}, entry.Name()):
			return filepath.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") && f.Name.Name != "TestMain" {
				tests[filepath.ToSlash(folder)] = append(tests[filepath.ToSlash(folder)], f.Name.Name)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return tests
}

// recipe is the rule of a make target: its line and its commands.
func recipe(t *testing.T, target string) string {
	t.Helper()
	makefile, err := os.ReadFile(filepath.Join("..", "..", "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	_, rule, found := strings.Cut(string(makefile), "\n"+target+":")
	if !found {
		t.Errorf("the Makefile has no target %s", target)
	}
	rule, _, _ = strings.Cut(rule, "\n\n")
	return rule
}

// eachTestFile visits the files of tests of the checkout, this program's own aside, whose examples are not tests.
func eachTestFile(t *testing.T, visit func(folder, text string)) {
	t.Helper()
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains([]string{"node_modules", ".git", "bin", "data", "gate"}, entry.Name()):
			return filepath.SkipDir
		case !strings.HasSuffix(path, ".go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(path))
		visit(filepath.ToSlash(folder), string(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// What a test needs is a tier of the table, and what fetches it runs before the tests.
func TestEveryTierHasATarget(t *testing.T) {
	named := regexp.MustCompile(`(?:Attr\("tier", "|Skipf?\("tier |\bTier\w+ += ")(\w+)`)
	found := map[string]bool{}
	eachTestFile(t, func(folder, text string) {
		for _, match := range named.FindAllStringSubmatch(text, -1) {
			if _, known := tiers[match[1]]; !known {
				t.Errorf("%s names the tier %s, which is not in the table", folder, match[1])
			}
			found[match[1]] = true
		}
	})
	for tier, target := range tiers {
		if !found[tier] {
			t.Errorf("no test is of tier %s", tier)
		}
		for _, stage := range []string{"test", "slow"} {
			line, _, _ := strings.Cut(recipe(t, stage), "##")
			needs := line + strings.Join(strings.Fields(recipe(t, "build")), " ") // whose needs are those of a stage too
			if target != "" && !slices.Contains(strings.Fields(needs), target) {
				t.Errorf("make %s does not make %s, which tier %s needs", stage, target, tier)
			}
		}
	}
}

// The whole gate is `make test` with the steps of `make slow` after its own, in one run.
func TestTheWholeGateIsBothStages(t *testing.T) {
	if gate := recipe(t, "gate"); !strings.HasSuffix(gate, "\tWHOLE_GATE=1 $(MAKE) test") {
		t.Errorf("the whole gate is%s", gate)
	}
	_, steps, _ := strings.Cut(recipe(t, "slow"), "$(GATE) ")
	if test := recipe(t, "test"); steps == "" || !strings.HasSuffix(test, " $(if $(WHOLE_GATE),"+steps+")") {
		t.Errorf("with WHOLE_GATE make test does not go on with %q:%s", steps, test)
	}
}

// A test behind a build tag is run by nobody who does not give the tag.
func TestTestsNeedNoTag(t *testing.T) {
	tagged := regexp.MustCompile(`(?m)^//go:build (.*)$`)
	eachTestFile(t, func(folder, text string) {
		match := tagged.FindStringSubmatch(text)
		if match == nil || strings.Contains(match[1], "linux") {
			return
		}
		for _, test := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(text, -1) {
			t.Errorf("%s of %s is built with %q alone, which the gate does not give", test[1], folder, match[1])
		}
	})
}

// Where no recordings are named and none lie beside the checkout, continuous integration fails before it begins.
func TestContinuousIntegrationNeedsRecordings(t *testing.T) {
	script, err := os.ReadFile(filepath.Join("..", "..", ".ci", "run"))
	if err != nil {
		t.Fatal(err)
	}
	for name, folder := range map[string]string{"none": "", "a folder that is not there": filepath.Join(t.TempDir(), "gone")} {
		path := filepath.Join(t.TempDir(), "checkout", ".ci", "run")
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, script, 0o600); err != nil {
			t.Fatal(err)
		}
		command := exec.Command("bash", path)
		command.Env = []string{"PATH=" + os.Getenv("PATH"), "MARKETLOG_RECORDINGS=" + folder}
		out, err := command.CombinedOutput()
		if err == nil || !strings.Contains(string(out), "MARKETLOG_RECORDINGS") || strings.Contains(string(out), "make test") {
			t.Errorf("with %s: got %v and %s; want a failure that names the variable", name, err, out)
		}
	}
}

// A test whose name changes would leave its stage in silence, and one of the same name elsewhere would be skipped with it.
func TestEveryTestHasAStageAndEveryStageATarget(t *testing.T) {
	tests := testsOf(t, filepath.Join("..", ".."))
	holders := map[string][]string{}
	for folder, names := range tests {
		for _, name := range names {
			holders[name] = append(holders[name], folder)
		}
	}
	for _, table := range []map[string][]string{slow, unraced} {
		for folder, names := range table {
			for _, name := range names {
				if got := holders[name]; !slices.Equal(got, []string{folder}) {
					t.Errorf("%s of %s is in %v, want it there and nowhere else", name, folder, got)
				}
			}
		}
	}
	for _, name := range patient {
		if len(slow[name]) == 0 {
			t.Errorf("%s has no slow test", name)
		}
	}
	for _, target := range []string{"test", "slow", "gate", "nightly"} {
		recipe(t, target)
	}
	for target, names := range nightly {
		commands := recipe(t, target)
		for _, name := range names {
			if len(holders[name]) != 1 || !strings.Contains(commands, "^"+name+"$$") {
				t.Errorf("make %s should run %s, which is in %v, by\n%s", target, name, holders[name], commands)
			}
		}
	}
	for _, name := range slices.Concat(otherProcess, sequential, elsewhere, longest) {
		if len(tests[name]) == 0 {
			t.Errorf("%s has no test", name)
		}
	}
	for name := range forgiven {
		folder, test, _ := strings.Cut(name, " ")
		if folder != "vulnerabilities" && folder != "release" && !slices.Contains(tests[folder], test) {
			t.Errorf("the skip of %s is forgiven, which is not there", name)
		}
	}
}

// Where nothing runs beside anything, the race detector sees nothing.
func TestSequentialPackagesStartNoGoroutine(t *testing.T) {
	starts := func(n ast.Node) (does bool) {
		ast.Inspect(n, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				does = true
			case *ast.SelectorExpr:
				does = does || n.Sel.Name == "Go"
			}
			return !does
		})
		return does
	}
	for _, name := range sequential {
		files, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(name), "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", name, len(files), err)
		}
		for _, path := range files {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			if starts(file) {
				t.Errorf("%s starts a goroutine: take %s out of the list, so that the race detector watches it", path, name)
			}
		}
	}
}

// Each slow test runs in one lane, and each package whose quick tests are not spared the detector in the other.
func TestLanesLeaveNoPackageOut(t *testing.T) {
	t.Chdir("../..")
	all, err := packagesInOrder()
	if err != nil {
		t.Fatal(err)
	}
	raced, hurried := lanes(all)
	got := slices.Sorted(slices.Values(slices.Concat(hurried, paths(patient))))
	if want := packages(slow); !slices.Equal(got, want) {
		t.Errorf("slow tests run in %v, want those in %v", got, want)
	}
	for _, name := range all {
		spared := slices.Contains(paths(slices.Concat(otherProcess, sequential, elsewhere)), name)
		if slices.Contains(raced, name) == spared {
			t.Errorf("%s: with the detector %t, spared %t", name, !spared, spared)
		}
	}
}

// In a whole gate each package runs its quick tests once, as shipped or with the detector, and those that the detector is spared run too.
func TestAWholeGateLeavesNoPackageOut(t *testing.T) {
	t.Chdir("../..")
	all, err := packagesInOrder()
	if err != nil {
		t.Fatal(err)
	}
	raced, _ := lanes(all)
	run, spared := quickRuns(all, true)
	if got, want := slices.Sorted(slices.Values(append(slices.Clone(raced), run.arguments[2:]...))), slices.Sorted(slices.Values(all)); !slices.Equal(got, want) {
		t.Errorf("the packages of a whole gate are %v, want %v", got, want)
	}
	if got := spared.arguments; !slices.Equal(got[4:], packages(unraced)) || got[3] != only(unraced, "") {
		t.Errorf("beside them it runs %v", got)
	}
	if run, spared := quickRuns(all, false); !slices.Equal(run.arguments[2:], all) || len(spared.arguments) > 0 {
		t.Errorf("by itself the quick stage runs %v and %v, want %v", run.arguments[2:], spared.arguments, all)
	}
}
