package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/marketlog/marketlog/stream/streamtest"
)

// The examples of the documentation do what they say they do, against a running instance.
func TestDemoServesTheExamples(t *testing.T) {
	streamtest.InTier(t, streamtest.TierContract)
	python, node := schemathesisPython(t), newNode(t)
	d := filledDemo(t)
	for _, c := range []struct {
		file  string
		run   []string
		wants []string
	}{
		{"rest.sh", []string{"sh"}, []string{`"symbol":"BTC"`, `"reproduced":true`, `"category":"lending"`}},
		{"rest.py", []string{python}, []string{"BTC ", "the same: True", "% a year"}},
		{"rest.ts", []string{node}, []string{"BTC ", "the same: true", "% a year"}},
		{"go/rest", []string{"go", "run"}, []string{"BTC ", "% a year"}},
		{"stream.sh", []string{"sh"}, []string{`"type":"welcome"`, `"type":"price_update"`}},
		{"stream.py", []string{python}, []string{"prices,"}},
		{"follow.py 2000", []string{python}, []string{`"coinId": "bitcoin"`}},
		{"stream.ts", []string{node}, []string{"prices,"}},
		{"go/stream", []string{"go", "run"}, []string{`"symbol"`}},
		{"sql.sh", []string{"sh"}, []string{`"start","close"`, `"SQL_ERROR"`, `"position":16`}},
		{"sql.py", []string{python}, []string{" bps over ", "SQL_ERROR in line 2, column 3"}},
		{"mcp.sh", []string{"sh"}, []string{`"get_price"`, `"structuredContent"`, `"priceUsd"`}},
		{"mcp.py", []string{python}, []string{"get_price", "priceUsd"}},
		{"mcp.ts", []string{node}, []string{"get_price", "priceUsd"}},
		{"go/mcp", []string{"go", "run"}, []string{"get_price", "priceUsd"}},
	} {
		t.Run(c.file, func(t *testing.T) {
			command := exec.CommandContext(t.Context(), c.run[0], append(c.run[1:], strings.Fields("./"+filepath.Join("docs/examples", c.file))...)...)
			command.Dir = "../.."
			command.Env = append(os.Environ(), "MARKETLOG_URL="+d.base, "MARKETLOG_API_KEY="+d.key, "CGO_ENABLED=0")
			out, err := command.CombinedOutput()
			text := strings.ReplaceAll(string(out), d.key, "KEY")
			if err != nil {
				t.Fatalf("%v\n%.4000s", err, text)
			}
			for _, want := range c.wants {
				if !strings.Contains(text, want) {
					t.Errorf("nothing of %q in\n%.4000s", want, text)
				}
			}
		})
	}
}

// newNode is a Node that runs TypeScript as it is, which the one of the machine may be too old for.
func newNode(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(cache, "marketlog", "mcp-clients-*", "node_modules", "node-*", "bin", "node"))
	if err != nil || len(found) == 0 {
		streamtest.Missing(t, streamtest.TierContract, "no Node that runs TypeScript; tools/mcp/fetch.sh installs it")
	}
	return found[len(found)-1]
}
