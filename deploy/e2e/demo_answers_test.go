package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/marketlog/marketlog/query/querytest"
	"github.com/marketlog/marketlog/query/ws"
)

// answersFile is what the documents show of the operations' answers.
const answersFile = "../../query/examples/answers.json"

// Every operation that answers JSON shows an answer, of which the demo knows each field still; with -update it is the demo's. That
// examples are as their schemas say is what reading the document tries.
func TestDemoAnswersAsTheDocumentShows(t *testing.T) {
	d := filledDemo(t)
	document := querytest.ReadDocument(t, d.base)
	shown := map[string]json.RawMessage{}
	if *querytest.Update { // of a demo by itself, which has none: one of a time before its log changes nothing else
		out, err := d.command("corrections", "exclude", "poloniex", "ZEC_USDT", "--from", "2026-01-31T12:00:00Z", "--to", "2026-01-31T13:00:00Z",
			"--author", "operator", "--reason", "prices stood still", "--evidence", "https://example.com/incidents/1")
		if err != nil {
			t.Fatalf("excluding: %v\n%s", err, out)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(document.Paths.Map())) {
		for method, operation := range document.Paths.Value(path).Operations() {
			if path == ws.LinesPath {
				maps.Copy(shown, d.streamExamples(t, operation))
				continue
			}
			media := operation.Responses.Value("200").Value.Content.Get("application/json")
			if !strings.HasPrefix(path, "/api/") || media == nil {
				continue
			}
			call := querytest.Calls(path, operation)[0]
			if *querytest.Update {
				shown[operation.OperationID] = d.example(t, media.Schema.Value, method, call)
				if operation.Responses.Value("200").Value.Content["text/csv"] != nil {
					shown[operation.OperationID+" text/csv"] = d.csvExample(t, method, call)
				}
				continue
			}
			if media.Example == nil {
				t.Errorf("%s shows no answer; `go test ./deploy/e2e -run %s -update` asks the demo for it", operation.OperationID, t.Name())
				continue
			}
			for _, field := range undescribed(media.Schema.Value, media.Example, operation.OperationID) {
				t.Errorf("the example of an answer has %s, which its schema does not: `go test ./deploy/e2e -run %s -update` writes it anew", field, t.Name())
			}
		}
	}
	if !*querytest.Update {
		return
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(shown); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(answersFile, text.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// streamExamples are the first messages of the stream in each of its forms, with -update; else the document has to show some.
func (d *demo) streamExamples(t *testing.T, operation *openapi3.Operation) map[string]json.RawMessage {
	t.Helper()
	shown := map[string]json.RawMessage{}
	for media, content := range operation.Responses.Value("200").Value.Content {
		if !*querytest.Update {
			if text, _ := content.Example.(string); !strings.Contains(text, `"type":"price_update"`) {
				t.Errorf("%s shows no messages as %s; `go test ./deploy/e2e -run %s -update` asks the demo for them", operation.OperationID, media, t.Name())
			}
			continue
		}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, d.base+ws.LinesPath+"?symbols=BTC", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+d.key)
		request.Header.Set("Accept", media)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		for lines := bufio.NewScanner(response.Body); lines.Scan(); {
			text.WriteString(lines.Text() + "\n")
			if strings.Contains(lines.Text(), `"type":"price_update"`) {
				break
			}
		}
		response.Body.Close()
		if shown[operation.OperationID+" "+media], err = json.Marshal(text.String()); err != nil {
			t.Fatal(err)
		}
	}
	return shown
}

// csvExample is what the demo answers to a call as comma-separated values, its first lines.
func (d *demo) csvExample(t *testing.T, method string, call querytest.Call) json.RawMessage {
	t.Helper()
	response, err := d.do(method, withQuery(call.Path, "format", "CSVWithNames"), call.Body)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s %s as CSV answers %s, %v: %.300s", method, call.Path, response.Status, err, content)
	}
	lines := strings.SplitAfter(string(content), "\n")
	text, err := json.Marshal(strings.Join(lines[:min(len(lines), listed+1)], ""))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// example is what the demo answers to a call, shortened.
func (d *demo) example(t *testing.T, schema *openapi3.Schema, method string, call querytest.Call) json.RawMessage {
	t.Helper()
	response, err := d.do(method, call.Path, call.Body)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s %s answers %s, %v: %.300s", method, call.Path, response.Status, err, content)
	}
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.UseNumber()
	var answer any
	if err := decoder.Decode(&answer); err != nil {
		t.Fatalf("%s %s: %v", method, call.Path, err)
	}
	text, err := json.Marshal(shortened(schema, answer))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

const (
	// listed are the elements of a list that an example shows, and keyed those of an object with keys of its own.
	listed, keyed = 2, 3
	// paired is how long a list of numbers is a point of a series, which is shown whole.
	paired = 6
)

// shortened keeps the first elements of lists and of objects whose keys no schema names.
func shortened(schema *openapi3.Schema, value any) any {
	switch value := value.(type) {
	case []any:
		if len(value) <= paired && !slices.ContainsFunc(value, func(v any) bool { _, number := v.(json.Number); return !number && v != nil }) {
			return value
		}
		short := value[:min(len(value), listed)]
		for i := range short {
			short[i] = shortened(elementOf(schema), short[i])
		}
		return short
	case map[string]any:
		keys := slices.Sorted(maps.Keys(value))
		if properties(schema) == nil && len(keys) > keyed {
			for _, key := range keys[keyed:] {
				delete(value, key)
			}
		}
		for key, inner := range value {
			value[key] = shortened(fieldOf(schema, key), inner)
		}
	}
	return value
}

// undescribed are the fields of a value that its schema does not name.
func undescribed(schema *openapi3.Schema, value any, at string) (fields []string) {
	switch value := value.(type) {
	case []any:
		for _, inner := range value {
			fields = append(fields, undescribed(elementOf(schema), inner, at+"[]")...)
		}
	case map[string]any:
		known := properties(schema)
		for key, inner := range value {
			if known != nil && !known[key] {
				fields = append(fields, at+"."+key)
			}
			fields = append(fields, undescribed(fieldOf(schema, key), inner, at+"."+key)...)
		}
	}
	slices.Sort(fields)
	return slices.Compact(fields)
}

// forms are a schema and those that it is composed of.
func forms(schema *openapi3.Schema) (all []*openapi3.Schema) {
	if schema == nil {
		return nil
	}
	all = append(all, schema)
	for _, refs := range []openapi3.SchemaRefs{schema.AnyOf, schema.OneOf, schema.AllOf} {
		for _, ref := range refs {
			all = append(all, forms(ref.Value)...)
		}
	}
	return all
}

// properties are the fields that a schema names; nil where any may be.
func properties(schema *openapi3.Schema) map[string]bool {
	var known map[string]bool
	for _, form := range forms(schema) {
		for name := range form.Properties {
			if known == nil {
				known = map[string]bool{}
			}
			known[name] = true
		}
	}
	return known
}

func fieldOf(schema *openapi3.Schema, name string) *openapi3.Schema {
	for _, form := range forms(schema) {
		if field := form.Properties[name]; field != nil {
			return field.Value
		}
	}
	for _, form := range forms(schema) {
		if form.AdditionalProperties.Schema != nil {
			return form.AdditionalProperties.Schema.Value
		}
	}
	return nil
}

func elementOf(schema *openapi3.Schema) *openapi3.Schema {
	for _, form := range forms(schema) {
		if form.Items != nil {
			return form.Items.Value
		}
	}
	return nil
}

var pageData = regexp.MustCompile(`(?s)<script type="application/json" id="data">(.*?)</script>`)

// The page of each operation names the tools, views, channels and commands that there are.
func TestDemoReferenceNamesWhatThereIs(t *testing.T) {
	d := runningDemo(t)
	var page struct {
		Groups []struct {
			Operations []struct {
				ID      string
				Related struct {
					Tool                      string
					Views, Channels, Commands []string
				}
			}
		}
	}
	found := pageData.FindSubmatch(d.text(t, "/docs/api", "text/html"))
	if found == nil {
		t.Fatal("the page has no data")
	}
	if err := json.Unmarshal(found[1], &page); err != nil {
		t.Fatal(err)
	}
	views := map[string]bool{}
	for _, r := range d.query(t, "SELECT table_name AS name FROM information_schema.views WHERE table_schema = 'default'") {
		name, _ := r["name"].(string)
		views[name] = true
	}
	streamed, document := d.text(t, "/asyncapi.json", "application/json"), d.text(t, "/openapi.json", "application/json")
	commands, operations := map[string]bool{}, 0
	for _, group := range page.Groups {
		for _, o := range group.Operations {
			operations++
			of := o.Related
			if len(of.Views)+len(of.Channels)+len(of.Commands) == 0 {
				t.Errorf("%s names nothing: add it to query/pages/related.go", o.ID)
			}
			if of.Tool != "" && !bytes.Contains(document, []byte(`"x-mcp-tool":"`+of.Tool+`"`)) {
				t.Errorf("%s names the tool %s, which is none", o.ID, of.Tool)
			}
			for _, view := range of.Views {
				if !views[view] {
					t.Errorf("%s names the view %s, which is none", o.ID, view)
				}
			}
			for _, channel := range of.Channels {
				if !bytes.Contains(streamed, []byte(`"`+channel+`"`)) {
					t.Errorf("%s names the channel %s, which is none", o.ID, channel)
				}
			}
			for _, command := range of.Commands {
				commands[command] = true
			}
		}
	}
	if operations < 60 {
		t.Errorf("the page has %d operations", operations)
	}
	for command := range commands {
		out, err := exec.Command(d.binary, command, "--help").CombinedOutput()
		if err != nil || !bytes.Contains(out, []byte("marketlog "+command)) {
			t.Errorf("the command %s is none: %v\n%.500s", command, err, out)
		}
	}
}

// text is what the demo answers who takes one kind of it.
func (d *demo) text(t *testing.T, path, kind string) []byte {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, d.base+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", kind)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s answers %s, %v", path, response.Status, err)
	}
	return text
}
