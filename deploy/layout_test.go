package deploy_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/marketlog/marketlog"

// goPackage is what `go list -json` tells of one package.
type goPackage struct {
	ImportPath, Name, Dir   string
	GoFiles, IgnoredGoFiles []string
	Imports                 []string
}

// Producers, processors and query never meet in code, a unit can be read without its neighbours,
// and what data is depends on nothing but itself.
func TestImportsFollowTheLayout(t *testing.T) {
	t.Attr("tier", "layout")
	for _, p := range listPackages(t) {
		from := inModule(p.ImportPath)
		for _, imported := range p.Imports {
			if err := checkImport(from, imported); err != nil {
				t.Errorf("%s imports %s: %v", p.ImportPath, imported, err)
			}
		}
	}
}

func TestLayoutRuleTellsImportsApart(t *testing.T) {
	t.Attr("tier", "layout")
	for _, test := range []struct {
		from, imported string
		allowed        bool
	}{
		{"schemas", "strings", true},
		{"schemas", "os", false},
		{"schemas", "net/http", false},
		{"schemas", "github.com/shopspring/decimal", true},
		{"schemas", "github.com/twmb/franz-go/pkg/kgo", false},
		{"schemas/events/v1", "google.golang.org/protobuf/proto", true},
		{"schemas", module + "/stream", false},
		{"schemas", module + "/schemas/events/v1", true},
		{"stream/history", module + "/schemas", true},
		{"stream/history", module + "/stream", true},
		{"stream", module + "/producers", false},
		{"producers", module + "/stream", true},
		{"producers", module + "/producers/exchanges", false},
		{"producers/exchanges", module + "/producers", true},
		{"producers/exchanges", module + "/schemas", true},
		{"producers/exchanges", module + "/stream", false},
		{"producers/exchanges", module + "/producers/simulator", false},
		{"producers/exchanges/wire", module + "/producers/exchanges", true},
		{"producers/yields", module + "/producers/answer", true},
		{"producers/yields", module + "/producers/reference", false},
		{"producers/sources", module + "/producers/yields", true},
		{"query/mcp", module + "/producers/answer", false},
		{"processors", module + "/query", false},
		{"processors/median", module + "/producers", false},
		{"query", module + "/processors", false},
		{"query/ws", module + "/query", true},
		{"query/ws", module + "/stream/history", false},
		{"query/querytest", module + "/stream/history", true},
		{"query/querytest", module + "/query/ws", false},
		{"deploy/embedded", module + "/stream", true},
		{"deploy/embedded", module + "/query", false},
		{"deploy/embedded/engine", module + "/deploy/embedded", true},
		{"deploy/embedded/engine", "github.com/ebitengine/purego", true},
		{"stream/history", "github.com/ebitengine/purego", false},
		{"processors/candles", "math/rand", false},
		{"deploy", module + "/query/ws", true},
		{"", module + "/deploy", true},
	} {
		err := checkImport(test.from, test.imported)
		if allowed := err == nil; allowed != test.allowed {
			t.Errorf("%q imports %q: got %v, want allowed=%v", test.from, test.imported, err, test.allowed)
		}
	}
}

// pure are the packages that must give the same for the same input, on every machine and in every
// replay: schemas, and the state machines beneath processors.
func pure(from string) bool {
	return within(from, "schemas") || strings.HasPrefix(from, "processors/")
}

// impure reach outside the process, read a clock or draw lots. Slices of it hold also beneath.
var impure = []string{"os", "net", "syscall", "database/sql", "log", "math/rand", "crypto/rand"}

// drivers are what only the embedded form links; tests get them from streamtest.
var drivers = []string{
	"github.com/twmb/franz-go/pkg/kfake", "github.com/ebitengine/purego", "github.com/alicebob/miniredis/v2",
}

// checkImport tells why the package at from, a path beneath the module, may not import another.
func checkImport(from, imported string) error {
	if to := inModule(imported); to != imported {
		return checkOwnImport(from, to)
	}
	if pure(from) && slices.ContainsFunc(impure, func(p string) bool { return within(imported, p) }) {
		return errors.New("it must be pure: no I/O, no clock, no chance")
	}
	if within(from, "schemas") && strings.Contains(imported, ".") {
		allowed := []string{
			"google.golang.org/protobuf", "github.com/planetscale/vtprotobuf/protohelpers", "github.com/shopspring/decimal",
		}
		if !slices.ContainsFunc(allowed, func(p string) bool { return within(imported, p) }) {
			return errors.New("schemas need the standard library, protobuf and decimals only")
		}
	}
	if slices.ContainsFunc(drivers, func(p string) bool { return within(imported, p) }) &&
		!within(from, "deploy/embedded") && from != "stream/streamtest" {
		return errors.New("drivers of the embedded form belong to deploy/embedded")
	}
	return nil
}

func checkOwnImport(from, to string) error {
	folder, unit, inUnit := strings.Cut(from, "/")
	unit, _, _ = strings.Cut(unit, "/")
	switch {
	case within(to, "schemas"):
		return nil
	case folder == "" || from == "deploy":
		return nil
	case folder == "schemas":
		return errors.New("schemas import nothing of ours")
	case folder == "stream" || within(from, "deploy/embedded"):
		if within(to, "stream") || within(from, "deploy/embedded") && within(to, "deploy/embedded") {
			return nil
		}
		return errors.New("it may import stream and schemas only")
	case inUnit:
		if to == folder || within(to, folder+"/"+unit) {
			return nil
		}
		// Decoders of polled sources share the words that they read answers with; the list of sources is what it names.
		if folder == "producers" && (to == "producers/answer" || from == "producers/sources") {
			return nil
		}
		// What only tests import stands up real stores, as their roots may.
		if strings.HasSuffix(unit, "test") && within(to, "stream") {
			return nil
		}
		return fmt.Errorf("a unit may import itself, %s and schemas only", folder)
	default:
		if within(to, "stream") {
			return nil
		}
		return errors.New("the root of a folder of units may import stream and schemas only")
	}
}

// A processor that reads a clock gives another result on every replay.
func TestPureCodeReadsNoClock(t *testing.T) {
	t.Attr("tier", "layout")
	clocks := []string{"Now", "Since", "Until", "After", "AfterFunc", "Tick", "NewTicker", "NewTimer", "Sleep"}
	for _, p := range listPackages(t) {
		if !pure(inModule(p.ImportPath)) {
			continue
		}
		for _, name := range p.GoFiles {
			files := token.NewFileSet()
			file, err := parser.ParseFile(files, filepath.Join(p.Dir, name), nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				selector, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				from, ok := selector.X.(*ast.Ident)
				if ok && from.Name == "time" && slices.Contains(clocks, selector.Sel.Name) {
					t.Errorf("%s: time.%s: time comes from the log", files.Position(n.Pos()), selector.Sel.Name)
				}
				return true
			})
		}
	}
}

// A name that fits everything says nothing, and what has no place collects behind it.
func TestPackagesAreNamedAfterWhatTheyPromise(t *testing.T) {
	t.Attr("tier", "layout")
	vague := regexp.MustCompile(`^(data|info|managers?|utils?|common|helpers?|misc)$`)
	for _, p := range listPackages(t) {
		names := strings.Split(inModule(p.ImportPath), "/")
		for _, file := range slices.Concat(p.GoFiles, p.IgnoredGoFiles) {
			names = append(names, strings.Split(strings.TrimSuffix(file, ".go"), "_")...)
		}
		for _, name := range append(names, p.Name) {
			if vague.MatchString(name) {
				t.Errorf("%s: %q is no name for a package or a file", p.ImportPath, name)
			}
		}
	}
}

func TestTopLevelIsFixed(t *testing.T) {
	t.Attr("tier", "layout")
	allowed := []string{
		"producers", "processors", "query", "stream", "schemas", "deploy", "docs", "tools",
		"main.go", "docker-compose.yml", "Makefile", "README.md", "CHANGELOG.md", "LICENSE", "go.mod", "go.sum",
		"bin", "data", // built and run here, in .gitignore
	}
	entries, err := os.ReadDir("..")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if name := entry.Name(); !strings.HasPrefix(name, ".") && !slices.Contains(allowed, name) {
			t.Errorf("%s lies at the top level, want it in one of %v", name, allowed[:8])
		}
	}
}

func listPackages(t *testing.T) []goPackage {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "list", "-e", "-json=ImportPath,Name,Dir,GoFiles,IgnoredGoFiles,Imports", "./...")
	command.Dir = ".."
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("running go list: %v", err)
	}
	var packages []goPackage
	decoder := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p goPackage
		err := decoder.Decode(&p)
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("reading go list: %v", err)
		}
		packages = append(packages, p)
	}
	if len(packages) < 5 {
		t.Fatalf("go list named %d packages, want all of the module", len(packages))
	}
	return packages
}

// inModule returns the path beneath the module, "" for its root, and other import paths as they are.
func inModule(path string) string {
	if path == module {
		return ""
	}
	return strings.TrimPrefix(path, module+"/")
}

// within tells whether path is prefix or lies beneath it.
func within(path, prefix string) bool {
	return path == prefix || strings.HasPrefix(path, prefix+"/")
}
