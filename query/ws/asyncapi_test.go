package ws

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/marketlog/marketlog/query"
)

// messageSchemas hold messages against the document. No field is taken that the document does not name, although clients are
// warned to expect further ones: what is sent is described. Safe for concurrent use.
type messageSchemas struct {
	mu      sync.Mutex
	byType  map[string]*jsonschema.Schema
	checked map[string]int
}

func newMessageSchemas(t testing.TB, content []byte) *messageSchemas {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	closeObjects(document)
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("asyncapi.json", document); err != nil {
		t.Fatal(err)
	}
	m := &messageSchemas{byType: map[string]*jsonschema.Schema{}, checked: map[string]int{}}
	for name := range document.(map[string]any)["components"].(map[string]any)["messages"].(map[string]any) {
		if m.byType[name], err = c.Compile("asyncapi.json#/components/messages/" + name + "/payload"); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// closeObjects forbids further fields in all schemas that name some.
func closeObjects(v any) {
	switch v := v.(type) {
	case map[string]any:
		if _, ok := v["properties"].(map[string]any); ok && v["additionalProperties"] == nil {
			v["additionalProperties"] = false
		}
		for _, of := range v {
			closeObjects(of)
		}
	case []any:
		for _, of := range v {
			closeObjects(of)
		}
	}
}

// fault is why a message is not one of those that the document describes.
func (m *messageSchemas) fault(text string) error {
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return fmt.Errorf("%s: %w", text, err)
	}
	kind, _ := value.(map[string]any)["type"].(string)
	m.mu.Lock()
	defer m.mu.Unlock()
	schema := m.byType[kind]
	if schema == nil {
		return fmt.Errorf("the document has no message of the type %q: %s", kind, text)
	}
	m.checked[kind]++
	if err := schema.Validate(value); err != nil {
		return fmt.Errorf("%s is not as the document says: %w", text, err)
	}
	return nil
}

// document reads the stream's description of itself.
func (w *fixture) document() []byte {
	w.t.Helper()
	response, err := http.Get("http://" + w.base + DocumentPath)
	if err != nil {
		w.t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		w.t.Fatalf("got %d %v", response.StatusCode, err)
	}
	return content
}

// documented is a fixture with all channels that a test can feed.
func documented(t *testing.T) *fixture {
	coins := scriptCoins(t)
	candles, market, yields := newCandleLog(coins), &marketLog{name: "market"}, &yieldLog{coins: coins}
	return newFixture(t, func(s *setup) {
		s.coins, s.auth, s.channels = coins, query.AuthOpen, slices.Concat(candles.channels(), market.channels(), yields.channels(), pegChannels(coins))
	})
}

// All that the document refers to is in it, every field and every message says what it is, and its examples are of the messages
// that they stand by.
func TestTheDocumentIsWhole(t *testing.T) {
	content := documented(t).document()
	schemas := newMessageSchemas(t, content)
	var d struct {
		AsyncAPI string
		Info     struct{ Description string }
		Channels map[string]struct {
			Address, Description string
			Messages             map[string]ref
			Closings             []closing `json:"x-close-codes"`
		}
		Operations map[string]struct {
			Action, Summary, Description string
			Messages                     []ref
		}
		Components struct {
			Messages map[string]struct {
				Summary  string
				Examples []struct{ Payload json.RawMessage }
			}
		}
	}
	if err := json.Unmarshal(content, &d); err != nil {
		t.Fatal(err)
	}
	var whole any
	if err := json.Unmarshal(content, &whole); err != nil {
		t.Fatal(err)
	}
	if d.AsyncAPI != "3.0.0" || len(d.Channels) != 3 || d.Channels[transportSocket].Address != Path || d.Channels[transportEvents].Address != LinesPath {
		t.Errorf("got %s with %d channels", d.AsyncAPI, len(d.Channels))
	}
	for _, to := range references(whole, nil) {
		if !found(whole, to) {
			t.Errorf("%s leads nowhere", to)
		}
	}
	for name, message := range d.Components.Messages {
		if message.Summary == "" || len(message.Examples) == 0 {
			t.Errorf("%s: has no summary, or no example", name)
		}
		for _, example := range message.Examples {
			if err := schemas.fault(string(example.Payload)); err != nil {
				t.Errorf("the example of %s: %v", name, err)
			}
		}
	}
	// Actions are of the server, which the document says where they are read.
	if !strings.Contains(d.Info.Description, "`send` is what the server sends and a client reads") {
		t.Errorf("the document does not say whose actions it has: %s", d.Info.Description)
	}
	whose := map[string]string{"send": "a client reads them", "receive": "A client sends this message"}
	for name, o := range d.Operations {
		if o.Summary == "" || len(o.Messages) == 0 || whose[o.Action] == "" || !strings.Contains(o.Description, whose[o.Action]) {
			t.Errorf("%s: got %+v", name, o)
		}
	}
	for _, sent := range requests {
		if d.Operations["receive"+capital(sent.example.Type)].Action == "" {
			t.Errorf("no operation receives %s", sent.example.Type)
		}
	}
	// The guide says the same of codes as the document.
	guide, err := os.ReadFile("../../docs/stream.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(guide), "## Close codes\n\n| code | meaning |\n|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	var want strings.Builder
	for _, c := range d.Channels[transportSocket].Closings {
		fmt.Fprintf(&want, "| %d | %s |\n", c.Code, c.Meaning)
	}
	if table+"\n" != want.String() {
		t.Errorf("docs/stream.md has the codes\n%s\nwant\n%s", table, want.String())
	}
}

// references lists all references within a document.
func references(v any, list []string) []string {
	switch v := v.(type) {
	case map[string]any:
		if to, ok := v["$ref"].(string); ok {
			list = append(list, to)
		}
		for _, of := range v {
			list = references(of, list)
		}
	case []any:
		for _, of := range v {
			list = references(of, list)
		}
	}
	return list
}

func found(document any, reference string) bool {
	for _, step := range strings.Split(strings.TrimPrefix(reference, "#/"), "/") {
		object, ok := document.(map[string]any)
		if document = object[step]; !ok || document == nil {
			return false
		}
	}
	return true
}

// A message that clients may send is what the hub takes.
func TestDocumentedRequestsAreTaken(t *testing.T) {
	w := documented(t)
	w.tick()
	c := w.open(dialing{query: "?snapshot=0"})
	for range 2 {
		if _, err := c.next(); err != nil {
			t.Fatal(err)
		}
	}
	for _, sent := range requests {
		text, err := json.Marshal(sent.example)
		if err != nil {
			t.Fatal(err)
		}
		if sent.example.Type == "resume" { // the example's cursor is not of this log
			text = []byte(`{"type":"resume","id":"c","epoch":"E","seq":1}`)
		}
		if sent.example.Type == "auth" { // it is known already
			continue
		}
		c.send(string(text))
		for m := (struct{ Type, ID string }{}); m.ID != sent.example.ID; {
			answer, err := c.next()
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal([]byte(answer), &m); err != nil {
				t.Fatal(err)
			}
			if m.ID == sent.example.ID && !slices.Contains(sent.answers, m.Type) {
				t.Errorf("%s is answered by %s, want one of %v", sent.example.Type, answer, sent.answers)
			}
		}
	}
}

// missing are the types of messages of the server that were not seen.
func (m *messageSchemas) missing() (kinds []string) {
	asked := map[string]bool{}
	for _, r := range requests {
		asked[r.example.Type] = true
	}
	for _, kind := range slices.Sorted(maps.Keys(m.byType)) {
		if !asked[kind] && m.checked[kind] == 0 {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}
