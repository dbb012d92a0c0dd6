package market

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/marketlog/marketlog/deploy/cli/command"
)

// A watch goes on from the cursor of the last message that it printed, over servers that end the stream or are overloaded, until one refuses.
func TestWatchGoesOnFromItsCursor(t *testing.T) {
	welcome := `{"type":"welcome","simulated":true,"cursor":"a"}` + "\n"
	answers := []struct {
		status int
		body   string
		cursor string // that is asked for
	}{
		{http.StatusOK, welcome + `{"type":"initial_prices","data":[{"symbol":"BTC","price":80000,"timestamp":1795652720000,"previousPrice":80000}],"cursor":"b"}` + "\n", ""},
		{http.StatusServiceUnavailable, `{"error":{"code":"STARTING","message":"not yet"}}`, "b"},
		{http.StatusOK, welcome + `{"type":"resumed","seconds":8,"from":"b","to":"c","source":"memory","cursor":"b"}` + "\n" +
			`{"type":"price_update","data":[{"symbol":"BTC","price":80008,"timestamp":1795652728000,"previousPrice":80000}],"cursor":"c"}` + "\n" +
			`{"type":"stale","data":[{"symbol":"BTC","reason":"no_inputs","lastPriceAt":1795652728000}],"cursor":"c"}` + "\n" +
			`{"type":"fresh","data":[{"symbol":"BTC"}],"cursor":"d"}` + "\n" + `{"type":"heartbeat","cursor":"e"}` + "\n", "b"},
		{http.StatusOK, `{"type":"gap","reason":"too_old","since":"2026-11-26T00:00:00Z","until":"2026-11-26T00:01:00Z","cursor":"f"}` + "\n", "e"},
		{http.StatusBadRequest, `{"error":{"code":"VALIDATION_ERROR","message":"no","errors":{"symbols":["unknown"]}}}`, "f"},
	}
	n := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := answers[n]
		n++
		snapshot := ""
		if a.cursor != "" {
			snapshot = "0"
		}
		if q := r.URL.Query(); q.Get("cursor") != a.cursor || q.Get("snapshot") != snapshot || q.Get("symbols") != "BTC" || r.Header.Get("Authorization") != "Bearer k" {
			t.Errorf("request %d: got %s, want the cursor %q", n, r.URL.RawQuery, a.cursor)
		}
		w.WriteHeader(a.status)
		_, _ = w.Write([]byte(a.body))
	}))
	defer server.Close()
	var printed bytes.Buffer
	cmd := &cobra.Command{}
	command.AddOutputFlag(cmd.Flags())
	out, err := (&command.Runtime{Stdout: &printed, Stderr: os.Stderr}).Output(cmd)
	if err != nil {
		t.Fatal(err)
	}
	w := &watch{out: out, query: url.Values{"symbols": {"BTC"}}, connect: func() (*client, error) { return &client{base: server.URL, key: "k"}, nil }}
	if err := w.run(t.Context()); err == nil || !strings.Contains(err.Error(), "symbols: unknown") || n != len(answers) {
		t.Errorf("after %d requests it ends with %v, want %d and what the last refused", n, err, len(answers))
	}
	lost := "-- the connection is lost (" + server.URL + " ended the stream); trying again\n"
	want := "SIMULATED: these numbers are invented\n00:25:20Z  BTC         80,000.00 USD\n" + lost +
		"-- resumed: the newest prices of the 8 s that were missed follow\n00:25:28Z  BTC         80,008.00 USD  +0.0100 %\n" +
		"-- BTC is stale since 00:25:28Z: no_inputs\n-- BTC is fresh again\n" + lost +
		"-- a gap from 2026-11-26T00:00:00Z to 2026-11-26T00:01:00Z: too_old\n" + lost
	if printed.String() != want {
		t.Errorf("got\n%s\nwant\n%s", printed.String(), want)
	}
}
