package query

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/marketlog/marketlog/query/limits"
)

func postEndpoint(path, id string, needs limits.Feature) Endpoint {
	return Endpoint{
		Method: http.MethodPost, Path: path, ID: id, Tag: "test", Summary: "A test.", Body: echoBody{}, Needs: needs, Hot: true,
		Params: []Param{
			{Name: "symbols", In: Field, Kind: List, Required: true, MaxItems: 3, Doc: "Which."},
			{Name: "limit", In: Field, Kind: Integer, Default: "10", Min: 1, Max: 100, Doc: "How many."},
			{Name: "price", In: Field, Kind: Number, Doc: "How much."},
			{Name: "name", In: Field, Kind: Text, MaxLength: 5, Doc: "What."},
			{Name: "flag", In: Field, Kind: Flag, Doc: "Whether."},
			{Name: "context", In: Field, Kind: Hints, Allowed: []string{"exchange", "quote"}, Word: "exchange", Doc: "Hints."},
		},
		Handle: func(_ context.Context, r *Request) (Answer, error) {
			body := echoBody{Data: map[string]any{"symbols": r.List("symbols"), "limit": r.Integer("limit"), "price": r.Number("price"),
				"name": r.Text("name"), "flag": r.Flag("flag"), "context": r.Hints("context"), "view": r.View}}
			body.Meta.Clamped = r.Clamped()
			return Encode(body)
		},
	}
}

func TestBodiesAreReadAsDeclared(t *testing.T) {
	s := startServer(t, func(_ *Config, d *Deps) {
		d.Endpoints = append(d.Endpoints, postEndpoint("/api/v1/posted", "posted", limits.NoFeature), postEndpoint("/api/v1/posted/bulk", "postedBulk", limits.FeatureBulk))
	})
	post := func(path, key, kind, encoding string, body io.Reader) (int, http.Header, string) {
		t.Helper()
		request, err := http.NewRequest(http.MethodPost, s.base+path, body)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+key)
		request.Header.Set("Content-Type", kind)
		if encoding != "" {
			request.Header.Set("Content-Encoding", encoding)
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, answer.Header, string(text)
	}

	for _, test := range []struct{ body, want string }{
		{`{"symbols":["a,b"," c "]}`, `{"context":null,"flag":false,"limit":10,"name":"","price":0,"symbols":["a,b","c"],"view":0}`},
		{`{"symbols":["a"],"limit":5000,"price":1e-3,"name":"x","flag":true,"context":{"quote":"EUR"},"else":1}`,
			`{"context":{"quote":"EUR"},"flag":true,"limit":100,"name":"x","price":0.001,"symbols":["a"],"view":0}`},
		{`{"symbols":["a"],"limit":"7","price":"2.5","flag":"1","context":"kraken","name":null}`,
			`{"context":{"exchange":"kraken"},"flag":true,"limit":7,"name":"","price":2.5,"symbols":["a"],"view":0}`},
		{`{"symbols":["a"],"context":"{\"quote\":\"EUR\"}"}`, `{"context":{"quote":"EUR"},"flag":false,"limit":10,"name":"","price":0,"symbols":["a"],"view":0}`},
	} {
		status, header, text := post("/api/v1/posted", "key-pro", "application/json; charset=UTF-8", "", strings.NewReader(test.body))
		var got struct{ Data json.RawMessage }
		if err := json.Unmarshal([]byte(text), &got); err != nil || status != 200 || string(got.Data) != test.want {
			t.Errorf("%s: got %d %s, want %s", test.body, status, text, test.want)
		}
		if header.Get("ETag") != "" || header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: got ETag %q and Cache-Control %q, want none and no-store", test.body, header.Get("ETag"), header.Get("Cache-Control"))
		}
	}

	for _, test := range []struct{ body, field, want string }{
		{`{}`, "symbols", "is required"},
		{`{"symbols":null}`, "symbols", "is required"},
		{`{"symbols":[]}`, "symbols", "must not be empty"},
		{`{"symbols":["a",""]}`, "symbols", "must have no empty items"},
		{`{"symbols":["a","b","c","d"]}`, "symbols", "must have at most 3 items, has 4"},
		{`{"symbols":["a"],"limit":1.5}`, "limit", "must be an integer"},
		{`{"symbols":["a"],"limit":0}`, "limit", "must be at least 1"},
		{`{"symbols":["a"],"price":-1}`, "price", "must be a number above 0"},
		{`{"symbols":["a"],"price":1e999}`, "price", "must be a number above 0"},
		{`{"symbols":["a"],"name":"longer"}`, "name", "must have at most 5 bytes"},
		{`{"symbols":["a"],"flag":2}`, "flag", "must be a string"},
		{`{"symbols":["a"],"context":{"color":"red"}}`, "context", `"color" is unknown; it has exchange, quote`},
		{`{"symbols":["a"],"context":{"quote":{}}}`, "context", "quote must be a string"},
		{`{"symbols":["a"],"name":"x","symbols":["b"]}`, "symbols", "must be given once"},
		{`{"symbols":["a"],"n\u0061me":"x","name":"x"}`, "name", "must be given once"},
		{`{"symbols":["a"]}{}`, "body", "must be a JSON object"},
		{`{"symbols":["a"]`, "body", "must be a JSON object"},
		{`["symbols"]`, "body", "must be a JSON object"},
	} {
		status, _, text := post("/api/v1/posted", "key-pro", "application/json", "", strings.NewReader(test.body))
		var got ErrorBody
		if err := json.Unmarshal([]byte(text), &got); err != nil || status != 400 || len(got.Error.Errors) != 1 || len(got.Error.Errors[test.field]) != 1 || got.Error.Errors[test.field][0] != test.want {
			t.Errorf("%s: got %d %s, want 400 with %s: %s", test.body, status, text, test.field, test.want)
		}
	}

	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = z.Write([]byte(`{"symbols":["a"]}`))
	_ = z.Close()
	for _, test := range []struct {
		name, path, key, kind, encoding, body string
		status                                int
		code                                  string
	}{
		{"no JSON", "/api/v1/posted", "key-pro", "application/json", "", `{"symbols":["a"]`, 400, CodeValidation},
		{"no object", "/api/v1/posted", "key-pro", "application/json", "", `null`, 400, CodeValidation},
		{"nothing", "/api/v1/posted", "key-pro", "application/json", "", ``, 400, CodeValidation},
		{"a form", "/api/v1/posted", "key-pro", "application/x-www-form-urlencoded", "", `symbols=a`, 415, CodeMediaType},
		{"another charset", "/api/v1/posted", "key-pro", "application/json; charset=latin1", "", `{"symbols":["a"]}`, 415, CodeMediaType},
		{"compressed", "/api/v1/posted", "key-pro", "application/json", "gzip", zipped.String(), 415, CodeMediaType},
		{"too large", "/api/v1/posted", "key-pro", "application/json", "", `{"symbols":["` + strings.Repeat("a", 64<<10) + `"]}`, 413, CodeTooLarge},
		{"no key", "/api/v1/posted", "nobody", "application/json", "", `{`, 401, CodeInvalidKey},
		{"not in the plan", "/api/v1/posted/bulk", "key-free", "application/json", "", `{`, 402, CodePlanRequired},
	} {
		status, _, text := post(test.path, test.key, test.kind, test.encoding, strings.NewReader(test.body))
		var got ErrorBody
		if err := json.Unmarshal([]byte(text), &got); err != nil || status != test.status || got.Error.Code != test.code {
			t.Errorf("%s: got %d %.200s, want %d %s", test.name, status, text, test.status, test.code)
		}
	}
	if got := s.do(t, "GET", "/api/v1/posted", "key-pro"); got.status != 405 || got.header.Get("Allow") != "POST" {
		t.Errorf("GET of what is posted: got %d, Allow %q, want 405 and POST", got.status, got.header.Get("Allow"))
	}
}

// onlyFields is a request without a query.
type onlyFields struct{ fiberArguments }

func (onlyFields) bare() bool { return true }

func FuzzFields(f *testing.F) {
	e := postEndpoint("/x", "x", limits.NoFeature)
	c, err := compile(e)
	if err != nil {
		f.Fatal(err)
	}
	for _, body := range []string{`{"symbols":["a"]}`, `{"symbols":["a"],"limit":3,"price":"1","flag":false,"context":{"quote":"EUR"},"name":"x"}`, `{"context":"{"}`, `{"context":"{}{}"}`} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		var decoded map[string]json.RawMessage
		valid := json.Unmarshal([]byte(body), &decoded) == nil && decoded != nil
		fields, err := readFields([]byte(body))
		if err != nil {
			if valid && err == errNoObject {
				t.Fatalf("%q: got %v of a JSON object", body, err)
			}
			return
		}
		if !valid || len(fields) != len(decoded) {
			t.Fatalf("%q: got %d fields, which encoding/json takes for %d", body, len(fields), len(decoded))
		}
		r := &Request{endpoint: c}
		if c.parse(onlyFields{fiberArguments{fields: fields}}, r) != nil {
			return
		}
		if n := len(r.List("symbols")); n < 1 || n > 3 || r.Integer("limit") < 1 || r.Integer("limit") > 100 || r.Number("price") < 0 || len(r.Text("name")) > 5 || len(r.Hints("context")) > 2 {
			t.Errorf("%q was accepted: %v %d %v %q %v", body, r.List("symbols"), r.Integer("limit"), r.Number("price"), r.Text("name"), r.Hints("context"))
		}
	})
}
