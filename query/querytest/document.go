package querytest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/marketlog/marketlog/query"
)

// Document is what a server reports of itself.
type Document struct{ *openapi3.T }

// ReadDocument reads /openapi.json, which must be valid, with its examples.
func ReadDocument(t testing.TB, base string) *Document {
	t.Helper()
	response, err := http.Get(base + "/openapi.json")
	must(t, err)
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	must(t, err)
	doc, err := openapi3.NewLoader().LoadFromData(content)
	if err != nil {
		t.Fatalf("loading the document: %v", err)
	}
	if err := doc.Validate(context.Background(), openapi3.EnableExamplesValidation()); err != nil {
		t.Fatalf("the document is not valid: %v", err)
	}
	return &Document{doc}
}

// Operation is the one that a request goes to, nil where the document knows none: fixed words come before parameters,
// and a slash at the end is not one.
func (d *Document) Operation(method, path string) *openapi3.Operation {
	path, _, _ = strings.Cut(path, "?")
	words := strings.Split(strings.TrimSuffix(path, "/"), "/")
	var best *openapi3.PathItem
	fixed := -1
	for pattern, item := range d.Paths.Map() {
		parts := strings.Split(pattern, "/")
		if len(parts) != len(words) && (len(parts) > len(words) || !restOfPath(item.GetOperation(method))) {
			continue
		}
		same, fits := 0, true
		for i, part := range parts {
			switch {
			case part == words[i]:
				same++
			case !strings.HasPrefix(part, "{") || words[i] == "":
				fits = false
			}
		}
		if fits && same > fixed {
			best, fixed = item, same
		}
	}
	if best == nil {
		return nil
	}
	return best.GetOperation(method)
}

// restOfPath reports whether the last parameter of an operation's path may have slashes.
func restOfPath(operation *openapi3.Operation) bool {
	return operation != nil && slices.ContainsFunc(operation.Parameters, func(p *openapi3.ParameterRef) bool {
		return p.Value.Extensions[query.RestExtension] == true
	})
}

// Fault reports how an answer is not one that the document describes for an operation; nil where it is one.
func Fault(operation *openapi3.Operation, response *http.Response, body []byte) error {
	described := operation.Responses.Value(strconv.Itoa(response.StatusCode))
	if described == nil {
		return fmt.Errorf("the document does not know the status %d: %.300s", response.StatusCode, body)
	}
	if len(described.Value.Content) == 0 {
		if len(body) > 0 {
			return fmt.Errorf("the document knows no body of the status %d: %.300s", response.StatusCode, body)
		}
		return nil
	}
	kind, _, _ := strings.Cut(response.Header.Get("Content-Type"), ";")
	media := described.Value.Content.Get(kind)
	if media == nil {
		return fmt.Errorf("the document does not know the status %d as %q", response.StatusCode, kind)
	}
	var answer any
	decoder := json.NewDecoder(bytes.NewReader(body))
	if err := decoder.Decode(&answer); err != nil {
		return fmt.Errorf("the status %d comes with what is no JSON: %w: %.300s", response.StatusCode, err, body)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("the status %d comes with more than one value: %.300s", response.StatusCode, body)
	}
	if err := media.Schema.Value.VisitJSON(answer, openapi3.MultiErrors()); err != nil {
		return fmt.Errorf("the body of the status %d is not as the document says: %.1000s", response.StatusCode, err.Error())
	}
	return nil
}

// check holds what a server answers against its document. A path that it does not know must answer 404.
func (d *Document) check(t testing.TB, method, base, path, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, base+path, strings.NewReader(body))
	must(t, err)
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := http.DefaultClient.Do(request)
	must(t, err)
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	must(t, err)
	operation := d.Operation(method, path)
	if operation == nil {
		if response.StatusCode != http.StatusNotFound {
			t.Errorf("%s answers %d, and the document does not know it", path, response.StatusCode)
		}
		return
	}
	if err := Fault(operation, response, content); err != nil {
		t.Errorf("%s: %v", path, err)
	}
}
