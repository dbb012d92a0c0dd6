package query

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/marketlog/marketlog/query/limits"
)

// byID indexes endpoints by their IDs.
func byID(endpoints []*compiled) map[string]*compiled {
	index := make(map[string]*compiled, len(endpoints))
	for _, e := range endpoints {
		index[e.ID] = e
	}
	return index
}

// Ask asks an endpoint, by its ID, for the caller of another request that is under way: the answer is the one that the caller
// would get over HTTP for the same parameters, and counts against the same limits. Parameters are texts as in a query. Its error
// is an Error, or a fault of ours.
func (s *Server) Ask(ctx *fasthttp.RequestCtx, who Caller, id string, params map[string]string, now time.Time) (Answer, error) {
	e := s.operations[id]
	if e == nil {
		return Answer{}, fmt.Errorf("asking for %s: there is no such operation", id)
	}
	answer, err := s.ask(ctx, who, e, params, now)
	status := http.StatusOK
	if err != nil {
		shown, _ := asError(err)
		status = shown.Status
	}
	e.metrics.observe(status, time.Since(now))
	return answer, err
}

func (s *Server) ask(ctx *fasthttp.RequestCtx, who Caller, e *compiled, params map[string]string, now time.Time) (Answer, error) {
	if !who.Plan.Allows(e.Needs) {
		return Answer{}, s.planRequired(who.Plan, e.Needs)
	}
	var verdict limits.Decision
	text, given := params[e.costly]
	class := e.class(given, text)
	if !e.Uncounted {
		var err error
		if verdict, err = s.admit(nil, who, class, now); err != nil {
			return Answer{}, err
		}
	}
	answer, err := s.answer(ctx, e, who, namedArguments(params))
	if err != nil && !e.Uncounted {
		if shown, _ := asError(err); shown.Status >= http.StatusInternalServerError {
			s.deps.Limiter.Undo(who.Grant.Budget, who.Plan, class, verdict)
		}
	}
	return answer, err
}

// namedArguments are parameters as texts, by name.
type namedArguments map[string]string

// path escapes what it returns, since a path's parameters are.
func (a namedArguments) path(name string) string { return url.PathEscape(a[name]) }

func (a namedArguments) query(name string) string { return a[name] }

func (a namedArguments) queryAll(name string) []string {
	if text, ok := a[name]; ok {
		return []string{text}
	}
	return nil
}

func (a namedArguments) names(f func(name string)) {
	for _, name := range slices.Sorted(maps.Keys(a)) {
		f(name)
	}
}

func (namedArguments) hints(string, []string) string { return "" }

func (namedArguments) field(string) json.RawMessage { return nil }

func (namedArguments) bare() bool { return false }

func (a namedArguments) has(name string) bool {
	_, ok := a[name]
	return ok
}
