package pages

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"
)

// referenceView is the page of all operations.
type referenceView struct {
	Groups []operationGroup `json:"groups"`
	// Session means that the visitor may try them.
	Session bool `json:"session"`
}

// operationGroup are the operations of a resource.
type operationGroup struct {
	Name       string      `json:"name"`
	About      string      `json:"about"`
	Operations []operation `json:"operations"`
}

// operation is one, as the OpenAPI document describes it.
type operation struct {
	ID          string      `json:"id"`
	Method      string      `json:"method"`
	Path        string      `json:"path"`
	Summary     string      `json:"summary"`
	Description string      `json:"description,omitempty"`
	Params      []parameter `json:"params"`
	// Body is an example of what is sent; empty where nothing is.
	Body string `json:"body,omitempty"`
	// Answer is an example of it; nil where it is no JSON.
	Answer json.RawMessage `json:"answer,omitempty"`
	// Samples are how it is asked in the languages that there are clients for.
	Samples []codeSample `json:"samples,omitempty"`
	Related related      `json:"related"`
}

// codeSample is how an operation is asked in one language.
type codeSample struct {
	Label  string `json:"label"`
	Source string `json:"source"`
}

// parameter is one of an operation.
type parameter struct {
	Name     string `json:"name"`
	In       string `json:"in"`
	About    string `json:"about,omitempty"`
	Required bool   `json:"required,omitempty"`
	Example  string `json:"example,omitempty"`
	Default  string `json:"default,omitempty"`
	Allowed  []any  `json:"allowed,omitempty"`
}

// described is what is read of the OpenAPI document.
type described struct {
	Tags  []struct{ Name, Description string }
	Paths map[string]map[string]struct {
		OperationID          string
		Tool                 string       `json:"x-mcp-tool"`
		Samples              []codeSample `json:"x-codeSamples"`
		Summary, Description string
		Tags                 []string
		Parameters           []struct {
			Name, In, Description string
			Required              bool
			Example               any
			Schema                struct {
				Default any
				Enum    []any
			}
		}
		RequestBody struct {
			Content map[string]struct {
				Schema struct {
					Required   []string
					Properties map[string]struct{ Examples []any }
				}
			}
		}
		Responses map[string]struct {
			Content map[string]struct{ Example json.RawMessage }
		}
	}
}

// readReference makes the list of operations of the document that the server describes itself by; nil where that cannot be read.
func readReference(document []byte) []operationGroup {
	var d described
	if err := json.Unmarshal(document, &d); err != nil {
		return nil
	}
	byTag := map[string][]operation{}
	for _, path := range slices.Sorted(maps.Keys(d.Paths)) {
		for _, method := range slices.Sorted(maps.Keys(d.Paths[path])) {
			from := d.Paths[path][method]
			o := operation{ID: from.OperationID, Method: strings.ToUpper(method), Path: path, Summary: from.Summary, Description: from.Description, Params: []parameter{},
				Answer: from.Responses["200"].Content[fiber.MIMEApplicationJSON].Example, Related: elsewhere[from.OperationID]}
			for _, s := range from.Samples {
				if s.Label != "curl" { // the page writes it from what is filled in
					o.Samples = append(o.Samples, s)
				}
			}
			o.Related.Tool = cmp.Or(from.Tool, o.Related.Tool)
			for _, p := range from.Parameters {
				o.Params = append(o.Params, parameter{p.Name, p.In, p.Description, p.Required, written(p.Example), written(p.Schema.Default), p.Schema.Enum})
			}
			if content, ok := from.RequestBody.Content[fiber.MIMEApplicationJSON]; ok {
				fields := map[string]any{}
				for _, name := range content.Schema.Required {
					if examples := content.Schema.Properties[name].Examples; len(examples) > 0 {
						fields[name] = examples[0]
					}
				}
				if text, err := json.MarshalIndent(fields, "", "  "); err == nil {
					o.Body = string(text)
				}
			}
			for _, tag := range from.Tags {
				byTag[tag] = append(byTag[tag], o)
			}
		}
	}
	var groups []operationGroup
	for _, tag := range d.Tags {
		if len(byTag[tag.Name]) > 0 {
			groups = append(groups, operationGroup{tag.Name, tag.Description, byTag[tag.Name]})
		}
	}
	return groups
}

// written is an example or a default as it is written in an address.
func written(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case []any:
		var items []string
		for _, item := range v {
			items = append(items, written(item))
		}
		return strings.Join(items, ",")
	}
	text, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(text)
}

// sendReference answers /docs/api. To read it needs no session; to try an operation does, as asking it anywhere.
func (u *Unit) sendReference(c *fiber.Ctx) error {
	ctx := c.Context()
	u.secure(ctx)
	if !wantsPage(ctx) {
		return c.Redirect("/openapi.json", http.StatusSeeOther)
	}
	ctx.Response.Header.Set(fiber.HeaderVary, "Accept, Accept-Encoding, Authorization, Cookie")
	// A visitor that may have a session without asking gets it here, too.
	_, err := u.visitor(ctx, ctx.Time())
	v := &referenceView{u.reference(), err == nil}
	return u.show(ctx, http.StatusOK, view{Page: pageReference, Title: "API", About: "Every operation of the API, to read and to try.", Data: v, Reference: v})
}
