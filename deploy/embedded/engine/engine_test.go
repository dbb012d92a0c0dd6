package engine

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	osexec "os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// childDir names, in the environment of a test binary that runs itself, the directory to insert into until killed.
const childDir = "ENGINE_TEST_INSERT_INTO"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		if err := insertForEver(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

const batchRows = 2000

// insertForEver writes the number of each batch to standard output once the engine has acknowledged it.
func insertForEver(dir string) error {
	e, err := Open(dir, Options{})
	if err != nil {
		return err
	}
	db, err := clickhouse.Open(&clickhouse.Options{
		Protocol: clickhouse.HTTP, Addr: []string{"embedded:0"},
		TransportFunc: func(*http.Transport) (http.RoundTripper, error) { return e.Transport(), nil },
	})
	if err != nil {
		return err
	}
	ctx := context.Background()
	if err := db.Exec(ctx, "CREATE TABLE IF NOT EXISTS t (batch UInt64, row UInt64, text String) ENGINE = MergeTree ORDER BY (batch, row)"); err != nil {
		return err
	}
	var next uint64
	if err := db.QueryRow(ctx, "SELECT max(batch) + 1 FROM t").Scan(&next); err != nil {
		return err
	}
	for ; ; next++ {
		batch, err := db.PrepareBatch(ctx, "INSERT INTO t")
		if err != nil {
			return err
		}
		for row := range uint64(batchRows) {
			if err := batch.Append(next, row, "line\nline"); err != nil {
				return err
			}
		}
		if err := batch.Send(); err != nil {
			return err
		}
		fmt.Println(next)
	}
}

func TestAcknowledgedRowsSurviveAKill(t *testing.T) {
	if _, err := Find(""); err != nil && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	dir := t.TempDir()
	acknowledged := map[uint64]bool{}
	for cycle := range 4 {
		child := osexec.Command(os.Args[0])
		child.Env = append(os.Environ(), childDir+"="+dir)
		child.Stderr = os.Stderr
		out, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for n := 0; lines.Scan(); n++ {
			batch, err := strconv.ParseUint(lines.Text(), 10, 64)
			if err != nil {
				t.Fatalf("the child printed %q", lines.Text())
			}
			acknowledged[batch] = true
			if n == 15+7*cycle {
				// Somewhere in the next insert, a little later each time.
				time.AfterFunc(time.Duration(cycle)*700*time.Microsecond, func() { child.Process.Kill() })
			}
		}
		if err := child.Wait(); err == nil {
			t.Fatal("the child ended by itself")
		}
	}
	e, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	db := connect(t, e)
	rows, err := db.Query(t.Context(), "SELECT batch, count(), uniqExact(row) FROM t GROUP BY batch")
	if err != nil {
		t.Fatal(err)
	}
	whole := map[uint64]bool{}
	for rows.Next() {
		var batch, n, distinct uint64
		if err := rows.Scan(&batch, &n, &distinct); err != nil {
			t.Fatal(err)
		}
		if n != batchRows || distinct != n {
			t.Errorf("batch %d: got %d rows, %d distinct, want all %d or none", batch, n, distinct, batchRows)
		}
		whole[batch] = true
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	for batch := range acknowledged {
		if !whole[batch] {
			t.Errorf("batch %d was acknowledged and is gone", batch)
		}
	}
	t.Logf("%d batches acknowledged over 4 kills, %d there", len(acknowledged), len(whole))
}

func TestOneEnginePerProcessAndDirectory(t *testing.T) {
	e := openEngine(t)
	if _, err := Open(t.TempDir(), Options{}); !errors.Is(err, ErrOpen) {
		t.Errorf("a second engine: got %v, want %v", err, ErrOpen)
	}
	dir := strings.TrimPrefix(e.path, "--path=")
	child := osexec.Command(os.Args[0])
	child.Env = append(os.Environ(), childDir+"="+dir)
	out, err := child.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "opening the engine on "+dir) {
		t.Errorf("a second process on the directory: got %v, %s, want a refusal", err, out)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Open(dir, Options{})
	if err != nil {
		t.Fatalf("opening the directory again: %v", err)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestCloseStopsWhatRuns(t *testing.T) {
	e := openEngine(t)
	db := connect(t, e)
	rows, err := db.Query(t.Context(), "SELECT number FROM numbers(1000000000)")
	if err != nil {
		t.Fatal(err)
	}
	rows.Next()
	busy := make(chan error, 1)
	go func() { busy <- db.Exec(t.Context(), "SELECT sum(cityHash64(number)) FROM numbers(1000000000000)") }()
	waitFor(t, func() bool { return len(e.writers.slots) == 2 })
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-busy; err == nil {
		t.Error("the busy statement ended well, want an error")
	}
	for rows.Next() {
	}
	if rows.Err() == nil {
		t.Error("the reader saw a whole result, want an error")
	}
	if err := db.Ping(t.Context()); err == nil {
		t.Error("a closed engine still answers")
	}
}

// A reader may be gone before its statement begins: it ends with the reader's reason, or is done before that is seen, and the
// engine answers the next one.
func TestStatementOfAGoneReaderEnds(t *testing.T) {
	e := openEngine(t)
	gone := errors.New("the reader is gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	for n := range 300 {
		m, err := e.writers.take(t.Context(), session{database: "default"})
		if err != nil {
			t.Fatal(err)
		}
		s, err := e.start(ctx, e.writers, m, "SELECT number FROM numbers(3)", "TSV", nil, n%2 == 0)
		var answer []byte
		if err == nil {
			answer, err = io.ReadAll(s)
		}
		if !errors.Is(err, gone) && (err != nil || string(answer) != "0\n1\n2\n") {
			t.Fatalf("statement %d: got %q, %v, want %v", n, answer, err, gone)
		}
	}
	if err := e.Ping(); err != nil {
		t.Error(err)
	}
}

func TestGoKeepsItsSignals(t *testing.T) {
	e := openEngine(t)
	db := connect(t, e)
	exec(t, db, "SELECT count() FROM numbers(1000)")
	for _, s := range fatalSignals {
		var action signalAction
		e.lib.sigaction(int32(s), nil, unsafe.Pointer(&action))
		handler := *(*uintptr)(unsafe.Pointer(&action))
		if handler == 0 && s != syscall.SIGTSTP { // which Go leaves alone
			t.Errorf("%v has no handler any more", s)
		}
	}
	if err := nilDereference(); err == nil {
		t.Error("a nil dereference did not panic")
	}
	// The collector has to stop a loop that calls nothing, which the runtime can only do by a signal.
	var stop atomic.Bool
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for !stop.Load() {
		}
	}()
	for range 20 {
		exec(t, db, "SELECT 1")
		runtime.GC()
	}
	stop.Store(true)
	<-ended
}

func nilDereference() (err any) {
	defer func() { err = recover() }()
	var p *int
	*p = 1
	return nil
}

// What the tables of this project need of the engine.
func TestEngineHasWhatTheTablesNeed(t *testing.T) {
	e := openEngine(t)
	db := connect(t, e)
	exec(t, db,
		"CREATE DATABASE marketlog ENGINE = Atomic",
		"CREATE TABLE marketlog.prices (coin LowCardinality(String), at DateTime64(3, 'UTC'), price Float64, version UInt128) "+
			"ENGINE = ReplacingMergeTree(version) PARTITION BY toYYYYMM(at) ORDER BY (coin, at)",
		"CREATE TABLE marketlog.prices_next AS marketlog.prices",
		"INSERT INTO marketlog.prices SELECT 'btc', toDateTime64('2024-01-01 00:00:00', 3, 'UTC') + number, number, bitShiftLeft(toUInt128(1), 64) + number FROM numbers(1000)",
		"INSERT INTO marketlog.prices SELECT 'btc', toDateTime64('2024-01-01 00:00:00', 3, 'UTC') + number, -1, number FROM numbers(1000)",
		"INSERT INTO marketlog.prices SELECT 'btc', toDateTime64('2024-01-01 00:00:00', 3, 'UTC') + number, number * 2, bitShiftLeft(toUInt128(2), 64) FROM numbers(500)",
		"CREATE VIEW default.prices AS SELECT coin, at, price FROM marketlog.prices FINAL",
		"CREATE OR REPLACE VIEW default.prices AS SELECT coin, at, price FROM marketlog.prices FINAL",
		"CREATE TABLE marketlog.old (at DateTime, n UInt8) ENGINE = MergeTree ORDER BY n TTL at + INTERVAL 1 DAY SETTINGS merge_with_ttl_timeout = 0",
		"INSERT INTO marketlog.old VALUES (now() - INTERVAL 2 DAY, 1), (now(), 2)",
		"OPTIMIZE TABLE marketlog.old FINAL",
	)
	check := func(sql string, want string) {
		t.Helper()
		var got string
		if err := db.QueryRow(t.Context(), "SELECT toString(("+sql+"))").Scan(&got); err != nil || got != want {
			t.Errorf("%s: got %s %v, want %s", sql, got, err, want)
		}
	}
	// sum of 2n below 500 and of n from 500: the newest version of each row, whatever the order of insertion
	check("SELECT (count(), sum(price)) FROM default.prices", "(1000,624250)")
	check("SELECT groupArray(n) FROM marketlog.old", "[2]")
	exec(t, db, "EXCHANGE TABLES marketlog.prices AND marketlog.prices_next")
	check("SELECT count() FROM default.prices", "0")
	exec(t, db, "EXCHANGE TABLES marketlog.prices AND marketlog.prices_next")
	server := analysts(t, e)
	status, _, body := ask(t, server, "SELECT at, price FROM marketlog.prices FINAL ORDER BY coin, at FORMAT RowBinary")
	if status != 200 || len(body) != 1000*16 {
		t.Errorf("RowBinary: got %d, %d bytes, want 16000", status, len(body))
	}
}

func TestFindReturnsWhatToRun(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	want := "libchdb of your own"
	if _, ok := pinned(runtime.GOOS, runtime.GOARCH); ok {
		want = "`marketlog engine fetch`"
	}
	if _, err := Find(""); !errors.Is(err, ErrNoLibrary) || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want how to get the library: %s", err, want)
	}
	own := filepath.Join(t.TempDir(), "libchdb.so")
	if _, err := Find(own); !errors.Is(err, ErrNoLibrary) || !strings.Contains(err.Error(), own) {
		t.Errorf("got %v, want the configured path named", err)
	}
	if err := os.WriteFile(own, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := Find(own); err != nil || got != own {
		t.Errorf("got %s %v, want %s", got, err, own)
	}
}
