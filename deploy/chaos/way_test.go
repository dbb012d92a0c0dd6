package chaos

import (
	"errors"
	"net"
	"sync"
	"testing"
	"time"
)

// ways are what lies between the roles and their stores.
type ways struct{ kafka, redis, clickhouse *way }

func newWays(t *testing.T) *ways {
	t.Helper()
	return &ways{kafka: newWay(t), redis: newWay(t), clickhouse: newWay(t)}
}

// manner is how a way treats those who go it.
type manner string

const (
	open   manner = "open"
	refuse manner = "refuses"
	// hang lets connections live, and passes nothing on.
	hang manner = "hangs"
	// slow delays everything that is answered.
	slow manner = "is slow"
	// cut ends each connection in the middle of what is answered.
	cut manner = "errs"
)

// slowBy is longer than an exchange takes, and shorter than anybody's patience.
const slowBy = 150 * time.Millisecond

// way is a TCP address that leads to another one, open at first.
type way struct {
	t    *testing.T
	addr string

	mu       sync.Mutex
	to       string
	manner   manner
	changed  chan struct{} // closed when the manner changes
	listener net.Listener  // nil while it refuses
	conns    map[net.Conn]bool
	felt     int // how often the manner did something to somebody
	running  sync.WaitGroup
}

func newWay(t *testing.T) *way {
	t.Helper()
	w := &way{t: t, manner: open, changed: make(chan struct{}), conns: map[net.Conn]bool{}}
	freePorts(t, &w.addr)
	w.listen()
	t.Cleanup(func() {
		w.be(refuse)
		w.running.Wait()
	})
	return w
}

// leadTo reports where the way ends.
func (w *way) leadTo(addr string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.to = addr
}

// be changes the manner. Connections that live go on in the new one, but for those that hung or are refused, which end.
func (w *way) be(next manner) {
	w.t.Helper()
	w.mu.Lock()
	before := w.manner
	w.manner, w.felt = next, 0
	close(w.changed)
	w.changed = make(chan struct{})
	if next == refuse && w.listener != nil {
		_ = w.listener.Close()
		w.listener = nil
	}
	if next == refuse || before == hang {
		for conn := range w.conns {
			reset(conn)
		}
	}
	w.mu.Unlock()
	if before == refuse && next != refuse {
		w.listen()
	}
}

// hurt is how often the present manner did something to somebody. A refusal nobody sees but who is refused.
func (w *way) hurt() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.felt
}

// listen takes the address, which FreePort gives to nobody else.
func (w *way) listen() {
	w.t.Helper()
	listener, err := net.Listen("tcp", w.addr)
	if err != nil {
		w.t.Fatalf("listening between a role and its store: %v", err)
	}
	w.mu.Lock()
	w.listener = listener
	w.mu.Unlock()
	w.running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			w.running.Go(func() { w.lead(conn) })
		}
	})
}

// lead connects a client to where the way ends.
func (w *way) lead(client net.Conn) {
	defer reset(client)
	w.mu.Lock()
	to := w.to
	w.mu.Unlock()
	server, err := net.DialTimeout("tcp", to, 5*time.Second)
	if err != nil {
		return
	}
	defer reset(server)
	w.mu.Lock()
	if w.manner == refuse {
		w.mu.Unlock()
		return
	}
	w.conns[client], w.conns[server] = true, true
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.conns, client)
		delete(w.conns, server)
	}()
	var both sync.WaitGroup
	both.Go(func() {
		w.pass(client, server, false)
		reset(server)
	})
	w.pass(server, client, true)
	reset(client)
	both.Wait()
}

var errCut = errors.New("cut")

// pass hands on what comes, in the manner of each moment.
func (w *way) pass(from, to net.Conn, answers bool) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if handed := w.hand(buffer[:n], to, answers); handed != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (w *way) hand(piece []byte, to net.Conn, answers bool) error {
	w.mu.Lock()
	manner, changed := w.manner, w.changed
	if manner == hang || answers && (manner == slow || manner == cut) {
		w.felt++
	}
	w.mu.Unlock()
	switch {
	case manner == hang:
		<-changed // then the connection is ended
		return errCut
	case manner == slow && answers:
		select {
		case <-time.After(slowBy):
		case <-changed:
		}
	case manner == cut && answers:
		_, _ = to.Write(piece[:len(piece)/2])
		return errCut
	}
	_, err := to.Write(piece)
	return err
}

// reset ends a connection at once, so that the other end finds it broken and not over.
func reset(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}
