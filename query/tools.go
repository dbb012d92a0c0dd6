package query

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/marketlog/marketlog/query/limits"
	"github.com/valyala/fasthttp"
)

// ToolDeclaration is an endpoint as those see it who ask by tools.
type ToolDeclaration struct {
	Name        string
	Description string
	Set         ToolSet
	// Input and Output are the JSON Schemas of what a call takes and of what it answers, both of
	// objects. They name no array of types, which some model providers refuse.
	Input, Output json.RawMessage
}

// declareTools finds the endpoints that are tools, and what they declare by the order of their names.
func declareTools(endpoints []*compiled) (map[string]*compiled, []ToolDeclaration, error) {
	tools, list := map[string]*compiled{}, []ToolDeclaration{}
	for _, e := range endpoints {
		if e.Tool == "" {
			continue
		}
		if other := tools[e.Tool]; other != nil {
			return nil, nil, fmt.Errorf("endpoints %s and %s are both the tool %s", other.ID, e.ID, e.Tool)
		}
		tools[e.Tool] = e
		declared, err := e.declareTool()
		if err != nil {
			return nil, nil, fmt.Errorf("describing the tool %s: %w", e.Tool, err)
		}
		list = append(list, declared)
	}
	slices.SortFunc(list, func(a, b ToolDeclaration) int { return cmp.Compare(a.Name, b.Name) })
	return tools, list, nil
}

func (c *compiled) declareTool() (ToolDeclaration, error) {
	input, err := c.toolInput()
	if err != nil {
		return ToolDeclaration{}, err
	}
	output, err := c.toolOutput()
	if err != nil {
		return ToolDeclaration{}, err
	}
	described := strings.TrimSuffix(c.Summary, ".") + "."
	if c.Description != "" {
		described += " " + c.Description
	}
	return ToolDeclaration{Name: c.Tool, Description: described, Set: c.ToolSet, Input: input, Output: output}, nil
}

// Tools declares the endpoints that are tools, by the order of their names.
func (s *Server) Tools() []ToolDeclaration { return s.declared }

// Open means that everybody is served, with or without a key.
func (s *Server) Open() bool { return s.cfg.Auth == AuthOpen }

// Authenticate identifies the caller by a request's header. Its error is an Error, or a fault of ours.
func (s *Server) Authenticate(ctx *fasthttp.RequestCtx, now time.Time) (Caller, error) {
	return s.authenticate(ctx, now)
}

// RequirePlan refuses a caller whose plan lacks a feature. It counts nothing and writes into the headers of
// ctx the state of the caller's limits.
func (s *Server) RequirePlan(ctx *fasthttp.RequestCtx, who Caller, needs limits.Feature, now time.Time) error {
	s.setLimitHeaders(ctx, s.deps.Limiter.Peek(who.Grant.Budget, who.Plan, limits.Plain, now))
	if !who.Plan.Allows(needs) {
		return s.planRequired(who.Plan, needs)
	}
	return nil
}

// SendPublic answers with a document that everybody may read and keep for some minutes.
func (s *Server) SendPublic(ctx *fasthttp.RequestCtx, body *Body) {
	s.send(ctx, Answer{Body: body}, []byte("public, max-age=300"))
}

// CallTool asks an endpoint as its tool does: in the tool view, with arguments by name. A call counts
// as a request does, and its limits are reported in the headers of ctx. The tool must be one of Tools.
func (s *Server) CallTool(ctx *fasthttp.RequestCtx, who Caller, tool string, arguments map[string]json.RawMessage, now time.Time) (Answer, error) {
	e := s.tools[tool]
	answer, err := s.callTool(ctx, who, e, arguments, now)
	status := http.StatusOK
	if err != nil {
		shown, _ := asError(err)
		status = shown.Status
	}
	e.metrics.observe(status, time.Since(now))
	return answer, err
}

func (s *Server) callTool(ctx *fasthttp.RequestCtx, who Caller, e *compiled, arguments map[string]json.RawMessage, now time.Time) (Answer, error) {
	if !who.Plan.Allows(e.Needs) {
		return Answer{}, s.RequirePlan(ctx, who, e.Needs, now)
	}
	verdict, err := s.admit(ctx, who, e.Class, now)
	if err != nil {
		return Answer{}, err
	}
	args, err := e.toolArguments(arguments)
	if err != nil {
		return Answer{}, err
	}
	answer, err := s.answer(ctx, e, who, args)
	if err != nil {
		if shown, _ := asError(err); shown.Status >= http.StatusInternalServerError {
			s.deps.Limiter.Undo(who.Grant.Budget, who.Plan, e.Class, verdict)
		}
	}
	return answer, err
}

// toolArguments are the arguments of a tool's call: the texts of parameters, and the fields of a
// body as they stand.
type toolArguments struct {
	texts  map[string][]string
	fields map[string]json.RawMessage // all arguments as they were given
}

// toolArguments reads the arguments that the endpoint declares; others are ignored, as in a query.
func (c *compiled) toolArguments(arguments map[string]json.RawMessage) (toolArguments, error) {
	args := toolArguments{texts: map[string][]string{viewParam.Name: {"tool"}}, fields: arguments}
	var faults map[string][]string
	for i := range c.Params {
		p := &c.Params[i]
		raw, given := arguments[p.Name]
		if given && p.NoTool {
			if faults == nil {
				faults = map[string][]string{}
			}
			faults[p.Name] = []string{"is not an argument of this tool: leave it out"}
			continue
		}
		if p.ToolDefault != "" && (!given || string(raw) == "null") {
			args.texts[p.Name] = []string{p.ToolDefault}
			continue
		}
		if !given || p.In == Field || p.Name == viewParam.Name || string(raw) == "null" {
			continue
		}
		texts, ok := p.argumentTexts(raw)
		if !ok {
			if faults == nil {
				faults = map[string][]string{}
			}
			faults[p.Name] = []string{"must be " + p.argumentKind()}
			continue
		}
		args.texts[p.Name] = texts
	}
	if faults != nil {
		return args, &Error{Status: http.StatusBadRequest, Code: CodeValidation, Message: "the request has invalid parameters", Fields: faults}
	}
	return args, nil
}

// argumentTexts writes a JSON value as a query would; false for one of a kind that the parameter never has.
func (p *Param) argumentTexts(raw json.RawMessage) ([]string, bool) {
	switch raw[0] {
	case '"':
		var text string
		if json.Unmarshal(raw, &text) != nil {
			return nil, false
		}
		return []string{text}, true
	case '[':
		var items []string
		if p.Kind != List || json.Unmarshal(raw, &items) != nil {
			return nil, false
		}
		return items, true
	case '{':
		return []string{string(raw)}, p.Kind == Hints
	case 't', 'f':
		return []string{string(raw)}, p.Kind == Flag
	}
	if p.Kind == Integer {
		// What JSON calls an integer may be written as 10.0 or 1e1.
		if f, err := strconv.ParseFloat(string(raw), 64); err == nil && f == float64(int64(f)) && max(f, -f) < 1<<53 {
			return []string{strconv.FormatInt(int64(f), 10)}, true
		}
	}
	return []string{string(raw)}, p.Kind == Integer || p.Kind == Number
}

// argumentKind reports what a tool's argument is to be.
func (p *Param) argumentKind() string {
	switch p.Kind {
	case Integer:
		return "an integer"
	case Flag:
		return "true or false"
	case List:
		return "an array of strings"
	case Number:
		return "a number"
	case Hints:
		return "a string or an object of strings"
	default:
		return "a string"
	}
}

// path escapes what it returns, since a path's parameters are.
func (a toolArguments) path(name string) string { return url.PathEscape(a.query(name)) }

func (a toolArguments) query(name string) string {
	if texts := a.texts[name]; len(texts) > 0 {
		return texts[0]
	}
	return ""
}

func (a toolArguments) has(name string) bool {
	raw, given := a.fields[name]
	return given && string(raw) != "null"
}

func (a toolArguments) names(f func(name string)) {
	for _, name := range slices.Sorted(maps.Keys(a.fields)) {
		f(name)
	}
}

func (a toolArguments) queryAll(name string) []string { return a.texts[name] }

func (toolArguments) hints(string, []string) string { return "" }

func (a toolArguments) field(name string) json.RawMessage {
	if raw := a.fields[name]; string(raw) != "null" {
		return raw
	}
	return nil
}

func (toolArguments) bare() bool { return false }
