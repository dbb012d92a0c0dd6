package querytest

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// document is what a server says of itself.
type document struct{ *openapi3.T }

func readDocument(t testing.TB, base string) *document {
	t.Helper()
	response, err := http.Get(base + "/openapi.json")
	must(t, err)
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	must(t, err)
	doc, err := openapi3.NewLoader().LoadFromData(content)
	must(t, err)
	if err := doc.Validate(context.Background(), openapi3.EnableExamplesValidation()); err != nil {
		t.Fatalf("the document is not valid: %v", err)
	}
	return &document{doc}
}

// pattern is the path of the document that a request's path goes to: fixed words come before parameters.
func (d *document) pattern(path string) string {
	words := strings.Split(path, "/")
	best, fixed := "", -1
	for pattern := range d.Paths.Map() {
		parts := strings.Split(pattern, "/")
		if len(parts) != len(words) {
			continue
		}
		same, fits := 0, true
		for i, part := range parts {
			switch {
			case part == words[i]:
				same++
			case !strings.HasPrefix(part, "{"):
				fits = false
			}
		}
		if fits && same > fixed {
			best, fixed = pattern, same
		}
	}
	return best
}

// check holds what a path answers against the document. A path that it does not know must answer 404.
func (d *document) check(t testing.TB, base, path string) {
	t.Helper()
	response, err := http.Get(base + path)
	must(t, err)
	d.hold(t, path, response, func(p *openapi3.PathItem) *openapi3.Operation { return p.Get })
}

// checkPost does so for a POST.
func (d *document) checkPost(t testing.TB, base, path, body string) {
	t.Helper()
	response, err := http.Post(base+path, "application/json", strings.NewReader(body))
	must(t, err)
	d.hold(t, path, response, func(p *openapi3.PathItem) *openapi3.Operation { return p.Post })
}

func (d *document) hold(t testing.TB, path string, response *http.Response, operation func(*openapi3.PathItem) *openapi3.Operation) {
	t.Helper()
	defer response.Body.Close()
	bare, _, _ := strings.Cut(path, "?")
	pattern := d.pattern(bare)
	if pattern == "" {
		if response.StatusCode != http.StatusNotFound {
			t.Errorf("%s answers %d, and the document does not know it", path, response.StatusCode)
		}
		return
	}
	var body any
	must(t, json.NewDecoder(response.Body).Decode(&body))
	answer := operation(d.Paths.Value(pattern)).Responses.Value(strconv.Itoa(response.StatusCode))
	if answer == nil {
		t.Errorf("%s answers %d, which the document does not know", path, response.StatusCode)
		return
	}
	if err := answer.Value.Content.Get("application/json").Schema.Value.VisitJSON(body, openapi3.MultiErrors()); err != nil {
		t.Errorf("%s answers %d against the document: %v", path, response.StatusCode, err)
	}
}
