package deploy

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// Every answer of every operation, of a success and of each misuse, in both views, is one that the server's own document
// describes.
func TestDemoKeepsItsDocument(t *testing.T) {
	d := filledDemo(t)
	document := d.document(t)
	statuses := map[int]int{}
	for _, path := range slices.Sorted(maps.Keys(document.Paths.Map())) {
		for method, operation := range document.Paths.Value(path).Operations() {
			if !strings.HasPrefix(path, "/api/") {
				continue
			}
			for _, c := range callsOf(path, operation) {
				for _, view := range []string{"reference", "tool"} {
					status := d.hold(t, operation, method, withQuery(c.path, "view", view), c.body)
					statuses[status]++
					if c.succeeds && status != http.StatusOK && status != http.StatusServiceUnavailable {
						t.Errorf("%s %s: got %d, want 200", method, c.path, status)
					}
				}
			}
		}
	}
	t.Logf("answers by status: %v", statuses)
	if statuses[200] < 80 || statuses[400] < 100 || statuses[404] < 20 {
		t.Errorf("answers by status: %v, want at least 80 successes, 100 refusals and 20 that find nothing", statuses)
	}
}

// document is the server's own.
func (d *demo) document(t *testing.T) *openapi3.T {
	t.Helper()
	response, err := d.do(http.MethodGet, "/openapi.json", "")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	document, err := openapi3.NewLoader().LoadFromData(content)
	if err != nil {
		t.Fatalf("loading the document: %v", err)
	}
	if err := document.Validate(context.Background(), openapi3.EnableExamplesValidation()); err != nil {
		t.Fatalf("the document is not valid: %v", err)
	}
	return document
}

// hold makes a call and holds its answer against the document.
func (d *demo) hold(t *testing.T, operation *openapi3.Operation, method, path, body string) (status int) {
	t.Helper()
	response, err := d.do(method, path, body)
	if err != nil {
		t.Errorf("%s %s: %v", method, path, err)
		return 0
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Errorf("%s %s: %v", method, path, err)
	}
	described := operation.Responses.Value(strconv.Itoa(response.StatusCode))
	if described == nil {
		t.Errorf("%s %.200s %.100s answers %d, which the document does not know: %.300s", method, path, body, response.StatusCode, content)
		return response.StatusCode
	}
	kind, _, _ := strings.Cut(response.Header.Get("Content-Type"), ";")
	media := described.Value.Content.Get(kind)
	if media == nil {
		t.Errorf("%s %.200s answers %d as %q, which the document does not know", method, path, response.StatusCode, kind)
		return response.StatusCode
	}
	var answer any
	if err := json.NewDecoder(bytes.NewReader(content)).Decode(&answer); err != nil {
		t.Errorf("%s %.200s answers %d with what is no JSON: %v", method, path, response.StatusCode, err)
		return response.StatusCode
	}
	if err := media.Schema.Value.VisitJSON(answer, openapi3.MultiErrors()); err != nil {
		t.Errorf("%s %.200s answers %d against the document: %.1000s", method, path, response.StatusCode, err.Error())
	}
	return response.StatusCode
}

// call is one request of an operation.
type call struct {
	path, body string
	succeeds   bool
}

// callsOf are a call that succeeds, one with every parameter, and one with each parameter spoilt in turn.
func callsOf(path string, operation *openapi3.Operation) []call {
	good := map[string]string{}
	var all []*openapi3.Parameter
	for _, p := range operation.Parameters {
		if p.Value.Name == "view" {
			continue
		}
		all = append(all, p.Value)
		if p.Value.Required {
			good[p.Value.Name] = exampleOf(p.Value)
		}
	}
	maps.Copy(good, oneOfNeeded[path])
	body := ""
	if operation.RequestBody != nil {
		body = exampleBody(operation.RequestBody.Value.Content.Get("application/json").Schema.Value)
	}
	calls := []call{{pathWith(path, all, good), body, true}}
	for _, p := range all {
		for _, wrong := range spoilt(p) {
			values := maps.Clone(good)
			values[p.Name] = wrong
			calls = append(calls, call{path: pathWith(path, all, values), body: body})
		}
	}
	if body != "" {
		for _, wrong := range []string{"{}", "[]", "null", "1", "{", `{"symbol":7}`, `{"symbols":[]}`, `{"symbols":[1]}`, `{"symbol":"btc","source":{}}`, strings.Repeat("[", 10_000)} {
			calls = append(calls, call{path: pathWith(path, all, good), body: wrong})
		}
	}
	return calls
}

// oneOfNeeded is what an operation needs beside what is required, since one of several parameters has to be given.
var oneOfNeeded = map[string]map[string]string{"/api/v1/rates/history": {"coin": "ethereum"}}

func exampleOf(p *openapi3.Parameter) string {
	example := p.Example
	if example == nil && p.Schema != nil {
		switch schema := p.Schema.Value; {
		case schema.Example != nil:
			example = schema.Example
		case len(schema.Enum) > 0:
			example = schema.Enum[0]
		}
	}
	if list, ok := example.([]any); ok {
		return strings.ReplaceAll(strings.Trim(fmt.Sprint(list), "[]"), " ", ",")
	}
	return fmt.Sprint(example)
}

func exampleBody(schema *openapi3.Schema) string {
	fields := map[string]any{}
	for _, name := range schema.Required {
		switch field := schema.Properties[name].Value; {
		case field.Example != nil:
			fields[name] = field.Example
		case field.Type.Is("array"):
			fields[name] = []string{"btc", "no-such-symbol"}
		default:
			fields[name] = "btc"
		}
	}
	text, err := json.Marshal(fields)
	if err != nil {
		panic(err) // texts and lists of texts always encode
	}
	return string(text)
}

// spoilt are values that a parameter must refuse, or that name nothing.
func spoilt(p *openapi3.Parameter) []string {
	wrong := []string{"no-such-thing", strings.Repeat("x", 300), "\u0000", "' OR 1=1 --", "../../etc/passwd"}
	if p.In == "query" {
		wrong = append(wrong, "", "-1", "0", "99999999999999999999", "1e400", "true,false", "2026-13-45", strings.Repeat("a,", 2000))
	}
	return wrong
}

// pathWith fills in the parameters that have a value.
func pathWith(path string, all []*openapi3.Parameter, values map[string]string) string {
	query := url.Values{}
	for _, p := range all {
		value, ok := values[p.Name]
		switch {
		case p.In == "path":
			path = strings.ReplaceAll(path, "{"+p.Name+"}", url.PathEscape(value))
		case ok:
			query.Set(p.Name, value)
		}
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return path
}
