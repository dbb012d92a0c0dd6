package market

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/spf13/cobra"

	"github.com/marketlog/marketlog/deploy/cli/command"
	marketlog "github.com/marketlog/marketlog/query/clients/go"
)

// A watch goes on from the cursor of the last message that it printed, over servers that end the stream or are overloaded, until one refuses.
func TestWatchGoesOnFromItsCursor(t *testing.T) {
	welcome := `{"type":"welcome","simulated":true,"cursor":"a"}` + "\n"
	prices := `{"type":"initial_prices",%s"data":[{"symbol":"BTC","price":80000,"timestamp":1795652720000,"previousPrice":80000}],"cursor":%q}` + "\n"
	answers := []struct {
		status int
		body   string
		cursor string // that is asked for
	}{
		{http.StatusOK, welcome + fmt.Sprintf(prices, "", "b"), ""},
		{http.StatusServiceUnavailable, `{"error":{"code":"STARTING","message":"not yet"}}`, "b"},
		{http.StatusOK, welcome + `{"type":"resumed","seconds":8,"from":"b","to":"c","source":"memory","cursor":"b"}` + "\n" + fmt.Sprintf(prices, "", "b") +
			`{"type":"price_update","data":[{"symbol":"BTC","price":80008,"timestamp":1795652728000,"previousPrice":80000}],"cursor":"c"}` + "\n" +
			`{"type":"stale","data":[{"symbol":"BTC","reason":"no_inputs","lastPriceAt":1795652728000}],"cursor":"c"}` + "\n" +
			`{"type":"fresh","data":[{"symbol":"BTC"}],"cursor":"d"}` + "\n" + `{"type":"heartbeat","cursor":"e"}` + "\n", "b"},
		{http.StatusOK, `{"type":"gap","reason":"too_old","since":"2026-11-26T00:00:00Z","until":"2026-11-26T00:01:00Z","cursor":"f"}` + "\n" + fmt.Sprintf(prices, `"gap":true,`, "f"), "e"},
		{http.StatusBadRequest, `{"error":{"code":"VALIDATION_ERROR","message":"no","errors":{"symbols":["unknown"]}}}`, "f"},
	}
	n := 0
	listening := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := answers[n]
		n++
		if q := r.URL.Query(); q.Get("cursor") != a.cursor || q.Get("symbols") != "BTC" || r.Header.Get("Authorization") != "Bearer k" {
			t.Errorf("request %d: got %s, want the cursor %q", n, r.URL.RawQuery, a.cursor)
		}
		w.WriteHeader(a.status)
		_, _ = w.Write([]byte(a.body))
	}))
	defer listening.Close()
	base := listening.URL
	var printed bytes.Buffer
	out := output(t, &printed, command.FormatText)
	c := connected(t, &server{base: base, key: "k", transport: http.DefaultTransport}, nil)
	w := newWatch(out, c, marketlog.StreamOptions{Symbols: []string{"BTC"}})
	if err := w.run(t.Context()); err == nil || !strings.Contains(err.Error(), "symbols: unknown") || n != len(answers) {
		t.Errorf("after %d requests it ends with %v, want %d and what the last refused", n, err, len(answers))
	}
	lost := "-- the connection is lost (asking " + base + ": the server ended the stream); trying again\n"
	want := "SIMULATED: these numbers are invented\n00:25:20Z  BTC         80,000.00 USD\n" + lost +
		"-- resumed: the newest prices of the 8 s that were missed follow\n00:25:28Z  BTC         80,008.00 USD  +0.0100 %\n" +
		"-- BTC is stale since 00:25:28Z: no_inputs\n-- BTC is fresh again\n" + lost +
		"-- a gap from 2026-11-26T00:00:00.000Z to 2026-11-26T00:01:00.000Z: too_old\n00:25:20Z  BTC         80,000.00 USD\n" + lost
	if printed.String() != want {
		t.Errorf("got\n%s\nwant\n%s", printed.String(), want)
	}
}

// output prints by -o.
func output(t *testing.T, to io.Writer, format string) *command.Output {
	t.Helper()
	cmd := &cobra.Command{}
	command.AddOutputFlag(cmd.Flags())
	if err := cmd.Flags().Set("output", format); err != nil {
		t.Fatal(err)
	}
	out, err := (&command.Runtime{Stdout: to, Stderr: io.Discard}).Output(cmd)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// A server that is not there, or refuses, ends a watch that has had nothing of it. One that had waits for it for as long as it takes, up to the end of a
// replay; with -o json it prints the messages of the server as they are, and nothing else.
func TestWatchEnds(t *testing.T) {
	const update, lagging = `{"type":"price_update","new":[1,2],"data":[{"symbol":"BTC","price":80008}],"cursor":"c"}`, `{"type":"error","error":{"code":"LAGGING","message":"later"}}`
	const end = `{"type":"replay_end","elements":1,"cursor":"d"}`
	away := ""
	for _, test := range []struct {
		name, format string
		status       int
		bodies       []string // of one request after the other
		printed      string
		fails        string
	}{
		{"nobody listens", command.FormatText, 200, []string{away}, "", "connection refused"},
		{"a server that starts", command.FormatText, 503, []string{`{"error":{"code":"STARTING","message":"starting: later"}}`}, "", "starting: later"},
		{"a replay that has nothing left", command.FormatText, 204, []string{" "}, "", ""},
		{"a replay", command.FormatText, 200, []string{end}, "-- the replay has come to its end\n", ""},
		{"JSON over disconnects", command.FormatJSON, 200, append(append([]string{update + "\n" + lagging}, slices.Repeat([]string{away}, 500)...),
			`{"type":"initial_prices","data":[]}`+"\n"+end), update + "\n" + lagging + "\n" + end + "\n", ""},
		{"a statement of what is wrong", command.FormatText, 200, []string{`{"type":"error","error":{"code":"PLAN_REQUIRED","message":"not with this plan"}}`}, "", "not with this plan"},
	} {
		synctest.Test(t, func(t *testing.T) {
			asked := 0
			c := connected(t, &server{base: "http://server", key: "k", transport: transport(func(request *http.Request) (*http.Response, error) {
				body := test.bodies[asked]
				if asked++; body == away {
					return nil, errors.New("connection refused")
				}
				return &http.Response{StatusCode: test.status, Body: io.NopCloser(strings.NewReader(body + "\n")), Request: request}, nil
			})}, nil)
			var printed bytes.Buffer
			err := newWatch(output(t, &printed, test.format), c, marketlog.StreamOptions{}).run(t.Context())
			if (err == nil) != (test.fails == "") || err != nil && !strings.Contains(err.Error(), test.fails) || printed.String() != test.printed || asked != len(test.bodies) {
				t.Errorf("%s: got %v and %q after %d requests, want %q and %q after %d", test.name, err, printed.String(), asked, test.fails, test.printed, len(test.bodies))
			}
		})
	}
}
