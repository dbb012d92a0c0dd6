package roles

import (
	"bytes"
	"log/slog"
	"net"
	"os"
	"strings"
	"testing"
	"time"
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
	var said bytes.Buffer
	l := &sparingListener{Listener: inner, most: free.Fd() + room, log: slog.New(slog.NewTextHandler(&said, nil))}
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
	// served dials, and says whether it is greeted or ended.
	served := func() bool {
		t.Helper()
		conn, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		n, err := conn.Read(make([]byte, 1))
		if n == 0 && os.IsTimeout(err) {
			t.Fatal("the connection is neither greeted nor ended")
		}
		return n == 1
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
	for range greeted {
		(<-accepted).Close()
	}
	if !served() {
		t.Error("others went, and a new connection is not served")
	}
	l.Close()
	<-ended
	if lines := strings.Count(said.String(), "too many files"); lines != 1 {
		t.Errorf("told %d times within a minute, want once", lines)
	}
}
