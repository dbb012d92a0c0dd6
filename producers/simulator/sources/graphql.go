package sources

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/marketlog/marketlog/producers/simulator/provider"
)

// graphQLField is what a query selects: a member of an object, with the text of its arguments and, of an object, what of it.
type graphQLField struct {
	name, arguments string
	of              []graphQLField
}

// graphQL serves queries without variables, aliases and fragments: resolve returns what the only field at the top has, and of
// that as much is answered as the query selects. A field that does not exist is an error, as is one that is selected in
// the wrong way.
func graphQL(resolve map[string]func(arguments string) any) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var asked struct {
			Query string `json:"query"`
		}
		refuse := func(err error) {
			provider.Respond(w, http.StatusBadRequest, map[string]any{"errors": []any{map[string]any{
				"message": err.Error(), "extensions": map[string]any{"code": "GRAPHQL_VALIDATION_FAILED"},
			}}})
		}
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<16)).Decode(&asked); err != nil {
			refuse(errors.New("the body is no JSON with a query"))
			return
		}
		p := graphQLParser{rest: strings.TrimPrefix(strings.TrimSpace(asked.Query), "query")}
		fields, err := p.selection(0)
		if err != nil {
			refuse(err)
			return
		}
		data := map[string]any{}
		for _, f := range fields {
			find, ok := resolve[f.name]
			if !ok {
				refuse(fmt.Errorf("Cannot query field %q on type \"Query\".", f.name)) //nolint:staticcheck,revive // as servers spell it
				return
			}
			if data[f.name], err = f.of1(find(f.arguments)); err != nil {
				refuse(err)
				return
			}
		}
		provider.Respond(w, http.StatusOK, map[string]any{"data": data})
	}
}

// of1 is as much of a value as was selected.
func (f *graphQLField) of1(value any) (any, error) {
	switch v := value.(type) {
	case []any:
		list := make([]any, len(v))
		for i := range v {
			var err error
			if list[i], err = f.of1(v[i]); err != nil {
				return nil, err
			}
		}
		return list, nil
	case map[string]any:
		if len(f.of) == 0 {
			return nil, fmt.Errorf("Field %q must have a selection of subfields.", f.name) //nolint:staticcheck,revive // as servers spell it
		}
		object := make(map[string]any, len(f.of))
		for _, member := range f.of {
			part, ok := v[member.name]
			if !ok {
				return nil, fmt.Errorf("Cannot query field %q on the type of %q.", member.name, f.name) //nolint:staticcheck,revive // as servers spell it
			}
			var err error
			if object[member.name], err = member.of1(part); err != nil {
				return nil, err
			}
		}
		return object, nil
	default:
		if value != nil && len(f.of) > 0 {
			return nil, fmt.Errorf("Field %q must not have a selection since it has no subfields.", f.name) //nolint:staticcheck,revive // as servers spell it
		}
		return value, nil
	}
}

// maxSelected is how deep selections may be nested.
const maxSelected = 12

type graphQLParser struct{ rest string }

func (p *graphQLParser) selection(depth int) ([]graphQLField, error) {
	if p.skip(); depth > maxSelected || !strings.HasPrefix(p.rest, "{") {
		return nil, errors.New("Syntax Error: Expected \"{\".") //nolint:staticcheck,revive // as servers spell it
	}
	p.rest = p.rest[1:]
	var fields []graphQLField
	for {
		p.skip()
		if strings.HasPrefix(p.rest, "}") && len(fields) > 0 {
			p.rest = p.rest[1:]
			return fields, nil
		}
		f := graphQLField{name: p.word()}
		if f.name == "" {
			return nil, fmt.Errorf("Syntax Error: Unexpected %.10q.", p.rest) //nolint:staticcheck,revive // as servers spell it
		}
		if p.skip(); strings.HasPrefix(p.rest, "(") {
			end := strings.IndexByte(p.rest, ')')
			if end < 0 {
				return nil, errors.New("Syntax Error: Expected \")\".") //nolint:staticcheck,revive // as servers spell it
			}
			f.arguments, p.rest = p.rest[1:end], p.rest[end+1:]
		}
		if p.skip(); strings.HasPrefix(p.rest, "{") {
			var err error
			if f.of, err = p.selection(depth + 1); err != nil {
				return nil, err
			}
		}
		fields = append(fields, f)
	}
}

func (p *graphQLParser) skip() { p.rest = strings.TrimLeft(p.rest, " \t\r\n,") }

func (p *graphQLParser) word() string {
	n := 0
	for n < len(p.rest) && (p.rest[n] == '_' || p.rest[n]|0x20 >= 'a' && p.rest[n]|0x20 <= 'z' || p.rest[n] >= '0' && p.rest[n] <= '9') {
		n++
	}
	word := p.rest[:n]
	p.rest = p.rest[n:]
	return word
}
