package query

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/marketlog/marketlog/query/limits"
	"github.com/marketlog/marketlog/query/position"
)

// Request is a checked request. It and its texts are valid until its handler returns: what goes
// into a cache, a key or a goroutine must be copied with strings.Clone.
type Request struct {
	// View is the form that the answer takes.
	View View
	// Now is the query's own clock, by which ages are taken.
	Now time.Time
	// Plan is the caller's, Budget names what its requests count against.
	Plan   *limits.Plan
	Budget string

	endpoint *compiled
	values   []value
	clamped  map[string]int64
}

// position is that of an answer to the request: the one that it asks for, else what a replica serves at the request's own instant.
func (r *Request) position(replica string) (of position.Position, asked bool) {
	for i := range r.endpoint.Params {
		if r.endpoint.Params[i].Positions && r.values[i].set {
			return position.Position{At: r.values[i].at, Replica: r.values[i].replica}, true
		}
	}
	return position.Position{At: r.Now, Replica: replica}, false
}

// Clamped returns the numbers that were lowered to their maximum or to what the plan allows, for meta.clamped; nil if none.
func (r *Request) Clamped() map[string]int64 { return r.clamped }

// Text returns a Text; empty where it is absent and has no default.
func (r *Request) Text(name string) string { return r.value(name).text }

// Integer returns an Integer.
func (r *Request) Integer(name string) int64 { return r.value(name).n }

// Flag returns a Flag; false where it is absent.
func (r *Request) Flag(name string) bool { return r.value(name).n == 1 }

// List returns a List.
func (r *Request) List(name string) []string { return r.value(name).list }

// Number returns a Number; 0 where it is absent and has no default.
func (r *Request) Number(name string) float64 { return r.value(name).number }

// Hints returns Hints by their keys; nil where none was given.
func (r *Request) Hints(name string) map[string]string { return r.value(name).hints }

// Time returns a Time and whether it was given.
func (r *Request) Time(name string) (time.Time, bool) {
	v := r.value(name)
	return v.at, v.set
}

// Declares reports whether the endpoint has a parameter, for handlers that serve several endpoints.
func (r *Request) Declares(name string) bool {
	for i := range r.endpoint.Params {
		if r.endpoint.Params[i].Name == name {
			return true
		}
	}
	return false
}

// Has reports whether a parameter was given or has a default.
func (r *Request) Has(name string) bool { return r.value(name).set }

// stored reports whether the request has a Stored parameter; a Flag that is false asks for nothing.
func (r *Request) stored() bool {
	for i := range r.endpoint.Params {
		if p := &r.endpoint.Params[i]; p.Stored && r.values[i].set && (p.Kind != Flag || r.values[i].n == 1) {
			return true
		}
	}
	return false
}

// take sets the value of the parameter at an index; a field that is an empty text counts as absent.
func (r *Request) take(i int, v value, clamped bool) {
	if !v.set {
		return
	}
	if clamped {
		r.clamp(r.endpoint.Params[i].Name, v.n)
	}
	r.values[i] = v
}

func (r *Request) value(name string) *value {
	for i := range r.endpoint.Params {
		if r.endpoint.Params[i].Name == name {
			return &r.values[i]
		}
	}
	panic(fmt.Sprintf("endpoint %s reads parameter %q, which it does not declare", r.endpoint.ID, name))
}

// fiberArguments reads the parameters of an HTTP request.
type fiberArguments struct {
	c      *fiber.Ctx
	fields map[string]json.RawMessage
}

func (a fiberArguments) path(name string) string { return a.c.Params(name, a.c.Params(restOfPath)) }

func (a fiberArguments) bare() bool { return len(a.c.Context().URI().QueryString()) == 0 }

func (a fiberArguments) has(name string) bool { return a.c.Context().QueryArgs().Has(name) }

func (a fiberArguments) names(f func(name string)) {
	for name := range a.c.Context().QueryArgs().All() {
		f(string(name))
	}
}

func (a fiberArguments) query(name string) string { return a.c.Query(name) }

func (a fiberArguments) field(name string) json.RawMessage {
	if raw := a.fields[name]; string(raw) != "null" {
		return raw
	}
	return nil
}

func (a fiberArguments) hints(name string, keys []string) string {
	texts := map[string]string{}
	for _, key := range keys {
		if text := a.c.Query(name + "[" + key + "]"); text != "" {
			texts[key] = text
		}
	}
	if len(texts) == 0 {
		return ""
	}
	object, err := json.Marshal(texts)
	if err != nil {
		panic(err) // texts always encode
	}
	return string(object)
}

func (a fiberArguments) queryAll(name string) []string {
	var all []string
	for _, b := range a.c.Context().QueryArgs().PeekMulti(name) {
		all = append(all, string(b))
	}
	return all
}
