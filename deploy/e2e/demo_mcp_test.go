package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/marketlog/marketlog/query/mcp"
)

// specifiedTools are the tools of the default set: those that the specification names, and three of earn products.
var specifiedTools = []string{
	"coin_history", "coin_markets", "fear_greed_index", "get_coin", "get_earn_product", "get_price", "get_rate_by_symbol", "get_rate_history", "get_rates",
	"list_coins", "list_earn_products", "list_providers", "market_summary", "resolve_symbol", "resolve_symbols_batch", "similar_coins",
	"stablecoin_earn_benchmark", "stablecoin_index", "stablecoin_peg_stability", "top_coins", "top_movers",
}

// catalogMax bounds the list of tools in bytes: a model reads it before every conversation.
const catalogMax = 24_000

// The running program offers exactly these tools, over HTTP and over stdio, and in few enough words.
func TestDemoToolsAreThoseOfTheSpecification(t *testing.T) {
	d := runningDemo(t)
	const ask = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	response, err := d.do(http.MethodPost, "/mcp", ask)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	frame, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	names, result := listedTools(t, frame)
	sameTools(t, "over HTTP", names)
	if len(result) > catalogMax {
		t.Errorf("the list of tools has %d bytes, want at most %d", len(result), catalogMax)
	}
	t.Logf("%d tools in %d bytes", len(names), len(result))

	command := exec.Command(d.binary, "mcp", "--base-url", d.base)
	command.Stdin = strings.NewReader(ask + "\n")
	frame, err = command.Output()
	if err != nil {
		t.Fatalf("marketlog mcp: %v", err)
	}
	names, _ = listedTools(t, frame)
	sameTools(t, "over stdio", names)
}

// answerMax bounds what a tool answers by default in bytes, some 8,000 tokens: its answers fill a model's context
// for the rest of the conversation.
const answerMax = 24_000

// Asked for nothing but what it needs, each tool answers what a model can take, about a coin of which everything is known.
func TestDemoToolsAnswerBriefly(t *testing.T) {
	d := filledDemo(t)
	status, products, err := d.ask("/api/v1/earn/products?limit=1")
	listed, _ := products["products"].([]any)
	if err != nil || status != http.StatusOK || len(listed) != 1 {
		t.Fatalf("earn products: got %d %s, %v; want one", status, excerpt(products), err)
	}
	first, _ := listed[0].(map[string]any)
	needed := map[string]string{
		"get_earn_product": fmt.Sprintf(`{"productId":%q}`, first["productId"]), "coin_history": `{"symbol":"BTC"}`, "coin_markets": `{"coinId":"bitcoin"}`,
		"get_coin": `{"coinId":"bitcoin"}`, "get_price": `{"symbols":["BTC"]}`, "get_rate_by_symbol": `{"symbol":"USDC"}`, "get_rate_history": `{"symbol":"USDC"}`,
		"resolve_symbol": `{"symbol":"BTC"}`, "resolve_symbols_batch": `{"symbols":["BTC","ETH"],"source":"kraken"}`, "similar_coins": `{"coinId":"bitcoin"}`,
		"stablecoin_peg_stability": `{"symbol":"USDT"}`,
	}
	for _, tool := range specifiedTools {
		arguments := needed[tool]
		if arguments == "" {
			arguments = `{}`
		}
		response, err := d.do(http.MethodPost, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+tool+`","arguments":`+arguments+`}}`)
		if err != nil {
			t.Fatal(err)
		}
		frame, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		var answer struct {
			Result struct {
				StructuredContent json.RawMessage
			}
		}
		if err := json.Unmarshal(frame, &answer); err != nil || len(answer.Result.StructuredContent) == 0 {
			t.Errorf("%s %s: got %v %.300s, want a result", tool, arguments, err, frame)
			continue
		}
		size := len(answer.Result.StructuredContent)
		t.Logf("%s answers %d bytes", tool, size)
		if size > answerMax {
			t.Errorf("%s %s answers %d bytes, want at most %d", tool, arguments, size, answerMax)
		}
	}
}

func sameTools(t *testing.T, where string, names []string) {
	t.Helper()
	for _, name := range specifiedTools {
		if !slices.Contains(names, name) {
			t.Errorf("%s the tool %s is missing", where, name)
		}
	}
	for _, name := range names {
		if !slices.Contains(specifiedTools, name) {
			t.Errorf("%s there is the tool %s, which belongs to no client's default set", where, name)
		}
	}
}

func listedTools(t *testing.T, frame []byte) (names []string, result json.RawMessage) {
	t.Helper()
	var answer struct {
		Result json.RawMessage `json:"result"`
	}
	var list struct {
		Tools []struct{ Name string } `json:"tools"`
	}
	if err := json.Unmarshal(frame, &answer); err != nil {
		t.Fatalf("%v: %s", err, frame)
	}
	if err := json.Unmarshal(answer.Result, &list); err != nil {
		t.Fatalf("%v: %s", err, frame)
	}
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	return names, answer.Result
}

// The entry for the registry says what the servers' own cards say.
func TestRegistrationIsTheCards(t *testing.T) {
	var want bytes.Buffer
	encoder := json.NewEncoder(&want)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(mcp.Registration("1.0.0")); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join("..", "mcp", "server.json"))
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want.String() {
		t.Errorf("deploy/mcp/server.json: got\n%s\nwant\n%s", got, want.String())
	}
	var answer struct{ Description string }
	if err := json.Unmarshal(got, &answer); err != nil || len(answer.Description) > 100 {
		t.Errorf("the registry takes descriptions of up to 100 letters, got %d (%v)", len(answer.Description), err)
	}
}
