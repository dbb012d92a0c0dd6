// Package near carries connections within the process: what listens and who dials are the same one, and speak the protocol that they would speak over
// a network, without the system's sockets.
package near

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"

	"github.com/valyala/fasthttp/fasthttputil"
)

// Listener accepts the connections of this process too, which do not pass through the system: a request and its answer over a socket
// cost six calls of it and wake up four threads. Its methods may be called from any goroutine.
type Listener struct {
	net.Listener
	arrived chan arrival
	closing sync.Once
	closed  chan struct{}
}

// arrival is what a call of Accept returns.
type arrival struct {
	conn net.Conn
	err  error
}

// Listen accepts what arrives at far, and what Dial connects. Closing it closes far.
func Listen(far net.Listener) *Listener {
	l := &Listener{Listener: far, arrived: make(chan arrival), closed: make(chan struct{})}
	go func() {
		for {
			conn, err := far.Accept()
			select {
			case l.arrived <- arrival{conn, err}:
			case <-l.closed:
				if conn != nil {
					_ = conn.Close()
				}
				return
			}
		}
	}()
	return l
}

// Accept waits for the next connection.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case a := <-l.arrived:
		return a.conn, a.err
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close ends all calls of Accept.
func (l *Listener) Close() error {
	l.closing.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// Dial connects from within this process, as soon as the connection is accepted.
func (l *Listener) Dial(ctx context.Context) (net.Conn, error) {
	ends := fasthttputil.NewPipeConns()
	ends.SetAddresses(l.Addr(), l.Addr(), l.Addr(), l.Addr())
	select {
	case l.arrived <- arrival{conn: &Conn{Conn: ends.Conn2()}}:
		return &Conn{Conn: ends.Conn1()}, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Conn is one end of a connection within the process. Its errors are those of a socket, by which clients know what to try again.
type Conn struct {
	net.Conn
	writing sync.Mutex
}

// Read implements net.Conn.
func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	return n, c.asOfSocket("read", err)
}

// mostAtOnce is the most that is handed over at once. Each connection keeps a buffer or two as large as the largest: with whole answers these take tens of megabytes.
const mostAtOnce = 32 << 10

// Write implements net.Conn. What one call writes arrives in one piece, as from a socket.
func (c *Conn) Write(p []byte) (written int, err error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	for written < len(p) && err == nil {
		var n int
		n, err = c.Conn.Write(p[written:min(len(p), written+mostAtOnce)])
		written += n
	}
	return written, c.asOfSocket("write", err)
}

func (c *Conn) asOfSocket(op string, err error) error {
	switch {
	case errors.Is(err, fasthttputil.ErrConnectionClosed):
		err = net.ErrClosed
	case errors.Is(err, fasthttputil.ErrTimeout):
		err = os.ErrDeadlineExceeded
	default: // nil, or the end
		return err
	}
	return &net.OpError{Op: op, Net: "near", Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: err}
}
