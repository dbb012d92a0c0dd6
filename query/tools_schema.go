package query

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// toolSchema is the part of JSON Schema that tools need, without what only readers of a document want.
type toolSchema struct {
	Type             string                 `json:"type,omitempty"`
	Description      string                 `json:"description,omitempty"`
	Properties       map[string]*toolSchema `json:"properties,omitzero"`
	Required         []string               `json:"required,omitempty"`
	Items            *toolSchema            `json:"items,omitempty"`
	AnyOf            []*toolSchema          `json:"anyOf,omitempty"`
	Enum             []any                  `json:"enum,omitempty"`
	Default          any                    `json:"default,omitempty"`
	Minimum          *float64               `json:"minimum,omitempty"`
	Maximum          *float64               `json:"maximum,omitempty"`
	ExclusiveMinimum *float64               `json:"exclusiveMinimum,omitempty"`
	MinItems         *int                   `json:"minItems,omitempty"`
	MaxItems         *int                   `json:"maxItems,omitempty"`
}

// toolInput is the schema of a call's arguments: the parameters, wherever a request has them.
func (c *compiled) toolInput() (json.RawMessage, error) {
	schema := toolSchema{Type: huma.TypeObject, Properties: map[string]*toolSchema{}}
	for i := range c.Params {
		p := &c.Params[i]
		if p.Name == viewParam.Name || p.NoTool {
			continue
		}
		schema.Properties[p.Name] = p.argument()
		if p.Required || p.In == Path {
			schema.Required = append(schema.Required, p.Name)
		}
	}
	return json.Marshal(schema)
}

// argument is a parameter as an argument of a tool, in JSON's own types.
func (p *Param) argument() *toolSchema {
	asked := *p
	asked.Default = cmp.Or(p.ToolDefault, p.Default)
	declared := asked.describe().Schema
	s := &toolSchema{Type: declared.Type, Description: firstSentence(p.Doc), Default: declared.Default, Enum: declared.Enum,
		Minimum: declared.Minimum, Maximum: declared.Maximum, ExclusiveMinimum: declared.ExclusiveMinimum, MinItems: declared.MinItems, MaxItems: declared.MaxItems}
	switch p.Kind {
	case Time:
		s.Type = huma.TypeString
	case List:
		s.Items = &toolSchema{Type: huma.TypeString}
	case Hints:
		object := &toolSchema{Type: huma.TypeObject, Properties: map[string]*toolSchema{}}
		for _, key := range p.Allowed {
			object.Properties[key] = &toolSchema{Type: p.hintType(key)}
		}
		s.Type, s.AnyOf = "", []*toolSchema{object, {Type: huma.TypeString}}
		s.Description += " A text alone is the " + p.Word + "."
	}
	return s
}

// toolOutput is the schema of what a call answers.
func (c *compiled) toolOutput() (encoded json.RawMessage, err error) {
	// huma panics on types that it cannot describe, which is a fault of a declaration.
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("describing the answer: %v", p)
		}
	}()
	answer := c.ToolBody
	if answer == nil {
		answer = c.Body
	}
	registry := huma.NewMapRegistry("#/components/schemas/", schemaName)
	described := registry.Schema(reflect.TypeOf(answer), true, c.ID)
	for _, rows := range []rowDetail{wholeRows, requiredFields, noFields} {
		schema := outline(registry, described, atAnswer, rows)
		if schema.Type != huma.TypeObject {
			return nil, fmt.Errorf("a tool answers with an object, not with %q", schema.Type)
		}
		if encoded, err = json.Marshal(schema); err != nil || len(encoded) <= outputBytes {
			break
		}
	}
	return encoded, err
}

// outputBytes is the size above which the schema of a response describes its rows in less detail. A model reads the list of
// tools before every conversation, so it says what is needed to read answers; the OpenAPI document describes all.
const outputBytes = 440

// rowDetail is how much a schema describes of the rows of a response.
type rowDetail uint8

const (
	wholeRows rowDetail = iota
	// requiredFields are those that every row has.
	requiredFields
	noFields
)

// place is the depth of a schema in a response.
type place uint8

const (
	atAnswer place = iota
	atRow
	within
)

// outline describes an answer and the rows in it by their fields, and what is within those by its type
// alone.
func outline(registry huma.Registry, s *huma.Schema, at place, rows rowDetail) *toolSchema {
	if s.Ref != "" {
		s = registry.SchemaFromRef(s.Ref)
	}
	out := &toolSchema{Type: s.Type}
	if s.Nullable && s.Type != huma.TypeArray {
		out = &toolSchema{AnyOf: []*toolSchema{{Type: s.Type}, {Type: "null"}}}
	}
	for _, of := range s.AnyOf {
		out.AnyOf = append(out.AnyOf, outline(registry, of, within, rows))
	}
	switch {
	case s.Type == huma.TypeArray:
		out.Items = outline(registry, s.Items, at, rows)
	case s.Type == huma.TypeObject && (at == atAnswer || at == atRow && rows != noFields):
		if at == atAnswer || rows == wholeRows {
			out.Required = s.Required
		}
		out.Properties = map[string]*toolSchema{}
		for name, property := range s.Properties {
			if at == atRow && rows == requiredFields && !slices.Contains(s.Required, name) {
				continue
			}
			below := within
			if property.Type == huma.TypeArray && at == atAnswer {
				below = atRow
			}
			out.Properties[name] = outline(registry, property, below, rows)
		}
	}
	return out
}

// firstSentence is the part of a text that a tool's argument is described with.
func firstSentence(text string) string {
	first, _, more := strings.Cut(text, ". ")
	if more {
		return first + "."
	}
	return text
}
