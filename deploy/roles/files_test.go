package roles

import (
	"bufio"
	"bytes"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/query"
)

// Clients take only so many of the files that the process may open, and when some go others are served.
func TestClientsLeaveFilesToOpen(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	free, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	const room = 20
	var output bytes.Buffer
	l := newSparingListener(inner, free.Fd()+room, true, slog.New(slog.NewTextHandler(&output, nil)))
	free.Close()
	accepted := make(chan net.Conn, 2*room)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			if _, err := conn.Write([]byte{1}); err != nil {
				t.Error(err)
			}
			accepted <- conn
		}
	}()
	warnings := 0
	// served dials and asks, and reports whether it is greeted or refused, with an answer or without.
	served := func() bool {
		t.Helper()
		conn, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write([]byte("GET /api/v1/prices/BTC HTTP/1.1\r\nHost: localhost\r\n\r\n")); err != nil {
			return false // it was ended already
		}
		in := bufio.NewReader(conn)
		first, err := in.Peek(1)
		if os.IsTimeout(err) {
			t.Fatal("the connection is neither greeted nor ended")
		}
		if err != nil || first[0] == 1 {
			return err == nil
		}
		answer, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatalf("the refusal is no answer: %v", err)
		}
		defer answer.Body.Close()
		var body struct {
			Error struct{ Code, Message string }
		}
		if err := json.NewDecoder(answer.Body).Decode(&body); err != nil {
			t.Fatalf("the refusal is no answer: %v", err)
		}
		if answer.StatusCode != http.StatusServiceUnavailable || body.Error.Code != query.CodeOverloaded || answer.Header.Get("Retry-After") == "" {
			t.Errorf("refused with %s and %+v", answer.Status, body)
		}
		warnings++
		return false
	}
	greeted := 0
	for range 2 * room { // the clients' descriptors are this process's too
		if served() {
			greeted++
		}
	}
	if greeted == 0 || greeted > room {
		t.Errorf("%d of %d connections are served, want some and at most %d", greeted, 2*room, room)
	}
	if warnings == 0 {
		t.Error("no refusal was answered")
	}
	for range greeted {
		(<-accepted).Close()
	}
	if !served() {
		t.Error("others went, and a new connection is not served")
	}
	l.Close()
	<-ended
	if lines := strings.Count(output.String(), "too many open files"); lines != 1 {
		t.Errorf("logged %d times within a minute, want once", lines)
	}
}
