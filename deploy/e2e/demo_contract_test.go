package e2e

import (
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
