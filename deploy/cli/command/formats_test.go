package command

import (
	"encoding/json"
	"strings"
	"testing"
)

type listed struct {
	Name  string            `json:"name"`
	Until string            `json:"until,omitempty"`
	Parts []int             `json:"parts,omitempty"`
	Tags  map[string]string `json:"tags,omitempty"`
}

func TestObjectsInEachFormat(t *testing.T) {
	answer := json.RawMessage(`{"data":{"symbol":"BTC","rates":[{"provider":"a","rate":1.50,"metadata":{"chain":"x, y"}},{"provider":"b","rate":null,"term":"7 d"}]},"meta":{"total":2}}`)
	for _, c := range []struct {
		name, format string
		objects      []any
		want         string
	}{
		{"json", FormatJSON, []any{listed{Name: "a"}, listed{Name: "b"}}, "{\"name\":\"a\"}\n{\"name\":\"b\"}\n"},
		{
			"yaml quotes what would be read as something else", FormatYAML,
			[]any{listed{Name: "007", Tags: map[string]string{"on": "yes: no"}}, json.RawMessage(`{"z":[1.50,"1.50",null,true,{}],"a":9007199254740993}`)},
			"---\nname: \"007\"\ntags:\n  \"on\": 'yes: no'\n---\nz:\n  - 1.50\n  - \"1.50\"\n  - null\n  - true\n  - {}\na: 9007199254740993\n",
		},
		{
			"csv has the columns of the type", FormatCSV, []any{listed{Name: "a"}, &listed{Name: `b, "c"`, Parts: []int{1, 2}, Until: "x\ny"}},
			"name,until,parts,tags\na,,,\n\"b, \"\"c\"\"\",\"x\ny\",\"[1,2]\",\n",
		},
		{
			"csv has the rows of an answer", FormatCSV, []any{answer},
			"provider,rate,metadata,term\na,1.50,\"{\"\"chain\"\":\"\"x, y\"\"}\",\nb,,,7 d\n",
		},
		{"csv of one number", FormatCSV, []any{json.RawMessage(`{"data":{"symbol":"BTC","price":81000.5,"tags":["a"]}}`)}, "symbol,price,tags\nBTC,81000.5,\"[\"\"a\"\"]\"\n"},
		{"csv of no rows", FormatCSV, []any{json.RawMessage(`{"data":[],"meta":{}}`)}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var to strings.Builder
			out := &Output{Format: c.format, to: &to, csv: newCSVTable(&to)}
			for _, o := range c.objects {
				if err := out.Object(o); err != nil {
					t.Fatal(err)
				}
			}
			if to.String() != c.want {
				t.Errorf("got\n%s\nwant\n%s", to.String(), c.want)
			}
		})
	}
}

func TestCSVHasOneShape(t *testing.T) {
	var to strings.Builder
	out := &Output{Format: FormatCSV, to: &to, csv: newCSVTable(&to)}
	if err := out.Object(json.RawMessage(`{"a":1}`)); err != nil {
		t.Fatal(err)
	}
	if err := out.Object(json.RawMessage(`{"b":1}`)); err == nil || !strings.Contains(err.Error(), `"b"`) || !strings.Contains(err.Error(), "--output json") {
		t.Errorf("a field without a column: %v", err)
	}
	if err := out.Object([]int{1}); err == nil {
		t.Error("a list that is no object is accepted")
	}
}
