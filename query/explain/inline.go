package explain

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/limits"
)

// inlined bounds the numbers that an answer explains within itself.
const inlined = 20

// Inlined are the explanations of an answer's own numbers.
type Inlined struct {
	Numbers []*Node `json:"numbers" doc:"Those of the first 20 different numbers that the answer names, with their inputs; note where one could not be explained. They are made right after the answer: a number that has changed since is explained as it is now"`
	LeftOut int     `json:"leftOut,omitempty" doc:"Further numbers that the answer names"`
}

var inlineParam = query.Param{Name: "explain", Kind: query.Flag, Essential: true, Stored: true, NoTool: true, Class: limits.Charts,
	Doc: "Adds explanations: why the first 20 numbers of the answer are what they are, each with its inputs, as explainNumber has them. It is counted as a chart."}

// Inline gives the endpoints whose answers name numbers by `x-explain` the parameter explain, which adds their explanations to the answer. An answer with
// explanations waits for what they are made of besides. Endpoints that have such a parameter already keep it; where theirs is of now only, an answer
// as of an instant has the explanations.
func (u *Unit) Inline(endpoints []query.Endpoint, waiting ...func() string) []query.Endpoint {
	for i := range endpoints {
		e := &endpoints[i]
		named := namedIn(e.Body, e.ToolBody)
		own := slices.ContainsFunc(e.Params, func(p query.Param) bool { return p.Name == inlineParam.Name })
		if e.Method != http.MethodGet || !named.any() || own && !e.ExplainsNow {
			continue
		}
		if !own {
			e.Params = append(slices.Clip(e.Params), inlineParam)
		}
		handle := e.Handle
		e.Explanations = Inlined{}
		e.Handle = func(ctx context.Context, r *query.Request) (query.Answer, error) {
			past := false
			if own {
				_, past = r.Time("asOf")
			}
			if !r.Flag(inlineParam.Name) || own && !past {
				return handle(ctx, r)
			}
			for _, wait := range waiting {
				if why := wait(); why != "" {
					return query.Answer{}, query.Starting(why)
				}
			}
			answer, err := handle(ctx, r)
			if err != nil {
				return answer, err
			}
			return u.inline(ctx, r, named, answer)
		}
	}
	return endpoints
}

// named are the schemas of an answer, which name its numbers.
type named struct {
	registry huma.Registry
	forms    []*huma.Schema
}

func namedIn(forms ...any) named {
	n := named{registry: query.NewSchemas()}
	for _, form := range forms {
		if form != nil {
			t := reflect.TypeOf(form)
			n.forms = append(n.forms, n.registry.Schema(t, true, t.Name()))
		}
	}
	query.OpenSchemas(n.registry)
	return n
}

func (n named) any() bool {
	for _, schema := range n.registry.Map() {
		for _, property := range schema.Properties {
			members, is := property.AdditionalProperties.(*huma.Schema)
			if property.Extensions[query.ExplainExtension] != nil || is && members.Extensions[query.ExplainExtension] != nil {
				return true
			}
		}
	}
	return false
}

// inline adds to an answer the explanations of its numbers.
func (u *Unit) inline(ctx context.Context, r *query.Request, named named, answer query.Answer) (query.Answer, error) {
	var body any
	if err := json.Unmarshal(answer.Body.JSON(), &body); err != nil {
		return query.Answer{}, fmt.Errorf("reading the answer that is explained: %w", err)
	}
	numbers := numbers{registry: named.registry, seen: map[string]bool{}}
	for _, form := range named.forms {
		numbers.walk(form, body, nil)
	}
	w, done, err := u.begin(ctx, r.Now)
	if err != nil {
		return query.Answer{}, err
	}
	defer done()
	if r.Declares("asOf") {
		w.asOf, w.past = r.Time("asOf")
	}
	in := Inlined{Numbers: []*Node{}}
	for _, number := range numbers.found {
		if len(in.Numbers) == inlined || w.over() {
			break
		}
		n, err := w.inlined(ctx, number)
		if err != nil {
			return query.Answer{}, err
		}
		in.Numbers = append(in.Numbers, n)
	}
	in.LeftOut = len(numbers.found) - len(in.Numbers)
	added, err := json.Marshal(in)
	if err != nil {
		return query.Answer{}, fmt.Errorf("encoding explanations: %w", err)
	}
	whole, opened := bytes.CutSuffix(answer.Body.JSON(), []byte("}"))
	if !opened {
		return query.Answer{}, errors.New("an answer that names numbers is not an object")
	}
	whole = append(append(append(slices.Clip(whole), `,"explanations":`...), added...), '}')
	return query.Answer{Body: query.RawBody(whole), Simulated: answer.Simulated || w.simulated}, nil
}

// inlined explains a number by its inputs, or says why that is not possible.
func (w *work) inlined(ctx context.Context, number string) (*Node, error) {
	parts, err := parse(number)
	if err == nil {
		var n *Node
		if n, err = w.explain(ctx, number, parts, 1); err == nil {
			return n, nil
		}
	}
	why := lacks(err)
	if fault := (*query.Error)(nil); why == "" && errors.As(faultOf(err), &fault) {
		why, _, _ = strings.Cut(fault.Message, " Numbers are ")
		for _, texts := range fault.Fields {
			why = strings.Join(texts, "; ")
		}
	}
	if why == "" {
		return nil, err
	}
	return &Node{Number: number, Note: "not explained: " + why}, nil
}

// over means that no further number can be explained in what is left of the time and of what may be read.
func (w *work) over() bool {
	return w.reads >= expandedReads || !w.until.IsZero() && time.Now().After(w.until)
}

// numbers are the names of the numbers in an answer, each once, in the order of its lists.
type numbers struct {
	registry huma.Registry
	found    []string
	seen     map[string]bool
}

// braces are the parts of a name that an answer has, each with what is meant where it has none.
var braces = regexp.MustCompile(`\{[\w.]+(?:\|\w+)?\}`)

// textOf writes a value as a name has it: a time has no exponent.
func textOf(value any) string {
	if number, ok := value.(float64); ok {
		return strconv.FormatFloat(number, 'f', -1, 64)
	}
	return fmt.Sprint(value)
}

// memberKey is what the name of a map's members has in braces for the member's key, pairFirst what that of pairs has for the first of a pair, itemsLeft what that of a list of numbers has
// for how many follow.
const memberKey, pairFirst, itemsLeft = "key", "0", "left"

// walk finds the numbers of a value: what a name has in braces is a field of the same object, or of the nearest around it, with a dot a field
// of such a field, with a bar what is meant where there is none; of a map's members {key} is the member's key, of a list of pairs {0} the first of a pair, of a list of numbers
// {left} how many follow.
func (n *numbers) walk(schema *huma.Schema, value any, around []map[string]any) {
	if schema.Ref != "" {
		schema = n.registry.SchemaFromRef(schema.Ref)
	}
	for _, one := range schema.AnyOf {
		n.walk(one, value, around)
	}
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			if schema.Items != nil {
				n.walk(schema.Items, item, around)
			}
		}
	case map[string]any:
		if v["complete"] == false { // a candle that has not closed
			return
		}
		inside := append(slices.Clip(around), v)
		names := slices.Sorted(maps.Keys(schema.Properties))
		for _, name := range names {
			n.add(schema.Properties[name], v[name], inside)
		}
		for _, name := range names {
			n.walk(schema.Properties[name], v[name], inside)
		}
		if members, is := schema.AdditionalProperties.(*huma.Schema); is {
			for _, name := range slices.Sorted(maps.Keys(v)) {
				n.add(members, v[name], append(slices.Clip(inside), map[string]any{memberKey: name}))
				n.walk(members, v[name], inside)
			}
		}
	}
}

// add adds the number that a value is, if its schema names one, of a list each of its numbers, of a list of pairs the second of each.
func (n *numbers) add(schema *huma.Schema, value any, inside []map[string]any) {
	number, is := schema.Extensions[query.ExplainExtension].(string)
	if items, listed := value.([]any); is && listed {
		for i, item := range items {
			if pair, ok := item.([]any); ok && len(pair) == 2 {
				n.addNamed(number, pair[1], append(slices.Clip(inside), map[string]any{pairFirst: pair[0]}))
				continue
			}
			n.addNamed(number, item, append(slices.Clip(inside), map[string]any{itemsLeft: float64(len(items) - i - 1)}))
		}
		return
	}
	if is {
		n.addNamed(number, value, inside)
	}
}

// merged means that a number is of several intervals of a chart, and its name holds the first of them alone.
func merged(number string, of map[string]any) bool {
	intervals, is := of["intervals"].(float64)
	return is && intervals > 1 && !strings.Contains(number, "{intervals|")
}

// addNamed adds a number by its name, whose parts in braces are found inside.
func (n *numbers) addNamed(number string, value any, inside []map[string]any) {
	if _, numeric := value.(float64); !numeric {
		return
	}
	if merged(number, inside[len(inside)-1]) {
		return
	}
	number = braces.ReplaceAllStringFunc(number, func(field string) string {
		path, absent, _ := strings.Cut(strings.Trim(field, "{}"), "|")
		name, within, dotted := strings.Cut(path, ".")
		for _, object := range slices.Backward(inside) {
			value, ok := object[name]
			if dotted && ok {
				of, _ := value.(map[string]any)
				value, ok = of[within]
			}
			if ok {
				return textOf(value)
			}
		}
		return cmp.Or(absent, field)
	})
	if !n.seen[number] {
		n.found, n.seen[number] = append(n.found, number), true
	}
}
