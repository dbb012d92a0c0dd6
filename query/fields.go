package query

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
)

var (
	errMediaType = &Error{Status: http.StatusUnsupportedMediaType, Code: CodeMediaType, Message: "send the body as application/json, uncompressed"}
	errNoObject  = &Error{Status: http.StatusBadRequest, Code: CodeValidation, Message: "the request has invalid parameters",
		Fields: map[string][]string{"body": {"must be a JSON object"}}}
)

// jsonFields reads the body of a request, whose size the server bounds, as a JSON object. Each field is parsed by its
// own declaration; those that no declaration names are ignored.
func jsonFields(ctx *fasthttp.RequestCtx) (map[string]json.RawMessage, error) {
	h := &ctx.Request.Header
	kind, params, err := mime.ParseMediaType(string(h.ContentType()))
	if charset := params["charset"]; err != nil || kind != contentJSON || charset != "" && !strings.EqualFold(charset, "utf-8") {
		return nil, errMediaType
	}
	// What is compressed can be a thousand times as large as it looks.
	if encoding := h.Peek(fiber.HeaderContentEncoding); len(encoding) > 0 && string(encoding) != "identity" {
		return nil, errMediaType
	}
	return readFields(ctx.Request.Body())
}

// readFields reads an object whose names differ: of two fields with one name, what else reads the request may take the
// other one than this server.
func readFields(body []byte) (map[string]json.RawMessage, error) {
	decoder := json.NewDecoder(bytes.NewReader(body))
	if opening, err := decoder.Token(); err != nil || opening != json.Delim('{') {
		return nil, errNoObject
	}
	fields := map[string]json.RawMessage{}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return nil, errNoObject
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return nil, errNoObject
		}
		key := name.(string) // before a value in an object the decoder takes nothing else
		if _, twice := fields[key]; twice {
			return nil, &Error{Status: http.StatusBadRequest, Code: CodeValidation, Message: errNoObject.Message,
				Fields: map[string][]string{strings.ToValidUTF8(key[:min(len(key), 64)], "�"): {"must be given once"}}}
		}
		fields[key] = value
	}
	if _, err := decoder.Token(); err != nil {
		return nil, errNoObject
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, errNoObject
	}
	return fields, nil
}

// parseField turns a field of a body into its value, or says what is wrong with it.
func (p *Param) parseField(raw json.RawMessage) (v value, clamped bool, fault string) {
	switch p.Kind {
	case List:
		var items []*string
		if json.Unmarshal(raw, &items) != nil || slices.Contains(items, nil) {
			return v, false, "must be an array of strings"
		}
		v.set = true
		for _, item := range items {
			text := strings.TrimSpace(*item)
			if text == "" {
				return v, false, "must have no empty items"
			}
			v.list = append(v.list, text)
		}
		return v, false, p.boundList(v.list)
	case Hints:
		if raw[0] == '{' {
			return p.parseHints([]string{string(raw)})
		}
	case Integer, Number:
		if raw[0] != '"' {
			return p.parse([]string{string(raw)})
		}
	case Flag:
		if text := string(raw); text == "true" || text == "false" {
			return p.parse([]string{text})
		}
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return v, false, "must be a string"
	}
	if text == "" {
		return v, false, ""
	}
	return p.parse([]string{text})
}

// boundList reports what is wrong with the items of a List.
func (p *Param) boundList(items []string) string {
	switch {
	case len(items) == 0:
		return "must not be empty"
	case len(items) > p.MaxItems:
		return fmt.Sprintf("must have at most %d items, has %d", p.MaxItems, len(items))
	}
	for _, item := range items {
		if len(item) > maxText {
			return fmt.Sprintf("must have items of at most %d bytes", maxText)
		}
	}
	return ""
}

// parseHints reads named texts: a JSON object, or one plain word, which is the hint that Word names.
func (p *Param) parseHints(texts []string) (v value, clamped bool, fault string) {
	v.set = true
	text := strings.TrimSpace(texts[0])
	if !strings.HasPrefix(text, "{") {
		if text == "" {
			return v, false, ""
		}
		return p.hint(v, p.Word, text)
	}
	var object map[string]any
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.UseNumber()
	if decoder.Decode(&object) != nil || decoder.More() {
		return v, false, "must be a word or a JSON object"
	}
	// In one order, so that a request with several faults is always answered alike.
	for _, name := range slices.Sorted(maps.Keys(object)) {
		var given string
		switch x := object[name].(type) {
		case nil:
			continue
		case string:
			given = strings.TrimSpace(x)
		case json.Number:
			given = x.String()
		default:
			return v, false, name + " must be a string"
		}
		if v, _, fault = p.hint(v, name, given); fault != "" {
			return v, false, fault
		}
	}
	return v, false, ""
}

// hintType is the JSON type of a hint.
func (p *Param) hintType(name string) string {
	if slices.Contains(p.Numbers, name) {
		return huma.TypeNumber
	}
	return huma.TypeString
}

func (p *Param) hint(v value, name, text string) (value, bool, string) {
	if !slices.Contains(p.Allowed, name) {
		return v, false, fmt.Sprintf("%.40q is unknown; it has %s", name, strings.Join(p.Allowed, ", "))
	}
	if len(text) > maxText {
		return v, false, fmt.Sprintf("%s must have at most %d bytes", name, maxText)
	}
	if text == "" {
		return v, false, ""
	}
	if n, ok := decimal(text); slices.Contains(p.Numbers, name) && (!ok || n == 0) {
		return v, false, name + " must be a number above 0"
	}
	if v.hints == nil {
		v.hints = map[string]string{}
	}
	v.hints[name] = strings.Clone(text)
	return v, false, ""
}
