package tables_test

import (
	"bytes"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/marketlog/marketlog/schemas/tables"
)

// documents are the guides and sample queries; schemas import nothing else of ours, not even these.
var documents = os.DirFS(filepath.Join("..", "..", "docs"))

var update = flag.Bool("update", false, "write the documents of the views")

// views are the declarations of all views of analysts, in the order of their names.
func views(t *testing.T) []tables.View {
	t.Helper()
	list, err := tables.Declared()
	if err != nil {
		t.Fatal(err)
	}
	if len(list) < 30 {
		t.Fatalf("got %d views, want all", len(list))
	}
	return list
}

// cell is a text within a table of Markdown.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// written holds a file against what it should be; with -update it writes it.
func written(t *testing.T, path, want string) {
	t.Helper()
	path = filepath.Join("..", "..", "docs", path)
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is not what the views and sample queries declare; `go test ./schemas/tables -run TestDocumentsOfSQL -update` writes it", path)
	}
}

// The lists of views and samples in docs/sql.md, the columns in docs/views.md and the sources of dbt are those that the files declare.
func TestDocumentsOfSQLAreUpToDate(t *testing.T) {
	list := views(t)
	page, err := fs.ReadFile(documents, "sql.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(page)
	for heading, lines := range map[string]string{"Views": viewsTable(list), "Samples": samplesList(t)} {
		before, rest, found := strings.Cut(text, "\n## "+heading+"\n")
		_, after, ends := strings.Cut(rest, "\n## ")
		if !found || !ends {
			t.Fatalf("docs/sql.md has no section %q with another behind it", heading)
		}
		text = before + "\n## " + heading + "\n\n" + lines + "\n## " + after
	}
	written(t, "sql.md", text)
	written(t, "views.md", viewsPage(list))
	written(t, filepath.Join("dbt", "sources.yml"), dbtSources(t, list))
}

func viewsTable(list []tables.View) string {
	var b strings.Builder
	b.WriteString("Each column has a comment with its unit and meaning: `DESCRIBE` shows them, and [views.md](views.md) lists all. Prices are in USD, times in UTC, money that\n" +
		"must be exact is also given as text with all its digits. How long rows are kept is the most: an instance with a [disk budget](operations.md#retention) drops\n" +
		"the oldest ticks and prices, and views of them, earlier.\n\n| View | Its rows |\n|---|---|\n")
	for _, v := range list {
		fmt.Fprintf(&b, "| [`%s`](views.md#%s) | %s |\n", v.Name, v.Name, cell(v.Comment))
	}
	return b.String()
}

func viewsPage(list []tables.View) string {
	var b strings.Builder
	b.WriteString("# Views\n\nEvery [SQL](sql.md) view with its columns, generated from the comments in `schemas/tables/views`; a test compares them.\n")
	for _, v := range list {
		fmt.Fprintf(&b, "\n## %s\n\n%s.\n\n| Column | Type | Meaning |\n|---|---|---|\n", v.Name, v.Comment)
		for _, c := range v.Columns {
			fmt.Fprintf(&b, "| `%s` | `%s` | %s |\n", c.Name, c.Type, cell(c.Comment))
		}
	}
	return b.String()
}

// samplesList reads the sample queries. Each begins with its title, its columns and what makes it right.
func samplesList(t *testing.T) string {
	t.Helper()
	names, err := fs.Glob(documents, "queries/*.sql")
	if err != nil || len(names) < 12 {
		t.Fatalf("got %d sample queries and %v, want at least 12", len(names), err)
	}
	var b strings.Builder
	b.WriteString("Each states its columns and what makes it right, such as how it does not look ahead. The page `/sql` offers all of them.\n\n")
	for i, name := range names {
		text, err := fs.ReadFile(documents, name)
		if err != nil {
			t.Fatal(err)
		}
		title, rest, _ := strings.Cut(strings.TrimPrefix(string(text), "-- "), "\n")
		if !strings.HasPrefix(rest, "--\n-- Columns: ") || !strings.Contains(rest, "\n-- Right because: ") || !strings.Contains(rest, "\nFROM ") {
			t.Errorf("%s: want a title, then a paragraph with `Columns:` and `Right because:`, then the statement", name)
		}
		if want := fmt.Sprintf("queries/%02d-", i+1); !strings.HasPrefix(name, want) {
			t.Errorf("%s: want a name that begins with %s", name, want)
		}
		fmt.Fprintf(&b, "- [%s](%s)\n", title, name)
	}
	return b.String()
}

// keys are columns of which each row of a view has another value, and loaded those that show how new a view is, with the minutes after
// which it is late. TestDemoSuitsDBT holds both against a running instance.
var (
	keys = map[string]string{
		"v_coins": "coin_id", "v_markets": "coin_id", "v_global": "time", "v_defi": "time", "v_fiat": "currency", "v_sources": "source", "v_rates": "key",
	}
	loaded = map[string]freshness{
		"v_prices": {"time", 5}, "v_ticks": {"ingest_time", 5}, "v_candles_1m": {"start", 10}, "v_venue_candles_1m": {"start", 10}, "v_markets": {"time", 10},
		"v_global": {"time", 10}, "v_lag": {"log_time", 5}, "v_fetches": {"started", 60}, "v_rates": {"heard", 120},
	}
)

type freshness struct {
	column  string
	minutes int
}

// dbtSources are the views as dbt 1.10 declares sources.
func dbtSources(t *testing.T, list []tables.View) string {
	t.Helper()
	type dbtColumn struct {
		Name        string   `yaml:"name"`
		Description string   `yaml:"description"`
		Type        string   `yaml:"data_type"`
		Tests       []string `yaml:"data_tests,omitempty"`
	}
	type after struct {
		Count  int    `yaml:"count"`
		Period string `yaml:"period"`
	}
	type config struct {
		LoadedAt  string           `yaml:"loaded_at_field"`
		Freshness map[string]after `yaml:"freshness"`
	}
	type table struct {
		Name        string      `yaml:"name"`
		Description string      `yaml:"description"`
		Config      *config     `yaml:"config,omitempty"`
		Columns     []dbtColumn `yaml:"columns"`
	}
	type source struct {
		Name        string  `yaml:"name"`
		Description string  `yaml:"description"`
		Schema      string  `yaml:"schema"`
		Tables      []table `yaml:"tables"`
	}
	s := source{Name: "marketlog", Description: "The views of Marketlog's SQL port: prices, their inputs, candles, markets, yields and what is known of their sources.", Schema: "default"}
	used := 0
	for _, v := range list {
		if v.Name == "v_usage" || v.Parameters {
			continue // for operators, the port does not show it; or no table, whose columns could be tested
		}
		made := table{Name: v.Name, Description: v.Comment + "."}
		if f, ok := loaded[v.Name]; ok {
			made.Config = &config{f.column, map[string]after{"warn_after": {f.minutes, "minute"}}}
			used++
			if !slices.ContainsFunc(v.Columns, func(c tables.Column) bool { return c.Name == f.column }) {
				t.Errorf("%s has no column %s", v.Name, f.column)
			}
		}
		for _, c := range v.Columns {
			described := dbtColumn{Name: c.Name, Description: c.Comment, Type: c.Type}
			if !strings.HasPrefix(c.Type, "Nullable(") {
				described.Tests = append(described.Tests, "not_null")
			}
			if keys[v.Name] == c.Name {
				described.Tests = append(described.Tests, "unique")
				used++
			}
			made.Columns = append(made.Columns, described)
		}
		s.Tables = append(s.Tables, made)
	}
	if used != len(keys)+len(loaded) {
		t.Errorf("of the %d keys and %d columns of time that are named, views have %d", len(keys), len(loaded), used)
	}
	var b bytes.Buffer
	b.WriteString("# Generated from the comments in schemas/tables/views; a test compares them. For dbt 1.10 or later with dbt-clickhouse.\n")
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	if err := encoder.Encode(struct {
		Version int      `yaml:"version"`
		Sources []source `yaml:"sources"`
	}{2, []source{s}}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
