package mcp_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/marketlog/marketlog/query/mcp"
)

// stdio sends lines to a bridge to a server and returns what it answers.
func (w *fixture) stdio(base, key string, lines ...string) string {
	w.T.Helper()
	bridge, err := mcp.NewBridge(w.T.Context(), base, key)
	w.Must(err)
	var out bytes.Buffer
	w.Must(bridge.Run(w.T.Context(), strings.NewReader(strings.Join(lines, "\n")+"\n"), &out))
	return out.String()
}

// Without a key a client can look, and sees what one with a key sees.
func testBridgeListsTheServersTools(t *testing.T, w *fixture) {
	const ask = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	_, http := w.send(w.base, w.keys["pro"], ask)
	var got, want any
	w.Must(json.Unmarshal([]byte(w.stdio(w.base, "", ask)), &got))
	w.Must(json.Unmarshal(http, &want))
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got over stdio\n%v\nwant what HTTP answers\n%v", got, want)
	}
}

// Every message is answered, whatever order the answers come in, also those under way when the input ends.
func testBridgeAnswersEveryCall(t *testing.T, w *fixture) {
	var lines []string
	want := map[string]bool{}
	for i := range 40 {
		id := strings.Repeat("x", i+1)
		lines = append(lines, `{"jsonrpc":"2.0","id":"`+id+`","method":"tools/call","params":{"name":"get_price","arguments":{"symbols":["btc"]}}}`, "")
		want[id] = true
	}
	for line := range strings.Lines(w.stdio(w.base, w.keys["enterprise"], lines...)) {
		var frame struct {
			ID     string
			Result *struct{ StructuredContent json.RawMessage }
		}
		w.Must(json.Unmarshal([]byte(line), &frame))
		if frame.Result == nil || !want[frame.ID] {
			t.Errorf("got %s", line)
		}
		delete(want, frame.ID)
	}
	if len(want) > 0 {
		t.Errorf("%d calls were not answered", len(want))
	}
}

func testBridgeReportsItsServersFaults(t *testing.T, w *fixture) {
	if _, err := mcp.NewBridge(t.Context(), w.base+"/nosuch", ""); err == nil || !strings.Contains(err.Error(), "/nosuch/mcp/tools.json answers 404") {
		t.Errorf("got %v, want the address and its status", err)
	}
	// A server that answers the catalog, then something that is not a frame, then nothing at all.
	half := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		if in.Method == http.MethodPost {
			http.Error(out, "bad gateway", http.StatusBadGateway)
			return
		}
		response, err := http.Get(w.base + in.URL.Path)
		w.Must(err)
		defer response.Body.Close()
		_, err = io.Copy(out, response.Body)
		w.Must(err)
	}))
	bridge, err := mcp.NewBridge(t.Context(), half.URL, w.keys["pro"])
	w.Must(err)
	for _, want := range []string{"502 Bad Gateway without a frame", "connect"} {
		var out bytes.Buffer
		w.Must(bridge.Run(t.Context(), strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"fear_greed_index"}}`), &out))
		if got := out.String(); !strings.Contains(got, want) || !strings.Contains(got, `"code":-32603`) || !strings.Contains(got, `"code":"server_error"`) {
			t.Errorf("got %s, want server_error with %q", got, want)
		}
		half.Close()
	}
}
