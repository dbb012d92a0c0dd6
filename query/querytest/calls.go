package querytest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// Call is one request of an operation.
type Call struct {
	Path, Body string
	Succeeds   bool // what it asks for is there, on a demo
}

// Calls are a call that succeeds, one with every parameter, and one with each parameter spoilt in turn.
func Calls(path string, operation *openapi3.Operation) []Call {
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
	calls := []Call{{pathWith(path, all, good), body, true}}
	for _, p := range all {
		for _, wrong := range spoilt(p) {
			values := maps.Clone(good)
			values[p.Name] = wrong
			calls = append(calls, Call{Path: pathWith(path, all, values), Body: body})
		}
	}
	if body != "" {
		for _, wrong := range []string{"{}", "[]", "null", "1", "{", `{"symbol":7}`, `{"symbols":[]}`, `{"symbols":[1]}`, `{"symbol":"btc","source":{}}`, strings.Repeat("[", 10_000)} {
			calls = append(calls, Call{Path: pathWith(path, all, good), Body: wrong})
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
		case len(field.Examples) > 0:
			fields[name] = field.Examples[0]
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
