package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/marketlog/marketlog/stream/streamtest"
)

// clientLibrary is one of query/clients, as it is installed: how programs are run with it.
type clientLibrary struct {
	name string
	// cases runs query/clients/cases.json, against the address and the key that follow; nil where another library's run has it.
	cases []string
	// language is that of its example in docs/clients.md, example how a file of it is run, and home a folder where such a file finds the
	// library, "" being any; empty as with cases.
	language, home string
	example        []string
	// follow prints each price of the coins that follow, as [coin, milliseconds, price].
	follow []string
	// elements means that it prints elements of messages instead, of the coins that it knows.
	elements    bool
	folder      string
	environment []string
}

// clientLibraries builds those of query/clients as they are installed.
func clientLibraries(t *testing.T) []clientLibrary {
	t.Helper()
	python := pythonWith(t, "clients")
	folder := t.TempDir()
	wheel := exec.CommandContext(t.Context(), python, "-m", "hatchling", "build", "-t", "wheel", "-d", folder)
	wheel.Dir = "../../query/clients/python"
	if out, err := wheel.CombinedOutput(); err != nil {
		t.Fatalf("building the Python client: %v\n%s", err, out)
	}
	wheels, err := filepath.Glob(filepath.Join(folder, "*.whl"))
	if err != nil || len(wheels) != 1 {
		t.Fatalf("built %v, %v; want one wheel", wheels, err)
	}
	tests := "../../query/clients/python/tests"
	environment := []string{"PYTHONPATH=" + wheels[0], "PYTHONDONTWRITEBYTECODE=1"} // a wheel is imported as it is
	built := buildTypeScript(t)
	node := filepath.Join(built, "index.js")
	cases, following := buildGo(t)
	return []clientLibrary{
		{name: "Python, awaited", cases: []string{python, "-m", "cases"}, language: "python", example: []string{python},
			follow: []string{python, "-m", "follow", "async"}, folder: tests, environment: environment},
		{name: "Python, blocking", follow: []string{python, "-m", "follow", "sync"}, folder: tests, environment: environment},
		{name: "TypeScript", cases: []string{"node", "cases.mjs", node}, language: "ts", example: []string{newNode(t)},
			home: filepath.Join(built, "../../../.."), follow: []string{"node", "follow.mjs", node}, folder: "../../query/clients/typescript/tests"},
		{name: "Go", cases: []string{cases}, language: "go", example: []string{"go", "run"}, home: goHome(t), follow: []string{following}, folder: goClient,
			environment: []string{"CGO_ENABLED=0"}},
	}
}

// buildTypeScript lays out the TypeScript client as npm installs it, and returns its folder dist. Beside node_modules, which holds it,
// programs find it by its name.
func buildTypeScript(t *testing.T) string {
	t.Helper()
	tsc, err := filepath.Abs("../../tools/web/node_modules/.bin/tsc")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(tsc); err != nil {
		streamtest.Missing(t, streamtest.TierContract, "no tsc; tools/web/fetch.sh installs it")
	}
	folder := filepath.Join(t.TempDir(), "node_modules", "@marketlog", "client")
	dist := filepath.Join(folder, "dist")
	if out, err := exec.CommandContext(t.Context(), tsc, "-p", "../../query/clients/typescript", "--outDir", dist).CombinedOutput(); err != nil {
		t.Fatalf("building the TypeScript client: %v\n%s", err, out)
	}
	manifest, err := os.ReadFile("../../query/clients/typescript/package.json")
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, "package.json"), manifest, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dist
}

// goClient is the folder of the Go client, a module of its own.
const goClient = "../../query/clients/go"

// buildGo builds the programs that test the Go client.
func buildGo(t *testing.T) (cases, follow string) {
	t.Helper()
	folder := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", folder, "./tests/...")
	build.Dir = goClient
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the Go client: %v\n%s", err, out)
	}
	return filepath.Join(folder, "cases"), filepath.Join(folder, "follow")
}

// goHome is a module that requires the Go client, and nothing else.
func goHome(t *testing.T) string {
	t.Helper()
	client, err := filepath.Abs(goClient)
	if err != nil {
		t.Fatal(err)
	}
	const name = "github.com/marketlog/marketlog/query/clients/go"
	home := t.TempDir()
	module := "module example\n\ngo 1.26.0\n\nrequire " + name + " v0.0.0\n\nreplace " + name + " => " + client + "\n"
	if err := os.WriteFile(filepath.Join(home, "go.mod"), []byte(module), 0o600); err != nil {
		t.Fatal(err)
	}
	return home
}

// pythonWith is a Python with what a file of tools/contract names.
func pythonWith(t *testing.T, what string) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(cache, "marketlog", what+"-*", "bin", "python"))
	if err != nil || len(found) == 0 {
		streamtest.Missing(t, streamtest.TierContract, "no Python with "+what+".txt; tools/contract/fetch.sh installs it")
	}
	return found[len(found)-1]
}

// command is a program of the library with more arguments and variables.
func (l clientLibrary) command(ctx context.Context, program, arguments []string, environment ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, program[0], slices.Concat(program[1:], arguments)...)
	command.Dir = l.folder
	command.Env = slices.Concat(os.Environ(), l.environment, environment)
	return command
}

// The client libraries are as the documents say, answer the cases that all of them share alike, and lose no price.
func TestDemoServesTheClients(t *testing.T) {
	streamtest.InTier(t, streamtest.TierContract)
	libraries := clientLibraries(t)
	d := filledDemo(t)
	t.Run("generated", func(t *testing.T) {
		t.Parallel()
		check := exec.CommandContext(t.Context(), "python3", "-B", "../../tools/clients/generate.py", d.base, "--check")
		if out, err := check.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	for _, library := range libraries {
		if library.cases == nil {
			continue
		}
		t.Run("cases of "+library.name, func(t *testing.T) {
			t.Parallel()
			key := d.ownKey(t)
			out, err := library.command(t.Context(), library.cases, []string{d.base, key}).CombinedOutput()
			if text := strings.ReplaceAll(string(out), key, "KEY"); err != nil || !strings.Contains(text, " cases hold") {
				t.Errorf("%v\n%s", err, text)
			}
		})
	}
	for _, library := range libraries {
		if library.example == nil {
			continue
		}
		t.Run("example in "+library.name, func(t *testing.T) {
			t.Parallel()
			d.runExample(t, library)
		})
	}
	for _, library := range append(libraries, clientLibrary{name: "curl", language: "sh", example: []string{"sh"}}) {
		if library.example == nil {
			continue
		}
		t.Run("samples in "+library.name, func(t *testing.T) {
			t.Parallel()
			d.runSamples(t, library)
		})
	}
	t.Run("notebook", func(t *testing.T) {
		t.Parallel()
		d.runNotebook(t, libraries[0].environment)
	})
	t.Run("pandas, polars, DuckDB", func(t *testing.T) {
		t.Parallel()
		d.runPandas(t)
	})
	t.Run("every price once", func(t *testing.T) {
		t.Parallel() // it waits for an instance that starts again
		losesNothing(t, libraries)
	})
}

// runExample runs what docs/clients.md shows of a library, as a file beside what it is installed in.
func (d *demo) runExample(t *testing.T, library clientLibrary) {
	t.Helper()
	page, err := os.ReadFile("../../docs/clients.md")
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(string(page), "\n```"+library.language+"\n")
	code, _, _ = strings.Cut(code, "\n```\n")
	folder := library.home
	if folder == "" {
		folder = t.TempDir()
	}
	file := filepath.Join(folder, "example."+library.language)
	if err := os.WriteFile(file, []byte(code), 0o600); err != nil {
		t.Fatal(err)
	}
	command := library.command(t.Context(), library.example, []string{file}, "MARKETLOG_URL="+d.base, "MARKETLOG_API_KEY="+d.key)
	command.Dir = folder
	out, err := command.CombinedOutput()
	text := strings.ReplaceAll(string(out), d.key, "KEY")
	if err != nil {
		t.Fatalf("%v\n%.4000s", err, text)
	}
	for _, want := range []string{"EUR, the median of", "a minute ago", "% a year", "availableFrom", "volumeUsd", " coins", " bytes of Parquet", "vs must be a fiat currency", "\nBTC "} {
		if !strings.Contains(strings.ToLower(text), strings.ToLower(want)) { // fields are in capitals in Go
			t.Errorf("nothing of %q in\n%.4000s", want, text)
		}
	}
}
