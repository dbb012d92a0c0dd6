package engine

import (
	"context"
	"errors"
	"io"
	"math/big"
	"net/http"
	"net/url"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/shopspring/decimal"
)

// open starts an engine on a new directory for one test. Only one can run in a process: such tests are not parallel.
func openEngine(t testing.TB) *Engine {
	t.Helper()
	if _, err := Find(""); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	e, err := Open(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

func connect(t testing.TB, e *Engine, change ...func(*clickhouse.Options)) driver.Conn {
	t.Helper()
	opt := &clickhouse.Options{
		Protocol:      clickhouse.HTTP,
		Addr:          []string{"embedded:0"},
		TransportFunc: func(*http.Transport) (http.RoundTripper, error) { return e.Transport(), nil },
	}
	for _, c := range change {
		c(opt)
	}
	db, err := clickhouse.Open(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func exec(t testing.TB, db driver.Conn, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if err := db.Exec(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

type everything struct {
	ID      uint64              `ch:"id"`
	Version *big.Int            `ch:"version"`
	Price   decimal.Decimal     `ch:"price"`
	At      time.Time           `ch:"at"`
	Text    string              `ch:"text"`
	Venue   string              `ch:"venue"`
	Maybe   *float64            `ch:"maybe"`
	Tags    map[string]uint64   `ch:"tags"`
	Inputs  [][]any             `ch:"inputs"`
	Names   []string            `ch:"n.name"`
	Weights []float64           `ch:"n.weight"`
	Fixed   string              `ch:"fixed"`
	Kind    string              `ch:"kind"`
	Deep    map[string][]string `ch:"deep"`
	OK      bool                `ch:"ok"`
}

const everythingTable = `CREATE TABLE everything (
	id UInt64, version UInt128, price Decimal(38, 18), at DateTime64(9, 'UTC'), text String,
	venue LowCardinality(String), maybe Nullable(Float64), tags Map(LowCardinality(String), UInt64),
	inputs Array(Tuple(venue LowCardinality(String), price Float64, offset UInt64)),
	n Nested(name String, weight Float64), fixed FixedString(4), kind Enum8('a' = 1, 'b' = 2),
	deep Map(String, Array(Nullable(String))), ok Bool
) ENGINE = MergeTree ORDER BY id`

func TestEveryColumnTypeComesBackAsItWasSent(t *testing.T) {
	db := connect(t, openEngine(t))
	exec(t, db, strings.ReplaceAll(everythingTable, "Array(Nullable(String))", "Array(String)"))
	half := 0.5
	huge, _ := new(big.Int).SetString("340282366920938463463374607431768211455", 10)
	want := []everything{
		{
			ID: 1, Version: huge, Price: decimal.RequireFromString("12345678901234567890.123456789012345678"),
			At: time.Date(2024, 2, 29, 23, 59, 59, 123456789, time.UTC), Text: "line\nline\r\n\x00\xff'\\ INSERT FORMAT Native\n",
			Venue: "kraken", Maybe: &half, Tags: map[string]uint64{"a": 1, "b\n": 1 << 63},
			Inputs: [][]any{{"kraken", 1.5, uint64(7)}, {"bitstamp", 2.5, uint64(8)}},
			Names:  []string{"x", "y"}, Weights: []float64{1, 2}, Fixed: "ab\n\x00", Kind: "b", Deep: map[string][]string{"k": {"v", ""}}, OK: true,
		},
		{
			ID: 2, Version: big.NewInt(0), Price: decimal.RequireFromString("-0.000000000000000001"),
			At: time.Unix(0, 0).UTC(), Tags: map[string]uint64{}, Inputs: [][]any{}, Names: []string{}, Weights: []float64{},
			Fixed: "\x00\x00\x00\x00", Kind: "a", Deep: map[string][]string{},
		},
	}
	batch, err := db.PrepareBatch(t.Context(), "INSERT INTO everything")
	if err != nil {
		t.Fatal(err)
	}
	for i := range want {
		if err := batch.AppendStruct(&want[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := batch.Send(); err != nil {
		t.Fatal(err)
	}
	rows, err := db.Query(t.Context(), "SELECT * FROM everything ORDER BY id")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for i := 0; rows.Next(); i++ {
		var got everything
		if err := rows.Scan(&got.ID, &got.Version, &got.Price, &got.At, &got.Text, &got.Venue, &got.Maybe, &got.Tags, &got.Inputs,
			&got.Names, &got.Weights, &got.Fixed, &got.Kind, &got.Deep, &got.OK); err != nil {
			t.Fatal(err)
		}
		if got.Version.Cmp(want[i].Version) != 0 || !got.Price.Equal(want[i].Price) || !got.At.Equal(want[i].At) {
			t.Errorf("row %d: got %v %v %v, want %v %v %v", i, got.Version, got.Price, got.At, want[i].Version, want[i].Price, want[i].At)
		}
		got.Version, got.Price, got.At = want[i].Version, want[i].Price, want[i].At
		if !reflect.DeepEqual(got, want[i]) {
			t.Errorf("row %d: got %+v, want %+v", i, got, want[i])
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
}

func TestErrorsCarryTheEnginesCode(t *testing.T) {
	db := connect(t, openEngine(t))
	exec(t, db, "CREATE TABLE t (a UInt8) ENGINE = MergeTree ORDER BY a")
	for sql, want := range map[string]int32{
		"SELECT * FROM nothing":                 60,
		"SELEC 1":                               62,
		"SELECT 1; SELECT 2":                    62,
		"SELECT throwIf(1)":                     395,
		"INSERT INTO nothing SELECT 1":          60,
		"CREATE TABLE t (a UInt8) ENGINE = Log": 57,
		"SELECT 1 SETTINGS no_such_setting = 1": 115,
	} {
		var ex *clickhouse.Exception
		if err := db.Exec(t.Context(), sql); !errors.As(err, &ex) || ex.Code != want {
			t.Errorf("%s: got %v, want code %d", sql, err, want)
		}
	}
	// This one fails after a million rows have come out.
	rows, err := db.Query(t.Context(), "SELECT throwIf(number = 3000000) FROM numbers(4000000)")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for rows.Next() {
		n++
	}
	var ex *clickhouse.Exception
	if err := rows.Err(); !errors.As(err, &ex) || ex.Code != 395 || n == 0 {
		t.Errorf("got %v after %d rows, want code 395 after some", err, n)
	}
}

func TestSettingsAndDatabaseBelongToTheRequest(t *testing.T) {
	e := openEngine(t)
	exec(t, connect(t, e), "CREATE DATABASE other")
	db := connect(t, e, func(o *clickhouse.Options) {
		o.Auth.Database = "other"
		o.Settings = clickhouse.Settings{"max_threads": 1}
	})
	read := func(ctx context.Context, db driver.Conn) (threads, database string) {
		t.Helper()
		if err := db.QueryRow(ctx, "SELECT toString(getSetting('max_threads')), currentDatabase()").Scan(&threads, &database); err != nil {
			t.Fatal(err)
		}
		return
	}
	for range 3 {
		if threads, database := read(t.Context(), db); threads != "1" || database != "other" {
			t.Errorf("got %s threads in %s, want 1 in other", threads, database)
		}
		three := clickhouse.Context(t.Context(), clickhouse.WithSettings(clickhouse.Settings{"max_threads": 3}))
		if threads, _ := read(three, db); threads != "3" {
			t.Errorf("got %s threads, want 3", threads)
		}
		if threads, database := read(t.Context(), connect(t, e)); threads == "1" || threads == "3" || database != "default" {
			t.Errorf("got %s threads in %s, want the default ones", threads, database)
		}
		exec(t, db, "SET max_threads = 3")
	}
}

func TestParametersAreValues(t *testing.T) {
	db := connect(t, openEngine(t))
	for _, want := range []string{"", "plain", "a\tb\nc\\d'e", "\x00", "\\N", "'; DROP TABLE t; --"} {
		var got string
		if err := db.QueryRow(t.Context(), "SELECT {text:String}", clickhouse.Named("text", want)).Scan(&got); err != nil || got != want {
			t.Errorf("got %q %v, want %q", got, err, want)
		}
	}
	var sum uint64
	if err := db.QueryRow(t.Context(), "SELECT arraySum({a:Array(UInt64)})", clickhouse.Named("a", []uint64{1, 2, 3})).Scan(&sum); err != nil || sum != 6 {
		t.Errorf("got %d %v, want 6", sum, err)
	}
}

func TestCancellingStopsTheStatement(t *testing.T) {
	e := openEngine(t)
	db := connect(t, e)
	exec(t, db, "CREATE TABLE t (a UInt64) ENGINE = MergeTree ORDER BY a")
	for _, sql := range []string{
		"SELECT sum(cityHash64(number)) FROM numbers(1000000000000)",
		"INSERT INTO t SELECT cityHash64(number) FROM numbers(1000000000000) WHERE number % 1000003 = 1",
		"SELECT count() FROM (SELECT number FROM numbers(100000000000) ORDER BY cityHash64(number) LIMIT 1)",
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		began := time.Now()
		err := db.Exec(ctx, sql)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: got %v, want %v", sql, err, context.DeadlineExceeded)
		}
		if took := time.Since(began); took > time.Minute {
			t.Errorf("%s: it took %v to stop", sql, took)
		}
	}
	// A reader that goes away gives its connection back.
	for range 40 {
		ctx, cancel := context.WithCancel(t.Context())
		rows, err := db.Query(ctx, "SELECT number FROM numbers(100000000)")
		if err != nil {
			t.Fatal(err)
		}
		rows.Next()
		cancel()
		rows.Close()
	}
	waitFor(t, func() bool { return len(e.writers.slots) == 0 })
	// Each is gone within the minute; the KILL that ended the last one, and the SELECT inside it, may run a moment
	// longer than what it ended.
	waitFor(t, func() bool {
		var running uint64
		err := db.QueryRow(t.Context(), "SELECT count() FROM system.processes").Scan(&running)
		return err == nil && running == 1
	})
}

func waitFor(t testing.TB, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it did not happen within a minute")
		}
	}
}

func TestStatementsRunSideBySide(t *testing.T) {
	db := connect(t, openEngine(t))
	exec(t, db, "CREATE TABLE t (a UInt64) ENGINE = MergeTree ORDER BY a")
	const writers, batches, size = 4, 20, 1000
	failed := make(chan error, 2*writers)
	for w := range writers {
		go func() {
			for b := range batches {
				batch, err := db.PrepareBatch(t.Context(), "INSERT INTO t (a)")
				for i := 0; err == nil && i < size; i++ {
					err = batch.Append(uint64((w*batches+b)*size + i))
				}
				if err == nil {
					err = batch.Send()
				}
				if err != nil {
					failed <- err
					return
				}
			}
			failed <- nil
		}()
		go func() {
			var n, outer uint64
			for range batches {
				rows, err := db.Query(t.Context(), "SELECT number FROM numbers(3)")
				for err == nil && rows.Next() {
					if err = rows.Scan(&outer); err == nil {
						err = db.QueryRow(t.Context(), "SELECT count() FROM t").Scan(&n)
					}
				}
				if err != nil {
					failed <- err
					return
				}
			}
			failed <- nil
		}()
	}
	for range 2 * writers {
		if err := <-failed; err != nil {
			t.Fatal(err)
		}
	}
	var rows, distinct uint64
	if err := db.QueryRow(t.Context(), "SELECT count(), uniqExact(a) FROM t").Scan(&rows, &distinct); err != nil || rows != writers*batches*size || distinct != rows {
		t.Errorf("got %d rows, %d of them distinct (%v), want %d", rows, distinct, err, writers*batches*size)
	}
}

// A format with a frame or an index comes whole through the transport, in a stream whose end distinguishes a failure from an end.
func TestTransportStreamsFormatsThatHaveAFrame(t *testing.T) {
	e := openEngine(t)
	send := func(sql string) (*http.Response, []byte) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://embedded/?query="+url.QueryEscape(sql), nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := e.Transport().RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response, body
	}
	for _, format := range []string{"Parquet", "Arrow", "CSVWithNames"} {
		sql := "SELECT number, toString(cityHash64(number)) AS text FROM numbers(200000) SETTINGS max_threads = 1 FORMAT " + format
		want, err := e.Ask(sql, "TabSeparated")
		if err != nil {
			t.Fatal(err)
		}
		response, got := send(sql)
		if string(got) != want || response.ContentLength >= 0 {
			t.Errorf("%s: got %d bytes of a length of %d, want %d in a stream", format, len(got), response.ContentLength, len(want))
		}
		broken := "SELECT throwIf(number = 1900000), toString(cityHash64(number)) FROM numbers(2000000) SETTINGS max_threads = 1 FORMAT " + format
		response, got = send(broken)
		if end := response.Header.Get("X-ClickHouse-Exception-Tag") + "\r\n__exception__\r\n"; response.StatusCode == http.StatusOK && !strings.HasSuffix(string(got), end) {
			t.Errorf("%s: an answer that failed ends as a whole one: %q", format, got[max(0, len(got)-100):])
		}
	}
	waitFor(t, func() bool { return len(e.writers.slots) == 0 })
}
