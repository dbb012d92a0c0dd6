package chaos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// limitFiles lets the process of the next life open so many files.
func (p *program) limitFiles(most int) {
	p.command = append([]string{"/bin/sh", "-c", fmt.Sprintf(`ulimit -n %d && exec "$0" "$@"`, most)}, p.command...)
}

// Where an instance could not even open its own files it does not start, and says what to do.
func TestTooFewFilesAreRefusedAtTheStart(t *testing.T) {
	in := newInstance(t, build(t))
	in.limitFiles(200)
	p := in.start(t, "none", "")
	if !p.ended(time.Minute) || p.state.ExitCode() != 1 {
		t.Fatalf("with 200 files it ends with %v, want exit code 1\n%s", p.state, in.tail())
	}
	if output := in.tail(); !strings.Contains(output, "may open 200 files") || !strings.Contains(output, "ulimit -n") {
		t.Errorf("with 200 files it says %s", output)
	}
}

// complaints counts the warnings and errors in the log: a start goes on logging what it begins after it is ready.
func (p *program) complaints(t *testing.T) int {
	t.Helper()
	log, err := os.ReadFile(p.log)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(log), `"level":"WARN"`) + strings.Count(string(log), `"level":"ERROR"`)
}

// Twice as many sockets as files: those that are too many are answered with 503, prices go on being made, the log says it
// once, and when the sockets are gone others are served.
func TestMoreSocketsThanFiles(t *testing.T) {
	const files, sockets, mostLines = 1024, 2000, 5
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r := newRound(ctx, t, build(t), seedOf(t))
	r.in.limitFiles(files)
	r.put(0)
	p := r.start("live", "")
	eventually(t, "being ready", time.Minute, r.in.ready)
	before := r.in.complaints(t)
	var open, refused, ended atomic.Int64
	conns := make(chan net.Conn, sockets)
	dialing := make(chan struct{}, 64) // so many at a time
	var all sync.WaitGroup
	for range sockets {
		dialing <- struct{}{}
		all.Go(func() {
			defer func() { <-dialing }()
			conn, err := net.Dial("tcp", r.in.rest)
			if err != nil {
				ended.Add(1)
				return
			}
			conns <- conn
			// Of one that is served nothing comes, since nothing was asked.
			_ = conn.SetReadDeadline(time.Now().Add(500 * time.Millisecond))
			answer, err := io.ReadAll(conn)
			switch {
			case errors.Is(err, os.ErrDeadlineExceeded):
				open.Add(1)
			case bytes.HasPrefix(answer, []byte("HTTP/1.1 503 ")) && bytes.Contains(answer, []byte("OVERLOADED")):
				refused.Add(1)
			default:
				ended.Add(1)
			}
		})
	}
	all.Wait()
	if open.Load() < 100 || refused.Load() == 0 || open.Load() > files {
		t.Errorf("%d sockets are open, %d were answered that there are too many, %d ended; want at least 100 open and some answered", open.Load(), refused.Load(), ended.Load())
	}
	if p.ended(0) {
		t.Fatalf("with %d sockets it ended by itself: %v\n%s", sockets, p.state, r.in.tail())
	}
	close(conns)
	for conn := range conns {
		conn.Close()
	}
	freed := time.Now()
	eventually(t, "serving others", time.Minute, func() error {
		status, body, err := fetched("http://" + r.in.rest + "/api/v1/prices/BTC")
		if err == nil && (status != http.StatusOK || !bytes.Contains(body, []byte(`"isStale":false`))) {
			err = fmt.Errorf("it answers %d %s", status, body)
		}
		return err
	})
	lines := r.in.complaints(t) - before
	t.Logf("%d of %d sockets were open at once, %d answered with 503, %d ended; others were served after %s; %d lines were logged",
		open.Load(), sockets, refused.Load(), ended.Load(), time.Since(freed).Round(time.Millisecond), lines)
	if lines > mostLines {
		t.Errorf("%d lines were logged, want %d or fewer\n%s", lines, mostLines, r.in.tail())
	}
	r.catchUpLive()
	p.stop(t)
}
