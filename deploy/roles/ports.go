package roles

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/marketlog/marketlog/deploy/config"
)

// port is an address to serve on. It is opened once at start, where a busy one is still somebody's mistake, and again
// when the role that serves on it is started again.
type port struct {
	addr string
	log  *slog.Logger
	// arrival is how long a request may take to arrive, also the body of one that is refused unread.
	arrival time.Duration
	// encrypted means that who connects begins with TLS; set before listen.
	encrypted bool

	mu     sync.Mutex
	opened net.Listener
}

// openPort opens key's address now; a restriction of who is served is logged.
func openPort(key, addr string, log *slog.Logger) (*port, error) {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w; choose another address", key, err)
	}
	return &port{addr: listener.Addr().String(), arrival: arrival, opened: listener, log: log}, nil
}

// listen gives the listener to the next one who serves.
func (p *port) listen() (net.Listener, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	listener := p.opened
	p.opened = nil
	if listener == nil {
		var err error
		if listener, err = net.Listen("tcp", p.addr); err != nil {
			return nil, err
		}
	}
	return spareFiles(listener, !p.encrypted, p.log), nil
}

// close closes the address if nobody took it over.
func (p *port) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.opened != nil {
		_ = p.opened.Close()
		p.opened = nil
	}
}

// serveHTTP serves handler until ctx ends, then gives open answers two seconds. A handler that reads or answers for longer than
// the port's arrival moves the deadline of reading itself.
func (p *port) serveHTTP(ctx context.Context, handler http.Handler) error {
	listener, err := p.listen()
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handler, ReadTimeout: p.arrival, IdleTimeout: idle}
	stopped := make(chan struct{})
	serving, done := context.WithCancel(ctx)
	go func() {
		defer close(stopped)
		<-serving.Done()
		shutdown, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		if server.Shutdown(shutdown) != nil {
			_ = server.Close()
		}
	}()
	err = server.Serve(listener)
	done()
	<-stopped
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serving %s: %w", p.addr, err)
}

// Ports are the addresses of an instance, opened; nil where it does not serve.
type Ports struct {
	api                  *switchListener
	metrics, sql, engine *port
}

// close closes what nobody came to serve on.
func (at Ports) close() {
	for _, p := range []*port{at.api.address(), at.metrics, at.sql, at.engine} {
		if p != nil {
			p.close()
		}
	}
}

func openPorts(cfg config.Config, role string, log *slog.Logger) (at Ports, err error) {
	var api *port
	for _, p := range []struct {
		key, addr string
		wanted    bool
		into      **port
	}{
		{"listen", cfg.Listen, role == "run" || role == "query", &api},
		{"metrics_listen", cfg.MetricsListen, true, &at.metrics},
		{"sql_listen", cfg.SQLListen, role == "engine" || role == "run" && len(cfg.ClickHouse.Addr) == 0, &at.sql},
		{"clickhouse.listen", cfg.ClickHouse.Listen, role == "engine", &at.engine},
	} {
		if !p.wanted || p.addr == "" {
			continue
		}
		if *p.into, err = openPort(p.key, p.addr, log); err != nil {
			at.close()
			return at, err
		}
	}
	if api != nil {
		at.api = newFront(api)
	}
	return at, nil
}
