package chaos

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/marketlog/marketlog/stream/streamtest"
)

const (
	// stormSockets come back at once in the gate; MARKETLOG_SOCKETS sets another number, 10000 in the nightly one.
	stormSockets = 2_000
	// servedWithin is how soon all of them are to have prices again once the server answers.
	servedWithin = 10 * time.Second
	// restWithin is what 99 of 100 requests beside them may take.
	restWithin = 2 * time.Second
	leastAsked = 100
)

// When a server with many sockets dies, all come back at once: each has prices again within ten seconds, and REST answers
// others meanwhile.
func TestAllSocketsComeBackAtOnce(t *testing.T) {
	sockets := stormSockets
	if text := os.Getenv("MARKETLOG_SOCKETS"); text != "" {
		var err error
		if sockets, err = strconv.Atoi(text); err != nil || sockets < 1 {
			t.Fatalf("MARKETLOG_SOCKETS=%q, want how many sockets come back at once", text)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	plans := filepath.Join(t.TempDir(), "plans.yaml")
	if err := os.WriteFile(plans, []byte(strings.NewReplacer("sockets: 1}", "sockets: 10000}", "sockets: 20}", "sockets: 10000}", "sockets: 100,", "sockets: 10000,").Replace(unlimited)), 0o600); err != nil {
		t.Fatal(err)
	}
	r := newRound(ctx, t, build(t), seedOf(t))
	r.in.environment = append(r.in.environment, setting("plans_file", plans))
	r.put(0)
	p := r.start("live", "")
	eventually(t, "being ready", time.Minute, r.in.ready)

	s := &storm{addr: r.in.rest}
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	for range sockets {
		all.Go(func() { s.keep(ctx) })
	}
	eventually(t, fmt.Sprintf("serving %d sockets", sockets), time.Minute, func() error { return s.all(sockets) })
	p.kill()
	eventually(t, "losing the sockets", time.Minute, func() error {
		if n := s.served.Load(); n > 0 {
			return fmt.Errorf("%d are open", n)
		}
		return nil
	})
	p = r.start("live", "")
	eventually(t, "a price", time.Minute, func() error {
		status, body, err := fetched("http://" + r.in.rest + "/api/v1/prices/BTC")
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("it answers %d %s", status, body)
		}
		return err
	})
	began := time.Now()
	beside, stop := context.WithCancel(ctx)
	took := make(chan []time.Duration, 1)
	go func() { took <- r.in.latencies(beside) }()
	eventually(t, fmt.Sprintf("serving %d sockets again", sockets), time.Minute, func() error { return s.all(sockets) })
	back := time.Since(began)
	stop()
	latencies := <-took
	slices.Sort(latencies)
	p99 := latencies[(len(latencies)*99-1)/100]
	t.Logf("%d sockets had prices again %s after the first answer of REST; %d requests beside them, p50 %s, p99 %s", sockets, back.Round(time.Millisecond),
		len(latencies), latencies[len(latencies)/2].Round(time.Millisecond), p99.Round(time.Millisecond))
	streamtest.Report(t, "sockets", sockets)
	streamtest.Report(t, "ms_until_all_were_served", int(back.Milliseconds()))
	streamtest.Report(t, "ms_of_99_of_100_requests_beside", int(p99.Milliseconds()))
	if back > servedWithin {
		t.Errorf("all sockets were served again after %s, want %s or less", back, servedWithin)
	}
	if p99 > restWithin {
		t.Errorf("99 of 100 requests took up to %s, want %s or less", p99, restWithin)
	}
	p.stop(t)
}

// latencies asks for a price again and again until ctx ends, and leastAsked times at least. It returns how long each answer took.
func (in *instance) latencies(ctx context.Context) (took []time.Duration) {
	for len(took) < leastAsked || ctx.Err() == nil {
		began := time.Now()
		status, _, err := fetched("http://" + in.rest + "/api/v1/prices/BTC")
		if err != nil || status != http.StatusOK {
			took = append(took, time.Hour) // it counts as never
		} else {
			took = append(took, time.Since(began))
		}
		select {
		case <-ctx.Done():
		case <-time.After(readEvery):
		}
	}
	return took
}

// storm is many sockets of the price stream, each opened again at once when it is lost.
type storm struct {
	addr string
	// served are the sockets that are open and have got prices.
	served atomic.Int64
}

// all is nil once so many are served.
func (s *storm) all(sockets int) error {
	if n := s.served.Load(); n < int64(sockets) {
		return fmt.Errorf("%d of %d are", n, sockets)
	}
	return nil
}

// keep has one socket open until ctx ends.
func (s *storm) keep(ctx context.Context) {
	for ctx.Err() == nil {
		_ = s.one(ctx)
		select {
		case <-ctx.Done():
		case <-time.After(redial):
		}
	}
}

// one opens a socket and reads it until it ends. The frames are not looked into, so that ten thousand cost little.
func (s *storm) one(ctx context.Context) error {
	conn, err := (&net.Dialer{Timeout: servedWithin}).DialContext(ctx, "tcp", s.addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if _, err := fmt.Fprintf(conn, "GET /api/v1/prices/ws HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n", s.addr); err != nil {
		return err
	}
	in := bufio.NewReaderSize(conn, 512)
	answer, err := http.ReadResponse(in, nil)
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusSwitchingProtocols {
		return errors.New(answer.Status)
	}
	// Prices come without being asked for: the first frames hold them.
	first := make([]byte, 512)
	for seen := []byte(nil); !bytes.Contains(seen, []byte("initial_prices")); {
		n, err := in.Read(first)
		if err != nil {
			return err
		}
		seen = append(seen[max(0, len(seen)-64):], first[:n]...)
	}
	s.served.Add(1)
	defer s.served.Add(-1)
	_, err = io.Copy(io.Discard, in)
	return err
}
