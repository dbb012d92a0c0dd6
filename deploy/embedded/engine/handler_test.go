package engine

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
)

func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

func analysts(t *testing.T, e *Engine, change ...func(*Limits)) string {
	t.Helper()
	limits := DefaultLimits()
	for _, c := range change {
		c(&limits)
	}
	h, err := Handler(e, limits)
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, h)
}

// ask sends a query in the URL and returns what came.
func ask(t *testing.T, server, query string, more ...string) (status int, header http.Header, body string) {
	t.Helper()
	values := url.Values{"query": {query}}
	for i := 0; i < len(more); i += 2 {
		values.Set(more[i], more[i+1])
	}
	response, err := http.Get(server + "/?" + values.Encode())
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil && response.StatusCode == http.StatusOK {
		text = append(text, "BROKEN OFF"...)
	}
	return response.StatusCode, response.Header, string(text)
}

func TestAnalystsReadAsFromAServer(t *testing.T) {
	e := openEngine(t)
	server := analysts(t, e)
	exec(t, connect(t, e), "CREATE DATABASE marketlog", "CREATE TABLE marketlog.t (a UInt64) ENGINE = MergeTree ORDER BY a",
		"INSERT INTO marketlog.t SELECT number FROM numbers(10)", "CREATE VIEW default.v AS SELECT a FROM marketlog.t")
	for _, c := range []struct {
		query, body, format string
		more                []string
	}{
		{"SELECT 1", "1\n", "TabSeparated", nil},
		{"SELECT count() FROM v", "10\n", "TabSeparated", nil},
		{"SELECT max(a) AS m FROM t FORMAT JSONEachRow", "{\"m\":9}\n", "JSONEachRow", []string{"database", "marketlog"}},
		{"SELECT 'x' AS s, 1 AS n", "\"s\",\"n\"\n\"x\",1\n", "CSVWithNames", []string{"default_format", "CSVWithNames"}},
		{"SELECT {n:UInt8} + 1, {s:String};", "3\ta\\tb\n", "TabSeparated", []string{"param_n", "2", "param_s", "a\\tb"}},
		{"SELECT toUInt64(1) AS n FORMAT JSONEachRow", "{\"n\":\"1\"}\n", "JSONEachRow", []string{"output_format_json_quote_64bit_integers", "1"}},
		{"SELECT 1 WHERE 0", "", "TabSeparated", nil},
		{"SHOW TABLES", "v\n", "TabSeparated", nil},
		{"/* c */ -- d\nSHOW TABLES", "v\n", "TabSeparated", nil},
		{"SELECT formatReadableSize(1), 'FORMAT JSON' AS x", "1.00 B\tFORMAT JSON\n", "TabSeparated", nil},
	} {
		status, header, body := ask(t, server, c.query, c.more...)
		if status != 200 || body != c.body || header.Get("X-ClickHouse-Format") != c.format {
			t.Errorf("%s: got %d %q %s, want 200 %q %s", c.query, status, body, header.Get("X-ClickHouse-Format"), c.body, c.format)
		}
	}
	// Clients of JDBC take an answer for empty that does not state how many rows it has.
	if _, header, _ := ask(t, server, "SELECT a FROM marketlog.t WHERE a > 6"); !strings.Contains(header.Get("X-ClickHouse-Summary"), `"result_rows":"3"`) {
		t.Errorf("got the summary %s, want 3 rows", header.Get("X-ClickHouse-Summary"))
	}
	response, err := http.Post(server+"/?query=SELECT+1", "text/plain", strings.NewReader("+ 1"))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if body, _ := io.ReadAll(response.Body); string(body) != "2\n" {
		t.Errorf("a query cut in two: got %q, want 2", body)
	}
	for path, want := range map[string]int{"/ping": 200, "/": 200, "/nothing": 404} {
		response, err := http.Get(server + path)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("%s: got %d, want %d", path, response.StatusCode, want)
		}
	}
}

func TestAnalystsCanOnlyRead(t *testing.T) {
	e := openEngine(t)
	server := analysts(t, e)
	exec(t, connect(t, e), "CREATE TABLE t (a UInt64) ENGINE = MergeTree ORDER BY a")
	dir := t.TempDir()
	secret, out := filepath.Join(dir, "secret.csv"), filepath.Join(dir, "out")
	if err := os.WriteFile(secret, []byte("hidden"), 0o600); err != nil {
		t.Fatal(err)
	}
	contacted := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("the engine asked for %s", r.URL) }))
	for _, query := range []string{
		"INSERT INTO t VALUES (1)", "INSERT INTO t SELECT 1", "CREATE TABLE u (a Int8) ENGINE = Log", "DROP TABLE t", "TRUNCATE t",
		"CREATE TEMPORARY TABLE u (a Int8)", "SET max_threads = 2", "SET readonly = 0", "USE system",
		"SELECT 1 SETTINGS max_threads = 2", "SELECT 1 SETTINGS readonly = 0",
		"SYSTEM SHUTDOWN", "SYSTEM STOP MERGES", "KILL QUERY WHERE 1", "SYSTEM STOP MERGES; ???", "(SYSTEM STOP MERGES)", "SELECT 1; SELECT 2",
		"SELECT 1 INTO OUTFILE '" + out + "'", "SHOW TABLES INTO OUTFILE '" + out + "'", "(SELECT 1 INTO OUTFILE '" + out + "')",
		"SELECT 1 INTO OUTFILE '" + out + "'; ???", "DESCRIBE TABLE t INTO OUTFILE '" + out + "'",
		"EXPLAIN SELECT 1 INTO OUTFILE '" + out + "'", "SELECT 1 PARALLEL WITH SELECT 2 INTO OUTFILE '" + out + "'",
		"SELECT file('" + secret + "')", "SELECT `file`('" + secret + "')", "SELECT `\\x66ile`('" + secret + "')", "SELECT `fi\\Nle`('" + secret + "')",
		"SELECT “file”('" + secret + "')", "SELECT \"\\x66ile\"('" + secret + "')", "SELECT “\\x66ile”('" + secret + "')",
		"SELECT file\u00a0('" + secret + "')", "SELECT /**/file/**/('" + secret + "')", "// '\nSELECT file('" + secret + "') // '",
		"SELECT 'a' AS x -- '\n, file('" + secret + "')", "SELECT $a$'$a$, file('" + secret + "')",
		"SELECT arrayMap(file, ['" + secret + "'])", "SELECT * APPLY(file) FROM (SELECT '" + secret + "')", "SELECT * APPLY file FROM (SELECT '" + secret + "')",
		"SELECT * FROM eval('SELECT fi' || 'le(\\'" + secret + "\\')')", "SELECT * FROM file('" + secret + "')", "SELECT * FROM `" + secret + "`",
		"SELECT * FROM '" + secret + "'", "SELECT * FROM default.`" + secret + "`", "DESCRIBE TABLE file('" + secret + "')", "DESCRIBE `" + secret + "`",
		"DESC url('" + contacted + "/x.csv')", "DESCRIBE TABLE url('" + contacted + "/x.csv', 'CSV')", "/**/DESCRIBE TABLE url('" + contacted + "/x.csv', CSV)",
		"// x\nDESCRIBE TABLE url('" + contacted + "/x.csv', CSV)", "#!x\nDESCRIBE TABLE url('" + contacted + "/x.csv', CSV)",
		"\u00a0DESCRIBE TABLE url('" + contacted + "/x.csv', CSV)", ";DESCRIBE TABLE url('" + contacted + "/x.csv', CSV)",
		"SELECT * FROM url('" + contacted + "/x.csv', CSV)", "SELECT * FROM url('" + contacted + "/x.csv', CSV, 'a String')",
		"EXPLAIN SELECT * FROM url('" + contacted + "/x.csv', CSV)", "EXPLAIN PLAN SELECT * FROM s3('" + contacted + "/bucket/x.csv', CSV)",
		"EXPLAIN ESTIMATE SELECT * FROM url('" + contacted + "/x.csv', CSV)", "SELECT * FROM loop(url('" + contacted + "/x.csv', CSV))",
		"SELECT * FROM s3('" + contacted + "/bucket/x.csv', CSV)", "SELECT * FROM view(SELECT * FROM url('" + contacted + "/x.csv', CSV))",
		"SELECT * FROM viewIfPermitted(SELECT * FROM url('" + contacted + "/x.csv', CSV) ELSE null('a String'))",
		"SELECT catboostEvaluate('" + secret + "', 1)", "SELECT aiGenerate('x', 'y')", "CHECK TABLE t", "BACKUP TABLE t TO File('" + out + "')",
	} {
		status, _, body := ask(t, server, query)
		if status == 200 || strings.Contains(body, "hidden") {
			t.Errorf("%s: got %d %s", query, status, body)
		}
	}
	for _, more := range [][]string{
		{"max_threads", "8"}, {"readonly", "0"}, {"max_execution_time", "0"}, {"output_format_schema", out}, {"log_comment", "x"},
		{"param_f", "file"}, {"compress", "1"},
	} {
		if status, _, body := ask(t, server, "SELECT * APPLY({f:Identifier}) FROM (SELECT '"+secret+"')", more...); status == 200 || strings.Contains(body, "hidden") {
			t.Errorf("%v: got %d %s", more, status, body)
		}
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("a statement wrote a file")
	}
	// For those with all rights, it must neither crash the process nor interrupt goroutines.
	if n, err := e.ask("SELECT toString(count() > 0) FROM system.stack_trace"); err != nil || n != "1" {
		t.Errorf("system.stack_trace: got %s %v", n, err)
	}
	if status, _, body := ask(t, server, "SELECT count() FROM t"); status != 200 || body != "0\n" {
		t.Errorf("after all that: got %d %s, want an empty table", status, body)
	}
}

func TestErrorsLookLikeAServers(t *testing.T) {
	server := analysts(t, openEngine(t))
	for query, want := range map[string][2]int{
		"SELECT * FROM nothing": {404, 60}, "SELEC 1": {400, 62}, "SELECT no_such(1)": {404, 46}, "": {400, 62}, "DROP TABLE x": {403, 164},
	} {
		response, err := http.Post(server, "", strings.NewReader(query))
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(response.Body)
		response.Body.Close()
		code := response.Header.Get("X-ClickHouse-Exception-Code")
		if response.StatusCode != want[0] || code != strconv.Itoa(want[1]) || !strings.HasPrefix(string(body), "Code: "+code+". DB::Exception: ") {
			t.Errorf("%q: got %d, code %s, %q, want %v", query, response.StatusCode, code, body, want)
		}
	}
	status, _, body := ask(t, server, "SELECT throwIf(number = 3000000) FROM numbers(4000000)")
	if status != 200 || !strings.HasSuffix(body, "BROKEN OFF") || !strings.Contains(body, "__exception__\r\n") || !strings.Contains(body, "Code: 395.") {
		t.Errorf("got %d … %q, want a result that breaks off with the exception", status, body[max(0, len(body)-300):])
	}
}

func TestLimitsHold(t *testing.T) {
	server := analysts(t, openEngine(t), func(l *Limits) { // statements that reach another limit do so in time on a busy machine too
		l.Time, l.Rows, l.Memory, l.Query, l.Statements, l.Wait = 5*time.Second, 1000, 30<<20, 1000, 1, 50*time.Millisecond
	})
	for query, want := range map[string]string{
		"SELECT sum(cityHash64(number)) FROM numbers(1000000000000)":                   "159",
		"SELECT number FROM numbers(2000)":                                             "396",
		"SELECT groupArray(toString(number)) FROM numbers(10000000) FORMAT Null":       "241",
		"SELECT '" + strings.Repeat("x", 1000) + "'":                                   "",
		"SELECT count() FROM (SELECT number FROM numbers(30000000) GROUP BY number)  ": "241",
	} {
		began := time.Now()
		_, header, body := ask(t, server, query)
		if got := header.Get("X-ClickHouse-Exception-Code"); got != want && !(want != "" && strings.Contains(body, "Code: "+want+".")) {
			t.Errorf("%.80s: got code %s %.200s, want %s", query, got, body, want)
		}
		if took := time.Since(began); took > time.Minute {
			t.Errorf("%.80s: it took %v", query, took)
		}
	}
	response, err := http.Post(server, "", strings.NewReader("SELECT '"+strings.Repeat("x", 1000)+"'"))
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("a long query: got %d, want 413", response.StatusCode)
	}
	// A long statement is sent again and again, since each may find the one place taken by a short one.
	released := make(chan struct{})
	over := make(chan struct{})
	go func() {
		defer close(over)
		for {
			select {
			case <-released:
				return
			default:
				response, err := http.Get(server + "/?query=" + url.QueryEscape("SELECT sum(cityHash64(number)) FROM numbers(1000000000000)"))
				if err != nil {
					return // the server has ended, and with it the test
				}
				response.Body.Close()
			}
		}
	}()
	waitFor(t, func() bool {
		status, header, _ := ask(t, server, "SELECT 1")
		return status == 503 && header.Get("X-ClickHouse-Exception-Code") == "202" && header.Get("Retry-After") != ""
	})
	close(released)
	<-over
}

func TestLargeResultsStream(t *testing.T) {
	server := analysts(t, openEngine(t))
	query := "SELECT number, toString(cityHash64(number)) FROM numbers(10000000) FORMAT CSV"
	ask(t, server, "SELECT 1")
	before := residentBytes(t)
	began := time.Now()
	response, err := http.Get(server + "/?query=" + url.QueryEscape(query))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	r := bufio.NewReader(response.Body)
	if _, err := r.ReadByte(); err != nil {
		t.Fatal(err)
	}
	first := time.Since(began)
	var peak int64
	lines := 0
	for {
		_, err := r.ReadSlice('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if lines++; lines%1_000_000 == 0 {
			peak = max(peak, residentBytes(t)-before)
		}
	}
	t.Logf("first byte after %v, %d lines in %v, memory grew by at most %d MB", first, lines, time.Since(began), peak>>20)
	if lines != 10_000_000 {
		t.Errorf("got %d lines, want 10000000", lines)
	}
	if peak > 128<<20 {
		t.Errorf("memory grew by %d MB, want a flat line", peak>>20)
	}
}

func residentBytes(t *testing.T) int64 {
	t.Helper()
	if runtime.GOOS != "linux" {
		return 0
	}
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

func TestGzipOnlyIfAsked(t *testing.T) {
	server := analysts(t, openEngine(t))
	request, _ := http.NewRequest("GET", server+"/?enable_http_compression=1&query="+url.QueryEscape("SELECT number FROM numbers(100000)"), nil)
	request.Header.Set("Accept-Encoding", "gzip, deflate")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	z, err := gzip.NewReader(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil || bytes.Count(text, []byte("\n")) != 100000 {
		t.Errorf("got %d lines (%v), want 100000", bytes.Count(text, []byte("\n")), err)
	}
}

// The same driver with the same options serves an engine inside the process and one behind the port of another.
func TestServerTakesTheDriver(t *testing.T) {
	e := openEngine(t)
	server := serve(t, ServerHandler(e, "secret"))
	address := strings.TrimPrefix(server, "http://")
	dial := func(password string) (clickhouse.Conn, error) {
		return clickhouse.Open(&clickhouse.Options{Protocol: clickhouse.HTTP, Addr: []string{address}, Auth: clickhouse.Auth{Username: "marketlog", Password: password}})
	}
	db, err := dial("secret")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	exec(t, db, "CREATE TABLE t (a UInt64, s String) ENGINE = MergeTree ORDER BY a")
	batch, err := db.PrepareBatch(t.Context(), "INSERT INTO t")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100_000 {
		if err := batch.Append(uint64(i), "line\nline"); err != nil {
			t.Fatal(err)
		}
	}
	if err := batch.Send(); err != nil {
		t.Fatal(err)
	}
	var n, length uint64
	if err := db.QueryRow(t.Context(), "SELECT count(), sum(length(s)) FROM t").Scan(&n, &length); err != nil || n != 100_000 || length != 900_000 {
		t.Errorf("got %d rows, %d bytes (%v), want 100000 and 900000", n, length, err)
	}
	for _, password := range []string{"", "wrong", "secret2"} {
		db, err := dial(password)
		if err != nil {
			t.Fatal(err)
		}
		var ex *clickhouse.Exception
		if err := db.Ping(t.Context()); !errors.As(err, &ex) || ex.Code != 516 {
			t.Errorf("password %q: got %v, want code 516", password, err)
		}
		db.Close()
	}
	for _, c := range [][2]string{
		{"INSERT INTO t FORMAT CSV", "1,\"a\nb\"\n2,c\n"},
		{"INSERT INTO t (a, s) VALUES", "(1, 'a\nb'), (2, 'c')"},
		{"INSERT INTO t SETTINGS async_insert = 0 FORMAT JSONEachRow", `{"a":1,"s":"a\nb"}{"a":2,"s":"c"}`},
		{"", "INSERT INTO t FORMAT TSV\n1\ta\\nb\n2\tc\n"},
		{"", "INSERT INTO t VALUES (1, 'a\nb'), (2, 'c')"},
		{"INSERT INTO t", "VALUES (1, 'a\nb'), (2, 'c')"},
		{"", "INSERT INTO t SELECT number + 1, number = 0 ? 'a\nb' : 'c' FROM numbers(2)"},
	} {
		exec(t, db, "TRUNCATE TABLE t")
		response, err := http.Post(server+"/?password=secret&query="+url.QueryEscape(c[0]), "", strings.NewReader(c[1]))
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(response.Body)
		response.Body.Close()
		var got string
		if err := db.QueryRow(t.Context(), "SELECT toString(groupArray((a, s))) FROM (SELECT * FROM t ORDER BY a)").Scan(&got); err != nil {
			t.Fatal(err)
		}
		if want := `[(1,'a\nb'),(2,'c')]`; response.StatusCode != 200 || got != want {
			t.Errorf("%q with %q: got %d %s and %s, want %s", c[0], c[1], response.StatusCode, body, got, want)
		}
	}
}
