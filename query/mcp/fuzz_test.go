package mcp_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// protocols are the revisions that a fuzzed request names in its header.
var protocols = []string{"", "2025-06-18", "2026-07-28", "1999-01-01"}

// FuzzMessage posts whatever body, of whatever revision, to the handler of the real tools over the real engine. Whatever is
// sent, the answer is one that the protocol knows: a status of the table, no fault of the server's, exactly one result
// or error beside the id that was sent, an error's number beside its word, and a call's result as its tool's schema
// says. The seeds are the requests of the scripts, and calls of every tool.
func FuzzMessage(f *testing.F) {
	w := newFixture(f)
	tools, _ := w.list("")
	schemas := map[string]*jsonschema.Schema{}
	for _, tool := range tools {
		schemas[tool.Name] = compile(f, tool.OutputSchema)
		for i := range protocols {
			f.Add(uint(i), "tools/call", tool.Name, `{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{`+unescape("META")+`,"name":"`+tool.Name+`","arguments":`+calls[tool.Name].arguments+`}}`)
		}
	}
	for _, file := range []string{"errors.txt", "protocol.txt"} {
		script, err := os.ReadFile("testdata/" + file)
		if err != nil {
			f.Fatal(err)
		}
		for line := range strings.Lines(string(script)) {
			if body := strings.IndexAny(line, "{["); strings.HasPrefix(line, "ask pro ") && body > 0 {
				f.Add(uint(0), "", "", unescape(strings.TrimSpace(line[body:])))
				f.Add(uint(2), "tools/list", "", unescape(strings.TrimSpace(line[body:])))
			}
		}
	}
	f.Fuzz(func(t *testing.T, protocol uint, method, name, body string) {
		headers := []string{"Mcp-Method: " + visible(method), "Mcp-Name: " + visible(name)}
		if version := protocols[protocol%uint(len(protocols))]; version != "" {
			headers = append(headers, "Mcp-Protocol-Version: "+version)
		}
		response, answer := w.in(t).send(w.base, w.keys["enterprise"], body, headers...)
		if err := faultOf(schemas, body, response, answer); err != nil {
			t.Fatalf("%v sent with %q: %v", headers, body, err)
		}
	})
}

// errorWords are the numbers of errors that a request can be blamed for, and the words beside them.
var errorWords = map[int]string{-32700: "parse_error", -32600: "invalid_request", -32020: "invalid_request", -32022: "invalid_request", -32601: "method_not_found", -32602: "invalid_params", 40400: "not_found"}

// faultOf reports how an answer is not one that the protocol knows for a request; nil where it is one.
func faultOf(schemas map[string]*jsonschema.Schema, body string, response *http.Response, answer []byte) error {
	switch response.StatusCode {
	case http.StatusRequestEntityTooLarge: // refused by the server before the handler sees it, as any path's
		return nil
	case http.StatusAccepted:
		if len(answer) > 0 {
			return fmt.Errorf("what wants no answer is answered %s", answer)
		}
		return nil
	case http.StatusOK, http.StatusBadRequest, http.StatusNotFound:
	default:
		return fmt.Errorf("the status %d is not in the table: %.300s", response.StatusCode, answer)
	}
	frames := [][]byte{answer}
	if strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") {
		frames = nil
		for event := range bytes.SplitSeq(bytes.TrimSpace(answer), []byte("\n\n")) {
			_, data, ok := bytes.Cut(event, []byte("data: "))
			if !ok {
				return fmt.Errorf("an event without data: %q", event)
			}
			frames = append(frames, data)
		}
	}
	for i, frame := range frames {
		if err := faultOfFrame(schemas, body, frame, i == len(frames)-1); err != nil {
			return fmt.Errorf("%d %.500s: %w", response.StatusCode, frame, err)
		}
	}
	return nil
}

func faultOfFrame(schemas map[string]*jsonschema.Schema, body string, answer []byte, last bool) error {
	var frame struct {
		JSONRPC string
		ID      json.RawMessage
		Method  string
		Result  json.RawMessage
		Error   *struct {
			Code    int
			Message string
			Data    struct{ Code string }
		}
	}
	if err := json.Unmarshal(answer, &frame); err != nil {
		return err
	}
	switch {
	case frame.JSONRPC != "2.0":
		return fmt.Errorf("jsonrpc is %q", frame.JSONRPC)
	case !last:
		if frame.Method == "" || frame.ID != nil {
			return fmt.Errorf("what comes before the answer is no notification")
		}
		return nil
	case (frame.Result == nil) == (frame.Error == nil):
		return fmt.Errorf("there is not exactly one of result and error")
	}
	var asked struct {
		ID     json.RawMessage
		Method string
		Params struct{ Name string }
	}
	readable := json.Unmarshal([]byte(body), &asked) == nil
	if string(frame.ID) != "null" && readable && !bytes.Equal(frame.ID, asked.ID) {
		return fmt.Errorf("the id %s is answered as %s", asked.ID, frame.ID)
	}
	if frame.Error != nil {
		if word := errorWords[frame.Error.Code]; word == "" || frame.Error.Data.Code != word || frame.Error.Message == "" {
			return fmt.Errorf("an error that is in no table")
		}
		return nil
	}
	if string(frame.ID) == "null" {
		return fmt.Errorf("a result without an id")
	}
	if asked.Method != "tools/call" {
		return nil
	}
	var result struct{ StructuredContent json.RawMessage }
	if err := json.Unmarshal(frame.Result, &result); err != nil {
		return err
	}
	schema := schemas[asked.Params.Name]
	if schema == nil {
		return fmt.Errorf("the tool %q, which is in no list, has a result", asked.Params.Name)
	}
	structure, err := jsonschema.UnmarshalJSON(bytes.NewReader(result.StructuredContent))
	if err != nil {
		return err
	}
	return schema.Validate(structure)
}

// visible leaves out what no header may hold.
func visible(text string) string {
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' {
			return -1
		}
		return r
	}, text)
}
