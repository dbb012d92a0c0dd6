package e2e

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/marketlog/marketlog/query/querytest"
)

// specification is the interface as its authors wrote it down: tools/interface makes the file of their page.
type specification struct {
	Operations []specified
	Resources  map[string][]specifiedField
}

type specified struct {
	Method, Path string
	Parameters   []specifiedParameter
	Response     []specifiedField
}

type specifiedParameter struct {
	Name, In, Type, Default string
	Required                bool
	Values                  []string
	Most                    int
}

type specifiedField struct {
	Name, Type         string
	Nullable, Required bool
	Resources          []string
	Fields             []specifiedField
}

func readSpecification(t *testing.T) (s specification) {
	t.Helper()
	text, err := os.ReadFile("testdata/interface.json")
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err != nil || len(s.Operations) < 50 || len(s.Resources) < 20 {
		t.Fatalf("got %d operations and %d resources, %v; want those of the specification", len(s.Operations), len(s.Resources), err)
	}
	return s
}

// examples are values of parameters that are there on the demo, by path and name, or by name alone.
var examples = map[string]string{
	"symbol":                                "BTC",
	"coinId":                                "bitcoin",
	"provider":                              "lido",
	"coin":                                  "ethereum",
	"country":                               "US",
	"symbols":                               "btc,eth",
	"coins":                                 "bitcoin,ethereum",
	"q":                                     "bit",
	"search":                                "bit",
	"source":                                "kraken",
	"price":                                 "50000",
	"context":                               "usd",
	"category":                              "lending",
	"region":                                "US",
	"from":                                  "2020-01-01T00:00:00Z",
	"to":                                    "2100-01-01T00:00:00Z",
	"segment":                               "top100",
	"window":                                "30d",
	"vs":                                    "usd",
	"/api/v1/rates/{symbol} symbol":         "ETH",
	"/api/v1/rates/{symbol}/history symbol": "USDC",
	"/api/v1/rates symbol":                  "ETH",
	"/api/v1/rates/summary symbol":          "ETH",
	"/api/v1/stablecoins/{symbol}/peg-stability symbol": "USDT",
	"/api/v1/fiat/{symbol} symbol":                      "EUR",
	"/api/v1/charts/{coinId}/rates/{category} coinId":   "ethereum",
	"/api/v1/coins/{coinId}/networks coinId":            "usd-coin",
	"/api/v1/coins category":                            "stablecoins",
	"/api/v1/coins/markets category":                    "stablecoins",
	"/api/v1/prices/{symbol} region":                    "JP",
}

func (o specified) example(p specifiedParameter) string {
	for _, name := range []string{o.Path + " " + p.Name, p.Name} {
		if value, ok := examples[name]; ok && (len(p.Values) == 0 || slices.Contains(p.Values, value)) {
			return value
		}
	}
	switch {
	case len(p.Values) > 0:
		return p.Values[0]
	case p.Type == "boolean":
		return "true"
	case p.Type == "integer":
		return "7"
	}
	return ""
}

// request is a call of the operation with what it needs and the given parameters.
func (o specified) request(more map[string]string) (path, body string) {
	path = o.Path
	query, fields := url.Values{}, map[string]any{}
	for _, p := range o.Parameters {
		value, given := more[p.Name]
		if !given {
			value = o.example(p)
		}
		switch {
		case p.In == "path":
			path = strings.ReplaceAll(path, "{"+p.Name+"}", url.PathEscape(value))
		case !given && !p.Required && !(o.Path == "/api/v1/rates/history" && p.Name == "coin"): // one of two
		case p.In == "query":
			query.Set(p.Name, value)
		case p.Type == "array":
			fields[p.Name] = strings.Split(value, ",")
		case p.Type == "object" || p.Name == "context":
			fields[p.Name] = map[string]any{"exchange": "kraken"}
		default:
			fields[p.Name] = value
		}
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	if len(fields) > 0 {
		text, err := json.Marshal(fields)
		if err != nil {
			panic(err) // texts, lists and maps of texts
		}
		body = string(text)
	}
	return path, body
}

// A client that knows the specification alone finds every operation with every parameter, each takes every value that the
// specification names and refuses one of another type, and the answer holds the fields of the documented types.
func TestDemoIsAsSpecified(t *testing.T) {
	d := filledDemo(t)
	s := readSpecification(t)
	document := querytest.ReadDocument(t, d.base)
	deadline := time.Now().Add(demoPatience)
	shown, seen := 0, map[string]bool{}
	for _, o := range s.Operations {
		item := document.Paths.Find(o.Path)
		if item == nil || item.GetOperation(o.Method) == nil {
			t.Errorf("%s %s is specified and not in the server's document", o.Method, o.Path)
			continue
		}
		for _, p := range o.Parameters {
			if p.In != "body" {
				declaresParameter(t, o, p, item.GetOperation(o.Method).Parameters.GetByInAndName(p.In, p.Name))
			}
			d.takesParameter(t, o, p)
		}
		fields := expanded(o.Response)
		if len(fields) == 0 {
			continue
		}
		shown++
		for ; ; time.Sleep(time.Second) { // what is folded by minutes comes some minutes after the start
			wrong := s.differs(t, d, o, fields, seen)
			if wrong == "" {
				break
			}
			if time.Now().After(deadline) {
				t.Errorf("%s %s: %s", o.Method, o.Path, wrong)
				break
			}
		}
	}
	for name, fields := range s.Resources {
		for _, f := range fields {
			if !seen[name+": "+f.Name] {
				t.Logf("no answer held %s of %s", f.Name, name)
			}
		}
	}
	t.Logf("%d operations, of %d of them the answer; %d fields held a value", len(s.Operations), shown, len(seen))
	if shown < 30 || len(seen) < 150 {
		t.Errorf("%d answers with %d fields were looked at, want at least 30 with 150", shown, len(seen))
	}
}

// declaresParameter holds the parameter in the server's document to the specification.
func declaresParameter(t *testing.T, o specified, p specifiedParameter, declared *openapi3.Parameter) {
	t.Helper()
	name := fmt.Sprintf("%s %s: %s parameter %s", o.Method, o.Path, p.In, p.Name)
	if declared == nil {
		t.Errorf("%s is not in the server's document", name)
		return
	}
	schema := declared.Schema.Value
	if declared.Required != p.Required {
		t.Errorf("%s: required is %v, want %v", name, declared.Required, p.Required)
	}
	if p.Type != "" && schema.Type != nil && !schema.Type.Is(p.Type) && !(schema.Type.Is("array") && p.Type == "string") &&
		!(schema.Type.Is("integer") && p.Type == "number") {
		t.Errorf("%s: type is %v, want %s", name, schema.Type, p.Type)
	}
	if p.Default != "" && schema.Default != nil && fmt.Sprint(schema.Default) != p.Default {
		t.Errorf("%s: default is %v, want %s", name, schema.Default, p.Default)
	}
	for _, value := range p.Values {
		if len(schema.Enum) > 0 && !slices.Contains(schema.Enum, any(value)) {
			t.Errorf("%s: values are %v, want also %s", name, schema.Enum, value)
		}
	}
	if p.Most > 0 && schema.Max != nil && *schema.Max < float64(p.Most) {
		t.Errorf("%s: at most %v, want %d", name, *schema.Max, p.Most)
	}
}

// takesParameter gives the parameter each of its values, and one that it must refuse.
func (d *demo) takesParameter(t *testing.T, o specified, p specifiedParameter) {
	t.Helper()
	values := slices.Clone(p.Values)
	switch {
	case p.Type == "boolean":
		values = []string{"true", "false"}
	case p.Most > 0 && p.Type == "integer":
		values = []string{"1", strconv.Itoa(p.Most)}
	case p.Default != "":
		values = append(values, p.Default)
	case len(values) == 0:
		values = []string{o.example(p)}
	}
	for _, value := range values {
		if status := d.statusOf(t, o, p.Name, value); status != http.StatusOK && status != http.StatusServiceUnavailable {
			t.Errorf("%s %s with %s=%q: got %d, want 200", o.Method, o.Path, p.Name, value, status)
		}
	}
	if len(p.Values) > 0 || p.Type == "integer" || p.Type == "boolean" || p.Type == "number" {
		if status := d.statusOf(
			t,
			o,
			p.Name,
			"no such value",
		); status != http.StatusBadRequest &&
			!(p.In == "path" && status == http.StatusNotFound) {
			t.Errorf("%s %s with %s=\"no such value\": got %d, want 400", o.Method, o.Path, p.Name, status)
		}
	}
}

func (d *demo) statusOf(t *testing.T, o specified, name, value string) int {
	t.Helper()
	path, body := o.request(map[string]string{name: value})
	response, err := d.do(o.Method, path, body)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	return response.StatusCode
}

// expanded are the fields of an answer; the one without a name is the whole answer, in its envelope.
func expanded(response []specifiedField) (fields []specifiedField) {
	for _, f := range response {
		if f.Name == "" {
			f.Name = "data"
		}
		fields = append(fields, f)
	}
	return fields
}

// differs reports how the answers in both views are not as specified; "" where they are. A field may be in one view only, and
// the envelope "data" may be left out.
func (s specification) differs(t *testing.T, d *demo, o specified, fields []specifiedField, seen map[string]bool) string {
	t.Helper()
	var wrong []string
	found := map[string]bool{}
	for _, view := range []string{"reference", "tool"} {
		path, body := o.request(nil)
		response, err := d.do(o.Method, withQuery(path, "view", view), body)
		if err != nil {
			t.Fatal(err)
		}
		var answer map[string]any
		err = json.NewDecoder(response.Body).Decode(&answer)
		response.Body.Close()
		if err != nil || response.StatusCode != http.StatusOK {
			return fmt.Sprintf("status %d, %v", response.StatusCode, err)
		}
		for _, f := range fields {
			value, ok := answer[f.Name]
			if inner, wrapped := answer["data"].(map[string]any); !ok && wrapped {
				value, ok = inner[f.Name]
			}
			if !ok && f.Name == "data" {
				value, ok = any(answer), true
			}
			if !ok {
				continue
			}
			if fault := s.fault(f, value, o.Path, seen); fault != "" {
				wrong = append(wrong, view+" view: "+fault)
				continue
			}
			found[f.Name] = true
		}
	}
	var missing []string
	for _, f := range fields {
		if !found[f.Name] {
			missing = append(missing, f.Name)
		}
	}
	if len(missing) == 0 {
		return ""
	}
	return fmt.Sprintf("no view holds %s as specified; %s", strings.Join(missing, ", "), strings.Join(wrong, "; "))
}

// fault reports how a value is not as specified; "" where it is. What is seen with a value is noted.
func (s specification) fault(f specifiedField, value any, path string, seen map[string]bool) string {
	name := path + " " + f.Name
	if value == nil && (f.Nullable || !f.Required) {
		return ""
	}
	right, elements := true, []any(nil)
	switch f.Type {
	case "string":
		_, right = value.(string)
	case "number":
		_, right = value.(float64)
	case "integer":
		number, ok := value.(float64)
		right = ok && number == math.Trunc(number)
	case "boolean":
		_, right = value.(bool)
	case "array":
		elements, right = value.([]any)
	case "object":
		_, right = value.(map[string]any)
		elements = []any{value}
	case "map":
		var entries map[string]any
		entries, right = value.(map[string]any)
		for _, entry := range entries {
			elements = append(elements, entry)
		}
	}
	if !right {
		return fmt.Sprintf("%s is %s, want %s", f.Name, excerpt(value), f.Type)
	}
	if len(f.Resources) > 0 && len(elements) == 0 && !emptyOnADemo[f.Name] {
		return f.Name + " is empty"
	}
	seen[name] = true
	forms := map[string][]specifiedField{}
	for _, resource := range f.Resources {
		forms[resource] = s.Resources[resource]
	}
	if len(forms) == 0 {
		forms[name] = f.Fields
	}
	for _, element := range elements {
		var faults []string
		for form, fields := range forms {
			if fault := s.formFault(form, fields, element, seen); fault != "" {
				faults = append(faults, fault)
			}
		}
		if len(faults) == len(forms) {
			return f.Name + ": " + strings.Join(faults, " or ")
		}
	}
	return ""
}

// formFault reports how an object is not of a form: a field of it is of another type, or it has none of the required ones.
func (s specification) formFault(name string, form []specifiedField, element any, seen map[string]bool) string {
	if len(form) == 0 {
		return ""
	}
	object, ok := element.(map[string]any)
	if !ok {
		return fmt.Sprintf("%s is no object", excerpt(element))
	}
	has := 0
	for _, f := range form {
		value, ok := object[f.Name]
		if !ok {
			continue
		}
		has++
		if fault := s.fault(f, value, name, seen); fault != "" {
			return fault
		}
		if value != nil {
			seen[name+": "+f.Name] = true
		}
	}
	for _, f := range form {
		if _, ok := object[f.Name]; f.Required && !ok {
			return fmt.Sprintf("%s lacks %s", excerpt(object), f.Name)
		}
	}
	if has == 0 {
		return fmt.Sprintf("%s has none of the fields", excerpt(object))
	}
	return ""
}

// emptyOnADemo are lists that a demo of a few minutes need not fill.
var emptyOnADemo = map[string]bool{"points": true}
