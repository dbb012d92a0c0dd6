package e2e

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/marketlog/marketlog/stream/streamtest"
)

// dashboard is the part of a Grafana dashboard that holds its queries.
type dashboard struct {
	UID, Title string
	Templating struct {
		List []struct{ Name, Query string }
	}
	Panels []panel
}

type panel struct {
	Type, Title string
	Datasource  struct{ Type, UID string }
	Targets     []struct{ Expr, RawSQL string }
}

func dashboards(t *testing.T) (list []dashboard) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("..", "grafana", "dashboards", "*.json"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no dashboards: %v", err)
	}
	sources, err := os.ReadFile(filepath.Join("..", "grafana", "provisioning", "datasources", "marketlog.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var d dashboard
		if err := json.Unmarshal(content, &d); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if want := "marketlog-" + strings.TrimSuffix(filepath.Base(path), ".json"); d.UID != want {
			t.Errorf("%s has the uid %s, want %s", path, d.UID, want)
		}
		for _, p := range d.Panels {
			if p.Type != "row" && (p.Datasource.UID == "" || !strings.Contains(string(sources), "uid: "+p.Datasource.UID+"\n")) {
				t.Errorf("%s: %s reads %q, which is not provisioned", path, p.Title, p.Datasource.UID)
			}
		}
		list = append(list, d)
	}
	return list
}

// promQueries are the PromQL queries of all panels, by where they are, with Grafana's variables as it fills them in.
func promQueries(t *testing.T) map[string]string {
	t.Helper()
	queries := map[string]string{}
	for _, d := range dashboards(t) {
		for _, p := range d.Panels {
			for i, target := range p.Targets {
				if target.Expr != "" {
					queries[fmt.Sprintf("%s: %s %d", d.Title, p.Title, i+1)] = strings.ReplaceAll(target.Expr, "$__rate_interval", "1m")
				}
			}
		}
	}
	if len(queries) < 50 {
		t.Fatalf("the dashboards have %d queries in PromQL, want 50 at least", len(queries))
	}
	return queries
}

// mayBeEmpty are panels that show nothing while nothing is wrong.
var mayBeEmpty = []string{"Gaps", "Dead letters", "Why inputs are rejected"}

// Every panel in SQL has rows on a running instance, with the macros expanded as the ClickHouse plugin of Grafana does.
func TestEveryPanelInSQLHasRows(t *testing.T) {
	d := filledDemo(t)
	run, deadline := 0, time.Now().Add(demoPatience)
	for _, shown := range dashboards(t) {
		for _, v := range shown.Templating.List {
			if v.Query != "" {
				d.hasRows(t, shown.Title+": variable "+v.Name, v.Query, deadline)
			}
		}
		for _, p := range shown.Panels {
			for _, target := range p.Targets {
				if target.RawSQL == "" {
					continue
				}
				run++
				if where := shown.Title + ": " + p.Title; slices.Contains(mayBeEmpty, p.Title) {
					if _, err := d.rows(target.RawSQL); err != nil {
						t.Errorf("%s: %v", where, err)
					}
				} else {
					d.hasRows(t, where, target.RawSQL, deadline)
				}
			}
		}
	}
	if run < 15 {
		t.Errorf("%d panels were run, want 15 at least", run)
	}
}

// hasRows asks until there are some: what is folded by minutes comes some minutes after the start.
func (d *demo) hasRows(t *testing.T, where, query string, deadline time.Time) {
	t.Helper()
	for ; ; time.Sleep(time.Second) {
		n, err := d.rows(query)
		switch {
		case err != nil:
			t.Errorf("%s: %v", where, err)
			return
		case n > 0:
			return
		case time.Now().After(deadline):
			t.Errorf("%s: no rows of %s", where, query)
			return
		}
	}
}

// grafanaMacros are those of the ClickHouse plugin that the dashboards use.
var grafanaMacros = []struct {
	from *regexp.Regexp
	to   string
}{
	{regexp.MustCompile(`\$__timeFilter\((\w+)\)`), "$1 >= toDateTime(now() - INTERVAL 1 HOUR) AND $1 <= toDateTime(now())"},
	{regexp.MustCompile(`\$__timeInterval\((\w+)\)`), "toStartOfInterval(toDateTime($1), INTERVAL 20 second)"},
	{regexp.MustCompile(`\$__fromTime`), "toDateTime(now() - INTERVAL 1 HOUR)"},
	{regexp.MustCompile(`\$\{coin\}`), "bitcoin"},
}

// rows runs a query of a panel on the SQL port, as the plugin does, and counts what comes.
func (d *demo) rows(query string) (int, error) {
	for _, macro := range grafanaMacros {
		query = macro.from.ReplaceAllString(query, macro.to)
	}
	if strings.Contains(query, "$") {
		return 0, fmt.Errorf("a macro is left in %s", query)
	}
	response, err := http.Post(d.sql+"/?default_format=JSON", "text/plain", strings.NewReader(query))
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("%s, %v: %.500s, for %s", response.Status, err, body, query)
	}
	var answer struct{ Rows int }
	if err := json.Unmarshal(body, &answer); err != nil {
		return 0, fmt.Errorf("%w in %.200s", err, body)
	}
	return answer.Rows, nil
}

// metricName finds what may name a metric in PromQL.
var metricName = regexp.MustCompile(`\b(marketlog|process|go)_\w+`)

// Panels and alerts ask for metrics and labels that there are.
func TestPanelsAndAlertsNameWhatIsMeasured(t *testing.T) {
	d := filledDemo(t)
	s := d.scrape(t)
	queries := promQueries(t)
	maps.Copy(queries, alertQueries(t))
	for where, query := range queries {
		for _, name := range metricName.FindAllString(query, -1) {
			if !s.measures(name) && !slices.Contains(measuredLater, name) {
				t.Errorf("%s asks for %s, which is not measured", where, name)
			}
		}
	}
}

// measuredLater have no sample before the first of something happens that a demo does not do.
var measuredLater = []string{
	"marketlog_stream_closed_total", "marketlog_sql_statements_total", "marketlog_replay_differing_keys",
	"marketlog_part_waiting",                                                                             // there is one while something is waited for
	"marketlog_archive_failing", "marketlog_archive_newest_timestamp_seconds", "marketlog_archive_bytes", // once a segment is archived
	"marketlog_replay_compared_keys", "marketlog_backfill_calls_total", "marketlog_backfill_failed_calls_total",
	"marketlog_lake_failing", // only where lake.dir is set
}

// measures reports whether a name in a query has samples: of a histogram by one of its three names.
func (s *scrape) measures(name string) bool {
	if s.families[name] != nil {
		return s.families[name].GetType() != dto.MetricType_HISTOGRAM
	}
	for _, suffix := range []string{"_bucket", "_count", "_sum"} {
		if bare, ok := strings.CutSuffix(name, suffix); ok && s.families[bare].GetType() == dto.MetricType_HISTOGRAM {
			return true
		}
	}
	return false
}

var alertExpression = regexp.MustCompile(`(?m)^      - alert: (\w+)\n        expr: '(.*)'$`)

// alertQueries are the expressions of the alerts, by name.
func alertQueries(t *testing.T) map[string]string {
	t.Helper()
	rules, err := os.ReadFile(filepath.Join("..", "prometheus", "marketlog.rules.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	queries := map[string]string{}
	for _, m := range alertExpression.FindAllStringSubmatch(string(rules), -1) {
		queries[m[1]] = strings.ReplaceAll(m[2], "''", "'")
	}
	if n := strings.Count(string(rules), "- alert: "); n == 0 || n != len(queries) {
		t.Fatalf("%d of %d alerts were read", len(queries), n)
	}
	return queries
}

// Each alert has a paragraph to act by, under the address that it leads to, and unit tests.
func TestEveryAlertIsExplainedAndTested(t *testing.T) {
	read := func(path ...string) string {
		text, err := os.ReadFile(filepath.Join(append([]string{".."}, path...)...))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	rules, tests, explained := read("prometheus", "marketlog.rules.yaml"), read("prometheus", "marketlog.rules.test.yaml"), read("..", "docs", "alerts.md")
	queries := alertQueries(t)
	for name, query := range queries {
		_, paragraph, ok := strings.Cut(explained, "\n### "+name+"\n\n")
		paragraph, _, _ = strings.Cut(paragraph, "\n#")
		if !ok || !strings.Contains(paragraph, "`"+query+"`") || len(paragraph) < len(query)+150 {
			t.Errorf("docs/alerts.md has no paragraph on %s with its expression and what to do", name)
		}
		if !strings.Contains(rules, "/docs/alerts.md#"+strings.ToLower(name)+"\n") {
			t.Errorf("%s has no runbook_url that leads to its paragraph", name)
		}
		if !strings.Contains(tests, "alertname: "+name+"\n") {
			t.Errorf("no unit test of %s", name)
		}
	}
	for _, heading := range regexp.MustCompile(`(?m)^### (\w+)$`).FindAllStringSubmatch(explained, -1) {
		if queries[heading[1]] == "" {
			t.Errorf("docs/alerts.md explains %s, which is no alert", heading[1])
		}
	}
}

// findPromtool finds Prometheus' own tool: the machine's, or the one that tools/promtool pins and builds.
func findPromtool(t *testing.T) string {
	t.Helper()
	streamtest.InTier(t, streamtest.TierContract)
	if path, err := exec.LookPath("promtool"); err == nil {
		return path
	}
	pinned, err := os.ReadFile(filepath.Join("..", "..", "tools", "promtool", "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(cache, "marketlog", fmt.Sprintf("promtool-%.6x", sha256.Sum256(pinned)), "promtool")
	if _, err := os.Stat(path); err != nil {
		streamtest.Missing(t, streamtest.TierContract, "no promtool; tools/promtool/fetch.sh builds it")
	}
	return path
}

func promtool(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command(findPromtool(t), args...).CombinedOutput(); err != nil {
		if len(out) > 8000 {
			out = out[:8000]
		}
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// The alerts do what their unit tests say, by Prometheus' own engine.
func TestAlertsPassTheirUnitTests(t *testing.T) {
	for _, args := range [][]string{
		{"check", "rules", "marketlog.rules.yaml"}, {"test", "rules", "marketlog.rules.test.yaml"}, {"check", "config", "--syntax-only", "prometheus.yaml"},
	} {
		path, err := filepath.Abs(filepath.Join("..", "prometheus", args[len(args)-1]))
		if err != nil {
			t.Fatal(err)
		}
		promtool(t, append(args[:len(args)-1:len(args)-1], path)...)
	}
}

// Every panel in PromQL has values, computed by Prometheus' own engine from what a running instance measures.
func TestEveryPanelInPromQLHasValues(t *testing.T) {
	findPromtool(t)
	d := filledDemo(t)
	// What panels show that is there only after a first request, stream or statement.
	d.hasRows(t, "a statement", "SELECT 1", time.Now().Add(demoPatience))
	first := d.scrape(t)
	second := d.measured(t, func(s *scrape) string {
		if s.at.Sub(first.at) < 2*time.Second {
			return "no second scrape"
		}
		if s.families["marketlog_log_bytes"] == nil {
			return "the broker did not say within a scrape how large the log is" // as on a machine that is busy
		}
		return ""
	})
	file := &strings.Builder{}
	file.WriteString("evaluation_interval: 15s\ntests:\n  - interval: 15s\n    input_series:\n")
	before := first.series()
	after := second.series()
	for _, name := range slices.Sorted(maps.Keys(after)) {
		was, ok := before[name]
		if !ok {
			was = after[name]
		}
		now := numberText(after[name])
		fmt.Fprintf(file, "      - {series: %s, values: '%s'}\n", yamlText(name), strings.Join([]string{numberText(was), now, now, now, now}, " "))
	}
	file.WriteString("    promql_expr_test:\n")
	queries := promQueries(t)
	for _, where := range slices.Sorted(maps.Keys(queries)) {
		fmt.Fprintf(file, "      - {expr: %s, eval_time: 1m, exp_samples: [{labels: '{}', value: 1}]} # %s\n",
			yamlText("count("+queries[where]+") > bool 0"), where)
	}
	path := filepath.Join(t.TempDir(), "panels.yaml")
	if err := os.WriteFile(path, []byte(file.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	promtool(t, "test", "rules", path)
}

func yamlText(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

func numberText(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// series are the values of all series as Prometheus keeps them, by their names in PromQL.
func (s *scrape) series() map[string]float64 {
	all := map[string]float64{}
	for name, family := range s.families {
		for _, m := range family.Metric {
			labels := []string{`job="marketlog"`, `instance="demo"`}
			for _, l := range m.Label {
				labels = append(labels, l.GetName()+"="+strconv.Quote(l.GetValue()))
			}
			add := func(name string, v float64, more ...string) {
				all[name+"{"+strings.Join(slices.Concat(labels, more), ",")+"}"] = v
			}
			if h := m.Histogram; h != nil {
				for _, b := range h.Bucket {
					add(name+"_bucket", float64(b.GetCumulativeCount()), `le="`+numberText(b.GetUpperBound())+`"`)
				}
				add(name+"_bucket", float64(h.GetSampleCount()), `le="+Inf"`)
				add(name+"_count", float64(h.GetSampleCount()))
				add(name+"_sum", h.GetSampleSum())
				continue
			}
			add(name, m.GetCounter().GetValue()+m.GetGauge().GetValue()+m.GetUntyped().GetValue())
		}
	}
	return all
}
