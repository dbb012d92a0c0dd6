//go:build linux || darwin

package sqlport

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// stalledReaders send a statement with a long answer and take nothing of it.
func (i *installation) stalledReaders(t *testing.T, n int) []net.Conn {
	t.Helper()
	address := strings.TrimPrefix(i.url, "http://")
	dialer := net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) { _ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4096) })
	}}
	var conns []net.Conn
	for range n {
		conn, err := dialer.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		fmt.Fprintf(conn, "GET /?query=%s HTTP/1.1\r\nHost: %s\r\n\r\n", url.QueryEscape("SELECT number, repeat('x', 1000) FROM numbers(40000000)"), address)
		conns = append(conns, conn)
	}
	return conns
}

// Long answers that nobody takes, broken off in a row, leave the process enough memory to go on: it ended in every third round
// while the allocator kept the address space of what statements had given back.
func TestReadersThatHangUpEndNoProcess(t *testing.T) {
	i := install(t)
	i.wait(t, "SELECT 1", "1\n")
	for round := range 8 {
		conns := i.stalledReaders(t, 8)
		stalled := func() (n int) {
			i.reader.slots.mu.Lock()
			defer i.reader.slots.mu.Unlock()
			for s := range i.reader.slots.running {
				if s.stalled(time.Now().Add(-50 * time.Millisecond)) {
					n++
				}
			}
			return n
		}
		i.until(t, "half of the places to be those of readers that take nothing", func() bool { return stalled() == i.reader.slots.perClient })
		for _, c := range conns {
			_ = c.Close()
		}
		i.until(t, "the places to be free", func() bool { return i.reader.slots.count() == 0 })
		if n := i.metric(t, "marketlog_sql_process_crashes_total"); n != 0 {
			t.Fatalf("the process ended in round %d", round+1)
		}
	}
	i.wait(t, "SELECT count() FROM v_t", "1000\n")
}

// What the reserve is for: statements that begin when no memory is left for the stack of another thread.
func TestThreadsAreReserved(t *testing.T) {
	const want = 64
	reserveThreads(want)
	threads, err := os.ReadDir("/proc/self/task")
	if os.IsNotExist(err) {
		t.Skip("not applicable: this system does not list threads")
	}
	if err != nil {
		t.Fatal(err)
	}
	if len(threads) < want {
		t.Errorf("the process has %d threads, want %d at least", len(threads), want)
	}
}
