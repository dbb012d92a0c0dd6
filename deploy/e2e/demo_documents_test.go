package e2e

import (
	"context"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/deploy/admin"
	"github.com/marketlog/marketlog/docs"
)

// Each command that README.md and the pages of daily use show as shell works as it is written, against a running instance.
func TestDemoRunsTheCommandsOfDocuments(t *testing.T) {
	d := filledDemo(t)
	run := []string{"README.md", "docs/rest.md", "docs/sql.md", "docs/log.md", "docs/feeds.md", "docs/dead-letters.md", "docs/operations.md"}
	asWritten := strings.NewReplacer("http://127.0.0.1:8080", d.base, "http://127.0.0.1:8123", d.sql, "bin/marketlog", d.binary, "data/demo", d.dir,
		"curl ", "curl -sS --fail-with-body ")
	commands := 0
	for _, page := range documents(t) {
		if !slices.Contains(run, page.path) {
			continue
		}
		for _, line := range slices.Concat(page.shell("sh"), page.commands()) {
			if strings.HasPrefix(line, "make ") {
				continue // what starts the demo
			}
			commands++
			ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
			command := exec.CommandContext(ctx, "bash", "-c", asWritten.Replace(line))
			command.Dir = "../.."
			command.Env = append(os.Environ(), "MARKETLOG_URL="+d.base, "MARKETLOG_API_KEY="+d.key, d.registry())
			out, err := command.CombinedOutput()
			stop()
			if err != nil {
				t.Errorf("%s: %s: got %v, want success; it printed\n%.2000s", page.path, line, err, strings.ReplaceAll(string(out), d.key, "KEY"))
			}
		}
	}
	if commands < 20 {
		t.Errorf("the pages show %d commands, want more", commands)
	}
}

// The page of operations names only metrics that a running instance has; all of them are on the page of metrics.
func TestDemoMetricsAreOnThePageOfOperations(t *testing.T) {
	d := runningDemo(t)
	info, ok, err := admin.RunningInstance(d.dir)
	if err != nil || !ok {
		t.Fatalf("no instance in %s: %v", d.dir, err)
	}
	response, err := http.Get("http://" + info.MetricsListen + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	exposed, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "\n## Metrics\n")
	table, _, _ = strings.Cut(table, "\n## ")
	ours := regexp.MustCompile(`\bmarketlog_[a-z_]+`)
	documented := ours.FindAllString(table, -1)
	var measured []string
	for line := range strings.SplitSeq(string(exposed), "\n") {
		if fields := strings.Fields(line); len(fields) > 3 && fields[1] == "HELP" && strings.HasPrefix(fields[2], "marketlog_") {
			measured = append(measured, fields[2]) // all of them are in docs/metrics.md
		}
	}
	if len(measured) < 10 {
		t.Fatalf("got the metrics %v, want those of roles, prices and requests at least", measured)
	}
	for _, name := range documented {
		// Of these there is nothing before the first.
		late := []string{"marketlog_http_refused_total", "marketlog_stream_closed_total", "marketlog_sql_statements_total"}
		if !slices.Contains(measured, name) && !slices.Contains(late, name) {
			t.Errorf("docs/operations.md describes %s, which a running instance does not have", name)
		}
	}
}

// servedLink is a link of a guide, by where it leads.
var servedLink = regexp.MustCompile(`\]\(([^)#\s]+)[^)\s]*\)`)

// What a guide that is served links to on this server is served too.
func TestDemoServesWhatItsGuidesLinkTo(t *testing.T) {
	d := runningDemo(t)
	files, err := fs.Glob(docs.Files, "*.md")
	if err != nil {
		t.Fatal(err)
	}
	folders, err := fs.Glob(docs.Files, "*/*.md")
	if err != nil {
		t.Fatal(err)
	}
	asked := map[string]bool{}
	for _, file := range append(files, folders...) {
		text := d.text(t, "/docs/"+file, "text/markdown; charset=utf-8")
		for _, link := range servedLink.FindAllSubmatch(text, -1) {
			to := string(link[1])
			if strings.Contains(to, "://") || asked[path.Join(path.Dir(file), to)] {
				continue
			}
			at := path.Join(path.Dir(file), to)
			asked[at] = true
			response, err := d.do(http.MethodGet, "/docs/"+at, "")
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			if response.StatusCode != http.StatusOK {
				t.Errorf("%s links to %s: /docs/%s answers %d", file, to, at, response.StatusCode)
			}
		}
	}
	if len(asked) < 100 {
		t.Errorf("%d files are linked to, want more", len(asked))
	}
}
