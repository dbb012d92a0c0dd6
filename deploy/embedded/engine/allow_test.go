//go:build linux || darwin

package engine

import (
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/marketlog/marketlog/schemas/tables"
)

// An upgrade of the engine brings functions; somebody has to decide on each.
func TestEveryFunctionIsAllowedOrDenied(t *testing.T) {
	e := openEngine(t)
	text, err := e.Ask("SELECT name, is_aggregate ? ' aggregate' : '' FROM system.functions", "TabSeparated")
	if err != nil {
		t.Fatal(err)
	}
	allowed, denied := listed(allowedText), listed(deniedText)
	known := map[string]bool{}
	for line := range strings.Lines(text) {
		name, kind, _ := strings.Cut(strings.TrimRight(line, "\n"), "\t")
		known[name] = true
		if !slices.Contains(allowed, name+kind) && !slices.Contains(denied, name) {
			t.Errorf("function %q is neither in allowed.txt nor in denied.txt", name+kind)
		}
	}
	for _, line := range slices.Concat(allowed, denied) {
		if name, _, _ := strings.Cut(line, " "); !known[name] {
			t.Errorf("%q is listed and the engine has no such function", name)
		}
	}
	for name := range denyOverlap() {
		t.Errorf("%q is allowed and denied", name)
	}
}

// denyOverlap are functions that differ from a denied one in case alone: names are compared without it.
func denyOverlap() map[string]bool {
	both := map[string]bool{}
	for name := range denied() {
		if allowed().functions[name] {
			both[name] = true
		}
	}
	return both
}

func TestOnlyWhatIsListedIsAllowed(t *testing.T) {
	server := analysts(t, openEngine(t))
	for _, query := range []string{
		"SELECT aggThrow(0.5)(1)", "SELECT aggThrowArgMin(0.5)(repeat('a',65536)) FROM numbers(1)", "SELECT aggThrowIfArgMinOrNull(0.5)(1, 1, 1)",
		"SELECT * FROM system.models", "SELECT * FROM `system`.`models`", "SELECT * FROM system /**/ . models", "SHOW PROCESSLIST", "SHOW GRANTS",
		"SELECT * FROM system.processes", "SELECT * FROM merge('system', 'models')", "SELECT arrayReduce('aggThrow', [1])",
		"SELECT * FROM system\u00a0.models", "SELECT arrayMap((file), ['x'])", "SELECT arrayMap(x -> file(x), ['x'])",
		"SELECT CAST(unhex('00'), 'AggregateFunction(aggThrow, UInt8)')", "SELECT sumMerge(x) FROM (SELECT CAST('', 'String') AS x)", "SELECT sumState(1)",
		"SELECT * FROM {t:Identifier}", "SELECT * FROM {d:Identifier}.models", "SELECT sleep(1)", "SELECT no_such_function(1)",
	} {
		if status, _, body := ask(t, server, query, "param_t", "system.models", "param_d", "system"); status != 403 && status != 404 {
			t.Errorf("%s: got %d %.200s, want 403 or 404", query, status, body)
		}
	}
	for _, query := range []string{
		"SELECT sumIf(number, number > 1), quantile(0.5)(number), countDistinct(number), uniqExactArray([number]), argMaxIf(number, 1, 1) FROM numbers(3) GROUP BY ALL",
		"SELECT x AS file, file + 1 FROM (SELECT 1 AS x)", "DESCRIBE (SELECT 1 AS a)", "SELECT a FROM (SELECT 1 AS a) WHERE a IN (1, 2) AND (a = 1)",
		"WITH x AS (SELECT 1 AS a) SELECT * APPLY(toString), * APPLY toString, * APPLY(c -> c + 1) FROM x", "SELECT CAST(1 AS Decimal(18, 2)), 1::Nullable(Float64)",
		"SELECT avg(a) OVER (PARTITION BY b ORDER BY c ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM (SELECT 1 AS a, 2 AS b, 3 AS c)",
		"SELECT format FROM (SELECT 1 AS format) FORMAT CSV", "SELECT name FROM system.tables", "SHOW TABLES", "SELECT * FROM information_schema.tables",
		"SELECT * FROM VALUES('a UInt8', 1, 2)", "SELECT toStartOfInterval(now(), INTERVAL 1 HOUR)", "EXPLAIN SELECT 1", "SELECT {a:Array(String)}", "SELECT 'file(x)'",
		"SELECT extract('ab', 'a'), EXTRACT(YEAR FROM now()), trim(BOTH 'x' FROM 'xax') -- SELECT file('x')",
	} {
		if status, _, body := ask(t, server, query, "param_a", "['file']"); status != 200 {
			t.Errorf("%s: got %d %.300s, want 200", query, status, body)
		}
	}
}

// A view that takes parameters is asked as a function is: those that there are may be, with whatever else is allowed in their brackets.
func TestViewsWithParametersAreAllowed(t *testing.T) {
	e := openEngine(t)
	files, err := fs.Glob(tables.Views, "views/v_*.sql")
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	for _, file := range files {
		text, err := fs.ReadFile(tables.Views, file)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(strings.TrimPrefix(file, "views/"), ".sql")
		if takes := strings.Contains(string(text), "{at:"); takes != tableFunctions[name] {
			t.Errorf("%s takes parameters is %t, and is allowed is %t", name, takes, tableFunctions[name])
		} else if takes {
			asked++
		}
	}
	if asked == 0 {
		t.Error("no view takes parameters")
	}
	exec(t, connect(t, e), "CREATE VIEW default.v_universe_at AS SELECT {at:DateTime64(3, 'UTC')} AS x", "CREATE VIEW default.v_of_others AS SELECT {at:String} AS x")
	server := analysts(t, e)
	for query, want := range map[string]string{
		"SELECT x FROM v_universe_at(at = '2026-11-24 12:00:00')": "2026-11-24 12:00:00.000\n", "SELECT x > now() - 3700 FROM default.v_universe_at(at = now() - 3600)": "1\n",
		"SELECT x FROM v_universe_at(at = {a:DateTime})": "2026-11-24 13:00:00.000\n", "SELECT count() FROM v_universe_at(at = now()) AS a JOIN (SELECT 1 AS y) AS b ON 1": "1\n",
		"DESCRIBE (SELECT * FROM v_universe_at(at = now()))": "x\tDateTime64(3, \\'UTC\\')\t\t\t\t\t\n",
	} {
		if status, _, body := ask(t, server, query, "param_a", "2026-11-24 13:00:00"); status != 200 || body != want {
			t.Errorf("%s: got %d %s, want %s", query, status, body, want)
		}
	}
	for _, query := range []string{
		"SELECT x FROM v_universe_at(at = file('/etc/passwd'))", "SELECT x FROM v_universe_at(at = (SELECT name FROM system.models))", "SELECT x FROM v_of_others(at = '1')",
		"SELECT x FROM v_universe_at(at = sleep(1))", "SELECT x FROM {v:Identifier}(at = '1')",
	} {
		if status, _, body := ask(t, server, query, "param_v", "v_of_others"); status == 200 {
			t.Errorf("%s: got %d %s, want a refusal", query, status, body)
		}
	}
}

// Clients send settings of their own accord; only what would change a limit or reach outside is refused.
func TestSettingsOfClients(t *testing.T) {
	e := openEngine(t)
	server := analysts(t, e)
	for _, more := range [][]string{
		{"extremes", "0"}, {"async_insert", "0"}, {"mutations_sync", "1"}, {"max_execution_time", "5"}, {"max_execution_time", "100000"},
		{"max_result_rows", "10"}, {"compress", "0"}, {"join_use_nulls", "1"}, {"use_uncompressed_cache", "0"}, {"max_threads", "4"}, {"readonly", "1"}, {"wait_end_of_query", "1"},
		{"output_format_json_quote_64bit_integers", "1"}, {"max_execution_time", "0"}, {"insert_distributed_sync", "1"}, {"mutations_sync", "3"},
	} {
		if status, _, body := ask(t, server, "SELECT 1", more...); status != 200 {
			t.Errorf("%v: got %d %s, want 200", more, status, body)
		}
	}
	for _, more := range [][]string{
		{"readonly", "0"}, {"allow_introspection_functions", "1"}, {"no_such_setting", "1"}, {"max_execution_time", "soon"}, {"output_format_schema", "x"},
	} {
		if status, _, body := ask(t, server, "SELECT 1", more...); status == 200 {
			t.Errorf("%v: got %d %s, want a refusal", more, status, body)
		}
	}
	// JDBC has its answers cut.
	if status, _, body := ask(t, server, "SELECT number FROM numbers(100000)", "max_result_rows", "10", "result_overflow_mode", "break"); status != 200 || len(body) > 500_000 || body == "" {
		t.Errorf("an answer that is cut: got %d and %d bytes", status, len(body))
	}
	// Drivers look at system.settings before they send one.
	for sql, want := range map[string]string{
		"SELECT name, value, readonly FROM system.settings WHERE name IN ('mutations_sync', 'max_execution_time', 'readonly', 'output_format_schema', 'join_use_nulls') ORDER BY name":                       "join_use_nulls\t0\t0\nmax_execution_time\t60\t0\nmutations_sync\t1\t0\noutput_format_schema\t\t1\nreadonly\t1\t1\n",
		"SELECT sum(s.readonly = 0) > 50, sum(s.readonly) > 1000, any(toTypeName(s.readonly)) FROM `system`.`settings` s":                                                                                    "1\t1\tUInt8\n",
		"SELECT settings.readonly FROM system.settings WHERE settings.name = 'mutations_sync' FORMAT CSV":                                                                                                    "0\n",
		"SELECT count(settings.readonly) > 1000 FROM (SELECT name FROM system.settings) AS a JOIN system.settings ON settings.name = a.name AND 'FROM system.settings' = concat('FROM system', '.settings')": "1\n",
	} {
		if status, _, body := ask(t, server, sql); status != 200 || body != want {
			t.Errorf("%s: got %d %q, want %q", sql, status, body, want)
		}
	}
	// A limit can be lowered, and never raised.
	for value, want := range map[string]string{"1": "159", "7": "159"} {
		if _, header, body := ask(t, analysts(t, e, func(l *Limits) { l.Time = 2e9 }), "SELECT sum(cityHash64(number)) FROM numbers(1000000000000)", "max_execution_time", value); header.Get("X-ClickHouse-Exception-Code") != want {
			t.Errorf("max_execution_time=%s: got %s, want code %s", value, body, want)
		}
	}
}
