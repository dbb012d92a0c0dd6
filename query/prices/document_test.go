package prices_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/marketlog/marketlog/query/querytest"
)

// TestAnswersMatchTheDocument holds every answer of every script against /openapi.json.
func TestAnswersMatchTheDocument(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, file := range files {
		w := newFixture(t)
		document := querytest.ReadDocument(t, w.base)
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		inAnswer := false
		for line := range strings.Lines(string(content)) {
			line = strings.TrimSpace(line)
			switch path, isGet := strings.CutPrefix(line, "get "); {
			case line == "----":
				inAnswer = !inAnswer
			case inAnswer || line == "" || line[0] == '#':
			case isGet:
				check(t, document, w.base, path)
				checked++
			default:
				w.run(line)
			}
		}
	}
	if checked < 20 {
		t.Errorf("%d answers were checked, want at least 20", checked)
	}
}

func check(t *testing.T, document *querytest.Document, base, path string) {
	t.Helper()
	response, err := http.Get(base + path)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := querytest.Fault(document.Operation(http.MethodGet, path), response, body); err != nil {
		t.Errorf("%s: %v", path, err)
	}
}
