//go:build linux || darwin

package sqlport

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
)

// links are the connections by which a child is asked statements. The goroutine of a statement writes the request and reads the answer
// itself: http.Transport has two goroutines for each connection, and waking them is a third of what a process of its own costs a short
// statement: 0.37 ms with them, 0.26 ms without (BenchmarkView). As many stay open as statements ran at once.
type links struct {
	dial func() (net.Conn, error)

	mu     sync.Mutex
	idle   []*link
	closed bool
}

// link is a connection without a statement, or with one.
type link struct {
	net.Conn
	in *bufio.Reader
}

// linkBytes is how much of an answer is read at once, as far as it is there.
const linkBytes = 256 << 10

func (l *links) take() (*link, error) {
	l.mu.Lock()
	if n := len(l.idle); n > 0 {
		one := l.idle[n-1]
		l.idle = l.idle[:n-1]
		l.mu.Unlock()
		return one, nil
	}
	l.mu.Unlock()
	conn, err := l.dial()
	if err != nil {
		return nil, err
	}
	return &link{conn, bufio.NewReaderSize(conn, linkBytes)}, nil
}

// exchange sends a request and waits until its answer begins. Nothing but the end of the child ends it before. The answer must be closed.
func (l *links) exchange(request *http.Request) (*http.Response, error) {
	one, err := l.take()
	if err != nil {
		return nil, err
	}
	if err = request.Write(one); err == nil {
		var response *http.Response
		if response, err = http.ReadResponse(one.in, request); err == nil {
			response.Body = &linkedBody{body: response.Body, links: l, link: one, ends: response.Close}
			return response, nil
		}
	}
	_ = one.Close()
	return nil, fmt.Errorf("asking the SQL process: %w", err)
}

// give takes a connection back.
func (l *links) give(one *link) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		_ = one.Close()
		return
	}
	l.idle = append(l.idle, one)
}

// close closes those that have no statement; the child has ended.
func (l *links) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, one := range l.idle {
		_ = one.Close()
	}
	l.idle, l.closed = nil, true
}

// linkedBody is the body of an answer. Read to its end, its connection is used again; closed before, it is closed too.
type linkedBody struct {
	body  io.ReadCloser
	links *links
	link  *link // nil when the connection is not ours any more
	ends  bool  // the child closes the connection after the answer
}

func (b *linkedBody) Read(p []byte) (int, error) {
	n, err := b.body.Read(p)
	if errors.Is(err, io.EOF) && b.link != nil && !b.ends {
		b.links.give(b.link)
		b.link = nil
	}
	return n, err
}

func (b *linkedBody) Close() error {
	if b.link == nil {
		return nil
	}
	err := b.link.Close()
	b.link = nil
	return err
}
