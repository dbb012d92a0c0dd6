package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// A client that knows the interface alone gets an answer from every operation, with what is documented in it.
func TestDemoAnswersEveryOperation(t *testing.T) {
	d := filledDemo(t)
	text, err := os.ReadFile("testdata/operations.txt")
	if err != nil {
		t.Fatal(err)
	}
	operations, operation, deadline := 0, "", time.Now().Add(demoPatience)
	for _, block := range strings.Split(string(text), "\n") {
		line := strings.TrimSpace(block)
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case !strings.HasPrefix(block, " "):
			operations++
			operation = line
		default:
			view := "reference"
			if rest, ok := strings.CutPrefix(line, "tool "); ok {
				view, line = "tool", rest
			}
			d.holdsFields(t, operation, view, strings.Fields(line), deadline)
		}
	}
	if operations != 57+3 {
		t.Errorf("the table has %d operations, want 57 of the interface and 3 of ours", operations)
	}
}

// holdsFields asks until the answer holds all fields: what is folded by minutes comes some minutes after the start.
func (d *demo) holdsFields(t *testing.T, operation, view string, fields []string, deadline time.Time) {
	t.Helper()
	method, rest, _ := strings.Cut(operation, " ")
	path, body, _ := strings.Cut(rest, " ")
	var lacks []string
	for ; ; time.Sleep(time.Second) {
		response, err := d.do(method, withQuery(path, "view", view), body)
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
			t.Errorf("%s, %s view: the answer lacks %s: %s", operation, view, strings.Join(lacks, ", "), excerpt(answer))
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
