package mcp_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// catalogMax bounds the list of tools in bytes: a model reads it before every conversation.
const catalogMax = 24_000

// tool is one of a list.
type tool struct {
	Name         string          `json:"name"`
	Description  string          `json:"description"`
	InputSchema  json.RawMessage `json:"inputSchema"`
	OutputSchema json.RawMessage `json:"outputSchema"`
	Annotations  map[string]bool `json:"annotations"`
}

// list asks for the tools of a set, in the order given.
func (w *fixture) list(query string) (tools []tool, result json.RawMessage) {
	w.T.Helper()
	_, body := w.send(w.base, w.keys["pro"], `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, "Query: "+query)
	var frame struct {
		Result json.RawMessage `json:"result"`
	}
	w.Must(json.Unmarshal(body, &frame))
	var answer struct {
		Tools []tool `json:"tools"`
	}
	w.Must(json.Unmarshal(frame.Result, &answer))
	return answer.Tools, frame.Result
}

func (w *fixture) get(path string) []byte {
	w.T.Helper()
	request, err := http.NewRequestWithContext(w.T.Context(), http.MethodGet, w.base+path, nil)
	w.Must(err)
	request.Header.Set("Authorization", "Bearer "+w.keys["enterprise"])
	return w.read(request)
}

func (w *fixture) read(request *http.Request) []byte {
	w.T.Helper()
	response, err := http.DefaultClient.Do(request)
	w.Must(err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	w.Must(err)
	if response.StatusCode != http.StatusOK {
		w.T.Fatalf("%s answers %d: %s", request.URL, response.StatusCode, body)
	}
	return body
}

// calls are arguments that each tool of the default set can be called with, and the REST request that they
// stand for; a body where that is a POST.
var calls = map[string]struct{ arguments, path, body string }{
	"coin_history":              {`{"symbol":"btc","days":1}`, "/api/v1/coins/history/btc?days=1", ""},
	"coin_markets":              {`{"coinId":"bitcoin","limit":1}`, "/api/v1/coins/bitcoin/markets?limit=1", ""},
	"fear_greed_index":          {`{}`, "/api/v1/global-stats/fear-greed", ""},
	"get_coin":                  {`{"coinId":"BTC"}`, "/api/v1/coins/BTC", ""},
	"get_earn_product":          {`{"productId":"` + earnProduct + `"}`, "/api/v1/earn/products/" + earnProduct, ""},
	"get_price":                 {`{"symbols":["btc","usdt"],"explain":true}`, "/api/v1/prices?symbols=btc,usdt&explain=1", ""},
	"get_rate_by_symbol":        {`{"symbol":"eth"}`, "/api/v1/rates/eth", ""},
	"get_rate_history":          {`{"symbol":"eth","days":7}`, "/api/v1/rates/eth/history?days=7", ""},
	"get_rates":                 {`{"limit":2}`, "/api/v1/rates?limit=2", ""},
	"list_coins":                {`{"search":"t","sort":"name","limit":3}`, "/api/v1/coins?search=t&sort=name&limit=3", ""},
	"list_earn_products":        {`{"limit":5}`, "/api/v1/earn/products?limit=5", ""},
	"list_providers":            {`{"category":"price"}`, "/api/v1/providers?category=price", ""},
	"market_summary":            {`{}`, "/api/v1/global-stats/summary", ""},
	"resolve_symbol":            {`{"symbol":"sol","context":{"exchange":"kraken"}}`, "/api/v1/symbols/resolve?symbol=sol&context[exchange]=kraken", ""},
	"resolve_symbols_batch":     {`{"symbols":["XBT","nosuch"],"source":"kraken"}`, "/api/v1/symbols/resolve/batch", `{"symbols":["XBT","nosuch"],"source":"kraken"}`},
	"similar_coins":             {`{"coinId":"eth"}`, "/api/v1/coins/eth/similar", ""},
	"stablecoin_earn_benchmark": {`{"segment":"overall"}`, "/api/v1/earn/benchmark?segment=overall", ""},
	"stablecoin_index":          {`{"limit":500}`, "/api/v1/stablecoins/index?limit=500", ""},
	"stablecoin_peg_stability":  {`{"symbol":"usdt","window":"24h"}`, "/api/v1/stablecoins/usdt/peg-stability?window=24h", ""},
	"top_coins":                 {`{"limit":2}`, "/api/v1/coins/top?limit=2", ""},
	"top_movers":                {`{"segment":"all","min_volume":0}`, "/api/v1/global-stats/movers?segment=all&min_volume=0", ""},
}

// A tool's result is the answer of its endpoint in the tool view, as structure and as text, and is what the
// tool's schema says.
func testResultsAreTheEndpointsAnswers(t *testing.T, w *fixture) {
	tools, _ := w.list("")
	for _, tool := range tools {
		call, ok := calls[tool.Name]
		if !ok {
			t.Errorf("the tool %s has no call in this test", tool.Name)
			continue
		}
		checkArguments(t, tool, call.arguments)
		_, body := w.send(w.base, w.keys["enterprise"], `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+tool.Name+`","arguments":`+call.arguments+`}}`)
		var frame struct {
			Result struct {
				Content           []struct{ Type, Text string } `json:"content"`
				StructuredContent json.RawMessage               `json:"structuredContent"`
			} `json:"result"`
		}
		w.Must(json.Unmarshal(body, &frame))
		if len(frame.Result.StructuredContent) == 0 || len(frame.Result.Content) != 1 {
			t.Errorf("%s%s answers %s", tool.Name, call.arguments, body)
			continue
		}
		got := string(frame.Result.StructuredContent)
		if text := frame.Result.Content[0].Text; text != got {
			t.Errorf("%s: got the text\n%s\nwant the structure\n%s", tool.Name, text, got)
		}
		if want := string(w.rest(call.path, call.body)); got != want {
			t.Errorf("%s: got\n%s\nwant what %s answers\n%s", tool.Name, got, call.path, want)
		}
		if err := compile(t, tool.OutputSchema).Validate(decode(t, got)); err != nil {
			t.Errorf("%s: its result is not as its schema says: %v\n%s", tool.Name, err, got)
		}
	}
}

// rest asks the endpoint itself.
func (w *fixture) rest(path, body string) []byte {
	if body == "" {
		if strings.Contains(path, "?") {
			return w.get(path + "&view=tool")
		}
		return w.get(path + "?view=tool")
	}
	request, err := http.NewRequestWithContext(w.T.Context(), http.MethodPost, w.base+path+"?view=tool", strings.NewReader(body))
	w.Must(err)
	request.Header.Set("Authorization", "Bearer "+w.keys["enterprise"])
	request.Header.Set("Content-Type", "application/json")
	return w.read(request)
}

func checkArguments(t *testing.T, tool tool, arguments string) {
	t.Helper()
	if err := compile(t, tool.InputSchema).Validate(decode(t, arguments)); err != nil {
		t.Errorf("%s: the arguments %s are not as its schema says: %v", tool.Name, arguments, err)
	}
}

func compile(t testing.TB, schema json.RawMessage) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema.json", decode(t, string(schema))); err != nil {
		t.Fatal(err)
	}
	compiled, err := c.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

func decode(t testing.TB, text string) any {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// Some providers of models refuse arrays of types, and clients trust the annotations.
func testToolsAreDescribedForEveryClient(t *testing.T, w *fixture) {
	tools, result := w.list("")
	full, _ := w.list("toolset=full")
	want := map[string]bool{"readOnlyHint": true, "destructiveHint": false, "idempotentHint": true, "openWorldHint": true}
	for _, tool := range full {
		if tool.Description == "" {
			t.Errorf("%s has no description", tool.Name)
		}
		if !reflect.DeepEqual(tool.Annotations, want) {
			t.Errorf("%s: got annotations %v, want %v", tool.Name, tool.Annotations, want)
		}
		for name, schema := range map[string]json.RawMessage{"input": tool.InputSchema, "output": tool.OutputSchema} {
			described := decode(t, string(schema))
			if object, ok := described.(map[string]any); !ok || object["type"] != "object" {
				t.Errorf("%s: its %s is no object", tool.Name, name)
			}
			if strings.Contains(string(schema), `"type":[`) {
				t.Errorf("%s: its %s has an array of types: %s", tool.Name, name, schema)
			}
		}
	}
	if len(full) <= len(tools) || slices.ContainsFunc(tools, func(t tool) bool { return t.Name == "broken" }) {
		t.Errorf("got %d tools and %d in the full set, which must have more", len(tools), len(full))
	}
	// The document for those without a key names the same tools.
	response, err := http.Get(w.base + "/mcp/tools.json?" + url.Values{"toolset": {"default"}}.Encode())
	w.Must(err)
	defer response.Body.Close()
	public, err := io.ReadAll(response.Body)
	w.Must(err)
	var listed, published struct {
		Tools []tool `json:"tools"`
	}
	w.Must(json.Unmarshal(result, &listed))
	w.Must(json.Unmarshal(public, &published))
	if !reflect.DeepEqual(listed, published) {
		t.Errorf("/mcp/tools.json differs from tools/list: got\n%s\nwant\n%s", public, result)
	}
	if len(result) > catalogMax {
		t.Errorf("the list has %d bytes, want at most %d", len(result), catalogMax)
	}
}
