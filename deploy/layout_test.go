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

// goPackage is what `go list -json` prints of one package.
type goPackage struct {
	ImportPath, Name, Dir   string
	GoFiles, IgnoredGoFiles []string
	Imports                 []string
	// TestImports are of tests in the package itself, XTestImports of those beside it.
	TestImports, XTestImports []string
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
		for _, imported := range slices.Concat(p.TestImports, p.XTestImports) {
			if err := checkTestImport(from, imported); err != nil {
				t.Errorf("tests of %s import %s: %v", p.ImportPath, imported, err)
			}
		}
	}
}

func TestLayoutRuleDistinguishesImports(t *testing.T) {
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
		{"producers/simulator", module + "/producers/simulator/venues", true},
		{"producers/simulator/venues", module + "/producers/simulator/market", true},
		{"producers/simulator/market", module + "/producers/simulator/provider", false},
		{"producers/simulator/sources", module + "/producers/simulator/venues", false},
		{"producers/simulator/venues", module + "/producers/simulator", false},
		{"producers/simulator/venues", module + "/producers", false},
		{"producers/simulator/sources", module + "/producers/answer", false},
		{"producers/simulator/market", module + "/schemas", true},
		{"producers/exchanges", module + "/producers/adapter", true},
		{"producers/adapter", module + "/producers", true},
		{"producers", module + "/producers/adapter", false},
		{"producers/adapter", module + "/producers/outbox", false},
		{"producers/adapter", module + "/stream", false},
		{"producers/outbox", module + "/stream", true},
		{"producers/poll", module + "/producers/yields", false},
		{"producers/poll", module + "/query", false},
		{"query", module + "/query/views", true},
		{"query/views", module + "/query", false},
		{"query/views", module + "/stream/history", true},
		{"query/prices", module + "/query/views", true},
		{"query/limits", module + "/query/prices", false},
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
		{"query/ws", module + "/stream/history/read", false},
		{"query/views", module + "/stream/history/read", true},
		{"query/querytest", module + "/stream/history", true},
		{"query/querytest", module + "/query/ws", false},
		{"deploy/embedded", module + "/stream", true},
		{"deploy/embedded", module + "/query", false},
		{"deploy/embedded/engine", module + "/deploy/embedded", true},
		{"deploy/embedded/engine", "github.com/ebitengine/purego", true},
		{"stream/history", "github.com/ebitengine/purego", false},
		{"deploy/embedded", "github.com/alicebob/miniredis/v2", false},
		{"processors/candles", "math/rand", false},
		{"deploy/roles", module + "/query/ws", true},
		{"", module + "/deploy", true},
		{"deploy/cli/market", module + "/query/clients/go/api", true},
		{"query/mcp", module + "/query/clients/go", false},
		{"deploy/cli/topics", module + "/deploy/cli/command", true},
		{"deploy/cli/topics", module + "/deploy/cli/doctor", false},
		{"deploy/cli/command", module + "/deploy/cli", false},
		{"deploy/config", module + "/deploy/export", false},
		{"deploy/instance", module + "/deploy/export", true},
	} {
		err := checkImport(test.from, test.imported)
		if allowed := err == nil; allowed != test.allowed {
			t.Errorf("%q imports %q: got %v, want allowed=%v", test.from, test.imported, err, test.allowed)
		}
	}
	for _, test := range []struct {
		from, imported string
		allowed        bool
	}{
		{"producers", module + "/producers/exchanges", true},
		{"producers", module + "/query", false},
		{"producers/exchanges", module + "/processors/median", false},
		{"processors/median", module + "/processors/foldtest", true},
		{"processors", module + "/deploy/embedded/enginetest", true},
		{"processors", module + "/deploy/chaos/oracle", true},
		{"processors", module + "/deploy/instance", false},
		{"processors", module + "/query/querytest", false},
		{"query/charts", module + "/stream/history", true},
		{"query/charts", module + "/query/coins", true},
		{"query/charts", module + "/processors", false},
		{"stream", module + "/stream/streamtest", true},
		{"stream/history", module + "/processors", false},
		{"schemas", module + "/schemas/schematest", true},
		{"schemas", module + "/stream", false},
		{"schemas", module + "/deploy/embedded/enginetest", false},
		{"deploy/chaos/oracle", module + "/processors/median", true},
		{"schemas", "os", true},
	} {
		err := checkTestImport(test.from, test.imported)
		if allowed := err == nil; allowed != test.allowed {
			t.Errorf("a test of %q imports %q: got %v, want allowed=%v", test.from, test.imported, err, test.allowed)
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

// drivers are what only the embedded form links, beside tests.
var drivers = []string{
	"github.com/twmb/franz-go/pkg/kfake", "github.com/ebitengine/purego",
}

// checkImport returns why the package at from, a path beneath the module, may not import another.
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
	if within(imported, "github.com/alicebob/miniredis/v2") {
		return errors.New("only tests use miniredis: without Redis the latest prices are in memory")
	}
	if slices.ContainsFunc(drivers, func(p string) bool { return within(imported, p) }) &&
		!within(from, "deploy/embedded") && from != "stream/streamtest" {
		return errors.New("drivers of the embedded form belong to deploy/embedded")
	}
	return nil
}

// composes are the floors of deploy that put processes together: they import all folders.
var composes = map[string]bool{"deploy/roles": true, "deploy/operations": true, "deploy/instance": true}

// beyond is what other floors of deploy import of producers, processors and query.
var beyond = map[string]string{
	"deploy/admin":      "processors producers/backfill",
	"deploy/cli":        "processors producers/backfill producers/decode producers/exchanges producers/sources query/limits query/mcp query/symbols",
	"deploy/cli/market": "query/clients/go query/clients/go/api query/limits",
	"deploy/cli/topics": "processors/quotes",
	"deploy/config":     "producers/adapter producers/exchanges producers/poll producers/sources query query/limits",
	"deploy/export":     "processors producers/poll",
	"deploy/imports":    "processors producers producers/adapter producers/exchanges",
	"deploy/metrics":    "processors producers/adapter producers/outbox",
}

// floors are the packages that a folder is built up of, each with its floor: they import those of lower floors only. Those of
// deploy join the other folders, and import whatever they need of these; those of producers and query import stream and
// schemas beside their own folder. All other packages of a folder are units: they import floors, and no other unit.
var floors = map[string]int{
	"deploy/release": 9, "deploy/cli": 8, "deploy/cli/doctor": 7, "deploy/cli/topics": 7, "deploy/cli/archive": 7, "deploy/cli/market": 7, "deploy/cli/sql": 7, "deploy/cli/command": 6, "deploy/roles": 5, "deploy/operations": 4, "deploy/instance": 3, "deploy/config": 1, "deploy/admin": 1, "deploy/export": 1, "deploy/imports": 1, "deploy/supervise": 1, "deploy/metrics": 1,
	"deploy/deploytest": 3,
	"producers":         1, "producers/adapter": 2, "producers/outbox": 2, "producers/poll": 3, "producers/answer": 4, "producers/fetch": 4,
	"query/collectors": 1, "query/examples": 1, "query/position": 1, "query/limits": 2, "query/views": 2, "query": 3,
	"processors": 1,
}

// simulator are the packages of the simulator, each with its floor. They share nothing with what reads them: both follow the
// providers' documentation, so that neither hides the other's mistakes.
var simulator = map[string]int{
	"producers/simulator/market": 1, "producers/simulator/simulatortest": 1, "producers/simulator/provider": 2,
	"producers/simulator/venues": 3, "producers/simulator/sources": 3, "producers/simulator": 4,
}

func checkOwnImport(from, to string) error {
	folder, unit, inUnit := strings.Cut(from, "/")
	unit, _, _ = strings.Cut(unit, "/")
	switch {
	case within(to, "schemas"):
		return nil
	case folder == "":
		return nil
	case simulator[from] > 0:
		if floor := simulator[to]; floor == 0 || floor >= simulator[from] {
			return errors.New("it may import lower floors of the simulator only")
		}
		return nil
	case floors[from] > 0 && within(to, folder):
		if floors[to] >= floors[from] || floors[to] == 0 && folder != "deploy" {
			return errors.New("it may import packages of lower floors only")
		}
		return nil
	case floors[from] > 0 && folder == "deploy":
		if composes[from] || within(to, "stream") || slices.Contains(strings.Fields(beyond[from]), to) {
			return nil
		}
		return errors.New("of other folders it may import stream, and what beyond lists of it")
	case folder == "schemas":
		return errors.New("schemas import nothing of ours")
	case folder == "stream" || within(from, "deploy/embedded"):
		if within(to, "stream") || within(from, "deploy/embedded") && within(to, "deploy/embedded") {
			return nil
		}
		return errors.New("it may import stream and schemas only")
	case inUnit:
		if within(to, folder) && floors[to] > 0 || within(to, folder+"/"+unit) {
			return nil
		}
		// The list of sources is what it names.
		if within(to, folder) && from == "producers/sources" {
			return nil
		}
		if within(to, "stream") && floors[from] > 0 && from != "producers/answer" && from != "producers/adapter" {
			return nil
		}
		// What only tests import starts real stores, as their roots may.
		if strings.HasSuffix(unit, "test") && within(to, "stream") {
			return nil
		}
		return fmt.Errorf("a unit may import itself, the floors of %s and schemas only", folder)
	default:
		if within(to, "stream") {
			return nil
		}
		return errors.New("the root of a folder of units may import stream and schemas only")
	}
}

// checkTestImport returns why a test of the package at from may not import another. Tests join the units of one folder with
// each other and with real stores, and use the harnesses; but producers, processors and query do not meet in tests either,
// except in those of deploy.
func checkTestImport(from, imported string) error {
	to := inModule(imported)
	folder, _, _ := strings.Cut(from, "/")
	switch {
	case to == imported || within(to, "schemas") || within(to, folder):
		return nil
	case folder == "schemas":
		return errors.New("schemas are tested without anything else of ours")
	case folder == "" || folder == "deploy", within(to, "stream"), slices.Contains(harnesses, to):
		return nil
	}
	return errors.New("a test may import its own folder, stream, schemas and harnesses only")
}

// harnesses are what tests of every folder may use: a real engine, and the oracles that folds are held against.
var harnesses = []string{"deploy/embedded/enginetest", "deploy/chaos/oracle"}

// timing are the functions of the runtime of folds and sinks that look at the machine's clock. None of them decides what
// is written, only when and in which order, or shows people how long it took.
var timing = map[string]string{
	"LagLimiter.Join": "patience", "LagLimiter.Wait": "patience", "LagLimiter.behind": "patience", "LagLimiter.reached": "patience",
	"Replay.Run": "how long a replay took", "Replay.awaitLive": "patience", "Replay.attempt": "when tables were changed", "Replay.countRestated": "when tables were changed",
	"restatementWriter.awaitSink": "patience", "Replay.meter": "the rate shown", "meter.report": "the rate shown",
	"Replay.control":     "a time that a broker does not expire, for a topic that has none yet",
	"foldMetrics.folded": "how long a batch took, for a metric", "foldMetrics.closed": "how long a batch took, for a metric",
	"joinedFold.fold": "how long a batch took, for a metric",
	"worker.run":      "how long a batch took, for a metric", "sinkWriter.write": "how long an insert took, for a metric",
	"sinkWriter.cache": "how long the cache took, for a metric",
	"PastCandles.fold": "pauses between passes",
	"Ledger.schedule":  "when a write is due, and how often a warning is logged", "Ledger.write": "when the next write is due",
	"sinkMember.take": "when a batch is due", "sinkMember.Due": "when a batch is due", "retryUntilAvailable": "pauses between tries",
	"sinkMetrics.asks": "how long a store is away, for readiness", "Metrics.Waiting": "how long a store is away, for readiness",
}

// A processor that reads a clock gives another result on every replay.
func TestPureCodeReadsNoClock(t *testing.T) {
	t.Attr("tier", "layout")
	used := map[string]bool{}
	for _, p := range listPackages(t) {
		from := inModule(p.ImportPath)
		if !pure(from) && from != "processors" {
			continue
		}
		for _, name := range p.GoFiles {
			files := token.NewFileSet()
			file, err := parser.ParseFile(files, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, read := range clockReads(file) {
				if from == "processors" && timing[read.function] != "" {
					used[read.function] = true
					continue
				}
				t.Errorf("%s: %s reads time.%s: time comes from the log", files.Position(read.at), read.function, read.name)
			}
		}
	}
	for function := range timing {
		if !used[function] {
			t.Errorf("%s reads no clock: take it off the list", function)
		}
	}
}

func TestClockReadsAreFound(t *testing.T) {
	t.Attr("tier", "layout")
	const code = `package p
import clock "time"
type fold struct{}
func (f *fold) Take() int64 { return clock.Now().UnixNano() }
func pause() { <-clock.After(clock.Second) }
var started = clock.Now
`
	file, err := parser.ParseFile(token.NewFileSet(), "p.go", code, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, read := range clockReads(file) {
		got = append(got, read.function+" "+read.name)
	}
	if want := []string{"fold.Take Now", "pause After", " Now"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// clockRead is a place where code looks at the machine's clock, or waits by it. function is its name after that of its
// receiver's type, empty outside of functions.
type clockRead struct {
	function, name string
	at             token.Pos
}

// clockReads are those of a file, under whatever name it imports package time.
func clockReads(file *ast.File) (reads []clockRead) {
	clocks := []string{"Now", "Since", "Until", "After", "AfterFunc", "Tick", "NewTicker", "NewTimer", "Sleep"}
	local := "time"
	for _, imported := range file.Imports {
		if imported.Path.Value == `"time"` && imported.Name != nil {
			local = imported.Name.Name
		}
	}
	for _, declared := range file.Decls {
		function := ""
		if f, ok := declared.(*ast.FuncDecl); ok {
			function = f.Name.Name
			if f.Recv != nil {
				of := f.Recv.List[0].Type
				if pointer, ok := of.(*ast.StarExpr); ok {
					of = pointer.X
				}
				if name, ok := of.(*ast.Ident); ok {
					function = name.Name + "." + function
				}
			}
		}
		ast.Inspect(declared, func(n ast.Node) bool {
			selector, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			from, ok := selector.X.(*ast.Ident)
			if ok && from.Name == local && slices.Contains(clocks, selector.Sel.Name) {
				reads = append(reads, clockRead{function, selector.Sel.Name, n.Pos()})
			}
			return true
		})
	}
	return reads
}

// The Go client is a module of its own: a program that uses it builds nothing else of ours, nor of others.
func TestGoClientRequiresNothing(t *testing.T) {
	t.Attr("tier", "layout")
	text, err := os.ReadFile("../query/clients/go/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if found := regexp.MustCompile(`(?m)^\s*(require|replace)\b.*`).FindString(string(text)); found != "" {
		t.Errorf("its go.mod has %q", found)
	}
}

// The build of the image downloads modules before it has the sources: it needs the go.mod of each that go.mod replaces by a folder.
func TestImageHasEveryModuleBeforeItDownloads(t *testing.T) {
	t.Attr("tier", "layout")
	module, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	instructions, err := os.ReadFile("Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	before, _, found := strings.Cut(string(instructions), "RUN go mod download\n")
	folders := regexp.MustCompile(`(?m)^replace .* => \./(.*)$`).FindAllStringSubmatch(string(module), -1)
	if !found || len(folders) == 0 {
		t.Fatalf("the image downloads modules: %v; replaced are %q", found, folders)
	}
	for _, folder := range folders {
		if copied := "COPY " + folder[1] + "/go.mod " + folder[1] + "/\n"; !strings.Contains(before, copied) {
			t.Errorf("deploy/Dockerfile lacks %q before it downloads", copied)
		}
	}
}

// mostFiles is how many product files a folder may hold: more, and nobody sees which belong together.
const mostFiles = 25

// ofOneKind are the folders whose files are units of one kind, side by side and equal: a folder more would only be a step more.
var ofOneKind = map[string]string{
	"schemas":             "one kind of value each, with the rules that every side needs",
	"producers/exchanges": "one venue each",
	"query/explain":       "one family of numbers each, beside what all of them are made with",
	"producers/yields":    "one polled source each",
}

// Files of tests and generated code do not count, nor does what is not Go: tables and views are data.
func TestFoldersCanBeSurveyed(t *testing.T) {
	t.Attr("tier", "layout")
	for _, p := range listPackages(t) {
		folder, n := inModule(p.ImportPath), 0
		for _, name := range slices.Concat(p.GoFiles, p.IgnoredGoFiles) {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.PackageClauseOnly|parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			if !ast.IsGenerated(file) {
				n++
			}
		}
		_, same := ofOneKind[folder]
		if n > mostFiles && !same {
			t.Errorf("%s holds %d product files, want at most %d: cut it where the fewest calls cross", folder, n, mostFiles)
		}
		if same && n <= mostFiles {
			t.Errorf("%s holds %d product files: take it off the list", folder, n)
		}
	}
}

// A name that fits everything describes nothing, and what has no place collects under it.
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
	command := exec.CommandContext(t.Context(), "go", "list", "-e", "-json=ImportPath,Name,Dir,GoFiles,IgnoredGoFiles,Imports,TestImports,XTestImports", "./...")
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

// within reports whether path is prefix or lies beneath it.
func within(path, prefix string) bool {
	return path == prefix || strings.HasPrefix(path, prefix+"/")
}
