package embedded

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"

	"github.com/valyala/fasthttp/fasthttputil"
)

// nearListener accepts the connections of this process too, which do not pass through the system: a request and its answer over a socket
// cost six calls of it and wake up four threads.
type nearListener struct {
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

func newNearListener(far net.Listener) *nearListener {
	l := &nearListener{Listener: far, arrived: make(chan arrival), closed: make(chan struct{})}
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
func (l *nearListener) Accept() (net.Conn, error) {
	select {
	case a := <-l.arrived:
		return a.conn, a.err
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close ends all calls of Accept.
func (l *nearListener) Close() error {
	l.closing.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// dial connects from within this process.
func (l *nearListener) dial(ctx context.Context) (net.Conn, error) {
	ends := fasthttputil.NewPipeConns()
	ends.SetAddresses(l.Addr(), l.Addr(), l.Addr(), l.Addr())
	select {
	case l.arrived <- arrival{conn: nearConn{ends.Conn2()}}:
		return nearConn{ends.Conn1()}, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// nearConn is one end of a connection within the process. Its errors are those of a socket, by which clients know what to try again.
type nearConn struct{ net.Conn }

// Read implements net.Conn.
func (c nearConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	return n, c.asOfSocket("read", err)
}

// Write implements net.Conn.
func (c nearConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	return n, c.asOfSocket("write", err)
}

func (c nearConn) asOfSocket(op string, err error) error {
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
