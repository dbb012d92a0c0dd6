package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	// samplesInPython runs the samples of a file, each as a program of its own, and names those that fail or print nothing.
	samplesInPython = `import contextlib, io, json, sys, traceback
failed = 0
for name, source in json.load(open(sys.argv[1])).items():
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(source, name, "exec"), {})
        assert printed.getvalue().strip(), "it prints nothing"
    except Exception:
        failed += 1
        print(name, traceback.format_exc())
print(failed, "samples fail")
`
	samplesInTypeScript = `import { readdirSync } from "node:fs"
const print = console.log
let failed = 0
for (const file of readdirSync(process.argv[2]).filter((f) => f.startsWith("sample-"))) {
  let printed = 0
  console.log = () => printed++
  try {
    await import(process.argv[2] + "/" + file)
    if (!printed) throw new Error("it prints nothing")
  } catch (error) {
    failed++
    print(file, error)
  }
}
print(failed, "samples fail")
`
	samplesInGo = `package main

import (
	"context"
	"fmt"
	"os"

	marketlog "github.com/marketlog/marketlog/query/clients/go"
)

func main() {
	ctx, failed := context.Background(), 0
	for name, sample := range samples {
		if err := sample(ctx); err != nil {
			failed++
			fmt.Fprintln(os.Stderr, name, err)
		}
	}
	fmt.Fprintln(os.Stderr, failed, "samples fail")
}

var samples = map[string]func(context.Context) error{
`
	samplesInShell = `failed=0
sample() { if ! printed=$(sh "$1" 2>&1) || [ -z "$printed" ]; then failed=$((failed + 1)); echo "$1: $printed"; fi; }
for file in sample-*.sh; do sample "$file"; done
echo "$failed samples fail"
`
)

type codeSample struct{ Label, Source string }

// sampled are the samples of all operations in one language, which are in the document.
func sampled(t *testing.T, d *demo, label string) map[string]string {
	t.Helper()
	var document struct {
		Paths map[string]map[string]struct {
			OperationID string
			Samples     []codeSample `json:"x-codeSamples"`
		}
	}
	if err := json.Unmarshal(d.text(t, "/openapi.json", "application/json"), &document); err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for path, operations := range document.Paths {
		for _, o := range operations {
			if !strings.HasPrefix(path, "/api/") {
				continue
			}
			at := slices.IndexFunc(o.Samples, func(s codeSample) bool { return s.Label == label })
			if at < 0 {
				t.Errorf("%s has no sample in %s: `make clients` writes it", o.OperationID, label)
				continue
			}
			found[o.OperationID] = o.Samples[at].Source
		}
	}
	return found
}

// runSamples runs the samples of the document in the language of a library, or in the shell.
func (d *demo) runSamples(t *testing.T, library clientLibrary) {
	label, folder := map[string]string{"python": "Python", "ts": "TypeScript", "go": "Go", "sh": "curl"}[library.language], t.TempDir()
	found := sampled(t, d, label)
	write := func(name, text string) string {
		file := filepath.Join(folder, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	var program []string
	switch library.language {
	case "python":
		all, err := json.Marshal(found)
		if err != nil {
			t.Fatal(err)
		}
		program = slices.Concat(library.example, []string{write("run.py", samplesInPython), write("samples.json", string(all))})
	case "ts":
		if folder = filepath.Join(library.home, "samples"); os.Mkdir(folder, 0o700) != nil {
			t.Fatalf("%s cannot be made", folder)
		}
		for name, text := range found {
			write("sample-"+name+".ts", text)
		}
		program = slices.Concat(library.example, []string{write("run.mjs", samplesInTypeScript), folder})
	case "go":
		var text strings.Builder
		text.WriteString(samplesInGo)
		for _, name := range slices.Sorted(maps.Keys(found)) {
			fmt.Fprintf(&text, "\t%q: func(ctx context.Context) error {\n%s\n\t\treturn nil\n\t},\n", name, found[name])
		}
		text.WriteString("}\n")
		folder = library.home
		if err := os.Mkdir(filepath.Join(folder, "samples"), 0o700); err != nil {
			t.Fatal(err)
		}
		write("samples/main.go", text.String())
		program = slices.Concat(library.example, []string{"./samples"})
	default:
		for name, text := range found {
			write("sample-"+name+".sh", text)
		}
		program = []string{"sh", write("run", samplesInShell)}
	}
	key := d.ownKey(t)
	command := library.command(t.Context(), program, nil, "MARKETLOG_URL="+d.base, "MARKETLOG_API_KEY="+key)
	command.Dir = folder
	out, err := command.CombinedOutput()
	if text := strings.ReplaceAll(string(out), key, "KEY"); err != nil || !strings.Contains(text[max(0, len(text)-1000):], "\n0 samples fail\n") && !strings.HasPrefix(text, "0 samples fail\n") {
		t.Errorf("%d samples in %s: %v\n%s", len(found), label, err, text[max(0, len(text)-4000):])
	}
}
