package roles

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"
)

// front is an address that is answered from the first moment of an instance to its last: by whoever listens on it, and
// by a fallback before, between and after. Without it a load balancer could not distinguish an instance that reads its log
// from one that is dead.
type switchListener struct {
	*port
	fallback *handoffListener
	tls      *tls.Config // nil: not encrypted; set before run

	mu      sync.Mutex
	current *handoffListener // nil: the fallback's turn
}

func newFront(p *port) *switchListener { return &switchListener{port: p, fallback: newLease(p.addr)} }

// address is the port itself; nil where there is none.
func (f *switchListener) address() *port {
	if f == nil {
		return nil
	}
	return f.port
}

// listen gives the connections that come from now on to the caller, until it closes the listener.
func (f *switchListener) listen() net.Listener {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.current = newLease(f.addr)
	return f.current
}

// run accepts connections until ctx ends; those of nobody go to the fallback, which answers each once and asks to
// connect again, so that nobody stays with it.
func (f *switchListener) run(ctx context.Context, fallback http.Handler) error {
	listener, err := f.port.listen()
	if err != nil {
		return err
	}
	server := &http.Server{ReadTimeout: arrival, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		fallback.ServeHTTP(w, r)
	})}
	var done sync.WaitGroup
	var waiting net.Listener = f.fallback
	if f.tls != nil {
		waiting = tls.NewListener(waiting, f.tls)
	}
	done.Go(func() { _ = server.Serve(waiting) }) // ends with the server
	done.Go(func() {
		<-ctx.Done()
		_ = listener.Close()
		_ = server.Close()
	})
	defer done.Wait()
	for {
		conn, err := listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return nil
		case err != nil: // too many open files: those that are open end some time
			time.Sleep(10 * time.Millisecond)
		default:
			f.hand(conn)
		}
	}
}

// hand gives a connection to whose turn it is. Who listens takes it at once or has closed.
func (f *switchListener) hand(conn net.Conn) {
	for {
		f.mu.Lock()
		if f.current != nil && f.current.isClosed() {
			f.current = nil
		}
		to := f.current
		f.mu.Unlock()
		if to == nil {
			to = f.fallback
		}
		select {
		case to.conns <- conn:
			return
		case <-to.closed:
			if to == f.fallback { // the address is given up
				_ = conn.Close()
				return
			}
		}
	}
}

// lease is a listener on an address that others listen on before and after.
type handoffListener struct {
	addr  leaseAddr
	conns chan net.Conn // without a buffer: what nobody accepts waits in the kernel, whose queue is bounded

	close  sync.Once
	closed chan struct{}
}

func newLease(addr string) *handoffListener {
	return &handoffListener{addr: leaseAddr(addr), conns: make(chan net.Conn), closed: make(chan struct{})}
}

// Accept returns the next connection, or net.ErrClosed.
func (l *handoffListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, &net.OpError{Op: "accept", Net: "tcp", Addr: l.addr, Err: net.ErrClosed}
	}
}

// Close ends the turn; it may be called more than once.
func (l *handoffListener) Close() error {
	l.close.Do(func() { close(l.closed) })
	return nil
}

// Addr is the address as HOST:PORT.
func (l *handoffListener) Addr() net.Addr { return l.addr }

func (l *handoffListener) isClosed() bool {
	select {
	case <-l.closed:
		return true
	default:
		return false
	}
}

type leaseAddr string

func (leaseAddr) Network() string  { return "tcp" }
func (a leaseAddr) String() string { return string(a) }
