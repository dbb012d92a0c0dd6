package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/marketlog/marketlog/stream/streamtest"
)

// besideVariable says how long TestDemoGoesOnBesideStatements asks; some seconds otherwise.
const besideVariable = "MARKETLOG_BESIDE"

// Statements that ended, held up or filled a server that runs them in its own process, asked again and again, change nothing that
// REST and the stream say, and end no process but the one that runs them, which is killed besides.
func TestDemoGoesOnBesideStatements(t *testing.T) {
	d := filledDemo(t)
	span := 25 * time.Second
	if text := os.Getenv(besideVariable); text != "" {
		var err error
		if span, err = time.ParseDuration(text); err != nil {
			t.Fatalf("%s: %v", besideVariable, err)
		}
	}
	d.await(t, "/api/v1/prices/BTC", "a fresh price", func(_ int, body map[string]any) bool {
		p := priceOf(body)
		return p != nil && p["isStale"] == false
	})
	ctx, cancel := context.WithTimeout(t.Context(), span)
	defer cancel()
	var all sync.WaitGroup
	for _, attack := range d.attacks() {
		all.Go(func() {
			for ctx.Err() == nil {
				attack(ctx)
			}
		})
	}
	var kills int
	all.Go(func() { kills = d.killStatements(ctx) })
	all.Go(func() { d.watchStream(ctx, t) })
	d.watchPrice(ctx, t, span)
	all.Wait()
	select {
	case err := <-d.ended:
		t.Fatalf("the demo ended with %v; its log ends with\n%s", err, d.logEnd())
	default:
	}
	if kills == 0 && runtime.GOOS == "linux" {
		t.Error("the process of the statements was never killed, so nothing was tried here")
	}
	began := time.Now()
	for deadline := began.Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		if status, body := d.statement(t.Context(), "SELECT count() > 0 FROM v_prices"); status == http.StatusOK && body == "1\n" {
			break
		} else if time.Now().After(deadline) {
			t.Fatalf("afterwards statements are answered %d %.300s", status, body)
		}
	}
	streamtest.Report(t, "seconds", int(span.Seconds()))
	streamtest.Report(t, "kills_of_the_sql_process", kills)
	t.Logf("the process of the statements was killed %d times; %v afterwards it answers", kills, time.Since(began).Round(time.Millisecond))
}

// attacks are what clients send that mean no good, each once.
func (d *demo) attacks() []func(context.Context) {
	plans := "WITH c0 AS (SELECT 1 AS a)"
	for n := 1; n < 40; n++ {
		plans += fmt.Sprintf(", c%d AS (SELECT x.a + y.a AS a FROM c%d AS x, c%d AS y)", n, n-1, n-1)
	}
	var attacks []func(context.Context)
	for _, statement := range []string{
		"SELECT aggThrowArgMin(0.5)(repeat('a',65536)) FROM numbers(1)", "SELECT * FROM system.models",
		"SELECT length(groupArray(number)), sum(throwIf(number = 33000000)) FROM numbers(60000000)",
		"SELECT uniqExact(cityHash64(number)) FROM numbers(20000000)", "SELECT count() FROM v_ticks",
	} {
		attacks = append(attacks, func(ctx context.Context) { d.statement(ctx, statement) })
	}
	return append(attacks,
		func(ctx context.Context) { // hangs up while it is planned
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			d.statement(ctx, plans+" SELECT * FROM c39")
		},
		func(ctx context.Context) {
			d.holdConnections(ctx, 4, "GET /?query="+url.QueryEscape("SELECT number, repeat('x', 1000) FROM numbers(40000000)")+" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", "")
		},
		func(ctx context.Context) {
			d.holdConnections(ctx, 200, "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\n", "x")
		})
}

// statement asks the SQL port; status 0 is not an answer.
func (d *demo) statement(ctx context.Context, text string) (status int, body string) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, d.sql, strings.NewReader(text))
	if err != nil {
		return 0, err.Error()
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	content, _ := io.ReadAll(io.LimitReader(response.Body, 1<<20)) // as far as it came
	return response.StatusCode, string(content)
}

// holdConnections opens connections to the SQL port that never read and, twice a second, write a little more, for eight seconds.
func (d *demo) holdConnections(ctx context.Context, n int, request, more string) {
	var open []net.Conn
	for range n {
		conn, err := (&net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
			return c.Control(func(fd uintptr) { _ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4096) })
		}}).DialContext(ctx, "tcp", strings.TrimPrefix(d.sql, "http://"))
		if err == nil {
			open = append(open, conn)
			_, _ = io.WriteString(conn, request)
		}
	}
	for range 16 {
		for _, conn := range open {
			_, _ = io.WriteString(conn, more) // the server may have ended it
		}
		select {
		case <-ctx.Done():
		case <-time.After(500 * time.Millisecond):
		}
	}
	for _, conn := range open {
		conn.Close()
	}
}

// killStatements ends the demo's child again and again, as a fault in the engine does, and says how often it could. It leaves it
// the time to start.
func (d *demo) killStatements(ctx context.Context) (kills int) {
	for {
		select {
		case <-ctx.Done():
			return kills
		case <-time.After(10 * time.Second):
		}
		stats, _ := filepath.Glob("/proc/[0-9]*/stat")
		for _, path := range stats {
			text, err := os.ReadFile(path)
			if err != nil {
				continue // it has ended
			}
			// Behind the name in brackets: the state and the parent.
			fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			if fields[1] == strconv.Itoa(d.process.Process.Pid) && syscall.Kill(pid, syscall.SIGSEGV) == nil {
				kills++
			}
		}
	}
}

// priceOf is what an answer holds of a price; nil where it has none.
func priceOf(body map[string]any) map[string]any {
	data, _ := body["data"].(map[string]any)
	price, _ := data["aggregated"].(map[string]any)
	return price
}

// watchPrice asks for a price until ctx ends: each answer is a fresh price that is not older than the one before.
func (d *demo) watchPrice(ctx context.Context, t *testing.T, span time.Duration) {
	t.Helper()
	var last string
	var ages, took []time.Duration
	for ctx.Err() == nil {
		began := time.Now()
		status, body, err := d.ask("/api/v1/prices/BTC")
		took = append(took, time.Since(began))
		price := priceOf(body)
		if err != nil || status != http.StatusOK || price == nil {
			t.Fatalf("a price: got %d, %v, %s", status, err, excerpt(body))
		}
		at, _ := price["timestamp"].(string)
		if price["isStale"] != false || at < last {
			t.Errorf("a price of %s, stale: %v, after one of %s", at, price["isStale"], last)
		}
		last = at
		if when, err := time.Parse(time.RFC3339, at); err == nil {
			ages = append(ages, time.Since(when))
		}
		select {
		case <-ctx.Done():
		case <-time.After(250 * time.Millisecond):
		}
	}
	slices.Sort(ages)
	slices.Sort(took)
	if len(ages) < int(span/time.Second) || len(ages) != len(took) {
		t.Fatalf("%d prices in %v", len(ages), span)
	}
	t.Logf("%d prices: of age p50 %v, p95 %v, at most %v; answered within p50 %v, p95 %v, at most %v", len(ages),
		ages[len(ages)/2].Round(time.Millisecond), ages[len(ages)*95/100].Round(time.Millisecond), ages[len(ages)-1].Round(time.Millisecond),
		took[len(took)/2].Round(time.Microsecond), took[len(took)*95/100].Round(time.Microsecond), took[len(took)-1].Round(time.Microsecond))
}

// streamGap is how long the stream may be silent on a machine with other tests; it sends something each second.
const streamGap = 20 * time.Second

// watchStream follows the stream until ctx ends: no frame is missing, and none comes late.
func (d *demo) watchStream(ctx context.Context, t *testing.T) {
	dialing, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	conn, answer, err := websocket.Dial(dialing, "ws"+strings.TrimPrefix(d.base, "http")+"/api/v1/prices/ws", &websocket.DialOptions{
		HTTPHeader: http.Header{"Authorization": {"Bearer " + d.key}}})
	if err != nil {
		t.Errorf("opening the stream: %v, %v", err, answer)
		return
	}
	defer conn.CloseNow()
	conn.SetReadLimit(16 << 20)
	updates, last := 0, int64(0)
	for ctx.Err() == nil {
		reading, cancel := context.WithTimeout(t.Context(), streamGap)
		_, text, err := conn.Read(reading)
		cancel()
		if err != nil {
			t.Errorf("the stream after %d updates: %v", updates, err)
			return
		}
		var frame struct {
			Type string
			Seq  int64
		}
		if err := json.Unmarshal(text, &frame); err != nil {
			t.Errorf("a frame of the stream: %v: %.200s", err, text)
			return
		}
		if last != 0 && (frame.Seq < last || frame.Seq > last+1) {
			t.Errorf("the stream goes from %d to %d", last, frame.Seq)
		}
		last = frame.Seq
		if frame.Type == "price_update" {
			updates++
		}
	}
	if updates == 0 {
		t.Error("the stream held no update")
	}
}
