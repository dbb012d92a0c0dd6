package deploy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// healthHandler serves what operators watch: /healthz at once, /readyz with 200 once nothing is missing, both with the
// state of each role, and /metrics.
func healthHandler(health *Health, missing func() map[string][]string, metrics prometheus.Gatherer) http.Handler {
	answer := func(w http.ResponseWriter, status int, missing map[string][]string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		body := map[string]any{"roles": health.Report()}
		if len(missing) > 0 {
			body["missing"] = missing
		}
		_ = json.NewEncoder(w).Encode(body)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, nil)
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		status, missing := http.StatusOK, missing()
		if len(missing) > 0 {
			status = http.StatusServiceUnavailable
		}
		answer(w, status, missing)
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}))
	return mux
}

// port is an address to serve on. It is opened once at start, where a busy one is still somebody's mistake, and again
// when the role that serves on it is started again.
type port struct {
	addr string
	log  *slog.Logger
	// arrival is how long a request may take to arrive, also the body of one that is refused unread.
	arrival time.Duration

	mu     sync.Mutex
	opened net.Listener
}

// openPort opens key's address now; log is told where it cannot serve all who come.
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
	return spareFiles(listener, p.log), nil
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

const (
	arrival = 10 * time.Second
	// idle is how long a connection may be silent between two requests.
	idle = time.Minute
)

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
