//go:build linux || darwin

package sqlport

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/marketlog/marketlog/deploy/embedded/engine"
)

// tryVariable makes this test's binary confine itself and then try what it must not be able to do.
const tryVariable = "SQLPORT_TEST_TRY"

func TestMain(m *testing.M) {
	RunIfChild()
	if text, ok := os.LookupEnv(tryVariable); ok {
		tryToLeave(text)
		return
	}
	os.Exit(m.Run())
}

// installation is an owner with tables, and a reader of them.
type installation struct {
	owner   *engine.Engine
	reader  *Reader
	metrics *prometheus.Registry
	dir     string
	url     string
}

func install(t testing.TB, change ...func(*Options)) *installation {
	t.Helper()
	if _, err := engine.Find(""); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	dir := t.TempDir()
	owner, err := engine.Open(filepath.Join(dir, "tables"), engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = owner.Close() })
	opt := Options{Tables: filepath.Join(dir, "tables"), Dir: filepath.Join(dir, "sql"), Hidden: []string{"v_secret"}, Metrics: prometheus.NewRegistry()}
	for _, c := range change {
		c(&opt)
	}
	i := &installation{owner: owner, reader: New(owner, opt), metrics: opt.Metrics.(*prometheus.Registry), dir: dir}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = i.reader.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	server := httptest.NewServer(i.reader.People())
	t.Cleanup(server.Close)
	i.url = server.URL
	i.do(t, "CREATE DATABASE m ENGINE = Atomic", "CREATE TABLE m.t (a UInt64, s LowCardinality(String)) ENGINE = ReplacingMergeTree ORDER BY a PARTITION BY a % 3",
		"CREATE VIEW default.v_t AS SELECT a, s FROM m.t FINAL", "CREATE VIEW default.v_a AS SELECT max(a) AS a FROM v_t", "CREATE VIEW default.v_secret AS SELECT 'hidden' AS s",
		"INSERT INTO m.t SELECT number, toString(number % 7) FROM numbers(1000)")
	return i
}

func (i *installation) do(t testing.TB, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := i.owner.Ask(s, "Null"); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// brokenOff ends what is given back of an answer that was broken off.
const brokenOff = " BROKEN OFF"

func (i *installation) ask(t testing.TB, statement string) (status int, body string) {
	t.Helper()
	response, err := http.Post(i.url, "text/plain", strings.NewReader(statement))
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return response.StatusCode, string(text) + brokenOff
	}
	return response.StatusCode, string(text)
}

// wait polls until a statement answers so.
func (i *installation) wait(t testing.TB, statement, want string) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		status, body := i.ask(t, statement)
		if status == 200 && body == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: got %d %q, want %q", statement, status, body, want)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// metric is the value of a counter.
func (i *installation) metric(t *testing.T, name string) float64 {
	t.Helper()
	families, err := i.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetCounter().GetValue()
		}
	}
	t.Fatalf("no metric %s", name)
	return 0
}

func (i *installation) pid() int {
	i.reader.mu.Lock()
	defer i.reader.mu.Unlock()
	return i.reader.child.command.Process.Pid
}

func TestPeopleReadWhatTheOwnerWrites(t *testing.T) {
	i := install(t)
	if status, body := i.ask(t, "SELECT count(), max(a) FROM v_t"); status != 200 || body != "1000\t999\n" {
		t.Fatalf("got %d %s, want 1000 rows", status, body)
	}
	i.do(t, "INSERT INTO m.t SELECT number + 1000, 'x' FROM numbers(500)")
	i.wait(t, "SELECT count(), max(a) FROM v_t", "1500\t1499\n")
	i.do(t, "OPTIMIZE TABLE m.t FINAL")
	i.wait(t, "SELECT count(), any(v_a.a) FROM v_t, v_a", "1500\t1499\n")
	// As a replay does: a table built beside takes the place of another.
	i.do(t, "CREATE TABLE m.u AS m.t", "INSERT INTO m.u SELECT number, 'y' FROM numbers(7)", "EXCHANGE TABLES m.t AND m.u", "DROP TABLE m.u SYNC")
	i.wait(t, "SELECT count() FROM v_t", "7\n")
	i.do(t, "CREATE VIEW default.v_new AS SELECT 1 AS one", "CREATE VIEW default.v_universe_at (a UInt64 COMMENT 'a') AS SELECT a FROM m.t WHERE a < toUnixTimestamp({at:DateTime64(3, 'UTC')}) COMMENT 'at an instant'")
	i.wait(t, "SELECT one FROM v_new", "1\n")
	i.wait(t, "SELECT max(a) FROM v_universe_at(at = '1970-01-01 00:00:05')", "4\n")
	for _, statement := range []string{"DROP TABLE m.t", "INSERT INTO m.t VALUES (1, 'x')", "TRUNCATE TABLE m.t", "SELECT * FROM v_secret", "SELECT * FROM `v_secret`"} {
		if status, body := i.ask(t, statement); status != 403 {
			t.Errorf("%s: got %d %s, want 403", statement, status, body)
		}
	}
	operator := httptest.NewServer(i.reader.Operator())
	defer operator.Close()
	i.url = operator.URL
	if status, body := i.ask(t, "SELECT s FROM v_secret"); status != 200 || body != "hidden\n" {
		t.Errorf("an operator: got %d %s, want hidden", status, body)
	}
	if n, err := i.owner.Ask("SELECT count() FROM m.t", "TabSeparated"); err != nil || n != "7\n" {
		t.Errorf("the owner has %s (%v), want 7", n, err)
	}
}

func TestTablesMayHaveComments(t *testing.T) {
	i := install(t)
	for n, settings := range []string{"", " SETTINGS index_granularity = 1024"} {
		table := fmt.Sprintf("m.noted%d", n)
		i.do(t, "CREATE TABLE "+table+" (a UInt64 COMMENT 'a, COMMENT \\'b\\'') ENGINE = MergeTree ORDER BY a"+settings+
			" COMMENT 'the owner\\'s COMMENT \\'and\\' SETTINGS \\\\'", "INSERT INTO "+table+" SELECT number FROM numbers(7)")
		i.wait(t, "SELECT count() FROM "+table, "7\n")
	}
}

// Readers are not shown where the tables lie, nor what others ask.
func TestNobodyIsShownPaths(t *testing.T) {
	i := install(t)
	i.wait(t, "SELECT count() FROM v_t", "1000\n")
	tables, err := i.owner.Ask("SELECT name FROM system.tables WHERE database = 'system' ORDER BY name", "TabSeparated")
	if err != nil {
		t.Fatal(err)
	}
	statements := []string{"SHOW CREATE TABLE m.t", "SHOW CREATE VIEW default.v_t", "SHOW CREATE DATABASE m", "SELECT * FROM information_schema.tables", "EXPLAIN SELECT * FROM v_t",
		"EXPLAIN PLAN indexes = 1 SELECT * FROM v_t", "EXPLAIN PIPELINE SELECT * FROM v_t", "SELECT _path FROM m.t", "SELECT * FROM m.t AS x, nothing AS y", "DESCRIBE m.t"}
	for name := range strings.Lines(tables) {
		statements = append(statements, "SELECT * FROM system."+strings.TrimSpace(name)+" LIMIT 5000")
	}
	answered := 0
	for _, statement := range statements {
		status, body := i.ask(t, statement)
		if status == 200 {
			answered++
		}
		if at := strings.Index(body, i.dir); at >= 0 {
			t.Errorf("%s: got %d …%.300s", statement, status, body[max(0, at-100):])
		}
	}
	if answered < 20 {
		t.Errorf("only %d of %d statements were answered", answered, len(statements))
	}
}

// The server passes an answer on with buffers that it has already: made for each statement, they are most of what its collector works for.
func TestAStatementLeavesTheServerLittleGarbage(t *testing.T) {
	i := install(t)
	i.wait(t, "SELECT 1", "1\n")
	const rounds, statements, want = 5, 50, 100 << 10
	// Other goroutines make garbage too, and the race detector has pools lose what they hold now and then: the least of some rounds counts.
	least := uint64(math.MaxUint64)
	for round := 0; round < rounds && least > want; round++ {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range statements {
			if status, body := i.ask(t, "SELECT 1"); status != 200 {
				t.Fatalf("SELECT 1: got %d %s", status, body)
			}
		}
		runtime.ReadMemStats(&after)
		least = min(least, (after.TotalAlloc-before.TotalAlloc)/statements)
	}
	if least > want {
		t.Errorf("a statement, its client here included, leaves %d bytes, want at most %d", least, want)
	}
}

// Each folder in the path of a table is looked up whenever a file of it is opened, so the process works in the folder of the tables
// and calls them by what is beneath.
func TestTablesAreNamedByTheShortestPath(t *testing.T) {
	i := install(t)
	objects, err := catalogOf(i.owner, filepath.Join(i.dir, "tables"))
	if err != nil {
		t.Fatal(err)
	}
	tables := 0
	for _, o := range objects {
		if o.View {
			continue
		}
		tables++
		if !strings.Contains(o.SQL, "path = 'store/") {
			t.Errorf("%s: got %s, want a path beneath the folder of the tables", o.key(), o.SQL)
		}
	}
	if tables == 0 {
		t.Error("the owner has no tables")
	}
}

// What ends the process ends one statement, and nothing of the server.
func TestAnEndOfTheProcessIsNoEndOfTheServer(t *testing.T) {
	i := install(t)
	for round := range 3 {
		i.wait(t, "SELECT 1", "1\n")
		pid := i.pid()
		slow := make(chan string)
		go func() {
			status, body := i.ask(t, "SELECT sum(cityHash64(number)) FROM numbers(1000000000000)")
			slow <- fmt.Sprint(status, " ", body)
		}()
		i.until(t, "the statement to run", func() bool { return i.reader.slots.count() > 0 })
		if err := syscall.Kill(pid, []syscall.Signal{syscall.SIGSEGV, syscall.SIGABRT, syscall.SIGKILL}[round]); err != nil {
			t.Fatal(err)
		}
		if got := <-slow; !strings.HasPrefix(got, "503 ") || !strings.Contains(got, "ended") {
			t.Errorf("the statement that ran: got %s, want 503 that says that the process ended", got)
		}
		i.wait(t, "SELECT count() FROM v_t", "1000\n")
		if got := i.metric(t, "marketlog_sql_process_crashes_total"); got != float64(round+1) {
			t.Errorf("round %d: %v ends are counted", round, got)
		}
		if i.pid() == pid {
			t.Error("the process is the same")
		}
		if n, err := i.owner.Ask("SELECT count() FROM m.t", "TabSeparated"); err != nil || n != "1000\n" {
			t.Errorf("the owner has %s (%v), want 1000", n, err)
		}
	}
}

// The engine does not look at the clock while it plans: forty common table expressions, each of which uses the one before
// twice, would plan for minutes.
func TestPlanningCountsAsTime(t *testing.T) {
	i := install(t, func(o *Options) {
		o.Limits = engine.DefaultLimits()
		o.Limits.Time = time.Second
	})
	began := time.Now()
	if status, body := i.ask(t, manyPlans(40)); status == 200 {
		t.Errorf("got %d %.200s, want a refusal", status, body)
	}
	if took := time.Since(began); took > time.Minute { // it would plan for longer
		t.Errorf("it took %v, want some %v", took, time.Second+overTime)
	}
	i.wait(t, "SELECT 1", "1\n")
}

// Whoever sends a statement that plans for minutes and hangs up keeps his place until it has ended, by its limit of memory or
// with the process: otherwise he would have another one at once, and so all of the process.
func TestAStatementWhoseClientLeftKeepsItsPlace(t *testing.T) {
	i := install(t, func(o *Options) {
		o.Statements = 4
		o.Limits = engine.DefaultLimits()
		o.Limits.Time = 3 * time.Second
	})
	i.wait(t, "SELECT 1", "1\n")
	pid := i.pid()
	ctx, hangUp := context.WithCancel(t.Context())
	defer hangUp()
	for range 2 {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, i.url, strings.NewReader(manyPlans(40)))
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			if response, err := http.DefaultClient.Do(request); err == nil {
				response.Body.Close()
			}
		}()
	}
	i.until(t, "two statements to run", func() bool { return i.reader.slots.count() == 2 })
	hangUp()
	left := time.Now()
	i.until(t, "the places to be free", func() bool { return i.reader.slots.count() == 0 })
	if took := time.Since(left); took < time.Second {
		t.Errorf("the places were free %v after their clients had left, and the statements ran on", took)
	}
	i.wait(t, "SELECT count() FROM v_t", "1000\n")
	if i.pid() == pid {
		t.Log("the statements reached their limit of memory before the process was ended")
	}
}

// manyPlans is a statement of n common table expressions each of which uses the one before twice.
func manyPlans(n int) string {
	var b strings.Builder
	b.WriteString("WITH c0 AS (SELECT 1 AS a)")
	for k := 1; k < n; k++ {
		fmt.Fprintf(&b, ", c%d AS (SELECT x.a + y.a AS a FROM c%d AS x, c%d AS y)", k, k-1, k-1)
	}
	fmt.Fprintf(&b, " SELECT * FROM c%d", n-1)
	return b.String()
}

// until polls until something holds.
func (i *installation) until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited for %s", what)
		}
	}
}

func TestMemoryIsBounded(t *testing.T) {
	i := install(t, func(o *Options) { o.Memory = 512 << 20 })
	if status, body := i.ask(t, "SELECT length(groupArray(repeat('x', 1000))) FROM numbers(3000000)"); status == 200 || status == 0 {
		t.Errorf("got %d %s, want a refusal", status, body)
	}
	i.wait(t, "SELECT 1", "1\n")
}

func TestReadersThatNeverReadStopNobody(t *testing.T) {
	i := install(t, func(o *Options) { o.Statements = 4 })
	i.reader.slots.stall = 500 * time.Millisecond
	i.wait(t, "SELECT 1", "1\n")
	i.stalledReaders(t, 8)
	i.until(t, "all places of the client to be taken", func() bool { return i.reader.slots.count() == i.reader.slots.perClient })
	i.wait(t, "SELECT 2", "2\n")
	if n := i.reader.slots.stalled(); n == 0 {
		t.Error("no statement was ended for stalling, so nothing was tried here")
	}
}

// Whatever is answered, a body that never ends is not waited for: also where nobody reads it but the server, before it answers.
func TestBodiesThatDribbleEndTheirConnections(t *testing.T) {
	i := install(t, func(o *Options) { o.Statements = 2 })
	i.reader.bodyWithin = 300 * time.Millisecond
	address := strings.TrimPrefix(i.url, "http://")
	var open sync.WaitGroup
	for n := range 200 {
		line := []string{"POST / HTTP/1.1\r\nHost: " + address, "POST /ping HTTP/1.1\r\nHost: " + address, "POST /nothing HTTP/1.1\r\nHost: " + address,
			"POST / HTTP/1.1\r\nHost: evil.example", "GET /?query=SELECT+1 HTTP/1.1\r\nHost: " + address}[n%5]
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "%s\r\nContent-Length: 1000\r\n\r\n", line)
		stop := make(chan struct{})
		go func() {
			for tick := time.NewTicker(100 * time.Millisecond); ; {
				select {
				case <-tick.C:
					_, _ = conn.Write([]byte("x")) // the server may have ended the connection
				case <-stop:
					tick.Stop()
					return
				}
			}
		}()
		open.Go(func() {
			defer close(stop)
			_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
			if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%.30q: the connection is open after a minute", line)
			}
		})
	}
	i.wait(t, "SELECT 2", "2\n")
	open.Wait()
}

func TestPagesOfOthersMayNotAsk(t *testing.T) {
	i := install(t)
	for _, c := range []struct {
		host, origin, site string
		want               int
	}{
		{"", "", "", 200}, {"evil.example", "", "", 403}, {"", "https://evil.example", "", 403}, {"", "null", "", 403}, {"", "", "cross-site", 403},
		{"localhost:1", "http://localhost:1", "same-origin", 200}, {"[::1]:8123", "", "", 200},
	} {
		request, _ := http.NewRequest("GET", i.url+"/?query=SELECT+1", nil)
		if c.host != "" {
			request.Host = c.host
		}
		if c.origin != "" {
			request.Header.Set("Origin", c.origin)
		}
		if c.site != "" {
			request.Header.Set("Sec-Fetch-Site", c.site)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != c.want {
			t.Errorf("%+v: got %d", c, response.StatusCode)
		}
	}
}

// What gets past the list of functions reaches nothing: the operating system holds the process.
func TestTheProcessIsConfined(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("not applicable: only Linux confines the process")
	}
	dir, tables := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(tables, "part"), []byte("rows"), 0o600); err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(t.TempDir(), "pepper")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	text, err := json.Marshal(try{childOptions{Dir: dir, Tables: tables, Library: os.Args[0], DataLimit: 1 << 30}, secret, strings.TrimPrefix(server.URL, "http://")})
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(os.Args[0])
	command.Env = []string{tryVariable + "=" + string(text)}
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if bytes.Contains(out, []byte(errNoSandbox.Error())) {
		t.Skipf("not applicable: %s", out)
	}
	wanted := []string{
		"read own: ok", "write own: ok", "read table: ok", "write table: permission denied", "read secret: permission denied", "read passwd: permission denied",
		"connect: permission denied", "run: permission denied", "niceness: ok",
	}
	if memoryLimited {
		wanted = append(wanted, "memory: cannot allocate memory")
	}
	for _, want := range wanted {
		if !strings.Contains(string(out), want+"\n") {
			t.Errorf("got\n%s, want %s", out, want)
		}
	}
}

// TestStatementsOutliveMerges reads a table whose parts are merged away meanwhile, without a pause.
func TestStatementsOutliveMerges(t *testing.T) {
	i := install(t)
	i.do(t, "CREATE TABLE m.written (a UInt64, b UInt64) ENGINE = MergeTree ORDER BY a",
		"INSERT INTO m.written SELECT number, number FROM numbers(1000)",
		"CREATE VIEW default.v_written AS SELECT a, b FROM m.written")
	i.wait(t, "SELECT count() FROM v_written WHERE b = a", "1000\n")
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for n := 1000; ; n += 1000 {
			select {
			case <-over:
				return
			default:
			}
			for _, s := range []string{fmt.Sprintf("INSERT INTO m.written SELECT number, number FROM numbers(%d, 1000)", n), "OPTIMIZE TABLE m.written FINAL"} {
				if _, err := i.owner.Ask(s, "Null"); err != nil {
					t.Errorf("%s: %v", s, err)
					return
				}
			}
		}
	}()
	for range 150 {
		status, body := i.ask(t, "SELECT sum(a) = sum(b), count() % 1000 FROM v_written WHERE sipHash64(a) > 0")
		if status != http.StatusOK || body != "1\t0\n" {
			t.Errorf("got %d %.300s", status, body)
			break
		}
	}
	close(over)
	<-ended
}
