package e2e

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/marketlog/marketlog/query/querytest"
	"github.com/marketlog/marketlog/query/ws"
)

// Every answer of every operation, of a success and of each misuse, in both views, is one that the server's own document
// describes.
func TestDemoKeepsItsDocument(t *testing.T) {
	d := filledDemo(t)
	document := querytest.ReadDocument(t, d.base)
	statuses := map[int]int{}
	for _, path := range slices.Sorted(maps.Keys(document.Paths.Map())) {
		for method, operation := range document.Paths.Value(path).Operations() {
			if !strings.HasPrefix(path, "/api/") || path == ws.LinesPath { // whose answer does not end
				continue
			}
			for _, c := range querytest.Calls(path, operation) {
				for _, view := range []string{"reference", "tool"} {
					status := d.hold(t, operation, method, withQuery(c.Path, "view", view), c.Body)
					statuses[status]++
					if c.Succeeds && status != http.StatusOK && status != http.StatusServiceUnavailable {
						t.Errorf("%s %s: got %d, want 200", method, c.Path, status)
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

// binaryForms are the forms of answers that no document can show.
var binaryForms = map[string]bool{"application/vnd.apache.arrow.stream": true, "application/vnd.apache.parquet": true}

// The server's document describes every operation, every parameter and every field of its answers, and shows an answer of each operation.
func TestDemoDescribesEverything(t *testing.T) {
	d := filledDemo(t)
	document := querytest.ReadDocument(t, d.base)
	var lacking []string
	for path, item := range document.Paths.Map() {
		for method, operation := range item.Operations() {
			if operation.Summary == "" || operation.Description == "" {
				lacking = append(lacking, method+" "+path)
			}
			for _, p := range operation.Parameters {
				if p.Value.Description == "" {
					lacking = append(lacking, method+" "+path+": parameter "+p.Value.Name)
				}
			}
			for media, answer := range operation.Responses.Value("200").Value.Content {
				if answer.Example == nil && !binaryForms[media] {
					lacking = append(lacking, method+" "+path+": example of "+media)
				}
			}
		}
	}
	fields := 0
	for name, schema := range d.schemas(t) {
		for field, property := range schema.Properties {
			if fields++; property.Description == "" {
				lacking = append(lacking, name+"."+field)
			}
		}
	}
	slices.Sort(lacking)
	if len(lacking) > 0 || fields < 1000 {
		t.Errorf("%d of %d fields, operations and parameters have no description: %s", len(lacking), fields, strings.Join(lacking, ", "))
	}
}

// writtenSchema is a schema as the document has it: a reader of references would give the description of what a field refers to.
type writtenSchema struct {
	Properties map[string]struct{ Description string }
}

func (d *demo) schemas(t *testing.T) map[string]writtenSchema {
	t.Helper()
	response, err := d.do(http.MethodGet, "/openapi.json", "")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var document struct {
		Components struct{ Schemas map[string]writtenSchema }
	}
	if err := json.NewDecoder(response.Body).Decode(&document); err != nil {
		t.Fatal(err)
	}
	return document.Components.Schemas
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
	if err := querytest.Fault(operation, response, content); err != nil {
		t.Errorf("%s %.200s %.100s: %v", method, path, body, err)
	}
	return response.StatusCode
}
