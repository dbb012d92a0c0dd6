package answer

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/poll"
)

// maxDepth is how deep elements of XML may be nested.
const maxDepth = 16

// formatField is a line of a description.
type formatField struct {
	path     []string
	types    []string
	optional bool
}

// describedFormat reads the description of a feed; empty if there is none. A line "# feed NAME" begins the part of a
// feed; the others are "PATH TYPE …": the members from the outside in, joined by dots, [] after what is a list, * for any
// name, ? after what may be missing; and the types it may have: string, number, boolean, object, list, null. XML counts
// as objects whose members are lists of elements, and @NAME is an attribute.
func describedFormat(s poll.Source, feed string) ([]formatField, error) {
	text, err := fs.ReadFile(s.Formats, "testdata/"+s.Slug+"/format")
	if err != nil {
		return nil, nil // no such file: the set of files is fixed when the program is built
	}
	var fields []formatField
	within := false
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
		case words[0] == "#":
			within = len(words) == 3 && words[1] == "feed" && words[2] == feed
		case !within:
		case len(words) < 2:
			return nil, fmt.Errorf("reading the format of %s: %q names no type", s.Slug, words[0])
		default:
			path, optional := strings.CutSuffix(words[0], "?")
			fields = append(fields, formatField{strings.Split(path, "."), words[1:], optional})
		}
	}
	return fields, nil
}

// Drift compares an answer with the description of its format, and names each field that is gone or has become
// something else. What was added is not a drift.
func Drift(s poll.Source, feed string, body []byte) ([]string, error) {
	fields, err := describedFormat(s, feed)
	if err != nil || len(fields) == 0 {
		return nil, err
	}
	answer, err := parseAny(body)
	if err != nil {
		return nil, err
	}
	var drift []string
	for _, f := range fields {
		for _, d := range f.drift(answer) {
			if !slices.Contains(drift, d) { // what holds several fields is gone once
				drift = append(drift, d)
			}
		}
	}
	return drift, nil
}

func (f formatField) drift(answer any) []string {
	values := []any{answer}
	for i, part := range f.path {
		name, list := strings.CutSuffix(part, "[]")
		next := members(values, name)
		at := strings.Join(f.path[:i+1], ".")
		if len(next) == 0 {
			if f.optional && i == len(f.path)-1 {
				return nil
			}
			return []string{strings.TrimSuffix(at, "[]") + " is gone"}
		}
		if values = next; !list {
			continue
		}
		rows, isList := elements(values)
		if !isList {
			return []string{strings.TrimSuffix(at, "[]") + " is no list"}
		}
		if values = rows; len(values) == 0 {
			return []string{strings.TrimSuffix(at, "[]") + " is empty"}
		}
	}
	var changed []string
	for _, v := range values {
		text := fmt.Sprintf("%s is a %s, and was a %s", strings.Join(f.path, "."), typeOf(v), strings.Join(f.types, " or "))
		if !slices.Contains(f.types, typeOf(v)) && !slices.Contains(changed, text) {
			changed = append(changed, text)
		}
	}
	return changed
}

// members are the members of that name of all objects among values; "" is the values themselves.
func members(values []any, name string) []any {
	if name == "" {
		return values
	}
	var found []any
	for _, v := range values {
		object, _ := v.(map[string]any)
		if name == "*" {
			for _, member := range object {
				found = append(found, member)
			}
		} else if member, ok := object[name]; ok {
			found = append(found, member)
		}
	}
	return found
}

// elements are those of all lists among values; null is an empty one.
func elements(values []any) (rows []any, isList bool) {
	for _, v := range values {
		list, ok := v.([]any)
		if !ok && v != nil {
			return nil, false
		}
		rows = append(rows, list...)
	}
	return rows, true
}

func typeOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case string:
		return "string"
	case json.Number:
		return "number"
	case bool:
		return "boolean"
	case []any:
		return "list"
	default:
		return "object"
	}
}

// parseAny reads JSON, or XML that is not nested deeper than the deepest answer.
func parseAny(body []byte) (any, error) {
	body = bytes.TrimLeft(bytes.TrimPrefix(body, []byte("\uFEFF")), " \t\r\n")
	if bytes.HasPrefix(body, []byte("<")) {
		return elementOf(xml.NewDecoder(bytes.NewReader(body)), maxDepth)
	}
	var answer any
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	if err := decoder.Decode(&answer); err != nil {
		return nil, producers.Unreadable("parsing JSON: %w", err)
	}
	return answer, nil
}

// elementOf reads an element to its end, or a document.
func elementOf(decoder *xml.Decoder, depth int) (map[string]any, error) {
	object := map[string]any{}
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return object, nil
		}
		if err != nil {
			return nil, producers.Unreadable("parsing XML: %w", err)
		}
		switch t := token.(type) {
		case xml.EndElement:
			return object, nil
		case xml.StartElement:
			if depth == 0 {
				return nil, producers.Unreadable("elements nested too deep")
			}
			child, err := elementOf(decoder, depth-1)
			if err != nil {
				return nil, err
			}
			for _, a := range t.Attr {
				child["@"+a.Name.Local] = a.Value
			}
			list, _ := object[t.Name.Local].([]any)
			object[t.Name.Local] = append(list, child)
		}
	}
}
