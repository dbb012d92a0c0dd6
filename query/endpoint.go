package query

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/marketlog/marketlog/query/limits"
	"github.com/marketlog/marketlog/query/position"
)

// View is which of the two documented forms an answer takes.
type View uint8

// The two views. An endpoint that has one form answers it in both.
const (
	Reference View = iota
	Tool
)

// ToolSet is which tools are offered.
type ToolSet uint8

// The sets of tools, each with those before it.
const (
	// DefaultTools are offered unless a client asks for more.
	DefaultTools ToolSet = iota
	// FullTools are offered to clients that ask for all, with `?toolset=full`.
	FullTools
)

// Endpoint is the one declaration of an endpoint.
type Endpoint struct {
	// Method is GET, or POST for what is asked by a JSON object. Either only reads.
	Method string
	// Path writes its parameters as {name}.
	Path string
	// ID is the operation's name, unique, in camel case.
	ID          string
	Tag         string
	Summary     string
	Description string
	Params      []Param
	// Body and ToolBody are zero values of the types of a success's body, in the reference and in
	// the tool view; ToolBody is nil where both are one.
	Body, ToolBody any
	// Explanations is a zero value of the type of what the parameter explain adds to the body; nil where there is none.
	Explanations any
	// ExplainsNow means that Handle answers the parameter explain itself, but not for an answer as of an instant, which has Explanations instead.
	ExplainsNow bool
	// Tool is the name of the tool that asks this endpoint, in snake case, unique; empty for none.
	Tool string
	// ToolSet is the smallest set of tools that Tool belongs to.
	ToolSet ToolSet
	// NotFound means that something named in the path may not exist.
	NotFound bool
	// MaxAge is how long a client may reuse an answer; 0 makes it ask again each time.
	MaxAge time.Duration
	// Class is what a request costs.
	Class limits.Class
	// Uncounted requests count against no limit. Such an endpoint is not a tool.
	Uncounted bool
	// Needs is what the plan must allow.
	Needs limits.Feature
	// Hot means that Handle only reads memory, but for requests with a Stored parameter: it is routed first and bypasses the
	// bound on requests that wait for a store.
	Hot bool
	// Handle answers a request whose parameters were checked. The context ends with the server's
	// patience; the request is valid until Handle returns.
	Handle func(context.Context, *Request) (Answer, error)
}

// Answer is a success.
type Answer struct {
	// Body is the encoded answer, which many requests may share.
	Body *Body
	// Simulated means that invented numbers are in it.
	Simulated bool
	// MadeAt is when it was made, if that was before the request.
	MadeAt time.Time
	// Position is what it was made of, which the server notes.
	Position position.Position
}

// of is the answer with its position.
func (a Answer) of(at position.Position) Answer {
	if !a.MadeAt.IsZero() {
		at.At = a.MadeAt
	}
	a.Position = at
	return a
}

// Encode answers with the JSON of a value.
func Encode(v any) (Answer, error) {
	body, err := NewBody(v)
	return Answer{Body: body}, err
}

// compiled is an endpoint with everything that requests need worked out beforehand.
type compiled struct {
	*Endpoint
	segments []string
	cache    []byte
	query    []int // indexes of Params that are in the query
	defaults []value
	// refused are the essential parameters of other endpoints.
	refused []refusal
	// planned, stored and agesOut mean that one of Params is or does.
	planned, stored, agesOut bool
	// costly is the parameter, in the query, with a class of its own, which is costlyClass; empty for none.
	costly      string
	costlyClass limits.Class
	metrics     *operationMetrics
}

// refusal is a parameter that an endpoint does not have, and what it answers to one who gives it.
type refusal struct{ name, why string }

// refuseEssential finds the essential parameters of all endpoints, for each the ones that it does not declare. No endpoint has
// a method to choose, nor an instant of knowledge, which people ask explanations and the past for.
func refuseEssential(endpoints []*compiled) {
	essential := map[string][]string{"method": nil, "knowledge": nil}
	for _, c := range endpoints {
		for i := range c.Params {
			if c.Params[i].Essential {
				essential[c.Params[i].Name] = append(essential[c.Params[i].Name], c.Path)
			}
		}
	}
	slices.Sort(essential[asOf])
	for _, c := range endpoints {
		for _, name := range slices.Sorted(maps.Keys(essential)) {
			if slices.ContainsFunc(c.Params, func(p Param) bool { return p.Name == name }) {
				continue
			}
			why := "is not a parameter of this operation: leave it out"
			if having := essential[name]; name == asOf && len(having) > 0 {
				why += ". What it answers is not kept as it was served; these have asOf: " + strings.Join(having, ", ")
			}
			c.refused = append(c.refused, refusal{name, why})
		}
	}
}

// class is what a request costs. Its costly parameter, if it has been given, counts unless it is a flag that is false.
func (c *compiled) class(given bool, text string) limits.Class {
	if given && text != "0" && !strings.EqualFold(text, "false") {
		return c.costlyClass
	}
	return c.Class
}

func compile(e Endpoint) (*compiled, error) {
	c := &compiled{Endpoint: &e, segments: strings.Split(strings.Trim(e.Path, "/"), "/"), cache: []byte("private, max-age=0, must-revalidate")}
	switch {
	case e.Method == http.MethodPost:
		c.cache = []byte("no-store")
	case e.MaxAge > 0:
		c.cache = fmt.Appendf(nil, "private, max-age=%d", int(e.MaxAge.Seconds()))
	}
	if e.Method != http.MethodGet && e.Method != http.MethodPost || e.ID == "" || e.Summary == "" || e.Body == nil || e.Handle == nil {
		return nil, fmt.Errorf("endpoint %s %s: method (GET or POST), ID, Summary, Body and Handle are needed", e.Method, e.Path)
	}
	e.Params = append(e.Params[:len(e.Params):len(e.Params)], viewParam)
	inPath := 0
	for i, p := range e.Params {
		v, err := p.compile()
		if err != nil {
			return nil, fmt.Errorf("endpoint %s, parameter %s: %w", e.ID, p.Name, err)
		}
		c.defaults = append(c.defaults, v)
		c.planned, c.stored, c.agesOut = c.planned || p.Planned, c.stored || p.Stored, c.agesOut || p.AgesOut
		if p.Class > e.Class {
			c.costly, c.costlyClass = p.Name, p.Class
		}
		if p.In == Path {
			inPath++
			if !strings.Contains(e.Path, "{"+p.Name+"}") {
				return nil, fmt.Errorf("endpoint %s: {%s} is not in its path", e.ID, p.Name)
			}
			continue
		}
		if p.In == Field {
			if e.Method != http.MethodPost {
				return nil, fmt.Errorf("endpoint %s: %s is a field of a body, which only a POST has", e.ID, p.Name)
			}
			continue
		}
		c.query = append(c.query, i)
	}
	if inPath != strings.Count(e.Path, "{") {
		return nil, fmt.Errorf("endpoint %s: %s has parameters that are not declared", e.ID, e.Path)
	}
	return c, nil
}

// routePath writes the path as Fiber does.
func (c *compiled) routePath() string {
	path := c.Path
	for _, p := range c.Params {
		if p.Rest {
			path = strings.ReplaceAll(path, "{"+p.Name+"}", restOfPath)
		}
	}
	return strings.NewReplacer("{", ":", "}", "").Replace(path)
}

// restOfPath is how Fiber writes, and names, a parameter that is the rest of a path.
const restOfPath = "+"

// before means that a request for c's path could be matched by other, which has a parameter where c
// has a fixed word.
func (c *compiled) before(other *compiled) bool {
	if len(c.segments) != len(other.segments) || c.Method != other.Method {
		return false
	}
	for i, s := range c.segments {
		o := other.segments[i]
		switch fixed, otherFixed := s[0] != '{', o[0] != '{'; {
		case fixed && otherFixed && s != o:
			return false
		case fixed != otherFixed:
			return fixed
		}
	}
	return false
}

// order puts hot endpoints first, since each route before a match costs time, but never after a
// path with a parameter where its own has a fixed word: the first match wins.
func order(endpoints []*compiled) []*compiled {
	var ordered []*compiled
	placed := map[*compiled]bool{}
	var place func(*compiled)
	place = func(c *compiled) {
		if placed[c] {
			return
		}
		placed[c] = true
		for _, o := range endpoints {
			if o.before(c) {
				place(o)
			}
		}
		ordered = append(ordered, c)
	}
	for _, hot := range []bool{true, false} {
		for _, c := range endpoints {
			if c.Hot == hot {
				place(c)
			}
		}
	}
	return ordered
}
