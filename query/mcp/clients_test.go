package mcp_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/stream/streamtest"
)

// clients is a folder with the official clients, as tools/mcp/fetch.sh leaves it, and the Node to run them.
type clients struct{ folder, node string }

func findClients(t *testing.T) clients {
	t.Helper()
	streamtest.InTier(t, streamtest.TierMCP)
	lock, err := os.ReadFile(filepath.Join("..", "..", "tools", "mcp", "package-lock.json"))
	if err != nil {
		t.Fatal(err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(cache, "marketlog", fmt.Sprintf("mcp-clients-%x", sha256.Sum256(lock))[:len("mcp-clients-")+12])
	if _, err := os.Stat(folder); err != nil {
		streamtest.Missing(t, streamtest.TierMCP, "no MCP clients; tools/mcp/fetch.sh fetches them")
	}
	if own, _ := filepath.Glob(filepath.Join(folder, "node_modules", "node-*", "bin", "node")); len(own) == 1 {
		return clients{folder, own[0]}
	}
	// Node has no package for this machine: its own must be new enough.
	node, err := exec.LookPath("node")
	if err != nil {
		streamtest.Missing(t, streamtest.TierMCP, "no node on PATH")
	}
	return clients{folder, node}
}

// run runs Node in the folder and returns what it prints; a client that hangs is ended.
func (c clients) run(t *testing.T, stdin []byte, arguments ...string) (stdout string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, c.node, arguments...)
	command.Dir, command.Stdin = c.folder, bytes.NewReader(stdin)
	// None of them needs anything but the server under test.
	command.Env = append(os.Environ(), "NO_COLOR=1", "CI=1")
	var out, failed bytes.Buffer
	command.Stdout, command.Stderr = &out, &failed
	if err = command.Run(); err != nil {
		err = fmt.Errorf("%s: %w\n%s\n%s", strings.Join(arguments, " "), err, out.String(), failed.String())
	}
	return out.String() + failed.String(), err
}

func (c clients) module(path string) string {
	return filepath.Join(c.folder, "node_modules", filepath.FromSlash(path))
}

func TestOfficialClients(t *testing.T) {
	c := findClients(t)
	w := newFixture(t)
	t.Run("typescript", func(t *testing.T) { typescript(t, c, w) })
	t.Run("inspector", func(t *testing.T) { inspector(t, c, w) })
	t.Run("conformance", func(t *testing.T) { conformance(t, c, w) })
}

// typescript lists and calls every tool and sees each error by its code or its status.
func typescript(t *testing.T, c clients, w *fixture) {
	script, err := os.ReadFile(filepath.Join("testdata", "client.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	arguments := map[string]json.RawMessage{}
	for name, call := range calls {
		arguments[name] = json.RawMessage(call.arguments)
	}
	encoded, err := json.Marshal(arguments)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		w.send(w.base, w.keys["spent"], `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"fear_greed_index"}}`)
	}
	out, err := c.run(t, script, "--input-type=module", "-", w.base+"/mcp", w.keys["pro"], w.keys["free"], w.keys["spent"], string(encoded))
	if err != nil {
		t.Fatal(err)
	}
	var printed struct {
		Server   struct{ Name, Version string }
		Tools    []string
		Results  map[string]map[string]any
		Failures map[string]struct {
			Code          int
			Word, Message string
		}
	}
	if err := json.Unmarshal([]byte(out), &printed); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if printed.Server.Name != "marketlog" || printed.Server.Version != "1.2.3" {
		t.Errorf("got server %+v, want marketlog 1.2.3", printed.Server)
	}
	listed, _ := w.list("")
	var names []string
	for _, tool := range listed {
		names = append(names, tool.Name)
		if len(printed.Results[tool.Name]) == 0 {
			t.Errorf("%s: the client got no structure", tool.Name)
		}
	}
	if !slices.Equal(printed.Tools, names) {
		t.Errorf("got tools %v, want %v", printed.Tools, names)
	}
	for name, want := range map[string]struct {
		code int
		word string
	}{
		"not_found": {40400, "not_found"}, "invalid_params": {-32602, "invalid_params"},
		// What HTTP refuses the client shows by the status, with the frame as its text.
		"unauthorized": {401, ""}, "plan_required": {402, ""}, "rate_limited": {429, ""},
	} {
		got := printed.Failures[name]
		if got.Code != want.code || got.Word != want.word || want.word == "" && !strings.Contains(got.Message, `"code":"`+name+`"`) {
			t.Errorf("%s: got %+v, want code %d and word %q", name, got, want.code, want.word)
		}
	}
}

// inspector lists the tools without a warning and calls one, in both eras.
func inspector(t *testing.T, c clients, w *fixture) {
	for _, era := range []string{"legacy", "modern"} {
		t.Run(era, func(t *testing.T) {
			t.Parallel()
			ask := func(arguments ...string) (out string) {
				out, err := c.run(t, nil, append([]string{c.module("@modelcontextprotocol/inspector/clients/launcher/build/index.js"), "--cli", w.base + "/mcp",
					"--transport", "http", "--protocol-era", era, "--header", "Authorization: Bearer " + w.keys["pro"]}, arguments...)...)
				if err != nil {
					t.Error(err)
				}
				return out
			}
			if out := ask("--method", "tools/list", "--strict"); !strings.Contains(out, `"get_price"`) || strings.Contains(strings.ToLower(out), "warning") {
				t.Errorf("got %s, want the tools without a warning", out)
			}
			if out := ask("--method", "tools/call", "--tool-name", "get_price", "--tool-arg", "symbols=btc"); !strings.Contains(out, `"priceUsd": 100005`) {
				t.Errorf("got %s, want a price", out)
			}
		})
	}
}

// conformance runs the official scenarios. What fails must be in the baseline, and what lies there must fail; each scenario
// that is not run is named with its reason.
func conformance(t *testing.T, c clients, w *fixture) {
	baseline, notRun := readReasons(t, "conformance.baseline"), readReasons(t, "conformance.not_run")
	older := []string{"server-initialize", "ping", "tools-list", "dns-rebinding-protection"}
	newer := append(slices.Clone(older), "server-stateless", "http-header-validation", "caching")
	offered := map[string]bool{}
	for module, scenarios := range map[string][]string{"conformance-released": older, "@modelcontextprotocol/conformance": newer} {
		for _, scenario := range c.scenarios(t, module) {
			offered[scenario] = true
			if slices.Contains(scenarios, scenario) == notRun[scenario] {
				t.Errorf("%s of %s: run it, or name it in conformance.not_run with a reason, and not both", scenario, module)
			}
		}
		for _, scenario := range scenarios {
			t.Run(filepath.Base(module)+"/"+scenario, func(t *testing.T) {
				t.Parallel()
				// It exits with 1 also for what the baseline has, so its lines are what counts.
				out, err := c.run(t, nil, c.module(module+"/dist/index.js"), "server", "--url", w.open+"/mcp", "--scenario", scenario)
				passed := 0
				for _, check := range checkLine.FindAllStringSubmatch(colors.ReplaceAllString(out, ""), -1) {
					switch id, outcome := check[1], check[2]; {
					case outcome == "SUCCESS":
						passed++
						if baseline[id] {
							t.Errorf("%s passes: take it out of the baseline", id)
						}
					case outcome == "FAILURE" && !baseline[id]:
						t.Errorf("%s fails", id)
					}
				}
				if passed == 0 || t.Failed() {
					t.Errorf("%d checks passed: %v\n%s", passed, err, out)
				}
			})
		}
	}
	for scenario := range notRun {
		if !offered[scenario] {
			t.Errorf("%s is in conformance.not_run, and no release of the suite has it", scenario)
		}
	}
}

// scenarios are those that a release of the suite has for servers.
func (c clients) scenarios(t *testing.T, module string) (names []string) {
	t.Helper()
	out, err := c.run(t, nil, c.module(module+"/dist/index.js"), "list")
	if err != nil {
		t.Fatal(err)
	}
	_, ofServers, _ := strings.Cut(out, "Server scenarios")
	ofServers, _, _ = strings.Cut(ofServers, "Client scenarios")
	for _, line := range scenarioLine.FindAllStringSubmatch(ofServers, -1) {
		names = append(names, line[1])
	}
	if len(names) < 20 {
		t.Fatalf("%s lists %d scenarios for servers, want at least 20: %s", module, len(names), out)
	}
	return names
}

// readReasons reads the names of a file whose lines are `name: reason`.
func readReasons(t *testing.T, file string) map[string]bool {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for line := range strings.Lines(string(content)) {
		if name, reason, ok := strings.Cut(strings.TrimSpace(line), ": "); ok && line[0] != '#' && reason != "" {
			names[name] = true
		}
	}
	return names
}

var (
	scenarioLine = regexp.MustCompile(`(?m)^  - (\S+) \[`)
	colors       = regexp.MustCompile("\x1b\\[[0-9;]*m")
	checkLine    = regexp.MustCompile(`(?m)^\S+ \[([a-z0-9-]+) *\] (SUCCESS|FAILURE) `)
)
