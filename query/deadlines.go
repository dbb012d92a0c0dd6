package query

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// lazyListener makes deadlines cheap: the HTTP library sets three for each request, which costs a
// twentieth of a hot read, and almost all only move an earlier one on.
type lazyListener struct {
	net.Listener
	tls *tls.Config // nil: not encrypted
}

func (l lazyListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if tcp, ok := conn.(*net.TCPConn); ok && err == nil {
		conn = &lazyConn{Conn: tcp, tcp: tcp}
	}
	if l.tls != nil && err == nil {
		conn = tls.Server(conn, l.tls) // whoever reads first shakes hands, within the deadline of the request
	}
	return conn, err
}

// lazyConn keeps deadlines exactly, but moves one to a later time only when the earlier one has passed
// during a read or a write.
type lazyConn struct {
	net.Conn    // the same, without what would go past the deadlines
	tcp         *net.TCPConn
	read, write lazyDeadline
	unread      atomic.Bool // the client may still send what nobody will read
}

const (
	// lingerFor and lingerMost bound what is read of a client that was refused before it had sent everything.
	lingerFor  = time.Second
	lingerMost = 4 << 20
)

// Close ends the connection. One with unread bytes would be reset, and the client would lose the response with the reason
// it was refused (RFC 9112, 9.6): the rest is read and thrown away first, for a while.
func (c *lazyConn) Close() error {
	if c.unread.Load() && c.tcp.CloseWrite() == nil && c.tcp.SetReadDeadline(time.Now().Add(lingerFor)) == nil {
		_, _ = io.CopyN(io.Discard, c.tcp, lingerMost) // it ends as the client does
	}
	return c.tcp.Close()
}

func (c *lazyConn) Read(p []byte) (int, error) {
	for {
		n, err := c.Conn.Read(p)
		if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) || !c.read.moved(c.tcp.SetReadDeadline) {
			return n, err
		}
	}
}

func (c *lazyConn) Write(p []byte) (int, error) {
	written := 0
	for {
		n, err := c.Conn.Write(p[written:])
		written += n
		if !errors.Is(err, os.ErrDeadlineExceeded) || !c.write.moved(c.tcp.SetWriteDeadline) {
			return written, err
		}
	}
}

func (c *lazyConn) SetReadDeadline(t time.Time) error { return c.read.set(t, c.tcp.SetReadDeadline) }

func (c *lazyConn) SetWriteDeadline(t time.Time) error { return c.write.set(t, c.tcp.SetWriteDeadline) }

func (c *lazyConn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// SyscallConn and SetWriteBuffer are for connections that have become streams.
func (c *lazyConn) SyscallConn() (syscall.RawConn, error) { return c.tcp.SyscallConn() }

// SetWriteBuffer bounds what the kernel holds for a reader.
func (c *lazyConn) SetWriteBuffer(bytes int) error { return c.tcp.SetWriteBuffer(bytes) }

// lazyDeadline is when reads, or writes, are to end, and when the connection would end them, which is
// never later. Zero is never.
type lazyDeadline struct {
	mu            sync.Mutex
	wanted, holds time.Time
}

func (d *lazyDeadline) set(t time.Time, apply func(time.Time) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.wanted = t
	if !t.IsZero() && !d.holds.IsZero() && !t.Before(d.holds) {
		return nil
	}
	d.holds = t
	return apply(t)
}

// moved reports, after the connection ended a read or write, that it was to go on, and lets it.
func (d *lazyDeadline) moved(apply func(time.Time) error) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.wanted.IsZero() && !time.Now().Before(d.wanted) {
		return false
	}
	d.holds = d.wanted
	return apply(d.wanted) == nil
}
