package e2e

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/marketlog/marketlog/deploy/cli"
	"github.com/marketlog/marketlog/deploy/cli/command"
	"github.com/marketlog/marketlog/schemas"
)

// document is one page of the documentation.
type document struct {
	// path is relative to the repository: "docs/log.md".
	path, text string
}

// documents are README.md and every page of docs.
func documents(t *testing.T) (list []document) {
	t.Helper()
	paths := []string{"README.md"}
	err := fs.WalkDir(os.DirFS("../.."), "docs", func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".md") {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil || len(paths) < 20 {
		t.Fatalf("got %d documents, %v; want README.md and all of docs", len(paths), err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(filepath.Join("..", "..", path))
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, document{path, string(text)})
	}
	return list
}

// current reports whether a page describes the present; decisions and the changelog name what there was.
func (d document) current() bool {
	return !strings.HasPrefix(d.path, "docs/decisions/") && d.path != "docs/CHANGELOG.md"
}

// shell are the blocks of a page in the given language, without comments, with continued lines joined.
func (d document) shell(language string) (lines []string) {
	block, inside := "", false
	for line := range strings.SplitSeq(strings.ReplaceAll(d.text, "\\\n", " "), "\n") {
		if fence, ok := strings.CutPrefix(line, "```"); ok {
			block, inside = fence, !inside
			continue
		}
		line, _, _ = strings.Cut(line, " #")
		if line = strings.TrimSpace(line); inside && block == language && line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// commands are those that are in code within the tables of a page.
func (d document) commands() (lines []string) {
	for line := range strings.SplitSeq(d.text, "\n") {
		if !strings.HasPrefix(line, "|") {
			continue
		}
		for _, match := range code.FindAllStringSubmatch(line, -1) {
			if regexp.MustCompile(`^(curl|bin/marketlog|\w+=\S+) \S`).MatchString(match[1]) {
				lines = append(lines, match[1])
			}
		}
	}
	return lines
}

func TestReadmeIsShort(t *testing.T) {
	for _, d := range documents(t) {
		if lines := strings.Count(d.text, "\n"); d.path == "README.md" && lines > 120 {
			t.Errorf("README.md has %d lines, want at most 120: details belong to docs", lines)
		}
	}
}

// One variable holds the key wherever it is shown: the one that `marketlog env` prints.
func TestOneVariableHoldsTheKey(t *testing.T) {
	other := regexp.MustCompile(`\$\{?KEY\b|\bKEY=|Bearer KEY\b|\bkey\.KEY\b|\+ KEY\b`)
	for _, d := range documents(t) {
		if found := other.FindString(d.text); d.current() && found != "" {
			t.Errorf("%s has %s; the key is in MARKETLOG_API_KEY", d.path, found)
		}
	}
	for _, file := range []string{"query/pages/llms.go", "query/pages/text.go", "query/ws/asyncapi.go", "query/examples/samples.json", "query/pages/web/reference.tsx", "query/pages/web/sql.tsx"} {
		text, err := os.ReadFile(filepath.Join("..", "..", file))
		if err != nil {
			t.Fatal(err)
		}
		if found := other.FindString(string(text)); found != "" {
			t.Errorf("%s has %s; the key is in MARKETLOG_API_KEY", file, found)
		}
	}
}

// What is said of operations in the client libraries is in the words of their languages: a path, or the name of a parameter in an
// address, is nothing that one of their users has.
func TestClientsSayWhatTheirLanguageHas(t *testing.T) {
	for file, not := range map[string]string{
		"go/operations.go":                    "%2F|May also be repeated|meta\\.|`asOf`|priceSource|in /[a-z]+/|explainNumber|A date alone",
		"go/api/types.go":                     `meta\.[a-z]|// .*\b(priceSource|totalTvl|coinId)\b|see /`,
		"python/src/marketlog/_operations.py": "%2F|May also be repeated|`asOf`|in /[a-z]+/|explainNumber",
		"typescript/src/operations.ts":        "%2F|May also be repeated|in /[a-z]+/|use /coins",
	} {
		text, err := os.ReadFile(filepath.Join("..", "..", "query", "clients", file))
		if err != nil {
			t.Fatal(err)
		}
		if found := regexp.MustCompile(not).FindString(string(text)); found != "" {
			t.Errorf("%s has %q", file, found)
		}
	}
}

// TestTheIndexNamesEveryPage keeps pages from being found by nobody.
func TestTheIndexNamesEveryPage(t *testing.T) {
	all := documents(t)
	index := all[slices.IndexFunc(all, func(d document) bool { return d.path == "docs/README.md" })]
	for _, d := range all {
		name, within := strings.CutPrefix(d.path, "docs/")
		if within && name != "README.md" && !strings.HasPrefix(name, "decisions/") && !strings.Contains(index.text, "("+name+")") {
			t.Errorf("docs/README.md does not link %s", name)
		}
	}
}

// links are [text](target), images and code aside.
var links = regexp.MustCompile(`\]\(([^)\s]+)\)`)

func TestLinksOfDocumentsLeadSomewhere(t *testing.T) {
	for _, d := range documents(t) {
		for _, match := range links.FindAllStringSubmatch(d.text, -1) {
			target, anchor, _ := strings.Cut(match[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			linked := filepath.Join("..", "..", filepath.Dir(d.path), target)
			if target == "" {
				linked = filepath.Join("..", "..", d.path)
			}
			text, err := os.ReadFile(linked)
			if info, statErr := os.Stat(linked); statErr != nil || !info.IsDir() && err != nil {
				t.Errorf("%s links %s, which is not there", d.path, match[1])
				continue
			}
			if anchor != "" && !slices.Contains(anchors(string(text)), anchor) {
				t.Errorf("%s links %s, and there is no such heading", d.path, match[1])
			}
		}
	}
}

// anchors are the names that headings of a page have on GitHub.
func anchors(text string) (names []string) {
	dropped := regexp.MustCompile(`[^\p{L}\p{N}_\- ]`)
	for line := range strings.SplitSeq(text, "\n") {
		if heading := strings.TrimLeft(line, "#"); heading != line {
			name := dropped.ReplaceAllString(strings.ToLower(strings.TrimSpace(heading)), "")
			names = append(names, strings.ReplaceAll(name, " ", "-"))
		}
	}
	return names
}

// code is a span in backquotes.
var code = regexp.MustCompile("`([^`\n]+)`")

// A page that names a folder or file of the source says where it is: whoever moves it corrects the page.
func TestPathsInDocumentsExist(t *testing.T) {
	folders := []string{"deploy/", "docs/", "processors/", "producers/", "query/", "schemas/", "stream/", "tools/"}
	named := 0
	for _, d := range documents(t) {
		if !d.current() {
			continue
		}
		for _, match := range code.FindAllStringSubmatch(d.text, -1) {
			path := match[1]
			if !slices.ContainsFunc(folders, func(f string) bool { return strings.HasPrefix(path, f) }) || strings.ContainsAny(path, "<>{}…= ") ||
				strings.Contains(path, "NNN") || slices.Contains([]string{"processors/prices", "query/api", "tools/list", "tools/call"}, path) {
				continue // with a place to fill in, or the name of a role or of a method of MCP
			}
			named++
			if found, err := filepath.Glob(filepath.Join("..", "..", path)); err != nil || len(found) == 0 {
				t.Errorf("%s names %s, which is not there", d.path, path)
			}
		}
	}
	if named < 20 {
		t.Errorf("the documents name %d paths, want those of architecture.md at least", named)
	}
}

// source are the files of Go in the repository, by their paths.
var source = func() func(t *testing.T) map[string]*ast.File {
	read := sync.OnceValues(func() (map[string]*ast.File, error) {
		files := map[string]*ast.File{}
		err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() && slices.Contains([]string{".git", "node_modules", "bin", "data"}, entry.Name()) {
				return cmpErr(err, fs.SkipDir)
			}
			if strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, ".pb.go") {
				files[path], err = parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			}
			return err
		})
		return files, err
	})
	return func(t *testing.T) map[string]*ast.File {
		t.Helper()
		files, err := read()
		if err != nil {
			t.Fatal(err)
		}
		return files
	}
}()

// What the pages of adding something name of a package of ours, as `poll.Request`, is declared there.
func TestNamesInDocumentsExist(t *testing.T) {
	declared := map[string]bool{} // poll.Request; and poll., for the package
	for path, file := range source(t) {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		prefix := file.Name.Name + "."
		declared[prefix] = true
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				declared[prefix+d.Name.Name] = declared[prefix+d.Name.Name] || d.Recv == nil
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						declared[prefix+spec.Name.Name] = true
					case *ast.ValueSpec:
						for _, name := range spec.Names {
							declared[prefix+name.Name] = true
						}
					}
				}
			}
		}
	}
	qualified, named := regexp.MustCompile(`\b([a-z]+\.)([A-Z]\w*)`), 0
	for _, d := range documents(t) {
		if !strings.HasPrefix(d.path, "docs/adding-") {
			continue
		}
		for _, span := range code.FindAllStringSubmatch(d.text, -1) {
			for _, match := range qualified.FindAllStringSubmatch(span[1], -1) {
				if !declared[match[1]] {
					continue // a variable, or a package of others
				}
				named++
				if !declared[match[0]] {
					t.Errorf("%s names %s, which is not declared", d.path, match[0])
				}
			}
		}
	}
	if named < 15 {
		t.Errorf("the pages name %d declarations, want those that an adapter begins with at least", named)
	}
}

// What a page calls a proof is a test that exists.
func TestTestsInDocumentsExist(t *testing.T) {
	tests := map[string]bool{}
	for path, file := range source(t) {
		if !strings.HasSuffix(path, "_test.go") {
			continue
		}
		for _, declared := range file.Decls {
			if f, ok := declared.(*ast.FuncDecl); ok && f.Recv == nil {
				tests[f.Name.Name] = true
			}
		}
	}
	name := regexp.MustCompile(`^(Test|Fuzz|Benchmark)[A-Z]\w*`)
	named := 0
	for _, d := range documents(t) {
		if !d.current() {
			continue
		}
		for _, match := range code.FindAllStringSubmatch(d.text, -1) {
			for part := range strings.SplitSeq(match[1], "|") {
				if test := name.FindString(part); test != "" {
					named++
					if !tests[test] {
						t.Errorf("%s names %s, and there is no such test", d.path, test)
					}
				}
			}
		}
	}
	if named < 10 {
		t.Errorf("the documents name %d tests, want those that show what README.md promises", named)
	}
}

// cmpErr is err, or other where there is none.
func cmpErr(err, other error) error {
	if err != nil {
		return err
	}
	return other
}

// Commands of documents have the names and flags that the program has, and targets those of the Makefile.
func TestCommandsInDocumentsAreKnown(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	commands, targets := 0, 0
	for _, d := range documents(t) {
		if !d.current() {
			continue
		}
		for _, line := range slices.Concat(d.shell("sh"), d.shell(""), d.commands()) {
			for part := range strings.SplitSeq(line, "|") {
				words := shellWords(part)
				if i := slices.IndexFunc(words, func(w string) bool { return filepath.Base(w) == "marketlog" }); i >= 0 {
					commands++
					if err := knownCommand(words[i+1:]); err != nil {
						t.Errorf("%s: %s: %v", d.path, line, err)
					}
				}
			}
		}
		for _, match := range regexp.MustCompile("(?m)(?:`|^)make ([a-z-]+)").FindAllStringSubmatch(d.text, -1) {
			targets++
			if !strings.Contains(string(makefile), "\n"+match[1]+":") {
				t.Errorf("%s: make %s is no target of the Makefile", d.path, match[1])
			}
		}
	}
	if commands < 20 || targets < 3 {
		t.Errorf("the documents have %d commands and %d targets, want those of README.md at least", commands, targets)
	}
}

// shellWords are the words of a simple command, with quotes taken off.
func shellWords(line string) (words []string) {
	quoted := regexp.MustCompile(`'[^']*'|"[^"]*"|[^\s'"]+`)
	for _, word := range quoted.FindAllString(line, -1) {
		words = append(words, strings.Trim(word, `'"`))
	}
	return words
}

// knownCommand reports what the program does not know of a command line.
func knownCommand(args []string) error {
	app := command.Runtime{}
	root := &cobra.Command{Use: "marketlog"}
	root.AddCommand(cli.Commands(&app)...)
	if i := slices.IndexFunc(args, func(a string) bool { return a == "&" || strings.HasPrefix(a, ">") }); i >= 0 {
		args = args[:i]
	}
	cmd, rest, err := root.Find(args)
	if err != nil {
		return err
	}
	if cmd == root {
		return fmt.Errorf("no command in %q", args)
	}
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	if cmd.Args == nil {
		return nil
	}
	return cmd.Args(cmd, cmd.Flags().Args())
}

// The page of the log has every topic of the topic table, with its numbers.
func TestThePageOfTheLogIsTheTopicTable(t *testing.T) {
	text, err := os.ReadFile("../../docs/log.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, topic := range schemas.Topics {
		kept := "kept"
		if topic.Retention > 0 {
			kept = fmt.Sprintf("%d days", int(topic.Retention/(24*time.Hour)))
		}
		if topic.Compacted {
			kept += ", compacted"
		}
		want := fmt.Sprintf("\n| `%s` | %d | %s | %s | %s |\n", topic.Name, topic.Partitions, strings.ReplaceAll(topic.Key, "|", `\|`), kept, topic.Holds)
		if !strings.Contains(string(text), want) {
			t.Errorf("docs/log.md has no row %q", strings.TrimSpace(want))
		}
	}
	if rows := strings.Count(string(text), ".v1` | "); rows != len(schemas.Topics) {
		t.Errorf("docs/log.md has %d rows of topics, want %d", rows, len(schemas.Topics))
	}
}
