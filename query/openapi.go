package query

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/marketlog/marketlog/query/examples"
	"github.com/marketlog/marketlog/query/limits"
	"github.com/marketlog/marketlog/query/position"
)

const (
	errorSchemaRef = "#/components/responses/"
	schemaRef      = "#/components/schemas/"
)

// explainTag is the tag of a field that names the number it holds, as GET /api/v1/explain/{number} takes it, and ExplainExtension
// what that is in the document. Names in braces are fields of the same object, or of the nearest one around it that has such a
// field; {meta.from} is the field from of such a field meta. Of a field that is a map it names its members, by the schema of these: {key}
// is a member's key. Of a list of pairs it names the second numbers: {0} is the first one of the pair; of a list of numbers {left} is how many follow.
const (
	explainTag       = "explain"
	ExplainExtension = "x-explain"
	// RestExtension marks a parameter of a path that may have slashes.
	RestExtension = "x-rest-of-path"
	// toolExtension is the name of the MCP tool that asks an operation.
	toolExtension = "x-mcp-tool"
)

// ErrorResponse refers to the description of answers with a status that is not a success.
func ErrorResponse(status int) *huma.Response {
	return &huma.Response{Ref: errorSchemaRef + strconv.Itoa(status)}
}

// ErrorResponseContent is the body of an answer whose status has no description of its own.
func ErrorResponseContent() map[string]*huma.MediaType {
	return map[string]*huma.MediaType{contentJSON: {Schema: &huma.Schema{Ref: "#/components/schemas/ErrorBody"}}}
}

// describe writes the OpenAPI 3.1 document of the endpoints.
func describe(endpoints []*compiled, mounted []*huma.Operation, version string) (body *Body, err error) {
	// huma panics on types that it cannot describe, which is a fault of a declaration.
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("describing the endpoints: %v", p)
		}
	}()
	registry := NewSchemas()
	doc := &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{Title: "Marketlog", Version: "1.0.0",
			Description: "Crypto market data computed from one log. Served by marketlog " + version + ". Responses may have further fields."},
		Servers:  []*huma.Server{{URL: "/"}},
		Security: []map[string][]string{{"bearer": {}}},
		Components: &huma.Components{
			Schemas: registry,
			SecuritySchemes: map[string]*huma.SecurityScheme{
				"bearer": {Type: "http", Scheme: "bearer", Description: "A key made with `marketlog keys create`; it begins with ck_live_."},
			},
			Responses: errorResponses(registry),
		},
	}
	tags := map[string]bool{}
	for _, e := range endpoints {
		doc.AddOperation(withExample(e.operation(registry)))
		tags[e.Tag] = true
	}
	for _, op := range mounted {
		doc.AddOperation(withExample(op))
		for _, tag := range op.Tags {
			tags[tag] = true
		}
	}
	for _, t := range slices.Sorted(maps.Keys(tags)) {
		doc.Tags = append(doc.Tags, &huma.Tag{Name: t, Description: tagDescriptions[t]})
	}
	describeHealth(doc)
	OpenSchemas(registry)
	return NewBody(doc)
}

// NewSchemas makes a registry of the schemas of a document, which refers to them below components.
func NewSchemas() huma.Registry { return huma.NewMapRegistry(schemaRef, schemaName) }

// OpenSchemas makes all schemas of a registry state what holds of our answers; further ones are those that no other refers to.
func OpenSchemas(registry huma.Registry, further ...*huma.Schema) {
	for name, schema := range registry.Map() {
		open(schema)
		describeCommon(schema)
		nameNumbers(schema, registry.TypeFromRef(schemaRef+name))
	}
	for _, schema := range further {
		open(schema)
	}
}

// tagDescriptions are what the groups of operations are about.
var tagDescriptions = map[string]string{
	"charts":            "Candles and simple series of prices and rates.",
	"coins":             "Coins: details, market data, markets and categories.",
	"earn":              "Products that pay for a deposit, changes of their terms, and a daily benchmark yield.",
	"explanations":      "Why a number is what it is, down to records of the log.",
	"fiat currencies":   "Exchange rates of the US dollar in government currencies.",
	"global statistics": "The whole market and DeFi: totals, dominance, sentiment, movers, fear and greed.",
	"log":               "Records of the log, by topic, partition and offset.",
	"operations":        "State of the server: liveness, readiness, and how far each stage is.",
	"prices":            "Medians over venues, and the inputs of each.",
	"providers":         "Venues and sources: terms and health.",
	"rates":             "Yields of lending and staking and rates of borrowing, current and past.",
	"sql":               "SQL on the views.",
	"stablecoins":       "Peg deviation and stability of stablecoins.",
	"stream":            "Prices and other channels as they change.",
	"symbols":           "Resolution of symbols to coins.",
	"usage":             "Plan and usage of an API key.",
}

// open reports what huma's defaults deny: that answers may carry further fields, and that our lists
// are never null.
func open(s *huma.Schema) {
	if s == nil {
		return
	}
	if closed, ok := s.AdditionalProperties.(bool); ok && !closed {
		s.AdditionalProperties = nil
	}
	if s.Type == huma.TypeArray {
		s.Nullable = false
	}
	if value, ok := s.AdditionalProperties.(*huma.Schema); ok {
		open(value)
	}
	open(s.Items)
	for _, p := range s.Properties {
		open(p)
	}
}

// nameNumbers writes the numbers that fields of a type hold into its schema.
func nameNumbers(s *huma.Schema, t reflect.Type) {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil || t.Kind() != reflect.Struct {
		return
	}
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		number := f.Tag.Get(explainTag)
		switch property := s.Properties[name]; {
		case f.Anonymous && name == "":
			nameNumbers(s, f.Type)
		case number == "":
		case property == nil || property.Ref != "":
			panic(fmt.Sprintf("%s.%s holds the number %s, and is not a number", t, f.Name, number))
		default:
			if members, ok := property.AdditionalProperties.(*huma.Schema); ok {
				if property = members; property.Ref != "" {
					panic(fmt.Sprintf("the members of %s.%s hold the number %s, and are not numbers", t, f.Name, number))
				}
			}
			if property.Extensions == nil {
				property.Extensions = map[string]any{}
			}
			property.Extensions[ExplainExtension] = number
		}
	}
}

// schemaName distinguishes types of two units that have one name.
func schemaName(t reflect.Type, hint string) string {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	name := huma.DefaultSchemaNamer(t, hint)
	unit := t.PkgPath()[strings.LastIndex(t.PkgPath(), "/")+1:]
	if unit == "" || unit == "query" {
		return name
	}
	return strings.ToUpper(unit[:1]) + unit[1:] + name
}

// operation writes an endpoint's part of the document.
func (c *compiled) operation(registry huma.Registry) *huma.Operation {
	op := &huma.Operation{
		Method: c.Method, Path: c.Path, OperationID: c.ID, Tags: []string{c.Tag}, Summary: c.Summary, Description: c.Description,
		Responses: map[string]*huma.Response{
			"200": {
				Description: "Success",
				Headers: map[string]*huma.Param{
					headerRequestID:         {Description: "Id of this request", Schema: &huma.Schema{Type: huma.TypeString}},
					"ETag":                  {Description: "Strong entity tag, for If-None-Match", Schema: &huma.Schema{Type: huma.TypeString}},
					"Cache-Control":         {Description: "`" + string(c.cache) + "`", Schema: &huma.Schema{Type: huma.TypeString}},
					string(headerPosition):  {Description: "What the answer was made of: asOf with it gives the same answer again", Schema: &huma.Schema{Type: huma.TypeString, Pattern: position.Pattern}},
					"X-RateLimit-Limit":     {Description: "Limit of the tightest window", Schema: &huma.Schema{Type: huma.TypeInteger}},
					"X-RateLimit-Remaining": {Description: "Remaining requests in that window", Schema: &huma.Schema{Type: huma.TypeInteger}},
					"X-RateLimit-Reset":     {Description: "When more requests become available, Unix seconds", Schema: &huma.Schema{Type: huma.TypeInteger}},
				},
				Content: map[string]*huma.MediaType{contentJSON: {Schema: c.schema(registry)}},
			},
			"304": {Description: "Not modified: the copy named by If-None-Match is still valid"},
		},
	}
	if c.Tool != "" {
		op.Extensions = map[string]any{toolExtension: c.Tool}
	}
	statuses := []int{400, 401, 429, 431, 500, 503}
	if c.Method == http.MethodPost {
		statuses = append(statuses, 413, 415)
		op.RequestBody = c.requestBody()
		delete(op.Responses, "304")
		delete(op.Responses["200"].Headers, "ETag")
	}
	if c.NotFound {
		statuses = append(statuses, 404)
	}
	if c.agesOut {
		statuses = append(statuses, http.StatusGone)
	}
	if c.Needs != limits.NoFeature || c.planned {
		statuses = append(statuses, 402)
	}
	for _, status := range statuses {
		op.Responses[strconv.Itoa(status)] = &huma.Response{Ref: errorSchemaRef + strconv.Itoa(status)}
	}
	for i := range c.Params {
		if c.Params[i].In != Field {
			op.Parameters = append(op.Parameters, c.Params[i].describe())
		}
	}
	return op
}

// withExample shows how an operation is asked and what it answers.
func withExample(op *huma.Operation) *huma.Operation {
	if samples := examples.Samples(op.OperationID); samples != nil {
		if op.Extensions == nil {
			op.Extensions = map[string]any{}
		}
		op.Extensions["x-codeSamples"] = samples
	}
	success := op.Responses["200"]
	if answer := examples.Answer(op.OperationID); answer != nil && success != nil && success.Content[contentJSON] != nil {
		success.Content[contentJSON].Example = answer
	}
	if success != nil {
		for media, content := range success.Content {
			if text := examples.Text(op.OperationID, media); text != "" {
				content.Example = text
			}
		}
	}
	return op
}

// requestBody describes the fields of a POST.
func (c *compiled) requestBody() *huma.RequestBody {
	schema := &huma.Schema{Type: huma.TypeObject, Properties: map[string]*huma.Schema{}}
	for i := range c.Params {
		p := &c.Params[i]
		if p.In != Field {
			continue
		}
		described := p.describe()
		field := described.Schema
		field.Description = described.Description
		if described.Example != nil {
			field.Examples = []any{described.Example}
		}
		schema.Properties[p.Name] = field
		if p.Required {
			schema.Required = append(schema.Required, p.Name)
		}
	}
	return &huma.RequestBody{Required: true, Description: "At most 64 kB.", Content: map[string]*huma.MediaType{contentJSON: {Schema: schema}}}
}

// schema is that of a success, of either form where there are two.
func (c *compiled) schema(registry huma.Registry) *huma.Schema {
	reference := registry.Schema(reflect.TypeOf(c.Body), true, c.ID)
	if c.Explanations != nil {
		added := *registry.Schema(reflect.TypeOf(c.Explanations), true, c.ID+"Explanations")
		registry.SchemaFromRef(reference.Ref).Properties["explanations"] = &added
	}
	if c.ToolBody == nil {
		return reference
	}
	return &huma.Schema{AnyOf: []*huma.Schema{reference, registry.Schema(reflect.TypeOf(c.ToolBody), true, c.ID+"Tool")}}
}

func (p *Param) describe() *huma.Param {
	out := &huma.Param{Name: p.Name, In: "query", Description: p.Doc, Required: p.Required || p.In == Path}
	if p.In == Path {
		out.In = "path"
	}
	if p.Rest {
		out.Extensions = map[string]any{RestExtension: true}
	}
	switch {
	case p.Example != "" && p.Kind == List:
		out.Example = strings.Split(p.Example, ",")
	case p.Example != "" && p.Kind == Integer:
		out.Example = json.Number(p.Example)
	case p.Example != "":
		out.Example = p.Example
	}
	s := &huma.Schema{Type: huma.TypeString}
	switch p.Kind {
	case Integer:
		low, high := float64(p.Min), float64(p.Max)
		s = &huma.Schema{Type: huma.TypeInteger, Format: "int64", Minimum: &low, Maximum: &high}
		out.Description += fmt.Sprintf(" At most %d; greater values are lowered to it, and meta.clamped is set.", p.Max)
	case Flag:
		s = &huma.Schema{Type: huma.TypeBoolean}
	case Time:
		s.Format = "date-time"
		out.Description += " A date alone is its beginning in UTC."
		if p.Positions {
			s = &huma.Schema{AnyOf: []*huma.Schema{s, {Type: huma.TypeString, Pattern: position.Pattern}}}
			out.Description += " Or a position, as `X-Position` of an answer has it."
		}
	case List:
		explode := false
		fewest, items, shortest, longest := 1, p.MaxItems, 1, maxText
		s = &huma.Schema{Type: huma.TypeArray, Items: &huma.Schema{Type: huma.TypeString, MinLength: &shortest, MaxLength: &longest}, MinItems: &fewest, MaxItems: &items}
		if p.In == Field {
			break
		}
		out.Style, out.Explode = "form", &explode
		out.Description += " May also be repeated."
	case Number:
		zero := 0.0
		s = &huma.Schema{Type: huma.TypeNumber, Format: "double", ExclusiveMinimum: &zero}
		if p.OrZero {
			s.Minimum, s.ExclusiveMinimum = &zero, nil
		}
		if p.Most > 0 {
			s.Maximum = &p.Most
			out.Description += fmt.Sprintf(" At most %g; greater values are lowered to it, and meta.clamped is set.", p.Most)
		}
	case Hints:
		object := &huma.Schema{Type: huma.TypeObject, Properties: map[string]*huma.Schema{}}
		for _, key := range p.Allowed {
			object.Properties[key] = &huma.Schema{Type: p.hintType(key)}
		}
		s = &huma.Schema{AnyOf: []*huma.Schema{object, {Type: huma.TypeString}}}
		if p.In == Query {
			explode := true
			s = object
			out.Style, out.Explode = "deepObject", &explode
			out.Description += " Also as JSON, or one word, which is the " + p.Word + "."
		}
	default:
		for _, a := range p.Allowed {
			s.Enum = append(s.Enum, a)
		}
		if len(p.Allowed) == 0 {
			longest := cmp.Or(p.MaxLength, maxText)
			s.MaxLength, s.Pattern = &longest, p.Pattern
		}
	}
	if p.Default != "" {
		s.Default = p.Default
		if p.Kind == Flag {
			s.Default = p.Default == "true" || p.Default == "1"
		}
		if p.Kind == Integer {
			if n, err := strconv.ParseInt(p.Default, 10, 64); err == nil {
				s.Default = n
			}
		}
	}
	out.Schema = s
	return out
}

// errorResponses are those that any operation can give.
func errorResponses(registry huma.Registry) map[string]*huma.Response {
	schema := registry.Schema(reflect.TypeFor[ErrorBody](), true, "ErrorBody")
	responses := map[string]*huma.Response{}
	for status, what := range map[int]string{
		400: "Invalid parameters (`" + CodeValidation + "`, or `" + CodeNotSupported + "` where one does not work yet with what is asked for), named in `errors`; for SQL a fault of the statement (`SQL_ERROR`), or a limit that it exceeds (`SQL_LIMIT`)",
		401: "Missing or invalid key (`" + CodeInvalidKey + "`)",
		402: "The key's plan does not include this (`" + CodePlanRequired + "`)",
		404: "Not found (`" + CodeNotFound + "`)",
		410: "Not kept so far back (`" + CodeAgedOut + "`); `availableFrom` is since when it is",
		413: "A body of more than 64 kB (`" + CodeTooLarge + "`)",
		415: "A body that is not of the described types, or compressed (`" + CodeMediaType + "`)",
		429: "A limit of the plan is exhausted (`" + CodeRateLimit + "`); see Retry-After",
		431: "A request line and headers of more than 8 kB (`" + CodeHeadersTooLarge + "`)",
		500: "Internal error (`" + CodeInternal + "`)",
		503: "Temporarily unavailable (`" + CodeStarting + "`, `" + CodeOverloaded + "`, `" + CodeStale + "`, `" + CodeUnavailable + "`)",
	} {
		responses[strconv.Itoa(status)] = &huma.Response{Description: what,
			Content: map[string]*huma.MediaType{contentJSON: {Schema: schema}}}
	}
	return responses
}

// describeHealth adds what is served without a key.
func describeHealth(doc *huma.OpenAPI) {
	status := &huma.Schema{Type: huma.TypeObject, Required: []string{"status"},
		Properties: map[string]*huma.Schema{"status": {Type: huma.TypeString, Description: "ok, or ready"}}}
	for path, what := range map[string][4]string{
		"/healthz": {"getHealth", "Whether the process responds", "For a supervisor that restarts it; it asks no dependency. Needs no key.", "ok"},
		"/readyz": {"getReadiness", "Whether all dependencies are ready; a 503 names what is missing", "For a load balancer. What is behind or stale is named in the message of the 503. " +
			"Needs no key.", "ready"},
	} {
		op := &huma.Operation{Method: "GET", Path: path, OperationID: what[0], Tags: []string{"operations"}, Summary: what[1], Description: what[2],
			Security: []map[string][]string{{}},
			Responses: map[string]*huma.Response{"200": {Description: "OK",
				Content: map[string]*huma.MediaType{contentJSON: {Schema: status, Example: map[string]string{"status": what[3]}}}}}}
		if path == "/readyz" {
			op.Responses["503"] = &huma.Response{Ref: errorSchemaRef + "503"}
		}
		doc.AddOperation(op)
	}
	if !slices.ContainsFunc(doc.Tags, func(t *huma.Tag) bool { return t.Name == "operations" }) {
		doc.Tags = append(doc.Tags, &huma.Tag{Name: "operations", Description: tagDescriptions["operations"]})
	}
}
