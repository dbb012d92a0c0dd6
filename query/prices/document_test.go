package prices_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// TestAnswersMatchTheDocument holds every answer of every script against /openapi.json.
func TestAnswersMatchTheDocument(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, file := range files {
		w := newWorld(t)
		doc := document(t, w)
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
				check(t, doc, w.base, path)
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

func document(t *testing.T, w *world) *openapi3.T {
	t.Helper()
	response, err := http.Get(w.base + "/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := openapi3.NewLoader().LoadFromData(content)
	if err != nil {
		t.Fatalf("loading the document: %v", err)
	}
	if err := doc.Validate(context.Background(), openapi3.EnableExamplesValidation()); err != nil {
		t.Fatalf("the document is not valid: %v", err)
	}
	return doc
}

func check(t *testing.T, doc *openapi3.T, base, path string) {
	t.Helper()
	response, err := http.Get(base + path)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var body any
	if err := json.NewDecoder(response.Body).Decode(&body); err != nil {
		t.Fatal(err)
	}
	bare, _, _ := strings.Cut(path, "?")
	pattern := bare
	switch words := strings.Split(strings.TrimPrefix(bare, "/api/v1/prices"), "/"); {
	case len(words) == 3:
		pattern = "/api/v1/prices/{symbol}/explain"
	case len(words) == 2 && words[1] != "summary":
		pattern = "/api/v1/prices/{symbol}"
	}
	answer := doc.Paths.Value(pattern).Get.Responses.Value(strconv.Itoa(response.StatusCode))
	if answer == nil {
		t.Errorf("%s answers %d, which the document does not know", path, response.StatusCode)
		return
	}
	if err := answer.Value.Content.Get("application/json").Schema.Value.VisitJSON(body, openapi3.MultiErrors()); err != nil {
		t.Errorf("%s answers %d against the document: %v", path, response.StatusCode, err)
	}
}
