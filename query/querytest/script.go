package querytest

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/query"
)

// Update means that what tests compare with is written again, by the flag -update.
var Update = flag.Bool("update", false, "write the answers of scripts anew, and what else tests compare with")

// Run runs every script of testdata. Open makes what one script is run on, a function that does one
// line. What a line answers is compared with what follows it, between two lines of dashes; lines that
// set something up answer nothing.
func Run(t *testing.T, open func(t *testing.T) func(line string) string) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) { run(t, file, open(t)) })
	}
}

func run(t *testing.T, file string, do func(line string) string) {
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var rewritten strings.Builder
	lines := strings.Split(strings.TrimSuffix(string(content), "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		rewritten.WriteString(line + "\n")
		if line == "" || line[0] == '#' {
			continue
		}
		got := do(line)
		var want strings.Builder
		if i+1 < len(lines) && lines[i+1] == "----" {
			for i += 2; i < len(lines) && lines[i] != "----"; i++ {
				want.WriteString(lines[i] + "\n")
			}
		}
		if got != "" {
			rewritten.WriteString("----\n" + got + "----\n")
		}
		if !*Update && got != want.String() {
			t.Errorf("%s, %q:\ngot:\n%s\nwant:\n%s", file, line, got, want.String())
		}
	}
	if *Update {
		if err := os.WriteFile(file, []byte(rewritten.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// Get answers what a path of a server does: the status, the headers that readers rely on, and the
// body with its points one a line. Ids of requests are left out.
func Get(t testing.TB, base, path string) string {
	t.Helper()
	response, err := http.Get(base + path)
	must(t, err)
	return written(t, response)
}

// Post answers as Get does what a path of a server answers to a JSON body.
func Post(t testing.TB, base, path, body string) string {
	t.Helper()
	response, err := http.Post(base+path, "application/json", strings.NewReader(body))
	must(t, err)
	return written(t, response)
}

func written(t testing.TB, response *http.Response) string {
	t.Helper()
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	must(t, err)
	var out bytes.Buffer
	fmt.Fprintf(&out, "%d %s", response.StatusCode, response.Header.Get("Cache-Control"))
	if source := response.Header.Get("X-Data-Source"); source != "" {
		fmt.Fprintf(&out, " [%s]", source)
	}
	out.WriteByte('\n')
	if response.StatusCode >= 400 {
		var failed query.ErrorBody
		must(t, json.Unmarshal(body, &failed))
		failed.Error.RequestID = ""
		body, err = json.Marshal(failed)
		must(t, err)
	}
	must(t, json.Indent(&out, body, "", "  "))
	out.WriteByte('\n')
	return onePoint.ReplaceAllStringFunc(out.String(), func(point string) string {
		return spaces.ReplaceAllString(point, " ")
	})
}

// A point takes one line of a script.
var (
	onePoint = regexp.MustCompile(`\{\s+"timestamp": [^{}]*"(?:value|complete)"[^{}]*\}|\[\s+[0-9]+,\s+-?[0-9.]+\s+\]`)
	spaces   = regexp.MustCompile(`\s+`)
)

// Time reads a word of a script, RFC 3339.
func Time(t testing.TB, word string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, word)
	must(t, err)
	return at
}

// Number reads a word of a script.
func Number(t testing.TB, word string) float64 {
	t.Helper()
	n, err := strconv.ParseFloat(word, 64)
	must(t, err)
	return n
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
