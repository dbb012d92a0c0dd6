package ws

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"

	"github.com/marketlog/marketlog/query"
)

// DocumentPath is where the stream describes itself.
const DocumentPath = "/asyncapi.json"

// document is an AsyncAPI 3.0 document: https://www.asyncapi.com/docs/reference/specification/v3.0.0.
type document struct {
	AsyncAPI    string                  `json:"asyncapi"`
	Info        map[string]any          `json:"info"`
	ContentType string                  `json:"defaultContentType"`
	Servers     map[string]any          `json:"servers"`
	Channels    map[string]*transport   `json:"channels"`
	Operations  map[string]*interaction `json:"operations"`
	Components  struct {
		Messages        map[string]*described   `json:"messages"`
		Schemas         map[string]*huma.Schema `json:"schemas"`
		SecuritySchemes map[string]any          `json:"securitySchemes"`
	} `json:"components"`
}

// ref is a reference to another part of the document.
type ref struct {
	To string `json:"$ref"`
}

// transport is one of the ways in which messages go over the wire, a channel in the words of AsyncAPI.
type transport struct {
	Address     string         `json:"address"`
	Title       string         `json:"title"`
	Description string         `json:"description"`
	Servers     []ref          `json:"servers"`
	Messages    map[string]ref `json:"messages"`
	Bindings    map[string]any `json:"bindings,omitempty"`
	Closings    []closing      `json:"x-close-codes,omitempty"`
}

// interaction is an operation, from the view of the server.
type interaction struct {
	Action      string         `json:"action"`
	Channel     ref            `json:"channel"`
	Summary     string         `json:"summary"`
	Description string         `json:"description"`
	Messages    []ref          `json:"messages"`
	Bindings    map[string]any `json:"bindings,omitempty"`
	Reply       *reply         `json:"reply,omitempty"`
}

type reply struct {
	Channel  ref   `json:"channel"`
	Messages []ref `json:"messages"`
}

// described is a message.
type described struct {
	Name     string           `json:"name"`
	Title    string           `json:"title"`
	Summary  string           `json:"summary"`
	Payload  *huma.Schema     `json:"payload"`
	Examples []map[string]any `json:"examples"`
}

// Ways in which messages go over the wire.
const (
	transportSocket = "socket"
	transportEvents = "events"
	transportLines  = "lines"
)

// What the actions mean: a document of AsyncAPI 2 had them the other way round, and so reads who writes a client.
const (
	aboutSend    = "The server sends these messages; a client reads them."
	aboutReceive = "A client sends this message; the server receives and answers it."
)

// describe writes the AsyncAPI document of the stream.
func (h *Hub) describe() (body *query.Body, err error) {
	// huma panics on types that it cannot describe, which is a fault of a declaration.
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("describing the stream: %v", p)
		}
	}()
	registry := query.NewSchemas()
	d := &document{AsyncAPI: "3.0.0", ContentType: "application/json", Channels: map[string]*transport{}, Operations: map[string]*interaction{}}
	d.Info = map[string]any{"title": "Marketlog stream", "version": "1.0.0",
		"description": "Prices and other channels as they change. Served by marketlog " + h.deps.Version + ". Messages may have further fields, and there may be further types of messages. " +
			"Operations are of the server, as AsyncAPI 3.0 wants them: the action `send` is what the server sends and a client reads, `receive` what a client sends."}
	d.describeServers()
	d.Components.Messages = map[string]*described{}
	var sends []string
	add := func(of *described) {
		d.Components.Messages[of.Name] = of
		sends = append(sends, of.Name)
	}
	for _, r := range responses {
		add(describeResponse(registry, r))
	}
	for _, of := range h.describeChannels(registry) {
		add(of)
	}
	fields := inline(registry, message{})
	fields.Properties["channels"].Items.Enum = words(h.channelNames())
	receives := make([]string, 0, len(requests))
	for _, r := range requests {
		of := describeRequest(fields, r)
		d.Components.Messages[of.Name] = of
		receives = append(receives, of.Name)
	}
	d.describeTransports(sends, receives, h.connectQuery(fields))
	for _, r := range requests {
		d.Operations["receive"+capital(r.example.Type)] = &interaction{Action: "receive", Channel: channelRef(transportSocket), Summary: r.doc, Description: aboutReceive,
			Messages: messageRefs(transportSocket, []string{r.example.Type}), Reply: &reply{channelRef(transportSocket), messageRefs(transportSocket, r.answers)}}
	}
	var payloads []*huma.Schema
	for _, of := range d.Components.Messages {
		payloads = append(payloads, of.Payload)
	}
	query.OpenSchemas(registry, payloads...)
	d.Components.Schemas = registry.Map()
	for _, schema := range slices.Concat(payloads, slices.Collect(maps.Values(d.Components.Schemas))) {
		wrapReferences(schema)
	}
	return query.NewBody(d)
}

func (d *document) describeServers() {
	hosts := map[string]any{"host": map[string]any{"default": "127.0.0.1:8080", "description": "The host and port that this document came from."}}
	schemes := func(names ...string) (refs []ref) {
		for _, name := range names {
			refs = append(refs, ref{"#/components/securitySchemes/" + name})
		}
		return refs
	}
	d.Servers = map[string]any{
		"websocket": map[string]any{"host": "{host}", "protocol": "ws", "variables": hosts, "security": schemes("bearer", "subprotocol", "message"),
			"description": "WebSocket; wss where the server has a certificate."},
		"http": map[string]any{"host": "{host}", "protocol": "http", "variables": hosts, "security": schemes("bearer"),
			"description": "Plain HTTP; https where the server has a certificate."},
	}
	d.Components.SecuritySchemes = map[string]any{
		"bearer":      map[string]any{"type": "http", "scheme": "bearer", "description": "`Authorization: Bearer ck_live_…` in the request. A key made with `marketlog keys create`; it begins with ck_live_."},
		"subprotocol": map[string]any{"type": "httpApiKey", "in": "header", "name": "Sec-WebSocket-Protocol", "description": "`" + protocol + ", " + keyPrefix + "ck_live_…`, for browsers, which cannot set headers."},
		"message":     map[string]any{"type": "userPassword", "description": "The message auth, within 5 seconds, where the handshake has no key."},
	}
}

// describeTransports adds the three ways, each with the messages that come over it.
func (d *document) describeTransports(sends, receives []string, asks *huma.Schema) {
	headers := func(more map[string]*huma.Schema) *huma.Schema {
		more["Authorization"] = &huma.Schema{Type: huma.TypeString, Description: "Bearer ck_live_…"}
		return &huma.Schema{Type: huma.TypeObject, Properties: more}
	}
	text := func(doc string) *huma.Schema { return &huma.Schema{Type: huma.TypeString, Description: doc} }
	d.Channels[transportSocket] = &transport{
		Address: Path, Title: "WebSocket", Servers: []ref{{"#/servers/websocket"}}, Messages: messageMap(append(slices.Clone(sends), receives...)), Closings: closings,
		Description: "RFC 6455, version 13, with permessage-deflate where the client offers it. A message is one text frame. A client sends at most 4,096 bytes a message, 30 messages at once and 2 a second.",
		Bindings: map[string]any{"ws": map[string]any{"method": "GET", "query": asks, "bindingVersion": "0.1.0",
			"headers": headers(map[string]*huma.Schema{"Sec-WebSocket-Protocol": text(protocol + ", " + keyPrefix + "ck_live_…")})}},
	}
	d.Channels[transportEvents] = &transport{
		Address: LinesPath, Title: "Server-sent events", Servers: []ref{{"#/servers/http"}}, Messages: messageMap(sends),
		Description: "A message is the data of one event, its type the event's name and its cursor the event's id. Last-Event-ID, as a header or as the parameter " + paramLastID +
			", goes on behind an id. What is refused is answered with a status, as /openapi.json says. A comment comes every 15 seconds.",
	}
	d.Channels[transportLines] = &transport{
		Address: LinesPath, Title: "Lines of JSON", Servers: []ref{{"#/servers/http"}}, Messages: messageMap(sends),
		Description: "With `Accept: " + contentLines + "`: a message is one line. An empty line comes every 15 seconds.",
	}
	asksHTTP := map[string]any{"http": map[string]any{"method": "GET", "query": asks, "bindingVersion": "0.3.0"}}
	for name, summary := range map[string]string{transportSocket: "The messages of a socket", transportEvents: "The same as server-sent events", transportLines: "The same as lines of JSON"} {
		d.Operations["send"+capital(name)] = &interaction{Action: "send", Channel: channelRef(name), Summary: summary, Description: aboutSend, Messages: messageRefs(name, sends)}
		if name != transportSocket {
			d.Operations["send"+capital(name)].Bindings = asksHTTP
		}
	}
}

// connectQuery are the parameters that a client may connect with, of the fields of messages. Lists are separated by commas.
func (h *Hub) connectQuery(fields *huma.Schema) *huma.Schema {
	asks := &huma.Schema{Type: huma.TypeObject, Properties: map[string]*huma.Schema{}}
	for _, name := range connectParams {
		of := *fields.Properties[name]
		switch {
		case of.Type == huma.TypeArray:
			of = huma.Schema{Type: huma.TypeString, Description: of.Description + ". Separated by commas"}
			if name == "channels" {
				of.Description += ": " + strings.Join(h.channelNames(), ", ")
			}
		case of.Type == huma.TypeBoolean:
			of = huma.Schema{Type: huma.TypeString, Enum: []any{"1", "0"}, Description: of.Description}
		}
		asks.Properties[name] = &of
	}
	return asks
}

// describeChannels are the messages of the declared channels; those of one type are one.
func (h *Hub) describeChannels(registry huma.Registry) (all []*described) {
	byEvent := map[string]*described{}
	for _, c := range h.channels {
		of := byEvent[c.Event]
		if of == nil {
			of = &described{Name: c.Event, Title: c.Event, Summary: c.Doc, Payload: &huma.Schema{
				Type: huma.TypeObject, Required: []string{"type", "channel", "data", "timestamp"},
				Properties: map[string]*huma.Schema{
					"type":      {Type: huma.TypeString, Enum: []any{c.Event}},
					"channel":   {Type: huma.TypeString},
					"data":      {Type: huma.TypeArray, Items: registry.Schema(reflect.TypeOf(c.Element), true, c.Event)},
					"timestamp": {Type: huma.TypeString, Format: "date-time", Description: "The end of what it is of, in log time"},
					"cursor":    inline(registry, Placed{}).Properties["cursor"],
				},
			}}
			of.example(map[string]any{"type": c.Event, "channel": c.name(), "data": []any{c.Element}, "timestamp": exampleTime, "cursor": exampleCursor})
			byEvent[c.Event] = of
			all = append(all, of)
		}
		of.Payload.Properties["channel"].Enum = append(of.Payload.Properties["channel"].Enum, c.name())
	}
	return all
}

func describeResponse(registry huma.Registry, r response) *described {
	of := &described{Name: r.kind, Title: r.kind, Summary: r.doc, Payload: inline(registry, r.example)}
	of.Payload.Properties["type"] = &huma.Schema{Type: huma.TypeString, Enum: []any{r.kind}}
	of.example(r.example)
	return of
}

func describeRequest(fields *huma.Schema, r declaredRequest) *described {
	of := &described{Name: r.example.Type, Title: r.example.Type, Summary: r.doc,
		Payload: &huma.Schema{Type: huma.TypeObject, Required: append([]string{"type"}, r.needed...), Properties: map[string]*huma.Schema{}}}
	of.Payload.Properties["type"] = &huma.Schema{Type: huma.TypeString, Enum: []any{r.example.Type}}
	for _, name := range r.fields {
		of.Payload.Properties[name] = fields.Properties[name]
	}
	of.example(r.example)
	return of
}

// example adds one of a message.
func (of *described) example(value any) {
	of.Examples = append(of.Examples, map[string]any{"name": of.Name, "payload": value})
}

// wrapReferences puts references that have a description into an allOf: beside a reference, AsyncAPI ignores everything else.
func wrapReferences(s *huma.Schema) {
	if s == nil {
		return
	}
	for name, property := range s.Properties {
		if property.Ref != "" && property.Description != "" {
			s.Properties[name] = &huma.Schema{Description: property.Description, AllOf: []*huma.Schema{{Ref: property.Ref}}}
		}
		wrapReferences(property)
	}
	wrapReferences(s.Items)
}

// inline is the schema of a type that no other refers to.
func inline(registry huma.Registry, of any) *huma.Schema {
	return huma.SchemaFromType(registry, reflect.TypeOf(of))
}

func channelRef(name string) ref { return ref{"#/channels/" + name} }

func messageRefs(transport string, names []string) (refs []ref) {
	for _, name := range names {
		refs = append(refs, ref{"#/channels/" + transport + "/messages/" + name})
	}
	return refs
}

func messageMap(names []string) map[string]ref {
	refs := map[string]ref{}
	for _, name := range names {
		refs[name] = ref{"#/components/messages/" + name}
	}
	return refs
}

func words(list []string) (all []any) {
	for _, word := range list {
		all = append(all, word)
	}
	return all
}

func capital(name string) string { return strings.ToUpper(name[:1]) + name[1:] }

// mountDocument adds the route of the document, which everybody may read.
func (h *Hub) mountDocument(router fiber.Router, gate Gate) error {
	body, err := h.describe()
	if err != nil {
		return err
	}
	router.Get(DocumentPath, func(c *fiber.Ctx) error {
		gate.SendPublic(c.Context(), body)
		return nil
	})
	return nil
}
