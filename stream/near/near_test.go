package near

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/stream/streamtest"
)

// nearPair opens a listener with both ends of a connection within the process.
func nearPair(t *testing.T) (l *Listener, client, server net.Conn) {
	t.Helper()
	far, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l = Listen(far)
	t.Cleanup(func() { _ = l.Close() })
	accepted := make(chan net.Conn, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			t.Error(err)
		}
		accepted <- conn
	}()
	if client, err = l.Dial(t.Context()); err != nil {
		t.Fatal(err)
	}
	return l, client, <-accepted
}

// What is written to one end is read from the other, in order and whole, however it is cut, both ways at once.
func TestConnectionsWithinTheProcessCarryEveryByte(t *testing.T) {
	_, client, server := nearPair(t)
	random := streamtest.Rand(t)
	sent := make([]byte, 3<<20)
	for i := range sent {
		sent[i] = byte(random.Uint32())
	}
	type received struct {
		from string
		all  []byte
		err  error
	}
	ends := make(chan received, 2)
	for name, conn := range map[string]net.Conn{"client": client, "server": server} {
		cuts := make([]int, 0, 1000)
		for left := len(sent); left > 0; {
			n := min(left, 1+random.IntN(1<<16))
			cuts, left = append(cuts, n), left-n
		}
		go func() {
			rest := sent
			for _, n := range cuts {
				if _, err := conn.Write(rest[:n]); err != nil {
					t.Error(err)
				}
				rest = rest[n:]
			}
		}()
		go func() {
			all := make([]byte, len(sent))
			_, err := io.ReadFull(conn, all)
			ends <- received{name, all, err}
		}()
	}
	for range 2 {
		if got := <-ends; got.err != nil || !bytes.Equal(got.all, sent) {
			t.Errorf("the %s read other bytes than were sent, %v", got.from, got.err)
		}
	}
}

// What two write at once to one connection arrives in whole pieces, however long they are.
func TestWritesAtOnceDoNotMix(t *testing.T) {
	_, client, server := nearPair(t)
	const length, pieces = 5*mostAtOnce + 7, 20
	for _, letter := range []byte("ab") {
		go func() {
			for range pieces {
				if _, err := client.Write(bytes.Repeat([]byte{letter}, length)); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	piece := make([]byte, length)
	for n := range 2 * pieces {
		if _, err := io.ReadFull(server, piece); err != nil {
			t.Fatal(err)
		}
		if bytes.Count(piece, piece[:1]) != length {
			t.Fatalf("piece %d is mixed", n)
		}
	}
}

// Clients know errors of sockets: a deadline, an end, a connection that is closed.
func TestErrorsWithinTheProcessAreThoseOfSockets(t *testing.T) {
	l, client, server := nearPair(t)
	if err := client.SetReadDeadline(time.Now().Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
	var timeout net.Error
	if _, err := client.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) || !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("behind its deadline: %v", err)
	}
	if err := client.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	if client.RemoteAddr().String() != l.Addr().String() || server.RemoteAddr().Network() != "tcp" {
		t.Errorf("the addresses are %s and %s", client.RemoteAddr(), server.RemoteAddr())
	}
	if _, err := server.Write([]byte("last")); err != nil {
		t.Fatal(err)
	}
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(client); string(rest) != "last" || err != nil {
		t.Errorf("of what was sent before the end: %q, %v", rest, err)
	}
	if _, err := client.Write([]byte{1}); !errors.Is(err, net.ErrClosed) || !kgo.IsRetryableBrokerErr(err) {
		t.Errorf("writing to a closed connection: %v", err)
	}
	// Who comes over the network is accepted beside them.
	go func() {
		if conn, err := net.Dial("tcp", l.Addr().String()); err == nil {
			_, _ = conn.Write([]byte("far"))
			_ = conn.Close()
		}
	}()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(conn); string(text) != "far" || err != nil {
		t.Errorf("over the network: %q, %v", text, err)
	}
	ended, stop := context.WithCancel(t.Context())
	stop()
	if _, err := l.Dial(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("nobody accepts, and the client leaves: %v", err)
	}
	for range 2 {
		_ = l.Close()
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("accepting from a closed listener: %v", err)
	}
	if _, err := l.Dial(t.Context()); !errors.Is(err, net.ErrClosed) {
		t.Errorf("dialling a closed listener: %v", err)
	}
}
