package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/query/querytest"
	"github.com/marketlog/marketlog/query/ws"
)

// What the specification does not show is answered too: every operation of the server's document is in one of the two tables.
func TestDemoAnswersEveryOperation(t *testing.T) {
	d := filledDemo(t)
	text, err := os.ReadFile("testdata/answers.txt")
	if err != nil {
		t.Fatal(err)
	}
	operation, deadline := "", time.Now().Add(demoPatience)
	walked := map[string]bool{"GET " + ws.LinesPath: true} // its answer does not end: query/ws tests it
	declared := declaredOperations(t, d)
	for _, o := range readSpecification(t).Operations {
		walked[o.Method+" "+o.Path] = len(o.Response) > 0
	}
	for _, block := range strings.Split(string(text), "\n") {
		line := strings.TrimSpace(block)
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case !strings.HasPrefix(block, " "):
			operation = line
			method, rest, _ := strings.Cut(operation, " ")
			path := strings.FieldsFunc(rest, func(r rune) bool { return r == ' ' || r == '?' })[0]
			as := declaredAs(declared, method+" "+path)
			if as == "" {
				t.Errorf("%s is in the table and not in the server's document", operation)
			}
			walked[as] = true
		default:
			d.holdsFields(t, operation, strings.Fields(line), deadline)
		}
	}
	for name := range declared {
		if !walked[name] {
			t.Errorf("%s is in the server's document and in no table, or its answer is in none", name)
		}
	}
}

// declaredOperations are those of the server's document, by method and path, with what their paths match.
func declaredOperations(t *testing.T, d *demo) map[string]*regexp.Regexp {
	t.Helper()
	parameter := regexp.MustCompile(`\\\{[^/]*\\\}`)
	declared := map[string]*regexp.Regexp{}
	for path, item := range querytest.ReadDocument(t, d.base).Paths.Map() {
		if !strings.HasPrefix(path, "/api/") {
			continue
		}
		for method := range item.Operations() {
			name := method + " " + path
			declared[name] = regexp.MustCompile("^" + parameter.ReplaceAllString(regexp.QuoteMeta(name), "[^/]+") + "$")
		}
	}
	return declared
}

// declaredAs finds the operation that a request is answered by: as in the server, one without parameters comes first.
func declaredAs(declared map[string]*regexp.Regexp, request string) string {
	found := ""
	for name, matches := range declared {
		if matches.MatchString(request) && (found == "" || strings.Count(name, "{") < strings.Count(found, "{")) {
			found = name
		}
	}
	return found
}

// holdsFields asks until the answer holds all fields: what is folded by minutes comes some minutes after the start.
func (d *demo) holdsFields(t *testing.T, operation string, fields []string, deadline time.Time) {
	t.Helper()
	method, rest, _ := strings.Cut(operation, " ")
	path, body, _ := strings.Cut(rest, " ")
	var lacks []string
	for ; ; time.Sleep(time.Second) {
		response, err := d.do(method, path, body)
		if err != nil {
			t.Fatalf("%s: %v", operation, err)
		}
		var answer any
		err = json.NewDecoder(response.Body).Decode(&answer)
		response.Body.Close()
		if lacks = nil; err != nil || response.StatusCode != http.StatusOK {
			lacks = []string{fmt.Sprintf("status %d, %v", response.StatusCode, err)}
		} else {
			for _, field := range fields {
				if !holdsField(answer, field) {
					lacks = append(lacks, field)
				}
			}
		}
		if len(lacks) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("%s: the answer lacks %s: %s", operation, strings.Join(lacks, ", "), excerpt(answer))
			return
		}
	}
}

// holdsField follows a path of members; [] is a list that is not empty, whose rows all hold the rest, {} a map that is not.
func holdsField(value any, path string) bool {
	name, rest, more := strings.Cut(path, ".")
	bare := strings.TrimSuffix(strings.TrimSuffix(name, "[]"), "{}")
	object, _ := value.(map[string]any)
	member, ok := object[bare]
	if !ok {
		return false
	}
	switch {
	case strings.HasSuffix(name, "{}"):
		entries, _ := member.(map[string]any)
		return len(entries) > 0
	case strings.HasSuffix(name, "[]"):
		rows, _ := member.([]any)
		for _, row := range rows {
			if more && !holdsField(row, rest) {
				return false
			}
		}
		return len(rows) > 0
	case more:
		return holdsField(member, rest)
	}
	return true
}
