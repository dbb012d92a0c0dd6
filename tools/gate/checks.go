package main

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// format holds every Go file to gofmt.
func format(io.Writer) []result {
	files, err := goFiles()
	if err != nil {
		return []result{check("format", "gofmt", err)}
	}
	out, err := exec.Command("gofmt", append([]string{"-l"}, files...)...).CombinedOutput()
	if err == nil && len(out) > 0 {
		err = fmt.Errorf("gofmt would change:\n%s", out)
	}
	return []result{check("format", "gofmt", err)}
}

// lint runs the linters, go vet's analyzers among them, over all modules.
func lint(out io.Writer) []result {
	return []result{
		check("lint", "golangci-lint", runLast(out, "go", "tool", "-modfile=tools/go.mod", "golangci-lint", "run")),
		check("lint", "golangci-lint of the tools", runLast(out, "go", "-C", "tools", "tool", "golangci-lint", "run")),
		check("lint", "golangci-lint of the client", runLast(out, "go", "-C", clientFolder, "tool", "-modfile=../../../tools/go.mod", "golangci-lint", "run")),
	}
}

// chartTools is what tests the chart of deploy/helm, a module of its own, since Helm brings a hundred others.
const chartTools = "tools/helm"

// chart reads the Helm chart with Helm's own packages. Compiling them and the types of Kubernetes takes a minute and a half of a
// processor, once.
func chart(out io.Writer) []result {
	tests := testRun{name: "chart", tier: "chart", folder: chartTools, kills: quickKills, arguments: []string{"./..."}}
	return append(tests.results(),
		check("lint", "golangci-lint of the chart's test", runLast(out, "go", "-C", chartTools, "tool", "-modfile=../go.mod", "golangci-lint", "run")))
}

// clientFolder is the Go client, a module of its own, so that who uses it builds nothing else of ours.
const clientFolder = "query/clients/go"

// deadcode looks for functions that neither a program nor a test of the repository comes to. The linters see those of one package.
func deadcode(out io.Writer) []result {
	return []result{
		check("lint", "deadcode", silent(out, "go", "tool", "-modfile=tools/go.mod", "deadcode", "-test", "./...")),
		check("lint", "deadcode of the tools", silent(out, "go", "-C", "tools", "tool", "deadcode", "-test", "./...")),
		check("lint", "deadcode of the client", silent(out, "go", "-C", clientFolder, "tool", "-modfile=../../../tools/go.mod", "deadcode", "-test", "./...")),
	}
}

// silent runs a program as runLast does, which fails where it prints anything.
func silent(out io.Writer, program string, arguments ...string) error {
	var printed bytes.Buffer
	err := runLast(io.MultiWriter(out, &printed), program, arguments...)
	if found := findings(printed.String()); err == nil && found != "" {
		err = fmt.Errorf("remove what nothing comes to:\n%s", found)
	}
	return err
}

// findings are the lines that a program printed, without what the go command reports about the modules that it fetches on a new machine.
func findings(printed string) string {
	var found strings.Builder
	for line := range strings.Lines(printed) {
		if !strings.HasPrefix(line, "go: downloading ") {
			found.WriteString(line)
		}
	}
	return found.String()
}

// schemas holds the events to their style, to what logs already hold, and the generated files to them.
func schemas(out io.Writer) []result {
	buf, err := filepath.Abs(filepath.Join("tools", "node_modules", ".bin", "buf"))
	if err != nil {
		return []result{check("schemas", "buf", err)}
	}
	results := []result{
		check("schemas", "buf lint", runIn(out, "schemas", buf, "lint")),
		check("schemas", "buf breaking", runIn(out, "schemas", buf, "breaking", "--against", image)),
		check("schemas", "generated code", upToDate(out, buf)),
	}
	archived, err := filepath.Glob(archivedSchemas)
	if err == nil && len(archived) == 0 {
		err = fmt.Errorf("there is no schema in %s", archivedSchemas)
	}
	if err != nil {
		return append(results, check("schemas", "buf breaking, archived", err))
	}
	for _, schema := range archived {
		// What an archive of any version has must be readable.
		name := "buf breaking, archived " + filepath.Base(schema)[:12]
		results = append(results, check("schemas", name, runIn(out, "schemas", buf, "breaking", "--against", filepath.Join("..", schema))))
	}
	return results
}

// archivedSchemas are those of the archives of all versions that a test of processors folds.
var archivedSchemas = filepath.Join("processors", "testdata", "golden", "*", "v1", "schemas", "*.binpb")

// image is the compiled form of the events that `buf breaking` compares with, beneath schemas.
var image = filepath.Join("events", "events.binpb")

// upToDate generates the events' code and image elsewhere and compares.
func upToDate(out io.Writer, buf string) error {
	folder, err := os.MkdirTemp("", "gate")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	if err := runIn(out, "schemas", buf, "generate", "-o", folder); err != nil {
		return err
	}
	if err := runIn(out, "schemas", buf, "build", "--exclude-source-info", "-o", filepath.Join(folder, image)); err != nil {
		return err
	}
	fresh, err := generated(folder)
	if err != nil {
		return err
	}
	committed, err := generated("schemas")
	if err != nil {
		return err
	}
	var stale []string
	for name := range fresh {
		if !bytes.Equal(fresh[name], committed[name]) {
			stale = append(stale, name)
		}
	}
	for name := range committed {
		if _, ok := fresh[name]; !ok {
			stale = append(stale, name)
		}
	}
	if len(stale) > 0 {
		return fmt.Errorf("run `make generate`: not up to date are %s", strings.Join(stale, ", "))
	}
	return nil
}

// generated reads the files beneath folder that buf writes.
func generated(folder string) (map[string][]byte, error) {
	files := map[string][]byte{}
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".pb.go") && !strings.HasSuffix(path, ".binpb") {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		files[name], err = os.ReadFile(path)
		return err
	})
	return files, err
}

// goFiles lists the Go files of the checkout, without what lies in folders that are not ours.
func goFiles() ([]string, error) {
	var files []string
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (path == "data" || path == "bin" || entry.Name() == "node_modules" || entry.Name() == ".git"):
			return filepath.SkipDir
		case strings.HasSuffix(path, ".go"):
			files = append(files, path)
		}
		return nil
	})
	return files, err
}

func check(tier, name string, err error) result {
	if err != nil {
		return result{tier: tier, name: name, outcome: failed, reason: err.Error()}
	}
	return result{tier: tier, name: name}
}

// runLast runs a tool that gives way to all others.
func runLast(out io.Writer, program string, arguments ...string) error {
	command := yielding(program, arguments...)
	command.Env = lavish(asShipped())
	return run(out, command)
}

// lavish lets compilers and linters collect their garbage a quarter as often, within four gigabytes each: collecting is a tenth of what
// they compute. Tests run without it.
func lavish(environment []string) []string {
	return append(environment, "GOGC=400", "GOMEMLIMIT=4GiB")
}

// yielding is a program that gives way to all others, where the system has a command for that.
func yielding(program string, arguments ...string) *exec.Cmd {
	if nice, err := exec.LookPath("nice"); err == nil {
		program, arguments = nice, append([]string{"-n", "19", program}, arguments...)
	}
	return exec.Command(program, arguments...)
}

// runIn runs a program in a folder; out gets what it prints.
func runIn(out io.Writer, folder, program string, arguments ...string) error {
	command := exec.Command(program, arguments...)
	command.Dir, command.Env = folder, asShipped()
	return run(out, command)
}

func run(out io.Writer, command *exec.Cmd) error {
	command.Stdout, command.Stderr = out, out
	if err := command.Run(); err != nil {
		return fmt.Errorf("running %s: %w", strings.Join(append([]string{filepath.Base(command.Path)}, command.Args[1:]...), " "), err)
	}
	return nil
}
